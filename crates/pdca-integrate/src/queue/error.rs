//! Errors of an integration.

use camino::Utf8PathBuf;
use pdca_state::BundleId;

use crate::{
    EngineError, FoldError, LandError, NotGated, ObjectId, PlanError, PushError, RefError,
    StoreError, UnknownTest,
};

use super::context::GateRunError;
use super::evidence::RedRow;
use super::journal::JournalError;

/// The reasons why an integration stopped. Changes that landed before stay landed.
#[derive(Debug, thiserror::Error)]
pub enum IntegrateError {
    #[error("interrupted")]
    Interrupted,
    /// No gate applies to combinations.
    #[error("no gating check applies to the repository, so no combination can be gated")]
    NoGate,
    /// The changes belong to a branch that cannot be moved locally.
    #[error("{reference} is the branch of a remote, and does not move here")]
    NotLocal { reference: String },
    /// The staging branch has foreign commits, which folding it again would lose.
    #[error("{branch} has commits that no sealed change brought: {}", short(commits))]
    StagingForeign { branch: String, commits: Vec<ObjectId> },
    /// The branch is red without any of the changes.
    #[error("{branch} is red by itself at {base}: {}", rows.join(", "))]
    BaseRed {
        branch: String,
        base: ObjectId,
        rows: Vec<String>,
        /// The red rows with their evidence.
        red: Vec<RedRow>,
    },
    /// The gates repeatedly could not be run, or came to no verdict.
    #[error("the gates came to no verdict: {}", rows.join("; "))]
    Stuck { rows: Vec<String> },
    /// The branch moved in a way that only a person can judge.
    #[error("{reference} {how} while the changes were being integrated")]
    Drifted {
        reference: String,
        /// The rest of the sentence, such as `was rewound or rewritten`.
        how: String,
    },
    #[error("{id} cannot be folded: {why}")]
    Unfoldable { id: BundleId, why: String },
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The candidate was not gated as what it is.
    #[error(transparent)]
    NotGated(#[from] NotGated),
    #[error(transparent)]
    Land(#[from] LandError),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error("{remote} has no branch {branch}")]
    RemoteLacks { remote: String, branch: String },
    #[error("{remote} does not answer: {said}")]
    Unreachable {
        remote: String,
        /// The message of git.
        said: String,
    },
    /// The remote refuses the push.
    #[error("{remote} does not take {branch}: {said}")]
    Refused {
        remote: String,
        branch: String,
        /// The message of git.
        said: String,
    },
    #[error(transparent)]
    Ref(#[from] RefError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Gates(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot write {path}")]
    Io { path: Utf8PathBuf, source: std::io::Error },
    /// A defect: a report about a test that the search did not ask for.
    #[error(transparent)]
    Search(#[from] UnknownTest),
}

fn short(commits: &[ObjectId]) -> String {
    let few = commits.iter().take(5).map(|commit| commit.to_hex_with_len(12).to_string());
    few.collect::<Vec<_>>().join(", ")
}

impl From<GateRunError> for IntegrateError {
    fn from(error: GateRunError) -> Self {
        match error {
            GateRunError::Interrupted => Self::Interrupted,
            GateRunError::Failed(source) => Self::Gates(source),
        }
    }
}
