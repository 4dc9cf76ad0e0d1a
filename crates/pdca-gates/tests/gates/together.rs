//! Checks that run at the same time.

use pdca_gates::GateEvent;
use pdca_state::GateResult;
use pdca_testkit::Repo;

use crate::stage::{Checkout, Stage, found, said};

/// Waits until the other check has started, so it passes only if both run at once.
fn meets(own: &str, other: &str) -> String {
    format!(
        "touch $PDCA_WORKSPACE/{own}; for i in $(seq 600); do \
         test -e $PDCA_WORKSPACE/{other} && exit 0; sleep 0.1; done; exit 1"
    )
}

fn pair(first: &str, second: &str) -> String {
    format!(
        "parallel = true\ncwd = 'worktree'\n\
         [[checks]]\nid = 'one'\ntier = 'T3'\nshares = true\ncmd = '''{first}'''\n\
         [[checks]]\nid = 'two'\ntier = 'T1'\nshares = true\ncmd = '''{second}'''"
    )
}

#[test]
fn marked_neighbours_run_at_the_same_time_and_are_reported_in_order() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout);
    let rows = pair(&meets("a", "b"), &meets("b", "a"));
    let outcome = stage.run_with(&rows, Some(&mut tree), |_| {}).unwrap();
    assert_eq!(found(&outcome.report, "one").result, GateResult::Pass);
    assert_eq!(found(&outcome.report, "two").result, GateResult::Pass);
    assert_eq!(tree.prepared, 1, "they share one checkout");
    let ended: Vec<&str> = stage
        .events
        .iter()
        .filter_map(|event| match event {
            GateEvent::RowEnded { rule_id, .. } => Some(rule_id.as_str()),
            GateEvent::RowStarted { .. }
            | GateEvent::RowSkipped { .. }
            | GateEvent::Alive { .. }
            | GateEvent::RowAgain { .. }
            | GateEvent::Denied { .. }
            | GateEvent::Fixed { .. } => None,
        })
        .collect();
    assert_eq!(ended, ["one", "two"]);
}

#[test]
fn unmarked_rows_run_one_after_the_other() {
    let mut stage = Stage::new();
    let alone = "mkdir $PDCA_WORKSPACE/busy && rmdir $PDCA_WORKSPACE/busy";
    let rows = pair(alone, alone).replace("parallel = true", "parallel = false");
    let mut tree = Checkout::of(&stage.checkout);
    let outcome = stage.run_with(&rows, Some(&mut tree), |_| {}).unwrap();
    assert_eq!(found(&outcome.report, "two").result, GateResult::Pass);
    assert_eq!(tree.prepared, 2);
}

#[test]
fn a_change_to_the_shared_checkout_voids_all_who_shared_it() {
    let mut stage = Stage::new();
    let rows = pair("echo x > a.txt", "true");
    let outcome = stage.run(&rows);
    let expected = "unverifiable: void: it or a row beside it changed tracked files: a.txt";
    assert_eq!(said(&found(&outcome.report, "one")), expected);
    assert_eq!(said(&found(&outcome.report, "two")), expected);
}

#[test]
fn no_more_run_at_once_than_the_scene_allows() {
    let mut stage = Stage::new();
    let alone = "mkdir $PDCA_WORKSPACE/busy && rmdir $PDCA_WORKSPACE/busy";
    let mut tree = Checkout::of(&stage.checkout);
    let outcome = stage
        .run_with(&pair(alone, alone), Some(&mut tree), |scene| {
            scene.at_once = 1;
        })
        .unwrap();
    assert_eq!(found(&outcome.report, "two").result, GateResult::Pass);
    assert_eq!(tree.prepared, 2);
}

#[test]
fn a_red_row_among_others_is_confirmed_alone() {
    let mut stage = Stage::new();
    let flaky = "echo ran >> $PDCA_WORKSPACE/ran; test $(wc -l < $PDCA_WORKSPACE/ran) -gt 1";
    let rows = pair(flaky, "true").replace("id = 'one'", "id = 'one'\nconfirm = true");
    let outcome = stage.run(&rows);
    assert!(found(&outcome.report, "one").flaky);
    assert_eq!(found(&outcome.report, "two").result, GateResult::Pass);
}

/// A pair that does not share.
fn strangers(first: &str, second: &str) -> String {
    pair(first, second).replace("shares = true\n", "")
}

#[test]
fn marked_neighbours_that_do_not_share_run_at_once_in_checkouts_of_their_own() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout).with_clones(vec![Repo::new()]);
    let alone = "test ! -e scratch && echo x > scratch";
    let rows = strangers(
        &format!("{alone} && {}", meets("a", "b")),
        &format!("{alone} && echo x >> a.txt && {}", meets("b", "a")),
    );
    let outcome = stage.run_with(&rows, Some(&mut tree), |_| {}).unwrap();
    assert_eq!(found(&outcome.report, "one").result, GateResult::Pass);
    // Only the check that changed its own checkout does not count.
    let expected = "unverifiable: void: it changed tracked files: a.txt";
    assert_eq!(said(&found(&outcome.report, "two")), expected);
    assert_eq!(tree.prepared, 1, "the other checkout is the second check's");
}

#[test]
fn without_a_further_checkout_those_that_do_not_share_run_one_after_the_other() {
    let mut stage = Stage::new();
    let mut tree = Checkout::of(&stage.checkout);
    let alone = "mkdir $PDCA_WORKSPACE/busy && rmdir $PDCA_WORKSPACE/busy && test ! -e scratch \
                 && echo x > scratch";
    let outcome = stage.run_with(&strangers(alone, alone), Some(&mut tree), |_| {}).unwrap();
    assert_eq!(found(&outcome.report, "one").result, GateResult::Pass);
    assert_eq!(found(&outcome.report, "two").result, GateResult::Pass);
    assert_eq!(tree.prepared, 2);
}

#[test]
fn a_further_checkout_of_another_tree_is_not_used() {
    let mut stage = Stage::new();
    let other = Repo::new();
    let mut tree = Checkout::of(&stage.checkout).with_clones(vec![other]);
    tree.clones[0].write("a.txt", "another\n");
    tree.clones[0].git(&["commit", "--quiet", "--all", "-m", "another"]);
    let outcome = stage.run_with(&strangers("true", "true"), Some(&mut tree), |_| {}).unwrap();
    assert_eq!(found(&outcome.report, "one").result, GateResult::Pass);
    let row = found(&outcome.report, "two");
    assert!(said(&row).starts_with("unverifiable: not run: the checkout is tree "), "{row:?}");
}
