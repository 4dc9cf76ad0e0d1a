//! The stream: numbers events, stores them and hands them to the listener.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use jiff::Timestamp;

use crate::events::event::{Event, SCHEMA, Scope};
use crate::events::kind::EventKind;
use crate::events::log::{EventLog, LARGEST};
use crate::events::warning::WarningCode;

/// The most events before the start of a run that are kept for its log.
const EARLY: usize = 100;

/// Stamps events, appends them to the log of the run, and hands them to a listener, in one order.
///
/// Emitting never fails: a log that cannot be written is given up with a warning in the stream.
pub struct EventStream {
    clock: fn() -> Timestamp,
    inner: Mutex<Inner>,
}

struct Inner {
    listener: Box<dyn FnMut(Event) + Send>,
    seq: u64,
    run: Option<String>,
    log: Option<EventLog>,
    /// Events from before the run was known.
    early: Vec<Event>,
    /// Notices that have been emitted.
    noticed: BTreeSet<String>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl EventStream {
    /// Makes a stream that belongs to no run yet; see [`EventStream::record`].
    pub fn new(clock: fn() -> Timestamp, listener: impl FnMut(Event) + Send + 'static) -> Self {
        let inner = Inner {
            listener: Box::new(listener),
            seq: 0,
            run: None,
            log: None,
            early: Vec::new(),
            noticed: BTreeSet::new(),
        };
        Self { clock, inner: Mutex::new(inner) }
    }

    /// Stamps a fact, stores it and hands it to the listener.
    pub fn emit(&self, scope: Scope, lane: Option<u32>, kind: EventKind) {
        // The lock is held until the listener returns, so that lines are in the order of their numbers.
        self.lock().emit(self.clock, scope, lane, kind);
    }

    /// Returns the time by the clock of the stream.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Attaches the stream to a run: events are appended to the log in its directory from now on. A
    /// resumed run continues the numbers of its log.
    pub fn record(&self, run: &str, dir: &Utf8Path) {
        let mut inner = self.lock();
        inner.run = Some(run.to_owned());
        match EventLog::open(dir) {
            Ok((log, last)) => {
                inner.log = Some(log);
                // Early events were numbered from 1 before the log was known. They move behind its
                // last number by the same amount, so that numbers in the log only grow.
                inner.seq += last;
                let run = inner.run.clone();
                let mut early = std::mem::take(&mut inner.early).into_iter();
                let stored = early.try_for_each(|event| {
                    inner.store(&Event { seq: event.seq + last, run: run.clone(), ..event })
                });
                if let Err(why) = stored {
                    inner.give_up(self.clock, &why);
                }
            }
            Err(error) => inner.give_up(self.clock, &error.to_string()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A listener that panicked must not take the events of every other thread with it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn emit(
        &mut self,
        clock: fn() -> Timestamp,
        scope: Scope,
        lane: Option<u32>,
        mut kind: EventKind,
    ) {
        if let EventKind::Notice { text, repeated, .. } = &mut kind {
            *repeated = !self.noticed.insert(text.clone());
        }
        self.seq += 1;
        let at = clock();
        // The log has milliseconds. Round here, so that a replay shows the same text as the terminal.
        let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
        let (seq, run) = (self.seq, self.run.clone());
        let event = Event { schema: SCHEMA, seq, at, run, scope, lane, kind };
        // A sign of life says nothing any more when the log is read again (decision 025).
        let is_alive = matches!(event.kind, EventKind::Alive { .. });
        if !is_alive && self.run.is_none() && self.early.len() < EARLY {
            self.early.push(event.clone());
        }
        let stored = if is_alive { Ok(()) } else { self.store(&event) };
        // Before the warning about the log, which has the next number.
        (self.listener)(event);
        if let Err(why) = stored {
            self.give_up(clock, &why);
        }
    }

    /// Appends an event to the log, if there is one.
    fn store(&mut self, event: &Event) -> Result<(), String> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let mut line = serde_json::to_vec(event).map_err(|error| error.to_string())?;
        line.push(b'\n');
        if !log.has_room(line.len()) {
            return Err(format!("the log has reached {} MiB", LARGEST >> 20));
        }
        log.append(&line).map_err(|error| error.to_string())
    }

    /// Stops storing events, with a warning. The run continues: nothing is decided from the log.
    fn give_up(&mut self, clock: fn() -> Timestamp, why: &str) {
        // First, so that the warning below is not stored and cannot fail in turn.
        self.log = None;
        let text = format!("the events of this run are not stored any more: {why}");
        self.emit(
            clock,
            Scope::Workspace,
            None,
            EventKind::warning(WarningCode::EventsNotStored, text),
        );
    }
}
