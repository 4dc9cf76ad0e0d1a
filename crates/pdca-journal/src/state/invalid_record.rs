//! The reasons to refuse a record.

use pdca_state::BundleId;

use crate::claim::{Epoch, Generation};
use crate::object_id::ObjectId;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::Seq;

/// A record that cannot follow those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} is not valid: {reason}")]
pub struct RejectedRecord {
    pub seq: Seq,
    pub reason: InvalidRecord,
}

/// The rule that a record breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    #[error("the run was not admitted yet")]
    NotAdmitted,
    #[error("the run is admitted already")]
    AdmittedTwice,
    #[error("{0} is in the batch twice")]
    InBatchTwice(BundleId),
    #[error("record {expected} is due")]
    OutOfOrder { expected: Seq },
    /// The record is of a driver that does not have the run.
    #[error("epoch {current} has the run, this is of epoch {found}")]
    OtherEpoch { current: Epoch, found: Epoch },
    #[error("{0} is not part of the run")]
    NoSuchBundle(BundleId),
    /// The record is not legal in this phase of the run.
    #[error("the run is {phase}")]
    RunIs { phase: RunPhase },
    /// The record is not legal in this phase of the bundle.
    #[error("{bundle} is {phase}")]
    BundleIs { bundle: BundleId, phase: BundlePhase },
    #[error("generation {found} of {bundle} is not the one that is due")]
    Generation { bundle: BundleId, found: Generation },
    /// There is no such lane, or another bundle has it.
    #[error("lane {0} is not available")]
    Slot(u32),
    #[error("there is no open intent {0}")]
    NoSuchIntent(Seq),
    #[error("intent {0} cannot have this outcome")]
    WrongOutcome(Seq),
    /// The record has to wait for the outcome of an intent.
    #[error("intent {0} has no outcome yet")]
    IntentOpen(Seq),
    /// The bundle, or its commit, is not the next one in the plan for the target.
    #[error("{commit} of {bundle} is not the next commit to apply")]
    NotNext { bundle: BundleId, commit: ObjectId },
    /// A change lands before all of its commits are applied.
    #[error("{0} is not applied completely")]
    NotApplied(BundleId),
    /// The last verdict over exactly this tree and these changes is not a pass.
    #[error("tree {0} did not pass the gates with exactly these changes")]
    NotGated(ObjectId),
    /// The landing does not start from the base of the plan, or brings nothing.
    #[error("the landing does not follow the plan for {0}")]
    NotPlanned(String),
    /// The reason is one for which only a bundle can be blocked.
    #[error("a run is not blocked for this reason")]
    NoReasonForARun,
    #[error("it is not blocked")]
    NotBlocked,
    /// A request is recorded twice, or answered without being recorded.
    #[error("the request {0:?} was taken already, or never")]
    Request(String),
    #[error("the seal's head is not the last of its commits")]
    SealWithoutCommits,
    #[error("{0} is sealed already")]
    SealedTwice(BundleId),
}
