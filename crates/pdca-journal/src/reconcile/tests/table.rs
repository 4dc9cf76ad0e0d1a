//! Each row of the least that a recovery has to decide, by name.

use super::*;

/// A bundle whose driver died with everything else as it should be.
const LEFT: RecoveryFacts = RecoveryFacts {
    run: RunPhase::Running,
    bundle: BundlePhase::Running,
    checkout: CheckoutFact::Dirty,
    branch: BranchFact::AsExpected,
    runner: Liveness::Dead,
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
fn running_with_a_dead_runner_is_interrupted_and_claimed_again_where_its_work_lies() {
    use RecoveryAction::{MarkInterrupted, Reclaim};
    for checkout in [CheckoutFact::Clean, CheckoutFact::Dirty] {
        let facts = RecoveryFacts { checkout, ..LEFT };
        assert_eq!(course(facts), [MarkInterrupted, Reclaim]);
    }
}

#[test]
fn running_with_a_live_runner_is_waited_for_first() {
    use RecoveryAction::{AwaitRunner, MarkInterrupted, Reclaim};
    let facts = RecoveryFacts { runner: Liveness::Alive, ..LEFT };
    assert_eq!(course(facts), [AwaitRunner, MarkInterrupted, Reclaim]);
}

#[test]
fn running_with_its_checkout_lost_is_blocked() {
    let facts = RecoveryFacts { checkout: CheckoutFact::Absent, ..LEFT };
    assert_eq!(course(facts), [RecoveryAction::BlockRecovery, RecoveryAction::AwaitHuman]);
}

#[test]
fn running_with_its_commits_lost_is_blocked() {
    let facts = RecoveryFacts { branch: BranchFact::Absent, ..LEFT };
    assert_eq!(decide(facts), RecoveryAction::BlockRecovery);
}

const SEALED: RecoveryFacts = RecoveryFacts { bundle: BundlePhase::Sealed, ..LEFT };

#[test]
fn what_is_sealed_is_left_to_the_integration() {
    for checkout in CHECKOUTS {
        assert_eq!(decide(RecoveryFacts { checkout, ..SEALED }), RecoveryAction::Noop);
    }
}

#[test]
fn a_sealed_bundle_whose_commits_are_lost_is_blocked() {
    let facts = RecoveryFacts { branch: BranchFact::Absent, ..SEALED };
    assert_eq!(decide(facts), RecoveryAction::BlockRecovery);
}

#[test]
fn draining_with_a_live_runner_waits_for_its_end_and_goes_on() {
    use RecoveryAction::{AwaitRunner, MarkAbandoned, MarkCleaned, MarkInterrupted, Noop};
    let facts = RecoveryFacts { run: RunPhase::Draining, runner: Liveness::Alive, ..LEFT };
    assert_eq!(course(facts), [AwaitRunner, MarkInterrupted, MarkAbandoned, MarkCleaned, Noop]);
}

#[test]
fn draining_gives_up_what_did_not_land_and_is_done_with_the_rest() {
    use RecoveryAction::{MarkAbandoned, MarkCleaned, Noop};
    let draining = |bundle| RecoveryFacts { run: RunPhase::Draining, bundle, ..LEFT };
    for bundle in [BundlePhase::Ready, BundlePhase::Interrupted, BundlePhase::Blocked] {
        assert_eq!(course(draining(bundle)), [MarkAbandoned, MarkCleaned, Noop]);
    }
    for bundle in [BundlePhase::Landed, BundlePhase::Abandoned] {
        assert_eq!(course(draining(bundle)), [MarkCleaned, Noop]);
    }
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
        let facts = RecoveryFacts { run, bundle: BundlePhase::Cleaned, ..LEFT };
        assert_eq!(decide(facts), RecoveryAction::Noop);
    }
}

#[test]
fn what_is_unknown_is_told() {
    assert_eq!(
        decide(RecoveryFacts { runner: Liveness::Unknown, ..LEFT }),
        RecoveryAction::AlertNoop
    );
}

#[test]
fn a_new_bundle_is_launched_once_the_run_runs() {
    for checkout in CHECKOUTS {
        let ready = RecoveryFacts { bundle: BundlePhase::Ready, checkout, ..LEFT };
        assert_eq!(decide(ready), RecoveryAction::Launch);
        let preparing = RecoveryFacts { run: RunPhase::Preparing, ..ready };
        assert_eq!(decide(preparing), RecoveryAction::Noop);
    }
}

#[test]
fn a_blocked_run_that_is_quiet_waits_for_a_person() {
    for run in RunPhase::ALL {
        let waits = decide(RecoveryFacts { run, bundle: BundlePhase::Ready, ..LEFT })
            == RecoveryAction::AwaitHuman;
        assert_eq!(waits, run.is_blocked(), "{run}");
    }
}
