//! Writing a journal.
//!
//! Records appear together with a single sync, and count only after it. What the journal says is
//! folded as it is written, so a record that cannot follow is refused before a byte of it exists.
//!
//! Taking a run up *replaces* its journal by one that holds the same records and the new driver's
//! first: temporary, sync, rename. A driver that is still alive somewhere has the old file open, which
//! no path names any more. It notices that before it writes, and again before it relies on what it
//! wrote; and nothing it writes can be read by anybody.

mod intent;
#[cfg(test)]
mod tests;

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;

use crate::admission::Admission;
use crate::claim::Epoch;
use crate::codec::{self, MAX_LINE, Sum};
use crate::process::Process;
use crate::read::{self, FILE, ReadError, Reading, Tail};
use crate::record::{Admitted, Entry, Record, Seq};
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::state::{RejectedRecord, RunState};
use crate::storage::{Disk, Look, Storage};
use crate::timestamp::Moment;

pub use intent::Intent;

/// The journal of a run, open for appending. One driver has it, in one thread.
#[derive(Debug)]
pub struct Journal {
    run: RunId,
    path: Utf8PathBuf,
    /// Held as long as anything can be written.
    admission: Admission,
    storage: Box<dyn Storage>,
    len: u64,
    last: Sum,
    state: RunState,
    syncs: u64,
    /// Why nothing can be written any more.
    ended: Option<&'static str>,
}

/// A journal that was taken up.
#[derive(Debug)]
pub struct Opened {
    /// The journal.
    pub journal: Journal,
    /// What was cut from its end, if anything was.
    pub torn: Option<Torn>,
}

/// What was cut from the end of a journal. Nobody had acted on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Where it began.
    pub at: u64,
    /// How long it was.
    pub bytes: u64,
    /// Where it is kept.
    pub kept: Utf8PathBuf,
}

