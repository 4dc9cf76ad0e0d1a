//! A board on a terminal.
//!
//! Three threads: this one has the terminal and the state machine, a worker reads the workspace and records decisions, and
//! a third publishes what was accepted, which takes as long as the forge does. A frame is drawn when something came in, and
//! waits for neither.
//!
//! 1. The hook for panics is set before the terminal is changed, so that no panic leaves it raw.
//! 2. A child gets the terminal as it was; afterwards everything is drawn anew.
//! 3. TERM, HUP and INT only set a flag, so that a board that is asked to end puts the terminal back first.
//! 4. The end of the worker ends the board: a board that shows the past must not look alive.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use pdca_state::BundleId;
use pdca_workspace::review::{Card, Decision};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::crossterm::execute;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::board::data::BoardData;
use crate::board::input::{BoardEffect, BoardInput, BoardKey};
use crate::board::state::Board;
use crate::board::view::{Theme, draw};

/// The interval at which the workspace is read.
// Polled, because notifications of network file systems are unreliable (decision 062).
const REFRESH: Duration = Duration::from_secs(1);
/// The longest time that a message of the worker waits to be shown.
const POLL: Duration = Duration::from_millis(40);

/// The workspace of a board, called on a thread of its own.
pub trait Desk: Sync {
    /// Reads the workspace.
    fn data(&self) -> Result<BoardData, String>;
    /// Reads a card.
    fn card(&self, id: &BundleId) -> Result<Card, String>;
    /// Records a decision, and says what became of it.
    fn record(&self, decision: &Decision) -> Result<Recorded, String>;
    /// Publishes an accepted change, and says what came of it; `None` if nothing follows an acceptance.
    fn publish(&self, id: &BundleId) -> Option<Result<String, String>>;
}

/// A decision that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub message: String,
    pub is_accepted: bool,
}

/// The programs that a person uses beside the board. Each has the terminal until the person leaves it.
pub trait Tools {
    /// Shows the change of a bundle.
    fn diff(&self, id: &BundleId) -> Result<(), String>;
    /// Shows the logs of a bundle.
    fn log(&self, id: &BundleId) -> Result<(), String>;
    /// Shows the whole card.
    fn whole(&self, id: &BundleId) -> Result<(), String>;
    /// Opens a shell in a throwaway checkout.
    fn shell(&self, id: &BundleId) -> Result<(), String>;
    /// Edits a note.
    fn edit_note(&self, id: &BundleId, note: &str) -> Result<String, String>;
    /// Is told each key before the board takes it; tests of the terminal panic here.
    fn key(&self, _key: BoardKey) {}
}

/// The end of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The person left, and what was confirmed is recorded.
    Left {
        /// The reasons of the decisions that were refused.
        refused: Vec<String>,
        /// The reasons of what was accepted and not published.
        unpublished: Vec<String>,
    },
    /// A signal asked to end. These decisions could still be undone, and are not recorded.
    Interrupted(Vec<Decision>),
}

/// What the worker is asked.
enum Ask {
    Card(BundleId),
    Record(Vec<Decision>),
}

/// Shows a board until the person leaves.
pub fn run(
    desk: &dyn Desk,
    tools: &dyn Tools,
    theme: Theme,
    undo_window: Duration,
) -> io::Result<Ended> {
    restore_after_panic();
    let signals = Signals::watch()?;
    let (ask, asked) = channel();
    let (tell, told) = channel();
    let (accept, accepted) = channel();
    let tell_published = tell.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || work(desk, &asked, &Told { tell, accept }));
        scope.spawn(move || publish(desk, &accepted, &tell_published));
        let mut screen = Screen::open()?;
        let shown = Shown { tools, theme, undo_window, ask, told, signals, begun: Instant::now() };
        let interrupted = shown.run(&mut screen);
        // Before the worker is waited for, which may still record for seconds.
        screen.close();
        let left = shown.close();
        Ok(interrupted?.map_or(left, Ended::Interrupted))
    })
}

/// Where the worker tells what it did.
struct Told {
    tell: Sender<BoardInput>,
    accept: Sender<BundleId>,
}

/// Publishes what was accepted, until the worker is gone.
fn publish(desk: &dyn Desk, accepted: &Receiver<BundleId>, tell: &Sender<BoardInput>) {
    for id in accepted {
        let said = match desk.publish(&id) {
            None => continue,
            Some(Ok(said)) => BoardInput::Say(said),
            Some(Err(why)) => BoardInput::Unpublished(why),
        };
        // A board that is gone is no reason to leave accepted changes out.
        drop(tell.send(said));
    }
}

