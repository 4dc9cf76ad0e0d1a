//! The supervisor: a process between the driver and the child that outlives both.
//!
//! The protocol, and the failure that each step prevents:
//!
//! 1. Mark every inherited descriptor close-on-exec. Otherwise a file that the driver's shell left
//!    open, or a lock, would stay open in the child.
//! 2. Install signal handlers before anything is started. Otherwise the end of a quick child goes
//!    unnoticed, or a signal to the group kills the supervisor and leaves the tree alone.
//! 3. Become undumpable, leave the driver's session and become a subreaper. Otherwise the child
//!    could trace the supervisor, ask on the driver's terminal, or escape by a double fork.
//! 4. Read the order, share the liveness lock, then ask whether the driver is still there. In the
//!    other order a new driver could get the lock alone and start while this child is about to.
//! 5. Start the child and watch it ([`supervise_loop`](crate::supervise_loop)). A closed socket
//!    means that the driver died, and ends the child.
//! 6. End the whole tree, then drain the output. In the other order a descendant that holds the pipe
//!    open would keep the supervisor waiting for ever.
//! 7. Store the verdict, then report it. In the other order a driver that dies in between would run
//!    a job again that had ended.
//! 8. Exit, which releases the liveness lock: by then nothing of the tree is alive.

use std::error::Error as _;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fs_err as fs;
use rustix::process::{WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use crate::confine;
use crate::control::{Attachment, Control, Demand, ProcessTask, Received};
use crate::ending::Ending;
use crate::liveness_lock::{ChildHold, hold_as_child};
use crate::log::log_path;
use crate::protocol::SupervisorMessage;
use crate::spec::Spec;
use crate::supervise_loop::{SuperviseLoop, Supervised};
use crate::supervisor;
use crate::terminal;
use crate::tree;
use crate::verdict::ChildVerdict;

/// Supervises a child if this process was started for that, and then exits; otherwise returns at once.
///
/// Call it in the first line of `main`: [`run`](crate::run) starts the same program again and relies on nothing else
/// happening before.
pub fn maybe_supervise() {
    supervisor::arm();
    if std::env::args_os().nth(1).is_some_and(|argument| argument == supervisor::ARGUMENT) {
        supervise_and_exit();
    }
}

pub(crate) fn supervise_and_exit() -> ! {
    // Declared out here, so that a panic does not release the lock before the tree is cleared up.
    let mut hold = None;
    let code = match catch_unwind(AssertUnwindSafe(|| supervise(&mut hold))) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => {
            clear_up();
            2
        }
    };
    // Here and not earlier: the whole tree is dead. `exit` would leave its file behind.
    drop(hold);
    #[expect(clippy::exit, reason = "the rest of `main` is not for a supervisor")]
    std::process::exit(code)
}

fn supervise(hold: &mut Option<ChildHold>) -> io::Result<()> {
    // For example a file that the driver's shell left open, or another lane's lock.
    close_fds::set_fds_cloexec(3, &[]);
    // Before any child exists: the end of a quick one would otherwise go unnoticed.
    let ended_children = take_signals()?;
    let mut control = Control::adopt()?;
    let Some((opening, inherited)) = control.opening()? else {
        return Ok(());
    };
    let attachment = match opening {
        // Before `detach`: a session and the subreaper setting survive `exec`, and this process becomes
        // the child. The tree of a killed supervisor is recognised by the supervisor's session.
        ProcessTask::Confine => return confine::become_child(control.into_socket(), inherited),
        ProcessTask::TerminalBack => return terminal::come_to_the_front(&inherited),
        ProcessTask::Supervise(attachment) => attachment,
    };
    close_to_tracing();
    detach(attachment);
    let Received { spec, inherited } = control.order(inherited)?;
    let job = spec.job.clone();
    let taken = take_hold(&spec, &mut control);
    if control.demand() == Demand::Gone {
        // Another driver may own the job by now, and nothing has happened that it should know.
        return Ok(());
    }
    let begun = taken.and_then(|lock| {
        *hold = lock;
        fs::File::create(log_path(&job)).map_err(|error| format!("cannot create the log: {error}"))
    });
    let (done, mut control) = match begun {
        Ok(log) => SuperviseLoop::new(spec, log, control, ended_children).perform(inherited),
        Err(why) => (Supervised::Ended(ChildVerdict::bare(Ending::Infra { why })), control),
    };
    let news = match done {
        Supervised::Ended(verdict) => {
            // A verdict that cannot be stored still reaches the driver. If the driver crashes as well, the job has no
            // verdict and is run again, which is safe.
            let _stored = verdict.store(&job);
            SupervisorMessage::Ended { verdict: Box::new(verdict) }
        }
        Supervised::NoSandbox { why } => SupervisorMessage::NoSandbox { why },
    };
    control.report(&news);
    control.close();
    Ok(())
}

/// Joins the holders of the lock that the order names, then reads the driver's demand once more. A driver that is gone
/// by then is no longer waited for by its successor, so its child must not start.
fn take_hold(spec: &Spec, control: &mut Control) -> Result<Option<ChildHold>, String> {
    let held = spec.hold.as_deref().map(hold_as_child).transpose();
    control.exchange();
    held.map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

/// Makes the end of a child readable on a socket, and handles the signals that would end or stop the supervisor.
fn take_signals() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
    let taken = Arc::new(AtomicBool::new(false));
    // Handlers, not `SIG_IGN`: an ignored signal stays ignored across `exec` in the child.
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP] {
        signal_hook::flag::register(signal, Arc::clone(&taken))?;
    }
    Ok(reader)
}

/// Leaves the driver's session and with it its terminal: a child that asks there for a password fails instead of
/// waiting for ever.
fn detach(attachment: Attachment) {
    if attachment == Attachment::Detached {
        // Fails only for a process group leader, which has already left the driver's group.
        let _session = rustix::process::setsid();
    }
    #[cfg(target_os = "linux")]
    {
        let _named = rustix::thread::set_name(c"pdca-supervisor");
    }
    // Fails on other systems than Linux, where only the child's own process group can be ended.
    let _subreaper = tree::become_subreaper();
}

/// Keeps processes without special privileges from reading or writing this process's memory.
fn close_to_tracing() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If the kernel refuses, the sandbox is still between the child and us.
        let _set = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Kills all descendants after a panic of the supervisor itself.
fn clear_up() {
    // The same order of time as a kill in the event loop; a process that hangs in the kernel must
    // not keep the supervisor for ever.
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        tree::kill_all(tree::descendants(), true, tree::descendants);
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if wait(WaitOptions::NOHANG).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
