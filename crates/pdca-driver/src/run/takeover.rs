//! A run taken up by a person's command: from a driver that died, or, by force, from one that lives.
//!
//! By force means in this order: the targets' locks are replaced, the journal gets the next epoch,
//! and only then is the old driver ended. From the second step on nothing it writes can be read by
//! anybody, so it does not matter when it wakes. It is ended through a handle that was opened before
//! it was looked at for the last time: a number that somebody else has by now is never signalled.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use pdca_journal::{
    Admission, AdmissionError, Clock, HostScope, Journal, Liveness, OpenError, Process, RunId,
};
use pdca_process::{LivenessLockError, wait_until_free};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::begin::{
    Begun, LOCK, Request, Taken, announce, epoch, myself, set_right, take_up, targets,
};
use super::{Run, RunError};
use crate::config::WorkspaceConfig;

/// How long a process that was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a run was not taken from its driver.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// It cannot be told from here whether the driver lives. Nothing was touched.
    #[error("it cannot be told from here whether {driver} lives")]
    Unknown {
        /// The driver.
        driver: Process,
    },
    /// The run cannot be taken up.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The journal says nothing that can be read.
    #[error("run {run} cannot be read")]
    Unreadable {
        /// The run.
        run: RunId,
    },
    /// The driver was not ended. What it writes counts for nothing any more.
    #[error("{driver} has lost the run, and could not be ended")]
    Alive {
        /// The driver.
        driver: Process,
        /// Why not.
        source: std::io::Error,
    },
    /// What the driver had started is still running.
    #[error("what the driver had started is still running")]
    Children(#[from] LivenessLockError),
}

impl Run {
    /// Takes up a run of a driver that died, also one that waits for a person, and sets right what is
    /// found of it. The locks say whether the driver is dead.
    pub fn resume(config: &WorkspaceConfig, run: &RunId, clock: Clock) -> Result<Begun, RunError> {
        let admission = Admission::take(locks(config))?;
        let (runs, me) = (config.dirs.runs(), myself()?);
        let request = Request { config, bundles: &[], lanes: 1, clock };
        let taken = take_up(&request, &admission, &runs, run, &me)?;
        Self::taken(config, admission, taken, me, clock)
    }

    /// Takes a run from its driver, which is ended. One that is dead need not be.
    pub fn take_over(
        config: &WorkspaceConfig,
        run: &RunId,
        clock: Clock,
    ) -> Result<Begun, TakeOverError> {
        let found = config.dirs.runs().find(run).found;
        let driver =
            found.map_err(|_| TakeOverError::Unreadable { run: run.clone() })?.state.driver;
        let Some(handle) = hold(&driver)? else { return Ok(Self::resume(config, run, clock)?) };
        let (runs, me) = (config.dirs.runs(), myself().map_err(RunError::from)?);
        let admission = Admission::take_over(locks(config)).map_err(RunError::from)?;
        let epoch = epoch(&runs)?;
        let opened = Journal::open(&runs, &admission, run, epoch, clock(), me.clone(), true)
            .map_err(|source| not_taken(run, source))?;
        // From here on nothing that the old driver does counts.
        end(&handle).map_err(|source| TakeOverError::Alive { driver, source })?;
        wait_until_free(&config.locks().children(), PATIENCE)?;
        let request = Request { config, bundles: &[], lanes: 1, clock };
        let taken = set_right(&request, opened)?;
        Ok(Self::taken(config, admission, taken, me, clock)?)
    }

    fn taken(
        config: &WorkspaceConfig,
        admission: Admission,
        taken: Taken,
        me: Process,
        clock: Clock,
    ) -> Result<Begun, RunError> {
        announce(&admission, config, taken.journal.run())?;
        let journal = Mutex::new(taken.journal);
        let (runs, bundles) = (config.dirs.runs(), config.dirs.bundles.clone());
        let run = Self { journal, runs, clock, me, bundles, admission };
        Ok(Begun { run, resumed: true, recovered: taken.recovered, torn: taken.torn })
    }
}

fn locks(config: &WorkspaceConfig) -> Vec<camino::Utf8PathBuf> {
    targets(config).iter().map(|target| target.common_dir.join(LOCK)).collect()
}

fn not_taken(run: &RunId, source: OpenError) -> RunError {
    RunError::TakeUp { run: run.clone(), source: Box::new(source) }
}

/// A handle of the driver; `None` where it is dead already.
fn hold(driver: &Process) -> Result<Option<OwnedFd>, TakeOverError> {
    let unknown = || TakeOverError::Unknown { driver: driver.clone() };
    let here = HostScope::here().map_err(RunError::from)?;
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
    // It may have ended, and another have its number, before the handle was there.
    match driver.liveness(&here) {
        Liveness::Alive => Ok(Some(handle)),
        Liveness::Dead => Ok(None),
        Liveness::Unknown => Err(unknown()),
    }
}

/// Ends the process behind a handle, and waits until it is gone.
fn end(handle: &OwnedFd) -> std::io::Result<()> {
    match pidfd_send_signal(handle, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(error.into()),
    }
    let patience = Timespec::try_from(PATIENCE).map_err(std::io::Error::other)?;
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
