//! Checks that misbehave. Each gets a clear result, and none breaks the run.

use pdca_process::OutputCap;
use pdca_state::GateResult;

use crate::stage::{Checkout, Stage, found, is_in_use, said};

#[test]
fn a_missing_program_is_the_environments_fault_and_is_named() {
    let mut stage = Stage::new();
    let row = stage.row("argv = ['./no-such-gate', '--all']");
    assert_eq!(said(&row), "unverifiable: could not run: `./no-such-gate` not found");
    assert!(row.gating);
    let row = stage.row("argv = ['no-such-tool']");
    assert_eq!(said(&row), "unverifiable: could not run: `no-such-tool` not found");
}

#[test]
fn lesson_12_a_missing_tool_behind_the_shell_is_the_environments_fault_too() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'no-such-tool --all 2>/dev/null'");
    assert_eq!(said(&row), "unverifiable: could not run: `no-such-tool` not found");
    // Deeper down the exit status is the verdict.
    stage.script("gate.sh", "no-such-tool");
    assert_eq!(stage.row("cmd = './gate.sh'").result, GateResult::Fail);
}

#[test]
fn a_program_that_is_not_executable_is_the_environments_fault() {
    let mut stage = Stage::new();
    stage.script("gate.sh", "true");
    stage.set_mode("gate.sh", 0o644);
    let expected = "unverifiable: could not run: `./gate.sh` is not executable";
    assert_eq!(said(&stage.row("argv = ['./gate.sh']")), expected);
    assert_eq!(said(&stage.row("cmd = './gate.sh'")), expected);
}

#[test]
fn a_script_without_its_interpreter_is_the_environments_fault() {
    let mut stage = Stage::new();
    stage.workspace.write("gate.sh", "#!/no/such/interpreter\n");
    stage.set_mode("gate.sh", 0o755);
    let expected =
        "unverifiable: could not run: `./gate.sh` needs `/no/such/interpreter`, not found";
    assert_eq!(said(&stage.row("argv = ['./gate.sh']")), expected);
    assert_eq!(said(&stage.row("cmd = './gate.sh'")), expected);
}

#[test]
fn lesson_11_a_killed_gate_is_not_charged_to_the_patch() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'kill -9 $$'");
    assert_eq!(said(&row), "unverifiable: killed from outside by SIGKILL");
    let row = stage.row("cmd = 'kill -TERM $$'");
    assert_eq!(said(&row), "unverifiable: killed from outside by SIGTERM");
    // The shell reports it as an exit status if a process below it was killed.
    let row = stage.row(r#"cmd = "sh -c 'kill -9 $$'; exit $?""#);
    assert_eq!(row.result, GateResult::Unverifiable, "{row:?}");
}

#[test]
fn a_gate_that_crashes_fails() {
    let row = Stage::new().row("cmd = 'echo at work; kill -SEGV $$'");
    assert_eq!(said(&row), "fail: crashed with SIGSEGV: at work");
}

#[test]
fn an_endless_gate_fails_with_timeout_said_and_leaves_nothing_behind() {
    let mut stage = Stage::new();
    let row = stage.row(
        "cwd = 'worktree'\ntimeout_secs = 1\n\
         cmd = 'trap \"\" TERM; echo waiting; while :; do sleep 0.1; done'",
    );
    assert_eq!(said(&row), "fail: timeout after 1s: waiting");
    assert_eq!(row.note.as_deref(), Some("timeout"));
    assert!(!is_in_use(stage.checkout.path()));
}

#[test]
fn three_hundred_megabytes_are_bounded_and_change_no_verdict() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', \
        cmd = 'yes endless | head -c 300000000; echo the end' }]";
    let mut tree = Checkout::of(&stage.checkout);
    let outcome = stage.run_with(rows, Some(&mut tree), |scene| {
        scene.output = OutputCap::new(5000, 5000);
    });
    let row = found(&outcome.unwrap().report, "gate");
    assert_eq!(said(&row), "pass: the end");
    assert!(row.note.unwrap().contains("not kept"));
    let log = stage.log("gate");
    assert!(log.starts_with(b"endless\n") && log.ends_with(b"the end\n"));
    assert!(log.len() < 11_000, "{} bytes", log.len());
}

