//! Every one of the 8,640 tuples.

mod golden;
mod safety;
mod table;

use super::*;

impl Facts {
    /// All of them.
    fn all() -> impl Iterator<Item = Facts> {
        RunPhase::ALL.into_iter().flat_map(|run| {
            BundlePhase::ALL.into_iter().flat_map(move |bundle| Facts::found(run, bundle))
        })
    }

    /// All that can be found about a bundle of a run.
    fn found(run: RunPhase, bundle: BundlePhase) -> impl Iterator<Item = Facts> {
        CHECKOUTS.into_iter().flat_map(move |checkout| {
            BRANCHES.into_iter().flat_map(move |branch| {
                RUNNERS.into_iter().flat_map(move |runner| {
                    LEASES.into_iter().map(move |lease| Facts {
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

const CHECKOUTS: [Checkout; 4] =
    [Checkout::Absent, Checkout::Clean, Checkout::Dirty, Checkout::Foreign];
const BRANCHES: [Branch; 3] = [Branch::Absent, Branch::AsExpected, Branch::Moved];
const RUNNERS: [Liveness; 3] = [Liveness::Dead, Liveness::Alive, Liveness::Unknown];
const LEASES: [Lease; 3] = [Lease::None, Lease::Current, Lease::Stale];

/// All facts there can be.
pub(crate) fn all_facts() -> impl Iterator<Item = Facts> {
    Facts::all()
}

#[test]
fn there_are_8640_tuples_and_all_are_visited() {
    let all: std::collections::BTreeSet<Facts> = Facts::all().collect();
    assert_eq!(all.len(), 8640);
}

/// What the world is like after an action, where nobody else does anything; `None` where the action
/// is to leave it.
fn after(facts: Facts, action: Action) -> Option<Facts> {
    let mut next = facts;
    match action {
        // Queued, it is integration's business and not this function's.
        Action::Noop | Action::AwaitHuman | Action::AlertNoop | Action::QueueForIntegration => {
            return None;
        }
        Action::Prepare => {
            next.checkout = Checkout::Clean;
            next.branch = Branch::AsExpected;
        }
        Action::Launch | Action::Reclaim => {
            next.bundle = BundlePhase::Running;
            next.runner = Liveness::Alive;
            next.lease = Lease::Current;
        }
        Action::MarkInterrupted => next.bundle = BundlePhase::Interrupted,
        Action::FenceStop | Action::DrainKill => next.runner = Liveness::Dead,
        Action::RevokeLease => next.lease = Lease::None,
        Action::BlockRecovery => {
            next.runner = Liveness::Dead;
            next.run = RunPhase::BlockedRecovery;
            next.bundle = BundlePhase::Blocked;
        }
        Action::Rescue if facts.checkout == Checkout::Dirty => next.checkout = Checkout::Clean,
        Action::Rescue | Action::DeleteBranch => next.branch = Branch::Absent,
        Action::RemoveCheckout => next.checkout = Checkout::Absent,
        Action::MarkAbandoned => next.bundle = BundlePhase::Abandoned,
        Action::MarkCleaned => next.bundle = BundlePhase::Cleaned,
    }
    Some(next)
}
