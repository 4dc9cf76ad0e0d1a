//! The driver's side: describe, start, watch, stop, report.

use std::io;
use std::os::unix::process::ExitStatusExt as _;

use camino::Utf8PathBuf;
use fs_err as fs;
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cancel::Cancel;
use crate::client::{FinalMessage, Stopped, SupervisorClient};
use crate::ending::Ending;
use crate::sandbox::is_bwrap_usable;
use crate::spec::{Sandbox, SandboxMode, Spec};
use crate::verdict::{ChildVerdict, forget, load_verdict};

/// A sign of life of a running child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The child was started.
    Started {
        /// Its process id.
        pid: i32,
    },
    /// The child wrote something; reported a few times a second at most.
    Output {
        /// How many bytes it wrote so far.
        bytes: u64,
        /// The last line it wrote, printable.
        last_line: String,
    },
    /// Nothing happened for a second.
    Tick,
}

/// Why a child could not be run at all. What happens to a child that ran is a [`ChildVerdict`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is nothing to run.
    #[error("no program given")]
    NoProgram,
    /// This program cannot be its own supervisor, because its `main` does not call
    /// [`maybe_supervise`](crate::maybe_supervise).
    #[error("this program cannot supervise children")]
    NoSupervisor,
    /// The job directory cannot be made or cleared.
    #[error("cannot prepare the job directory {job}")]
    Job {
        /// The job directory.
        job: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor could not be started or spoken to.
    #[error("cannot start the supervisor")]
    Supervisor {
        /// What the system said.
        source: io::Error,
    },
    /// A sandbox is required and the host has none.
    #[error("the required sandbox is not available: {why}")]
    NoSandbox {
        /// What is missing.
        why: String,
    },
}

/// Runs a child to its ending. When this returns, nothing of the child's tree is alive.
///
/// `watch` is called from this thread; while it runs, signs of life wait, but the child is still
/// supervised. This process becomes a subreaper: whatever loses its parent below it becomes its
/// child.
///
/// A sandbox of [`SandboxMode::Auto`] or [`SandboxMode::Require`] is `bwrap` where that works and Landlock elsewhere.
pub fn run(
    spec: &Spec,
    cancel: &Cancel,
    watch: &mut dyn FnMut(Sign),
) -> Result<ChildVerdict, RunError> {
    let Some(strong) = strengthened(spec) else { return run_once(spec, cancel, watch) };
    match run_once(&strong, cancel, watch) {
        // Nothing was started: the mounts of this very child cannot be made.
        Err(RunError::NoSandbox { .. }) => run_once(spec, cancel, watch),
        ended => ended,
    }
}

/// The same child behind the strong wall, where the choice is ours and the wall works here. A terminal is not handed
/// through it.
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
    fs::create_dir_all(&spec.job)
        .and_then(|()| forget(&spec.job))
        .map_err(|source| RunError::Job { job: spec.job.clone(), source })?;
    if cancel.is_cancelled() {
        return Ok(ChildVerdict::bare(Ending::Cancelled));
    }
    let terminal = Terminal::keep(spec);

    let supervisor = |source| RunError::Supervisor { source };
    let mut client = SupervisorClient::start(spec, &invocation).map_err(supervisor)?;
    let last = client.watch(spec, cancel, watch).map_err(supervisor)?;
    let stopped = client.stop(&last);
    drop(terminal);

    match last {
        FinalMessage::Ended(verdict) => Ok(verdict),
        FinalMessage::NoSandbox { why } => Err(RunError::NoSandbox { why }),
        FinalMessage::Gone => Ok(report_lost(spec, cancel, &stopped, "was lost")),
        FinalMessage::Overdue => Ok(report_lost(spec, cancel, &stopped, "did not answer in time")),
    }
}

/// The verdict about a child whose supervisor cannot give one.
fn report_lost(spec: &Spec, cancel: &Cancel, stopped: &Stopped, how: &str) -> ChildVerdict {
    if !stopped.survivors.is_empty() {
        let why =
            format!("the supervisor {how}, and processes cannot be ended: {:?}", stopped.survivors);
        return ChildVerdict::bare(Ending::Infra { why });
    }
    // It may have died right after the last thing it has to do.
    if let Ok(Some(verdict)) = load_verdict(&spec.job) {
        return verdict;
    }
    // Before a supervisor has left the driver's group, it is hit by what interrupts the driver.
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

/// The settings of the terminal, put back when an interactive child is gone that changed them.
struct Terminal(Termios);

impl Terminal {
    fn keep(spec: &Spec) -> Option<Self> {
        // In the background, setting them would stop this process.
        let foreground = spec.interactive && tcgetpgrp(stdin()).is_ok_and(|it| it == getpgrp());
        foreground.then(|| tcgetattr(stdin()).ok().map(Self)).flatten()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that was closed meanwhile has nothing to put back.
        let _set = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}
