//! Admission: kernel locks on the target repositories, held for the life of a run.
//!
//! The lock of a target is a file in its git *common* directory, so it is the same inode through a
//! symbolic link, a bind mount or another worktree. The kernel releases it when its holder dies. The
//! text in the file is for people; nothing is decided by it.
//!
//! A forced takeover replaces the file by a *new* one that the taker has locked before anyone can see
//! it. The previous holder keeps a lock on an unlinked file and notices that before each write
//! ([`Admission::is_current`]); the fence in the repository refuses its ref updates.

mod rule;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;

pub use rule::{AdmissionRefusal, AdmissionRuling, RunFact, rule};

/// The right to work on targets. The locks are released when this and every journal that was opened
/// with it are dropped.
#[derive(Debug, Clone)]
pub struct Admission {
    held: Arc<Vec<HeldLock>>,
}

#[derive(Debug)]
struct HeldLock {
    path: Utf8PathBuf,
    file: File,
    found: String,
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
    /// The lock was replaced or probed on every one of many attempts.
    #[error("the lock {path} keeps being replaced")]
    Unsteady { path: Utf8PathBuf },
    /// The path is not a usable regular file, for instance a symbolic link.
    #[error("cannot use {path} as a lock")]
    Unusable { path: Utf8PathBuf, source: io::Error },
}

/// Attempts at a lock that is replaced or probed while it is taken.
const PATIENCE: u32 = 1000;
/// The most bytes that are read from a lock file.
const MAX_WORDS: u64 = 4096;

/// The path of a target's lock in its git common directory.
pub fn lock_path(common_dir: &Utf8Path) -> Utf8PathBuf {
    common_dir.join("pdca.lock")
}

type Lock = fn(&File) -> Result<(), TryLockError>;

impl Admission {
    /// Takes the locks at all of `paths`, or none. Never waits.
    ///
    /// The directory of each path must exist, see [`lock_path`]. A run without a target needs no lock.
    pub fn take(
        paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
    ) -> Result<Self, AdmissionError> {
        Self::take_with(paths, File::try_lock)
    }

    fn take_with(
        paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
        lock: Lock,
    ) -> Result<Self, AdmissionError> {
        let mut all: Vec<HeldLock> = Vec::new();
        for path in sorted(paths) {
            // Two targets may be worktrees of one repository, which have one lock.
            all.extend(take(path, &all, lock)?);
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
        let mut all: Vec<HeldLock> = Vec::new();
        for path in sorted(paths) {
            // Replacing the lock of a repository a second time would unlink the first replacement,
            // and the admission would not be current from the start.
            let is_ours = |held: &HeldLock| names(&path, &held.file).unwrap_or(false);
            if !all.iter().any(is_ours) {
                all.push(replace(&path).map_err(|source| unusable(&path, source))?);
            }
        }
        Ok(Self { held: Arc::new(all) })
    }

    /// The text that earlier holders left in the locks, for [`LockHolder::from_words`]. Their runs may
    /// belong to another workspace.
    pub fn words_found(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(|held| held.found.as_str())
    }

    /// Writes the name of the holder into the locks, for people.
    pub fn announce(&self, holder: &LockHolder) -> Result<(), AdmissionError> {
        self.held.iter().try_for_each(|held| {
            held.write(&holder.to_string()).map_err(|source| unusable(&held.path, source))
        })
    }

    /// Returns true while every path still names the locked file; false after a takeover.
    pub fn is_current(&self) -> bool {
        // A path that cannot be looked at counts as lost: stopping is safe, and writing is not.
        self.held.iter().all(|held| names(&held.path, &held.file).unwrap_or(false))
    }
}

/// Returns the text of the holder of the lock at `path`, or `None` if it is free. Creates no file.
pub fn holder(path: &Utf8Path) -> Result<Option<String>, AdmissionError> {
    let file = match open(path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(unusable(path, source)),
    };
    // Shared, so that two probes do not see each other as holders and `take` can tell a probe from
    // a driver.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(words_or_somebody(&file))),
        Err(TryLockError::Error(source)) => {
            Err(AdmissionError::CannotLock { path: path.to_owned(), source: Some(source) })
        }
    }
}

