//! The terminal as a keyboard: one key at a time, and back to normal whatever happens.
//!
//! 1. [`Keyboard::open`] turns off line editing and echo; signals stay on, so Ctrl-C and Ctrl-Z are signals.
//! 2. INT, TERM and HUP only set a flag, so that a process that is asked to end puts the terminal back first.
//! 3. A child gets the terminal as it was, and may leave it as it likes: the mode is set again afterwards, and also when
//!    the process continues after Ctrl-Z.
//! 4. Dropping the keyboard puts the terminal back, also when a panic unwinds.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};

/// The longest wait for the rest of an escape sequence.
// The Escape key sends the byte that begins a sequence; only time tells them apart.
const SEQUENCE: Duration = Duration::from_millis(30);
/// The longest wait before the flags of signals are looked at.
// A signal that comes between the look at the flags and `poll` does not interrupt the poll.
const GLANCE: Duration = Duration::from_millis(100);

/// The keyboard, for as long as this lives.
pub(crate) struct Keyboard {
    /// The mode from before, to be put back.
    before: Termios,
    keys: Termios,
    /// Bytes that were read and not used yet.
    typed: VecDeque<u8>,
    /// Set by TERM and HUP.
    asked_to_end: Arc<AtomicBool>,
    /// Set by INT, which is Ctrl-C.
    interrupted: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    handlers: Vec<SigId>,
    began: Instant,
}

/// The end of a wait for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pressed {
    Key(char),
    Enter,
    Escape,
    /// No key came in time.
    Nothing,
    /// The process was continued after Ctrl-Z: the screen has to be drawn again.
    Continued,
    /// A signal asks to end, or the terminal is gone.
    End,
}

impl Keyboard {
    pub(crate) fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        let [asked_to_end, interrupted, continued]: [Arc<AtomicBool>; 3] = Default::default();
        let mut handlers = Vec::new();
        for (signal, flag) in [
            (SIGTERM, &asked_to_end),
            (SIGHUP, &asked_to_end),
            (SIGINT, &interrupted),
            (SIGCONT, &continued),
        ] {
            handlers.push(signal_hook::flag::register(signal, Arc::clone(flag))?);
        }
        let (typed, began) = (VecDeque::new(), Instant::now());
        let keyboard =
            Self { before, keys, typed, asked_to_end, interrupted, continued, handlers, began };
        // After the handlers: a signal in between would otherwise end the process with echo turned off. And
        // `keyboard` exists by now, so its drop puts the mode back if this fails half-way.
        Self::set(&keyboard.keys)?;
        Ok(keyboard)
    }

    /// Returns the time since the keyboard was opened.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits for a key, at most for `patience`.
    pub(crate) fn key(&mut self, patience: Duration) -> io::Result<Pressed> {
        let until = Instant::now() + patience;
        loop {
            if self.must_end() {
                return Ok(Pressed::End);
            }
            if self.continued.swap(false, Ordering::SeqCst) {
                // The shell has set its own mode while this process was stopped.
                Self::set(&self.keys)?;
                return Ok(Pressed::Continued);
            }
            if let Some(pressed) = self.take_key()? {
                return Ok(pressed);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Pressed::Nothing);
            }
            if Self::wait(left.min(GLANCE))? && !self.fill()? {
                return Ok(Pressed::End);
            }
        }
    }

    /// Reads one line with echo and line editing; `None` if it was left with Ctrl-D, or if the next key is the end.
    pub(crate) fn line(&mut self) -> io::Result<Option<String>> {
        let line = self.as_before(|keyboard| {
            loop {
                // A line that was typed ahead is here already, read while single keys were wanted.
                if let Some(end) = keyboard.typed.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = keyboard.typed.drain(..=end).collect();
                    return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
                }
                if keyboard.must_end() || Self::wait(GLANCE)? && !keyboard.fill()? {
                    // The beginning of a line that was left must not be taken for keys.
                    keyboard.typed.clear();
                    return Ok(None);
                }
            }
        })?;
        Ok(line)
    }

    /// Leaves the terminal to `job`, which may run a child. Ctrl-C in it ends the child alone.
    pub(crate) fn lend<T>(&mut self, job: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        // Ctrl-C goes to the whole foreground group, so it sets the flag here too. It was meant for the child.
        let was_interrupted = self.interrupted.load(Ordering::SeqCst);
        let done = self.as_before(|_| job());
        self.interrupted.store(was_interrupted, Ordering::SeqCst);
        done
    }

    fn must_end(&self) -> bool {
        self.asked_to_end.load(Ordering::SeqCst) || self.interrupted.load(Ordering::SeqCst)
    }

    fn as_before<T>(&mut self, job: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        Self::set(&self.before)?;
        let done = job(self);
        Self::set(&self.keys)?;
        done
    }

    fn set(mode: &Termios) -> io::Result<()> {
        // What is typed ahead stays: a fast person, or a script, has decided the next card already.
        Ok(tcsetattr(stdin(), OptionalActions::Drain, mode)?)
    }

    fn wait(patience: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: patience.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let input = stdin();
        let mut fds = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what was typed. Returns whether the terminal is still there.
    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 256];
        match rustix::io::read(stdin(), &mut bytes) {
            // Linux answers EIO where the terminal of the session was closed.
            Ok(0) | Err(rustix::io::Errno::IO) => Ok(false),
            Ok(count) => {
                self.typed.extend(&bytes[..count]);
                Ok(true)
            }
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a key out of what was typed; `None` if nothing was, or not all of a letter.
    fn take_key(&mut self) -> io::Result<Option<Pressed>> {
        let Some(&first) = self.typed.front() else { return Ok(None) };
        if first == 0x1b {
            if self.typed.len() == 1 && Self::wait(SEQUENCE)? {
                self.fill()?;
            }
            return Ok(Some(self.take_escape()));
        }
        // A stray continuation byte counts as one: it becomes U+FFFD, which is no key, and cannot block the rest.
        let length = match first {
            0..0xc0 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
        if self.typed.len() < length {
            return Ok(None);
        }
        let bytes: Vec<u8> = self.typed.drain(..length).collect();
        let letter = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next());
        Ok(Some(match letter {
            Some('\n' | '\r') => Pressed::Enter,
            // Ctrl-D at the terminal is the end of input.
            Some('\u{4}') => Pressed::Key('q'),
            Some(letter) => Pressed::Key(letter),
            None => Pressed::Key('\u{fffd}'),
        }))
    }

    /// Takes an escape sequence: the arrows are keys, others are left out.
    fn take_escape(&mut self) -> Pressed {
        self.typed.pop_front();
        if self.typed.front() != Some(&b'[') {
            return Pressed::Escape;
        }
        self.typed.pop_front();
        while let Some(byte) = self.typed.pop_front() {
            match byte {
                b'C' | b'B' => return Pressed::Key('n'),
                b'D' | b'A' => return Pressed::Key('b'),
                0x40..=0x7e => return Pressed::Key('\u{fffd}'),
                _ => {}
            }
        }
        Pressed::Escape
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Fails if the terminal was closed meanwhile; then there is nothing to put back.
        drop(Self::set(&self.before));
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

/// Returns the number of lines of the terminal, if it tells.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, height)| usize::from(height.0)).filter(|rows| *rows > 0)
}