#[test]
fn a_declaration_in_the_part_of_the_output_that_is_not_kept_counts() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'yes | head -c 100000; \
        echo PDCA-UNVERIFIABLE: no docker; yes | head -c 100000' }]";
    let mut tree = Checkout::of(&stage.checkout);
    let outcome = stage.run_with(rows, Some(&mut tree), |scene| {
        scene.output = OutputCap::new(100, 100);
    });
    let row = found(&outcome.unwrap().report, "gate");
    assert_eq!(said(&row), "unverifiable: no docker");
}

#[test]
fn lesson_04_a_byte_that_is_not_utf_8_before_much_output_costs_nothing() {
    let mut stage = Stage::new();
    let row = stage.row(r"cmd = 'printf \\377; yes | head -c 200000; echo done'");
    assert_eq!(said(&row), "pass: done");
    let log = stage.log("gate");
    assert_eq!((log[0], log.len()), (0xff, 200_006));
}

#[test]
fn binary_output_is_kept_as_it_is_and_shown_harmlessly() {
    let mut stage = Stage::new();
    let row = stage.row(r"cmd = 'printf \\0\\1\\33[2Jred\\376\\n'");
    assert_eq!(said(&row), "pass: red\u{fffd}");
    assert_eq!(stage.log("gate"), b"\0\x01\x1b[2Jred\xfe\n");
}

#[test]
fn a_marker_in_the_middle_of_a_line_is_relayed_text() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'echo see PDCA-UNVERIFIABLE: not mine; echo ok'");
    assert_eq!(said(&row), "pass: ok");
    let row = stage.row("cmd = 'echo PDCA-UNVERIFIABLE: mine; echo ok'");
    assert_eq!(said(&row), "unverifiable: mine");
    let row = stage.row("cmd = 'echo PDCA-UNVERIFIABLE: mine; exit 1'");
    assert_eq!(row.result, GateResult::Fail);
}

#[test]
fn a_gate_that_leaves_a_daemon_behind_ends_with_it() {
    let mut stage = Stage::new();
    let row = stage.row("cwd = 'worktree'\ncmd = 'setsid sleep 600 & echo started'");
    assert_eq!(said(&row), "pass: started");
    assert!(!is_in_use(stage.checkout.path()));
}

#[test]
fn a_gate_that_closes_its_output_is_judged_by_its_status() {
    let mut stage = Stage::new();
    assert_eq!(said(&stage.row("cmd = 'exec >&- 2>&-; exit 0'")), "pass: ");
    let row = stage.row("cmd = 'exec >&- 2>&-; exit 3'");
    assert_eq!(said(&row), "fail: exited 3 without output");
}

#[test]
fn a_gate_that_asks_gets_end_of_input() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'if read answer; then echo got; else echo nobody; exit 1; fi'");
    assert_eq!(said(&row), "fail: exited 1: last output: nobody");
}

#[test]
fn lesson_14_a_gate_sees_the_documented_variables_and_no_other() {
    let mut stage = Stage::new();
    stage.row("cmd = 'env | grep ^PDCA_ | grep -v ^PDCA_SUPERVISED= | sort'");
    let log = String::from_utf8(stage.log("gate")).unwrap();
    let names: Vec<&str> = log.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(
        names,
        ["PDCA_BASE", "PDCA_BUNDLE", "PDCA_ISSUE", "PDCA_WORKSPACE", "PDCA_WORKTREE"]
    );
    assert!(log.contains("PDCA_ISSUE=7\n") && log.contains("PDCA_BASE=0123abcd\n"));
}

#[test]
fn evidence_is_one_line_of_at_most_120_characters() {
    let mut stage = Stage::new();
    let row = stage
        .row("cmd = 'echo PDCA-EVIDENCE: early; printf \"PDCA-EVIDENCE: %0130d\\n\" 0; echo bye'");
    assert_eq!(row.result, GateResult::Pass);
    assert_eq!(row.path_line.chars().count(), 120);
    assert!(row.path_line.starts_with("000"));
}
