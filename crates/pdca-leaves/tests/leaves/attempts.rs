//! Attempts, pauses, and going on after a crash.

use std::cell::RefCell;

use fs_err as fs;
use insta::assert_snapshot;
use pdca_leaves::{
    BoxError, CallHeader, LeafError, LeafEvent, Protocol, Role, Trace, begin_call, try_dir,
};
use pdca_process::Ending;

use crate::scene::{Scene, program, review};

/// Counts the start, then goes on.
const COUNT: &str = "count ${DESK}/count\n";

fn env(scene: &Scene) -> String {
    format!("env = {{ DESK = \"{}\" }}\n", scene.desk)
}

#[test]
fn a_failed_attempt_is_followed_by_as_many_as_are_configured() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 2";
    let script = "fail-first 2 ${DESK}/count 3\nwrite ${PDCA_OUTPUT} done";
    let outcome = scene.call(Role::Reviewer, &scene.leaf(&keys, script)).unwrap();
    assert_eq!((outcome.attempts, scene.starts()), (3, 3));
    let failures = outcome.earlier_failures.unwrap();
    assert_eq!(failures, "reviewer 1 of 3: exit status 3\nreviewer 2 of 3: exit status 3\n");
}

#[test]
fn the_error_log_says_how_each_attempt_ended_and_what_it_said_last() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1";
    let script = format!("{COUNT}[1] print first\n[2] eprint \"second\\tline\"\nexit 4");
    let error = scene.call(Role::Builder, &scene.leaf(&keys, &script)).unwrap_err();
    assert!(
        matches!(error, LeafError::Failed { attempts: 2, ending: Ending::Exited(4), .. }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "the builder failed after 2 attempts: exit status 4: second line"
    );
    assert_snapshot!(error.error_log().unwrap(), @r"
    builder 1 of 2: exit status 4
      | first
    builder 2 of 2: exit status 4
      | second line
    ");
}

#[test]
fn a_long_output_is_quoted_by_its_end() {
    let scene = Scene::new();
    let leaf = program("", &["sh", "-c", "seq 1 100; exit 1"]);
    let error = scene.call(Role::Builder, &leaf).unwrap_err();
    let log = error.error_log().unwrap();
    assert_eq!(log.lines().count(), 22, "{log}");
    assert!(log.starts_with("builder 1 of 1: exit status 1\n  | …\n  | 81\n"), "{log}");
    assert!(log.ends_with("\n  | 100\n"), "{log}");
}

#[test]
fn an_attempt_does_not_inherit_what_a_failed_one_left() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1";
    let script = format!("{COUNT}[1] write ${{PDCA_OUTPUT}} half\n[1] exit 1");
    let error = scene.call(Role::Reviewer, &scene.leaf(&keys, &script)).unwrap_err();
    assert!(matches!(error, LeafError::NoArtifact { attempts: 2, .. }), "{error:?}");
}

#[test]
fn an_attempt_that_leaves_nothing_is_a_failed_one() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1";
    let script = format!("{COUNT}[2] write ${{PDCA_OUTPUT}} done");
    let outcome = scene.call(Role::Reviewer, &scene.leaf(&keys, &script)).unwrap();
    assert_eq!((review(&outcome).as_str(), outcome.attempts), ("done", 2));
}

