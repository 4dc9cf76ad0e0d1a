//! A transcript for people: messages whole, tool calls with one line each.

use serde_json::Value;

use crate::protocol::{MAX_LINE, Protocol};

/// How much of a tool's argument or complaint is shown.
const MAX_DETAIL: usize = 200;

/// One thing that an agent said or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptEntry {
    /// The kind.
    pub kind: EntryKind,
    /// The tool, of a tool call.
    pub tool: Option<String>,
    /// The words; of a tool call one line, cut.
    pub text: String,
}

/// The kind of an [`TranscriptEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A message of the agent.
    Message,
    /// A tool call.
    Tool,
    /// A tool call that failed.
    ToolFailed,
    /// Something that went wrong, in the agent's words.
    Complaint,
    /// A line that is no record of the protocol.
    Output,
}

/// Reads a transcript in pieces of any size, and gives what is complete.
///
/// ```
/// use pdca_leaves::{EntryKind, Protocol, Renderer};
///
/// let mut renderer = Renderer::new(Protocol::Codex);
/// let text = r#"{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}"#;
/// let mut entries = renderer.feed(text.as_bytes());
/// entries.extend(renderer.finish());
/// assert_eq!((entries[0].kind, entries[0].text.as_str()), (EntryKind::Message, "Done."));
/// ```
#[derive(Debug)]
pub struct Renderer {
    protocol: Protocol,
    line: Vec<u8>,
    /// A message that comes in parts.
    part: String,
}

impl Renderer {
    /// A renderer that has seen nothing yet.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, line: Vec::new(), part: String::new() }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<TranscriptEntry> {
        let mut entries = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // What is longer is no record; its beginning is shown as it is.
            if self.line.len() < MAX_LINE {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end_line(&mut entries);
            }
        }
        entries
    }

    /// Gives what is left.
    pub fn finish(mut self) -> Vec<TranscriptEntry> {
        let mut entries = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut entries);
        }
        self.end_message(&mut entries);
        entries
    }

    fn end_line(&mut self, entries: &mut Vec<TranscriptEntry>) {
        let line = std::mem::take(&mut self.line);
        let record = match self.protocol {
            Protocol::Text | Protocol::Aider => None,
            Protocol::Claude | Protocol::Codex | Protocol::Gemini | Protocol::Opencode => {
                let line = line.trim_ascii();
                let is_record = line.starts_with(b"{");
                is_record.then(|| serde_json::from_slice::<Value>(line).ok()).flatten()
            }
        };
        let Some(record) = record else {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if !(text.is_empty() && self.protocol.tells_usage()) {
                self.end_message(entries);
                entries.push(TranscriptEntry { kind: EntryKind::Output, tool: None, text });
            }
            return;
        };
        let mut said = Vec::new();
        match self.protocol {
            Protocol::Text | Protocol::Aider => {}
            Protocol::Claude => claude(&record, &mut said),
            Protocol::Codex => codex(&record, &mut said),
            Protocol::Gemini => {
                if let Some(part) = gemini_part(&record) {
                    self.part.push_str(part);
                    return;
                }
                gemini(&record, &mut said);
            }
            Protocol::Opencode => opencode(&record, &mut said),
        }
        self.end_message(entries);
        entries.append(&mut said);
    }

    fn end_message(&mut self, entries: &mut Vec<TranscriptEntry>) {
        message(&std::mem::take(&mut self.part), entries);
    }
}

fn text<'a>(record: &'a Value, pointer: &str) -> &'a str {
    record.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn message(text: &str, entries: &mut Vec<TranscriptEntry>) {
    let text = text.trim();
    if !text.is_empty() {
        entries.push(TranscriptEntry {
            kind: EntryKind::Message,
            tool: None,
            text: text.to_owned(),
        });
    }
}

fn complaint(text: &str, entries: &mut Vec<TranscriptEntry>) {
    if !text.trim().is_empty() {
        let text = one_line(text);
        entries.push(TranscriptEntry { kind: EntryKind::Complaint, tool: None, text });
    }
}

fn tool(name: &str, input: &Value, failed: bool, entries: &mut Vec<TranscriptEntry>) {
    let kind = if failed { EntryKind::ToolFailed } else { EntryKind::Tool };
    entries.push(TranscriptEntry { kind, tool: Some(one_line(name)), text: detail(input) });
}