fn sorted(paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>) -> Vec<Utf8PathBuf> {
    let mut paths: Vec<Utf8PathBuf> = paths.into_iter().map(Into::into).collect();
    // All drivers lock in one order. Of two that want the same targets, the one that gets the first
    // of them gets all; in different orders each could refuse the other.
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Takes one lock; `None` if it is the same file as one of `ours`.
fn take(
    path: Utf8PathBuf,
    ours: &[HeldLock],
    lock: Lock,
) -> Result<Option<HeldLock>, AdmissionError> {
    let cannot = |source| AdmissionError::CannotLock { path: path.clone(), source };
    for _ in 0..PATIENCE {
        let file = open(&path, true).map_err(|source| unusable(&path, source))?;
        // Before the lock: it belongs to the open file and not to the process, so our own lock
        // would refuse this one.
        if ours.iter().any(|held| same(&held.file, &file).unwrap_or(false)) {
            return Ok(None);
        }
        match lock(&file) {
            Ok(()) => {}
            // `holder` probes with a shared lock for a moment; a real holder has an exclusive one.
            Err(TryLockError::WouldBlock) if file.try_lock_shared().is_ok() => {
                std::thread::yield_now();
                continue;
            }
            Err(TryLockError::WouldBlock) => {
                let holder = words_or_somebody(&file);
                return Err(AdmissionError::Held { path, holder });
            }
            Err(TryLockError::Error(source)) => return Err(cannot(Some(source))),
        }
        let found = words(&file);
        let held = HeldLock { path: path.clone(), file, found };
        // A forced takeover may have replaced the file since it was opened: lock the new one.
        if !names(&path, &held.file).map_err(|source| unusable(&path, source))? {
            continue;
        }
        // Some file systems grant every lock request. Check that a second request is refused.
        let again = open(&path, false).map_err(|source| unusable(&path, source))?;
        return match lock(&again) {
            Err(TryLockError::WouldBlock) => Ok(Some(held)),
            Ok(()) => Err(cannot(None)),
            Err(TryLockError::Error(source)) => Err(cannot(Some(source))),
        };
    }
    Err(AdmissionError::Unsteady { path })
}

/// Replaces a lock by a new file, which is locked before its path names it.
fn replace(path: &Utf8Path) -> io::Result<HeldLock> {
    let found = match open(path, false) {
        Ok(file) => words(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    // A process that died here and had the same number may have left a file of this name.
    let new = Utf8PathBuf::from(format!("{path}.new-{}", std::process::id()));
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = File::options().read(true).write(true).create_new(true).open(&new)?;
    // Before the rename: between a rename and a lock, another driver could lock the new file.
    file.try_lock().map_err(io::Error::from)?;
    fs_err::rename(&new, path)?;
    Ok(HeldLock { path: path.to_owned(), file, found })
}

/// Opens a regular file; follows no link and does not block on a pipe.
fn open(path: &Utf8Path, create: bool) -> io::Result<File> {
    // Anything may lie at the path. A link would make a file elsewhere the lock, and opening a pipe
    // would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).write(create).create(create).truncate(false);
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Returns true if the path names this file, by device and inode.
fn names(path: &Utf8Path, file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// The text of a lock as one line without control characters.
fn words(file: &File) -> String {
    let mut bytes = Vec::new();
    // The text is only for people, so a failed read is not an error.
    if file.take(MAX_WORDS).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

fn words_or_somebody(file: &File) -> String {
    let words = words(file);
    if words.is_empty() { "another process".to_owned() } else { words }
}

fn unusable(path: &Utf8Path, source: io::Error) -> AdmissionError {
    AdmissionError::Unusable { path: path.to_owned(), source }
}

impl HeldLock {
    fn write(&self, words: &str) -> io::Result<()> {
        // In place: a rename would put another file at the path, and the lock is on this one. A
        // reader that sees the text half written only shows it.
        self.file.set_len(0)?;
        self.file.write_all_at(format!("{words}\n").as_bytes(), 0)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that is being started has a copy of the descriptor for a
        // moment. An error here can only mean that the file is not locked.
        drop(self.file.unlock());
    }
}