#[test]
fn a_leaf_that_takes_too_long_or_falls_silent_is_ended() {
    for (keys, expected) in
        [("timeout_secs = 0.3", Ending::TimedOut), ("stall_secs = 0.3", Ending::Stalled)]
    {
        let scene = Scene::new();
        let leaf = scene.leaf(keys, "print waiting\nsleep 600000");
        let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
        let LeafError::Failed { ending, attempts: 1, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(ending, expected);
    }
}

#[test]
fn a_stall_that_the_protocol_shows_is_one_for_the_next_driver_and_on_record_too() {
    let scene = Scene::new();
    let leaf = scene.leaf("protocol = \"codex\"\nstall_secs = 0.3", "sleep 600000");
    let header = CallHeader {
        instructions: None,
        call: "c1".to_owned(),
        number: 1,
        role: "builder".to_owned(),
        leaf: "builder".to_owned(),
        tried: 1,
        run: None,
        began: 7,
        agent: None,
        protocol: Protocol::Codex,
        model: None,
        price: None,
        cost_per_call: None,
    };
    let prepare = |n| begin_call(&try_dir(&scene.job, n), &header).map_err(BoxError::from);
    for reused in [false, true] {
        scene.events.borrow_mut().clear();
        let error = scene
            .call_with(Role::Builder, &leaf, |call| call.prepare = Some(&prepare))
            .unwrap_err();
        assert!(
            matches!(error, LeafError::Failed { attempts: 1, ending: Ending::Stalled, .. }),
            "{error:?}"
        );
        let has_ended = |event: &LeafEvent| matches!(event, LeafEvent::Ended { reused: told, .. } if *told == reused);
        assert!(scene.events.borrow().iter().any(has_ended), "reused: {reused}");
    }
    let trace = Trace::load(&try_dir(&scene.job, 1)).unwrap().unwrap();
    let (record, _) = trace.record(0);
    assert_eq!((record.ending.as_str(), record.interrupted), ("stalled", false));
}

#[test]
fn the_checkout_is_prepared_before_each_start_and_not_for_what_is_reused() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1";
    let leaf = scene.leaf(&keys, "fail-first 1 ${DESK}/count\nwrite ${PDCA_OUTPUT} done");
    let prepared = RefCell::new(Vec::new());
    let prepare = |n| {
        prepared.borrow_mut().push(n);
        Ok(())
    };
    for _driver in 0..2 {
        scene.call_with(Role::Builder, &leaf, |call| call.prepare = Some(&prepare)).unwrap();
    }
    assert_eq!(prepared.into_inner(), [1, 2]);
}

#[test]
fn a_checkout_that_cannot_be_prepared_stops_the_call() {
    let scene = Scene::new();
    let prepare = |_| Err(BoxError::from("no room"));
    let leaf = scene.leaf("", "exit 0");
    let error = scene.call_with(Role::Builder, &leaf, |call| call.prepare = Some(&prepare));
    assert!(matches!(error.unwrap_err(), LeafError::Prepare(_)));
}

#[test]
fn a_throttled_leaf_is_asked_again_and_no_attempt_is_spent() {
    let scene = Scene::new();
    let keys = env(&scene) + "throttled = { exit_codes = [75], backoff_secs = 0.01 }";
    let script = "fail-first 3 ${DESK}/count 75\nwrite ${PDCA_OUTPUT} done";
    let outcome = scene.call(Role::Reviewer, &scene.leaf(&keys, script)).unwrap();
    assert_eq!((outcome.attempts, outcome.throttled, scene.starts()), (1, 3, 4));
    assert_eq!(scene.waits(), [10, 20, 40]);
}

#[test]
fn throttled_and_failed_tries_are_counted_apart() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1\nthrottled = { exit_codes = [75], backoff_secs = 0.01 }";
    let script = format!("{COUNT}[1] exit 75\n[2] exit 1\n[3] exit 75\n[4] exit 1");
    let error = scene.call(Role::Reviewer, &scene.leaf(&keys, &script)).unwrap_err();
    assert!(matches!(error, LeafError::Failed { attempts: 2, .. }), "{error:?}");
    assert_snapshot!(error.error_log().unwrap(), @r"
    reviewer 1 of 2: exit status 75, throttled
    reviewer 1 of 2: exit status 1
    reviewer 2 of 2: exit status 75, throttled
    reviewer 2 of 2: exit status 1
    ");
}

