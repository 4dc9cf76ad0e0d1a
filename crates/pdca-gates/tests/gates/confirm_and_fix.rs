//! The steps between a failure and a final failure: confirmation and fix.

use pdca_gates::{Again, Fix, GateEvent, GatesError, Purpose};
use pdca_state::GateResult;

use crate::stage::{Checkout, Stage, found, said};

/// Fails the first time it runs, and passes from then on.
const FLAKY: &str = "echo ran >> ran; test $(wc -l < ran) -gt 1 || { echo lost a race; exit 1; }";

#[test]
fn red_then_green_is_flaky_and_says_so() {
    let mut stage = Stage::new();
    let row = stage.row(&format!("confirm = true\ncmd = '{FLAKY}; echo won'"));
    assert_eq!(said(&row), "pass: won");
    assert!(row.flaky);
    assert_eq!(row.note.as_deref(), Some("flaky, first: exited 1: last output: lost a race"));
    let log = String::from_utf8(stage.log("gate")).unwrap();
    assert_eq!(log, "== first run: fail ==\nlost a race\n== run again: pass ==\nwon\n");
    let again = GateEvent::RowAgain { rule_id: "gate".to_owned(), why: Again::Confirm };
    assert!(stage.events.contains(&again));
}

#[test]
fn red_twice_is_red_and_runs_no_third_time() {
    let mut stage = Stage::new();
    let row = stage.row("confirm = true\ncmd = 'echo ran >> ran; echo run $(wc -l < ran); exit 1'");
    assert_eq!(said(&row), "fail: exited 1: last output: run 2");
    assert!(!row.flaky);
    assert_eq!(stage.count("ran"), 2);
}

#[test]
fn no_answer_the_second_time_leaves_the_first_red() {
    let mut stage = Stage::new();
    let cmd = "echo ran >> ran; test $(wc -l < ran) = 1 && { echo red; exit 1; }; exit 77";
    let row = stage.row(&format!("confirm = true\ncmd = '{cmd}'"));
    assert_eq!(said(&row), "fail: exited 1: last output: red");
}

#[test]
fn without_confirm_red_is_red_at_once() {
    let mut stage = Stage::new();
    let row = stage.row(&format!("cmd = '{FLAKY}'"));
    assert_eq!((row.result, stage.count("ran")), (GateResult::Fail, 1));
}

/// Two checks before and after one that requires `a.txt` to contain `two` and can fix it.
const FIXABLE: &str = "cwd = 'worktree'\n\
    [[checks]]\nid = 'before'\ntier = 'T1'\ncmd = 'echo ran >> $PDCA_WORKSPACE/before; cat a.txt'\n\
    [[checks]]\nid = 'fixable'\ntier = 'T2'\nfix = 'echo two > a.txt; echo extra > new.txt; echo fixing'\n\
    cmd = 'echo ran >> $PDCA_WORKSPACE/fixable; touch litter; grep two a.txt || { echo not two; exit 1; }'\n\
    [[checks]]\nid = 'after'\ntier = 'T3'\ncmd = 'echo ran >> $PDCA_WORKSPACE/after; cat a.txt'";

#[test]
fn a_fix_that_turns_its_row_green_becomes_part_of_the_change_for_all_rows() {
    let mut stage = Stage::new();
    let before = stage.checkout.head();
    let outcome = stage.run(FIXABLE);
    let fixed = found(&outcome.report, "fixable");
    assert_eq!(said(&fixed), "pass: two");
    assert!(fixed.fixed);
    assert_eq!(fixed.note.as_deref(), Some("fix changed a.txt"));
    assert_eq!(said(&found(&outcome.report, "before")), "pass: two");
    assert_eq!(said(&found(&outcome.report, "after")), "pass: two");
    assert_eq!(
        outcome.fixes,
        [Fix { rule_id: "fixable".to_owned(), changed: vec!["a.txt".into()] }]
    );
    // The check before had run on another tree; the one after had not run yet.
    let counts = ["before", "fixable", "after"].map(|name| stage.count(name));
    assert_eq!(counts, [2, 2, 1]);
    // The change of the fix is in the patch, the file that the check left is not.
    let files = stage.checkout.git(&["diff", "--name-only", &before, "HEAD"]);
    assert_eq!(files, "a.txt\nnew.txt\n");
    let digest = format!("digest of {}", stage.checkout.head());
    assert_eq!(outcome.report.patch_digest, Some(digest));
    let log = String::from_utf8(stage.log("fixable")).unwrap();
    assert!(log.starts_with("== first run: fail ==\nnot two\n== fix: "), "{log}");
    assert!(log.contains("fixing\n== after the fix: pass ==\ntwo\n"), "{log}");
}

