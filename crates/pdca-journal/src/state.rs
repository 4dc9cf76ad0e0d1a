//! The state of a run: a pure fold over its records.
//!
//! The state is never stored. [`RunState::fold`] of the same records gives the same state, and a
//! record that cannot follow those before it is an error. The journal applies the same fold before it
//! writes, so it never contains a sequence that cannot be read.
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
use crate::object_id::ObjectId;
use crate::process::ProcessIdentity;
use crate::reconcile::{BundlePhase, RecoveryAction, RunPhase};
use crate::record::{Admitted, Effect, GateVerdict, InboxRequest, JournalEntry, Reason, Seal, Seq};
use crate::retry::RetryTally;
use crate::timestamp::Moment;

pub use integration::{Applied, IntegrationProgress, IntegrationState};
pub use invalid_record::{InvalidRecord, RejectedRecord};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    pub admitted: Admitted,
    pub phase: RunPhase,
    /// The record that began the phase.
    pub since: Since,
    /// Set while the run waits for a person.
    pub block: Option<Block>,
    pub bundles: BTreeMap<BundleId, Workstream>,
    /// The epoch of `driver`.
    pub epoch: Epoch,
    /// The driver that has the run.
    pub driver: ProcessIdentity,
    /// The intents without an outcome.
    pub intents: BTreeMap<Seq, Effect>,
    /// The changes that are being applied, by target.
    pub integrations: BTreeMap<String, IntegrationState>,
    /// The retry counters.
    pub tally: RetryTally,
    pub leaf_calls: u64,
    /// The time that drivers worked on the run, measured between their records.
    pub worked: Duration,
    /// `last_reconciled_at` and `last_reconcile_action`.
    pub reconciled: Option<Reconciled>,
    /// Requests that were taken from the inbox and not answered yet, by id.
    pub requests: BTreeMap<String, InboxRequest>,
    /// The ids of answered requests.
    // Never dropped: the file of a request may outlive its answer, and must not be taken again.
    pub answered: BTreeSet<String>,
    /// The last record.
    pub last: Since,
}

/// The number of a record and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    pub seq: Seq,
    pub at: Moment,
}

/// The reason a run waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub reason: Reason,
    /// The facts that the person needs to decide.
    pub evidence: String,
    /// The phase in which the run continues when it is unblocked.
    pub from: RunPhase,
}

/// The last comparison of the record with the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    pub at: Since,
    pub bundle: Option<BundleId>,
    pub action: RecoveryAction,
}

/// One bundle in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workstream {
    pub status: WorkstreamStatus,
    /// The record that began the status.
    pub since: Since,
    /// The last claim.
    pub claim: Option<Claim>,
    pub seal: Option<JournaledSeal>,
    /// The verdicts of the last attempt, by step.
    pub verdicts: BTreeMap<String, GateVerdict>,
    pub leaf_calls: u64,
}

impl Workstream {
    /// Returns whether an attempt at it is under way on another machine.
    pub fn is_on_host(&self) -> bool {
        let host = self.claim.as_ref().and_then(|claim| claim.host.as_ref());
        self.status == WorkstreamStatus::Running && host.is_some()
    }
}

/// The right to work on a bundle in a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The number of the claim, from 1.
    pub generation: Generation,
    /// The lane here, or the slot of the host.
    pub slot: u32,
    /// The host that the attempt runs on; `None` for this machine.
    pub host: Option<String>,
    /// The commit that the attempt starts from.
    pub base: ObjectId,
    /// The process that was started last.
    pub process: Option<ProcessIdentity>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournaledSeal {
    pub seal: Seal,
    /// The `completion_order`: the number of the intent.
    pub order: Seq,
}

/// The status of a bundle in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkstreamStatus {
    /// Can be claimed.
    Ready,
    /// Claimed; its attempt is at work.
    Running,
    /// Its attempt was interrupted; it can be claimed again.
    Interrupted,
    /// Accepted and sealed.
    Sealed,
    /// In the target branch.
    Landed,
    /// Waits for a person.
    Blocked {
        reason: Reason,
        /// The facts that the person needs to decide.
        evidence: String,
        /// The status in which it continues when it is unblocked.
        from: Resting,
    },
    /// The run has given it up.
    Abandoned { why: String },
    /// No checkout or branch of it is left.
    Cleaned,
}

/// The status in which a blocked bundle continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resting {
    Ready,
    Interrupted,
    Sealed,
}

impl WorkstreamStatus {
    /// The status without its data, the input of [`decide`](crate::decide).
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
    /// Returns the state after these records; `None` if there are none.
    pub fn fold<'a>(
        entries: impl IntoIterator<Item = &'a JournalEntry>,
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

    /// Returns true unless the run is over. An active run excludes another one, also while it waits
    /// for a person.
    pub fn is_active(&self) -> bool {
        self.phase.is_active()
    }

    /// Returns true if the run ended at least `keep` ago.
    pub fn is_over_for(&self, keep: Duration, now: Moment) -> bool {
        // The wall clock may be used here, because a wrong one only prunes a finished record earlier or
        // later. A negative age counts as zero.
        let age = now.wall.duration_since(self.since.at.wall);
        !self.is_active() && Duration::try_from(age).unwrap_or_default() >= keep
    }

    /// The generation of the next claim of a bundle.
    pub fn next_generation(&self, bundle: &BundleId) -> Option<Generation> {
        match &self.bundles.get(bundle)?.claim {
            None => Some(Generation::FIRST),
            Some(claim) => claim.generation.next(),
        }
    }
}

/// Returns true if an effect is about a bundle, alone or among others.
fn touches(effect: &Effect, bundle: &BundleId) -> bool {
    match effect {
        Effect::Land(landing) => landing.bundles.contains(bundle),
        Effect::Rescue { .. } | Effect::Seal(_) | Effect::Apply { .. } => {
            effect.bundle() == Some(bundle)
        }
    }
}
