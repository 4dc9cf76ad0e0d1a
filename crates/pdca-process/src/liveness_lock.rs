//! A lock file that tells whether any child of a driver is alive.
//!
//! 1. Every supervisor locks the file shared before it starts its child.
//! 2. It keeps the lock until it exits, by which time the child's whole tree is dead. The kernel releases the lock
//!    with the supervisor, however that ends, so no stale lock remains.
//! 3. A new driver that gets the lock exclusively therefore knows that no child of an earlier driver runs any more.
//!
//! The content of the file means nothing, and the file is never removed: removing it would let two processes lock two
//! different files of the same name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;

/// The time a supervisor waits while a driver holds the lock exclusively. A driver does so only for
/// the moment in which it finds that the lock is free.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The interval between two attempts.
const STEP: Duration = Duration::from_millis(10);

/// Failure to take a lock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LivenessLockError {
    /// The lock is still held by another process.
    #[error("{path} is still held after {waited:?}")]
    StillHeld {
        /// The lock file.
        path: Utf8PathBuf,
        /// The time spent waiting.
        waited: Duration,
    },
    /// The lock file cannot be opened or locked.
    #[error("cannot lock {path}")]
    Io {
        /// The lock file.
        path: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Waits until no child described with `path` as its [`Spec::hold`](crate::Spec::hold) is alive. A missing file is
/// free.
///
/// A supervisor that has not taken the lock yet, because its driver has just died, is not waited for: it finds its
/// driver gone and starts nothing.
pub fn wait_until_free(path: &Utf8Path, patience: Duration) -> Result<(), LivenessLockError> {
    let file = match open(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(LivenessLockError::Io { path: path.to_owned(), source }),
    };
    poll(path, patience, || file.try_lock(), || false)?;
    // Closing is not enough: a child that is being forked at this moment has a copy of the descriptor.
    file.unlock().map_err(|source| LivenessLockError::Io { path: path.to_owned(), source })
}

/// Takes `lock` exclusively, without waiting for an exclusive holder.
///
/// A process that only probes the lock shares it for a moment. Such a probe is waited out; an exclusive holder makes
/// this fail at once with `WouldBlock`.
pub fn lock_alone(lock: &File) -> Result<(), TryLockError> {
    /// The number of attempts; together longer than any probe takes.
    const LOOKS: u32 = 500;
    for _ in 0..LOOKS {
        match lock.try_lock() {
            // Sharing succeeds beside a probe and fails beside an exclusive holder.
            Err(TryLockError::WouldBlock) => lock.try_lock_shared()?,
            done => return done,
        }
        lock.unlock().map_err(TryLockError::Error)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(TryLockError::WouldBlock)
}

/// Locks `path` shared, for as long as the returned file is open. Returns `None` once `unwanted` returns true.
pub(crate) fn share(
    path: &Utf8Path,
    patience: Duration,
    unwanted: impl FnMut() -> bool,
) -> Result<Option<File>, LivenessLockError> {
    let mut options = OpenOptions::new();
    let file = open(options.read(true).write(true).create(true).truncate(false), path)
        .map_err(|source| LivenessLockError::Io { path: path.to_owned(), source })?;
    let shared = poll(path, patience, || file.try_lock_shared(), unwanted)?;
    Ok(shared.then_some(file))
}

/// Opens the file itself: no symbolic link is followed, and a FIFO is not waited for.
fn open(options: &mut OpenOptions, path: &Utf8Path) -> io::Result<File> {
    // A child without a sandbox can replace the file. A link would lead to another lock, and
    // opening a FIFO waits for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Retries until `attempt` succeeds (`true`), `unwanted` returns true (`false`) or `patience` is over.
fn poll(
    path: &Utf8Path,
    patience: Duration,
    attempt: impl Fn() -> Result<(), TryLockError>,
    mut unwanted: impl FnMut() -> bool,
) -> Result<bool, LivenessLockError> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(source)) => {
                return Err(LivenessLockError::Io { path: path.to_owned(), source });
            }
        }
        if unwanted() {
            return Ok(false);
        }
        let waited = begun.elapsed();
        if waited >= patience {
            return Err(LivenessLockError::StillHeld { path: path.to_owned(), waited });
        }
        std::thread::sleep(STEP.min(patience.saturating_sub(waited)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Utf8PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("hold");
        (directory, path)
    }

    #[test]
    fn a_lock_is_shared_by_many_and_free_only_without_any() {
        let (_directory, path) = place();
        wait_until_free(&path, Duration::ZERO).unwrap();
        assert!(!path.exists(), "asking creates nothing");
        let share = || share(&path, Duration::ZERO, || false).unwrap().unwrap();
        let (one, two) = (share(), share());
        for file in [one, two] {
            let error = wait_until_free(&path, Duration::ZERO).unwrap_err();
            assert!(matches!(error, LivenessLockError::StillHeld { .. }), "{error}");
            file.unlock().unwrap();
        }
        wait_until_free(&path, Duration::ZERO).unwrap();
        // Waiting did not keep the lock.
        share();
    }

    #[test]
    fn a_lock_that_is_taken_is_waited_for_until_it_is_unwanted_or_too_late() {
        let (_directory, path) = place();
        std::fs::write(&path, "kept").unwrap();
        let owner = File::open(&path).unwrap();
        owner.lock().unwrap();
        let error = share(&path, Duration::from_millis(1), || false).unwrap_err();
        assert!(matches!(error, LivenessLockError::StillHeld { .. }), "{error}");
        let mut asked = 0;
        let unwanted = share(&path, PATIENCE, || {
            asked += 1;
            asked == 2
        });
        assert!(unwanted.unwrap().is_none());
        let released = share(&path, PATIENCE, || {
            owner.unlock().unwrap();
            false
        });
        assert!(released.unwrap().is_some());
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn a_link_is_no_lock() {
        let (_directory, path) = place();
        std::os::unix::fs::symlink(path.with_extension("elsewhere"), &path).unwrap();
        let error = share(&path, Duration::ZERO, || false).unwrap_err();
        assert!(matches!(error, LivenessLockError::Io { .. }), "{error}");
        let error = wait_until_free(&path, Duration::ZERO).unwrap_err();
        assert!(matches!(error, LivenessLockError::Io { .. }), "{error}");
        assert!(!path.with_extension("elsewhere").exists());
    }
}
