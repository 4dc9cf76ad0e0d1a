//! A job: everything that decides what comes of it, as a value.

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::{JobName, Terms};

/// One piece of work for an executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The name that a result must carry to count.
    pub name: JobName,
    /// The work.
    pub work: Work,
    /// The configuration that it is done under.
    pub terms: Terms,
}

/// The kinds of work that an executor does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Do and Check of one bundle, until a person is due.
    Band {
        /// The bundle. An executor has its files, and the repository that its brief names.
        bundle: BundleId,
    },
    /// The gates over one combination.
    Combination {
        /// The name of the target.
        target: String,
        /// The branch that the combination is meant for.
        branch: String,
        /// The commit to gate.
        commit: String,
        /// Its tree, which the verdict is about.
        tree: String,
    },
}
