//! A lock that tells whether any child of a driver is alive.
//!
//! 1. Every supervisor joins the holders of the lock before it starts its child.
//! 2. It keeps its hold until it exits, by which time the child's whole tree is dead. The kernel releases the lock
//!    with the supervisor, however that ends, so no stale lock remains.
//! 3. A new driver that finds no live holder therefore knows that no child of an earlier driver runs any more.
//!
//! Each holder has a file of its own beside the path. A child can only read them, so it can neither hold the lock nor
//! keep a supervisor from joining.

use std::io;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::file_lock::{FileLockError, SharedHold, is_shared};

/// The interval between two looks.
const STEP: Duration = Duration::from_millis(10);

/// Failure to wait for a lock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LivenessLockError {
    /// The lock is still held by another process.
    #[error("{path} is still held after {waited:?}")]
    StillHeld {
        /// The lock.
        path: Utf8PathBuf,
        /// The time spent waiting.
        waited: Duration,
    },
    /// The files of the holders cannot be read.
    #[error("cannot lock {path}")]
    Io {
        /// The lock.
        path: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// One holder of a liveness lock, for as long as this lives.
#[derive(Debug)]
pub struct ChildHold {
    _shared: SharedHold,
}

/// Waits until no child described with `path` as its [`Spec::hold`](crate::Spec::hold) is alive. Creates nothing.
///
/// A supervisor that has not taken the lock yet, because its driver has just died, is not waited for: it finds its
/// driver gone and starts nothing.
pub fn wait_until_free(path: &Utf8Path, patience: Duration) -> Result<(), LivenessLockError> {
    let begun = Instant::now();
    loop {
        let held = is_shared(path)
            .map_err(|source| LivenessLockError::Io { path: path.to_owned(), source })?;
        if !held {
            return Ok(());
        }
        let waited = begun.elapsed();
        if waited >= patience {
            return Err(LivenessLockError::StillHeld { path: path.to_owned(), waited });
        }
        std::thread::sleep(STEP.min(patience.saturating_sub(waited)));
    }
}

/// Joins the holders of the lock at `path`, whose directory must exist. Never waits.
pub fn hold_as_child(path: &Utf8Path) -> Result<ChildHold, FileLockError> {
    Ok(ChildHold { _shared: SharedHold::join(path)? })
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
        let (directory, path) = place();
        wait_until_free(&path, Duration::ZERO).unwrap();
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "asking creates nothing");
        let share = || hold_as_child(&path).unwrap();
        for one in [share(), share()] {
            let error = wait_until_free(&path, Duration::ZERO).unwrap_err();
            assert!(matches!(error, LivenessLockError::StillHeld { .. }), "{error}");
            drop(one);
        }
        wait_until_free(&path, Duration::ZERO).unwrap();
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_directory_that_does_not_exist_has_no_holder() {
        let (_directory, path) = place();
        wait_until_free(&path.join("deep/hold"), Duration::ZERO).unwrap();
    }
}
