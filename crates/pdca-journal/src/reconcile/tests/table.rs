//! Each row of the least that a recovery has to decide, by name.

use super::*;

/// A bundle at work, with everything as it should be.
const HEALTHY: Facts = Facts {
    run: RunPhase::Running,
    bundle: BundlePhase::Running,
    checkout: Checkout::Dirty,
    branch: Branch::AsExpected,
    runner: Liveness::Alive,
    lease: Lease::Current,
};

/// The actions until the world is left alone, where each one works.
fn course(facts: Facts) -> Vec<Action> {
    let mut actions = vec![decide(facts)];
    let mut facts = facts;
    while let Some(next) = after(facts, actions[actions.len() - 1]) {
        assert!(actions.len() < 20, "{actions:?}");
        facts = next;
        actions.push(decide(facts));
    }
    actions
}

#[test]
fn running_and_healthy_is_left_alone() {
    assert_eq!(decide(HEALTHY), Action::Noop);
}

#[test]
fn running_with_a_dead_runner_is_revoked_interrupted_and_claimed_again() {
    use Action::{MarkInterrupted, Noop, Reclaim, Rescue, RevokeLease};
    let facts = Facts { runner: Liveness::Dead, ..HEALTHY };
    assert_eq!(course(facts), [RevokeLease, MarkInterrupted, Rescue, Reclaim, Noop]);
    let clean = Facts { checkout: Checkout::Clean, ..facts };
    assert_eq!(course(clean), [RevokeLease, MarkInterrupted, Reclaim, Noop]);
}

#[test]
fn running_with_its_lease_lost_is_fence_stopped() {
    for lease in [Lease::None, Lease::Stale] {
        assert_eq!(decide(Facts { lease, ..HEALTHY }), Action::FenceStop);
    }
}

#[test]
fn running_with_its_checkout_lost_is_blocked() {
    for checkout in [Checkout::Absent, Checkout::Foreign] {
        assert_eq!(decide(Facts { checkout, ..HEALTHY }), Action::BlockRecovery);
    }
}

#[test]
fn running_with_its_branch_lost_is_blocked() {
    for branch in [Branch::Absent, Branch::Moved] {
        assert_eq!(decide(Facts { branch, ..HEALTHY }), Action::BlockRecovery);
    }
}

const SEALED: Facts =
    Facts { bundle: BundlePhase::Sealed, runner: Liveness::Dead, lease: Lease::None, ..HEALTHY };

#[test]
fn what_is_sealed_is_eligible_for_integration() {
    for checkout in CHECKOUTS {
        assert_eq!(decide(Facts { checkout, ..SEALED }), Action::QueueForIntegration);
    }
}

#[test]
fn a_sealed_branch_that_is_lost_is_blocked() {
    for branch in [Branch::Absent, Branch::Moved] {
        assert_eq!(decide(Facts { branch, ..SEALED }), Action::BlockRecovery);
    }
}

#[test]
fn draining_with_a_live_runner_ends_it_and_goes_on() {
    for bundle in BundlePhase::ALL {
        let facts = Facts { run: RunPhase::Draining, bundle, ..HEALTHY };
        assert_eq!(course(facts)[..2], [Action::DrainKill, Action::RevokeLease]);
    }
}

#[test]
fn draining_without_a_runner_removes_and_goes_on() {
    use Action::{DeleteBranch, MarkCleaned, Noop, RemoveCheckout, Rescue};
    let facts = Facts { run: RunPhase::Draining, bundle: BundlePhase::Landed, ..SEALED };
    assert_eq!(course(facts), [Rescue, RemoveCheckout, DeleteBranch, MarkCleaned, Noop]);
}

#[test]
fn a_draining_run_with_its_checkout_gone_and_its_branch_left_goes_on() {
    use Action::{DeleteBranch, MarkCleaned, Noop};
    let facts = Facts {
        run: RunPhase::Draining,
        bundle: BundlePhase::Landed,
        checkout: Checkout::Absent,
        ..SEALED
    };
    assert_eq!(course(facts), [DeleteBranch, MarkCleaned, Noop]);
}

#[test]
fn draining_with_a_seal_that_did_not_land_is_blocked() {
    assert_eq!(decide(Facts { run: RunPhase::Draining, ..SEALED }), Action::BlockRecovery);
}

#[test]
fn what_is_cleaned_is_left_alone() {
    for run in RunPhase::ALL {
        let bundle = BundlePhase::Cleaned;
        let (checkout, branch) = (Checkout::Absent, Branch::Absent);
        assert_eq!(decide(Facts { run, bundle, checkout, branch, ..SEALED }), Action::Noop);
    }
}

#[test]
fn a_cleaned_branch_that_is_there_again_is_told() {
    for run in RunPhase::ALL {
        let (bundle, checkout) = (BundlePhase::Cleaned, Checkout::Absent);
        assert_eq!(decide(Facts { run, bundle, checkout, ..SEALED }), Action::AlertNoop);
    }
}

#[test]
fn what_is_unknown_is_told() {
    assert_eq!(decide(Facts { runner: Liveness::Unknown, ..HEALTHY }), Action::AlertNoop);
}

#[test]
fn a_new_bundle_is_prepared_and_then_launched() {
    let ready = Facts { bundle: BundlePhase::Ready, ..SEALED };
    let absent = Facts { checkout: Checkout::Absent, branch: Branch::Absent, ..ready };
    assert_eq!(decide(absent), Action::Prepare);
    assert_eq!(decide(Facts { checkout: Checkout::Clean, ..ready }), Action::Launch);
    assert_eq!(decide(Facts { checkout: Checkout::Dirty, ..ready }), Action::Rescue);
    let preparing = Facts { run: RunPhase::Preparing, checkout: Checkout::Clean, ..ready };
    assert_eq!(decide(preparing), Action::Noop);
}

#[test]
fn a_blocked_aborted_or_failed_run_that_is_quiet_waits_for_a_person() {
    let quiet = Facts { checkout: Checkout::Clean, ..SEALED };
    for run in RunPhase::ALL {
        let waits = run.is_blocked() || matches!(run, RunPhase::Aborted | RunPhase::Failed);
        assert_eq!(decide(Facts { run, ..quiet }) == Action::AwaitHuman, waits, "{run}");
    }
}
