//! The locks of a workspace: one driver per errand, and one writer per bundle.

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use pdca_integrate::WorkspaceDirs;
use pdca_process::wait_until_free;
use pdca_state::BundleId;

use crate::admission::{BundleLockError, LockGuard, admit, holder};

/// The time that children of a killed driver get to die. Their supervisors kill them sooner.
// Supervisors allow half a second; the rest is for a machine under load.
const PATIENCE: Duration = Duration::from_secs(20);

/// The directory for bundle locks in the bundle root, for workspaces that share it.
const SHARED_LOCKS: &str = ".pdca/bundle-locks";

/// The purpose of a driver. One of each kind may run in a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errand {
    /// Runs bundles.
    #[default]
    Build,
    /// Integrates accepted changes.
    Integrate,
}

impl Errand {
    /// The name of the lock file, and of the thing that it protects in messages.
    fn lock(self) -> (&'static str, &'static str) {
        match self {
            Self::Build => ("driver.lock", "the workspace"),
            Self::Integrate => ("integrate.lock", "the integration of accepted changes"),
        }
    }

    /// The lock that its supervisors hold.
    fn children(self) -> &'static str {
        match self {
            Self::Build => "children.lock",
            Self::Integrate => "integrate-children.lock",
        }
    }
}

/// Separates the holder's name from the lane in the text of a bundle's lock.
const IN_LANE: &str = ", lane ";

/// The process that works on a bundle. The kernel says that there is one; the rest is as it wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtWork {
    pub holder: String,
    /// Set if there are several lanes.
    pub lane: Option<u32>,
    /// Set if the file system tells.
    pub since: Option<std::time::SystemTime>,
}

/// The locks of a workspace, taken in the name of one driver.
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceLocks<'a> {
    pub(crate) dirs: &'a WorkspaceDirs,
    /// The name in the lock files, for people who find one taken.
    pub(crate) holder: &'a str,
    pub(crate) errand: Errand,
}

