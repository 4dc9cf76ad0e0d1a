//! Where a run stands: a pure fold over its records.
//!
//! Nothing here is stored. [`RunState::fold`] of the same records is the same state, and a record
//! that cannot follow those before it is an error that names it, whoever wrote it. The journal asks
//! the same fold before it writes, so it never holds a sequence that cannot be read.
//!
//! ```text
//! run     Preparing → Running ⇄ Integrating → Draining → Completed
//!         each of the first four ⇄ Blocked…, and → Aborted, Failed once nothing runs
//! bundle  Ready → Running → Blocked (its sign-off is due) → Sealed → Landed → Cleaned
//!                 Running → Interrupted → Running with the next generation
//!         Ready, Interrupted, Sealed ⇄ Blocked;  Ready, Interrupted, Blocked → Abandoned → Cleaned
//! ```

mod fold;
mod integration;
mod invalid_record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pdca_state::BundleId;

use crate::claim::{Epoch, Generation};
use crate::oid::ObjectId;
use crate::process::Process;
use crate::reconcile::{BundlePhase, RecoveryAction, RunPhase};
use crate::record::{Admitted, Effect, Entry, GateVerdict, Reason, Request, Seal, Seq};
use crate::retry::Tally;
use crate::timestamp::Moment;

pub use integration::{Applied, Integration, IntegrationProgress};
pub use invalid_record::{InvalidRecord, RejectedRecord};

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    /// What it was admitted with.
    pub admitted: Admitted,
    /// The part of its work it is in.
    pub phase: RunPhase,
    /// Since when.
    pub since: Since,
    /// Why it waits for a person, where it does.
    pub block: Option<Block>,
    /// Its bundles.
    pub bundles: BTreeMap<BundleId, Workstream>,
    /// The epoch of the driver that has it.
    pub epoch: Epoch,
    /// That driver.
    pub driver: Process,
    /// What was about to be done and has no outcome yet.
    pub intents: BTreeMap<Seq, Effect>,
    /// What is being applied, by target.
    pub integrations: BTreeMap<String, Integration>,
    /// What was tried again, and how often.
    pub tally: Tally,
    /// How many leaves were called.
    pub leaf_calls: u64,
    /// How long drivers were at work on it, as far as their records tell.
    pub worked: Duration,
    /// `last_reconciled_at` and `last_reconcile_action`.
    pub reconciled: Option<Reconciled>,
    /// Requests that were taken from the inbox and not answered yet, by name.
    pub requests: BTreeMap<String, Request>,
    /// The names of those that were answered.
    pub answered: BTreeSet<String>,
    /// Its last record.
    pub last: Since,
}

/// A record and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The record.
    pub seq: Seq,
    /// When it was written.
    pub at: Moment,
}

/// Why a run waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Why.
    pub reason: Reason,
    /// What that person should see.
    pub evidence: String,
    /// Where it goes on when it is unblocked.
    pub from: RunPhase,
}

/// The last time the record was compared with the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// When.
    pub at: Since,
    /// About which bundle.
    pub bundle: Option<BundleId>,
    /// What was done.
    pub action: RecoveryAction,
}

/// One bundle in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workstream {
    /// Where it stands.
    pub status: WorkstreamStatus,
    /// Since when.
    pub since: Since,
    /// Its last claim.
    pub claim: Option<Claim>,
    /// Its seal, from when there is one.
    pub seal: Option<SealRecord>,
    /// What was said about the steps of its last attempt.
    pub verdicts: BTreeMap<String, GateVerdict>,
    /// How many leaves were called for it.
    pub leaf_calls: u64,
}

/// A claim: the right to work on a bundle in a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Which of its claims it is, and so how many there were.
    pub generation: Generation,
    /// The lane.
    pub slot: u32,
    /// The commit it starts from.
    pub base: ObjectId,
    /// What was started last, if anything was.
    pub process: Option<Process>,
}

/// A seal that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealRecord {
    /// What was sealed.
    pub seal: Seal,
    /// Its `completion_order`: the place of the intent.
    pub order: Seq,
}

