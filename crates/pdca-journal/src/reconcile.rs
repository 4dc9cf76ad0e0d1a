//! The recovery decision: compares the record of a run with the facts on disk.
//!
//! A total pure function over all [`RecoveryFacts`], of which there are 10 × 8 × 3 × 2 × 3 = 1,440.
//! No `match` has a catch-all arm, so a new state does not compile until it is decided. Facts that no
//! driver looks for and actions that none carries out are not in it. The first rule that applies
//! decides:
//!
//! 1. It is unknown if a runner lives: alert and touch nothing. Acting could race with a live process.
//! 2. A runner lives: wait. Its supervisor ends it, because its driver is gone, and until then it could
//!    still write to whatever is decided about.
//! 3. The facts contradict the record: block. A person decides.
//! 4. Otherwise, the next step forward.

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
    /// Found: the commits of the bundle in its checkout.
    pub branch: BranchFact,
    /// Found: the processes in the lane.
    pub runner: Liveness,
}

/// The state of a bundle's checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CheckoutFact {
    /// There is no checkout of this bundle.
    Absent,
    /// Everything in the checkout is committed.
    Clean,
    /// The checkout has uncommitted work.
    Dirty,
}

/// The state of a bundle's commits in its checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BranchFact {
    Absent,
    /// At the recorded commit or ahead of it.
    AsExpected,
}

/// The decision of [`decide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryAction {
    /// Nothing to do, or not the bundle's turn.
    Noop,
    /// Claim the bundle and start it. The pool does, with a checkout where there is none.
    Launch,
    /// Claim the bundle again with the next generation, and start it where its work lies. The pool does.
    Reclaim,
    /// Record that the attempt was interrupted.
    MarkInterrupted,
    /// Wait until the supervisor of a dead driver has ended what runs. A new driver does, before it begins.
    AwaitRunner,
    /// Wait for a person, with the facts as evidence.
    BlockRecovery,
    /// Record that the run gives up the bundle. Ending the run does.
    MarkAbandoned,
    /// Record that the run is done with the bundle. Ending the run does.
    MarkCleaned,
    /// Do nothing; a person has to decide.
    AwaitHuman,
    /// Do nothing except alert a person.
    AlertNoop,
}

/// Decides what to do about one bundle of a run.
pub fn decide(facts: RecoveryFacts) -> RecoveryAction {
    match facts.runner {
        Liveness::Unknown => return RecoveryAction::AlertNoop,
        Liveness::Alive => return RecoveryAction::AwaitRunner,
        Liveness::Dead => {}
    }
    match facts.run {
        RunPhase::Preparing | RunPhase::Running | RunPhase::Integrating => at_work(facts),
        RunPhase::BlockedConflict | RunPhase::BlockedValidation | RunPhase::BlockedRecovery => {
            blocked(facts.bundle)
        }
        RunPhase::Draining => draining(facts),
        // Checkouts that are left are the business of `cleanup`, which asks the bundle and not the run.
        RunPhase::Completed | RunPhase::Aborted | RunPhase::Failed => RecoveryAction::Noop,
    }
}

/// Returns true if the facts are impossible after what is recorded.
fn contradicts(facts: RecoveryFacts) -> bool {
    use BundlePhase as B;
    let strayed = match facts.branch {
        BranchFact::Absent => true,
        BranchFact::AsExpected => false,
    };
    let lost = match facts.checkout {
        CheckoutFact::Absent => true,
        CheckoutFact::Clean | CheckoutFact::Dirty => false,
    };
    match facts.bundle {
        B::Running | B::Interrupted => lost || strayed,
        // The lane may have another bundle by now, so only its commits must exist.
        B::Sealed => strayed,
        B::Ready | B::Landed | B::Blocked | B::Abandoned | B::Cleaned => false,
    }
}

fn at_work(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    if contradicts(facts) {
        return RecoveryAction::BlockRecovery;
    }
    let starts = facts.run == RunPhase::Running;
    match facts.bundle {
        B::Ready if starts => RecoveryAction::Launch,
        B::Interrupted if starts => RecoveryAction::Reclaim,
        B::Running => RecoveryAction::MarkInterrupted,
        // A sealed bundle goes on with `integrate`, which has a journal of its own.
        B::Ready | B::Interrupted | B::Sealed | B::Landed | B::Abandoned | B::Cleaned => {
            RecoveryAction::Noop
        }
        B::Blocked => RecoveryAction::AwaitHuman,
    }
}

fn blocked(bundle: BundlePhase) -> RecoveryAction {
    use BundlePhase as B;
    match bundle {
        // The attempt died with its driver, in a blocked run too. Only the record is set right;
        // nothing is started before a person has decided.
        B::Running => RecoveryAction::MarkInterrupted,
        B::Ready | B::Interrupted | B::Sealed | B::Landed | B::Blocked | B::Abandoned => {
            RecoveryAction::AwaitHuman
        }
        B::Cleaned => RecoveryAction::Noop,
    }
}

/// The end of a run that was cut short: whatever it has not landed is given up, and then all is done with.
fn draining(facts: RecoveryFacts) -> RecoveryAction {
    use BundlePhase as B;
    match facts.bundle {
        // An accepted change is given up only by a person.
        B::Sealed => RecoveryAction::BlockRecovery,
        B::Running | B::Interrupted if contradicts(facts) => RecoveryAction::BlockRecovery,
        B::Running => RecoveryAction::MarkInterrupted,
        B::Ready | B::Interrupted | B::Blocked => RecoveryAction::MarkAbandoned,
        B::Landed | B::Abandoned => RecoveryAction::MarkCleaned,
        B::Cleaned => RecoveryAction::Noop,
    }
}
