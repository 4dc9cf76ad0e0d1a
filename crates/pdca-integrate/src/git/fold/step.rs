//! How far each commit of a fold is, in a form that can be kept.

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::conflict::Conflict;

/// One commit of one change, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The bundle.
    pub bundle: BundleId,
    /// The sealed commit; with merge commits, the head of the change.
    #[serde(with = "crate::git::hex")]
    pub commit: ObjectId,
    /// How far it is.
    #[serde(flatten)]
    pub state: StepState,
}

/// How far a commit is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    /// It will be tried.
    Planned,
    /// It is being tried.
    Applying,
    /// It is on the tip.
    Applied {
        /// As which commit.
        #[serde(with = "crate::git::hex")]
        applied_commit: ObjectId,
    },
    /// It disagrees with what is on the tip.
    Conflict {
        /// The files.
        conflicts: Vec<Conflict>,
    },
    /// It would change nothing.
    Skipped {
        /// Why.
        reason: Skip,
    },
    /// It could not be tried.
    Failed {
        /// Why.
        why: String,
    },
}

/// Why a commit changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Skip {
    /// It never did.
    EmptyFromTheStart,
    /// What it does is done already.
    AlreadyPresent {
        /// By a bundle of the same plan with the same patch, where there is one.
        by: Option<BundleId>,
    },
}

/// What an earlier fold of the same plan told, from wherever it was kept.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The git that it was told under. What another git did is done again.
    pub git_version: String,
    /// What was told.
    pub steps: Vec<Step>,
}
