//! Every one of the 8,640 tuples.

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
                RUNNERS.into_iter().flat_map(move |runner| {
                    LEASES.into_iter().map(move |lease| RecoveryFacts {
                        run,
                        bundle,
                        checkout,
                        branch,
                        runner,
                        lease,
                    })
                })
            })
        })
    }
}

const CHECKOUTS: [CheckoutFact; 4] =
    [CheckoutFact::Absent, CheckoutFact::Clean, CheckoutFact::Dirty, CheckoutFact::Foreign];
const BRANCHES: [BranchFact; 3] = [BranchFact::Absent, BranchFact::AsExpected, BranchFact::Moved];
const RUNNERS: [Liveness; 3] = [Liveness::Dead, Liveness::Alive, Liveness::Unknown];
const LEASES: [Lease; 3] = [Lease::None, Lease::Current, Lease::Stale];

/// All facts there can be.
pub(crate) fn all_facts() -> impl Iterator<Item = RecoveryFacts> {
    RecoveryFacts::all()
}

#[test]
fn there_are_8640_tuples_and_all_are_visited() {
    let all: std::collections::BTreeSet<RecoveryFacts> = RecoveryFacts::all().collect();
    assert_eq!(all.len(), 8640);
}

/// The facts after an action, if no other process acts; `None` if the action changes nothing.
fn after(facts: RecoveryFacts, action: RecoveryAction) -> Option<RecoveryFacts> {
    let mut next = facts;
    match action {
        // Queued, it is integration's business and not this function's.
        RecoveryAction::Noop
        | RecoveryAction::AwaitHuman
        | RecoveryAction::AlertNoop
        | RecoveryAction::QueueForIntegration => {
            return None;
        }
        RecoveryAction::Prepare => {
            next.checkout = CheckoutFact::Clean;
            next.branch = BranchFact::AsExpected;
        }
        RecoveryAction::Launch | RecoveryAction::Reclaim => {
            next.bundle = BundlePhase::Running;
            next.runner = Liveness::Alive;
            next.lease = Lease::Current;
        }
        RecoveryAction::MarkInterrupted => next.bundle = BundlePhase::Interrupted,
        RecoveryAction::FenceStop | RecoveryAction::DrainKill => next.runner = Liveness::Dead,
        RecoveryAction::RevokeLease => next.lease = Lease::None,
        RecoveryAction::BlockRecovery => {
            next.runner = Liveness::Dead;
            next.run = RunPhase::BlockedRecovery;
            next.bundle = BundlePhase::Blocked;
        }
        RecoveryAction::Rescue if facts.checkout == CheckoutFact::Dirty => {
            next.checkout = CheckoutFact::Clean;
        }
        RecoveryAction::Rescue | RecoveryAction::DeleteBranch => next.branch = BranchFact::Absent,
        RecoveryAction::RemoveCheckout => next.checkout = CheckoutFact::Absent,
        RecoveryAction::MarkAbandoned => next.bundle = BundlePhase::Abandoned,
        RecoveryAction::MarkCleaned => next.bundle = BundlePhase::Cleaned,
    }
    Some(next)
}
