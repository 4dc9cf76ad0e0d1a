//! What a leaf or a gate printed.

mod find;
mod follow;

use std::io::{Read as _, Write};

use pdca_leaves::{EntryKind, Protocol, Renderer, TranscriptEntry};
use pdca_state::{Artifact, Bundle, CallRecord, CostTotal, KeptCall, State};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::cost;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::span;
use crate::report::{Format, Report, Response};
use crate::style::printable;

use find::{FoundLog, Live};

/// A request for a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRequest<'a> {
    pub(crate) id: &'a IdArg,
    /// A leaf, `gate`, or the id of a gate; the newest call if none is named.
    pub(crate) what: Option<&'a str>,
    /// Continues until the call ends.
    pub(crate) follow: bool,
    /// Shows the lines as they were printed.
    pub(crate) raw: bool,
    /// From 1; the newest that has such a log if none is given.
    pub(crate) attempt: Option<u32>,
}

/// Shows what a leaf or a gate printed, through a pager where one is set.
pub(crate) fn show(
    args: LogRequest<'_>,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(args.id)?;
    let found = find::find(cx, &bundle, args.what, args.attempt)?;
    let report = match found {
        FoundLog::Live(live) if args.follow => {
            follow::follow(&live, &bundle, args.raw, cx, out, err)?
        }
        FoundLog::Live(live) => LogReport::live(&bundle, &live, args.raw)?,
        FoundLog::Kept(call) => LogReport::kept(&bundle, *call, args.raw)?,
        FoundLog::Gates(gates) => LogReport::gates(&bundle, &gates)?,
    };
    if !args.follow
        && cx.globals.format() != Format::Json
        && cx.env.terminal.stdout
        && let Some(pager) = cx.env.var("PAGER").filter(|pager| !pager.is_empty())
    {
        let mut page = Vec::new();
        report.text(cx, &mut page)?;
        // A pager that does not work must not hide the log.
        if pdca_process::page(pager, "FRX", &page).unwrap_or(false) {
            return Ok(Response::done(LogReport { is_shown: true, ..report }));
        }
    }
    Ok(Response::done(report))
}

/// A transcript for people, or the logs of gates.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogReport {
    id: String,
    /// The leaf, or `gate`.
    what: String,
    /// The attempt, from 1.
    attempt: u32,
    /// Set while the call has not ended.
    running: bool,
    /// The file.
    path: Option<String>,
    /// The record of the call; absent for gates and while it runs.
    call: Option<CallRecord>,
    entries: Vec<EntryRow>,
    /// The builder's notes, if it changed nothing.
    notes: Option<String>,
    #[serde(skip)]
    is_shown: bool,
}

/// One thing that was said or done.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EntryRow {
    /// `message`, `tool`, `tool-failed`, `complaint`, `output`, or `title` above the log of a gate.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    text: String,
}

impl EntryRow {
    fn of(entry: TranscriptEntry) -> Self {
        let kind = match entry.kind {
            EntryKind::Message => "message",
            EntryKind::Tool => "tool",
            EntryKind::ToolFailed => "tool-failed",
            EntryKind::Complaint => "complaint",
            EntryKind::Output => "output",
        };
        Self { kind, tool: entry.tool, text: entry.text }
    }

    fn write(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let tool = self.tool.as_deref().unwrap_or_default();
        let called = format!("{tool}  {}", self.text);
        match self.kind {
            "tool" => writeln!(out, "{} {}", cx.out.accent("→"), printable(&called))?,
            "tool-failed" => {
                writeln!(out, "{} failed: {}", cx.out.warn("→"), printable(&called))?;
            }
            "complaint" => writeln!(out, "{} {}", cx.out.warn("!"), printable(&self.text))?,
            "title" => writeln!(out, "{}", cx.out.strong(printable(&self.text)))?,
            _ => {
                for line in lines(&self.text) {
                    writeln!(out, "{}", printable(line))?;
                }
            }
        }
        Ok(())
    }
}

