//! What an agent says of itself while it works, read record by record from its standard output.
//!
//! Agents print one JSON object per line. Lines may be torn, in between may be anything, and a log may have lost its middle:
//! what is no record of the protocol is passed over. A line of any length costs no more memory than [`MAX_LINE`].

mod aider;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod reader;

use std::{collections::BTreeSet, time::Duration};

use pdca_state::Money;
pub use pdca_state::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use reader::ProtocolReader;

use crate::resume::is_name;

/// The longest line that is read as a record.
pub const MAX_LINE: usize = 1 << 20;
/// The longest message that is kept.
const MAX_MESSAGE: usize = 1 << 20;
/// How many complaints are kept, and how much of each.
const MAX_COMPLAINTS: usize = 20;
const MAX_COMPLAINT: usize = 2000;
/// How many tool calls may be open at a time.
const MAX_OPEN: usize = 1000;

/// The form of an agent's standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Words for people, of which nothing is read.
    #[default]
    Text,
    /// Words for people, as aider prints them.
    Aider,
    /// `stream-json` of Claude Code.
    Claude,
    /// `exec --json` of Codex.
    Codex,
    /// `--output-format stream-json` of Gemini CLI.
    Gemini,
    /// `run --format json` of opencode.
    Opencode,
}

impl Protocol {
    /// Whether nothing is read from the output.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn is_text(&self) -> bool {
        *self == Self::Text
    }

    /// Whether it consists of records, one on each line.
    fn has_records(self) -> bool {
        match self {
            Self::Text | Self::Aider => false,
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode => true,
        }
    }

    /// Whether a call that came to its end says so. opencode does not, where the last answer is cut off.
    pub(crate) fn tells_its_end(self) -> bool {
        match self {
            Self::Text | Self::Aider | Self::Opencode => false,
            Self::Claude | Self::Codex | Self::Gemini => true,
        }
    }

    /// Returns true if the name of the session is told.
    pub(crate) fn tells_session(self) -> bool {
        self.has_records()
    }

    /// Returns true if the agent edits files and does nothing else: it runs no command and writes nothing outside the checkout.
    pub(crate) fn only_edits(self) -> bool {
        match self {
            Self::Aider => true,
            Self::Text | Self::Claude | Self::Codex | Self::Gemini | Self::Opencode => false,
        }
    }

    /// Whether a call that came to its end tells what it cost.
    pub fn tells_cost(self) -> bool {
        match self {
            Self::Aider | Self::Claude | Self::Opencode => true,
            Self::Text | Self::Codex | Self::Gemini => false,
        }
    }

    /// Whether a call that came to its end tells its tokens.
    pub fn tells_usage(self) -> bool {
        !self.is_text()
    }

    /// The name, as in `protocol`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Aider => "aider",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// The inverse of [`Protocol::as_str`].
    pub fn named(name: &str) -> Option<Self> {
        let all =
            [Self::Text, Self::Aider, Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];
        all.into_iter().find(|protocol| protocol.as_str() == name)
    }

    /// Whether tool calls are announced, so that progress can be told from noise.
    pub(crate) fn tells_progress(self) -> bool {
        self.tells_its_end()
    }
}

/// What an agent said in one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The session's name, to resume it by.
    pub session: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The agent's own last message.
    pub message: Option<String>,
    /// Whether the message was longer than is kept.
    pub is_message_cut: bool,
    /// What was used, as far as it was told.
    pub usage: Option<Usage>,
    /// What it cost, as far as it was told.
    pub cost: Option<Money>,
    /// The tokens behind `cost`, where they are told beside those of the call. In a session that was resumed both may be
    /// of the whole session.
    pub cost_tokens: Option<u64>,
    /// How many tool calls were made.
    pub tool_calls: u64,
    /// What went wrong since the last progress, oldest first; only the last ones.
    pub complaints: Vec<Complaint>,
    /// How it ended by its own account.
    pub end: Option<End>,
}

