//! The endings of a child.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use pdca_process::{
    Cancel, Ending, Obstacle, RunError, Sign, Spec, Stall, Stdin, load_verdict, run,
};

use crate::support::{Scene, eventually, exists};

fn obstacle(ending: Ending) -> (Obstacle, String) {
    let Ending::NotStarted { kind, why } = ending else {
        panic!("it was started: {ending:?}");
    };
    (kind, why)
}

#[test]
fn the_exit_code_is_the_ending_and_both_outputs_are_logged_in_order() {
    let scene = Scene::new();
    let verdict = scene.run(&scene.script("echo one; echo two >&2; echo three; exit 7"));
    assert_eq!(verdict.ending, Ending::Exited(7));
    assert_eq!(scene.output(), "one\ntwo\nthree\n");
    assert_eq!(verdict.output.bytes, 14);
    assert_eq!(verdict.output.last_line, "three");
    assert_eq!(verdict.stragglers, 0);
    assert!(!scene.log().truncated);
}

#[test]
fn the_verdict_in_the_file_is_the_verdict_that_is_returned() {
    let scene = Scene::new();
    let mut verdict = scene.run(&scene.script("echo hello; exit 3"));
    // The file stores whole milliseconds.
    let ms = u64::try_from(verdict.duration.as_millis()).unwrap();
    verdict.duration = Duration::from_millis(ms);
    assert_eq!(load_verdict(&scene.job()).unwrap(), Some(verdict));
}

#[test]
fn a_verdict_of_an_earlier_run_does_not_survive_the_start_of_the_next() {
    let scene = Scene::new();
    scene.run(&scene.script("exit 0"));
    let mut spec = scene.script("exit 0");
    spec.argv = vec!["no-such-program-anywhere".into()];
    let verdict = scene.run(&spec);
    assert_eq!(load_verdict(&scene.job()).unwrap(), Some(verdict));
}

#[test]
fn b1_a_child_that_hangs_silently_times_out() {
    let scene = Scene::new();
    let mut spec = scene.script("sleep 1000; echo never");
    spec.timeout = Some(Duration::from_millis(200));
    let verdict = scene.run(&spec);
    assert_eq!(verdict.ending, Ending::TimedOut);
    assert!(verdict.duration >= Duration::from_millis(200));
}

#[test]
fn b2_a_child_that_ignores_the_request_to_end_is_killed_after_the_grace() {
    let scene = Scene::new();
    let mut spec = scene.script("trap '' TERM; while :; do sleep 1000; done");
    spec.timeout = Some(Duration::from_millis(300));
    spec.grace = Duration::from_millis(200);
    assert_eq!(scene.run(&spec).ending, Ending::TimedOut);
}

#[test]
fn a_child_that_ends_in_its_grace_has_timed_out_all_the_same() {
    let scene = Scene::new();
    let mut spec =
        scene.script("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    spec.timeout = Some(Duration::from_secs(2));
    spec.grace = Duration::from_secs(100);
    assert_eq!(scene.run(&spec).ending, Ending::TimedOut);
    assert!(scene.output().ends_with("bye\n"), "{}", scene.output());
}

#[test]
fn a_child_without_a_sign_of_life_stalls() {
    let scene = Scene::new();
    let mut spec = scene.script("echo begun; sleep 1000");
    spec.stall = Some(Stall::new(Duration::from_millis(300)).watching([scene.path()]));
    assert_eq!(scene.run(&spec).ending, Ending::Stalled);
}

#[test]
fn a_silent_child_that_changes_watched_files_is_alive() {
    let scene = Scene::new();
    let watched = scene.path().join("watched");
    std::fs::create_dir_all(watched.join("deep")).unwrap();
    let script =
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > watched/deep/file; sleep 0.3; done";
    let mut spec = scene.script(script);
    spec.stall = Some(Stall::new(Duration::from_secs(2)).watching([watched]));
    assert_eq!(scene.run(&spec).ending, Ending::Exited(0));
}

#[test]
fn b11_a_child_that_asks_a_question_meets_the_end_of_input() {
    let scene = Scene::new();
    let verdict = scene.run(&scene.script("read answer; echo \"got $?\"; cat"));
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert_eq!(scene.output(), "got 1\n");
}

#[test]
fn b11_a_child_has_no_terminal_to_ask_at() {
    let scene = Scene::new();
    let script = "if (: < /dev/tty) 2> /dev/null; then echo terminal; else echo none; fi";
    scene.run(&scene.script(script));
    assert_eq!(scene.output(), "none\n");
}

#[test]
fn the_bytes_of_standard_input_arrive_whole() {
    let scene = Scene::new();
    let mut spec = scene.argv(&["cat"]);
    let input: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    spec.stdin = Stdin::Bytes(input.clone());
    spec.output.head = 4_000_000;
    assert_eq!(scene.run(&spec).ending, Ending::Exited(0));
    assert!(scene.log().bytes == input, "what came back differs");
}

#[test]
fn a_child_need_not_read_its_standard_input() {
    let scene = Scene::new();
    let mut spec = scene.argv(&["true"]);
    spec.stdin = Stdin::Bytes(vec![0; 5_000_000]);
    assert_eq!(scene.run(&spec).ending, Ending::Exited(0));
}

#[test]
fn b18_a_stopped_child_times_out() {
    let scene = Scene::new();
    let mut spec = scene.script("kill -STOP $$; sleep 1000");
    spec.timeout = Some(Duration::from_millis(500));
    assert_eq!(scene.run(&spec).ending, Ending::TimedOut);
}

#[test]
fn a_signal_of_its_own_is_told_from_one_of_ours() {
    let scene = Scene::new();
    let crashed = scene.run(&scene.script("kill -SEGV $$")).ending;
    assert_eq!(crashed, Ending::Signaled(11));
    assert!(!crashed.is_host_fault());
    let killed = scene.run(&scene.script("kill -KILL $$")).ending;
    assert_eq!(killed, Ending::Signaled(9));
    assert!(killed.is_host_fault());
}

#[test]
fn b24_a_child_that_kills_its_own_group_hits_only_itself() {
    let scene = Scene::new();
    let verdict = scene.run(&scene.script("sleep 1000 & kill -KILL 0; sleep 1000"));
    assert_eq!(verdict.ending, Ending::Signaled(9));
    assert!(load_verdict(&scene.job()).unwrap().is_some());
}

#[test]
fn b22_a_missing_program_was_not_found() {
    let scene = Scene::new();
    for program in ["no-such-program-anywhere", "./missing", "/no/such/program"] {
        let (kind, why) = obstacle(scene.run(&scene.argv(&[program])).ending);
        assert_eq!(kind, Obstacle::NotFound, "{program}");
        assert!(why.ends_with("does not exist"), "{why}");
    }
}

#[test]
fn b22_a_search_path_with_a_closed_directory_hides_nothing() {
    let scene = Scene::new();
    let closed = scene.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut spec = scene.argv(&["no-such-program-anywhere"]);
    spec.env = spec.env.with("PATH", format!("{closed}:/bin:/usr/bin"));
    assert_eq!(obstacle(scene.run(&spec).ending).0, Obstacle::NotFound);
}

#[test]
fn b22_a_file_that_is_no_program_is_not_executable() {
    let scene = Scene::new();
    std::fs::write(scene.path().join("plain"), "#!/bin/sh\n").unwrap();
    std::fs::write(scene.path().join("garbage"), [0x7f, 0, 1, 2]).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scene.path().join("garbage"), executable).unwrap();
    for program in ["./plain", "./garbage", "/"] {
        let (kind, _) = obstacle(scene.run(&scene.argv(&[program])).ending);
        assert_eq!(kind, Obstacle::NotExecutable, "{program}");
    }
}

