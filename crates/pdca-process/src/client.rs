//! The driver's end of the supervisor protocol, and the handle of the supervisor process.

use std::ffi::OsString;
use std::io;
use std::io::{PipeReader, Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::stdio::{stderr, stdin, stdout};

use crate::cancel::{Cancel, Urgency};
use crate::environment::TOKENS;
use crate::limit::LONGEST;
use crate::orphan::Lost;
use crate::poll::{nonblocking, poll_until};
use crate::protocol::{Order, SupervisorMessage, byte, send_opening, write_frame};
use crate::run::Sign;
use crate::spec::{Spec, Stdin};
use crate::supervisor::Invocation;
use crate::terminal::LentTerminal;
use crate::tree;
use crate::verdict::ChildVerdict;

/// The interval of [`Sign::Tick`] while a child is quiet.
const TICK: Duration = Duration::from_secs(1);
/// The time beyond the child's own limits after which a silent supervisor is killed. It is longer
/// than the supervisor's `KILL_PATIENCE` and `LAST_WORDS` together, so a supervisor that works is
/// never overdue.
const MARGIN: Duration = Duration::from_secs(20);

/// The last message of a supervisor, or its absence.
#[derive(Debug)]
pub(crate) enum FinalMessage {
    /// The child ended.
    Ended(ChildVerdict),
    /// The child was not started because the required sandbox is missing.
    NoSandbox { why: String },
    /// The supervisor died without a last message.
    Gone,
    /// The supervisor sent nothing for longer than its limits allow.
    Overdue,
}

/// The remains of a supervisor that was stopped.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) status: io::Result<ExitStatus>,
    /// Processes of the tree that could not be killed.
    pub(crate) survivors: Vec<i32>,
    /// True if [`SupervisorMessage::Started`] was received.
    pub(crate) started: bool,
}

/// A running supervisor. Dropping it closes the lifeline, upon which the supervisor ends the child.
#[derive(Debug)]
pub(crate) struct SupervisorClient {
    supervisor: Child,
    socket: Option<UnixStream>,
    lost: Lost,
    heard: Vec<u8>,
    started: bool,
    /// The child stopped, and the driver has not reacted yet.
    stopped: bool,
    /// Dropped after the supervisor was waited for, which takes the terminal back.
    terminal: Option<LentTerminal>,
}

impl SupervisorClient {
    /// Starts the supervisor and sends it its order.
    pub(crate) fn start(spec: &Spec, invocation: &Invocation) -> io::Result<Self> {
        // The tree of a supervisor that is killed is reparented to this process, and not to init, where it could not be
        // told from others.
        static SUBREAPER: OnceLock<bool> = OnceLock::new();
        SUBREAPER.get_or_init(|| tree::become_subreaper().is_ok());

        // Both ends are close-on-exec, so that no child started by another thread keeps the
        // lifeline open.
        let (ours, theirs) = UnixStream::pair()?;
        // Sent before the supervisor exists, so that it can leave our terminal without waiting for us.
        open(spec, &ours)?;
        let token = next_token();
        let terminal = LentTerminal::of(spec, invocation);
        let mut command = command(invocation, theirs, &token);
        if terminal.is_some() {
            // A terminal is lent to a process group. In the driver's own group Ctrl-C would also
            // interrupt the driver and its other children.
            command.process_group(0);
        }
        let supervisor = command.spawn()?;
        let group = Pid::from_child(&supervisor);
        let mut client = Self {
            lost: Lost {
                pid: Pid::from_child(&supervisor).as_raw_pid(),
                token,
                detached: !spec.interactive,
            },
            supervisor,
            socket: Some(ours),
            heard: Vec::new(),
            started: false,
            stopped: false,
            terminal,
        };
        if let Some(terminal) = &mut client.terminal {
            // Before the order: a child that reads the terminal from the background is stopped by
            // the kernel.
            terminal.lend(group)?;
        }
        match client.give_order(spec) {
            Ok(()) => Ok(client),
            // The supervisor died early; `watch` notices that, and `stop` cleans up after it.
            Err(error) if is_hangup(&error) => Ok(client),
            Err(error) => Err(error),
        }
    }

