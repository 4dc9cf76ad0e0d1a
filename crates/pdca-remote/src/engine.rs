//! Engines: the means to run the runner of a job on a host.
//!
//! An engine is a type that implements [`Engine`] in a module of its own, a variant of [`JobEngine`], which carries its
//! options, and one arm of [`JobEngine::engine`], which registers it. Nothing else of this crate asks which one it is.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::agent::{AgentError, tail};
use crate::host_root::{JobDir, read_text};
use crate::verb::{JobEngine, JobState, VerbRefusal};

/// Starts, finds and ends runners.
pub(crate) trait Engine {
    /// Starts a runner that outlives this process.
    fn start(&self, job: &JobDir, argv: &[String]) -> Result<(), AgentError>;

    /// Returns whether anything of a job is alive or will be.
    fn is_alive(&self, job: &JobDir) -> Result<bool, AgentError>;

    /// Asks the runner to end, or kills it.
    fn end(&self, job: &JobDir, kill: bool) -> Result<(), AgentError>;

    /// Returns the state of a job that is neither published nor fenced nor cancelled.
    fn state(&self, job: &JobDir) -> Result<JobState, AgentError>;

    /// Returns how long a state may be relied upon.
    fn ask_every(&self) -> Duration;

    /// Returns whether the engine decides when a job starts. If not, the slots of the host bound the number of jobs.
    fn has_queue(&self) -> bool;

    /// Returns the programs that the engine calls, which the host must have.
    fn programs(&self) -> &'static [&'static str];
}

impl JobEngine {
    pub(crate) fn engine(&self) -> &dyn Engine {
        match self {
            Self::Process => &HostProcess,
            Self::Slurm(options) => options,
        }
    }

    /// Returns the programs that a host must have for the engine.
    pub fn programs(&self) -> &'static [&'static str] {
        self.engine().programs()
    }
}

/// Returns the engine that a job was started with.
pub(crate) fn engine_of(job: &JobDir) -> io::Result<JobEngine> {
    let text = read_text(&job.engine_choice())?;
    // A job without a choice was staged and never started; nothing of it is in a queue.
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Returns whether anything of a job is alive or will be.
pub(crate) fn is_alive(job: &JobDir) -> Result<bool, AgentError> {
    engine_of(job)?.engine().is_alive(job)
}

pub(crate) fn state(job: &JobDir) -> Result<JobState, AgentError> {
    // First: a result that was published before the job was cancelled or fenced is a result.
    if job.is_published() {
        return Ok(JobState::Ended);
    }
    if let Some(fence) = read_text(&job.fenced_mark())?
        && let Some(fence) = fence.trim().parse().ok().and_then(pdca_journal::Generation::new)
    {
        return Ok(JobState::Fenced { fence });
    }
    let engine = engine_of(job)?;
    // Before the engine is asked: a cancelled job may stay in its queue for a while.
    if job.cancel_mark().exists() {
        return Ok(JobState::Cancelled);
    }
    engine.engine().state(job)
}

/// Runs a runner as a process of the host itself.
struct HostProcess;

impl Engine for HostProcess {
    fn start(&self, job: &JobDir, argv: &[String]) -> Result<(), AgentError> {
        let started = pdca_process::detach(argv, job.path(), &job.output());
        started.map_err(|error| VerbRefusal::NotStarted { said: error.to_string() }.into())
    }

    fn is_alive(&self, job: &JobDir) -> Result<bool, AgentError> {
        // The lock alone is not enough: after a runner was killed, the supervisors of its leaves
        // are still ending their trees.
        Ok(job.is_locked()? || has_children(job)?)
    }

    fn end(&self, job: &JobDir, kill: bool) -> Result<(), AgentError> {
        let Some(pid) = job.pid()?.and_then(Pid::from_raw) else { return Ok(()) };
        // The descriptor stays with this very process. The lock is looked at after it was opened, so the process that
        // held it then is the one that gets the signal, and no later owner of the number.
        let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
        else {
            return Ok(());
        };
        if job.is_locked()? && job.pid()? == Some(pid.as_raw_pid()) {
            let signal = if kill { Signal::KILL } else { Signal::TERM };
            // Gone meanwhile is as good.
            let _sent = rustix::process::pidfd_send_signal(&process, signal);
            // A stopped process takes the signal when it is continued.
            let _sent = rustix::process::pidfd_send_signal(&process, Signal::CONT);
        }
        Ok(())
    }

    fn state(&self, job: &JobDir) -> Result<JobState, AgentError> {
        if job.is_locked()? {
            return Ok(JobState::Running);
        }
        // It may have published between the two looks.
        if job.is_published() {
            return Ok(JobState::Ended);
        }
        if job.beat_file().exists() {
            return Ok(JobState::Died { said: tail(&job.output()) });
        }
        Ok(JobState::Staged)
    }

    fn ask_every(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn has_queue(&self) -> bool {
        false
    }

    fn programs(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Returns whether a leaf or gate of the job is alive: each supervisor holds this lock until its tree is gone.
fn has_children(job: &JobDir) -> io::Result<bool> {
    let path = job.workspace().join(".pdca/children.lock");
    match pdca_process::wait_until_free(&path, Duration::ZERO) {
        Ok(()) => Ok(false),
        Err(pdca_process::LivenessLockError::StillHeld { .. }) => Ok(true),
        Err(error) => Err(io::Error::other(error)),
    }
}