#[test]
fn a_leaf_that_stays_throttled_is_given_up_and_the_next_call_asks_again() {
    let scene = Scene::new();
    let keys = env(&scene)
        + "throttled = { exit_codes = [75], backoff_secs = 0.01, max_wait_secs = 0.03 }";
    let script = format!("{COUNT}[-3] exit 75\nwrite ${{PDCA_OUTPUT}} done");
    let leaf = scene.leaf(&keys, &script);
    let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
    assert!(matches!(error, LeafError::Throttled { times: 3, .. }), "{error:?}");
    assert_eq!(scene.starts(), 3);
    let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
    assert_eq!((review(&outcome).as_str(), outcome.attempts, scene.starts()), ("done", 1, 4));
}

#[test]
fn a_wait_can_be_called_off() {
    let scene = Scene::new();
    let leaf = scene.leaf("throttled = { exit_codes = [75], backoff_secs = 3600 }", "exit 75");
    let inputs = pdca_leaves::Inputs::gather(Role::Reviewer, &scene.bundle).unwrap();
    let call = pdca_leaves::Call::new(&leaf, &inputs, &scene.job, scene.places(Role::Reviewer));
    let mut report = |event| {
        if matches!(event, LeafEvent::Throttled { .. }) {
            scene.cancel.cancel();
        }
    };
    let error = pdca_leaves::call(&call, &mut report, &scene.cancel).unwrap_err();
    assert!(matches!(error, LeafError::Cancelled), "{error:?}");
}

#[test]
fn words_mean_throttled_only_where_a_leaf_failed_or_left_nothing() {
    let keys = "throttled = { pattern = \"usage limit\", backoff_secs = 0.01 }\n";
    let cases = [
        ("[1] print \"usage limit reached\"\n[1] exit 1", 1),
        ("[1] print \"usage limit reached\"\n[1] exit 0", 1),
        ("print \"| C1 Spec | PASS | the usage limit is tested |\"\nexit 0", 0),
        ("print \"the usage limit is tested\"", 0),
    ];
    for (script, throttled) in cases {
        let scene = Scene::new();
        let script = format!("{COUNT}{script}\nwrite ${{PDCA_OUTPUT}} done");
        let leaf = scene.leaf(&(env(&scene) + keys), &script);
        let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
        assert_eq!(outcome.throttled, throttled, "{script}");
    }
}

#[test]
fn a_leaf_that_finished_is_not_started_again_by_the_next_driver() {
    let scene = Scene::new();
    let script = format!("{COUNT}print working\nwrite ${{PDCA_OUTPUT}} done");
    let leaf = scene.leaf(&env(&scene), &script);
    let first = scene.call(Role::Reviewer, &leaf).unwrap();
    scene.events.borrow_mut().clear();
    let second = scene.call(Role::Reviewer, &leaf).unwrap();
    assert_eq!(scene.starts(), 1);
    assert!(!first.reused && second.reused);
    assert_eq!((first.produced, first.guard), (second.produced, second.guard));
    let events = scene.events.into_inner();
    assert!(
        matches!(events[..], [LeafEvent::Ended { attempt: 1, reused: true, .. }]),
        "{events:?}"
    );
}

#[test]
fn attempts_that_failed_under_an_earlier_driver_count() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1";
    let leaf = scene.leaf(&keys, &format!("{COUNT}print ${{PDCA_ROLE}}\nexit 9"));
    let first = scene.call(Role::Reviewer, &leaf).unwrap_err();
    let second = scene.call(Role::Reviewer, &leaf).unwrap_err();
    assert_eq!(scene.starts(), 2);
    assert_eq!(first.error_log(), second.error_log());
}

