//! What can go wrong in a lane.

use std::io;

use camino::Utf8PathBuf;
use thiserror::Error;

use crate::{feature::Feature, patch::PatchError};

/// Why an operation in a lane did not happen.
#[derive(Debug, Error)]
pub enum LaneError {
    /// Something in the lane is not as we left it, and working there could write elsewhere.
    #[error("{path} {why}")]
    Damaged {
        /// What was looked at.
        path: Utf8PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A path that git's own files cannot carry.
    #[error("{path:?} cannot be used as a path of a lane")]
    Path {
        /// The path.
        path: Utf8PathBuf,
    },
    /// A name that cannot be part of a ref.
    #[error("{name:?} cannot be the name of a ref")]
    Name {
        /// What was given.
        name: String,
    },
    /// A branch of this name is there already, and is not what HEAD of the lane is on.
    #[error("there is a branch {branch:?} already")]
    BranchTaken {
        /// The branch.
        branch: String,
    },
    /// The commit is not in the target, or is none. One that is there and cannot be read is
    /// [`Objects`](Self::Objects).
    #[error("no commit {commit:?}")]
    NoSuchCommit {
        /// What was given.
        commit: String,
    },
    /// The tree asks for something that a lane does not honour. Nothing was changed.
    #[error("the tree {0}")]
    Unsupported(Feature),
    /// A file of the tree could not be written.
    #[error("{path:?} could not be written")]
    NotWritten {
        /// The first such path.
        path: String,
    },
    /// The destination of a copy has something in it.
    #[error("{path} is not empty")]
    NotEmpty {
        /// The destination.
        path: Utf8PathBuf,
    },
    /// Objects, refs or the index could not be read or written.
    #[error("cannot {doing}")]
    Objects {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: Box<gix::Error>,
    },
    /// The system would not.
    #[error("cannot {doing}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file, or all changed files together, are too large to be hashed; git was not asked to.
    #[error("{path} has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The file that is over the limit, or the largest of those that are over it together.
        path: String,
        /// Its size, or theirs.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// git ended with an error.
    #[error("cannot {doing}: git ended with {code}: {said}")]
    Git {
        /// What was tried.
        doing: &'static str,
        /// How git ended.
        code: i32,
        /// What it said.
        said: String,
    },
    /// git could not be run to its end.
    #[error("cannot run git")]
    Tool {
        /// Why not.
        #[source]
        source: pdca_process::ToolError,
    },
    /// There is no git.
    #[error("cannot find git")]
    NoGit {
        /// Why not.
        #[source]
        source: pdca_process::GitError,
    },
}

/// Why a patch was not applied. Nothing was changed.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// The patch itself was refused, before git saw it.
    #[error(transparent)]
    Refused(#[from] PatchError),
    /// The patch does not fit the checkout.
    #[error("the patch does not apply: {reason}")]
    DoesNotApply {
        /// The file that did not fit, where git names one.
        file: Option<String>,
        /// The line of the patch, counted from 1.
        line: Option<usize>,
        /// git's reason.
        reason: String,
    },
    /// Something else went wrong.
    #[error(transparent)]
    Lane(#[from] LaneError),
}

impl LaneError {
    /// Whether what lies in the lane is the cause, so that the same operation does well in a lane that is made anew.
    pub fn is_of_the_lane(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::NotWritten { .. }
            | Self::Objects { .. }
            | Self::TooLarge { .. }
            | Self::Git { .. } => true,
            Self::Io { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::Interrupted
            ),
            // A git that hangs does so over what lies there; one that was stopped or is absent does not.
            Self::Tool { source } => matches!(
                source,
                pdca_process::ToolError::TimedOut { .. }
                    | pdca_process::ToolError::TooMuchOutput { .. }
            ),
            Self::Path { .. }
            | Self::Name { .. }
            | Self::BranchTaken { .. }
            | Self::NoSuchCommit { .. }
            | Self::Unsupported(_)
            | Self::NotEmpty { .. }
            | Self::NoGit { .. } => false,
        }
    }

    pub(crate) fn objects(doing: &'static str, source: gix::Error) -> Self {
        Self::Objects { doing, source: Box::new(source) }
    }

    pub(crate) fn walking(source: io::Error) -> Self {
        Self::Io { doing: "go over the working tree", source }
    }
}
