//! Each row of the least that a recovery has to decide, by name.

use super::*;

/// A bundle at work, with everything as it should be.
const HEALTHY: RecoveryFacts = RecoveryFacts {
    run: RunPhase::Running,
    bundle: BundlePhase::Running,
    checkout: CheckoutFact::Dirty,
    branch: BranchFact::AsExpected,
    runner: Liveness::Alive,
    lease: Lease::Current,
};

/// The actions until the world is left alone, where each one works.
fn course(facts: RecoveryFacts) -> Vec<RecoveryAction> {
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
    assert_eq!(decide(HEALTHY), RecoveryAction::Noop);
}

#[test]
fn running_with_a_dead_runner_is_revoked_interrupted_and_claimed_again() {
    use RecoveryAction::{MarkInterrupted, Noop, Reclaim, Rescue, RevokeLease};
    let facts = RecoveryFacts { runner: Liveness::Dead, ..HEALTHY };
    assert_eq!(course(facts), [RevokeLease, MarkInterrupted, Rescue, Reclaim, Noop]);
    let clean = RecoveryFacts { checkout: CheckoutFact::Clean, ..facts };
    assert_eq!(course(clean), [RevokeLease, MarkInterrupted, Reclaim, Noop]);
}

#[test]
fn running_with_its_lease_lost_is_fence_stopped() {
    for lease in [Lease::None, Lease::Stale] {
        assert_eq!(decide(RecoveryFacts { lease, ..HEALTHY }), RecoveryAction::FenceStop);
    }
}

#[test]
fn running_with_its_checkout_lost_is_blocked() {
    for checkout in [CheckoutFact::Absent, CheckoutFact::Foreign] {
        assert_eq!(decide(RecoveryFacts { checkout, ..HEALTHY }), RecoveryAction::BlockRecovery);
    }
}

#[test]
fn running_with_its_branch_lost_is_blocked() {
    for branch in [BranchFact::Absent, BranchFact::Moved] {
        assert_eq!(decide(RecoveryFacts { branch, ..HEALTHY }), RecoveryAction::BlockRecovery);
    }
}

const SEALED: RecoveryFacts = RecoveryFacts {
    bundle: BundlePhase::Sealed,
    runner: Liveness::Dead,
    lease: Lease::None,
    ..HEALTHY
};

#[test]
fn what_is_sealed_is_eligible_for_integration() {
    for checkout in CHECKOUTS {
        assert_eq!(
            decide(RecoveryFacts { checkout, ..SEALED }),
            RecoveryAction::QueueForIntegration
        );
    }
}

#[test]
fn a_sealed_branch_that_is_lost_is_blocked() {
    for branch in [BranchFact::Absent, BranchFact::Moved] {
        assert_eq!(decide(RecoveryFacts { branch, ..SEALED }), RecoveryAction::BlockRecovery);
    }
}

#[test]
fn draining_with_a_live_runner_ends_it_and_goes_on() {
    for bundle in BundlePhase::ALL {
        let facts = RecoveryFacts { run: RunPhase::Draining, bundle, ..HEALTHY };
        assert_eq!(course(facts)[..2], [RecoveryAction::DrainKill, RecoveryAction::RevokeLease]);
    }
}

#[test]
fn draining_without_a_runner_removes_and_goes_on() {
    use RecoveryAction::{DeleteBranch, MarkCleaned, Noop, RemoveCheckout, Rescue};
    let facts = RecoveryFacts { run: RunPhase::Draining, bundle: BundlePhase::Landed, ..SEALED };
    assert_eq!(course(facts), [Rescue, RemoveCheckout, DeleteBranch, MarkCleaned, Noop]);
}

#[test]
fn a_draining_run_with_its_checkout_gone_and_its_branch_left_goes_on() {
    use RecoveryAction::{DeleteBranch, MarkCleaned, Noop};
    let facts = RecoveryFacts {
        run: RunPhase::Draining,
        bundle: BundlePhase::Landed,
        checkout: CheckoutFact::Absent,
        ..SEALED
    };
    assert_eq!(course(facts), [DeleteBranch, MarkCleaned, Noop]);
}

#[test]
fn draining_with_a_seal_that_did_not_land_is_blocked() {
    assert_eq!(
        decide(RecoveryFacts { run: RunPhase::Draining, ..SEALED }),
        RecoveryAction::BlockRecovery
    );
}

#[test]
fn what_is_cleaned_is_left_alone() {
    for run in RunPhase::ALL {
        let bundle = BundlePhase::Cleaned;
        let (checkout, branch) = (CheckoutFact::Absent, BranchFact::Absent);
        assert_eq!(
            decide(RecoveryFacts { run, bundle, checkout, branch, ..SEALED }),
            RecoveryAction::Noop
        );
    }
}

#[test]
fn a_cleaned_branch_that_is_there_again_is_told() {
    for run in RunPhase::ALL {
        let (bundle, checkout) = (BundlePhase::Cleaned, CheckoutFact::Absent);
        assert_eq!(
            decide(RecoveryFacts { run, bundle, checkout, ..SEALED }),
            RecoveryAction::AlertNoop
        );
    }
}

#[test]
fn what_is_unknown_is_told() {
    assert_eq!(
        decide(RecoveryFacts { runner: Liveness::Unknown, ..HEALTHY }),
        RecoveryAction::AlertNoop
    );
}

#[test]
fn a_new_bundle_is_prepared_and_then_launched() {
    let ready = RecoveryFacts { bundle: BundlePhase::Ready, ..SEALED };
    let absent =
        RecoveryFacts { checkout: CheckoutFact::Absent, branch: BranchFact::Absent, ..ready };
    assert_eq!(decide(absent), RecoveryAction::Prepare);
    assert_eq!(
        decide(RecoveryFacts { checkout: CheckoutFact::Clean, ..ready }),
        RecoveryAction::Launch
    );
    assert_eq!(
        decide(RecoveryFacts { checkout: CheckoutFact::Dirty, ..ready }),
        RecoveryAction::Rescue
    );
    let preparing =
        RecoveryFacts { run: RunPhase::Preparing, checkout: CheckoutFact::Clean, ..ready };
    assert_eq!(decide(preparing), RecoveryAction::Noop);
}

#[test]
fn a_blocked_aborted_or_failed_run_that_is_quiet_waits_for_a_person() {
    let quiet = RecoveryFacts { checkout: CheckoutFact::Clean, ..SEALED };
    for run in RunPhase::ALL {
        let waits = run.is_blocked() || matches!(run, RunPhase::Aborted | RunPhase::Failed);
        assert_eq!(
            decide(RecoveryFacts { run, ..quiet }) == RecoveryAction::AwaitHuman,
            waits,
            "{run}"
        );
    }
}
