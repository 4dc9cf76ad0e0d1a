//! Errors of the object store and of ref updates.

use std::io;

use camino::Utf8PathBuf;
use gix::ObjectId;
use thiserror::Error;

/// The reasons why the object store could not be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("{path} is not a git repository")]
    NotARepository {
        path: Utf8PathBuf,
        #[source]
        source: Box<gix::Error>,
    },
    #[error("{path} cannot be used: it is not UTF-8")]
    Path {
        /// A printable form of the path.
        path: String,
    },
    #[error(transparent)]
    NoGit(#[from] pdca_process::GitError),
    /// The object does not exist, or is not a commit.
    #[error("no commit {commit}")]
    NoSuchCommit { commit: ObjectId },
    #[error("cannot {doing}")]
    Objects {
        doing: &'static str,
        #[source]
        source: Box<gix::Error>,
    },
    #[error("cannot {doing} {path}")]
    Io {
        doing: &'static str,
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Git(#[from] pdca_process::GitCallError),
    /// Git calls such a commit invalid, and remotes that check objects refuse it.
    #[error(
        "the date of a commit is {seconds} seconds after 1970, and none before 1970 can be written: correct the clock or SOURCE_DATE_EPOCH"
    )]
    BeforeEpoch { seconds: i64 },
    #[error("unexpected format of {what}")]
    Form { what: String },
}

/// The reasons why refs did not move. None of them moved, unless the store failed when they were synced.
#[derive(Debug, Error)]
pub enum RefError {
    /// Another driver took over; this one must stop.
    #[error("the fence is at {}, not at epoch {held}", found_epoch(*found))]
    Fenced {
        /// The epoch that the caller holds.
        held: u64,
        /// The epoch of the fence.
        found: Option<u64>,
    },
    /// Another driver holds the kernel lock for too long.
    #[error("{path} is held by another driver for too long")]
    FenceBusy { path: Utf8PathBuf },
    /// A ref is not at the expected value.
    #[error("{name} is at {}, not at {}", shown(*actual), shown(*expected))]
    Moved {
        name: String,
        /// The expected value; `None` if the ref must not exist.
        expected: Option<ObjectId>,
        actual: Option<ObjectId>,
    },
    /// A lock file of another process is in the way.
    #[error("lock file {path} of another process is in the way")]
    Locked { path: Utf8PathBuf },
    #[error("{name:?} cannot be the name of a ref")]
    Name { name: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn shown(id: Option<ObjectId>) -> String {
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