/// Reads and records for the board, until it is gone.
fn work(desk: &dyn Desk, asked: &Receiver<Ask>, told: &Told) {
    let Told { tell, accept } = told;
    // Whether anybody still listens does not matter here: the board ends by closing the channel of questions.
    let mut due = Instant::now();
    loop {
        if due <= Instant::now() {
            tell_data(desk, tell);
            // From the end of the reading: a slow disk must not be read without a pause.
            due = Instant::now() + REFRESH;
        }
        let first = match asked.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(ask) => ask,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A person who runs down a list asks for many cards and looks at the last one.
        let mut card = None;
        for ask in std::iter::once(first).chain(asked.try_iter()) {
            match ask {
                Ask::Card(id) => card = Some(id),
                Ask::Record(decisions) => {
                    record(desk, decisions, tell, accept);
                    // The bundle leaves the list with the next reading.
                    due = Instant::now();
                }
            }
        }
        // After the decisions, so that it shows what they changed.
        if let Some(id) = card {
            let card = desk.card(&id).map(Arc::new);
            drop(tell.send(BoardInput::Card(id, card)));
        }
    }
}

fn record(
    desk: &dyn Desk,
    decisions: Vec<Decision>,
    tell: &Sender<BoardInput>,
    accept: &Sender<BundleId>,
) {
    for decision in decisions {
        let said = match desk.record(&decision) {
            Ok(Recorded { message, is_accepted }) => {
                if is_accepted {
                    // It lives as long as the worker, unless it panicked.
                    drop(accept.send(decision.id.clone()));
                }
                BoardInput::Recorded(decision.id, message)
            }
            Err(why) => BoardInput::Refused(decision.id, why),
        };
        // A board that is gone is no reason to leave confirmed decisions out.
        drop(tell.send(said));
    }
}

fn tell_data(desk: &dyn Desk, tell: &Sender<BoardInput>) {
    let input = match desk.data() {
        Ok(data) => BoardInput::Data(Arc::new(data)),
        Err(why) => BoardInput::Say(why),
    };
    drop(tell.send(input));
}

/// The signals that ask a process to end, as flags.
struct Signals {
    asked_to_end: Arc<AtomicBool>,
    /// Set by INT. While the board has the terminal, Ctrl-C is a key; while a child has it, the signal is the child's.
    interrupted: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        let [asked_to_end, interrupted]: [Arc<AtomicBool>; 2] = Default::default();
        let mut handlers = Vec::new();
        for (signal, flag) in
            [(SIGTERM, &asked_to_end), (SIGHUP, &asked_to_end), (SIGINT, &interrupted)]
        {
            handlers.push(signal_hook::flag::register(signal, Arc::clone(flag))?);
        }
        Ok(Self { asked_to_end, interrupted, handlers })
    }

    fn ask_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::SeqCst) || self.interrupted.load(Ordering::SeqCst)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

struct Shown<'d> {
    tools: &'d dyn Tools,
    theme: Theme,
    undo_window: Duration,
    ask: Sender<Ask>,
    told: Receiver<BoardInput>,
    signals: Signals,
    begun: Instant,
}

impl Shown<'_> {
    /// Shows the board to its end. Returns what is still pending if the person did not choose the end.
    fn run(&self, screen: &mut Screen) -> io::Result<Option<Vec<Decision>>> {
        let mut board = Board::new(self.undo_window);
        let mut is_new = true;
        loop {
            if self.signals.ask_to_end() {
                let pending = board.deciding().session().pending().cloned().collect();
                return Ok(Some(pending));
            }
            if is_new {
                screen.terminal.draw(|frame| draw(frame, &mut board, self.theme))?;
            }
            let mut inputs = self.pending()?;
            if terminal_is_gone(if inputs.is_empty() { POLL } else { Duration::ZERO })? {
                let pending = board.deciding().session().pending().cloned().collect();
                return Ok(Some(pending));
            }
            if event::poll(Duration::ZERO)? {
                inputs.extend(read(&event::read()?));
            }
            // The countdown of the undo window is drawn too.
            is_new = !inputs.is_empty() || board.deciding().undo_left().is_some();
            // Last, so that a `u` of the same round comes before its decision is due.
            inputs.push(BoardInput::Tick(self.begun.elapsed()));
            for input in inputs {
                if let BoardInput::Key(key) = &input {
                    self.tools.key(*key);
                }
                for effect in board.update(input) {
                    if self.carry_out(effect, &mut board, screen)? {
                        return Ok(None);
                    }
                    is_new = true;
                }
            }
        }
    }

    /// Waits until the worker has recorded what was confirmed, and what was accepted is published.
    fn close(self) -> Ended {
        let Self { ask, told, .. } = self;
        // The worker drains its questions and ends, then the publication does, which ends the loop below.
        drop(ask);
        let (mut refused, mut unpublished) = (Vec::new(), Vec::new());
        for input in told {
            if let BoardInput::Refused(_, why) = input {
                refused.push(why);
            } else if let BoardInput::Unpublished(why) = input {
                unpublished.push(why);
            }
        }
        Ended::Left { refused, unpublished }
    }

    /// Takes what the worker has told.
    fn pending(&self) -> io::Result<Vec<BoardInput>> {
        let mut inputs = Vec::new();
        loop {
            match self.told.try_recv() {
                Ok(input) => inputs.push(input),
                Err(TryRecvError::Empty) => return Ok(inputs),
                Err(TryRecvError::Disconnected) => {
                    return Err(io::Error::other("the thread that reads the workspace ended"));
                }
            }
        }
    }

    /// Carries out an effect; true if the board is to end.
    fn carry_out(
        &self,
        effect: BoardEffect,
        board: &mut Board,
        screen: &mut Screen,
    ) -> io::Result<bool> {
        let tools = self.tools;
        let said = match effect {
            BoardEffect::LoadCard(id) => {
                // The worker is gone only if it panicked, which `pending` reports.
                drop(self.ask.send(Ask::Card(id)));
                return Ok(false);
            }
            BoardEffect::Record(decisions) => {
                drop(self.ask.send(Ask::Record(decisions)));
                return Ok(false);
            }
            BoardEffect::Quit => return Ok(true),
            // The raw mode has turned Ctrl-Z off. The terminal would stop the whole group, as this does.
            BoardEffect::Suspend => screen.lend(|| {
                let stopped =
                    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
                stopped.map_err(|error| error.to_string())
            })?,
            BoardEffect::Diff(id) => screen.lend(|| tools.diff(&id))?,
            BoardEffect::Log(id) => screen.lend(|| tools.log(&id))?,
            BoardEffect::Whole(id) => screen.lend(|| tools.whole(&id))?,
            BoardEffect::Shell(id) => screen.lend(|| tools.shell(&id))?,
            BoardEffect::EditNote(id, note) => {
                let mut edited = None;
                let said =
                    screen.lend(|| tools.edit_note(&id, &note).map(|note| edited = Some(note)))?;
                for effect in
                    edited.map(|note| board.update(BoardInput::Note(note))).unwrap_or_default()
                {
                    // A note leads to no effect that ends the board.
                    self.carry_out(effect, board, screen)?;
                }
                said
            }
        };
        // Ctrl-C was typed at the child.
        self.signals.interrupted.store(false, Ordering::SeqCst);
        if let Err(why) = said {
            board.update(BoardInput::Say(why));
        }
        Ok(false)
    }
}

