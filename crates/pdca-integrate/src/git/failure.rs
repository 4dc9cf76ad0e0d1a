//! What can go wrong with a repository, its refs and the git that serves it.

use std::io;

use camino::Utf8PathBuf;
use gix::ObjectId;
use thiserror::Error;

/// Why something could not be read from or written to the object store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no repository at the path itself.
    #[error("{path} is not a git repository")]
    NotARepository {
        /// What was given.
        path: Utf8PathBuf,
        /// What was found there.
        #[source]
        source: Box<gix::Error>,
    },
    /// A path that is not UTF-8.
    #[error("{path} cannot be used: it is not UTF-8")]
    Path {
        /// The path, as far as it can be shown.
        path: String,
    },
    /// There is no git, or it is too old.
    #[error(transparent)]
    NoGit(#[from] pdca_process::GitError),
    /// The object is not in the store, or is no commit.
    #[error("no commit {commit}")]
    NoSuchCommit {
        /// The commit.
        commit: ObjectId,
    },
    /// Objects or refs could not be read or written.
    #[error("cannot {doing}")]
    Objects {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: Box<gix::Error>,
    },
    /// The system would not.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
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
    /// Something is not in the form it must have.
    #[error("{what} has a form that is not understood")]
    Form {
        /// What it is.
        what: String,
    },
}

/// Why refs did not move. None of them did.
#[derive(Debug, Error)]
pub enum RefError {
    /// Another driver took over; this one must stop.
    #[error("the fence is at {}, not at epoch {held}", found_epoch(*found))]
    Fenced {
        /// The epoch that the caller holds.
        held: u64,
        /// The epoch that was found.
        found: Option<u64>,
    },
    /// Another driver is in the middle of a change of refs and does not come to its end.
    #[error("{path} is held by a driver that does not let go")]
    FenceBusy {
        /// The lock file.
        path: Utf8PathBuf,
    },
    /// A ref is not where it was expected.
    #[error("{name} is at {}, not at {}", shown(*actual), shown(*expected))]
    Moved {
        /// The ref.
        name: String,
        /// Where it had to be; none where it must not exist.
        expected: Option<ObjectId>,
        /// Where it is.
        actual: Option<ObjectId>,
    },
    /// Somebody else's lock file is in the way.
    #[error("{path} is in the way")]
    Locked {
        /// The lock file.
        path: Utf8PathBuf,
    },
    /// A name that cannot be that of a ref.
    #[error("{name:?} cannot be the name of a ref")]
    Name {
        /// What was given.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn shown(id: Option<ObjectId>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.to_string())
}

fn found_epoch(epoch: Option<u64>) -> String {
    epoch.map_or_else(|| "no epoch".to_owned(), |epoch| format!("epoch {epoch}"))
}

impl StoreError {
    pub(crate) fn objects(doing: &'static str, source: gix::Error) -> Self {
        Self::Objects { doing, source: Box::new(source) }
    }

    pub(crate) fn io(doing: &'static str, path: impl Into<Utf8PathBuf>, source: io::Error) -> Self {
        Self::Io { doing, path: path.into(), source }
    }
}
