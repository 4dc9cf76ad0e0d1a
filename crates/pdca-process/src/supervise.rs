//! The supervisor: a process between the driver and the child.
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
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::confine;
use crate::control::{Attachment, Control, Demand, Opening, Received};
use crate::ending::Ending;
use crate::liveness_lock;
use crate::log::log_path;
use crate::protocol::SupervisorMessage;
use crate::spec::Spec;
use crate::supervise_loop::{SuperviseLoop, Supervised};
use crate::supervisor;
use crate::tree;
use crate::verdict::ChildVerdict;

/// Supervises a child if this process was started for that, and then exits; otherwise returns at
/// once.
///
/// It belongs into the first line of `main`: [`run`](crate::run) starts the same program again and
/// relies on nothing else happening there.
pub fn maybe_supervise() {
    supervisor::arm();
    if std::env::args_os().nth(1).is_some_and(|argument| argument == supervisor::ARGUMENT) {
        supervise_and_exit();
    }
}

pub(crate) fn supervise_and_exit() -> ! {
    // Out here, so that a defect of our own does not give it up before everything is cleared up.
    let mut hold = None;
    let code = match catch_unwind(AssertUnwindSafe(|| supervise(&mut hold))) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => {
            clear_up();
            2
        }
    };
    #[expect(clippy::exit, reason = "the rest of `main` is not for a supervisor")]
    std::process::exit(code)
}

fn supervise(hold: &mut Option<std::fs::File>) -> io::Result<()> {
    // What the driver was started with, such as a file that a shell left open, is not for any child.
    close_fds::set_fds_cloexec(3, &[]);
    let ended_children = take_signals()?;
    let mut control = Control::adopt()?;
    let Some((opening, inherited)) = control.opening()? else {
        return Ok(());
    };
    let attachment = match opening {
        Opening::Confine => return confine::become_child(control.into_socket(), inherited),
        Opening::Supervise(attachment) => attachment,
    };
    close_to_tracing();
    detach(attachment);
    let Received { spec, inherited } = control.order(inherited)?;
    let job = spec.job.clone();
    let taken = take_hold(&spec, &mut control);
    if control.demand() == Demand::Gone {
        // The job may be another driver's already, and nothing has happened that it should know.
        return Ok(());
    }
    let begun = taken.and_then(|lock| {
        *hold = lock;
        fs::File::create(log_path(&job)).map_err(|error| format!("cannot begin the log: {error}"))
    });
    let (done, mut control) = match begun {
        Ok(log) => SuperviseLoop::new(spec, log, control, ended_children).perform(inherited),
        Err(why) => (Supervised::Ended(ChildVerdict::bare(Ending::Infra { why })), control),
    };
    let news = match done {
        Supervised::Ended(verdict) => {
            // A verdict that cannot be stored still reaches the driver; without it the job is run
            // again after a crash, which is right.
            let _stored = verdict.store(&job);
            SupervisorMessage::Ended { verdict: Box::new(verdict) }
        }
        Supervised::NoSandbox { why } => SupervisorMessage::NoSandbox { why },
    };
    control.report(&news);
    control.close();
    Ok(())
}

/// Takes the lock that the order names, and then hears what the driver wants: a driver that is gone
/// by then is not waited for by anybody who comes after it, so its child must not start.
fn take_hold(spec: &Spec, control: &mut Control) -> Result<Option<std::fs::File>, String> {
    let mut unwanted = || {
        control.exchange();
        control.demand() > Demand::Run
    };
    let held = spec.hold.as_deref().map_or(Ok(None), |path| {
        liveness_lock::share(path, liveness_lock::PATIENCE, &mut unwanted).map_err(|error| {
            match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }
        })
    });
    unwanted();
    held
}

/// Makes the end of a child readable, and handles the signals that would end the supervisor.
fn take_signals() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
    let taken = Arc::new(AtomicBool::new(false));
    // Handlers, not "ignore": an ignored signal would stay ignored in the child.
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&taken))?;
    }
    Ok(reader)
}

/// Leaves the driver's session, and with it its terminal: a child that wants to ask there for a
/// password finds none and fails, instead of waiting for ever.
fn detach(attachment: Attachment) {
    if attachment == Attachment::Detached {
        // It only fails for the leader of a group, who is no member of the driver's any more.
        let _session = rustix::process::setsid();
    }
    #[cfg(target_os = "linux")]
    {
        let _named = rustix::thread::set_name(c"pdca-supervisor");
    }
    // Without it (another system than Linux) only the child's own group can be ended.
    let _subreaper = tree::become_subreaper();
}

/// Keeps every process without special rights from reading or writing this one's memory.
fn close_to_tracing() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // A kernel that refuses this still has the sandbox between the child and us.
        let _set = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// The last resort after a defect of our own: kill what runs below us.
fn clear_up() {
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
