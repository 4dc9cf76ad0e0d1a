//! Changes to what is outside the journal, and what comes of them.

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use super::{Cause, Phase};
use crate::oid::ObjectId;

/// A change to something outside the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Making and hydrating a checkout.
    Prepare {
        /// For which bundle.
        bundle: BundleId,
        /// In which lane.
        slot: u32,
    },
    /// Committing what would be lost to a ref of its own.
    Rescue {
        /// The bundle.
        bundle: BundleId,
        /// The ref.
        reference: String,
    },
    /// Sealing an accepted change. Its place is the seal's `completion_order`.
    Seal(Seal),
    /// Applying one sealed commit.
    Apply {
        /// The target.
        target: String,
        /// The bundle.
        bundle: BundleId,
        /// The sealed commit.
        commit: ObjectId,
        /// What it is applied to.
        onto: ObjectId,
    },
    /// Moving the target.
    Land(Landing),
    /// Something outside of git, which is looked up by its key before it is repeated.
    Outside {
        /// Made of run, bundle and seal.
        key: String,
        /// What: a push, a draft pull request, a comment.
        what: String,
    },
    /// Removing a clean checkout.
    RemoveCheckout {
        /// Of which bundle.
        bundle: BundleId,
    },
    /// Deleting a branch that is landed and where it was sealed.
    DeleteBranch {
        /// Of which bundle.
        bundle: BundleId,
        /// The branch.
        branch: String,
        /// Where it has to be.
        at: ObjectId,
    },
}

/// An accepted change, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// The bundle.
    pub bundle: BundleId,
    /// What it was made on.
    pub base: ObjectId,
    /// Its last commit.
    pub head: ObjectId,
    /// The tree of that.
    pub tree: ObjectId,
    /// Its commits, in order.
    pub commits: Vec<ObjectId>,
    /// What it was judged with.
    pub gate_digest: String,
}

/// The move of a target branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landing {
    /// The target.
    pub target: String,
    /// The ref that moves.
    pub reference: String,
    /// Where it has to be.
    pub old: ObjectId,
    /// Where it goes.
    pub new: ObjectId,
    /// The tree of that, which has to be a judged one.
    pub tree: ObjectId,
    /// The changes it brings.
    pub bundles: Vec<BundleId>,
}

/// What came of an intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EffectOutcome {
    /// It is done; so it was found when looked at afterwards.
    Done,
    /// Of [`Effect::Apply`]: applied.
    Applied {
        /// The commit it became.
        commit: ObjectId,
    },
    /// Of [`Effect::Apply`]: it does not fit.
    Conflict {
        /// Where.
        paths: Vec<String>,
    },
    /// Of [`Effect::Apply`]: it adds nothing.
    Skipped {
        /// Why.
        why: String,
    },
    /// It is not done, and nothing of it is left.
    Failed {
        /// Why.
        cause: Cause,
        /// What was said.
        what: String,
    },
}

impl Effect {
    /// What kind of work it is.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Prepare { .. } => Phase::Prepare,
            Self::Seal(_) => Phase::Seal,
            Self::Apply { .. } => Phase::Integrate,
            Self::Land(_) => Phase::Land,
            Self::Outside { .. } => Phase::Publish,
            Self::Rescue { .. } | Self::RemoveCheckout { .. } | Self::DeleteBranch { .. } => {
                Phase::Cleanup
            }
        }
    }

    /// The one bundle it is about, where it is about one.
    pub fn bundle(&self) -> Option<&BundleId> {
        match self {
            Self::Prepare { bundle, .. }
            | Self::Rescue { bundle, .. }
            | Self::Seal(Seal { bundle, .. })
            | Self::Apply { bundle, .. }
            | Self::RemoveCheckout { bundle }
            | Self::DeleteBranch { bundle, .. } => Some(bundle),
            Self::Land(_) | Self::Outside { .. } => None,
        }
    }
}
