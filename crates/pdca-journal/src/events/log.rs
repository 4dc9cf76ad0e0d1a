//! The events of a run on disk, one JSON object per line.
//!
//! 1. A writer appends whole lines with one call each and syncs none: the log decides nothing, and the
//!    journal is the durable record.
//! 2. A writer that was killed may leave a torn last line. The next one begins a line of its own, so what
//!    it writes is never glued to the torn one.
//! 3. A reader skips a line that it cannot read, and names it.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use camino::Utf8Path;
use fs_err::{File, OpenOptions};
use serde::Deserialize;

use crate::events::event::Event;

/// The name of the log in the directory of a run or an integration.
pub const FILE: &str = "events.jsonl";

/// The largest size of a log in bytes; further events are not stored.
pub(crate) const LARGEST: u64 = 64 << 20;

/// The number of bytes at the end of a log that are searched for its last whole line.
const TAIL: u64 = 1 << 20;

/// The part of a line that every version has.
#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

#[derive(Debug)]
pub(crate) struct EventLog {
    file: File,
    len: u64,
}

impl EventLog {
    /// Opens the log of a run for appending. Returns its last sequence number too, 0 if there is none.
    pub(crate) fn open(dir: &Utf8Path) -> io::Result<(Self, u64)> {
        let path = dir.join(FILE);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        if tail.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n")?;
            len += 1;
        }
        // From the end: the last line may be torn, and the numbers go on after the last one that
        // can be read. The number alone: a newer version may have written events that are unknown here.
        let mut lines = tail.split(|byte| *byte == b'\n').rev();
        let last = lines.find_map(|line| serde_json::from_slice::<Numbered>(line).ok());
        Ok((Self { file, len }, last.map_or(0, |line| line.seq)))
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.len.saturating_add(bytes as u64) <= LARGEST
    }

    pub(crate) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all(line)?;
        self.len += line.len() as u64;
        Ok(())
    }
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// An event, with its text as it was written.
    Event(Box<Event>, String),
    /// A line that cannot be read: torn by a crash, damaged, or of a newer version.
    Unreadable {
        /// Its number, from 1.
        number: u64,
        /// The reason.
        why: String,
    },
}

/// Reads a log, also one that still grows.
#[derive(Debug)]
pub struct LogReader {
    file: File,
    rest: Vec<u8>,
    number: u64,
}

impl LogReader {
    /// Opens the log in the directory of a run; `None` if there is none.
    pub fn open(dir: &Utf8Path) -> io::Result<Option<Self>> {
        match File::open(dir.join(FILE)) {
            Ok(file) => Ok(Some(Self { file, rest: Vec::new(), number: 0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Goes on with the last mebibyte, which tells what is being done now. The line that it begins in the
    /// middle of cannot be read, and lines are counted from there.
    pub fn skip_to_tail(&mut self) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        self.file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
        Ok(())
    }

    /// Returns the lines that were finished since the last call.
    pub fn read(&mut self) -> io::Result<Vec<LogLine>> {
        self.file.read_to_end(&mut self.rest)?;
        // A line without its end may still be growing. It stays in `rest` for the next call.
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let whole = &whole[..end];
        Ok(whole.split(|byte| *byte == b'\n').map(|line| self.line(line)).collect())
    }

    /// Returns the unfinished last line, if there is one. If the writer has ended, it is torn.
    pub fn torn(&self) -> Option<LogLine> {
        let torn = || LogLine::Unreadable {
            number: self.number + 1,
            why: "the writer was stopped in the middle of it".to_owned(),
        };
        (!self.rest.is_empty()).then(torn)
    }

    fn line(&mut self, bytes: &[u8]) -> LogLine {
        self.number += 1;
        let number = self.number;
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return LogLine::Unreadable { number, why: error.to_string() },
        };
        match serde_json::from_str(text) {
            Ok(event) => LogLine::Event(Box::new(event), text.to_owned()),
            Err(error) => LogLine::Unreadable { number, why: error.to_string() },
        }
    }
}
