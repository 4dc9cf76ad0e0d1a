//! The supervisor's event loop: one child from its start to its ending.

use std::io;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fs_err as fs;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{WaitOptions, WaitStatus, wait};

use crate::capture::Capture;
use crate::control::{Control, Demand};
use crate::ending::{Ending, SandboxKind};
use crate::launch::{LaunchRefusal, Streams, launch};
use crate::limit::{ChildLimits, LONGEST};
use crate::log::printed_path;
use crate::poll::{nonblocking, poll_until};
use crate::protocol::SupervisorMessage;
use crate::spec::{Spec, Stdin};
use crate::terminal::BorrowedTerminal;
use crate::tree;
use crate::tree::ProcessEntry;
use crate::verdict::ChildVerdict;

/// The longest grace of a child whose driver died: no process waits for its result any more.
const GRACE_ALONE: Duration = Duration::from_millis(500);
/// The time after which processes that do not die from `SIGKILL` are reported as survivors.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// The exit code with which `bwrap` reports that its child died from `SIGKILL`.
const KILLED: i32 = 128 + 9;
/// The shortest interval between two progress messages; each of them wakes the driver.
const PROGRESS: Duration = Duration::from_millis(200);
/// The number of ended children that are collected before the loop looks at anything else.
const REAP: usize = 256;
/// The number of bytes read at once.
const CHUNK: usize = 256 << 10;
/// The size requested for output pipes; a big pipe means fewer wakeups.
const PIPE: usize = 1 << 20;

pub(crate) enum Supervised {
    Ended(ChildVerdict),
    NoSandbox { why: String },
}

/// A child under supervision.
pub(crate) struct SuperviseLoop {
    spec: Spec,
    control: Control,
    ended_children: UnixStream,
    capture: Capture<fs::File>,
    output: Option<PipeReader>,
    /// Standard output, if it is kept apart from standard error.
    printed: Option<Printed>,
    input: Option<Input>,
    chunk: Vec<u8>,
    /// The time and the byte count of the last progress message.
    mentioned: Option<(Instant, u64)>,
    heard: bool,
    /// The process id of the child; `status` is set once it was collected.
    child: Option<i32>,
    status: Option<WaitStatus>,
    /// The process id of `bwrap`, if that runs around the child.
    wall: Option<i32>,
    /// The terminal, if it was lent to the child.
    terminal: Option<BorrowedTerminal>,
    /// True if the last [`reap`](Self::reap) left no ended child uncollected.
    reaped_all: bool,
    /// True if this process has no child left, and therefore no descendant.
    alone: bool,
}

/// The pipe of standard output and its own capture.
struct Printed {
    pipe: Option<PipeReader>,
    capture: Capture<fs::File>,
}

/// The remaining bytes for the child's standard input.
struct Input {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    written: usize,
}

impl SuperviseLoop {
    pub(crate) fn new(
        spec: Spec,
        log: fs::File,
        control: Control,
        ended_children: UnixStream,
    ) -> Self {
        Self {
            capture: Capture::new(log, spec.output, &spec.markers),
            spec,
            control,
            ended_children,
            output: None,
            printed: None,
            input: None,
            chunk: vec![0; CHUNK],
            mentioned: None,
            heard: false,
            child: None,
            status: None,
            wall: None,
            terminal: None,
            reaped_all: false,
            alone: false,
        }
    }

    pub(crate) fn perform(mut self, inherited: Vec<OwnedFd>) -> (Supervised, Control) {
        // A cancellation that is already here must not start the child.
        self.control.exchange();
        if self.control.demand() > Demand::Run {
            let verdict = ChildVerdict::bare(Ending::Cancelled);
            return (Supervised::Ended(verdict), self.control);
        }
        self.terminal = BorrowedTerminal::of(&self.spec, inherited.first());
        // Taken before the start, so that a slow start counts against the timeout.
        let started = Instant::now();
        let launched = self
            .streams(inherited)
            .map_err(|error| LaunchRefusal::Infra {
                why: format!("cannot make the child's pipes: {error}"),
            })
            .and_then(|streams| launch(&self.spec, streams));
        let held = match launched {
            Ok(launched) => {
                self.child = Some(launched.pid);
                let is_wall = matches!(launched.held, SandboxKind::Bwrap { .. });
                self.wall = is_wall.then_some(launched.pid);
                // If the supervisor dies later, the driver knows by this message that a child was
                // running.
                self.control.report(&SupervisorMessage::Started { pid: launched.pid });
                launched.held
            }
            Err(refusal) => return (refused(refusal), self.control),
        };
        let mut limits = ChildLimits::new(&self.spec, started);
        let mut ending = self.watch(&mut limits);
        // Taken before the tree is ended: the grace of the descendants is not time that the child
        // used.
        let duration = started.elapsed();
        let (stragglers, survivors) = self.end_tree(&ending, &mut limits);
        if !survivors.is_empty() {
            let why = format!("processes that cannot be ended: {survivors:?}");
            ending = Ending::Infra { why };
        }
        if let Some(terminal) = &self.terminal {
            // Not earlier: a process of the tree that is still alive could change the settings
            // again.
            terminal.give_back();
        }
        self.drain_rest();
        let (output, marked, _log) = self.capture.finish();
        let printed = self.printed.map(|printed| Box::new(printed.capture.finish().0));
        let verdict = ChildVerdict { ending, duration, output, printed, marked, held, stragglers };
        (Supervised::Ended(verdict), self.control)
    }