#[test]
fn b22_a_script_without_its_interpreter_says_so() {
    let scene = Scene::new();
    let script = scene.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (kind, why) = obstacle(scene.run(&scene.argv(&["./script"])).ending);
    assert_eq!(kind, Obstacle::NotFound);
    assert!(why.contains("interpreter"), "{why}");
}

#[test]
fn b22_a_missing_working_directory_is_not_the_programs_fault() {
    let scene = Scene::new();
    let mut spec = scene.argv(&["true"]);
    spec.cwd = scene.path().join("gone");
    let (kind, why) = obstacle(scene.run(&spec).ending);
    assert_eq!(kind, Obstacle::Other);
    assert!(why.contains("working directory"), "{why}");
}

#[test]
fn nothing_to_run_is_an_error() {
    let scene = Scene::new();
    let spec = Spec::new(Vec::<String>::new(), scene.path(), scene.job());
    let error = run(&spec, &Cancel::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, RunError::NoProgram), "{error:?}");
}

#[test]
fn b13_a_cancelled_child_may_end_in_its_own_way() {
    let scene = Scene::new();
    let spec = scene.script("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    let cancel = Cancel::new();
    let verdict = scene.run_watched(&spec, &cancel, &mut |sign| {
        if matches!(sign, Sign::Output { .. }) {
            cancel.cancel();
        }
    });
    assert_eq!(verdict.ending, Ending::Cancelled);
    assert!(scene.output().ends_with("bye\n"), "{}", scene.output());
}

#[test]
fn b14_a_second_demand_does_not_wait_for_the_grace() {
    let scene = Scene::new();
    let mut spec = scene.script("trap 'touch asked' TERM; echo up; while :; do sleep 0.01; done");
    spec.grace = Duration::from_secs(1000);
    let asked = scene.path().join("asked");
    let cancel = Cancel::new();
    let verdict = std::thread::scope(|scope| {
        let (cancel, asked) = (&cancel, &asked);
        scene.run_watched(&spec, cancel, &mut |sign| {
            if matches!(sign, Sign::Output { .. }) {
                cancel.cancel();
                scope.spawn(move || {
                    eventually("it was asked to end", || exists(asked));
                    cancel.kill();
                });
            }
        })
    });
    assert_eq!(verdict.ending, Ending::Cancelled);
}

#[test]
fn what_is_cancelled_before_it_starts_is_not_started() {
    let scene = Scene::new();
    let cancel = Cancel::new();
    cancel.cancel();
    let verdict = scene.run_watched(&scene.script("touch started"), &cancel, &mut |_| {});
    assert_eq!(verdict.ending, Ending::Cancelled);
    assert!(!exists(scene.path().join("started")));
}

#[test]
fn values_that_are_not_text_reach_the_child_unchanged() {
    let scene = Scene::new();
    let bytes = std::ffi::OsStr::from_bytes(b"a\xff\xfe");
    let mut spec = scene.script("printf '%s %s' \"$ODD\" \"$1\"");
    spec.argv.extend(["sh".into(), bytes.to_owned()]);
    spec.env = spec.env.with("ODD", bytes);
    assert_eq!(scene.run(&spec).ending, Ending::Exited(0));
    assert_eq!(scene.log().bytes, b"a\xff\xfe a\xff\xfe");
}
