//! Jobs: a job is a value that holds everything its result depends on.

use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::{JobName, Terms};

/// One piece of work for an executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// A result counts only if it carries this name.
    pub name: JobName,
    pub work: Work,
    /// The configuration to run under.
    pub terms: Terms,
}

/// The kinds of work that an executor accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Do and Check of one bundle, until it needs a person.
    Band {
        /// The executor must have the bundle's files and the repository that its brief names.
        bundle: BundleId,
    },
    /// The gates, run over one combination of sealed changes.
    Combination {
        /// The target repository, by its configured name.
        target: String,
        /// The branch that the combination is to land on.
        branch: String,
        /// The commit to check out.
        commit: String,
        /// The commit's tree, which the verdict is about.
        tree: String,
    },
}
