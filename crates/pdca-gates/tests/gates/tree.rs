//! A verdict counts for one tree.

use pdca_dag::{Case, Pattern};
use pdca_gates::LaneNames;
use pdca_state::GateResult;

use crate::stage::{Checkout, Stage, found, said};

/// A row that leaves files of all kinds, and a second one.
fn rows(first: &str, second: &str) -> String {
    let leave = "echo litter > litter; mkdir -p target/deep; echo x > target/cache; echo x > target/deep/x; \
                 git update-ref refs/heads/planted HEAD; git tag planted; git config core.fsmonitor x; \
                 mkdir -p .git/info .git/hooks; echo x > .git/info/attributes; echo x > .git/hooks/pre-commit; \
                 echo x > .git/stray; git update-index --assume-unchanged a.txt; \
                 git replace HEAD:a.txt HEAD:b.txt; echo planted | git hash-object -w --stdin > /dev/null";
    format!(
        "cwd = 'worktree'\n\
         [[checks]]\nid = 'first'\ntier = 'T1'\n{first}\ncmd = '''{leave}'''\n\
         [[checks]]\nid = 'second'\ntier = 'T2'\ncmd = '''{second}'''"
    )
}

/// Fails if anything of the first row is in the repository.
const CLEAN_REPOSITORY: &str = "test ! -e .git/stray && test ! -e .git/info/attributes && \
    test ! -e .git/hooks/pre-commit && test -z \"$(git for-each-ref refs/heads/planted refs/tags refs/replace)\" && \
    test -z \"$(git config core.fsmonitor)\" && test -z \"$(git ls-files -v | grep ^h)\" && \
    ! git cat-file -e $(echo planted | git hash-object --stdin) && cat a.txt";

#[test]
fn lesson_18_every_row_starts_from_the_change_and_from_nothing_that_a_row_before_it_left() {
    let mut stage = Stage::new();
    let gone = format!("test ! -e litter && test ! -e target && {CLEAN_REPOSITORY}");
    let outcome = stage.run(&rows("", &gone));
    assert_eq!(found(&outcome.report, "first").result, GateResult::Pass);
    assert_eq!(said(&found(&outcome.report, "second")), "pass: one");
}

#[test]
fn the_ignored_files_of_a_row_that_shares_them_are_there_for_the_next_and_its_repository_is_not() {
    let mut stage = Stage::new();
    let there = format!("test ! -e litter && test -e target/deep/x && {CLEAN_REPOSITORY}");
    let outcome = stage.run(&rows("shares = true", &there));
    assert_eq!(said(&found(&outcome.report, "second")), "pass: one");
}

#[test]
fn a_declared_cache_stays_between_rows() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout);
    let kept = "test ! -e litter && test -e target/cache && test ! -e target/deep";
    let rows = rows("", &format!("{kept} && {CLEAN_REPOSITORY}"));
    let outcome = stage.run_with(&rows, Some(&mut tree), |context| {
        context.caches = vec![Pattern::parse("target/cache", Case::Sensitive).unwrap()];
    });
    assert_eq!(said(&found(&outcome.unwrap().report, "second")), "pass: one");
}

#[test]
fn after_a_row_that_broke_a_hydrated_file_the_checkout_is_made_anew() {
    for (deed, anew) in [("true", 0), ("echo y >> target/hydrated", 1), ("rm target/hydrated", 1)] {
        let mut stage = Stage::new();
        stage.checkout.write("target/hydrated", "x\n");
        let mut tree = Checkout::of(&stage.checkout);
        let rows = format!(
            "cwd = 'worktree'\n[[checks]]\nid = 'first'\ntier = 'T1'\ncmd = '{deed}'\n\
             [[checks]]\nid = 'second'\ntier = 'T2'\ncmd = 'cat target/hydrated'"
        );
        let outcome = stage.run_with(&rows, Some(&mut tree), |_| {}).unwrap();
        assert_eq!(said(&found(&outcome.report, "second")), "pass: x", "{deed}");
        assert_eq!(tree.anew, anew, "{deed}");
    }
}

#[test]
fn what_lies_in_the_lane_s_temporary_directory_is_gone_before_every_row() {
    let mut stage = Stage::new();
    stage.workspace.write("tmp/by-the-builder", "x");
    let tmp = stage.workspace.path().join("tmp");
    stage.lane = Some(LaneNames { tmp: Some(tmp), ..LaneNames::default() });
    let rows = "cwd = 'worktree'\n\
        [[checks]]\nid = 'first'\ntier = 'T1'\ncmd = 'test -z \"$(ls $PDCA_TMP)\" && echo x > $PDCA_TMP/x'\n\
        [[checks]]\nid = 'second'\ntier = 'T2'\ncmd = 'test -z \"$(ls $PDCA_TMP)\"'";
    let report = stage.run(rows).report;
    assert_eq!(said(&found(&report, "first")), "pass: ");
    assert_eq!(said(&found(&report, "second")), "pass: ");
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
