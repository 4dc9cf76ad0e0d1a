//! The writer of a journal.
//!
//! # Append
//! 1. Each record is applied to the state in memory. An illegal one is refused before any byte of it
//!    is written.
//! 2. The writer checks that the file is still the one its path names and has the expected length.
//! 3. The lines are written at the known end. A failed write is cut again, so that the append can be
//!    retried.
//! 4. One sync for all of them. After a failed sync nothing can be relied on any more and the writer
//!    refuses all further appends.
//! 5. The check of step 2 again: a driver that was replaced during the write must not act on it.
//!
//! # Takeover
//! A new driver does not append to the old file. It *replaces* it (temporary, sync, rename) by one
//! with the same records and its own first record. A previous driver that still lives has the old,
//! unlinked file open: step 2 or 5 stops it, and what it writes there cannot be read by anyone. If it
//! wrote between the read and the rename, the replacement is repeated with those records.

mod intent;
#[cfg(test)]
mod tests;

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;

use crate::admission::Admission;
use crate::claim::Epoch;
use crate::codec::{self, MAX_LINE, Sum};
use crate::process::ProcessIdentity;
use crate::read::{self, FILE, JournalReadError, JournalTail, Reading};
use crate::record::{Admitted, JournalEntry, Record, Seq};
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::state::{RejectedRecord, RunState};
use crate::storage::{Disk, PathState, Storage};
use crate::timestamp::Moment;

pub use intent::Intent;

/// The journal of a run, open for appending by one driver.
#[derive(Debug)]
pub struct Journal {
    run: RunId,
    path: Utf8PathBuf,
    /// The right to write; released with the journal.
    admission: Admission,
    storage: Box<dyn Storage>,
    len: u64,
    last: Sum,
    state: RunState,
    syncs: u64,
    /// Set once nothing can be written any more, with the reason.
    ended: Option<&'static str>,
}

/// The result of [`Journal::open`].
#[derive(Debug)]
pub struct Opened {
    pub journal: Journal,
    /// The torn tail that was cut, if there was one.
    pub torn: Option<Torn>,
}