    /// Receives messages until the last one, passing signs of life to `watch` and cancellation to the supervisor.
    pub(crate) fn watch(
        &mut self,
        spec: &Spec,
        cancel: &Cancel,
        watch: &mut dyn FnMut(Sign),
    ) -> io::Result<FinalMessage> {
        let mut wake = cancel.subscribe()?;
        nonblocking(&wake.reader)?;
        let mut told = Urgency::None;
        let clearing = spec.grace.min(LONGEST) + MARGIN;
        let mut patience =
            spec.timeout.map(|timeout| Instant::now() + timeout.min(LONGEST) + clearing);
        let mut last_sign = Instant::now();
        loop {
            // Reads before it looks at the clock: if this process itself was stopped for long, the last message may
            // have been waiting, and must not be taken for an overdue one.
            let (last, any) = self.listen(watch)?;
            if let Some(last) = last {
                return Ok(last);
            }
            if std::mem::take(&mut self.stopped) {
                self.suspend(cancel)?;
            }
            let now = Instant::now();
            if any {
                last_sign = now;
            } else if now >= last_sign + TICK {
                last_sign = now;
                watch(Sign::Tick);
            }
            let urgency = cancel.urgency();
            if urgency > told {
                told = urgency;
                self.tell(urgency);
                // Also set for a child without a timeout: after a cancellation the supervisor has
                // to answer within the grace.
                patience = Some(now + clearing);
            }
            if patience.is_some_and(|patience| now >= patience) {
                return Ok(FinalMessage::Overdue);
            }
            let tick = last_sign + TICK;
            let until = patience.map_or(tick, |patience| patience.min(tick));
            self.wait_for_news(&mut wake.reader, until)?;
        }
    }

    /// Waits for the end of the supervisor, killing it if it is overdue, and ends the processes it left behind.
    pub(crate) fn stop(mut self, last: &FinalMessage) -> Stopped {
        self.socket = None;
        // A supervisor that sent its last message has ended the tree before. Searching it again
        // would cost a reading of the process table for each child.
        let survivors = match last {
            FinalMessage::Ended(_) | FinalMessage::NoSandbox { .. } => Vec::new(),
            FinalMessage::Overdue => {
                let _gone = self.supervisor.kill();
                self.end_orphans()
            }
            FinalMessage::Gone => self.end_orphans(),
        };
        Stopped { status: self.supervisor.wait(), survivors, started: self.started }
    }

    /// Ends the tree of a supervisor that is dead or about to be.
    fn end_orphans(&self) -> Vec<i32> {
        // Its children are reparented to us only once it is dead. `NOWAIT` leaves it uncollected, so that its
        // process id cannot be reused while its session is searched for.
        let id = WaitId::Pid(Pid::from_child(&self.supervisor));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _dead = rustix::io::retry_on_intr(|| waitid(id.clone(), options));
        self.lost.end_tree()
    }

    fn give_order(&mut self, spec: &Spec) -> io::Result<()> {
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        let mut spec = spec.clone();
        // Sent in a frame of its own: JSON would write bytes as a list of numbers.
        let input = match &mut spec.stdin {
            Stdin::Bytes(bytes) => std::mem::take(bytes),
            Stdin::Null | Stdin::Inherit => Vec::new(),
        };
        let order = Order::new(spec);
        write_frame(socket, &serde_json::to_vec(&order)?)?;
        write_frame(socket, &input)?;
        // Not before: the order has to arrive whole. From here on `listen` must not block.
        nonblocking(&*socket)
    }