/// The argument of a tool that says most, in one line.
fn detail(input: &Value) -> String {
    let telling = ["command", "file_path", "path", "filePath", "pattern", "query", "url", "prompt"];
    let telling = telling.iter().find_map(|key| input.get(*key));
    match telling.unwrap_or(input) {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Array(words) => {
            let words: Vec<String> = words.iter().map(detail).collect();
            one_line(&words.join(" "))
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            one_line(&other.to_string())
        }
    }
}

fn one_line(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > MAX_DETAIL {
        words = words.chars().take(MAX_DETAIL - 1).chain(['…']).collect();
    }
    words
}

fn claude(record: &Value, entries: &mut Vec<TranscriptEntry>) {
    let parts = record.pointer("/message/content").and_then(Value::as_array);
    let parts = || parts.into_iter().flatten();
    match text(record, "/type") {
        "assistant" if record.get("error").is_some_and(|error| !error.is_null()) => {
            let said: Vec<&str> = parts().map(|part| text(part, "/text")).collect();
            complaint(&said.join(" "), entries);
        }
        "assistant" => {
            for part in parts() {
                match text(part, "/type") {
                    "text" => message(text(part, "/text"), entries),
                    "tool_use" => {
                        let input = part.get("input").unwrap_or(&Value::Null);
                        tool(text(part, "/name"), input, false, entries);
                    }
                    _ => {}
                }
            }
        }
        "user" => {
            for part in parts() {
                if part.get("is_error") == Some(&Value::Bool(true)) {
                    tool("result", part.get("content").unwrap_or(&Value::Null), true, entries);
                }
            }
        }
        "system" if text(record, "/subtype") == "api_retry" => {
            complaint(text(record, "/error"), entries);
        }
        "result" if record.get("is_error") == Some(&Value::Bool(true)) => {
            complaint(text(record, "/result"), entries);
        }
        _ => {}
    }
}

fn codex(record: &Value, entries: &mut Vec<TranscriptEntry>) {
    let item = record.get("item").unwrap_or(&Value::Null);
    match (text(record, "/type"), text(item, "/type")) {
        ("item.completed", "agent_message") => message(text(item, "/text"), entries),
        ("item.completed", "error") => complaint(text(item, "/message"), entries),
        ("item.completed", "reasoning" | "todo_list" | "user_message" | "") => {}
        ("item.completed", name) => {
            let code = item.get("exit_code").and_then(Value::as_i64).unwrap_or(0);
            let failed = code != 0 || text(item, "/status") == "failed";
            let changes = item.pointer("/changes").and_then(Value::as_array);
            let paths: Option<Vec<&str>> =
                changes.map(|changes| changes.iter().map(|one| text(one, "/path")).collect());
            match paths {
                Some(paths) => tool(name, &Value::String(paths.join(" ")), failed, entries),
                None => tool(name, item, failed, entries),
            }
        }
        ("turn.failed", _) => complaint(text(record, "/error/message"), entries),
        ("error", _) => complaint(text(record, "/message"), entries),
        _ => {}
    }
}

/// The next part of a message that comes in parts.
fn gemini_part(record: &Value) -> Option<&str> {
    let is_part = text(record, "/type") == "message"
        && text(record, "/role") == "assistant"
        && record.get("delta") == Some(&Value::Bool(true));
    is_part.then(|| text(record, "/content"))
}

fn gemini(record: &Value, entries: &mut Vec<TranscriptEntry>) {
    match text(record, "/type") {
        "message" if text(record, "/role") == "assistant" => {
            message(text(record, "/content"), entries);
        }
        "tool_use" => {
            let input = record.get("parameters").unwrap_or(&Value::Null);
            tool(text(record, "/tool_name"), input, false, entries);
        }
        "tool_result" if text(record, "/status") == "error" => {
            let said = record.pointer("/error/message").or_else(|| record.get("output"));
            tool("result", said.unwrap_or(&Value::Null), true, entries);
        }
        "error" => complaint(text(record, "/message"), entries),
        "result" if text(record, "/status") != "success" => {
            complaint(text(record, "/error/message"), entries);
        }
        _ => {}
    }
}

fn opencode(record: &Value, entries: &mut Vec<TranscriptEntry>) {
    let part = record.get("part").unwrap_or(&Value::Null);
    match text(record, "/type") {
        "text" => message(text(part, "/text"), entries),
        "tool_use" => {
            let input = part.pointer("/state/input").unwrap_or(&Value::Null);
            let failed = text(part, "/state/status") == "error";
            tool(text(part, "/tool"), input, failed, entries);
        }
        "error" => {
            let said = text(record, "/error/data/message");
            let said = if said.is_empty() { text(record, "/error/message") } else { said };
            complaint(said, entries);
        }
        _ => {}
    }
}