#[test]
fn a_leaf_that_was_called_off_is_started_again() {
    let scene = Scene::new();
    let script = format!("{COUNT}[1] sleep 600000\nwrite ${{PDCA_OUTPUT}} done");
    let leaf = scene.leaf(&env(&scene), &script);
    let inputs = pdca_leaves::Inputs::gather(Role::Reviewer, &scene.bundle).unwrap();
    let call = pdca_leaves::Call::new(&leaf, &inputs, &scene.job, scene.places(Role::Reviewer));
    let cancel = pdca_process::Cancel::new();
    let mut report = |event| {
        if matches!(event, LeafEvent::Started { .. }) {
            wait_for(&scene.desk.join("count"));
            cancel.cancel();
        }
    };
    let error = pdca_leaves::call(&call, &mut report, &cancel).unwrap_err();
    assert!(matches!(error, LeafError::Cancelled), "{error:?}");
    let outcome = scene.call_with(Role::Reviewer, &leaf, |call| call.fingerprint = None).unwrap();
    assert_eq!((outcome.attempts, outcome.reused, scene.starts()), (1, false, 2));
}

#[test]
fn a_call_that_is_off_before_it_begins_starts_nothing() {
    let scene = Scene::new();
    scene.cancel.cancel();
    let leaf = scene.leaf(&env(&scene), COUNT);
    let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
    assert!(matches!(error, LeafError::Cancelled), "{error:?}");
    assert!(!scene.desk.join("count").exists());
}

#[test]
fn a_torn_verdict_counts_as_none() {
    let scene = Scene::new();
    let leaf = scene.leaf(&env(&scene), &format!("{COUNT}write ${{PDCA_OUTPUT}} done"));
    scene.call(Role::Reviewer, &leaf).unwrap();
    fs::write(scene.job.join("try-001/verdict.json"), "{\"format\"").unwrap();
    let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
    assert_eq!((outcome.reused, scene.starts()), (false, 2));
}

#[test]
fn a_program_that_is_not_there_is_told_apart_from_one_that_fails() {
    let scene = Scene::new();
    for absent in ["no-such-program-anywhere", "./no/such/file"] {
        let leaf = program("retries = 3", &[absent]);
        let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
        assert!(matches!(error, LeafError::NotStarted { .. }), "{error:?}");
    }
}

#[test]
fn a_leaf_that_the_host_killed_costs_no_attempt() {
    let scene = Scene::new();
    let script = format!("{COUNT}[1] kill-self 9\nwrite ${{PDCA_OUTPUT}} done");
    let leaf = scene.leaf(&env(&scene), &script);
    let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
    assert!(matches!(error, LeafError::Host { .. }), "{error:?}");
    assert_eq!(scene.call(Role::Reviewer, &leaf).unwrap().attempts, 1);
}

#[test]
fn what_happens_is_told_in_order() {
    let scene = Scene::new();
    let keys = env(&scene) + "retries = 1";
    let script = format!("{COUNT}[1] exit 2\nwrite ${{PDCA_OUTPUT}} done");
    scene.call(Role::Reviewer, &scene.leaf(&keys, &script)).unwrap();
    let told: Vec<_> = scene
        .events
        .into_inner()
        .into_iter()
        .filter_map(|event| match event {
            LeafEvent::Attempt { n, of } => Some(format!("attempt {n} of {of}")),
            LeafEvent::Started { pid } => Some(format!("started {}", pid > 0)),
            LeafEvent::Ended { attempt, ending, .. } => Some(format!("ended {attempt}: {ending}")),
            LeafEvent::Output { .. } => None,
            LeafEvent::Throttled { .. } => Some("throttled".to_owned()),
            LeafEvent::NotResumed { .. } => Some("not resumed".to_owned()),
            LeafEvent::Diagnosed { class, .. } => Some(class.to_string()),
        })
        .collect();
    assert_snapshot!(told.join("\n"), @r"
    attempt 1 of 2
    started true
    ended 1: exit status 2
    attempt 2 of 2
    started true
    ended 2: exit status 0
    ");
}

/// Waits for a file with something in it, with a bound.
fn wait_for(path: &camino::Utf8Path) {
    let start = std::time::Instant::now();
    while !fs::read(path).is_ok_and(|bytes| !bytes.is_empty()) {
        assert!(start.elapsed().as_secs() < 300, "{path} does not appear");
        std::thread::yield_now();
    }
}
