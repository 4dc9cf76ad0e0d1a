//! Follows a job on its host: stage, start, watch, collect, each asked again while the host may still answer.
//!
//! 1. `stage` and `start` are repeated under the same name until they are answered. A job that was started by a request
//!    whose answer was lost is found running.
//! 2. `watch` goes on from the last offset. The host is lost when it gave no sign of life for `lost_after` of this
//!    machine's running time: no answer, or an answer in which the runner's beat stands still.
//! 3. `collect` is repeated in the same way; it changes nothing on the host.
//!
//! What a lost host does afterwards counts for nothing: the next attempt has a later generation, and results are asked
//! for under that name alone.

use std::time::{Duration, Instant};

use pdca_driver::leg::{FailureClass, LegFailure, LegName};
use pdca_driver::place::PlaceError;
use pdca_driver::{BeatError, Driver};
use pdca_journal::events::{Event, EventKind, Scope};
use pdca_process::Cancel;
use pdca_state::chain;

use crate::fit_host::FitHost;
use crate::host::{Fetched, HostError};
use crate::stage::Staging;
use crate::verb::{JobState, VerbRefusal};

/// The longest wait of one `watch`.
const WAIT: Duration = Duration::from_millis(1500);
/// The pause between two requests that were not answered, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How often a runner that died is started again on its host.
const RESTARTS: u32 = 2;

/// Runs a leg on its host to the end, and fetches the result.
pub(crate) fn follow(
    cx: &Driver<'_>,
    host: &FitHost,
    leg: &Staging,
    scope: &Scope,
) -> Result<Fetched, BeatError> {
    let asked = Asked { cx, host, name: leg.name() };
    let followed =
        asked.stage(leg).and_then(|()| asked.run(scope)).and_then(|()| asked.collect(leg));
    match followed {
        Err(BeatError::Place(error @ PlaceError::Lost { .. })) => {
            host.lose();
            Err(BeatError::Place(error))
        }
        // Nothing may go on for a driver that ends in order.
        Err(BeatError::Interrupted) => {
            asked.cancel();
            Err(BeatError::Interrupted)
        }
        followed => followed,
    }
}

struct Asked<'a> {
    cx: &'a Driver<'a>,
    host: &'a FitHost,
    name: &'a LegName,
}

