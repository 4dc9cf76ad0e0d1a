//! Every one of the 1,440 tuples.

mod golden;
mod safety;
mod table;

use super::*;

impl RecoveryFacts {
    /// All of them.
    fn all() -> impl Iterator<Item = RecoveryFacts> {
        RunPhase::ALL.into_iter().flat_map(|run| {
            BundlePhase::ALL.into_iter().flat_map(move |bundle| RecoveryFacts::found(run, bundle))
        })
    }

    /// All that can be found about a bundle of a run.
    fn found(run: RunPhase, bundle: BundlePhase) -> impl Iterator<Item = RecoveryFacts> {
        CHECKOUTS.into_iter().flat_map(move |checkout| {
            BRANCHES.into_iter().flat_map(move |branch| {
                RUNNERS.into_iter().map(move |runner| RecoveryFacts {
                    run,
                    bundle,
                    checkout,
                    branch,
                    runner,
                })
            })
        })
    }
}

const CHECKOUTS: [CheckoutFact; 3] =
    [CheckoutFact::Absent, CheckoutFact::Clean, CheckoutFact::Dirty];
const BRANCHES: [BranchFact; 2] = [BranchFact::Absent, BranchFact::AsExpected];
const RUNNERS: [Liveness; 3] = [Liveness::Dead, Liveness::Alive, Liveness::Unknown];

/// All facts there can be.
pub(crate) fn all_facts() -> impl Iterator<Item = RecoveryFacts> {
    RecoveryFacts::all()
}

#[test]
fn there_are_1440_tuples_and_all_are_visited() {
    let all: std::collections::BTreeSet<RecoveryFacts> = RecoveryFacts::all().collect();
    assert_eq!(all.len(), 1440);
}

/// The facts after an action, if no other process acts; `None` if the action changes nothing, or starts an attempt.
fn after(facts: RecoveryFacts, action: RecoveryAction) -> Option<RecoveryFacts> {
    let mut next = facts;
    match action {
        RecoveryAction::Noop
        | RecoveryAction::AwaitHuman
        | RecoveryAction::AlertNoop
        | RecoveryAction::Launch
        | RecoveryAction::Reclaim => return None,
        RecoveryAction::MarkInterrupted => next.bundle = BundlePhase::Interrupted,
        RecoveryAction::AwaitRunner => next.runner = Liveness::Dead,
        RecoveryAction::BlockRecovery => {
            next.run = RunPhase::BlockedRecovery;
            next.bundle = BundlePhase::Blocked;
        }
        RecoveryAction::MarkAbandoned => next.bundle = BundlePhase::Abandoned,
        RecoveryAction::MarkCleaned => next.bundle = BundlePhase::Cleaned,
    }
    Some(next)
}
