//! Admission of one driver at a time, with kernel locks on files below `.pdca`.
//!
//! A lock tells without a clock who is alive: the kernel releases it when its holder dies, however
//! it dies. The file stays; only the lock on it counts. A child that can only read the file cannot hold
//! it ([`FileLock`]). The holder's name is written into the file for people; it decides nothing but how
//! long a lock of a dead process is waited for.

use std::io;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{FileLock, FileLockError, LivenessLockError};

/// The time for which a lock may outlive its holder. A child that was being started when the holder was killed has a copy
/// of the descriptor until its own program runs.
const LINGER: Duration = Duration::from_secs(5);
/// The interval at which such a lock is tried again.
const LOOK: Duration = Duration::from_millis(5);

/// A held lock, released on drop.
#[derive(Debug)]
pub struct LockGuard {
    _lock: FileLock,
    beside: Option<Box<LockGuard>>,
}

impl LockGuard {
    /// Releases another lock together with this one.
    pub(crate) fn with(mut self, beside: LockGuard) -> Self {
        self.beside = Some(Box::new(beside));
        self
    }
}

/// The reason a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum BundleLockError {
    #[error("{what} is held by {holder}")]
    Taken {
        /// The thing that the lock protects.
        what: String,
        /// The name that the holder wrote into the file.
        holder: String,
        path: Utf8PathBuf,
    },
    /// A child of an earlier driver is still alive.
    #[error("a child of an earlier driver is still running")]
    StillRunning(#[source] LivenessLockError),
    /// The lock file cannot be used, or the filesystem does not support locks.
    #[error("cannot lock `{path}`")]
    Unusable { path: Utf8PathBuf, source: io::Error },
}

impl From<LivenessLockError> for BundleLockError {
    fn from(error: LivenessLockError) -> Self {
        BundleLockError::StillRunning(error)
    }
}

/// Returns the name of the process that holds the lock at `path`, or `None`. Creates nothing and takes no lock.
pub(crate) fn holder(path: &Utf8Path) -> Result<Option<String>, BundleLockError> {
    let unusable = |source| BundleLockError::Unusable { path: path.to_owned(), source };
    Ok(FileLock::holder(path).map_err(unusable)?.map(name))
}

/// Returns the holder's name, for messages only.
fn name(text: String) -> String {
    if text.is_empty() { "another process".to_owned() } else { text }
}

/// Returns true if the process that wrote this name has ended.
fn is_gone(holder: &str) -> bool {
    let number = holder.strip_prefix("process ").unwrap_or_default();
    let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
    let pid = number[..end].parse().ok().and_then(rustix::process::Pid::from_raw);
    // Only `SRCH` says that there is no such process; `PERM` is an answer about one of another
    // user.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// Takes the lock at `path`, which protects `what`, in the name of `holder`.
pub(crate) fn admit(
    path: &Utf8Path,
    what: &str,
    holder: &str,
) -> Result<LockGuard, BundleLockError> {
    let unusable = |source| BundleLockError::Unusable { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent).map_err(unusable)?;
    }
    let begun = Instant::now();
    loop {
        match FileLock::take(path, holder) {
            Ok(lock) => return Ok(LockGuard { _lock: lock, beside: None }),
            Err(FileLockError::Held { text, .. }) => {
                let holder = name(text);
                if is_gone(&holder) && begun.elapsed() < LINGER {
                    std::thread::park_timeout(LOOK);
                    continue;
                }
                let (what, path) = (what.to_owned(), path.to_owned());
                return Err(BundleLockError::Taken { what, holder, path });
            }
            Err(error) => return Err(unusable(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("deep/driver.lock")).unwrap();
        (dir, path)
    }

    #[test]
    fn only_a_named_process_that_has_ended_is_gone() {
        let own = format!("process {}, run x of /ws", std::process::id());
        for alive in [own.as_str(), "process 1", "another process", "process ", "process 0", ""] {
            assert!(!is_gone(alive), "{alive}");
        }
        // Beyond the largest process id of any Linux.
        assert!(is_gone("process 2147483600, run x of /ws"));
    }

    #[test]
    fn lesson_09_a_second_driver_is_refused_and_told_who_holds_it() {
        let (_dir, path) = place();
        let first = admit(&path, "the workspace", "pid 12 on host").unwrap();
        let second = admit(&path, "the workspace", "pid 13 on host").unwrap_err();
        assert_eq!(second.to_string(), "the workspace is held by pid 12 on host");
        drop(first);
        admit(&path, "the workspace", "pid 13 on host").unwrap();
    }

    #[test]
    fn looking_who_is_at_work_makes_nothing_and_disturbs_nobody() {
        let (_dir, path) = place();
        assert_eq!(holder(&path).unwrap(), None);
        assert!(!path.exists());
        let held = admit(&path, "the workspace", "first").unwrap();
        assert_eq!(holder(&path).unwrap().as_deref(), Some("first"));
        drop(held);
        assert_eq!(holder(&path).unwrap(), None);
    }

    #[test]
    fn nobody_who_looks_keeps_a_driver_out() {
        let (_dir, path) = place();
        drop(admit(&path, "the workspace", "first").unwrap());
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    holder(&path).unwrap();
                    std::thread::yield_now();
                }
            });
            for _ in 0..200 {
                drop(admit(&path, "the workspace", "again").unwrap());
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn a_link_in_place_of_a_lock_is_not_followed() {
        let (dir, path) = place();
        let victim = dir.path().join("victim");
        fs_err::write(&victim, "precious").unwrap();
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::os::unix::fs::symlink(&victim, &path).unwrap();
        admit(&path, "the workspace", "holder").unwrap_err();
        assert_eq!(fs_err::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_refused_driver_leaves_the_holder_s_name_alone() {
        let (_dir, path) = place();
        let _first = admit(&path, "the workspace", "first").unwrap();
        admit(&path, "the workspace", "second").unwrap_err();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "first");
    }
}
