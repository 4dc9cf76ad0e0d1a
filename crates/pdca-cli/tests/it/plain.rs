//! The binary that users get: no variable of the environment makes it fail.

#![cfg(not(feature = "fault-injection"))]

use pdca_process::{Tool, ToolError, ToolOutput};
use pdca_testkit::TestWorkspace;

/// Runs one bundle with stubs in place of leaves.
fn run(args: &[&str], env: &[(&str, &str)]) -> Result<ToolOutput, ToolError> {
    let workspace = TestWorkspace::new();
    workspace.config("");
    workspace.brief("7", &[("Slug", "a-slug")]);
    let around = workspace.around().to_string();
    let mut tool = Tool::new(env!("CARGO_BIN_EXE_pdca"))
        .cwd(workspace.path())
        .args(args)
        .args(["run", "7"])
        .env("HOME", &around)
        .env("XDG_CONFIG_HOME", &around)
        .env("PDCA_LEAVES_MODE", "stub");
    for (name, value) in env {
        tool = tool.env(*name, *value);
    }
    tool.run()
}

#[test]
fn variables_that_inject_faults_are_not_read() {
    for (name, value) in [("PDCA_CRASH_AT", "@1"), ("PDCA_STOP_AT", "@1"), ("PDCA_CRASH_AT", "")] {
        let output = run(&[], &[(name, value)]).expect("it comes to its own end");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.code, 0, "{name}={value}: {said}");
    }
}

#[test]
fn the_flag_of_the_demo_kills_it_at_the_effect_it_names() {
    let killed = run(&["--crash-at", "@1"], &[]);
    assert!(matches!(killed, Err(ToolError::Signaled { signal: 9, .. })), "{killed:?}");
    let refused = run(&["--crash-at", "@one"], &[]).expect("it comes to its own end");
    assert_eq!(refused.code, 2, "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn a_call_that_the_guard_refuses_stays_refused_when_no_process_reads_the_answer() {
    let workspace = TestWorkspace::new();
    for stream in [1, 2] {
        // A pipe whose only reader is closed before the guard starts.
        let line = format!(
            "mkfifo p{stream} && exec 3<>p{stream} {stream}>p{stream} 3>&- && exec \"$0\" guard builder --json"
        );
        let refused = Tool::new("sh")
            .cwd(workspace.path())
            .args(["-c", line.as_str(), env!("CARGO_BIN_EXE_pdca")])
            .env("PDCA_WORKTREE", "/w.lanes/lane-0/repo")
            .env("PDCA_ROLE", "builder")
            .stdin("this is no tool call")
            .run()
            .expect("it comes to its own end");
        assert_eq!(refused.code, 2, "stream {stream}");
    }
}
