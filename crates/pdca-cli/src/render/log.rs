//! Transcripts and logs of gates as text.

use std::io::Write;
use std::time::Duration;

use pdca_state::{Artifact, CallRecord, CostTotal};
use pdca_workspace::logs::{FollowedLog, Log, LogEntry, LogEntryKind, Unrecorded};
use serde::Serialize;

use crate::context::Context;
use crate::cost;
use crate::failure::Failure;
use crate::progress::span;
use crate::report::{Format, Report, Response};
use crate::style::printable;

/// A log, unless it was shown already.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogReport {
    #[serde(flatten)]
    log: Log,
    #[serde(skip)]
    is_shown: bool,
}

/// Returns the response to a log, which is shown through a pager where one is set.
pub(crate) fn read(log: Log, cx: &Context<'_>) -> Result<Response, Failure> {
    let mut report = LogReport { log, is_shown: false };
    if cx.globals.format() != Format::Json
        && cx.env.terminal.stdout
        && let Some(pager) = cx.env.var("PAGER").filter(|pager| !pager.is_empty())
    {
        let mut page = Vec::new();
        report.text(cx, &mut page)?;
        // A pager that does not work must not hide the log.
        let less = crate::sitting::less_options(cx);
        report.is_shown = pdca_process::page(pager, less, &page).unwrap_or(false);
    }
    Ok(Response::done(report))
}

/// Returns the response to a log that was followed to its end.
pub(crate) fn followed(
    followed: FollowedLog,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    match followed.unrecorded {
        Some(Unrecorded::DriverSlow) => {
            cx.note(err, "its driver has not recorded the call yet")?;
        }
        Some(Unrecorded::DriverGone) => {
            cx.note(err, "its driver is gone; the next run records the call")?;
        }
        None => {}
    }
    Ok(Response::done(LogReport { log: followed.log, is_shown: false }))
}

/// Writes entries of a log that grows.
pub(crate) fn show(
    entries: &[LogEntry],
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    entries.iter().try_for_each(|entry| write(entry, cx, out))?;
    Ok(out.flush()?)
}

fn write(entry: &LogEntry, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let tool = entry.tool.as_deref().unwrap_or_default();
    let called = format!("{tool}  {}", entry.text);
    match entry.kind {
        LogEntryKind::Tool => writeln!(out, "{} {}", cx.out.accent("→"), printable(&called))?,
        LogEntryKind::ToolFailed => {
            writeln!(out, "{} failed: {}", cx.out.warn("→"), printable(&called))?;
        }
        LogEntryKind::Complaint => {
            writeln!(out, "{} {}", cx.out.warn("!"), printable(&entry.text))?;
        }
        LogEntryKind::Title => writeln!(out, "{}", cx.out.strong(printable(&entry.text)))?,
        LogEntryKind::Message | LogEntryKind::Output => {
            for line in lines(&entry.text) {
                writeln!(out, "{}", printable(line))?;
            }
        }
    }
    Ok(())
}

/// Splits into lines; an empty text is an empty line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

impl Report for LogReport {
    const KIND: &'static str = "log";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.is_shown {
            return Ok(());
        }
        let Log { entries, notes, call, running, .. } = &self.log;
        entries.iter().try_for_each(|entry| write(entry, cx, out))?;
        if let Some(notes) = notes {
            let name = Artifact::BuildNotes.file_name();
            writeln!(out, "{}", cx.out.strong(format!("it changed nothing and wrote in {name}:")))?;
            for line in lines(notes.trim_end()) {
                writeln!(out, "{}", printable(line))?;
            }
        }
        if let Some(record) = call {
            writeln!(out, "{}", cx.out.faint(printable(&ended(record))))?;
        } else if *running {
            writeln!(out, "{}", cx.out.faint("it is still running; `-f` follows it"))?;
        }
        Ok(())
    }
}

/// Describes the end of a call in one line.
fn ended(record: &CallRecord) -> String {
    let total = CostTotal::of([record]);
    let took = record.duration_ms.map(Duration::from_millis).map(span);
    let session = record.session.as_ref().map(|session| format!("session {session}"));
    let parts = [
        Some(format!("{} {}", record.leaf, record.ending)),
        took,
        record.model.clone(),
        cost::total(&total),
        session,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
