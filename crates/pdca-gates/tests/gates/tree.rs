//! A verdict counts for one tree.

use pdca_state::GateResult;

use crate::stage::{Checkout, Stage, found, said};

#[test]
fn lesson_18_every_row_starts_from_the_change_with_what_git_ignores_still_there() {
    let mut stage = Stage::new();
    let outcome = stage.run(
        "cwd = 'worktree'\n\
         [[checks]]\nid = 'first'\ntier = 'T1'\ncmd = 'echo litter > litter; mkdir -p target; echo x > target/cache'\n\
         [[checks]]\nid = 'second'\ntier = 'T2'\ncmd = 'test ! -e litter && test -e target/cache && cat a.txt'",
    );
    // Ignored files stay, so the next build is warm.
    assert_eq!(said(&found(&outcome.report, "first")), "pass: ");
    assert_eq!(said(&found(&outcome.report, "second")), "pass: one");
}

#[test]
fn lesson_11_a_checkout_that_is_not_the_change_certifies_nothing() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout).expecting("0123456789abcdef");
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'echo ran >> ran' }]";
    let outcome = stage.run_with(rows, Some(&mut tree), |_| {}).unwrap();
    let row = found(&outcome.report, "gate");
    assert_eq!(row.result, GateResult::Unverifiable);
    assert!(row.path_line.starts_with("not run: the checkout is tree "), "{row:?}");
    assert!(row.path_line.ends_with(", not 0123456789ab"), "{row:?}");
    assert_eq!(stage.count("ran"), 0, "the row was not run");
}

#[test]
fn a_checkout_that_cannot_be_prepared_is_not_charged_to_the_patch() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout);
    tree.breaks = Some("prepare");
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'false' }]";
    let outcome = stage.run_with(rows, Some(&mut tree), |_| {}).unwrap();
    let row = found(&outcome.report, "gate");
    assert_eq!(said(&row), "unverifiable: not run: cannot prepare the checkout: no disk");
}

#[test]
fn b23_a_gate_that_changes_tracked_files_voids_its_own_verdict_only() {
    let mut stage = Stage::new();
    let outcome = stage.run(
        "cwd = 'worktree'\n\
         [[checks]]\nid = 'sly'\ntier = 'T1'\ncmd = 'echo 1 > a.txt; rm b.txt; echo fine'\n\
         [[checks]]\nid = 'red'\ntier = 'T2'\ncmd = 'echo 1 > a.txt; exit 1'\n\
         [[checks]]\nid = 'good'\ntier = 'T3'\ncmd = 'cat a.txt b.txt'",
    );
    let expected = "unverifiable: void: it changed tracked files: a.txt, b.txt";
    assert_eq!(said(&found(&outcome.report, "sly")), expected);
    let expected = "unverifiable: void: it changed tracked files: a.txt";
    assert_eq!(said(&found(&outcome.report, "red")), expected);
    assert_eq!(said(&found(&outcome.report, "good")), "pass: two");
    assert_eq!(stage.log("sly"), b"fine\n", "what it said can still be read");
}

#[test]
fn a_verdict_that_cannot_be_tied_to_the_tree_is_void() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout);
    tree.breaks = Some("changed");
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'true' }]";
    let outcome = stage.run_with(rows, Some(&mut tree), |_| {}).unwrap();
    let row = found(&outcome.report, "gate");
    assert!(row.path_line.starts_with("void: cannot tell"), "{row:?}");
    assert_eq!(row.result, GateResult::Unverifiable);
}
