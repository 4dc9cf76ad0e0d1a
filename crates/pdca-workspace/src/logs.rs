//! What leaves and gates printed, and the recorded events of runs.
//!
//! # Invariants
//! - Nothing is changed, and nothing is decided from what is read.
//! - A log that grows is read after it was asked whether its writer has ended, so that its last lines are read.

mod find;
mod follow;
mod replay;

use std::io::Read as _;

use pdca_leaves::{EntryKind, Protocol, Renderer, TranscriptEntry};
use pdca_state::{Artifact, Bundle, BundleId, CallRecord, KeptCall, LoadError, State};
use serde::Serialize;

use crate::{OpenWorkspace, OperationError};
use find::{FoundLog, GateLogs, LiveLog};

pub use follow::{FollowedLog, Unrecorded, follow_log};
pub use replay::{
    Recording, Replay, ReplayProgress, ReplayRequest, flow_runs, recorded_runs, replay_run,
};

/// A request for a log.
#[derive(Debug, Clone, Copy)]
pub struct LogRequest<'a> {
    pub bundle: &'a Bundle,
    /// A leaf, `gate`, or the id of a gate; the newest call if none is named.
    pub what: Option<&'a str>,
    /// Takes the lines as they were printed.
    pub raw: bool,
    /// From 1; the newest that has such a log if none is given.
    pub attempt: Option<u32>,
}

/// A transcript for people, or the logs of gates.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Log {
    pub id: BundleId,
    /// The leaf, or `gate`.
    pub what: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Set while the call has not ended.
    pub running: bool,
    /// The file.
    pub path: Option<String>,
    /// The record of the call; absent for gates and while it runs.
    pub call: Option<CallRecord>,
    pub entries: Vec<LogEntry>,
    /// The builder's notes, if it changed nothing.
    pub notes: Option<String>,
}

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogEntry {
    pub kind: LogEntryKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub text: String,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LogEntryKind {
    /// A message of the agent.
    Message,
    /// A tool call.
    Tool,
    /// A tool call that failed.
    ToolFailed,
    /// Something that went wrong, in the agent's words.
    Complaint,
    /// Any other output.
    Output,
    /// The heading above the log of a gate.
    Title,
}

/// There is no such log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{id} has no attempt {attempt}")]
    NoAttempt { id: BundleId, attempt: u32, newest: u32 },
    /// There is no log of this; `leaves` have some.
    #[error("{}", no_log(id, what.as_deref(), *attempt, leaves))]
    NoLog { id: BundleId, what: Option<String>, attempt: Option<u32>, leaves: Vec<String> },
    /// No run, integration or flow has this name.
    #[error("no run, integration or flow is called `{0}`")]
    NoRun(String),
}

fn no_log(id: &BundleId, what: Option<&str>, attempt: Option<u32>, leaves: &[String]) -> String {
    let of = attempt.map_or_else(String::new, |attempt| format!(" in attempt {attempt}"));
    let what = match (what, leaves) {
        (None, []) => "of any leaf".to_owned(),
        (what, _) => format!("of `{}`", what.unwrap_or("any leaf")),
    };
    format!("{id} has no log {what}{of}")
}

/// Reads what a leaf or a gate printed.
pub fn read_log(open: &OpenWorkspace<'_>, request: LogRequest<'_>) -> Result<Log, OperationError> {
    let LogRequest { bundle, raw, .. } = request;
    Ok(match find::find(open, &request)? {
        FoundLog::Live(live) => Log::live(bundle, &live, raw)?,
        FoundLog::Kept(call) => Log::kept(bundle, *call, raw)?,
        FoundLog::Gates(gates) => Log::gates(bundle, &gates)?,
    })
}

impl LogEntry {
    fn of(entry: TranscriptEntry) -> Self {
        let kind = match entry.kind {
            EntryKind::Message => LogEntryKind::Message,
            EntryKind::Tool => LogEntryKind::Tool,
            EntryKind::ToolFailed => LogEntryKind::ToolFailed,
            EntryKind::Complaint => LogEntryKind::Complaint,
            EntryKind::Output => LogEntryKind::Output,
        };
        Self { kind, tool: entry.tool, text: entry.text }
    }
}

/// Reads a whole transcript.
fn entries(protocol: Protocol, raw: bool, bytes: &[u8]) -> Vec<LogEntry> {
    let mut renderer = Renderer::new(if raw { Protocol::Text } else { protocol });
    let mut entries = renderer.feed(bytes);
    entries.extend(renderer.finish());
    entries.into_iter().map(LogEntry::of).collect()
}

impl Log {
    fn kept(bundle: &Bundle, call: KeptCall, raw: bool) -> Result<Self, LoadError> {
        let bytes = bundle.calls().read_transcript(&call)?.unwrap_or_default();
        let protocol = Protocol::named(&call.record.protocol).unwrap_or_default();
        Ok(Self {
            id: bundle.id().clone(),
            what: call.record.leaf.clone(),
            attempt: call.attempt,
            running: false,
            path: call.transcript_path().map(|path| bundle.dir().join(path).into_string()),
            entries: entries(protocol, raw, &bytes),
            notes: notes(bundle, &call)?,
            call: Some(call.record),
        })
    }

    fn live(bundle: &Bundle, live: &LiveLog, raw: bool) -> Result<Self, OperationError> {
        let mut bytes = Vec::new();
        (&live.file).read_to_end(&mut bytes)?;
        Ok(Self {
            id: bundle.id().clone(),
            what: live.leaf.clone(),
            attempt: bundle.attempts().newest()?,
            running: true,
            path: Some(live.log.to_string()),
            call: None,
            entries: entries(live.protocol, raw, &bytes),
            notes: None,
        })
    }

    fn gates(bundle: &Bundle, gates: &GateLogs) -> Result<Self, OperationError> {
        let mut read = Vec::new();
        for (name, path) in &gates.logs {
            let text = format!("gate {name}");
            read.push(LogEntry { kind: LogEntryKind::Title, tool: None, text });
            read.extend(entries(Protocol::Text, true, &fs_err::read(path)?));
        }
        Ok(Self {
            id: bundle.id().clone(),
            what: "gate".to_owned(),
            attempt: gates.attempt,
            running: false,
            path: gates.logs.first().map(|(_, path)| path.to_string()),
            call: None,
            entries: read,
            notes: None,
        })
    }
}

/// Returns the notes of a builder that changed nothing: those of an attempt without a patch.
fn notes(bundle: &Bundle, call: &KeptCall) -> Result<Option<String>, LoadError> {
    let is_newest = call.attempt == bundle.attempts().newest()?;
    if call.record.role != "builder" || !is_newest || bundle.load()?.state != State::Planned {
        return Ok(None);
    }
    let notes = bundle.read(Artifact::BuildNotes)?;
    Ok(notes.map(|notes| String::from_utf8_lossy(&notes).into_owned()))
}
