//! Short helpers.

use std::time::Duration;

use pdca_process::{Cancel, Tool, ToolError};

use crate::support::Scene;

#[test]
fn a_tool_can_read_and_write_much_at_the_same_time() {
    let input: Vec<u8> = (0..4_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let output = Tool::new("cat").stdin(input.clone()).run().unwrap();
    assert!(output.success());
    assert!(output.stdout == input, "what came back differs");
}

#[test]
fn a_code_that_is_not_zero_is_a_result() {
    let output = Tool::new("sh").args(["-c", "echo out; echo err >&2; exit 9"]).run().unwrap();
    assert_eq!(output.code, 9);
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
}

#[test]
fn b1_a_tool_that_hangs_is_killed_with_its_group() {
    let scene = Scene::new();
    let error = Tool::new("sh")
        .args(["-c", "sleep 1000 & sleep 1000"])
        .env("SCENE_TOKEN", &scene.token)
        .timeout(Duration::from_millis(200))
        .run()
        .unwrap_err();
    assert!(matches!(error, ToolError::TimedOut { .. }), "{error:?}");
    crate::support::eventually("nothing is alive", || scene.alive().is_empty());
}

#[test]
fn a_tool_that_the_kernel_stops_for_a_question_at_the_terminal_is_killed_with_its_group() {
    for signal in ["TTIN", "TTOU"] {
        let scene = Scene::new();
        // What the kernel sends to the whole group when one process of it reads the terminal.
        let error = Tool::new("sh")
            .args(["-c", &format!("sleep 1000 & kill -{signal} 0; echo went on")])
            .env("SCENE_TOKEN", &scene.token)
            .run()
            .unwrap_err();
        assert!(matches!(error, ToolError::Asks { .. }), "{error:?}");
        crate::support::eventually("nothing is alive", || scene.alive().is_empty());
    }
}

#[test]
fn a_tool_that_a_person_stops_goes_on_when_it_is_continued() {
    let script = "(until grep -q '(stopped)' /proc/$$/status; do :; done; kill -CONT $$) & \
                  kill -STOP $$; echo went on";
    let output = Tool::new("sh").args(["-c", script]).run().unwrap();
    assert_eq!(output.stdout, b"went on\n");
}

#[test]
fn b6_a_tool_that_writes_without_end_is_killed() {
    let error = Tool::new("yes").max_stdout(1 << 20).run().unwrap_err();
    assert!(matches!(error, ToolError::TooMuchOutput { .. }), "{error:?}");
}

#[test]
fn an_output_without_a_limit_is_read_whole() {
    let output = Tool::new("echo").arg("out").max_stdout(usize::MAX).run().unwrap();
    assert_eq!(output.stdout, b"out\n");
}

#[test]
fn b8_a_tool_that_leaves_someone_at_its_pipe_has_ended_when_it_exits() {
    let scene = Scene::new();
    let output = Tool::new("sh").args(["-c", "sleep 1000 & echo $!"]).run().unwrap();
    let pid = String::from_utf8(output.stdout).unwrap();
    crate::support::send(pid.trim().parse().unwrap(), 9);
    drop(scene);
}

#[test]
fn b22_a_missing_tool_cannot_be_started() {
    let error = Tool::new("no-such-program-anywhere").run().unwrap_err();
    assert!(matches!(error, ToolError::Program(_)), "{error:?}");
    let error = Tool::new("/no/such/program").run().unwrap_err();
    assert!(matches!(error, ToolError::Start { .. }), "{error:?}");
}

#[test]
fn a_tool_ended_by_a_signal_says_which() {
    let error = Tool::new("sh").args(["-c", "kill -SEGV $$"]).run().unwrap_err();
    assert!(matches!(error, ToolError::Signaled { signal: 11, .. }), "{error:?}");
}

#[test]
fn a_tool_runs_in_the_directory_it_was_given() {
    let scene = Scene::new();
    let output = Tool::new("pwd").cwd(scene.path()).run().unwrap();
    assert_eq!(output.stdout, format!("{}\n", scene.path()).into_bytes());
}

#[test]
fn a_tool_comes_to_its_end_when_an_orderly_end_is_asked_for() {
    let cancel = Cancel::new();
    cancel.cancel();
    let output = Tool::new("sh").args(["-c", "echo done"]).killed_by(&cancel).run().unwrap();
    assert_eq!(output.stdout, b"done\n");
}

#[test]
fn a_tool_is_killed_with_its_group_when_an_immediate_end_is_asked_for() {
    let scene = Scene::new();
    let cancel = Cancel::new();
    cancel.kill();
    let error = Tool::new("sh")
        .args(["-c", "sleep 1000 & sleep 1000"])
        .env("SCENE_TOKEN", &scene.token)
        .killed_by(&cancel)
        .run()
        .unwrap_err();
    assert!(matches!(error, ToolError::Cancelled { .. }), "{error:?}");
    crate::support::eventually("nothing is alive", || scene.alive().is_empty());
}