    /// Creates the child's standard streams and keeps the other ends.
    fn streams(&mut self, inherited: Vec<OwnedFd>) -> io::Result<Streams> {
        let mut inherited = inherited.into_iter();
        let (own_stdin, own_stdout, own_stderr) =
            (inherited.next(), inherited.next(), inherited.next());
        let stdin = match &mut self.spec.stdin {
            Stdin::Null => None,
            Stdin::Inherit => own_stdin,
            Stdin::Bytes(bytes) => {
                let (theirs, pipe) = io::pipe()?;
                nonblocking(&pipe)?;
                let bytes = std::mem::take(bytes);
                let written = 0;
                self.input = Some(Input { pipe, bytes, written });
                Some(theirs.into())
            }
        };
        if self.spec.interactive {
            // An interactive program gets the terminal itself as its output: on a pipe it would not
            // show its full-screen view.
            return Ok(Streams { stdin, stdout: own_stdout, stderr: own_stderr });
        }
        let (ours, theirs) = output_pipe()?;
        self.output = Some(ours);
        let stdout = if self.spec.keep_printed {
            let (ours, theirs) = output_pipe()?;
            let file = fs::File::create(printed_path(&self.spec.job))?;
            let capture = Capture::new(file, self.spec.output, &[]);
            self.printed = Some(Printed { pipe: Some(ours), capture });
            theirs
        } else {
            // One pipe for both, so that the log has them in the order in which they were written.
            theirs.try_clone()?
        };
        Ok(Streams { stdin, stdout: Some(stdout.into()), stderr: Some(theirs.into()) })
    }

    /// Waits until the child has ended or must be ended.
    fn watch(&mut self, limits: &mut ChildLimits) -> Ending {
        loop {
            self.reap();
            let now = Instant::now();
            if std::mem::take(&mut self.heard) {
                limits.sign_of_life(now);
            }
            // Looked at before the demand and the limits: a child that ended by itself keeps its
            // result, even if it was cancelled or its time was over at the same moment.
            if let Some(status) = self.status {
                let ending = ending_of(status);
                // `bwrap` reports a signal as an exit code. A `SIGKILL` from outside (the kernel's when memory is
                // short) must not be charged to the child.
                let is_killed = self.wall.is_some() && ending == Ending::Exited(KILLED);
                return if is_killed { Ending::Signaled(KILLED - 128) } else { ending };
            }
            if self.control.demand() > Demand::Run {
                return Ending::Cancelled;
            }
            if let Some(ending) = limits.exceeded(now) {
                return ending;
            }
            if let Err(error) = self.exchange(limits.next_look()) {
                return Ending::Infra {
                    why: format!("the supervisor cannot wait for the child: {error}"),
                };
            }
        }
    }

    /// Ends every descendant. Returns how many processes besides the child were still alive, and those that could
    /// not be ended.
    fn end_tree(&mut self, ending: &Ending, limits: &mut ChildLimits) -> (u32, Vec<i32>) {
        self.reap();
        if self.alone {
            return (0, Vec::new());
        }
        let alive = self.alive();
        // `bwrap`'s own helper process is not a straggler.
        let is_ours = |process: &&ProcessEntry| {
            Some(process.pid) == self.child || self.wall.is_some_and(|wall| process.parent == wall)
        };
        // Once `bwrap` has ended, the kernel is killing the rest of its namespace; counting them would depend on
        // timing.
        let has_fallen = self.wall.is_some() && self.status.is_some();
        let stragglers = alive.iter().filter(|process| !has_fallen && !is_ours(process)).count();
        // A tree that uses too much memory would use its grace to allocate more.
        let at_once = matches!(ending, Ending::Infra { .. } | Ending::OverMemory { .. });
        if !at_once {
            self.terminate(&alive, limits);
        }
        let survivors = self.kill();
        (u32::try_from(stragglers).unwrap_or(u32::MAX), survivors)
    }