impl WorkspaceLocks<'_> {
    /// The lock that every supervisor holds while any process of its child is alive.
    ///
    /// Each errand has its own, so that a new driver waits for the children of an earlier one of its kind, and
    /// for no others.
    pub fn children(&self) -> Utf8PathBuf {
        self.dirs.private().join(self.errand.children())
    }

    /// Admits one driver of its errand to the workspace, for as long as the guard lives.
    ///
    /// Waits for the children of an earlier driver, because they may still be writing.
    pub fn admit(&self) -> Result<LockGuard, BundleLockError> {
        let (lock, what) = self.errand.lock();
        let held = admit(&self.dirs.private().join(lock), what, self.holder)?;
        // After the lock: no other driver can start children while this one waits.
        wait_until_free(&self.children(), PATIENCE)?;
        Ok(held)
    }

    /// Keeps drivers of every errand out, for a command that removes files that they use.
    pub fn admit_alone(&self) -> Result<(LockGuard, LockGuard), BundleLockError> {
        let of = |errand| Self { errand, ..*self }.admit();
        Ok((of(Errand::Build)?, of(Errand::Integrate)?))
    }

    /// Waits for a limited time until no child of an earlier driver is alive. Takes no lock.
    pub fn wait_for_children(&self) -> Result<(), BundleLockError> {
        Ok(wait_until_free(&self.children(), PATIENCE)?)
    }

    /// Returns the name of the driver that runs bundles, if there is one.
    pub fn driver_at_work(&self) -> Result<Option<String>, BundleLockError> {
        holder(&self.dirs.private().join(Errand::Build.lock().0))
    }

    /// Returns the name of the driver that integrates, if there is one.
    pub fn integration_at_work(&self) -> Result<Option<String>, BundleLockError> {
        holder(&self.dirs.private().join(Errand::Integrate.lock().0))
    }

    /// Takes one bundle, so that no other process writes it meanwhile.
    pub fn take(&self, id: &BundleId) -> Result<LockGuard, BundleLockError> {
        self.take_for(id, None)
    }

    /// Like [`Self::take`], for commands that a person calls: the moment a bundle is ready its driver may
    /// still hold it, and the person should not have to try again.
    pub fn take_within(
        &self,
        id: &BundleId,
        patience: Duration,
    ) -> Result<LockGuard, BundleLockError> {
        within(patience, || self.take(id))
    }

    /// Like [`Self::take`], recording the lane.
    pub(crate) fn take_for(
        &self,
        id: &BundleId,
        lane: Option<u32>,
    ) -> Result<LockGuard, BundleLockError> {
        let holder = match lane {
            Some(lane) => format!("{}{IN_LANE}{lane}", self.holder),
            None => self.holder.to_owned(),
        };
        let held = admit(&self.lock_of(id), &id.dir_name(), &holder)?;
        // Another workspace may share the bundles, but not `.pdca/locks`.
        let holder = format!("{holder} of {}", self.dirs.root);
        let shared = self.shared_lock_of(id);
        let beside = admit(&shared, &id.dir_name(), &holder)?;
        // Bundles are often kept in git; locks must not be.
        let ignore = shared.with_file_name(".gitignore");
        if !ignore.exists() {
            let written = pdca_state::files::replace_unsynced(&ignore, b"*\n");
            written.map_err(|source| BundleLockError::Unusable { path: ignore, source })?;
        }
        Ok(held.with(beside))
    }

    /// Keeps other processes from landing accepted changes or sending them back. Waits for a limited
    /// time.
    pub fn hold_landings(&self, patience: Duration) -> Result<LockGuard, BundleLockError> {
        let path = self.dirs.private().join("landing.lock");
        within(patience, || admit(&path, "the integration of accepted changes", self.holder))
    }

    /// Serializes acceptances, so that each has its own place in the completion order.
    pub(crate) fn sealing(&self, patience: Duration) -> Result<LockGuard, BundleLockError> {
        let path = self.dirs.private().join("sealing.lock");
        within(patience, || admit(&path, "the order of acceptance", self.holder))
    }

    /// Returns the process that works on a bundle, without disturbing it.
    pub fn at_work_on(&self, id: &BundleId) -> Result<Option<AtWork>, BundleLockError> {
        let (path, shared) = (self.lock_of(id), self.shared_lock_of(id));
        let (path, holder) = match holder(&path)? {
            Some(holder) => (path, holder),
            None => match holder(&shared)? {
                Some(holder) => (shared, holder),
                None => return Ok(None),
            },
        };
        // The file was written when the lock was taken.
        let since = fs_err::metadata(&path).and_then(|found| found.modified()).ok();
        let lane = holder.rsplit_once(IN_LANE).and_then(|(_, lane)| lane.parse().ok());
        Ok(Some(AtWork { holder, lane, since }))
    }

    /// The lock of a bundle in the shared bundle root. Names that differ only in
    /// case share one, because on some file systems they are one bundle.
    fn shared_lock_of(&self, id: &BundleId) -> Utf8PathBuf {
        let name = format!("{}.lock", id.dir_name().to_lowercase());
        self.dirs.bundles.path().join(SHARED_LOCKS).join(name)
    }

    fn lock_of(&self, id: &BundleId) -> Utf8PathBuf {
        self.dirs.private().join("locks").join(format!("{}.lock", id.dir_name()))
    }
}

/// Retries while another process holds the lock, until `patience` is over.
fn within(
    patience: Duration,
    take: impl Fn() -> Result<LockGuard, BundleLockError>,
) -> Result<LockGuard, BundleLockError> {
    let begun = Instant::now();
    loop {
        match take() {
            Err(BundleLockError::Taken { .. }) if begun.elapsed() < patience => {
                // A kernel lock with a limit on the wait would need a signal or a thread, so it is
                // polled.
                std::thread::park_timeout(Duration::from_millis(10));
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_is_taken_says_in_which_lane() {
        let scene = crate::testing::Scene::planned();
        let (config, bundle) = (&scene.config, scene.bundle());
        assert_eq!(config.locks().at_work_on(bundle.id()).unwrap(), None);
        let taken = config.locks().take_for(bundle.id(), Some(2)).unwrap();
        let at_work = config.locks().at_work_on(bundle.id()).unwrap().unwrap();
        assert_eq!((at_work.holder.as_str(), at_work.lane), ("h, lane 2", Some(2)));
        drop(taken);
        assert_eq!(config.locks().at_work_on(bundle.id()).unwrap(), None);
    }

    #[test]
    fn a_build_and_an_integration_are_admitted_side_by_side_and_two_builds_are_not() {
        let scene = crate::testing::Scene::planned();
        let _build = scene.config.locks().admit().unwrap();
        let second = scene.config.locks().admit();
        assert!(matches!(second, Err(BundleLockError::Taken { .. })), "{second:?}");
        let _integration = scene.config.clone().for_integration().locks().admit().unwrap();
    }
}
