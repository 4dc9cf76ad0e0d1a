//! The recovery decision: compares the record of a run with the facts on disk.
//!
//! A total pure function over all [`RecoveryFacts`], of which there are 10 × 8 × 4 × 3 × 3 × 3 = 8,640.
//! No `match` has a catch-all arm, so a new state does not compile until it is decided. The first rule
//! that applies decides:
//!
//! 1. It is unknown if a runner lives: alert and touch nothing. Acting could race with a live process.
//! 2. A runner lives that must not: stop it, before anything that it could still write to is changed.
//! 3. A lease has no runner: revoke it, or the lane could not be claimed again.
//! 4. The facts contradict the record: block, or alert if the run is over. A person decides.
//! 5. Otherwise, the next step forward.

mod phase;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::all_facts;

use serde::{Deserialize, Serialize};

use crate::process::Liveness;

pub use phase::{BundlePhase, RunPhase};

/// The input of [`decide`]: what is recorded about a bundle and its run, and what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecoveryFacts {
    /// Recorded: the phase of the run.
    pub run: RunPhase,
    /// Recorded: the phase of the bundle.
    pub bundle: BundlePhase,
    /// Found: the checkout of the bundle.
    pub checkout: CheckoutFact,
    /// Found: the branch of the bundle.
    pub branch: BranchFact,
    /// Found: the processes in the lane.
    pub runner: Liveness,
    /// Found: the lease of the lane.
    pub lease: Lease,
}

/// The state of a bundle's checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckoutFact {
    /// There is no checkout of this bundle.
    Absent,
    /// Everything in the checkout is committed.
    Clean,
    /// The checkout has uncommitted work.
    Dirty,
    /// The directory was not made by this program.
    Foreign,
}

/// The state of a bundle's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BranchFact {
    /// There is no branch. A deleted branch whose seal ref exists counts as expected.
    Absent,
    /// At the recorded commit or, while an attempt is at work, ahead of it.
    AsExpected,
    /// At another commit.
    Moved,
}

/// The right to run in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lease {
    None,
    /// Given by this driver for the bundle's last claim.
    Current,
    /// Given by another driver, or for an earlier claim.
    Stale,
}

/// The decision of [`decide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryAction {
    /// Nothing to do, or not the bundle's turn.
    Noop,
    /// Make the checkout.
    Prepare,
    /// Claim the bundle and start it.
    Launch,
    /// Claim the bundle again with the next generation, and start it.
    Reclaim,
    /// Record that the attempt was interrupted.
    MarkInterrupted,
    /// Stop a runner that has no right to run. The fence keeps its refs from landing.
    FenceStop,
    RevokeLease,
    QueueForIntegration,
    /// Stop the runner, then wait for a person, with the facts as evidence.
    BlockRecovery,
    /// Stop a runner that outlived its run.
    DrainKill,
    /// Save uncommitted work to a ref of its own; if the checkout is gone, save the branch.
    Rescue,
    /// Remove a clean checkout.
    RemoveCheckout,
    /// Delete the branch of a landed bundle, if it is still at the sealed commit.
    DeleteBranch,
    /// Record that the run gives up the bundle.
    MarkAbandoned,
    /// Record that no checkout or branch of the bundle is left.
    MarkCleaned,
    /// Do nothing; a person has to decide.
    AwaitHuman,
    /// Do nothing except alert a person.
    AlertNoop,
}

/// Decides what to do about one bundle of a run.
pub fn decide(facts: RecoveryFacts) -> RecoveryAction {
    match facts.runner {
        Liveness::Unknown => RecoveryAction::AlertNoop,
        Liveness::Alive => with_runner(facts),
        Liveness::Dead => match facts.lease {
            Lease::Current | Lease::Stale => RecoveryAction::RevokeLease,
            Lease::None => quiet(facts),
        },
    }
}

/// A runner is alive. Only the attempt of the last claim may run, and only in a run that is at work.
fn with_runner(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    use RunPhase as R;
    match facts.run {
        R::Draining | R::Completed | R::Aborted | R::Failed => return RecoveryAction::DrainKill,
        R::Preparing
        | R::Running
        | R::Integrating
        | R::BlockedConflict
        | R::BlockedValidation
        | R::BlockedRecovery => {}
    }
    match facts.bundle {
        B::Cleaned => return RecoveryAction::DrainKill,
        B::Ready | B::Interrupted | B::Sealed | B::Landed | B::Blocked | B::Abandoned => {
            return RecoveryAction::FenceStop;
        }
        B::Running => {}
    }
    match (facts.run, facts.lease) {
        (R::Running | R::Integrating, Lease::Current) if contradicts(facts) => {
            RecoveryAction::BlockRecovery
        }
        (R::Running | R::Integrating, Lease::Current) => RecoveryAction::Noop,
        (R::Running | R::Integrating, Lease::None | Lease::Stale)
        | (
            R::Preparing
            | R::BlockedConflict
            | R::BlockedValidation
            | R::BlockedRecovery
            | R::Draining
            | R::Completed
            | R::Aborted
            | R::Failed,
            Lease::None | Lease::Current | Lease::Stale,
        ) => RecoveryAction::FenceStop,
    }
}