/// Why records were not written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// A record cannot follow those before it. Nothing was written.
    #[error("the journal of the run does not take the record")]
    Illegal(#[from] RejectedRecord),
    /// A record is too long to be written. Nothing was.
    #[error("a record has {len} bytes, the limit is {MAX_LINE}")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// They could not be written, for want of space for instance, and nothing of them is left. The
    /// same can be tried again.
    #[error("nothing was written to {path}")]
    NotWritten {
        /// The journal.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not known whether they were written. The process has to end; the next one reads what
    /// is there.
    #[error("{path} cannot be relied on any more: {why}")]
    Ended {
        /// The journal.
        path: Utf8PathBuf,
        /// What happened.
        why: &'static str,
        /// What the system said, the first time.
        source: Option<io::Error>,
    },
}

/// Why there is no new run.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The record of the admission is itself not legal.
    #[error("the run cannot be admitted")]
    Illegal(#[from] RejectedRecord),
    /// The run is there already.
    #[error("there is a run {run} already")]
    Exists {
        /// The run.
        run: RunId,
    },
    /// The system would not.
    #[error("cannot make {path}")]
    Io {
        /// What was to be made.
        path: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why a run was not taken up. Its journal says what it said, unless the system failed while it was
/// replaced for the second time because of a driver that wrote meanwhile.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its journal is whole, and what it says cannot be.
    #[error("{path} does not tell the story of a run")]
    Illegal {
        /// The journal.
        path: Utf8PathBuf,
        /// The record that cannot be.
        source: RejectedRecord,
    },
    /// Its journal does not even hold its admission. A run appears with that, so it was lost.
    #[error("{path} has lost its first record")]
    Lost {
        /// The journal.
        path: Utf8PathBuf,
    },
    /// A later driver has had the run.
    #[error("the run was taken up by epoch {current}, which is not before epoch {epoch}")]
    Stale {
        /// The epoch that was to take it up.
        epoch: Epoch,
        /// The one that has it.
        current: Epoch,
    },
    /// Somebody keeps writing to it.
    #[error("{path} is being written to")]
    Busy {
        /// The journal.
        path: Utf8PathBuf,
    },
    /// The system would not.
    #[error("cannot write {path}")]
    Io {
        /// What was to be written.
        path: Utf8PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// How often a journal that is written to while it is taken up is read again.
const PATIENCE: u32 = 8;

impl Journal {
    /// Begins a run: its directory appears whole, with the first record in it, or not at all.
    ///
    /// The admission is what gives the right to, and is held as long as the journal is.
    pub fn create(
        runs: &Runs,
        admission: &Admission,
        run: &RunId,
        epoch: Epoch,
        at: Moment,
        admitted: Admitted,
    ) -> Result<Self, CreateError> {
        let record = Record::Admitted(admitted);
        let entry = Entry { seq: Seq(1), epoch, at: at.kept(), record };
        let state = RunState::admitted(&entry)?;
        let (header, sum) = codec::header(run);
        let mut bytes = header.into_bytes();
        let last = codec::write(&entry, entry.seq, sum, &mut bytes);
        let path = runs.make(run, FILE, &bytes)?;
        let io = |source| CreateError::Io { path: path.clone(), source };
        let storage = Box::new(Disk::open(path.clone()).map_err(io)?);
        let len = bytes.len() as u64;
        let (run, admission) = (run.clone(), admission.clone());
        Ok(Self { run, path, admission, storage, len, last, state, syncs: 0, ended: None })
    }

    /// Takes a run up as its next driver, after the one before died or, `forced`, against it.
    ///
    /// The epoch has to be above all that were seen, see [`next_epoch`](crate::next_epoch).
    pub fn open(
        runs: &Runs,
        admission: &Admission,
        run: &RunId,
        epoch: Epoch,
        at: Moment,
        driver: Process,
        forced: bool,
    ) -> Result<Opened, OpenError> {
        let path = runs.dir(run).join(FILE);
        let io = |source| OpenError::Io { path: path.clone(), source };
        let old = Disk::open(path.clone()).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                ReadError::Missing { path: path.clone() }
            } else {
                ReadError::io(&path, source)
            }
        })?;
        let record = Record::TakenUp { driver, forced };
        for _ in 0..PATIENCE {
            let bytes = old.bytes().map_err(io)?;
            let reading = read::parse(&bytes, &path, run)?;
            let mut state = require_state(&path, &reading)?;
            let seq = Seq(state.last.seq.0 + 1);
            let entry = Entry { seq, epoch, at: at.kept(), record: record.clone() };
            if epoch <= state.epoch {
                return Err(OpenError::Stale { epoch, current: state.epoch });
            }
            state
                .apply(&entry)
                .map_err(|source| OpenError::Illegal { path: path.clone(), source })?;
            let torn = keep_torn(&path, &reading, &bytes)?;
            let mut new = bytes[..bytes.len() - torn.as_ref().map_or(0, |torn| torn.1)].to_vec();
            let last = codec::write(&entry, seq, reading.last, &mut new);
            files::replace(&path, &new).map_err(io)?;
            // A driver that we take the run from may have written between our reading and our
            // replacing, and relied on it. From now on it cannot.
            if old.bytes().map_err(io)? == bytes {
                let storage = Box::new(Disk::open(path.clone()).map_err(io)?);
                let (run, admission) = (run.clone(), admission.clone());
                let len = new.len() as u64;
                let torn = torn.map(|torn| torn.0);
                let syncs = 0;
                let ended = None;
                let journal =
                    Self { run, path, admission, storage, len, last, state, syncs, ended };
                return Ok(Opened { journal, torn });
            }
        }
        Err(OpenError::Busy { path })
    }

    /// Writes records and returns when they are on the disk: all of them, with a single sync, or none.
    ///
    /// The place of the first one is given back.
    pub fn append(&mut self, at: Moment, records: Vec<Record>) -> Result<Seq, AppendError> {
        let first = Seq(self.state.last.seq.0 + 1);
        if let Some(why) = self.ended {
            return Err(AppendError::Ended { path: self.path.clone(), why, source: None });
        }
        if records.is_empty() {
            return Ok(first);
        }
        let mut bytes = Vec::new();
        let written = self.take(at, records, &mut bytes).and_then(|last| {
            self.commit(&bytes)?;
            Ok(last)
        });
        if written.is_err() && self.state.last.seq >= first {
            self.forget_from(first);
        }
        self.last = written?;
        self.len += bytes.len() as u64;
        Ok(first)
    }

    /// Goes on by these records in memory, and gives their lines.
    ///
    /// In place: a run may have thousands of bundles, and a copy of all of them for every record
    /// would cost more than the record.
    fn take(
        &mut self,
        at: Moment,
        records: Vec<Record>,
        bytes: &mut Vec<u8>,
    ) -> Result<Sum, AppendError> {
        let first = Seq(self.state.last.seq.0 + 1);
        let mut last = self.last;
        for record in records {
            let seq = Seq(self.state.last.seq.0 + 1);
            let entry = Entry { seq, epoch: self.state.epoch, at: at.kept(), record };
            self.state.apply(&entry)?;
            let before = bytes.len();
            last = codec::write(&entry, first, last, bytes);
            let len = bytes.len() - before;
            if len > MAX_LINE {
                return Err(AppendError::TooLong { len });
            }
        }
        Ok(last)
    }

    /// Makes the state again what the records before `first` say. Those from there on did not get to
    /// the disk for certain, whatever the file shows.
    fn forget_from(&mut self, first: Seq) {
        let read = self.path.parent().and_then(|dir| read::read(dir, &self.run).ok());
        let fold = |reading: Reading| {
            let before = reading.entries.iter().take_while(|entry| entry.seq < first);
            RunState::fold(before).ok().flatten()
        };
        match read.and_then(fold) {
            Some(state) => self.state = state,
            None => {
                self.ended.get_or_insert("it cannot be read again after a record was not written");
            }
        }
    }

    fn commit(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        self.require_ours(self.len)?;
        if let Err(source) = self.storage.write(bytes, self.len) {
            return Err(match self.storage.cut(self.len) {
                Ok(()) => AppendError::NotWritten { path: self.path.clone(), source },
                Err(_) => self.end("what was half written to it cannot be cut", Some(source)),
            });
        }
        self.syncs += 1;
        if let Err(source) = self.storage.sync() {
            // The kernel may have dropped the pages that it could not write, and says so once.
            return Err(self.end("it could not be synced", Some(source)));
        }
        self.require_ours(self.len + bytes.len() as u64)
    }

    /// The file is still the one that a reader finds, and nobody else has written to it.
    fn require_ours(&mut self, len: u64) -> Result<(), AppendError> {
        if !self.admission.is_current() {
            return Err(self.end("somebody has taken the run over", None));
        }
        match self.storage.look() {
            Ok(Look::There(found)) if found == len => Ok(()),
            Ok(Look::There(_)) => Err(self.end("somebody else has written to it", None)),
            Ok(Look::Gone) => Err(self.end("it was deleted or replaced", None)),
            Err(source) => Err(self.end("it cannot be looked at", Some(source))),
        }
    }

    fn end(&mut self, why: &'static str, source: Option<io::Error>) -> AppendError {
        self.ended = Some(why);
        AppendError::Ended { path: self.path.clone(), why, source }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// What the journal says, after its last record.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// How often it was synced.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }
}

fn require_state(path: &Utf8Path, reading: &Reading) -> Result<RunState, OpenError> {
    let illegal = |source| OpenError::Illegal { path: path.to_owned(), source };
    let lost = || OpenError::Lost { path: path.to_owned() };
    RunState::fold(&reading.entries).map_err(illegal)?.ok_or_else(lost)
}

/// Keeps what is about to be cut, beside the journal; gives back how long it is, too.
fn keep_torn(
    path: &Utf8Path,
    reading: &Reading,
    bytes: &[u8],
) -> Result<Option<(Torn, usize)>, OpenError> {
    let Tail::Torn { at, bytes: len } = reading.tail else {
        return Ok(None);
    };
    let cut = usize::try_from(len).expect("because it is a part of what is in memory");
    let kept = Utf8PathBuf::from(format!("{path}.torn-{at}"));
    let io = |source| OpenError::Io { path: kept.clone(), source };
    files::replace(&kept, &bytes[bytes.len() - cut..]).map_err(io)?;
    Ok(Some((Torn { at, bytes: len, kept }, cut)))
}
