//! What to do when the record and the facts are laid side by side.
//!
//! The decision is a total pure function over all [`RecoveryFacts`]: 10 × 8 × 4 × 3 × 3 × 3 = 8,640 of them.
//! It has no arm that catches the rest, so it does not compile until a new state is decided.
//! Questions are asked in this order, and the first that answers decides:
//!
//! 1. It is not known whether a runner lives → alert, touch nothing.
//! 2. A runner lives where none must → stop it.
//! 3. A lease is left without a runner → revoke it.
//! 4. The facts contradict the record → block, or alert if the run is over.
//! 5. Otherwise the next step forward.

mod phase;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::all_facts;

use serde::{Deserialize, Serialize};

use crate::process::Liveness;

pub use phase::{BundlePhase, RunPhase};

/// What is recorded about a bundle and its run, and what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecoveryFacts {
    /// Recorded: the run.
    pub run: RunPhase,
    /// Recorded: the bundle.
    pub bundle: BundlePhase,
    /// Found: its checkout.
    pub checkout: CheckoutFact,
    /// Found: its branch.
    pub branch: BranchFact,
    /// Found: whether anything runs in its lane.
    pub runner: Liveness,
    /// Found: the right to run there.
    pub lease: Lease,
}

/// What is found where a bundle's checkout should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckoutFact {
    /// Nothing of this bundle's.
    Absent,
    /// Its checkout, with nothing in it that a commit does not hold.
    Clean,
    /// Its checkout, with work that no commit holds.
    Dirty,
    /// Something that is not ours.
    Foreign,
}

/// What is found where a bundle's branch should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BranchFact {
    /// Nothing. A sealed branch that was deleted while its seal ref is there counts as expected.
    Absent,
    /// Where the record has it; while an attempt is at work, also ahead of that.
    AsExpected,
    /// Elsewhere.
    Moved,
}

/// The right to run in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lease {
    /// Nobody has it.
    None,
    /// Given by this driver, for the bundle's last claim.
    Current,
    /// Given by another driver, or for an earlier claim.
    Stale,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryAction {
    /// Nothing: all is well, or it is not its turn.
    Noop,
    /// Make the checkout.
    Prepare,
    /// Claim it and start.
    Launch,
    /// Claim it again, with the next generation, and start.
    Reclaim,
    /// Record that the attempt was cut short.
    MarkInterrupted,
    /// Stop a runner that has no right to run. No ref of its can land any more.
    FenceStop,
    /// Take the lease back.
    RevokeLease,
    /// Take it as eligible for integration.
    QueueForIntegration,
    /// Stop the runner, then wait for a person, with what was found as evidence.
    BlockRecovery,
    /// Stop a runner that outlived its run.
    DrainKill,
    /// Move what would be lost to a ref of its own: what is dirty, or, where the checkout is gone, the
    /// branch itself.
    Rescue,
    /// Remove a clean checkout.
    RemoveCheckout,
    /// Delete a branch that is landed and where it was sealed.
    DeleteBranch,
    /// Record that the run does nothing more with it.
    MarkAbandoned,
    /// Record that nothing of it is left.
    MarkCleaned,
    /// Nothing: a person decides.
    AwaitHuman,
    /// Nothing but tell a person.
    AlertNoop,
}

/// What to do about a bundle of a run.
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

/// Something runs. Only the attempt that was claimed last may, and only in a run that is at work.
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

/// Nothing runs, and nobody has the right to.
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

/// Whether what is found cannot be, after what is recorded.
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
        // Nothing need be there yet, but nothing else may.
        B::Ready => foreign || moved,
        B::Running | B::Interrupted => lost || strayed,
        // The checkout may be another bundle's by now; the branch, or its seal, has to be there.
        B::Sealed => strayed,
        // All of it is in the target; something more on the branch is not.
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

/// What a run may begin with a bundle.
enum Begin {
    /// Nothing: it is not its turn.
    Nothing,
    /// A checkout, but nothing in it.
    Checkout,
    /// All of it.
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
        // A run is not complete before all of it is clean.
        B::Ready | B::Running | B::Interrupted | B::Sealed | B::Blocked => {
            RecoveryAction::AlertNoop
        }
        B::Landed | B::Abandoned | B::Cleaned => clear_after_the_end(facts),
    }
}

fn given_up(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    match facts.bundle {
        // A run is not given up while anything is recorded as running.
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

/// A cleaned bundle in a run that is not clearing up: nothing is removed there.
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

/// The next step of clearing up after a bundle that is done with: rescue, checkout, branch.
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
                // It was gone, and somebody has made it again.
                B::Cleaned => Clearing::Do(RecoveryAction::AlertNoop),
                // Not done with: there is nothing to clear up yet.
                B::Ready | B::Running | B::Interrupted | B::Sealed | B::Blocked => Clearing::Done,
            },
        },
    }
}