/// Splits into lines; an empty text is an empty line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// Renders a whole transcript.
fn entries(protocol: Protocol, raw: bool, bytes: &[u8]) -> Vec<EntryRow> {
    let mut renderer = Renderer::new(if raw { Protocol::Text } else { protocol });
    let mut entries = renderer.feed(bytes);
    entries.extend(renderer.finish());
    entries.into_iter().map(EntryRow::of).collect()
}

impl LogReport {
    fn kept(bundle: &Bundle, call: KeptCall, raw: bool) -> Result<Self, Failure> {
        let bytes = bundle.calls().read_transcript(&call)?.unwrap_or_default();
        let protocol = Protocol::named(&call.record.protocol).unwrap_or_default();
        Ok(Self {
            id: bundle.id().to_string(),
            what: call.record.leaf.clone(),
            attempt: call.attempt,
            running: false,
            path: call.transcript_path().map(|path| bundle.dir().join(path).into_string()),
            entries: entries(protocol, raw, &bytes),
            notes: notes(bundle, &call)?,
            call: Some(call.record),
            is_shown: false,
        })
    }

    fn live(bundle: &Bundle, live: &Live, raw: bool) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        (&live.file).read_to_end(&mut bytes)?;
        Ok(Self {
            id: bundle.id().to_string(),
            what: live.leaf.clone(),
            attempt: bundle.attempts().newest()?,
            running: true,
            path: Some(live.log.to_string()),
            call: None,
            entries: entries(live.protocol, raw, &bytes),
            notes: None,
            is_shown: false,
        })
    }

    fn gates(bundle: &Bundle, gates: &find::GateLogs) -> Result<Self, Failure> {
        let mut rows = Vec::new();
        for (name, path) in &gates.logs {
            let text = format!("gate {name}");
            rows.push(EntryRow { kind: "title", tool: None, text });
            rows.extend(entries(Protocol::Text, true, &fs_err::read(path)?));
        }
        Ok(Self {
            id: bundle.id().to_string(),
            what: "gate".to_owned(),
            attempt: gates.attempt,
            running: false,
            path: gates.logs.first().map(|(_, path)| path.to_string()),
            call: None,
            entries: rows,
            notes: None,
            is_shown: false,
        })
    }

    fn write_end(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(notes) = &self.notes {
            let name = Artifact::BuildNotes.file_name();
            writeln!(out, "{}", cx.out.strong(format!("it changed nothing and wrote in {name}:")))?;
            for line in lines(notes.trim_end()) {
                writeln!(out, "{}", printable(line))?;
            }
        }
        if let Some(record) = &self.call {
            writeln!(out, "{}", cx.out.faint(printable(&ended(record))))?;
        } else if self.running {
            writeln!(out, "{}", cx.out.faint("it is still running; `-f` follows it"))?;
        }
        Ok(())
    }
}

impl Report for LogReport {
    const KIND: &'static str = "log";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.is_shown {
            return Ok(());
        }
        for entry in &self.entries {
            entry.write(cx, out)?;
        }
        self.write_end(cx, out)
    }
}

/// Describes the end of a call in one line.
fn ended(record: &CallRecord) -> String {
    let total = CostTotal::of([record]);
    let took = record.duration_ms.map(std::time::Duration::from_millis).map(span);
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

/// Returns the notes of a builder that changed nothing: those of an attempt without a patch.
fn notes(bundle: &Bundle, call: &KeptCall) -> Result<Option<String>, Failure> {
    let is_newest = call.attempt == bundle.attempts().newest()?;
    if call.record.role != "builder" || !is_newest || bundle.load()?.state != State::Planned {
        return Ok(None);
    }
    let notes = bundle.read(Artifact::BuildNotes)?;
    Ok(notes.map(|notes| String::from_utf8_lossy(&notes).into_owned()))
}

/// Returns the error that there is nothing to show.
fn nothing(what: impl Into<String>, hint: String) -> Failure {
    Failure::new(Exit::NothingToDo, what).hint(hint)
}