impl Asked<'_> {
    fn lost(&self, said: String) -> BeatError {
        BeatError::Place(PlaceError::Lost { place: self.host.host.name().to_owned(), said })
    }

    /// Asks until there is an answer, the host is lost or the driver is cancelled.
    fn until_answered<T>(&self, ask: impl Fn() -> Result<T, HostError>) -> Result<T, BeatError> {
        // This machine's running time, never a clock of the host (decision 065).
        let begun = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            if self.cx.cancel.is_cancelled() {
                return Err(BeatError::Interrupted);
            }
            match ask() {
                Ok(answer) => return Ok(answer),
                // Another driver, or an attempt that was given up, uses the slot. It is no fault, however long.
                Err(HostError::Refused(VerbRefusal::Busy { .. })) => {}
                Err(error) if error.is_passing() => {
                    if begun.elapsed() >= self.host.host.spec.lost_after {
                        return Err(self.lost(last_line(&chain(&error))));
                    }
                }
                Err(_) if self.cx.cancel.is_cancelled() => return Err(BeatError::Interrupted),
                Err(error) => return Err(self.failed(&error)),
            }
            rest(self.cx.cancel, pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// An answer that will not be another one the next time.
    fn failed(&self, error: &HostError) -> BeatError {
        let said = format!("{}: {}", self.host.host.name(), chain(error));
        BeatError::Elsewhere(Box::new(LegFailure::new(FailureClass::Machine, said)))
    }

    fn stage(&self, leg: &Staging) -> Result<(), BeatError> {
        let host = &self.host.host;
        self.until_answered(|| {
            host.stage(&leg.assignment, &leg.contents, &|have| leg.pack(have), self.cx.cancel)
        })?;
        if let Some(objects) = &leg.assignment.objects {
            self.host.warmed(&objects.repository);
        }
        Ok(())
    }

    fn start(&self) -> Result<bool, BeatError> {
        self.until_answered(|| self.host.host.start(self.name, self.cx.cancel))
    }

    /// Starts the job, or finds it, and follows its log to the end.
    fn run(&self, scope: &Scope) -> Result<(), BeatError> {
        let resumed = self.start()?;
        let (host, job) = (self.host.host.name().to_owned(), self.name.to_string());
        self.tell(scope, EventKind::OnHost { host, job, resumed });
        let mut restarts = 0;
        let mut log = Log::default();
        let (mut alive, mut beat) = (Instant::now(), 0);
        loop {
            if self.cx.cancel.is_cancelled() {
                return Err(BeatError::Interrupted);
            }
            let lost_after = self.host.host.spec.lost_after;
            let watched = match self.host.host.watch(self.name, log.offset, WAIT, self.cx.cancel) {
                Ok((watched, bytes)) => {
                    log.take(watched.next, &bytes, |event| self.relay(scope, event));
                    watched
                }
                Err(error) if error.is_passing() => {
                    if alive.elapsed() >= lost_after {
                        return Err(self.lost(last_line(&chain(&error))));
                    }
                    rest(self.cx.cancel, PAUSES.0);
                    continue;
                }
                Err(_) if self.cx.cancel.is_cancelled() => return Err(BeatError::Interrupted),
                Err(error) => return Err(self.failed(&error)),
            };
            match watched.state {
                JobState::Ended => return Ok(()),
                // A queued job has no runner yet, so its beat stands still for as long as the queue
                // is long.
                JobState::Queued => alive = Instant::now(),
                JobState::Running => {
                    if watched.beat != beat {
                        (alive, beat) = (Instant::now(), watched.beat);
                    } else if alive.elapsed() >= lost_after {
                        let said = format!("no sign of life for {} s", lost_after.as_secs());
                        return Err(self.lost(said));
                    }
                }
                // It goes on from its files: what ended there does not run again.
                JobState::Staged | JobState::Died { .. } if restarts < RESTARTS => {
                    restarts += 1;
                    self.start()?;
                    alive = Instant::now();
                }
                JobState::Died { said } => {
                    return Err(self
                        .ended_badly(FailureClass::Machine, &format!("the runner died: {said}")));
                }
                JobState::Staged => {
                    return Err(
                        self.ended_badly(FailureClass::Machine, "the runner does not start")
                    );
                }
                JobState::Cancelled => {
                    let said = "the job was cancelled by another driver";
                    return Err(self.ended_badly(FailureClass::Machine, said));
                }
                JobState::Capped { limit } => {
                    let said = format!("the job reached its limit on {limit}");
                    return Err(self.ended_badly(FailureClass::Cap, &said));
                }
                JobState::Fenced { fence } => {
                    let said = format!("the host was told of generation {fence}");
                    return Err(self.ended_badly(FailureClass::Machine, &said));
                }
            }
        }
    }

    fn ended_badly(&self, class: FailureClass, said: &str) -> BeatError {
        let said = format!("{}: {said}", self.host.host.name());
        BeatError::Elsewhere(Box::new(LegFailure::new(class, said)))
    }

    fn collect(&self, leg: &Staging) -> Result<Fetched, BeatError> {
        self.until_answered(|| self.host.host.collect(self.name, leg.known(), self.cx.cancel))
    }

    /// Ends the job, as far as the host answers. What it does not hear now the fence tells it later.
    fn cancel(&self) {
        // A person who pressed Ctrl-C waits for this.
        let deadline = Instant::now() + self.host.host.spec.lost_after.min(Duration::from_secs(20));
        while let Err(error) = self.host.host.cancel(self.name) {
            if !error.is_passing() || Instant::now() >= deadline {
                return;
            }
            std::thread::park_timeout(PAUSES.0);
        }
    }

    /// Tells an event of the host as one of this driver.
    fn relay(&self, scope: &Scope, event: Event) {
        // Told here, when the files are.
        if matches!(event.kind, EventKind::Halted { .. } | EventKind::Failed { .. }) {
            return;
        }
        let EventKind::Drifted { outside } = event.kind else {
            return self.tell(scope, event.kind);
        };
        if let (Some(drifts), Scope::Bundle(id)) = (self.cx.drifts, scope) {
            // Sending fails only after the pool has ended.
            drop(drifts.send((id.clone(), outside)));
        }
    }

    fn tell(&self, scope: &Scope, kind: EventKind) {
        self.cx.events.emit(scope.clone(), self.cx.slot(), kind);
    }
}

/// The log of a job, read by offset. A line that has not arrived whole is kept for the next answer.
#[derive(Debug, Default)]
struct Log {
    offset: u64,
    rest: Vec<u8>,
}

impl Log {
    fn take(&mut self, next: u64, bytes: &[u8], mut tell: impl FnMut(Event)) {
        self.offset = next;
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            // A runner that was killed may have left a torn line, which the next one goes on after.
            if let Ok(event) = serde_json::from_slice(&line) {
                tell(event);
            }
        }
    }
}

fn rest(cancel: &Cancel, pause: Duration) {
    let deadline = Instant::now() + pause;
    while Instant::now() < deadline && !cancel.is_cancelled() {
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_anywhere_is_told_once_and_whole() {
        let event = |seq| {
            format!(
                "{{\"schema\":1,\"seq\":{seq},\"at\":\"2026-01-01T00:00:00Z\",\"scope\":\"bundle\",\"id\":\"7\",\"event\":\"reopened\"}}\n"
            )
        };
        let text = format!("{}torn\n{}", event(1), event(2));
        for cut in 0..text.len() {
            let (first, second) = text.as_bytes().split_at(cut);
            let mut log = Log::default();
            let mut seen = Vec::new();
            log.take(cut as u64, first, |event| seen.push(event.seq));
            log.take(text.len() as u64, second, |event| seen.push(event.seq));
            assert_eq!((seen, log.offset), (vec![1, 2], text.len() as u64), "cut at {cut}");
        }
    }
}