/// A torn tail that was cut from a journal. It was never synced, so no effect was based on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Its byte offset in the journal.
    pub at: u64,
    pub bytes: u64,
    /// The file with a copy of it.
    pub kept: Utf8PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// A record cannot follow those before it. Nothing was written.
    #[error("the record cannot be appended to the journal")]
    Illegal(#[from] RejectedRecord),
    /// A record is longer than a line may be. Nothing was written.
    #[error("a record has {len} bytes, the limit is {MAX_LINE}")]
    TooLong { len: usize },
    /// The write failed, for instance on a full disk, and was undone. It can be retried.
    #[error("nothing was written to {path}")]
    NotWritten { path: Utf8PathBuf, source: io::Error },
    /// It is unknown if the records were written. The process has to end; the next driver reads the
    /// file.
    #[error("{path} cannot be relied on any more: {why}")]
    Ended {
        path: Utf8PathBuf,
        why: &'static str,
        /// Present only in the first error.
        source: Option<io::Error>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum JournalCreateError {
    /// The admission record is not legal, for instance because the batch repeats a bundle.
    #[error("the run cannot be admitted")]
    Illegal(#[from] RejectedRecord),
    #[error("there is a run {run} already")]
    Exists { run: RunId },
    #[error("cannot make {path}")]
    Io { path: Utf8PathBuf, source: io::Error },
}

/// The error of resuming a run. Its journal is unchanged, unless the system failed during a second
/// replacement that was necessary because the previous driver wrote meanwhile.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Read(#[from] JournalReadError),
    /// Every line is whole, but a record cannot follow those before it.
    #[error("{path} is not a valid journal")]
    Illegal { path: Utf8PathBuf, source: RejectedRecord },
    /// The admission record is missing. A run is created with it, so it was lost.
    #[error("{path} has lost its first record")]
    Lost { path: Utf8PathBuf },
    /// A later driver has the run already.
    #[error("the run was taken up by epoch {current}, which is not before epoch {epoch}")]
    Stale {
        /// The epoch of the caller.
        epoch: Epoch,
        /// The epoch of the driver that has the run.
        current: Epoch,
    },
    /// Another process wrote to the journal during every attempt to replace it.
    #[error("{path} is being written to")]
    Busy { path: Utf8PathBuf },
    #[error("cannot write {path}")]
    Io { path: Utf8PathBuf, source: io::Error },
}

/// Attempts at replacing a journal that another process writes to.
// The first rename stops the previous driver at its next check, so at most the append that was
// under way is found afterwards. More rounds than a few mean that something else writes to the
// file.
const PATIENCE: u32 = 8;

impl Journal {
    /// Creates a run. Its directory appears atomically, with the first record in the journal.
    ///
    /// The journal keeps the locks of the admission while it is open.
    pub fn create(
        runs: &Runs,
        admission: &Admission,
        run: &RunId,
        epoch: Epoch,
        at: Moment,
        admitted: Admitted,
    ) -> Result<Self, JournalCreateError> {
        let record = Record::Admitted(admitted);
        let entry = JournalEntry { seq: Seq(1), epoch, at: at.kept(), record };
        let state = RunState::admitted(&entry)?;
        let (header, sum) = codec::header(run);
        let mut bytes = header.into_bytes();
        let last = codec::write(&entry, entry.seq, sum, &mut bytes);
        let path = runs.make(run, FILE, &bytes)?;
        let io = |source| JournalCreateError::Io { path: path.clone(), source };
        let storage = Box::new(Disk::open(path.clone()).map_err(io)?);
        let len = bytes.len() as u64;
        let (run, admission) = (run.clone(), admission.clone());
        Ok(Self { run, path, admission, storage, len, last, state, syncs: 0, ended: None })
    }

    /// Resumes a run as its next driver, after the previous one died or, if `forced`, in place of a
    /// live one.
    ///
    /// The epoch must be higher than all before it, see [`next_epoch`](crate::next_epoch).
    pub fn open(
        runs: &Runs,
        admission: &Admission,
        run: &RunId,
        epoch: Epoch,
        at: Moment,
        driver: ProcessIdentity,
        forced: bool,
    ) -> Result<Opened, OpenError> {
        let path = runs.dir(run).join(FILE);
        let io = |source| OpenError::Io { path: path.clone(), source };
        // Kept open over the rename: what a previous driver still appends goes into this file, unlinked by then.
        let old = Disk::open(path.clone()).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                JournalReadError::Missing { path: path.clone() }
            } else {
                JournalReadError::io(&path, source)
            }
        })?;
        let record = Record::TakenUp { driver, forced };
        for _ in 0..PATIENCE {
            let bytes = old.bytes().map_err(io)?;
            let reading = read::parse(&bytes, &path, run)?;
            let mut state = require_state(&path, &reading)?;
            let seq = Seq(state.last.seq.0 + 1);
            let entry = JournalEntry { seq, epoch, at: at.kept(), record: record.clone() };
            // `apply` refuses this too, but as an invalid journal. A caller that lost a race
            // against another driver must be able to tell the two apart.
            if epoch <= state.epoch {
                return Err(OpenError::Stale { epoch, current: state.epoch });
            }
            state
                .apply(&entry)
                .map_err(|source| OpenError::Illegal { path: path.clone(), source })?;
            // The copy of the tail is on disk before the file without it is, so a crash between
            // them loses nothing.
            let torn = keep_torn(&path, &reading, &bytes)?;
            let mut new = bytes[..bytes.len() - torn.as_ref().map_or(0, |torn| torn.1)].to_vec();
            let last = codec::write(&entry, seq, reading.last, &mut new);
            files::replace(&path, &new).map_err(io)?;
            // The previous driver may have appended between our read and the rename, and acted on it.
            // If so, start again with those records. After the rename its appends fail.
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

    /// Appends records with one sync and returns the number of the first one. They are durable when it
    /// returns. After an error none of them counts for this driver; a crash may leave the first few.
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
        // `take` has changed the state for the records before the one that failed, or for all of
        // them if the write failed.
        if written.is_err() && self.state.last.seq >= first {
            self.forget_from(first);
        }
        // Only here: a failed append leaves checksum and length where the next append continues.
        self.last = written?;
        self.len += bytes.len() as u64;
        Ok(first)
    }

    /// Applies records to the state in memory and encodes their lines.
    ///
    /// In place, because a run may have thousands of bundles and cloning the state for every append
    /// would cost more than the append. On an error, [`Self::forget_from`] restores the state.
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
            let entry = JournalEntry { seq, epoch: self.state.epoch, at: at.kept(), record };
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

    /// Rebuilds the state from the records before `first`. Later ones are not known to be on disk,
    /// even if the file shows them.
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
        // Before the write, because a driver that was replaced must not reach the effect that the
        // record announces; after the sync, because it can be replaced during the write.
        self.require_ours(self.len)?;
        if let Err(source) = self.storage.write(bytes, self.len) {
            return Err(match self.storage.cut(self.len) {
                Ok(()) => AppendError::NotWritten { path: self.path.clone(), source },
                // Part of a line may be on disk, and a line that is appended to it would not be
                // readable.
                Err(_) => self.end("a partial write cannot be undone", Some(source)),
            });
        }
        self.syncs += 1;
        if let Err(source) = self.storage.sync() {
            // The kernel may drop dirty pages after a failed sync and reports the error only once, so a
            // second sync could succeed although the data is lost.
            return Err(self.end("it could not be synced", Some(source)));
        }
        self.require_ours(self.len + bytes.len() as u64)
    }

    /// Returns an error unless the path still names this file and no other process has written to it.
    fn require_ours(&mut self, len: u64) -> Result<(), AppendError> {
        if !self.admission.is_current() {
            return Err(self.end("another driver has taken over the run", None));
        }
        match self.storage.look() {
            Ok(PathState::There(found)) if found == len => Ok(()),
            Ok(PathState::There(_)) => Err(self.end("another process has written to it", None)),
            Ok(PathState::Gone) => Err(self.end("it was deleted or replaced", None)),
            Err(source) => Err(self.end("it cannot be looked at", Some(source))),
        }
    }

    fn end(&mut self, why: &'static str, source: Option<io::Error>) -> AppendError {
        self.ended = Some(why);
        AppendError::Ended { path: self.path.clone(), why, source }
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The state after the last record.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The number of syncs so far.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }
}

fn require_state(path: &Utf8Path, reading: &Reading) -> Result<RunState, OpenError> {
    let illegal = |source| OpenError::Illegal { path: path.to_owned(), source };
    let lost = || OpenError::Lost { path: path.to_owned() };
    RunState::fold(&reading.entries).map_err(illegal)?.ok_or_else(lost)
}

/// Copies a torn tail to a file beside the journal before it is cut; also returns its length.
fn keep_torn(
    path: &Utf8Path,
    reading: &Reading,
    bytes: &[u8],
) -> Result<Option<(Torn, usize)>, OpenError> {
    let JournalTail::Torn { at, bytes: len } = reading.tail else {
        return Ok(None);
    };
    let cut = usize::try_from(len).expect("because it is a part of what is in memory");
    let kept = Utf8PathBuf::from(format!("{path}.torn-{at}"));
    let io = |source| OpenError::Io { path: kept.clone(), source };
    files::replace(&kept, &bytes[bytes.len() - cut..]).map_err(io)?;
    Ok(Some((Torn { at, bytes: len, kept }, cut)))
}
