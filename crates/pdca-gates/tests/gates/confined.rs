//! Checks and fixes in a sandbox.

use pdca_gates::{GatesError, GatesOutcome};
use pdca_process::{Sandbox, SandboxKind, SandboxMode, sandbox_support};
use pdca_state::GateResult;

use crate::stage::{Checkout, Stage, found, said};

/// Runs checks for which only the checkout is writable around the workspace.
fn run(stage: &mut Stage, mode: SandboxMode, rows: &str) -> Result<GatesOutcome, GatesError> {
    let sandbox = Sandbox::new(mode)
        .no_write([stage.workspace.around()])
        .own([stage.checkout.path().to_owned()]);
    let mut tree = Checkout::of(&stage.checkout);
    stage.run_with(rows, Some(&mut tree), |scene| scene.sandbox = Some(sandbox))
}

fn has_landlock() -> bool {
    matches!(sandbox_support(), SandboxKind::Landlock { .. })
}

#[test]
fn a_gate_writes_its_checkout_and_not_the_bundle_nor_what_lies_beside() {
    let mut stage = Stage::new();
    let summary = "results/issue_7/SUMMARY.md";
    stage.workspace.write(summary, "decided\n");
    stage.workspace.write("../beside/a.txt", "mine\n");
    let rows = "checks = [{ id = 'gate', tier = 'T1', cwd = 'worktree', cmd = '''
        mkdir target && echo x > target/x && echo x > $TMPDIR/x || exit 3
        echo forged > $PDCA_BUNDLE/SUMMARY.md
        echo forged > ../beside/a.txt
        cat $PDCA_BUNDLE/SUMMARY.md''' }]";
    let outcome = run(&mut stage, SandboxMode::Auto, rows).unwrap();
    assert_eq!(found(&outcome.report, "gate").result, GateResult::Pass);
    if has_landlock() {
        assert_eq!(found(&outcome.report, "gate").path_line, "decided");
        assert_eq!(stage.workspace.read(summary), "decided\n");
        assert_eq!(stage.workspace.read("../beside/a.txt"), "mine\n");
    }
}

#[test]
fn a_fix_is_confined_as_its_row_is() {
    let mut stage = Stage::new();
    let summary = "results/issue_7/SUMMARY.md";
    stage.workspace.write(summary, "decided\n");
    let rows = "checks = [{ id = 'gate', tier = 'T1', cwd = 'worktree', cmd = 'grep two a.txt', \
        fix = 'echo two > a.txt; echo forged > $PDCA_BUNDLE/SUMMARY.md; true' }]";
    let outcome = run(&mut stage, SandboxMode::Auto, rows).unwrap();
    assert!(found(&outcome.report, "gate").fixed);
    if has_landlock() {
        assert_eq!(stage.workspace.read(summary), "decided\n");
    }
}

#[test]
fn a_required_sandbox_that_is_missing_leaves_the_row_unverifiable() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'true' }]";
    let outcome = run(&mut stage, SandboxMode::Require, rows).unwrap();
    let row = found(&outcome.report, "gate");
    if has_landlock() {
        assert_eq!(row.result, GateResult::Pass);
    } else {
        assert_eq!(row.result, GateResult::Unverifiable);
        assert!(row.path_line.contains("sandbox"), "{row:?}");
    }
}

#[test]
fn what_a_confined_gate_said_does_not_count_for_an_unconfined_one() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'true' }]";
    let mut job_count = || {
        let ended = run(&mut stage, SandboxMode::Off, rows).unwrap();
        assert_eq!(found(&ended.report, "gate").result, GateResult::Pass);
        run(&mut stage, SandboxMode::Auto, rows).unwrap();
        fs_err::read_dir(stage.jobs())
            .unwrap()
            .filter(|job| job.as_ref().unwrap().path().is_dir())
            .count()
    };
    assert_eq!((job_count(), job_count()), (2, 2));
}

#[test]
fn a_gate_runs_only_under_the_lock_that_the_scene_names() {
    let mut stage = Stage::new();
    // The file of a holder is there as long as the row runs.
    let cmd = format!("ls {}/lock.held-* > /dev/null && echo ran", stage.workspace.path());
    let rows = format!("checks = [{{ id = 'gate', tier = 'T1', cmd = '{cmd}' }}]");
    let mut run = |lock: &str| {
        stage.hold = Some(stage.workspace.path().join(lock));
        said(&found(&stage.run(&rows).report, "gate"))
    };
    let refused = run("absent/lock");
    assert!(refused.starts_with("unverifiable: could not run: cannot use "), "{refused}");
    assert_eq!(run("lock"), "pass: ran");
}