/// No runner and no lease.
fn quiet(facts: RecoveryFacts) -> RecoveryAction {
    match facts.run {
        RunPhase::Preparing | RunPhase::Running | RunPhase::Integrating => at_work(facts),
        RunPhase::BlockedConflict | RunPhase::BlockedValidation | RunPhase::BlockedRecovery => {
            blocked(facts)
        }
        RunPhase::Draining => draining(facts),
        RunPhase::Completed => completed(facts),
        RunPhase::Aborted | RunPhase::Failed => given_up(facts),
    }
}

/// Returns true if the facts are impossible after what is recorded.
fn contradicts(facts: RecoveryFacts) -> bool {
    use BundlePhase as B;
    let (lost, foreign) = match facts.checkout {
        CheckoutFact::Absent => (true, false),
        CheckoutFact::Foreign => (true, true),
        CheckoutFact::Clean | CheckoutFact::Dirty => (false, false),
    };
    let (strayed, moved) = match facts.branch {
        BranchFact::Absent => (true, false),
        BranchFact::Moved => (true, true),
        BranchFact::AsExpected => (false, false),
    };
    match facts.bundle {
        // Checkout and branch may be absent, but must not belong to something else.
        B::Ready => foreign || moved,
        B::Running | B::Interrupted => lost || strayed,
        // The lane may have another bundle by now, so only the branch, or its seal ref, must exist.
        B::Sealed => strayed,
        // The sealed commits are in the target; a moved branch has commits that are not.
        B::Landed => moved,
        B::Blocked | B::Abandoned | B::Cleaned => false,
    }
}

fn at_work(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    if contradicts(facts) {
        return RecoveryAction::BlockRecovery;
    }
    match facts.bundle {
        B::Ready => ready(facts),
        B::Running => RecoveryAction::MarkInterrupted,
        B::Interrupted => interrupted(facts),
        B::Sealed => match facts.run {
            RunPhase::Running | RunPhase::Integrating => RecoveryAction::QueueForIntegration,
            RunPhase::Preparing
            | RunPhase::BlockedConflict
            | RunPhase::BlockedValidation
            | RunPhase::BlockedRecovery
            | RunPhase::Draining
            | RunPhase::Completed
            | RunPhase::Aborted
            | RunPhase::Failed => RecoveryAction::Noop,
        },
        B::Landed | B::Abandoned => RecoveryAction::Noop,
        B::Blocked => RecoveryAction::AwaitHuman,
        B::Cleaned => cleaned(facts),
    }
}

/// The work that a run in some phase may begin.
enum Begin {
    Nothing,
    /// Only make checkouts.
    Checkout,
    /// Make checkouts and start attempts.
    Attempt,
}

fn may_begin(run: RunPhase) -> Begin {
    match run {
        RunPhase::Running => Begin::Attempt,
        RunPhase::Preparing => Begin::Checkout,
        RunPhase::Integrating
        | RunPhase::BlockedConflict
        | RunPhase::BlockedValidation
        | RunPhase::BlockedRecovery
        | RunPhase::Draining
        | RunPhase::Completed
        | RunPhase::Aborted
        | RunPhase::Failed => Begin::Nothing,
    }
}

fn ready(facts: RecoveryFacts) -> RecoveryAction {
    let launch = match may_begin(facts.run) {
        Begin::Nothing => return RecoveryAction::Noop,
        Begin::Checkout => RecoveryAction::Noop,
        Begin::Attempt => RecoveryAction::Launch,
    };
    match facts.checkout {
        CheckoutFact::Absent => RecoveryAction::Prepare,
        CheckoutFact::Clean => match facts.branch {
            BranchFact::Absent => RecoveryAction::Prepare,
            BranchFact::AsExpected => launch,
            // A contradiction, decided before.
            BranchFact::Moved => RecoveryAction::AlertNoop,
        },
        CheckoutFact::Dirty => RecoveryAction::Rescue,
        // A contradiction, decided before.
        CheckoutFact::Foreign => RecoveryAction::AlertNoop,
    }
}

