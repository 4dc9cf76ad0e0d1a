//! Starting, finding and ending the runner of a job: as a process of the host, or through Slurm.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::agent::{AgentError, tail};
use crate::host_root::{JobDir, read_text};
use crate::slurm;
use crate::verb::{FarState, JobEngine, VerbRefusal};

/// Returns the engine that a job was started with.
fn engine_of(job: &JobDir) -> io::Result<JobEngine> {
    let text = read_text(&job.engine_choice())?;
    // A job without a choice was staged and never started; nothing of it is in a queue.
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Returns how long a state may be relied upon.
pub(crate) fn ask_every(job: &JobDir) -> Duration {
    match engine_of(job) {
        // `squeue` asks the one controller that serves the whole cluster.
        Ok(JobEngine::Slurm(_)) => Duration::from_secs(1),
        Ok(JobEngine::Process) | Err(_) => Duration::from_millis(50),
    }
}

/// Starts a runner that outlives this process.
pub(crate) fn start(job: &JobDir, engine: &JobEngine, argv: &[String]) -> Result<(), AgentError> {
    match engine {
        JobEngine::Process => {
            let started = pdca_process::detach(argv, job.path(), &job.output());
            started.map_err(|error| VerbRefusal::NotStarted { said: error.to_string() }.into())
        }
        JobEngine::Slurm(options) => slurm::start(job, options, argv),
    }
}

/// Returns whether anything of a job is alive or will be.
pub(crate) fn is_alive(job: &JobDir) -> Result<bool, AgentError> {
    match engine_of(job)? {
        // The lock alone is not enough: after a runner was killed, the supervisors of its leaves
        // are still ending their trees.
        JobEngine::Process => Ok(job.is_locked()? || has_children(job)?),
        JobEngine::Slurm(_) => slurm::is_alive(job),
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

/// Asks the runner to end, or kills it.
pub(crate) fn end(job: &JobDir, kill: bool) -> Result<(), AgentError> {
    if let JobEngine::Slurm(_) = engine_of(job)? {
        return slurm::end(job);
    }
    let Some(pid) = job.pid()?.and_then(Pid::from_raw) else { return Ok(()) };
    // The descriptor stays with this very process. The lock is looked at after it was opened, so the process that
    // held it then is the one that gets the signal, and no later owner of the number.
    let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
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

pub(crate) fn state(job: &JobDir) -> Result<FarState, AgentError> {
    // First: a result that was published before the job was cancelled or fenced is a result.
    if job.is_published() {
        return Ok(FarState::Ended);
    }
    if let Some(fence) = read_text(&job.fenced_mark())?
        && let Some(fence) = fence.trim().parse().ok().and_then(pdca_journal::Generation::new)
    {
        return Ok(FarState::Fenced { fence });
    }
    let engine = engine_of(job)?;
    // Before the engine is asked: a cancelled job may stay in its queue for a while.
    if job.cancel_mark().exists() {
        return Ok(FarState::Cancelled);
    }
    if let JobEngine::Slurm(_) = engine {
        return slurm::state(job);
    }
    if job.is_locked()? {
        return Ok(FarState::Running);
    }
    // It may have published between the two looks.
    if job.is_published() {
        return Ok(FarState::Ended);
    }
    if job.beat_file().exists() {
        return Ok(FarState::Died { said: tail(&job.output()) });
    }
    Ok(FarState::Staged)
}
