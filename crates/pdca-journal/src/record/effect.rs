//! Effects: changes outside the journal, and their outcomes.

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use super::{Cause, Phase};
use crate::object_id::ObjectId;

/// A change to something outside the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Saving work that would be lost to a ref of its own.
    Rescue { bundle: BundleId, reference: String },
    /// Sealing an accepted change. The number of the intent is the seal's `completion_order`.
    Seal(Seal),
    /// Applying one sealed commit.
    Apply {
        target: String,
        bundle: BundleId,
        /// The sealed commit.
        #[serde(with = "crate::object_id")]
        commit: ObjectId,
        /// The commit that it is applied to.
        #[serde(with = "crate::object_id")]
        onto: ObjectId,
    },
    /// Moving the target branch.
    Land(Landing),
}

/// The immutable record of an accepted change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    pub bundle: BundleId,
    /// The commit that the change is based on.
    #[serde(with = "crate::object_id")]
    pub base: ObjectId,
    /// The last of `commits`.
    #[serde(with = "crate::object_id")]
    pub head: ObjectId,
    /// The tree of `head`.
    #[serde(with = "crate::object_id")]
    pub tree: ObjectId,
    /// All commits in order.
    #[serde(with = "crate::object_id::list")]
    pub commits: Vec<ObjectId>,
    /// The identity of the gates that passed.
    pub gate_digest: String,
}

/// The move of a target branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    pub target: String,
    pub reference: String,
    /// The commit that the ref must have before.
    #[serde(with = "crate::object_id")]
    pub old: ObjectId,
    /// The commit that the ref has afterwards.
    #[serde(with = "crate::object_id")]
    pub new: ObjectId,
    /// The tree of `new`, which must have passed the gates.
    #[serde(with = "crate::object_id")]
    pub tree: ObjectId,
    /// The changes that land.
    pub bundles: Vec<BundleId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EffectOutcome {
    /// The effect happened, and was verified afterwards.
    Done,
    /// Of [`Effect::Apply`]: the commit was applied.
    Applied {
        /// The new commit.
        #[serde(with = "crate::object_id")]
        commit: ObjectId,
    },
    /// Of [`Effect::Apply`]: the commit conflicts.
    Conflict { paths: Vec<String> },
    /// Of [`Effect::Apply`]: the commit adds nothing.
    Skipped { why: String },
    /// The effect did not happen, and nothing of it is left.
    Failed { cause: Cause, what: String },
}

impl Effect {
    /// The kind of work that a failure of this effect counts against.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Seal(_) => Phase::Seal,
            Self::Apply { .. } => Phase::Integrate,
            Self::Land(_) => Phase::Land,
            Self::Rescue { .. } => Phase::Cleanup,
        }
    }

    /// The bundle, if the effect is about exactly one.
    pub fn bundle(&self) -> Option<&BundleId> {
        match self {
            Self::Rescue { bundle, .. }
            | Self::Seal(Seal { bundle, .. })
            | Self::Apply { bundle, .. } => Some(bundle),
            Self::Land(_) => None,
        }
    }
}
