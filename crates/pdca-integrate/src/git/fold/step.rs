//! Steps of a fold, in a form that can be stored.

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::conflict::Conflict;

/// The state of one commit of one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldStep {
    pub bundle: BundleId,
    /// The sealed commit; with merge commits, the head of the change.
    #[serde(with = "pdca_journal::object_id")]
    pub commit: ObjectId,
    #[serde(flatten)]
    pub state: StepState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    Planned,
    Applying,
    Applied {
        #[serde(with = "pdca_journal::object_id")]
        applied_commit: ObjectId,
    },
    /// The commit conflicts with the tip.
    Conflict {
        conflicts: Vec<Conflict>,
    },
    /// The commit would change nothing.
    Skipped {
        reason: Skip,
    },
    /// Git failed.
    Failed {
        why: String,
    },
}

/// The reasons why a commit changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Skip {
    EmptyFromTheStart,
    /// The tip has its effect already.
    AlreadyPresent {
        /// A bundle of the same plan with the same patch, if there is one.
        by: Option<BundleId>,
    },
}

/// The recorded steps of an earlier fold of the same plan.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The version of git that was used. Steps of another version are repeated.
    pub git_version: String,
    pub steps: Vec<FoldStep>,
}