/// Waits for a key, and returns whether the terminal was closed meanwhile. Reading events from one that is gone never
/// ends, so it is asked for before each read.
fn terminal_is_gone(patience: Duration) -> io::Result<bool> {
    let stdin = rustix::stdio::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) => Ok(fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)),
        // A new size of the terminal is a signal, too.
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The terminal in the hands of the board.
struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        execute!(io::stdout(), EnableMouseCapture)?;
        Ok(Self { terminal })
    }

    fn close(self) {
        drop(self);
        restore();
    }

    /// Gives the terminal to another program, and takes it back.
    fn lend(
        &mut self,
        borrow: impl FnOnce() -> Result<(), String>,
    ) -> io::Result<Result<(), String>> {
        restore();
        let said = borrow();
        *self = Self::open()?;
        self.terminal.clear()?;
        Ok(said)
    }
}

/// Leaves the terminal as it was found. Errors are ignored: there is no better place to tell them.
fn restore() {
    drop(execute!(io::stdout(), DisableMouseCapture));
    drop(ratatui::try_restore());
}

/// Restores the terminal before a panic of any thread is printed.
fn restore_after_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// Translates what the terminal says.
fn read(event: &Event) -> Option<BoardInput> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key_of(*key).map(BoardInput::Key),
        Event::Mouse(mouse) => mouse_of(*mouse),
        // A new size needs a new frame and nothing else.
        Event::Resize(..) => Some(BoardInput::Resized),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Paste(_) => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the board knows a few of many")]
fn key_of(event: KeyEvent) -> Option<BoardKey> {
    let has_control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if has_control => BoardKey::Interrupt,
        KeyCode::Char('z') if has_control => BoardKey::Suspend,
        // Ctrl-A is not `a`: it must not accept anything.
        KeyCode::Char(_) if has_control => return None,
        KeyCode::Char(letter) => BoardKey::Char(letter),
        KeyCode::Enter => BoardKey::Enter,
        KeyCode::Esc => BoardKey::Escape,
        KeyCode::Tab => BoardKey::Tab,
        KeyCode::BackTab => BoardKey::BackTab,
        KeyCode::Backspace => BoardKey::Backspace,
        KeyCode::Up => BoardKey::Up,
        KeyCode::Down => BoardKey::Down,
        KeyCode::Left => BoardKey::Left,
        KeyCode::Right => BoardKey::Right,
        KeyCode::PageUp => BoardKey::PageUp,
        KeyCode::PageDown => BoardKey::PageDown,
        KeyCode::Home => BoardKey::Home,
        KeyCode::End => BoardKey::End,
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the board knows a few of many")]
fn mouse_of(event: MouseEvent) -> Option<BoardInput> {
    let (column, row) = (event.column, event.row);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(BoardInput::Click(column, row)),
        MouseEventKind::ScrollDown => Some(BoardInput::Scroll(column, row, 1)),
        MouseEventKind::ScrollUp => Some(BoardInput::Scroll(column, row, -1)),
        _ => None,
    }
}
