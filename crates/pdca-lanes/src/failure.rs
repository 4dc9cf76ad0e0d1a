//! The errors of operations in a lane.

use std::io;

use camino::Utf8PathBuf;
use rustix::io::Errno;
use thiserror::Error;

use pdca_process::{GitCallError, ToolError};
use pdca_state::PatchError;

use crate::feature::Feature;

/// Failure of an operation in a lane.
#[derive(Debug, Error)]
pub enum LaneError {
    /// The lane was modified in such a way that working in it could write elsewhere.
    #[error("{path} {why}")]
    Damaged {
        /// The damaged path.
        path: Utf8PathBuf,
        /// The damage in words.
        why: &'static str,
    },
    /// An object that a commit of the lane needs is missing there, or is not what its id says.
    #[error("object {id} of the lane {why}")]
    Untrue {
        /// The id of the object.
        id: String,
        /// The fault in words.
        why: &'static str,
    },
    /// The path contains a character that git's own files cannot hold.
    #[error("{path:?} cannot be used as a path of a lane")]
    Path {
        /// The path.
        path: Utf8PathBuf,
    },
    /// The name cannot be part of a ref.
    #[error("{name:?} cannot be the name of a ref")]
    Name {
        /// The name as given.
        name: String,
    },
    /// A branch of this name exists, and HEAD of the lane is not on it.
    #[error("there is a branch {branch:?} already")]
    BranchTaken {
        /// The branch.
        branch: String,
    },
    /// The target has no such commit. A commit that exists but cannot be read is [`Objects`](Self::Objects).
    #[error("no commit {commit:?}")]
    NoSuchCommit {
        /// The id as given.
        commit: String,
    },
    /// The tree uses a feature that a lane does not support. Nothing was changed.
    #[error("the tree {0}")]
    Unsupported(Feature),
    /// A file of the tree could not be written.
    #[error("{path:?} could not be written")]
    NotWritten {
        /// The first such path.
        path: String,
    },
    /// The destination of a copy is not empty.
    #[error("{path} is not empty")]
    NotEmpty {
        /// The destination.
        path: Utf8PathBuf,
    },
    /// Objects, refs or the index could not be read or written.
    #[error("cannot {doing}")]
    Objects {
        /// The operation, as a verb.
        doing: &'static str,
        /// The underlying error.
        #[source]
        source: Box<gix::Error>,
    },
    /// An operation of the system failed.
    #[error("cannot {doing}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A file, or all changed files together, are too large to hash. git was not started.
    #[error("{path} has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The file that exceeds the limit, or the largest of those that exceed it together.
        path: String,
        /// The size of the file, or the sum.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A call of git failed.
    #[error(transparent)]
    Git(#[from] GitCallError),
    /// No usable git was found.
    #[error("cannot find git")]
    NoGit {
        /// The error of the search.
        #[source]
        source: pdca_process::GitError,
    },
}

/// Failure to apply a patch. Nothing was changed.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// The patch was rejected before git saw it.
    #[error(transparent)]
    Refused(#[from] PatchError),
    /// The patch does not match the checkout.
    #[error("the patch does not apply: {reason}")]
    DoesNotApply {
        /// The file that did not match, if git names one.
        file: Option<String>,
        /// The line of the patch, counted from 1.
        line: Option<usize>,
        /// The message of git.
        reason: String,
    },
    /// An operation in the lane failed.
    #[error(transparent)]
    Lane(#[from] LaneError),
}

impl LaneError {
    /// Returns true if the content of the lane is the cause, so that the operation would succeed in a lane created
    /// anew.
    pub fn is_of_the_lane(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::Untrue { .. }
            | Self::NotWritten { .. }
            | Self::Objects { .. }
            | Self::TooLarge { .. }
            | Self::Git(GitCallError::Failed { .. }) => true,
            Self::Io { source, .. } => !is_of_the_host(source),
            // A git that hangs does so because of the content of the lane; one that was cancelled or is missing does
            // not.
            Self::Git(GitCallError::Tool { source, .. }) => {
                matches!(source, ToolError::TimedOut { .. } | ToolError::TooMuchOutput { .. })
            }
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

/// Returns true if a new lane would meet the same error.
fn is_of_the_host(error: &io::Error) -> bool {
    let is_named = matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::Interrupted
            | io::ErrorKind::OutOfMemory
    );
    // These have no kind: too many open files, of this process or of the system, and a failing disk. Found in the
    // text, because `fs_err` keeps the number nowhere else.
    let text = error.to_string();
    let is_numbered =
        |errno: Errno| text.ends_with(&format!("(os error {})", errno.raw_os_error()));
    is_named || [Errno::MFILE, Errno::NFILE, Errno::IO].into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_new_lane_would_meet_as_well_is_not_of_the_lane() {
        let numbered = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        // Address zero of a process cannot be read, which is an error of this number.
        let wrapped = fs_err::read("/proc/self/mem").unwrap_err();
        assert!(wrapped.to_string().contains("/proc/self/mem"), "{wrapped}");
        let table = [
            (numbered(Errno::MFILE), false),
            (numbered(Errno::NFILE), false),
            (numbered(Errno::NOMEM), false),
            (numbered(Errno::IO), false),
            (wrapped, false),
            (numbered(Errno::NOSPC), false),
            (numbered(Errno::LOOP), true),
            (numbered(Errno::NOTDIR), true),
            (numbered(Errno::ACCESS), true),
        ];
        for (source, expected) in table {
            let error = LaneError::Io { doing: "read", source };
            assert_eq!(error.is_of_the_lane(), expected, "{error:?}");
        }
    }
}
