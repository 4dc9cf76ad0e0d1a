//! Takes over a run, from a driver that died or, by force, from one that is alive.
//!
//! By force, in this order:
//! 1. Open a handle (pidfd) of the old driver, then check again that it is alive. The process id may have been
//!    reused before the handle existed; a later reuse cannot change what the handle refers to.
//! 2. Replace the locks of the targets.
//! 3. Open the journal under the next epoch. From here on readers ignore what the old driver appends, so it does not
//!    matter when it wakes.
//! 4. Kill the old driver through the handle, and wait for its children: they may still write into lanes.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use pdca_journal::{
    Admission, AdmissionError, Clock, HostScope, Journal, Liveness, OpenError, ProcessIdentity,
    RunId,
};
use pdca_process::{LivenessLockError, wait_until_free};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::begin::{
    Begun, LOCK, RunRequest, TakenRun, announce, epoch, myself, set_right, take_up, targets,
};
use super::{BeginError, Run};
use crate::config::WorkspaceConfig;

/// The time that a killed process gets to exit.
// Also for its children, whose supervisors allow at most half a second once the driver is dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason a run was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// The liveness of the driver cannot be determined from here. Nothing was changed.
    #[error("cannot tell from here whether {driver} is alive")]
    Unknown { driver: ProcessIdentity },
    #[error(transparent)]
    Run(#[from] BeginError),
    #[error("run {run} cannot be read")]
    Unreadable { run: RunId },
    /// The driver could not be killed. Nothing it writes counts any longer.
    #[error("{driver} lost the run, but could not be killed")]
    Alive { driver: ProcessIdentity, source: std::io::Error },
    /// A child of the driver is still running.
    #[error("a child of the old driver is still running")]
    Children(#[from] LivenessLockError),
}

impl Run {
    /// Resumes a run of a driver that died, also a blocked one, and reconciles
    /// it. The locks tell whether the driver is dead.
    pub fn resume(
        config: &WorkspaceConfig,
        run: &RunId,
        clock: Clock,
    ) -> Result<Begun, BeginError> {
        let admission = Admission::take(locks(config))?;
        let (runs, me) = (config.dirs.runs(), myself()?);
        let request = RunRequest { config, bundles: &[], lanes: 1, clock };
        let taken = take_up(&request, &admission, &runs, run, &me)?;
        begun(config, admission, taken, me, clock)
    }

    /// Takes a run from its driver and kills it, unless it is already dead.
    pub fn take_over(
        config: &WorkspaceConfig,
        run: &RunId,
        clock: Clock,
    ) -> Result<Begun, TakeOverError> {
        let found = config.dirs.runs().find(run).found;
        let driver =
            found.map_err(|_| TakeOverError::Unreadable { run: run.clone() })?.state.driver;
        // A dead driver holds no lock, so the ordinary way is open and nothing has to be replaced.
        let Some(handle) = hold(&driver)? else { return Ok(Self::resume(config, run, clock)?) };
        let (runs, me) = (config.dirs.runs(), myself().map_err(BeginError::from)?);
        let admission = Admission::take_over(locks(config)).map_err(BeginError::from)?;
        let epoch = epoch(&runs)?;
        let opened = Journal::open(&runs, &admission, run, epoch, clock(), me.clone(), true)
            .map_err(|source| not_taken(run, source))?;
        // From here on nothing that the old driver does counts.
        end(&handle).map_err(|source| TakeOverError::Alive { driver, source })?;
        // Only now may lanes be looked at: until here a child of the old driver could change them.
        wait_until_free(&config.locks().children(), PATIENCE)?;
        let request = RunRequest { config, bundles: &[], lanes: 1, clock };
        let taken = set_right(&request, opened)?;
        Ok(begun(config, admission, taken, me, clock)?)
    }
}

fn begun(
    config: &WorkspaceConfig,
    admission: Admission,
    taken: TakenRun,
    me: ProcessIdentity,
    clock: Clock,
) -> Result<Begun, BeginError> {
    announce(&admission, config, taken.journal.run())?;
    let journal = Mutex::new(taken.journal);
    let (runs, bundles) = (config.dirs.runs(), config.dirs.bundles.clone());
    let run = Run { journal, runs, clock, me, bundles, admission };
    Ok(Begun { run, resumed: true, recovered: taken.recovered, torn: taken.torn })
}

fn locks(config: &WorkspaceConfig) -> Vec<camino::Utf8PathBuf> {
    targets(config).iter().map(|target| target.common_dir.join(LOCK)).collect()
}

fn not_taken(run: &RunId, source: OpenError) -> BeginError {
    BeginError::TakeUp { run: run.clone(), source: Box::new(source) }
}

/// Opens a handle of the driver; `None` if it is dead.
fn hold(driver: &ProcessIdentity) -> Result<Option<OwnedFd>, TakeOverError> {
    let unknown = || TakeOverError::Unknown { driver: driver.clone() };
    let here = HostScope::here().map_err(BeginError::from)?;
    match driver.liveness(&here) {
        Liveness::Unknown => return Err(unknown()),
        Liveness::Dead => return Ok(None),
        Liveness::Alive => {}
    }
    let pid = i32::try_from(driver.pid).ok().and_then(Pid::from_raw).ok_or_else(unknown)?;
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(_) => return Err(unknown()),
    };
    // It may have ended, and its process id been reused, before the handle was opened.
    match driver.liveness(&here) {
        Liveness::Alive => Ok(Some(handle)),
        Liveness::Dead => Ok(None),
        Liveness::Unknown => Err(unknown()),
    }
}

/// Kills the process behind a handle, and waits until it is gone.
fn end(handle: &OwnedFd) -> std::io::Result<()> {
    match pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(error.into()),
    }
    let patience = Timespec::try_from(PATIENCE).map_err(std::io::Error::other)?;
    // A pidfd becomes readable when its process has ended.
    let mut gone = [PollFd::new(handle, PollFlags::IN)];
    match poll(&mut gone, Some(&patience))? {
        0 => Err(std::io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

impl From<AdmissionError> for TakeOverError {
    fn from(error: AdmissionError) -> Self {
        TakeOverError::Run(error.into())
    }
}
