//! A lock that says whether any child is alive.
//!
//! Every supervisor shares the lock from before it starts its child until it exits, by which time
//! the child's whole tree is dead. The kernel gives the lock up with the supervisor, however that
//! ends. So whoever gets the lock alone knows that no child of an earlier driver runs any more. The
//! file itself means nothing, and stays.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;

/// How long a supervisor waits while somebody has the lock alone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How often a lock that is taken is tried again.
const STEP: Duration = Duration::from_millis(10);

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LivenessLockError {
    /// Somebody has it, still.
    #[error("{path} is still held after {waited:?}")]
    StillHeld {
        /// The lock file.
        path: Utf8PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The lock file cannot be opened or locked.
    #[error("cannot lock {path}")]
    Io {
        /// The lock file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Waits until nobody holds the lock at `path`: until no child described with this
/// [`Spec::hold`](crate::Spec::hold) is alive. A file that does not exist is held by nobody.
///
/// A supervisor that has not taken the lock yet, because its driver died that very moment, is not
/// waited for: it finds its driver gone and starts nothing.
pub fn wait_until_free(path: &Utf8Path, patience: Duration) -> Result<(), LivenessLockError> {
    let file = match open(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(LivenessLockError::Io { path: path.to_owned(), source }),
    };
    poll(path, patience, || file.try_lock(), || false)?;
    // Closing is not enough: a child that is being started has a copy for a moment.
    file.unlock().map_err(|source| LivenessLockError::Io { path: path.to_owned(), source })
}

/// Takes a lock that nobody has. Who only looks shares it for a moment, and is not somebody: one who has it
/// alone is told apart at once, and no refusal waits.
pub fn lock_alone(lock: &File) -> Result<(), TryLockError> {
    /// Longer than any look takes.
    const LOOKS: u32 = 500;
    for _ in 0..LOOKS {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => lock.try_lock_shared()?,
            done => return done,
        }
        lock.unlock().map_err(TryLockError::Error)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(TryLockError::WouldBlock)
}

/// Shares the lock at `path`, for as long as the file given back is open. Gives up without it when
/// `unwanted` says so.
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

/// Opens what lies at the path itself: no link is followed, nothing is waited for.
fn open(options: &mut OpenOptions, path: &Utf8Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Tries until it works (`true`), is unwanted (`false`) or took too long.
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
        // Asking has not kept it.
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