    /// Sends `SIGTERM` to `alive` and waits for the grace, unless the tree uses it to multiply.
    fn terminate(&mut self, alive: &[ProcessEntry], limits: &mut ChildLimits) {
        let begun = Instant::now();
        // `bwrap` and its first process end the whole namespace when they get `SIGTERM`, which would leave the child no
        // grace.
        let wall = self.wall;
        let is_wall = |process: &&ProcessEntry| {
            wall.is_some_and(|wall| process.pid == wall || process.parent == wall)
        };
        let asked: Vec<ProcessEntry> = alive.iter().filter(|one| !is_wall(one)).copied().collect();
        tree::terminate_all(&asked);
        loop {
            self.reap();
            // Computed in each round, because a driver that kills or dies shortens a grace that has
            // already begun.
            let longest = self.spec.grace.min(LONGEST);
            let grace = match self.control.demand() {
                Demand::Run | Demand::Cancel => longest,
                Demand::Gone => longest.min(GRACE_ALONE),
                Demand::Kill => Duration::ZERO,
            };
            let now = Instant::now();
            if self.alone || now >= begun + grace || limits.crowded(now) {
                return;
            }
            // Wakes up for the count as well: a tree that answers `SIGTERM` by forking must not get
            // its whole grace.
            let until = limits.next_census().min(begun + grace);
            if self.exchange(Some(until)).is_err() {
                return;
            }
        }
    }

