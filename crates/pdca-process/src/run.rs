//! The driver's side of a run: describe, start, watch, stop, report.

use std::io;
use std::os::unix::process::ExitStatusExt as _;

use camino::Utf8PathBuf;
use fs_err as fs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tracing::{debug, debug_span};

use crate::cancel::Cancel;
use crate::client::{FinalMessage, Stopped, SupervisorClient};
use crate::ending::Ending;
use crate::sandbox::is_bwrap_usable;
use crate::spec::{Sandbox, SandboxMode, Spec};
use crate::verdict::{ChildVerdict, forget, load_verdict};

/// A sign of life of a running child, as passed to the `watch` callback of [`run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The child process exists.
    Started {
        /// The process id of the child.
        pid: i32,
    },
    /// The child wrote output; reported at most a few times a second.
    Output {
        /// The number of bytes written so far.
        bytes: u64,
        /// The last line written, made printable.
        last_line: String,
    },
    /// Nothing happened for a second.
    Tick,
}

/// Failure to run a child at all. A child that ran has a [`ChildVerdict`] instead, whatever became of it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// [`Spec::argv`] is empty.
    #[error("no program given")]
    NoProgram,
    /// This program cannot be its own supervisor, because its `main` does not call
    /// [`maybe_supervise`](crate::maybe_supervise).
    #[error("this program cannot supervise children")]
    NoSupervisor,
    /// The job directory cannot be created or cleared.
    #[error("cannot prepare the job directory {job}")]
    Job {
        /// The job directory.
        job: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The supervisor could not be started or did not follow the protocol.
    #[error("cannot start the supervisor")]
    Supervisor {
        /// The error of the system.
        source: io::Error,
    },
    /// A sandbox is required and the host cannot provide it.
    #[error("the required sandbox is not available: {why}")]
    NoSandbox {
        /// The missing feature, in words.
        why: String,
    },
}

/// Runs a child to its ending. When this returns, no process of the child's tree is alive.
///
/// `watch` is called on the calling thread. While it runs, further signs of life wait, but the child is still
/// supervised. This process becomes a subreaper: orphaned descendants are reparented to it.
///
/// For [`SandboxMode::Auto`] and [`SandboxMode::Require`] the sandbox is `bwrap` where that works, otherwise
/// Landlock.
pub fn run(
    spec: &Spec,
    cancel: &Cancel,
    watch: &mut dyn FnMut(Sign),
) -> Result<ChildVerdict, RunError> {
    let strong = strengthened(spec);
    let is_walled = |spec: &Spec| {
        spec.sandbox.as_ref().is_some_and(|sandbox| sandbox.mode == SandboxMode::Bwrap)
    };
    let Some(first) = strong.as_ref().or(Some(spec).filter(|spec| is_walled(spec))) else {
        return run_once(spec, cancel, watch);
    };
    for by_directory in [false, false, true] {
        let mut first = first.clone();
        if let Some(sandbox) = &mut first.sandbox {
            sandbox.by_directory = by_directory;
        }
        match run_once(&first, cancel, watch) {
            // `bwrap` cannot set up the mounts of this particular child. Nothing was started. Others can cause that, by
            // removing what is about to be mounted: a socket that was there a moment ago.
            Err(RunError::NoSandbox { .. }) => {}
            ended => return ended,
        }
    }
    // Landlock can still be tried, unless `bwrap` is asked for.
    run_once(spec, cancel, watch)
}

/// Returns `spec` with `bwrap` as its sandbox, if the mode leaves the choice open and `bwrap` works on this host.
/// Interactive children are left out: a terminal is not passed into the namespaces.
fn strengthened(spec: &Spec) -> Option<Spec> {
    let sandbox = spec.sandbox.as_ref().filter(|sandbox| {
        matches!(sandbox.mode, SandboxMode::Auto | SandboxMode::Require) && !spec.interactive
    })?;
    if !is_bwrap_usable() {
        return None;
    }
    let sandbox = Sandbox { mode: SandboxMode::Bwrap, ..sandbox.clone() };
    Some(Spec { sandbox: Some(sandbox), ..spec.clone() })
}

fn run_once(
    spec: &Spec,
    cancel: &Cancel,
    watch: &mut dyn FnMut(Sign),
) -> Result<ChildVerdict, RunError> {
    if spec.argv.is_empty() {
        return Err(RunError::NoProgram);
    }
    let invocation = spec.supervisor.invocation().ok_or(RunError::NoSupervisor)?;
    // The verdict of an earlier child of this job would be taken for this one's if the supervisor is lost.
    fs::create_dir_all(&spec.job)
        .and_then(|()| forget(&spec.job))
        .map_err(|source| RunError::Job { job: spec.job.clone(), source })?;
    // After `forget`: an old verdict must not be found for a child that was never started.
    if cancel.is_cancelled() {
        return Ok(ChildVerdict::bare(Ending::Cancelled));
    }
    // Arguments, environment and input may hold secrets and prompts; the log has none of them.
    let _span = debug_span!("child", program = %spec.argv[0].display()).entered();

    let supervisor = |source| RunError::Supervisor { source };
    let mut client = SupervisorClient::start(spec, &invocation).map_err(supervisor)?;
    let mut watch = |sign| {
        if let Sign::Started { pid } = sign {
            debug!(pid, cwd = %spec.cwd, job = %spec.job, "started");
        }
        watch(sign);
    };
    let last = client.watch(spec, cancel, &mut watch).map_err(supervisor)?;
    let stopped = client.stop(&last);

    let verdict = match last {
        FinalMessage::Ended(verdict) => Ok(verdict),
        FinalMessage::NoSandbox { why } => Err(RunError::NoSandbox { why }),
        FinalMessage::Gone => Ok(report_lost(spec, cancel, &stopped, "was lost")),
        FinalMessage::Overdue => Ok(report_lost(spec, cancel, &stopped, "did not answer in time")),
    };
    if let Ok(verdict) = &verdict {
        debug!(ending = %verdict.ending, held = %verdict.held, took = ?verdict.duration, "ended");
    }
    verdict
}

/// Returns the verdict about a child whose supervisor ended without reporting one.
fn report_lost(spec: &Spec, cancel: &Cancel, stopped: &Stopped, how: &str) -> ChildVerdict {
    if !stopped.survivors.is_empty() {
        let why =
            format!("the supervisor {how}, and processes cannot be ended: {:?}", stopped.survivors);
        return ChildVerdict::bare(Ending::Infra { why });
    }
    // The supervisor may have died between storing the verdict and reporting it.
    if let Ok(Some(verdict)) = load_verdict(&spec.job) {
        return verdict;
    }
    // Until the supervisor has left the driver's process group, an interrupt of the driver hits it too.
    let interrupted = !stopped.started
        && stopped.status.as_ref().is_ok_and(|status| {
            [SIGINT, SIGTERM, SIGHUP].contains(&status.signal().unwrap_or_default())
        });
    if interrupted || cancel.is_cancelled() {
        return ChildVerdict::bare(Ending::Cancelled);
    }
    let why = match &stopped.status {
        Ok(status) => format!("the supervisor {how} ({status})"),
        Err(error) => format!("the supervisor {how} ({error})"),
    };
    ChildVerdict::bare(Ending::Infra { why })
}
