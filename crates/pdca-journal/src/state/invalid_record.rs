//! Why a record is refused.

use pdca_state::BundleId;

use crate::claim::{Epoch, Generation};
use crate::oid::ObjectId;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::Seq;

/// A record that cannot follow those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} cannot stand here: {reason}")]
pub struct RejectedRecord {
    /// The record.
    pub seq: Seq,
    /// What is wrong with it.
    pub reason: InvalidRecord,
}

/// Why a record cannot follow those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    /// A run begins with its admission.
    #[error("the run was not admitted yet")]
    NotAdmitted,
    /// And is admitted once.
    #[error("the run is admitted already")]
    AdmittedTwice,
    /// A batch names each bundle once.
    #[error("{0} is in the batch twice")]
    InBatchTwice(BundleId),
    /// Places are counted.
    #[error("record {expected} is due")]
    OutOfOrder {
        /// The place that is due.
        expected: Seq,
    },
    /// Another driver has the run.
    #[error("epoch {current} has the run, this is of epoch {found}")]
    OtherEpoch {
        /// The one that has it.
        current: Epoch,
        /// The one of the record.
        found: Epoch,
    },
    /// The bundle is no part of the run.
    #[error("{0} is no part of the run")]
    NoSuchBundle(BundleId),
    /// Not in this part of the run.
    #[error("the run is {phase}")]
    RunIs {
        /// The part it is in.
        phase: RunPhase,
    },
    /// Not of a bundle that stands there.
    #[error("{bundle} is {phase}")]
    BundleIs {
        /// The bundle.
        bundle: BundleId,
        /// Where it stands.
        phase: BundlePhase,
    },
    /// Generations are counted.
    #[error("generation {found} of {bundle} is not the one that is due")]
    Generation {
        /// The bundle.
        bundle: BundleId,
        /// The one of the record.
        found: Generation,
    },
    /// There is no such lane, or another bundle has it.
    #[error("lane {0} is not to be had")]
    Slot(u32),
    /// An outcome needs an open intent.
    #[error("there is no open intent {0}")]
    NoSuchIntent(Seq),
    /// And one that can end so.
    #[error("intent {0} cannot have this outcome")]
    WrongOutcome(Seq),
    /// What is about to be done has to end first.
    #[error("intent {0} has no outcome yet")]
    IntentOpen(Seq),
    /// The change, or its commit, is not due in the plan for the target.
    #[error("{commit} of {bundle} is not what is applied next")]
    NotNext {
        /// The bundle.
        bundle: BundleId,
        /// The commit.
        commit: ObjectId,
    },
    /// Only changes that were applied to their end can land.
    #[error("{0} is not applied to its end")]
    NotApplied(BundleId),
    /// Only what was judged green can land.
    #[error("tree {0} was not judged green with exactly these changes")]
    NotGated(ObjectId),
    /// A landing has to start from the base of its plan, and bring something.
    #[error("the landing does not follow the plan for {0}")]
    NotPlanned(String),
    /// Only a bundle can wait for that.
    #[error("a run is not blocked for this reason")]
    NoReasonForARun,
    /// It does not wait for a person.
    #[error("it is not blocked")]
    NotBlocked,
    /// A request is taken once and answered once.
    #[error("the request {0:?} was taken already, or never")]
    Request(String),
    /// A seal holds something, and its head is its last commit.
    #[error("the seal's head is not the last of its commits")]
    SealWithoutCommits,
    /// A seal is never moved.
    #[error("{0} is sealed already")]
    SealedTwice(BundleId),
}
