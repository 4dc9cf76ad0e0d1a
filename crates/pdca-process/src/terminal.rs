//! The terminal: lent to an interactive child, and taken back however that ends.
//!
//! 1. The driver starts the supervisor as the leader of a process group and puts that group in the foreground before it
//!    gives the order. So Ctrl-C and Ctrl-Z reach the child and not the driver with its other children, and the child
//!    never asks from the background, where the kernel would stop it.
//! 2. The supervisor outlives these keys because it handles their signals.
//! 3. A child that stops itself, or is stopped by Ctrl-Z, would leave the person before a dead screen. So the driver
//!    takes the terminal back and stops its own group, as the person asked; when the shell continues it, the child goes on
//!    with the settings that it had.
//! 4. When the child has ended or stopped, the supervisor restores the settings and puts the driver in the foreground, also
//!    if the driver is dead, unless a shell was faster. It may do so because its group is in the foreground: the kernel
//!    stops a process that changes a terminal from the background.
//! 5. If the supervisor is dead, or a job of the child was in the foreground, only the driver is left, in the background. Then it
//!    starts a process that ignores that signal, and that process changes the terminal.
//!
//! A pseudo-terminal in between, as tmux has it, would have to understand and pass on all output of the child. The driver does
//! not ignore the signal itself, because every child inherits ignored signals.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process_group, test_kill_process_group};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};
use signal_hook::consts::SIGCONT;

use crate::poll::poll_until;
use crate::programs::find_program;
use crate::protocol::{byte, send_opening};
use crate::spec::Spec;
use crate::supervisor::Invocation;

/// The time within which a stopped group would have stopped. A group without a shell above it cannot be stopped.
const STOPS_WITHIN: Duration = Duration::from_millis(300);
/// The pause between two looks at whether the terminal is ours again.
const LOOK: Duration = Duration::from_millis(200);

/// The driver's terminal while a child has it; taken back on drop.
#[derive(Debug)]
pub(crate) struct LentTerminal {
    settings: Termios,
    /// The driver's process group.
    owner: Pid,
    /// The group that the terminal was lent to.
    borrower: Option<Pid>,
    /// How this program is started for the work of this crate.
    invocation: Invocation,
}

impl LentTerminal {
    /// Returns the terminal on standard input, if the child is interactive and the driver is in its foreground.
    pub(crate) fn of(spec: &Spec, invocation: &Invocation) -> Option<Self> {
        let owner = getpgrp();
        // A background process that sets the terminal's attributes is stopped by the kernel.
        let foreground = spec.interactive && tcgetpgrp(stdin()).is_ok_and(|group| group == owner);
        let settings = foreground.then(|| tcgetattr(stdin()).ok()).flatten()?;
        Some(Self { settings, owner, borrower: None, invocation: invocation.clone() })
    }

    /// Puts the group of the supervisor in the foreground.
    pub(crate) fn lend(&mut self, to: Pid) -> io::Result<()> {
        self.borrower = Some(to);
        Ok(tcsetpgrp(stdin(), to)?)
    }

    /// Stops the driver's group as Ctrl-Z asks, and lends the terminal again once that is continued in the foreground.
    /// Returns without it if that takes longer than `is_wanted` holds.
    pub(crate) fn suspend(&mut self, is_wanted: &dyn Fn() -> bool) -> io::Result<()> {
        let Some(borrower) = self.borrower else { return Ok(()) };
        self.take_back();
        // Before the stop: the signal that continues this process must not come before its handler.
        let continued = Continued::listen()?;
        // The whole group, as Ctrl-Z would: the shell takes a job for stopped once all processes of
        // its group have stopped.
        kill_process_group(self.owner, Signal::TSTP)?;
        continued.wait(STOPS_WITHIN)?;
        // Continued in the background, it waits like every program that reads the terminal there.
        while tcgetpgrp(stdin())? != self.owner {
            if !is_wanted() {
                return Ok(());
            }
            // The kernel sends the same signal to a group that reads the terminal from the
            // background, so the shell shows the job as stopped.
            kill_process_group(self.owner, Signal::TTIN)?;
            continued.wait(LOOK)?;
        }
        self.lend(borrower)
    }