    /// Kills until no descendant is left. Returns the survivors after [`KILL_PATIENCE`].
    fn kill(&mut self) -> Vec<i32> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut last = 0;
        loop {
            self.reap();
            if self.alone {
                return Vec::new();
            }
            let alive = self.alive();
            if begun.elapsed() >= KILL_PATIENCE {
                return alive.iter().map(|process| process.pid).collect();
            }
            let count = alive.len();
            // One round is enough unless the processes fork faster than the process table is read.
            tree::kill_all(alive, last > 0 && count >= last, tree::descendants);
            last = count;
            self.reap();
            if !self.alone && self.exchange(Some(Instant::now() + pause)).is_err() {
                std::thread::sleep(pause);
            }
            // Most trees are gone after the first round, so the first pause is short. It grows
            // because each round reads the whole process table.
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Returns the living descendants. Where the process table cannot be read, returns the child as long as it is
    /// uncollected, because until then its process id cannot be reused.
    fn alive(&self) -> Vec<ProcessEntry> {
        let mut alive = tree::descendants();
        if let (true, None, Some(child)) = (alive.is_empty(), self.status, self.child) {
            alive.push(ProcessEntry::unseen(child));
        }
        alive
    }

    /// Collects ended children, including reparented ones. Bounded by [`REAP`], because a tree that forks fast enough
    /// would otherwise keep the loop here for ever.
    fn reap(&mut self) {
        self.reaped_all = false;
        // Without a lent terminal no one reacts to a stop, and a stopped child is left to its
        // limits.
        let stops =
            if self.terminal.is_some() { WaitOptions::UNTRACED } else { WaitOptions::empty() };
        for _ in 0..REAP {
            match wait(WaitOptions::NOHANG | stops) {
                Ok(Some((pid, status))) if status.stopped() => self.stopped(pid.as_raw_pid()),
                Ok(Some((pid, status))) if Some(pid.as_raw_pid()) == self.child => {
                    self.status = Some(status);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => {
                    self.reaped_all = true;
                    return;
                }
                // `ECHILD`: no child is left, and a subreaper without a child has no descendant.
                Err(_) => {
                    self.reaped_all = true;
                    self.alone = true;
                    return;
                }
            }
        }
    }

    /// Reports that the child stopped. A process below it is the child's own matter.
    fn stopped(&mut self, pid: i32) {
        if Some(pid) != self.child {
            return;
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.pause();
            self.control.report(&SupervisorMessage::Stopped);
        }
    }

    /// Waits for the next event until `until`, and handles it.
    fn exchange(&mut self, until: Option<Instant>) -> io::Result<()> {
        {
            let mut fds = vec![PollFd::new(&self.ended_children, PollFlags::IN)];
            fds.extend(self.control.poll_fd());
            if let Some(output) = &self.output {
                fds.push(PollFd::new(output, PollFlags::IN));
            }
            if let Some(pipe) = self.printed.as_ref().and_then(|printed| printed.pipe.as_ref()) {
                fds.push(PollFd::new(pipe, PollFlags::IN));
            }
            if let Some(input) = &self.input {
                fds.push(PollFd::new(&input.pipe, PollFlags::OUT));
            }
            let now = Instant::now();
            // Children that ended before `reap` was cut short send no second signal.
            let reap = (!self.reaped_all).then_some(now);
            let until = [until, self.progress_due(now), reap];
            poll_until(&mut fds, until.into_iter().flatten().min())?;
        }
        // The bytes only wake; the children themselves are collected by `reap`.
        let _none = self.ended_children.read(&mut [0; 1024]);
        self.control.exchange();
        if self.control.take_resumed()
            && let Some(terminal) = &mut self.terminal
        {
            terminal.resume();
        }
        self.feed_child();
        self.drain_some();
        self.mention_progress();
        Ok(())
    }

    fn feed_child(&mut self) {
        let Some(input) = &mut self.input else {
            return;
        };
        while input.written < input.bytes.len() {
            match input.pipe.write(&input.bytes[input.written..]) {
                Ok(written) => input.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The child closed its input, which it may.
                Err(_) => break,
            }
        }
        self.input = None;
    }

    /// Reads once from each output pipe, so that other events do not wait long. Returns the number of bytes.
    fn drain_some(&mut self) -> usize {
        let mut all = 0;
        if let Some(read) = read_once(&mut self.output, &mut self.chunk) {
            self.capture.feed(&self.chunk[..read]);
            all += read;
        }
        if let Some(printed) = &mut self.printed
            && let Some(read) = read_once(&mut printed.pipe, &mut self.chunk)
        {
            self.capture.feed(&self.chunk[..read]);
            printed.capture.feed(&self.chunk[..read]);
            all += read;
        }
        self.heard = self.heard || all > 0;
        all
    }

    /// Reads the bytes that are in the pipes now. Their end may never come: a process outside of our tree may hold
    /// the other end.
    fn drain_rest(&mut self) {
        let printed = self.printed.as_ref().and_then(|printed| printed.pipe.as_ref());
        let waiting = |pipe: &PipeReader| rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        let mut left = self.output.iter().chain(printed).map(waiting).sum::<u64>();
        while left > 0 {
            match self.drain_some() as u64 {
                0 => return,
                read => left = left.saturating_sub(read),
            }
        }
    }

    /// Returns the time at which new output may be reported.
    fn progress_due(&self, now: Instant) -> Option<Instant> {
        match self.mentioned {
            Some((_, bytes)) if bytes == self.capture.bytes() => None,
            Some((when, _)) => Some(when + PROGRESS),
            None => (self.capture.bytes() > 0).then_some(now),
        }
    }

    fn mention_progress(&mut self) {
        let now = Instant::now();
        if self.progress_due(now).is_some_and(|due| now >= due) {
            self.mentioned = Some((now, self.capture.bytes()));
            self.control.mention(&SupervisorMessage::Output {
                bytes: self.capture.bytes(),
                last_line: self.capture.last_line(),
            });
        }
    }
}

/// Creates a pipe for output: our end, which does not block, and the child's.
fn output_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (ours, theirs) = io::pipe()?;
    nonblocking(&ours)?;
    #[cfg(target_os = "linux")]
    {
        // Fails if the user already has too many big pipes; the default size also works.
        let _grown = rustix::pipe::fcntl_setpipe_size(&ours, PIPE);
    }
    Ok((ours, theirs))
}

/// Reads from a pipe once and closes it at its end.
fn read_once(pipe: &mut Option<PipeReader>, chunk: &mut [u8]) -> Option<usize> {
    match pipe.as_mut()?.read(chunk) {
        Ok(0) => *pipe = None,
        Ok(read) => return Some(read),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
        // A pipe that cannot be read is given up; polling it again would keep the loop busy.
        Err(_) => *pipe = None,
    }
    None
}

fn ending_of(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signaled(signal),
        (None, None) => {
            Ending::Infra { why: format!("the child ended with status {:#x}", status.as_raw()) }
        }
    }
}

fn refused(refusal: LaunchRefusal) -> Supervised {
    let (ending, held) = match refusal {
        LaunchRefusal::NoSandbox { why } => return Supervised::NoSandbox { why },
        LaunchRefusal::Obstacle { kind, why, held } => (Ending::NotStarted { kind, why }, held),
        LaunchRefusal::Infra { why } => (Ending::Infra { why }, SandboxKind::Off),
    };
    Supervised::Ended(ChildVerdict { held, ..ChildVerdict::bare(ending) })
}
