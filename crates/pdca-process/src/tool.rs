//! A short, trusted helper program such as git.
//!
//! A tool is a direct child without a supervisor: it is expected to end by itself, quickly, and to leave no process
//! behind. It still has a deadline, a process group of its own and a bound on its output.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use signal_hook::consts::{SIGTTIN, SIGTTOU};
use tracing::trace;

use crate::cancel::{Cancel, Urgency};
use crate::environment;
use crate::poll::{nonblocking, poll_until};
use crate::programs::{ProgramError, find_program, trusted_part, trusted_path};
use crate::spec::Env;

/// The bytes of standard error that are kept; the rest is read and dropped.
const MAX_STDERR: usize = 256 << 10;
/// The number of bytes read at once.
const CHUNK: usize = 64 << 10;
/// The polling interval where the end of a child has no descriptor.
const LOOK: Duration = Duration::from_millis(5);

/// The interval between two checks for cancellation and for a question at the terminal.
const GLANCE: Duration = Duration::from_millis(50);

/// A helper program, built up with chained calls and started with [`run`](Self::run).
///
/// ```
/// let output = pdca_process::Tool::new("git").args(["--version"]).run()?;
/// assert_eq!(output.code, 0);
/// # Ok::<(), pdca_process::ToolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tool {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<Utf8PathBuf>,
    env: BTreeMap<OsString, OsString>,
    stdin: Vec<u8>,
    timeout: Duration,
    max_stdout: usize,
    cancel: Option<(Cancel, Urgency)>,
}

/// The result of a tool that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The exit code.
    pub code: i32,
    /// The whole standard output.
    pub stdout: Vec<u8>,
    /// The first 256 KiB of standard error.
    pub stderr: Vec<u8>,
}

impl ToolOutput {
    /// Returns true if the exit code is zero.
    pub fn success(&self) -> bool {
        self.code == 0
    }
}

/// Failure to run a tool to its end. An exit code other than zero is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The program was not found where this process looks for programs.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program could not be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: OsString,
        /// The error of the system.
        source: io::Error,
    },
    /// Reading from or writing to the running program failed.
    #[error("cannot exchange data with {}", program.display())]
    Talk {
        /// The program.
        program: OsString,
        /// The error of the system.
        source: io::Error,
    },
    /// The program did not end in time and was killed.
    #[error("{} did not end within {} seconds", program.display(), timeout.as_secs_f64())]
    TimedOut {
        /// The program.
        program: OsString,
        /// The deadline it missed.
        timeout: Duration,
    },
    /// The program wrote more than the limit and was killed.
    #[error("{} wrote more than {limit} bytes", program.display())]
    TooMuchOutput {
        /// The program.
        program: OsString,
        /// The limit in bytes.
        limit: usize,
    },
    /// The program, or one that it started, asked something at the terminal, which the kernel does not allow in the
    /// background. It was killed, because it would wait for ever.
    #[error("{} asked a question at the terminal, which a program in the background cannot do", program.display())]
    Asks {
        /// The program.
        program: OsString,
    },
    /// The program was killed because the run was cancelled.
    #[error("{} was cancelled", program.display())]
    Cancelled {
        /// The program.
        program: OsString,
    },
    /// The program was ended by a signal that this crate did not send.
    #[error("{} was ended by signal {signal}", program.display())]
    Signaled {
        /// The program.
        program: OsString,
        /// The signal number.
        signal: i32,
    },
}