    /// Puts the driver in the foreground again and restores the settings, if that is still to be done.
    fn take_back(&self) {
        let Ok(front) = tcgetpgrp(stdin()) else { return };
        if front != self.owner {
            if !is_left(front, self.borrower) {
                return;
            }
            // Fails if no process can be started; then the shell above sets it right.
            let _taken = take_from_background(&self.invocation);
        }
        if tcgetpgrp(stdin()).is_ok_and(|front| front == self.owner) {
            // Fails if the terminal was closed meanwhile; then there is nothing to restore.
            let _set = tcsetattr(stdin(), OptionalActions::Drain, &self.settings);
        }
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// The terminal as the supervisor of an interactive child has it.
#[derive(Debug)]
pub(crate) struct BorrowedTerminal {
    terminal: OwnedFd,
    /// The settings from before the child.
    settings: Termios,
    /// The group of the driver.
    owner: Pid,
    /// The child's own settings while it is stopped.
    paused: Option<Termios>,
}

impl BorrowedTerminal {
    /// Returns the terminal on the driver's standard input, if it was lent to this process.
    pub(crate) fn of(spec: &Spec, input: Option<&OwnedFd>) -> Option<Self> {
        let input = input.filter(|_| spec.interactive)?;
        let is_lent = tcgetpgrp(input).is_ok_and(|group| group == getpgrp());
        let settings = is_lent.then(|| tcgetattr(input).ok()).flatten()?;
        let owner = getpgid(rustix::process::getppid()).ok()?;
        // Without a handover the driver is in this group, and stays there.
        let terminal = (owner != getpgrp()).then(|| input.try_clone().ok()).flatten()?;
        Some(Self { terminal, settings, owner, paused: None })
    }

    /// Remembers the settings of a child that stopped, and gives the terminal back.
    pub(crate) fn pause(&mut self) {
        self.paused = tcgetattr(&self.terminal).ok();
        self.give_back();
    }

    /// Continues the stopped child, with its settings.
    pub(crate) fn resume(&mut self) {
        if let Some(settings) = self.paused.take() {
            // Fails if the terminal was closed meanwhile; the child learns that by itself.
            let _set = tcsetattr(&self.terminal, OptionalActions::Now, &settings);
        }
        // The group, because Ctrl-Z stopped all processes of the child's job.
        let _continued = kill_process_group(getpgrp(), Signal::CONT);
    }

    /// Restores the settings and puts the driver in the foreground, if this group is there.
    pub(crate) fn give_back(&self) {
        if tcgetpgrp(&self.terminal).is_ok_and(|front| front == getpgrp()) {
            // Both fail if the terminal was closed meanwhile; then there is nothing to restore.
            let _set = tcsetattr(&self.terminal, OptionalActions::Drain, &self.settings);
            // After the settings: once the driver's group is in the foreground, this process would
            // be stopped for changing them.
            let _front = tcsetpgrp(&self.terminal, self.owner);
        }
    }
}

/// Returns true if the group in the foreground is the one that the terminal was lent to, or no process is left in it.
/// Any other has taken the terminal since.
fn is_left(front: Pid, borrower: Option<Pid>) -> bool {
    Some(front) == borrower || test_kill_process_group(front) == Err(Errno::SRCH)
}

/// Has a process that is not stopped for it put the driver in the foreground.
fn take_from_background(invocation: &Invocation) -> io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    send_opening(&ours, byte::TERMINAL_BACK, &[stdin()])?;
    // For the shell in between `self` is the shell.
    let own = rustix::process::getpid().as_raw_nonzero();
    let program = match invocation.program.strip_prefix("/proc/self") {
        Ok(rest) => Path::new("/proc").join(own.to_string()).join(rest),
        Err(_) => invocation.program.clone(),
    };
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(find_program("sh").map_err(io::Error::other)?);
    // Only a shell can have a signal ignored from safe code, and what is ignored stays so across `exec`.
    command
        .args(["-c", "trap '' TTOU; exec \"$@\"", "sh"])
        .arg(program)
        .args(&invocation.args)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().map(drop)
}

/// Runs in that process: puts its own group, which is the driver's, in the foreground.
pub(crate) fn come_to_the_front(inherited: &[OwnedFd]) -> io::Result<()> {
    let terminal = inherited.first().ok_or(io::ErrorKind::InvalidData)?;
    Ok(tcsetpgrp(terminal, getpgrp())?)
}

/// Becomes readable when this process is continued.
struct Continued {
    reader: UnixStream,
    handler: signal_hook::SigId,
}

impl Continued {
    fn listen() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        let handler = signal_hook::low_level::pipe::register(SIGCONT, writer)?;
        Ok(Self { reader, handler })
    }

    fn wait(&self, longest: Duration) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.reader, PollFlags::IN)];
        poll_until(&mut fds, Some(Instant::now() + longest))?;
        let _told = io::Read::read(&mut &self.reader, &mut [0; 8]);
        Ok(())
    }
}

impl Drop for Continued {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.handler);
    }
}
