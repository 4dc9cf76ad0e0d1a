//! Why an integration stops.

use camino::Utf8PathBuf;
use pdca_state::BundleId;

use crate::{
    EngineError, FoldError, LandError, NotGated, ObjectId, PlanError, PushError, RefError,
    StoreError, UnknownTest,
};

use super::context::GateRunError;
use super::evidence::RedRow;
use super::journal::JournalError;

/// Why an integration did not come to its end. What landed before has landed.
#[derive(Debug, thiserror::Error)]
pub enum IntegrateError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// No gate says anything about a combination.
    #[error("no gating check is about the repository, so no combination can be gated")]
    NoGate,
    /// The changes are meant for a branch that is not here.
    #[error("{reference} is the branch of a remote, and does not move here")]
    NotLocal {
        /// The ref.
        reference: String,
    },
    /// The staging branch has commits that somebody else made, which folding it anew would lose.
    #[error("{branch} has commits that no sealed change brought: {}", short(commits))]
    StagingForeign {
        /// The staging branch.
        branch: String,
        /// Those commits.
        commits: Vec<ObjectId>,
    },
    /// The branch is red without any of the changes.
    #[error("{branch} is red by itself at {base}: {}", rows.join(", "))]
    BaseRed {
        /// The branch.
        branch: String,
        /// Where it is.
        base: ObjectId,
        /// The red rows.
        rows: Vec<String>,
        /// What they left.
        red: Vec<RedRow>,
    },
    /// The gates could not be run, again and again.
    #[error("the gates came to no verdict: {}", rows.join("; "))]
    Stuck {
        /// The rows without a verdict.
        rows: Vec<String>,
    },
    /// The branch went somewhere where it cannot be followed without a person.
    #[error("{reference} {how} while the changes were being integrated")]
    Drifted {
        /// The ref.
        reference: String,
        /// How.
        how: String,
    },
    /// git could not fold a change.
    #[error("{id} cannot be folded: {why}")]
    Unfoldable {
        /// The bundle.
        id: BundleId,
        /// What git said.
        why: String,
    },
    /// The changes have no order.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A fold stopped.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Merge drivers cannot be declared.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What was to land was not gated as what it is.
    #[error(transparent)]
    NotGated(#[from] NotGated),
    /// It did not land.
    #[error(transparent)]
    Land(#[from] LandError),
    /// It was not pushed.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The remote has no such branch. Nothing was done.
    #[error("{remote} has no branch {branch}")]
    RemoteLacks {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// The remote gives no answer.
    #[error("{remote} does not answer: {said}")]
    Unreachable {
        /// The remote.
        remote: String,
        /// What git said.
        said: String,
    },
    /// The remote will not take it.
    #[error("{remote} does not take {branch}: {said}")]
    Refused {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What came of it.
        said: String,
    },
    /// A ref could not be moved.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The gates could not be run.
    #[error(transparent)]
    Gates(Box<dyn std::error::Error + Send + Sync>),
    /// It could not be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record could not be written.
    #[error("cannot write {path}")]
    Io {
        /// What.
        path: Utf8PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A defect: the search was told what it did not ask.
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