/// An end that the agent announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did what it was asked.
    Success,
    /// It gave up; the last complaint says why.
    Failure,
}

/// Something that went wrong, in the agent's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaint {
    /// The words.
    pub text: String,
    /// The status code of the answer it got.
    pub status: Option<u16>,
    /// After how long it was told to come back.
    pub retry_after: Option<Duration>,
    /// When the limit ends, in seconds since 1970.
    pub resets_at: Option<i64>,
}

/// What is known of a call so far.
#[derive(Debug, Default)]
struct Progress {
    transcript: Transcript,
    /// How many records showed that the work goes on.
    steps: u64,
    /// Tool calls that were announced and have not ended.
    open: BTreeSet<String>,
}

impl Progress {
    fn step(&mut self) {
        self.steps += 1;
        // What was complained about was overcome.
        self.transcript.complaints.clear();
    }

    fn say(&mut self, text: &str) {
        let (kept, is_cut) = cut(text, MAX_MESSAGE);
        self.transcript.message = Some(kept.to_owned());
        self.transcript.is_message_cut = is_cut;
    }

    /// Appends to the last message.
    fn say_on(&mut self, text: &str) {
        let mut message = self.transcript.message.take().unwrap_or_default();
        let (kept, is_cut) = cut(text, MAX_MESSAGE.saturating_sub(message.len()));
        message.push_str(kept);
        self.transcript.message = Some(message);
        self.transcript.is_message_cut |= is_cut;
    }

    fn complain(&mut self, mut complaint: Complaint) {
        let complaints = &mut self.transcript.complaints;
        if complaints.len() == MAX_COMPLAINTS {
            complaints.remove(0);
        }
        let end = cut(&complaint.text, MAX_COMPLAINT).0.len();
        complaint.text.truncate(end);
        complaints.push(complaint);
    }

    fn fail(&mut self, complaint: Complaint) {
        self.complain(complaint);
        self.transcript.end = Some(End::Failure);
    }

    fn open(&mut self, id: Option<&str>) {
        self.transcript.tool_calls += 1;
        // The ids come out of an agent's output. Bounded, so that a stream of announced calls that
        // never end costs no more memory than this.
        if let Some(id) = id.filter(|id| id.len() < 200 && self.open.len() < MAX_OPEN) {
            self.open.insert(id.to_owned());
        }
    }

    fn close(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.open.remove(id);
        }
    }

    fn use_tokens(&mut self, usage: Usage) {
        let all = self.transcript.usage.get_or_insert_default();
        *all = all.plus(usage);
    }

    /// Notes the tokens since the session began.
    fn tokens_so_far(&mut self, usage: Usage) {
        match &mut self.transcript.usage {
            Some(before) if !usage.covers(*before) => *before = before.plus(usage),
            known => *known = Some(usage),
        }
    }

    fn session(&mut self, id: Option<&str>) {
        if let Some(id) = id.filter(|id| is_name(id)) {
            self.transcript.session = Some(id.to_owned());
        }
    }
}

/// The beginning of a text, at most `max` bytes, and whether that is less than all.
fn cut(text: &str, max: usize) -> (&str, bool) {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], end < text.len())
}

/// The text at a pointer such as `/message/id`.
fn text<'a>(record: &'a Value, pointer: &str) -> Option<&'a str> {
    record.pointer(pointer).and_then(Value::as_str)
}

/// The amount of dollars at a pointer.
fn dollars(record: &Value, pointer: &str) -> Option<Money> {
    record.pointer(pointer).and_then(Value::as_f64).and_then(Money::from_number)
}

fn number(record: &Value, pointer: &str) -> u64 {
    record.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

fn status(record: &Value, pointer: &str) -> Option<u16> {
    let value = record.pointer(pointer)?;
    let code = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(code).ok().filter(|code| (100..600).contains(code))
}