fn interrupted(facts: RecoveryFacts) -> RecoveryAction {
    match may_begin(facts.run) {
        Begin::Nothing | Begin::Checkout => RecoveryAction::Noop,
        Begin::Attempt => match facts.checkout {
            CheckoutFact::Dirty => RecoveryAction::Rescue,
            CheckoutFact::Clean => RecoveryAction::Reclaim,
            // A contradiction, decided before.
            CheckoutFact::Absent | CheckoutFact::Foreign => RecoveryAction::AlertNoop,
        },
    }
}

fn blocked(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    match facts.bundle {
        B::Running => RecoveryAction::MarkInterrupted,
        B::Ready | B::Interrupted | B::Sealed | B::Landed | B::Blocked | B::Abandoned => {
            RecoveryAction::AwaitHuman
        }
        B::Cleaned => cleaned(facts),
    }
}

fn draining(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    match facts.bundle {
        B::Ready | B::Running | B::Interrupted if contradicts(facts) => {
            RecoveryAction::BlockRecovery
        }
        B::Running => RecoveryAction::MarkInterrupted,
        B::Ready | B::Interrupted | B::Blocked => RecoveryAction::MarkAbandoned,
        B::Sealed => RecoveryAction::BlockRecovery,
        B::Landed | B::Abandoned | B::Cleaned => match clearing(facts) {
            Clearing::Do(action) => action,
            Clearing::Contradiction => RecoveryAction::BlockRecovery,
            Clearing::Done if facts.bundle == B::Cleaned => RecoveryAction::Noop,
            Clearing::Done => RecoveryAction::MarkCleaned,
        },
    }
}

fn completed(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    match facts.bundle {
        // A run completes only after every bundle is clean, so this cannot be recorded.
        B::Ready | B::Running | B::Interrupted | B::Sealed | B::Blocked => {
            RecoveryAction::AlertNoop
        }
        B::Landed | B::Abandoned | B::Cleaned => clear_after_the_end(facts),
    }
}

fn given_up(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    match facts.bundle {
        // A run cannot be aborted or fail while a bundle is recorded as running.
        B::Running => RecoveryAction::AlertNoop,
        B::Ready | B::Interrupted | B::Sealed | B::Blocked => {
            if contradicts(facts) {
                return RecoveryAction::AlertNoop;
            }
            match facts.checkout {
                CheckoutFact::Foreign => RecoveryAction::AlertNoop,
                CheckoutFact::Absent | CheckoutFact::Clean | CheckoutFact::Dirty => {
                    RecoveryAction::AwaitHuman
                }
            }
        }
        B::Landed | B::Abandoned | B::Cleaned => clear_after_the_end(facts),
    }
}

fn clear_after_the_end(facts: RecoveryFacts) -> RecoveryAction {
    match clearing(facts) {
        Clearing::Do(action) => action,
        Clearing::Contradiction => RecoveryAction::AlertNoop,
        Clearing::Done => RecoveryAction::Noop,
    }
}

/// A cleaned bundle in a run that is not draining: nothing may be removed.
fn cleaned(facts: RecoveryFacts) -> RecoveryAction {
    match facts.checkout {
        CheckoutFact::Foreign => RecoveryAction::AlertNoop,
        CheckoutFact::Absent | CheckoutFact::Clean | CheckoutFact::Dirty => match facts.branch {
            BranchFact::AsExpected | BranchFact::Moved => RecoveryAction::AlertNoop,
            BranchFact::Absent => RecoveryAction::Noop,
        },
    }
}

enum Clearing {
    Do(RecoveryAction),
    Contradiction,
    Done,
}

/// The next step of cleaning up a finished bundle: rescue, then the checkout, then the branch. In this
/// order nothing is removed that is not saved.
fn clearing(facts: RecoveryFacts) -> Clearing {
    use BundlePhase as B;
    if contradicts(facts) {
        return Clearing::Contradiction;
    }
    match facts.checkout {
        CheckoutFact::Foreign => Clearing::Do(RecoveryAction::AlertNoop),
        CheckoutFact::Dirty => Clearing::Do(RecoveryAction::Rescue),
        CheckoutFact::Clean => Clearing::Do(RecoveryAction::RemoveCheckout),
        CheckoutFact::Absent => match facts.branch {
            BranchFact::Absent => Clearing::Done,
            BranchFact::AsExpected | BranchFact::Moved => match facts.bundle {
                B::Landed => Clearing::Do(RecoveryAction::DeleteBranch),
                B::Abandoned => Clearing::Do(RecoveryAction::Rescue),
                // The branch was gone and has been made again by something else.
                B::Cleaned => Clearing::Do(RecoveryAction::AlertNoop),
                // Not finished, so there is nothing to clean up yet.
                B::Ready | B::Running | B::Interrupted | B::Sealed | B::Blocked => Clearing::Done,
            },
        },
    }
}
