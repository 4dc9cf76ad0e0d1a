//! The supervisor's end of the socket that it shares with the driver.

use std::io;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::poll::poll_until;
use crate::protocol::{Order, SupervisorMessage, byte, read_frame, receive_opening};
use crate::spec::{Spec, Stdin};

/// The longest time the last message waits for a driver that does not read. The verdict is already
/// stored, so a driver that needs longer loses nothing.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The most urgent demand of the driver so far, in order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Demand {
    /// The child runs.
    Run,
    /// The child ends in an orderly way.
    Cancel,
    /// The driver died; the child ends with a short grace.
    Gone,
    /// The child is killed at once.
    Kill,
}

/// The socket, and the messages that could not be sent yet.
#[derive(Debug)]
pub(crate) struct Control {
    socket: UnixStream,
    unsent: Vec<u8>,
    demand: Demand,
    /// The driver lent the terminal again to a stopped child.
    resumed: bool,
    open: bool,
}

/// The order with the input and descriptors that were sent apart from it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) spec: Spec,
    pub(crate) inherited: Vec<OwnedFd>,
}

/// The task of a process that this crate started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessTask {
    Supervise(Attachment),
    /// Confine itself and become the child.
    Confine,
    /// Put the driver in the foreground of its terminal.
    TerminalBack,
}

/// The terminal of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attachment {
    Detached,
    Terminal,
}

impl Control {
    /// Takes the socket away from standard input, where it was passed, so that no child inherits it.
    pub(crate) fn adopt() -> io::Result<Self> {
        let socket = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
        // Descriptor 0 stays occupied: the next file that is opened would otherwise become standard
        // input.
        let null = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        Ok(Self { socket, unsent: Vec::new(), demand: Demand::Run, resumed: false, open: true })
    }

    /// Receives the opening byte; `None` if the driver is already gone.
    pub(crate) fn opening(&self) -> io::Result<Option<(ProcessTask, Vec<OwnedFd>)>> {
        let supervise = |attachment| ProcessTask::Supervise(attachment);
        match receive_opening(self.socket.as_fd())? {
            Some((byte::DETACHED, inherited)) => {
                Ok(Some((supervise(Attachment::Detached), inherited)))
            }
            Some((byte::TERMINAL, inherited)) => {
                Ok(Some((supervise(Attachment::Terminal), inherited)))
            }
            Some((byte::CONFINED, streams)) => Ok(Some((ProcessTask::Confine, streams))),
            Some((byte::TERMINAL_BACK, terminal)) => {
                Ok(Some((ProcessTask::TerminalBack, terminal)))
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
            None => Ok(None),
        }
    }

    /// Receives the order. Afterwards the socket does not block.
    pub(crate) fn order(&mut self, inherited: Vec<OwnedFd>) -> io::Result<Received> {
        let order: Order = serde_json::from_slice(&read_frame(&mut self.socket)?)?;
        let input = read_frame(&mut self.socket)?;
        let mut spec = order.accept()?;
        self.socket.set_nonblocking(true)?;
        if let Stdin::Bytes(bytes) = &mut spec.stdin {
            *bytes = input;
        }
        Ok(Received { spec, inherited })
    }

    /// Returns the socket of a process that is no supervisor.
    pub(crate) fn into_socket(self) -> UnixStream {
        self.socket
    }

    pub(crate) fn demand(&self) -> Demand {
        self.demand
    }

    /// Returns true once after the driver lent the terminal again.
    pub(crate) fn take_resumed(&mut self) -> bool {
        std::mem::take(&mut self.resumed)
    }

    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let mut interest = PollFlags::IN;
        if !self.unsent.is_empty() {
            interest |= PollFlags::OUT;
        }
        self.open.then(|| PollFd::new(&self.socket, interest))
    }

    /// Reads the driver's demands and sends the messages that wait.
    pub(crate) fn exchange(&mut self) {
        self.flush();
        let mut bytes = [0; 64];
        while self.open {
            match self.socket.read(&mut bytes) {
                Ok(0) => self.lose_driver(),
                Ok(read) => {
                    for word in &bytes[..read] {
                        match *word {
                            byte::CANCEL => self.demand = self.demand.max(Demand::Cancel),
                            byte::KILL => self.demand = Demand::Kill,
                            byte::RESUME => self.resumed = true,
                            _ => {}
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.lose_driver(),
            }
        }
    }

    /// Sends a progress message, unless an older message still waits: progress may be dropped.
    pub(crate) fn mention(&mut self, news: &SupervisorMessage) {
        if self.unsent.is_empty() {
            self.report(news);
        }
    }

    /// Sends a message that must arrive.
    pub(crate) fn report(&mut self, news: &SupervisorMessage) {
        serde_json::to_writer(&mut self.unsent, news)
            .expect("because news has only text keys and memory takes every byte");
        self.unsent.push(b'\n');
        self.flush();
    }

    /// Waits, for a limited time, until everything was sent.
    pub(crate) fn close(mut self) {
        let until = Instant::now() + LAST_WORDS;
        while self.open && !self.unsent.is_empty() && Instant::now() < until {
            let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
            if poll_until(&mut fds, Some(until)).is_err() {
                return;
            }
            self.flush();
        }
    }

    fn flush(&mut self) {
        while self.open && !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.lose_driver(),
            }
        }
    }

    fn lose_driver(&mut self) {
        self.open = false;
        self.demand = self.demand.max(Demand::Gone);
    }
}