#[test]
fn a_fix_that_was_accepted_before_a_crash_is_reported_all_the_same() {
    let mut stage = Stage::new();
    let first = stage.run(FIXABLE);
    let log = stage.log("fixable");
    // The next run starts from the fixed change, as after a crash before the report was written.
    fs_err::remove_dir_all(stage.bundle.dir().join("gate-logs")).unwrap();
    let second = stage.run(FIXABLE);
    assert_eq!(second.report, first.report);
    assert_eq!(second.fixes, first.fixes);
    assert_eq!(stage.log("fixable"), log);
    let counts = ["before", "fixable", "after"].map(|name| stage.count(name));
    assert_eq!(counts, [2, 2, 1], "nothing ran again");
}

#[test]
fn a_fix_that_was_recorded_but_not_accepted_is_made_again() {
    let mut stage = Stage::new();
    let before = stage.checkout.head();
    let mut tree = Checkout::of(&stage.checkout);
    tree.breaks = Some("accept");
    stage.run_with(FIXABLE, Some(&mut tree), |_| {}).unwrap_err();
    stage.checkout.git(&["reset", "--quiet", "--hard", &before]);
    let checked = stage.run(FIXABLE);
    assert!(found(&checked.report, "fixable").fixed);
    assert_eq!(checked.fixes.len(), 1);
}

#[test]
fn a_fix_that_does_not_help_is_taken_back() {
    let mut stage = Stage::new();
    let before = stage.checkout.head();
    let row = stage.row("cwd = 'worktree'\ncmd = 'grep three a.txt || { echo no; exit 1; }'\nfix = 'echo two > a.txt'");
    assert_eq!(said(&row), "fail: exited 1: last output: no");
    assert_eq!(row.note.as_deref(), Some("not fixed: still not green: exited 1: last output: no"));
    assert!(!row.fixed);
    assert_eq!(stage.checkout.head(), before);
    assert_eq!(stage.checkout.read("a.txt"), b"one\n");
}

#[test]
fn a_fix_that_fails_or_changes_nothing_leaves_the_row_red() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'exit 1'\nfix = 'echo two > a.txt; exit 3'");
    assert_eq!(row.note.as_deref(), Some("not fixed: the fix command ended with exit status 3"));
    let row = stage.row("cmd = 'exit 2'\nfix = 'true'");
    assert_eq!(row.note.as_deref(), Some("not fixed: the fix command changed nothing"));
    assert_eq!(row.result, GateResult::Fail);
}

#[test]
fn a_fix_that_undoes_the_whole_change_is_taken_back() {
    let mut stage = Stage::new();
    let base = stage.checkout.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    stage.checkout.write("a.txt", "changed\n");
    stage.checkout.commit("the only change");
    let before = stage.checkout.head();
    let mut tree = Checkout::of(&stage.checkout);
    tree.base = Some(base);
    let rows = "checks = [{ id = 'gate', tier = 'T1', cwd = 'worktree', \
        cmd = 'grep one a.txt', fix = 'echo one > a.txt' }]";
    let outcome = stage.run_with(rows, Some(&mut tree), |_| {}).unwrap();
    let row = found(&outcome.report, "gate");
    assert_eq!(row.result, GateResult::Fail);
    assert_eq!(row.note.as_deref(), Some("not fixed: the fix undoes the whole change"));
    assert_eq!(outcome.fixes, []);
    assert_eq!(stage.checkout.head(), before);
    assert_eq!(stage.checkout.read("a.txt"), b"changed\n");
}

#[test]
fn where_the_scene_does_not_allow_it_nothing_is_fixed() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cwd = 'worktree', cmd = 'grep two a.txt', \
        fix = 'echo ran >> $PDCA_WORKSPACE/fixed; echo two > a.txt' }]";
    for never in ["propose", "accept", "withdraw"] {
        let mut tree = Checkout::of(&stage.checkout);
        tree.breaks = Some(never);
        let outcome = stage.run_with(rows, Some(&mut tree), |scene| scene.may_fix = false).unwrap();
        let row = found(&outcome.report, "gate");
        assert_eq!((row.result, row.note), (GateResult::Fail, None));
        assert_eq!(outcome.fixes, []);
    }
    assert_eq!(stage.count("fixed"), 0);
    // The same check is fixed where fixes are allowed.
    assert!(found(&stage.run(rows).report, "gate").fixed);
}

#[test]
fn a_fix_never_touches_the_workspace_or_a_tree_that_is_not_a_bundles() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'exit 1', fix = 'echo ran > fixed' }]";
    let mut tree = Checkout::of(&stage.checkout);
    let set = |scene: &mut pdca_gates::GateContext<'_>| {
        scene.purpose = Purpose::WorkingTree;
        scene.bundle = None;
    };
    let outcome = stage.run_with(rows, Some(&mut tree), set).unwrap();
    assert_eq!(found(&outcome.report, "gate").result, GateResult::Fail);
    stage.run(rows);
    assert!(!stage.workspace.has("fixed"), "the fix ran outside the checkout");
}

#[test]
fn a_fix_that_cannot_be_kept_is_an_error_and_no_report() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout);
    tree.breaks = Some("accept");
    let error = stage.run_with(FIXABLE, Some(&mut tree), |_| {}).unwrap_err();
    assert!(matches!(error, GatesError::Fix { action: "keep", .. }), "{error}");
}