    /// Receives what is there. Returns the last message, if it came, and whether any message came.
    fn listen(&mut self, watch: &mut dyn FnMut(Sign)) -> io::Result<(Option<FinalMessage>, bool)> {
        let mut any = false;
        loop {
            while let Some(news) = self.next_news()? {
                any = true;
                match news {
                    SupervisorMessage::Started { pid } => {
                        self.started = true;
                        watch(Sign::Started { pid });
                    }
                    SupervisorMessage::Stopped => self.stopped = true,
                    SupervisorMessage::Output { bytes, last_line } => {
                        watch(Sign::Output { bytes, last_line });
                    }
                    SupervisorMessage::Ended { verdict } => {
                        return Ok((Some(FinalMessage::Ended(*verdict)), true));
                    }
                    SupervisorMessage::NoSandbox { why } => {
                        return Ok((Some(FinalMessage::NoSandbox { why }), true));
                    }
                }
            }
            let Some(socket) = &mut self.socket else {
                return Ok((Some(FinalMessage::Gone), any));
            };
            let mut bytes = [0; 16 << 10];
            match socket.read(&mut bytes) {
                Ok(0) => self.socket = None,
                Ok(read) => self.heard.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((None, any)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_hangup(&error) => self.socket = None,
                Err(error) => return Err(error),
            }
        }
    }

    fn next_news(&mut self) -> io::Result<Option<SupervisorMessage>> {
        let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.heard.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// Stops with the child, and lets that go on when the person continues both.
    fn suspend(&mut self, cancel: &Cancel) -> io::Result<()> {
        if let Some(terminal) = &mut self.terminal {
            terminal.suspend(&|| !cancel.is_cancelled())?;
        }
        if let Some(socket) = &mut self.socket {
            let _told = socket.write(&[byte::RESUME]);
        }
        Ok(())
    }

    fn tell(&mut self, urgency: Urgency) {
        let word = match urgency {
            Urgency::None => return,
            Urgency::Cancel => byte::CANCEL,
            Urgency::Kill => byte::KILL,
        };
        if let Some(socket) = &mut self.socket {
            // A write to a dead supervisor fails, which the next `listen` notices by itself.
            let _told = socket.write(&[word]);
        }
    }

    fn wait_for_news(&self, wake: &mut PipeReader, until: Instant) -> io::Result<()> {
        {
            let mut fds = vec![PollFd::new(wake, PollFlags::IN)];
            if let Some(socket) = &self.socket {
                fds.push(PollFd::new(socket, PollFlags::IN));
            }
            poll_until(&mut fds, Some(until))?;
        }
        // The bytes only wake; the urgency itself is read from `Cancel`.
        let _nothing_there = wake.read(&mut [0; 8]);
        Ok(())
    }
}

impl Drop for SupervisorClient {
    fn drop(&mut self) {
        // After `stop` this only collects a second time. Otherwise something panicked: the closed lifeline makes the
        // supervisor end the tree and then itself.
        self.socket = None;
        let _collected = self.supervisor.wait();
    }
}

/// Sends the opening, with this process's three streams if the child inherits any of them.
fn open(spec: &Spec, socket: &UnixStream) -> io::Result<()> {
    let opening = if spec.interactive { byte::TERMINAL } else { byte::DETACHED };
    let own: [BorrowedFd<'_>; 3] = [stdin(), stdout(), stderr()];
    let inherits = spec.interactive || spec.stdin == Stdin::Inherit;
    send_opening(socket, opening, if inherits { &own } else { &[] })
}

fn command(invocation: &Invocation, socket: UnixStream, token: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts children")]
    let mut command = Command::new(&invocation.program);
    command
        .arg0("pdca-supervisor")
        .args(&invocation.args)
        .stdin(OwnedFd::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A supervisor below another supervisor belongs to both trees, so its children carry both tokens.
    let mut tokens = std::env::vars_os()
        .find_map(|(name, value)| (name == TOKENS).then_some(value))
        .map_or_else(OsString::new, |mut above| {
            above.push(":");
            above
        });
    tokens.push(token);
    command.env(TOKENS, tokens);
    command
}

/// Returns a token that no other supervisor on this machine has: process id, its start time, a counter.
fn next_token() -> String {
    static START: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let pid = rustix::process::getpid().as_raw_pid();
    let start = START.get_or_init(tree::own_start);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{pid}-{start}-{count}")
}

fn is_hangup(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