impl Tool {
    /// Describes a program without arguments, with a timeout of one minute and at most 256 MiB of output.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            max_stdout: 256 << 20,
            cancel: None,
        }
    }

    pub(crate) fn program(mut self, program: &OsStr) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets the directory to start in.
    #[must_use]
    pub fn cwd(mut self, cwd: impl AsRef<Utf8Path>) -> Self {
        self.cwd = Some(cwd.as_ref().to_owned());
        self
    }

    /// Sets a variable for the program. Otherwise the environment is that of a child of [`run`](crate::run).
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the standard input; the default is empty.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the longest standard output; a program that writes more is killed.
    #[must_use]
    pub fn max_stdout(mut self, bytes: usize) -> Self {
        self.max_stdout = bytes;
        self
    }

    /// Kills the program when [`Cancel::kill`] is called. An orderly cancellation lets it finish, which does not take
    /// long.
    #[must_use]
    pub fn killed_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some((cancel.clone(), Urgency::Kill));
        self
    }

    /// Kills the program on any cancellation: for one that may take long and can be repeated.
    #[must_use]
    pub fn ended_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some((cancel.clone(), Urgency::Cancel));
        self
    }

    /// Runs the program to its end.
    pub fn run(&self) -> Result<ToolOutput, ToolError> {
        let begun = Instant::now();
        let ran = self.run_until(begun + self.timeout);
        let code = ran.as_ref().ok().map(|output| output.code);
        trace!(program = %self.program.display(), cwd = ?self.cwd, code, took = ?begun.elapsed(), "ran");
        ran
    }

    fn run_until(&self, deadline: Instant) -> Result<ToolOutput, ToolError> {
        let child = self
            .command()?
            .spawn()
            .map_err(|source| ToolError::Start { program: self.program.clone(), source })?;
        let mut running = Running::new(child, &self.stdin);
        let stopped = running.exchange(deadline, self.max_stdout, self.cancel.as_ref());
        let status = running.finish(!matches!(stopped, Ok(Stopped::Ended)));
        match (stopped, status) {
            (Ok(Stopped::Ended), Ok(status)) => self.report(status, running),
            (Ok(Stopped::Late), _) => {
                Err(ToolError::TimedOut { program: self.program.clone(), timeout: self.timeout })
            }
            (Ok(Stopped::Asks), _) => Err(ToolError::Asks { program: self.program.clone() }),
            (Ok(Stopped::Cancelled), _) => {
                Err(ToolError::Cancelled { program: self.program.clone() })
            }
            (Ok(Stopped::Flooded), _) => Err(ToolError::TooMuchOutput {
                program: self.program.clone(),
                limit: self.max_stdout,
            }),
            (Err(source), _) | (_, Err(source)) => {
                Err(ToolError::Talk { program: self.program.clone(), source })
            }
        }
    }

    fn command(&self) -> Result<Command, ToolError> {
        let program = if self.program.as_bytes().contains(&b'/') {
            self.program.clone().into()
        } else {
            find_program(&self.program)?
        };
        #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
        let mut command = Command::new(program);
        command
            .arg0(&self.program)
            .args(&self.args)
            .stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Apart from the driver's group: Ctrl-C would otherwise end a git in the middle of its
            // work. And a killed tool takes the programs that it started with it.
            .process_group(0);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        environment::cleanse(&mut command, &Env::default());
        // The tool finds its own helpers, such as the `ssh` of git, where we would.
        command.envs(&self.env);
        let given = self.env.get(OsStr::new("PATH"));
        command.env("PATH", given.map_or_else(trusted_path, |path| trusted_part(path)));
        Ok(command)
    }

    fn report(&self, status: ExitStatus, running: Running<'_>) -> Result<ToolOutput, ToolError> {
        match status.code() {
            Some(code) => {
                Ok(ToolOutput { code, stdout: running.stdout.bytes, stderr: running.stderr.bytes })
            }
            None => Err(ToolError::Signaled {
                program: self.program.clone(),
                signal: status.signal().unwrap_or_default(),
            }),
        }
    }
}

enum Stopped {
    Ended,
    Asks,
    Late,
    Flooded,
    Cancelled,
}

/// A tool that was started and not collected yet.
struct Running<'a> {
    child: Child,
    stdin: Option<std::process::ChildStdin>,
    to_write: &'a [u8],
    stdout: Sink<std::process::ChildStdout>,
    stderr: Sink<std::process::ChildStderr>,
}

/// One output stream of a tool; `source` is `None` after its end.
struct Sink<R> {
    source: Option<R>,
    bytes: Vec<u8>,
    chunk: Vec<u8>,
}

impl<'a> Running<'a> {
    fn new(mut child: Child, to_write: &'a [u8]) -> Self {
        Self {
            stdin: child.stdin.take(),
            to_write,
            stdout: Sink::new(child.stdout.take()),
            stderr: Sink::new(child.stderr.take()),
            child,
        }
    }

