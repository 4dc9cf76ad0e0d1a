//! What the finished cycles show, and the log of reviews, as text.

mod diff;
mod index;

use std::io::Write;

use pdca_act::{JudgedSignal, SignalFate};
use pdca_journal::events::WarningCode;
use pdca_state::BundleId;
use pdca_workspace::act::{ActCadence, ActEntry, ActReview, ReviewedEntry, WatchedSignals};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

/// Writes the warnings and notes of an entry, and makes its response.
pub(crate) fn entry(
    entry: ActEntry,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    for problem in &entry.problems {
        cx.warn(err, WarningCode::RecordUnreadable, printable(problem))?;
    }
    note_finished(&entry.finished, cx, err)?;
    let exit = if entry.entry.is_some() { Exit::Done } else { Exit::NothingToDo };
    if entry.entry.is_none() {
        cx.note(err, "no cycle ended since the last review")?;
    }
    Ok(Response::new(entry, exit))
}

fn note_finished(dates: &[String], cx: &Context<'_>, err: &mut dyn Write) -> Result<(), Failure> {
    for date in dates {
        cx.note(err, &format!("finished the interrupted record of {}", printable(date)))?;
    }
    Ok(())
}

impl Report for ActEntry {
    const KIND: &'static str = "act-log";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(entry) = &self.entry else { return Ok(()) };
        if !self.recorded {
            return Ok(out.write_all(printable(entry).as_bytes())?);
        }
        let (count, log) = (counted(self.cycles.len(), "cycle", "cycles"), cx.show(&self.log));
        writeln!(out, "{} {count} in {log}: {}", cx.out.good("recorded:"), ids(&self.cycles))?;
        writeln!(out, "next: write its process deltas, then {}", cx.out.accent("pdca act diff"))?;
        Ok(())
    }
}

/// Writes the warnings and notes of a review that began.
pub(crate) fn begun(
    review: &ActReview<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    for problem in &review.problems {
        cx.note(err, &format!("{} {}", cx.err.warn("warning:"), printable(problem)))?;
    }
    note_finished(&review.finished, cx, err)
}

/// Makes the response of a review, which waits for a person unless it was recorded.
pub(crate) fn reviewed(entry: ReviewedEntry) -> Response {
    let exit = if entry.recorded { Exit::Done } else { Exit::Waiting };
    Response::new(entry, exit)
}

impl Report for ReviewedEntry {
    const KIND: &'static str = "act-review";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.recorded {
            let count = counted(self.cycles.len(), "cycle", "cycles");
            writeln!(out, "{} {count}: {}", cx.out.good("recorded:"), ids(&self.cycles))?;
            writeln!(
                out,
                "next: make its process deltas, then {}",
                cx.out.accent("pdca act diff")
            )?;
            return Ok(());
        }
        out.write_all(printable(&self.entry).as_bytes())?;
        writeln!(out, "\ndraft: {}", cx.show(&self.draft))?;
        writeln!(
            out,
            "next: edit it if need be, then {}",
            cx.out.accent("pdca act review --record")
        )?;
        Ok(())
    }
}

/// Makes the response of a list of signals.
pub(crate) fn signals(signals: WatchedSignals) -> Response {
    let exit = if signals.signals.is_empty() { Exit::NothingToDo } else { Exit::Done };
    Response::new(signals, exit)
}

impl Report for WatchedSignals {
    const KIND: &'static str = "act-signals";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.signals.is_empty() {
            writeln!(out, "no review watches a signal")?;
        }
        for judged in &self.signals {
            if !self.resolved.is_empty() && !self.resolved.contains(&judged.number) {
                continue;
            }
            let text = printable(&judged.signal.text);
            let state = match (self.resolved.is_empty(), self.dry_run) {
                (true, _) => fate(judged),
                (false, true) => "would be closed".to_owned(),
                (false, false) => "closed".to_owned(),
            };
            writeln!(out, "{:>3}  {}  {text}", judged.number, cx.out.accent(state))?;
        }
        if self.resolved.is_empty() && self.signals.iter().any(|judged| judged.resolved.is_none()) {
            writeln!(out, "next: {}", cx.out.accent("pdca act resolve N --note \"…\""))?;
        }
        Ok(())
    }
}

/// Describes what became of a signal.
fn fate(judged: &JudgedSignal) -> String {
    let closed = judged
        .resolved
        .as_ref()
        .map_or_else(String::new, |resolution| format!("closed {}, ", printable(&resolution.date)));
    let fate = match (&judged.fate, judged.considered) {
        (SignalFate::Back { cycles }, of) => {
            format!(
                "BACK in {} ({} of {})",
                some(cycles),
                cycles.len(),
                counted(of, "cycle", "cycles")
            )
        }
        (SignalFate::NotSeen, of) => format!("not seen in {}", counted(of, "cycle", "cycles")),
        (SignalFate::Unclear, 0) => "no cycle ended since".to_owned(),
        (SignalFate::Unclear, _) => "judge it yourself".to_owned(),
    };
    closed + &fate
}

/// Lists the ids, or the first of many.
fn some(all: &[BundleId]) -> String {
    const SHOWN: usize = 6;
    if all.len() <= SHOWN { ids(all) } else { format!("{}, …", ids(&all[..SHOWN])) }
}

/// Describes how many cycles wait for a review, and when one is due.
pub(crate) fn cadence(cadence: &ActCadence) -> String {
    let cycles = counted(cadence.waiting, "cycle waits", "cycles wait");
    let due = match (cadence.due, cadence.every) {
        (true, _) => ", which is due".to_owned(),
        (false, Some(every)) => format!(", due after {every}"),
        (false, None) => String::new(),
    };
    format!("{cycles} for a review of the process{due}")
}

fn ids(ids: &[BundleId]) -> String {
    ids.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

/// Returns a count with its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
