//! The reader of a journal. Never changes the file.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files::{self, FileReadError as FileError};

use crate::codec::{self, Sum, VERSION, Whole};
use crate::record::{JournalEntry, Seq};
use crate::run_id::RunId;

/// The name of a journal in the directory of its run.
pub(crate) const FILE: &str = "journal";
/// Far more than any journal has: a run of a hundred bundles writes some hundred kilobytes.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// The whole records of a journal, and what follows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub entries: Vec<JournalEntry>,
    pub tail: JournalTail,
    pub(crate) last: Sum,
    /// The length of the whole part in bytes.
    pub(crate) len: u64,
}

/// The end of a journal after the last whole record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalTail {
    /// Nothing follows.
    Whole,
    /// The rest of an interrupted write. It was never synced, so no effect was based on it.
    Torn {
        /// The byte offset of the torn part.
        at: u64,
        bytes: u64,
    },
}

/// The error of reading a journal. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum JournalReadError {
    /// The run has no journal.
    #[error("there is no journal at {path}")]
    Missing { path: Utf8PathBuf },
    #[error("the journal cannot be read")]
    File(#[source] FileError),
    /// The journal was written by a newer version.
    #[error("{path} has journal format {found}, this version knows {VERSION}")]
    Newer { path: Utf8PathBuf, found: u32 },
    /// The file is not a journal, or belongs to another run.
    #[error("{path} is not the journal of run {run}")]
    NotTheJournal { path: Utf8PathBuf, run: RunId },
    /// A record that was whole once is damaged; see the module `codec`.
    #[error("{path}:{line} is damaged at byte {offset}, and whole records follow it")]
    Damaged {
        path: Utf8PathBuf,
        /// The first damaged line, from 1.
        line: usize,
        /// The byte offset of that line.
        offset: u64,
    },
    /// A record is whole but does not continue the chain of checksums or numbers.
    #[error("{path}:{line} does not follow the record before it")]
    Broken { path: Utf8PathBuf, line: usize },
    /// A record is whole but has a form that this version does not know.
    #[error("{path}:{line} is not a record that this version knows: {what}")]
    Unknown { path: Utf8PathBuf, line: usize, what: String },
}

/// Reads the journal in the directory of a run.
pub fn read(dir: &Utf8Path, run: &RunId) -> Result<Reading, JournalReadError> {
    let path = dir.join(FILE);
    let refuse_link = || {
        // `read_bounded` follows a link inside the directory, but a journal is never a link.
        let is_link = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        is_link.then(|| FileError::NotAFile { path: path.clone(), kind: "a symbolic link" })
    };
    if let Some(link) = refuse_link() {
        return Err(JournalReadError::File(link));
    }
    match files::read_bounded(&path, MAX_BYTES) {
        Ok(Some(bytes)) => parse(&bytes, &path, run),
        Ok(None) => Err(JournalReadError::Missing { path }),
        Err(error) => Err(JournalReadError::File(error)),
    }
}

pub(crate) fn parse(
    bytes: &[u8],
    path: &Utf8Path,
    run: &RunId,
) -> Result<Reading, JournalReadError> {
    let path = || path.to_owned();
    let (header, sum) = codec::header(run);
    let mut reading = Reading {
        entries: Vec::new(),
        tail: JournalTail::Whole,
        last: sum,
        len: header.len() as u64,
    };
    let Some(mut rest) = bytes.strip_prefix(header.as_bytes()) else {
        // A journal appears whole by a rename, so a file that ends within the header was damaged
        // later. No entry remains, and every caller reports the run as lost, never as new.
        if header.as_bytes().starts_with(bytes) {
            reading.len = 0;
            reading.tail = JournalTail::Torn { at: 0, bytes: bytes.len() as u64 };
            return Ok(reading);
        }
        return Err(match codec::claimed_version(bytes) {
            Some(found) if found > VERSION => JournalReadError::Newer { path: path(), found },
            _ => JournalReadError::NotTheJournal { path: path(), run: run.clone() },
        });
    };
    while !rest.is_empty() {
        let number = reading.entries.len() + 2;
        let expected = Seq(reading.entries.len() as u64 + 1);
        let end = rest.iter().position(|byte| *byte == b'\n');
        let Some((end, whole)) = end.and_then(|end| Some((end, Whole::parse(&rest[..end])?)))
        else {
            if codec::holds_later_batch(rest, expected) {
                return Err(JournalReadError::Damaged {
                    path: path(),
                    line: number,
                    offset: reading.len,
                });
            }
            reading.tail = JournalTail::Torn { at: reading.len, bytes: rest.len() as u64 };
            return Ok(reading);
        };
        // A line with a correct checksum in the wrong place is never a torn write: lines were
        // removed, exchanged or inserted.
        if !whole.follows(reading.last) || whole.seq != expected || whole.batch > expected {
            return Err(JournalReadError::Broken { path: path(), line: number });
        }
        // The checksum is correct, so the record was written like this: by a newer version. It is
        // not skipped, because the state without it would be wrong.
        let entry = whole.entry().map_err(|what| JournalReadError::Unknown {
            path: path(),
            line: number,
            what,
        })?;
        reading.last = whole.sum;
        reading.entries.push(entry);
        reading.len += end as u64 + 1;
        rest = &rest[end + 1..];
    }
    Ok(reading)
}

impl JournalReadError {
    pub(crate) fn io(path: &Utf8Path, source: io::Error) -> Self {
        Self::File(FileError::Io { path: path.to_owned(), source })
    }
}
