//! Nine rules that hold for every tuple, and that every decision comes to rest.

use super::*;

/// A safety rule that a decision breaks.
fn broken(
    rule: impl Fn(RecoveryFacts, RecoveryAction) -> bool,
) -> Vec<(RecoveryFacts, RecoveryAction)> {
    RecoveryFacts::all()
        .map(|facts| (facts, decide(facts)))
        .filter(|(f, a)| !rule(*f, *a))
        .collect()
}

fn destroys(action: RecoveryAction) -> bool {
    matches!(
        action,
        RecoveryAction::Rescue | RecoveryAction::RemoveCheckout | RecoveryAction::DeleteBranch
    )
}

fn spawns(action: RecoveryAction) -> bool {
    matches!(action, RecoveryAction::Launch | RecoveryAction::Reclaim)
}

#[test]
fn nothing_destructive_unless_the_runner_is_dead() {
    assert_eq!(broken(|f, a| !destroys(a) || f.runner == Liveness::Dead), []);
}

#[test]
fn a_checkout_is_removed_only_if_clean() {
    assert_eq!(
        broken(|f, a| a != RecoveryAction::RemoveCheckout || f.checkout == CheckoutFact::Clean),
        []
    );
}

#[test]
fn a_branch_is_deleted_only_if_landed_and_unmoved() {
    assert_eq!(
        broken(|f, a| a != RecoveryAction::DeleteBranch
            || (f.bundle == BundlePhase::Landed && f.branch == BranchFact::AsExpected)),
        []
    );
}

#[test]
fn spawning_only_in_running() {
    assert_eq!(broken(|f, a| !spawns(a) || f.run == RunPhase::Running), []);
}

#[test]
fn spawning_only_with_no_runner_and_no_lease() {
    let begins = |action| spawns(action) || action == RecoveryAction::Prepare;
    assert_eq!(
        broken(|f, a| !begins(a) || (f.runner == Liveness::Dead && f.lease == Lease::None)),
        []
    );
}

#[test]
fn unknown_liveness_means_no_action() {
    assert_eq!(broken(|f, a| f.runner != Liveness::Unknown || a == RecoveryAction::AlertNoop), []);
}

#[test]
fn foreign_trees_are_untouched() {
    let touches = |action| destroys(action) || spawns(action) || action == RecoveryAction::Prepare;
    assert_eq!(broken(|f, a| f.checkout != CheckoutFact::Foreign || !touches(a)), []);
}

#[test]
fn runs_that_are_over_never_reopen() {
    let after_the_end = |action: RecoveryAction| match action {
        RecoveryAction::Noop
        | RecoveryAction::AlertNoop
        | RecoveryAction::AwaitHuman
        | RecoveryAction::DrainKill
        | RecoveryAction::RevokeLease
        | RecoveryAction::Rescue
        | RecoveryAction::RemoveCheckout
        | RecoveryAction::DeleteBranch => true,
        RecoveryAction::Prepare
        | RecoveryAction::Launch
        | RecoveryAction::Reclaim
        | RecoveryAction::MarkInterrupted
        | RecoveryAction::FenceStop
        | RecoveryAction::QueueForIntegration
        | RecoveryAction::BlockRecovery
        | RecoveryAction::MarkAbandoned
        | RecoveryAction::MarkCleaned => false,
    };
    assert_eq!(broken(|f, a| f.run.is_active() || after_the_end(a)), []);
}

#[test]
fn blocked_runs_never_spawn_queue_or_delete() {
    assert_eq!(
        broken(|f, a| !f.run.is_blocked()
            || !(spawns(a)
                || destroys(a)
                || matches!(a, RecoveryAction::QueueForIntegration | RecoveryAction::Prepare))),
        []
    );
}

#[test]
fn every_tuple_comes_to_rest_in_a_few_steps_and_visits_none_twice() {
    let mut longest = 0;
    for start in RecoveryFacts::all() {
        let mut path = vec![start];
        while let Some(next) = after(path[path.len() - 1], decide(path[path.len() - 1])) {
            assert!(!path.contains(&next), "a cycle: {path:?}");
            path.push(next);
        }
        longest = longest.max(path.len() - 1);
    }
    assert_eq!(
        longest, 8,
        "kill, revoke, interrupt, abandon, rescue, remove, rescue the branch, mark"
    );
}

#[test]
fn a_runner_is_stopped_before_anything_else_is_done_about_its_bundle() {
    assert_eq!(
        broken(|f, a| f.runner != Liveness::Alive
            || matches!(
                a,
                RecoveryAction::Noop
                    | RecoveryAction::FenceStop
                    | RecoveryAction::DrainKill
                    | RecoveryAction::BlockRecovery
            )),
        []
    );
}