    /// Feeds and drains the tool until it has ended or must be killed.
    fn exchange(
        &mut self,
        deadline: Instant,
        max_stdout: usize,
        cancel: Option<&(Cancel, Urgency)>,
    ) -> io::Result<Stopped> {
        self.set_nonblocking()?;
        let end = end_of(&self.child);
        loop {
            // Asked before draining: output written before the exit is then certainly in the pipes.
            let status = self.status()?;
            let ended = status.as_ref().is_some_and(|status| !status.stopped());
            self.write_some()?;
            // One byte beyond the limit tells an output that is too long from one that has exactly
            // the limit.
            let more = self.stdout.drain(max_stdout.saturating_add(1))?;
            if self.stdout.bytes.len() > max_stdout {
                return Ok(Stopped::Flooded);
            }
            let more = self.stderr.drain(MAX_STDERR)? || more;
            // Empty pipes, not closed ones: a process that the tool left behind may keep them open
            // for ever.
            if ended && !more {
                return Ok(Stopped::Ended);
            }
            if status.is_some_and(|status| asks_at_the_terminal(&status)) {
                return Ok(Stopped::Asks);
            }
            if cancel.is_some_and(|(cancel, urgency)| cancel.urgency() >= *urgency) {
                return Ok(Stopped::Cancelled);
            }
            if Instant::now() >= deadline {
                return Ok(Stopped::Late);
            }
            if !more {
                self.wait_for_news(end.as_ref(), deadline.min(Instant::now() + GLANCE))?;
            }
        }
    }

    /// Returns whether the tool has ended or was stopped. It is not collected: until then its id cannot name another group,
    /// and [`finish`](Self::finish) may still have to kill the group.
    fn status(&self) -> io::Result<Option<WaitIdStatus>> {
        let id = WaitId::Pid(Pid::from_child(&self.child));
        let news = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        Ok(waitid(id, news | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)?)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        if let Some(stdin) = &self.stdin {
            nonblocking(stdin)?;
        }
        if let Some(stdout) = &self.stdout.source {
            nonblocking(stdout)?;
        }
        if let Some(stderr) = &self.stderr.source {
            nonblocking(stderr)?;
        }
        Ok(())
    }

    fn write_some(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        while !self.to_write.is_empty() {
            match stdin.write(self.to_write) {
                Ok(written) => self.to_write = &self.to_write[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The program closed its input, which it may.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.stdin = None;
        Ok(())
    }

    fn wait_for_news<F: AsFd>(&self, end: Option<&F>, deadline: Instant) -> io::Result<()> {
        let mut fds = Vec::with_capacity(4);
        if let Some(stdin) = &self.stdin {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if let Some(stdout) = &self.stdout.source {
            fds.push(PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(stderr) = &self.stderr.source {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        let until = match end {
            Some(end) => {
                fds.push(PollFd::new(end, PollFlags::IN));
                deadline
            }
            None => deadline.min(Instant::now() + LOOK),
        };
        poll_until(&mut fds, Some(until))
    }

    /// Collects the tool; with `kill`, kills its whole process group first.
    fn finish(&mut self, kill: bool) -> io::Result<ExitStatus> {
        if kill {
            // The child is uncollected, so the id cannot name another group.
            let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        self.child.wait()
    }
}

impl<R: Read + AsFd> Sink<R> {
    fn new(source: Option<R>) -> Self {
        Self { source, bytes: Vec::new(), chunk: vec![0; CHUNK] }
    }

    /// Reads once, keeping at most `max` bytes in all. Returns true if there may be more.
    fn drain(&mut self, max: usize) -> io::Result<bool> {
        let Some(source) = &mut self.source else {
            return Ok(false);
        };
        match source.read(&mut self.chunk) {
            Ok(0) => {
                self.source = None;
                Ok(false)
            }
            Ok(read) => {
                let room = max.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&self.chunk[..read.min(room)]);
                Ok(true)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(error.kind() == io::ErrorKind::Interrupted)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns whether the kernel stopped a tool for a question at the terminal, such as that of an `ssh` for a passphrase: the
/// tool's group is in the background there. One that a person stopped goes on when it is continued.
fn asks_at_the_terminal(status: &WaitIdStatus) -> bool {
    let signal = status.stopping_signal();
    signal.is_some_and(|signal| [SIGTTIN, SIGTTOU].contains(&signal))
}

/// Returns a descriptor that becomes readable when the child ends, where the system has one.
#[cfg(target_os = "linux")]
fn end_of(child: &Child) -> Option<std::os::fd::OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn end_of(_: &Child) -> Option<std::os::fd::OwnedFd> {
    None
}
