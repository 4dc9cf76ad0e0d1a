//! Lines out of bytes, and records out of lines.

use serde_json::Value;

use super::{MAX_LINE, Progress, Protocol, Transcript, aider, claude, codex, gemini, opencode};

/// How much of the end of words for people is the last message.
const LAST_WORDS: usize = 4 << 10;

/// Reads an agent's standard output as it comes, in pieces of any size.
///
/// ```
/// use pdca_leaves::{End, Protocol, ProtocolReader};
///
/// let mut reader = ProtocolReader::new(Protocol::Codex);
/// reader.feed(b"not a record\n{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",");
/// reader.feed(b"\"text\":\"Done.\"}}\n{\"type\":\"turn.completed\"}");
/// let transcript = reader.finish();
/// assert_eq!(transcript.message.as_deref(), Some("Done."));
/// assert_eq!(transcript.end, Some(End::Success));
/// ```
#[derive(Debug)]
pub struct ProtocolReader {
    protocol: Protocol,
    line: Vec<u8>,
    /// The line is longer than any record, and passed over.
    is_skipping: bool,
    progress: Progress,
}

impl ProtocolReader {
    /// A reader that has seen nothing yet.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, line: Vec::new(), is_skipping: false, progress: Progress::default() }
    }

    /// Reads all of an output.
    pub fn read(protocol: Protocol, bytes: &[u8]) -> Transcript {
        let mut reader = Self::new(protocol);
        reader.feed(bytes);
        reader.finish()
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // Dropped as soon as it is too long and not at its end: a line without an end would
            // fill the memory.
            if self.line.len() + piece.len() > MAX_LINE {
                self.is_skipping = true;
                self.line.clear();
            }
            if !self.is_skipping {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// How many records showed so far that the work goes on. Complaints, retries and lines that are no records do not.
    pub fn steps(&self) -> u64 {
        self.progress.steps
    }

    /// Whether a tool call was announced and has not ended.
    pub fn is_in_tool(&self) -> bool {
        !self.progress.open.is_empty()
    }

    /// Returns whether the agent's model has answered: a message, a tool call, or tokens that it wrote. Words for people show that only
    /// by their count of tokens.
    pub fn has_answered(&self) -> bool {
        let said = &self.progress.transcript;
        let has_spoken = said.message.is_some() || said.tool_calls > 0;
        said.usage.is_some_and(|usage| usage.output > 0)
            || self.protocol.has_records() && has_spoken
    }

    /// All that was said.
    pub fn finish(mut self) -> Transcript {
        self.end_line();
        let transcript = &mut self.progress.transcript;
        let said = transcript.message.take().map(|said| said.trim().to_owned());
        transcript.message = said.filter(|said| !said.is_empty());
        self.progress.transcript
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_skipping) {
            // Only what a tool gave back is that long, and which tool that was is not known.
            self.progress.step();
            // Counting all tools as ended errs towards a stall that is reported too early; keeping
            // them open would switch the watch off for the rest of the attempt.
            self.progress.open.clear();
            return;
        }
        let line = std::mem::take(&mut self.line);
        if !self.protocol.has_records() {
            let line = String::from_utf8_lossy(&line);
            self.progress.say_on(&line);
            if let Some(message) = &mut self.progress.transcript.message {
                let over = message.len().saturating_sub(LAST_WORDS);
                let over = (over..=message.len()).find(|at| message.is_char_boundary(*at));
                message.drain(..over.unwrap_or(0));
            }
            if self.protocol == Protocol::Aider {
                aider::read(&line, &mut self.progress);
            }
            return;
        }
        // Agents print warnings and progress between records; only a line that is an object can be
        // one.
        let line = line.trim_ascii();
        if !line.starts_with(b"{") {
            return;
        }
        let Ok(record) = serde_json::from_slice::<Value>(line) else { return };
        match self.protocol {
            Protocol::Text | Protocol::Aider => {}
            Protocol::Claude => claude::read(&record, &mut self.progress),
            Protocol::Codex => codex::read(&record, &mut self.progress),
            Protocol::Gemini => gemini::read(&record, &mut self.progress),
            Protocol::Opencode => opencode::read(&record, &mut self.progress),
        }
    }
}