/// Where a bundle stands in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkstreamStatus {
    /// It can be claimed.
    Ready,
    /// It is claimed.
    Running,
    /// Its attempt was cut short; it can be claimed again.
    Interrupted,
    /// It is accepted.
    Sealed,
    /// It is in the target.
    Landed,
    /// It waits for a person.
    Blocked {
        /// Why.
        reason: Reason,
        /// What that person should see.
        evidence: String,
        /// Where it goes on when it is unblocked.
        from: Resting,
    },
    /// The run does nothing more with it.
    Abandoned {
        /// Why.
        why: String,
    },
    /// Nothing of it is left in lanes and branches.
    Cleaned,
}

/// Where a bundle that was blocked goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resting {
    /// As [`WorkstreamStatus::Ready`].
    Ready,
    /// As [`WorkstreamStatus::Interrupted`].
    Interrupted,
    /// As [`WorkstreamStatus::Sealed`].
    Sealed,
}

impl WorkstreamStatus {
    /// It without its facts, as the reconcile decision takes it.
    pub fn phase(&self) -> BundlePhase {
        match self {
            Self::Ready => BundlePhase::Ready,
            Self::Running => BundlePhase::Running,
            Self::Interrupted => BundlePhase::Interrupted,
            Self::Sealed => BundlePhase::Sealed,
            Self::Landed => BundlePhase::Landed,
            Self::Blocked { .. } => BundlePhase::Blocked,
            Self::Abandoned { .. } => BundlePhase::Abandoned,
            Self::Cleaned => BundlePhase::Cleaned,
        }
    }

    /// Returns the reason and the evidence of a block.
    pub fn block(&self) -> Option<(Reason, &str)> {
        match self {
            Self::Blocked { reason, evidence, .. } => Some((*reason, evidence)),
            Self::Ready
            | Self::Running
            | Self::Interrupted
            | Self::Sealed
            | Self::Landed
            | Self::Abandoned { .. }
            | Self::Cleaned => None,
        }
    }

    /// Returns the evidence of a block that lasts until a person lifts it.
    pub fn recovery_block(&self) -> Option<&str> {
        self.block().filter(|(reason, _)| *reason == Reason::Recovery).map(|(_, evidence)| evidence)
    }
}

impl RunState {
    /// The state after these records; `None` where there are none.
    pub fn fold<'a>(
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<Option<Self>, RejectedRecord> {
        let mut entries = entries.into_iter();
        let Some(first) = entries.next() else {
            return Ok(None);
        };
        let mut state = Self::admitted(first)?;
        for entry in entries {
            state.apply(entry)?;
        }
        Ok(Some(state))
    }

    /// Whether the run bars another one: until it is over, also while it waits for a person.
    pub fn is_active(&self) -> bool {
        self.phase.is_active()
    }

    /// The generation that the next claim of a bundle has.
    pub fn next_generation(&self, bundle: &BundleId) -> Option<Generation> {
        match &self.bundles.get(bundle)?.claim {
            None => Some(Generation::FIRST),
            Some(claim) => claim.generation.next(),
        }
    }

    /// The intents that were left open about a bundle, in order.
    pub fn intents_about<'a>(
        &'a self,
        bundle: &'a BundleId,
    ) -> impl Iterator<Item = (Seq, &'a Effect)> {
        self.intents
            .iter()
            .filter(|(_, effect)| touches(effect, bundle))
            .map(|(seq, it)| (*seq, it))
    }
}

/// Whether an effect is about a bundle, alone or among others.
fn touches(effect: &Effect, bundle: &BundleId) -> bool {
    match effect {
        Effect::Land(landing) => landing.bundles.contains(bundle),
        Effect::Prepare { .. }
        | Effect::Rescue { .. }
        | Effect::Seal(_)
        | Effect::Apply { .. }
        | Effect::Outside { .. }
        | Effect::RemoveCheckout { .. }
        | Effect::DeleteBranch { .. } => effect.bundle() == Some(bundle),
    }
}
