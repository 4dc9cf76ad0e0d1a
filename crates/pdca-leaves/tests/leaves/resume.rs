//! Going on in the session of an earlier call.

use fs_err as fs;
use pdca_leaves::{LeafConfig, LeafError, LeafEvent, LeafOutcome, Role};

use crate::scene::{Scene, program};

/// Notes its arguments, and says which session it is in.
const AGENT: &str = r#"
    echo "$*" >> "$DESK/argv"
    if [ -n "$PDCA_PROMPT_FILE" ]; then cat "$PDCA_PROMPT_FILE" >> "$DESK/prompts"; echo >> "$DESK/prompts"; fi
    case "$*" in
        *--resume\ gone*) echo "No conversation found" >&2; exit 1;;
        *--resume\ long*) echo '{"type":"result","is_error":true,"subtype":"success","result":"Prompt is too long","session_id":"long"}'; exit 1;;
        *--resume\ later*)
            echo '{"type":"assistant","message":{"content":[{"type":"text","text":"I began"}]},"session_id":"later"}'
            exit 75;;
        *--resume\ bad*)
            echo '{"type":"assistant","message":{"content":[{"type":"text","text":"I tried"}]},"session_id":"bad"}'
            exit 1;;
    esac
    echo '{"type":"system","subtype":"init","session_id":"fresh:2.0"}'
    echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"fresh:2.0"}'
    echo notes > "$PDCA_OUTPUT"
"#;

fn agent(scene: &Scene, keys: &str) -> LeafConfig {
    let script = scene.desk.join("agent.sh");
    fs::write(&script, AGENT).unwrap();
    let keys = format!(
        "protocol = \"claude\"\nresume_args = [\"--resume\", \"{{session}}\"]\nwritable = [\"{desk}\"]\n\
         env = {{ DESK = \"{desk}\" }}\n{keys}",
        desk = scene.desk
    );
    program(&keys, &["sh", script.as_str(), "{attempt}", "[{session}]"])
}

fn call(scene: &Scene, keys: &str, session: Option<&str>) -> Result<LeafOutcome, LeafError> {
    let leaf: &'static LeafConfig = Box::leak(Box::new(agent(scene, keys)));
    let session: Option<&'static str> =
        session.map(|session| &*Box::leak(session.to_owned().into_boxed_str()));
    scene.call_with(Role::Builder, leaf, |call| {
        call.session = session;
        call.facts.attempt = 2;
    })
}

fn not_resumed(scene: &Scene) -> usize {
    let events = scene.events.borrow();
    events.iter().filter(|event| matches!(event, LeafEvent::NotResumed { .. })).count()
}

#[test]
fn a_session_becomes_arguments_and_the_outcome_names_the_one_to_go_on_in() {
    let scene = Scene::new();
    let outcome = call(&scene, "", Some("first-1")).unwrap();
    assert_eq!(scene.desk("argv"), "2 [first-1] --resume first-1\n");
    assert_eq!(outcome.session.as_deref(), Some("fresh:2.0"));
    assert_eq!((outcome.attempts, not_resumed(&scene)), (1, 0));
}

#[test]
fn without_a_session_nothing_of_it_is_passed() {
    let scene = Scene::new();
    call(&scene, "", None).unwrap();
    assert_eq!(scene.desk("argv"), "2 []\n");
}

#[test]
fn a_session_that_is_gone_or_too_long_is_given_up_once_and_costs_no_attempt() {
    for session in ["gone-1", "long-1"] {
        let scene = Scene::new();
        let outcome = call(&scene, "", Some(session)).unwrap();
        let expected = format!("2 [{session}] --resume {session}\n2 []\n");
        assert_eq!(scene.desk("argv"), expected);
        assert_eq!((outcome.attempts, not_resumed(&scene)), (1, 1), "{session}");
        let failures = outcome.earlier_failures.unwrap();
        assert!(failures.contains("the session was not resumed"), "{failures}");
    }
}

#[test]
fn a_resumed_agent_that_worked_and_failed_has_failed_and_the_next_attempt_begins_anew() {
    let scene = Scene::new();
    assert!(matches!(call(&scene, "", Some("bad-1")), Err(LeafError::Failed { attempts: 1, .. })));
    let scene = Scene::new();
    let outcome = call(&scene, "retries = 1\n", Some("bad-1")).unwrap();
    assert_eq!(scene.desk("argv"), "2 [bad-1] --resume bad-1\n2 []\n");
    assert_eq!((outcome.attempts, not_resumed(&scene)), (2, 0));
}

#[test]
fn a_session_is_not_gone_on_in_after_a_throttled_try() {
    let scene = Scene::new();
    let keys = "throttled = { exit_codes = [75], backoff_secs = 0.01 }\n";
    let outcome = call(&scene, keys, Some("later-1")).unwrap();
    assert_eq!(scene.desk("argv"), "2 [later-1] --resume later-1\n2 []\n");
    assert_eq!((outcome.attempts, outcome.throttled), (1, 1));
}

#[test]
fn each_try_finds_the_prompt_of_its_own_session() {
    let scene = Scene::new();
    let keys = "prompt = \"in [{session}]\"\nprompt_via = \"file\"\n";
    call(&scene, keys, Some("gone-1")).unwrap();
    assert_eq!(scene.desk("prompts"), "in [gone-1]\nin []\n");
}

#[test]
fn a_driver_that_comes_back_judges_the_same_tries_the_same_way_and_starts_nothing() {
    let scene = Scene::new();
    let first = call(&scene, "", Some("gone-1")).unwrap();
    let again = call(&scene, "", Some("gone-1")).unwrap();
    assert_eq!(scene.desk("argv").lines().count(), 2);
    assert_eq!((again.session, again.attempts), (first.session, first.attempts));
    assert!(again.reused);
}

#[test]
fn what_could_be_a_flag_is_no_session() {
    let scene = Scene::new();
    call(&scene, "", Some("--dangerous")).unwrap();
    assert_eq!(scene.desk("argv"), "2 []\n");
}
