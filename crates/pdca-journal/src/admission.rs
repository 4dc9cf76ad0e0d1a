//! Admission: kernel locks on the target repositories, held for the life of a run.
//!
//! The lock of a target is a file in its git *common* directory, so it is the same inode through a
//! symbolic link, a bind mount or another worktree. The kernel releases it when its holder dies. The
//! text in the file is for people; nothing is decided by it. A process that can only read the repository
//! cannot hold it ([`FileLock`]).
//!
//! A forced takeover replaces the file by a *new* one that the taker has locked before anyone can see
//! it. The previous holder keeps a lock on an unlinked file and notices that before each write
//! ([`Admission::is_current`]); the fence in the repository refuses its ref updates.

mod rule;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{FileLock, FileLockError};

pub use rule::{AdmissionRefusal, AdmissionRuling, RunFact, rule};

/// The right to work on targets. The locks are released when this and every journal that was opened
/// with it are dropped.
#[derive(Debug, Clone)]
pub struct Admission {
    held: Arc<Vec<FileLock>>,
}

/// The text in a lock file, which names its holder for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    pub host: String,
    pub workspace: Utf8PathBuf,
    pub run: String,
}

impl LockHolder {
    /// Parses the text in a lock file; `None` if it has another form.
    ///
    /// Only a hint where to find the journal of an interrupted run.
    pub fn from_words(words: &str) -> Option<Self> {
        let (pid, rest) = words.strip_prefix("process ")?.split_once(" on ")?;
        let (host, rest) = rest.split_once(", run ")?;
        let (run, workspace) = rest.split_once(" of ")?;
        Some(Self {
            pid: pid.parse().ok()?,
            host: host.to_owned(),
            workspace: workspace.into(),
            run: run.to_owned(),
        })
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, host, workspace, run } = self;
        write!(f, "process {pid} on {host}, run {run} of {workspace}")
    }
}

/// The error of taking a lock. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// Another process holds the lock.
    #[error("{path} is held by {holder}")]
    Held {
        path: Utf8PathBuf,
        /// The text that the holder wrote into the lock file.
        holder: String,
    },
    /// The file system does not support locks, so other drivers could not be kept out.
    #[error("the filesystem of {path} cannot lock")]
    CannotLock {
        path: Utf8PathBuf,
        /// `None` if the file system granted the same lock twice.
        source: Option<io::Error>,
    },
    /// The path is not a usable regular file, for instance a symbolic link.
    #[error("cannot use {path} as a lock")]
    Unusable { path: Utf8PathBuf, source: io::Error },
}

/// The path of a target's lock in its git common directory.
pub fn lock_path(common_dir: &Utf8Path) -> Utf8PathBuf {
    common_dir.join("pdca.lock")
}

impl Admission {
    /// Takes the locks at all of `paths`, or none. Never waits.
    ///
    /// The directory of each path must exist, see [`lock_path`]. A run without a target needs no lock.
    pub fn take(
        paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
    ) -> Result<Self, AdmissionError> {
        Self::take_each(paths, |path| FileLock::take(path, ""))
    }

    fn take_each(
        paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
        take: impl Fn(&Utf8Path) -> Result<FileLock, FileLockError>,
    ) -> Result<Self, AdmissionError> {
        let mut all: Vec<FileLock> = Vec::new();
        for path in sorted(paths) {
            // Two targets may be worktrees of one repository, which have one lock. Taking it a second time would be
            // refused by the first, or replace it.
            let is_ours = |held: &FileLock| held.is_at(&path).unwrap_or(false);
            if !all.iter().any(is_ours) {
                all.push(take(&path)?);
            }
        }
        Ok(Self { held: Arc::new(all) })
    }

    /// Takes the locks at all of `paths`, even from a live holder.
    ///
    /// This does not stop the holder. Bump the fence before anything else: of two drivers that take
    /// over at the same time, the first to bump it has the repository.
    pub fn take_over(
        paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
    ) -> Result<Self, AdmissionError> {
        Self::take_each(paths, FileLock::take_over)
    }

    /// The text that earlier holders left in the locks, for [`LockHolder::from_words`]. Their runs may
    /// belong to another workspace.
    pub fn words_found(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(FileLock::found)
    }

    /// Writes the name of the holder into the locks, for people.
    pub fn announce(&self, holder: &LockHolder) -> Result<(), AdmissionError> {
        self.held.iter().try_for_each(|held| {
            held.write(&format!("{holder}\n")).map_err(|source| unusable(held.path(), source))
        })
    }

    /// Returns true while every path still names the locked file; false after a takeover.
    pub fn is_current(&self) -> bool {
        // A path that cannot be looked at counts as lost: stopping is safe, and writing is not.
        self.held.iter().all(|held| held.is_current().unwrap_or(false))
    }
}

/// Returns the text of the holder of the lock at `path`, or `None` if it is free. Creates no file.
pub fn holder(path: &Utf8Path) -> Result<Option<String>, AdmissionError> {
    let holder = FileLock::holder(path).map_err(|source| unusable(path, source))?;
    Ok(holder.map(words_or_somebody))
}

fn sorted(paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>) -> Vec<Utf8PathBuf> {
    let mut paths: Vec<Utf8PathBuf> = paths.into_iter().map(Into::into).collect();
    // All drivers lock in one order. Of two that want the same targets, the one that gets the first
    // of them gets all; in different orders each could refuse the other.
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn words_or_somebody(words: String) -> String {
    if words.is_empty() { "another process".to_owned() } else { words }
}

fn unusable(path: &Utf8Path, source: io::Error) -> AdmissionError {
    AdmissionError::Unusable { path: path.to_owned(), source }
}

impl From<FileLockError> for AdmissionError {
    fn from(error: FileLockError) -> Self {
        match error {
            FileLockError::Held { path, text } => {
                Self::Held { path, holder: words_or_somebody(text) }
            }
            FileLockError::CannotLock { path, source } => Self::CannotLock { path, source },
            FileLockError::Unusable { path, source } => Self::Unusable { path, source },
        }
    }
}
