//! Reading a journal. Never changes it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files::{self, ReadError as FileError};

use crate::codec::{self, Sum, VERSION, Whole};
use crate::record::{Entry, Seq};
use crate::run_id::RunId;

/// The name of a journal in the directory of its run.
pub(crate) const FILE: &str = "journal";
/// More than any journal can be: a run of a hundred bundles has some hundred kilobytes.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// What a journal says, as far as it is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its records, in order.
    pub entries: Vec<Entry>,
    /// What follows them.
    pub tail: Tail,
    pub(crate) last: Sum,
    /// How many bytes are whole.
    pub(crate) len: u64,
}

/// What follows the last whole record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Whole,
    /// What is left of a write that was cut short. Nobody acted on it.
    Torn {
        /// Where it begins.
        at: u64,
        /// How long it is.
        bytes: u64,
    },
}

/// Why a journal is not read. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none, though there is a run.
    #[error("there is no journal at {path}")]
    Missing {
        /// Where it would be.
        path: Utf8PathBuf,
    },
    /// It cannot be read.
    #[error("the journal cannot be read")]
    File(#[source] FileError),
    /// It was written by a newer version.
    #[error("{path} has journal format {found}, this version knows {VERSION}")]
    Newer {
        /// The journal.
        path: Utf8PathBuf,
        /// Its format.
        found: u32,
    },
    /// It is no journal, or the journal of another run.
    #[error("{path} is not the journal of run {run}")]
    NotTheJournal {
        /// The file.
        path: Utf8PathBuf,
        /// The run.
        run: RunId,
    },
    /// Records that were whole are not any more.
    #[error("{path}:{line} is damaged at byte {offset}, and whole records follow it")]
    Damaged {
        /// The journal.
        path: Utf8PathBuf,
        /// The first line that is not as it was written, from 1.
        line: usize,
        /// Where that line begins.
        offset: u64,
    },
    /// A record is whole and does not follow the one before.
    #[error("{path}:{line} does not follow the record before it")]
    Broken {
        /// The journal.
        path: Utf8PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A record is whole and in no form that this version knows.
    #[error("{path}:{line} is no record that this version knows: {what}")]
    Unknown {
        /// The journal.
        path: Utf8PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Reads the journal in the directory of a run.
pub fn read(dir: &Utf8Path, run: &RunId) -> Result<Reading, ReadError> {
    let path = dir.join(FILE);
    let refuse_link = || {
        // A link that stays in the directory would be followed; a journal is never one.
        let is_link = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        is_link.then(|| FileError::NotAFile { path: path.clone(), kind: "a symbolic link" })
    };
    if let Some(link) = refuse_link() {
        return Err(ReadError::File(link));
    }
    match files::read_bounded(&path, MAX_BYTES) {
        Ok(Some(bytes)) => parse(&bytes, &path, run),
        Ok(None) => Err(ReadError::Missing { path }),
        Err(error) => Err(ReadError::File(error)),
    }
}

/// Reads the bytes of a journal.
pub(crate) fn parse(bytes: &[u8], path: &Utf8Path, run: &RunId) -> Result<Reading, ReadError> {
    let path = || path.to_owned();
    let (header, sum) = codec::header(run);
    let mut reading =
        Reading { entries: Vec::new(), tail: Tail::Whole, last: sum, len: header.len() as u64 };
    let Some(mut rest) = bytes.strip_prefix(header.as_bytes()) else {
        if header.as_bytes().starts_with(bytes) {
            reading.len = 0;
            reading.tail = Tail::Torn { at: 0, bytes: bytes.len() as u64 };
            return Ok(reading);
        }
        return Err(match codec::claimed_version(bytes) {
            Some(found) if found > VERSION => ReadError::Newer { path: path(), found },
            _ => ReadError::NotTheJournal { path: path(), run: run.clone() },
        });
    };
    while !rest.is_empty() {
        let number = reading.entries.len() + 2;
        let expected = Seq(reading.entries.len() as u64 + 1);
        let end = rest.iter().position(|byte| *byte == b'\n');
        let Some((end, whole)) = end.and_then(|end| Some((end, Whole::parse(&rest[..end])?)))
        else {
            if codec::holds_later_batch(rest, expected) {
                return Err(ReadError::Damaged { path: path(), line: number, offset: reading.len });
            }
            reading.tail = Tail::Torn { at: reading.len, bytes: rest.len() as u64 };
            return Ok(reading);
        };
        if !whole.follows(reading.last) || whole.seq != expected || whole.batch > expected {
            return Err(ReadError::Broken { path: path(), line: number });
        }
        let entry = whole.entry().map_err(|what| ReadError::Unknown {
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

impl ReadError {
    pub(crate) fn io(path: &Utf8Path, source: io::Error) -> Self {
        Self::File(FileError::Io { path: path.to_owned(), source })
    }
}
