//! An agent whose limit ends at a moment that it names: waited for, and asked about where a person sits at a terminal.

use pdca_e2e::{Scene, leaf};

/// An agent that is limited until `$PDCA_WORKSPACE/calls/until`, in seconds since 1970, and then does its work.
const LIMITED: &str = r#"
until=$(cat "$log/until")
if [ "$(date +%s)" -lt "$until" ]; then
  echo "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":$until}}"
  echo '{"type":"result","subtype":"success","is_error":true,"result":"You have hit your limit (429)"}'
  exit 1
fi
echo done > greeting.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"#;

const QUESTION: &str = "wait, stop or go on? [W/s/g] ";

/// A workspace whose builder is limited for this many seconds, and is waited for one second unasked.
fn scene(seconds: u64) -> Scene {
    let limited = "protocol = \"claude\"\nagent = \"limited\"\n\
                   throttled = { max_wait_secs = 1 }\nprompt_via";
    let scene = Scene::new(&format!("{}{OTHER}", leaf("builder").replace("prompt_via", limited)));
    scene.script("builder", LIMITED);
    scene.script("other", "echo other > other.txt");
    limit(&scene, seconds);
    scene.brief("7", &[]);
    scene
}

/// A bundle that says so is built by another agent.
const OTHER: &str = "[[leaves.builder_variant]]\nwhen = \"Difficulty: low\"\nagent = \"other\"\nprotocol = \"text\"\n\
     argv = [\"sh\", \"{workspace}/leaves/other.sh\", \"{id}\"]\n\n";

#[expect(
    clippy::disallowed_methods,
    reason = "the program compares the moment that its agent names with the real clock"
)]
fn limit(scene: &Scene, seconds: u64) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("because the clock is after 1970").as_secs();
    scene.workspace.write("calls/until", (now + seconds).to_string());
}

#[test]
fn a_person_at_the_terminal_stops_a_long_wait_and_the_same_command_goes_on() {
    let scene = scene(7200);
    let line = "$PDCA run 7; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for(QUESTION);
    assert!(pty.shown().contains("the limit of the builder `limited` ends at "), "{}", pty.shown());
    assert!(pty.shown().contains("You have hit your limit (429)"), "{}", pty.shown());
    pty.type_text("what\n");
    pty.type_text("s\n");
    pty.wait_for("code 130");
    pty.wait();
    assert!(pty.shown().contains("the run stops"), "{}", pty.shown());
    limit(&scene, 0);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "builder 7"], "nothing was called while it waited");
}

#[test]
fn a_run_goes_on_without_the_bundles_of_a_limited_agent_where_a_person_says_so() {
    let scene = scene(7200);
    scene.brief("8", &[("Difficulty", "low")]);
    scene.brief("9", &[]);
    let line = "$PDCA batch; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for(QUESTION);
    pty.type_text("g\n");
    pty.wait_for("code ");
    pty.wait();
    let shown = pty.shown();
    assert!(shown.contains("bundles that need `limited` are left for a later run"), "{shown}");
    assert_eq!(shown.matches(QUESTION).count(), 1, "one limit is asked about once: {shown}");
    assert_eq!(scene.calls(), ["builder 7", "other 8"], "{shown}");
    assert_eq!(scene.state("8"), "AWAITING_SIGNOFF", "{shown}");
    limit(&scene, 0);
    scene.pdca(&["run", "7", "9"]).expect(0);
    for id in ["7", "9"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF", "the limit is no attempt of the builder");
    }
}

#[test]
fn a_question_that_nobody_answers_ends_with_the_limit() {
    let scene = scene(3);
    let line = "$PDCA run 7; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for(QUESTION);
    pty.wait_for("code 0");
    pty.wait();
    assert_eq!(scene.calls(), ["builder 7", "builder 7"]);
}

#[test]
fn a_person_who_chooses_to_wait_is_told_until_when() {
    let scene = scene(7200);
    let line = "trap : INT; $PDCA run 7; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for(QUESTION);
    pty.type_text("\n");
    pty.wait_for("the builder waits until ");
    pty.type_text("\u{3}");
    pty.wait_for("code 130");
    pty.wait();
}

#[test]
fn without_a_terminal_a_named_moment_is_waited_for_and_told() {
    let scene = scene(7200);
    let line = "$PDCA run 7 < /dev/null 2> told & \
                until grep -q 'throttled builder again in .* h .* min, at ' told; do sleep 0.05; done; \
                kill -INT $!; wait $!; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for("code 130");
    pty.wait();
    let told = scene.workspace.read("told");
    assert!(!told.contains(QUESTION), "{told}");
}

#[test]
fn a_run_in_the_background_asks_nothing_and_leaves_the_input_to_the_shell() {
    let scene = scene(6);
    let line = "set -m; $PDCA run 7 & read typed; echo \"the shell has $typed\"; wait $!; echo \"code $?\"";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    scene.wait_until("the builder was told to wait", |scene| {
        scene.calls().contains(&"builder 7".to_owned())
    });
    pty.wait_for("throttled");
    pty.type_text("s\n");
    pty.wait_for("the shell has s");
    pty.wait_for("code 0");
    pty.wait();
    assert!(!pty.shown().contains(QUESTION), "{}", pty.shown());
    assert_eq!(scene.calls(), ["builder 7", "builder 7"]);
}
