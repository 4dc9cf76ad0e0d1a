//! Who may work on a repository: kernel locks, held for the life of a run.
//!
//! The lock of a target lies in its git *common* directory, so it is the same file through a symbolic
//! link, a bind mount or another worktree: what counts is the inode. The kernel gives it up when its
//! holder dies, however it dies. What is written in the file is for people, and says where to look;
//! nothing is decided by it.
//!
//! Taking over by force puts a *new* file in place, which only the taker has locked. The one before
//! keeps a lock on a file that no path names; that its refs are refused is the fence's business.

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

pub use rule::{AdmissionRefusal, LockFact, Ruling, RunFact, rule};

/// The right to work on targets. It is given back when this and every journal that was opened with it
/// are dropped.
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

/// Who holds a lock, as it is written down for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The process.
    pub pid: u32,
    /// Where it runs.
    pub host: String,
    /// The workspace whose run it is.
    pub workspace: Utf8PathBuf,
    /// The run.
    pub run: String,
}

impl LockHolder {
    /// Reads what a holder has written into a lock; `None` where that says something else.
    ///
    /// A hint where to look for the journal of a run that was left, and no more than that.
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

/// Why a target may not be worked on. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// Somebody else works on it.
    #[error("{path} is held by {holder}")]
    Held {
        /// The lock.
        path: Utf8PathBuf,
        /// Who, by their own word.
        holder: String,
    },
    /// Its filesystem cannot lock, so nobody could be kept out.
    #[error("the filesystem of {path} cannot lock")]
    CannotLock {
        /// The lock.
        path: Utf8PathBuf,
        /// What the system said; none where it granted one lock twice.
        source: Option<io::Error>,
    },
    /// The lock is replaced, or looked at, again and again.
    #[error("{path} does not come to rest")]
    Unsteady {
        /// The lock.
        path: Utf8PathBuf,
    },
    /// The lock cannot be used. A link in its place is not followed.
    #[error("cannot use {path} as a lock")]
    Unusable {
        /// The lock.
        path: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// How often a lock is tried again that was replaced while it was taken, or only looked at.
const PATIENCE: u32 = 1000;
/// More than is ever written into a lock.
const MAX_WORDS: u64 = 4096;

/// Where the lock of a target is, in its git common directory.
pub fn lock_path(common_dir: &Utf8Path) -> Utf8PathBuf {
    common_dir.join("pdca.lock")
}

type Lock = fn(&File) -> Result<(), TryLockError>;

impl Admission {
    /// Takes the locks at all of `paths`, in sorted order, or none. Never waits.
    ///
    /// A path lies in an existing directory, see [`lock_path`]. A run without a target touches no
    /// repository and needs no lock.
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
            // Two targets may be worktrees of one repository: then one lock stands for both.
            all.extend(take(path, &all, lock)?);
        }
        Ok(Self { held: Arc::new(all) })
    }

    /// Takes the locks at all of `paths`, also from a holder that lives.
    ///
    /// The holder is not stopped by this. Bump the fence before anything else: whoever does that first
    /// of two that take over at once has the repository.
    pub fn take_over(
        paths: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
    ) -> Result<Self, AdmissionError> {
        let mut all: Vec<HeldLock> = Vec::new();
        for path in sorted(paths) {
            let is_ours = |held: &HeldLock| names(&path, &held.file).unwrap_or(false);
            if !all.iter().any(is_ours) {
                all.push(replace(&path).map_err(|source| unusable(&path, source))?);
            }
        }
        Ok(Self { held: Arc::new(all) })
    }

    /// What the holders before have written into the locks: where to look for a run that they left,
    /// which may be of another workspace. See [`LockHolder::from_words`].
    pub fn words_found(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(|held| held.found.as_str())
    }

    /// Writes down who holds the locks, for people.
    pub fn announce(&self, holder: &LockHolder) -> Result<(), AdmissionError> {
        self.held.iter().try_for_each(|held| {
            held.write(&holder.to_string()).map_err(|source| unusable(&held.path, source))
        })
    }

    /// Whether every lock is still the file that its path names: false once somebody took over.
    pub fn is_current(&self) -> bool {
        self.held.iter().all(|held| names(&held.path, &held.file).unwrap_or(false))
    }
}

/// Who holds the lock at `path`, by their own word; `None` where nobody does. Makes nothing.
pub fn holder(path: &Utf8Path) -> Result<Option<String>, AdmissionError> {
    let file = match open(path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(unusable(path, source)),
    };
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
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Takes one lock; `None` where it is one of those that are held already.
fn take(
    path: Utf8PathBuf,
    ours: &[HeldLock],
    lock: Lock,
) -> Result<Option<HeldLock>, AdmissionError> {
    let cannot = |source| AdmissionError::CannotLock { path: path.clone(), source };
    for _ in 0..PATIENCE {
        let file = open(&path, true).map_err(|source| unusable(&path, source))?;
        if ours.iter().any(|held| same(&held.file, &file).unwrap_or(false)) {
            return Ok(None);
        }
        match lock(&file) {
            Ok(()) => {}
            // Somebody who only looks shares the lock for a moment. Whoever holds it does not share it.
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
        // Somebody who took over has put another file there since it was opened.
        if !names(&path, &held.file).map_err(|source| unusable(&path, source))? {
            continue;
        }
        // A filesystem may say yes to everybody. Then the lock says nothing.
        let again = open(&path, false).map_err(|source| unusable(&path, source))?;
        return match lock(&again) {
            Err(TryLockError::WouldBlock) => Ok(Some(held)),
            Ok(()) => Err(cannot(None)),
            Err(TryLockError::Error(source)) => Err(cannot(Some(source))),
        };
    }
    Err(AdmissionError::Unsteady { path })
}

/// Puts a new file in place of a lock, which is locked before anybody can see it.
fn replace(path: &Utf8Path) -> io::Result<HeldLock> {
    let found = match open(path, false) {
        Ok(file) => words(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let new = Utf8PathBuf::from(format!("{path}.new-{}", std::process::id()));
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = File::options().read(true).write(true).create_new(true).open(&new)?;
    file.try_lock().map_err(io::Error::from)?;
    fs_err::rename(&new, path)?;
    Ok(HeldLock { path: path.to_owned(), file, found })
}

/// Opens what lies at the path itself: no link is followed, nothing is waited for.
fn open(path: &Utf8Path, create: bool) -> io::Result<File> {
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

/// Whether the path names this very file.
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

/// What is written in a lock: one line that is harmless to a terminal.
fn words(file: &File) -> String {
    let mut bytes = Vec::new();
    // For people only: what cannot be read is not worth a refusal.
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
        self.file.set_len(0)?;
        self.file.write_all_at(format!("{words}\n").as_bytes(), 0)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that is being started has a copy for a moment. That it
        // cannot be unlocked can only mean that it is not locked.
        drop(self.file.unlock());
    }
}
