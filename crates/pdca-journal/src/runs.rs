//! The directories of runs below `.pdca/runs`.
//!
//! ```text
//! .pdca/runs/<ulid>/journal               the record
//! .pdca/runs/<ulid>/journal.torn-<at>     a torn tail that was cut from it
//! .pdca/runs/<ulid>/ws/<issue>/NN-state   status files for people
//! .pdca/runs/<ulid>/inbox/                requests to its driver
//! ```
//!
//! A directory appears by one rename with the first record in its journal. So a directory without a
//! journal is not a run that has not begun: it has lost its journal.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;

use crate::journal::JournalCreateError;
use crate::read::{self, JournalReadError, JournalTail};
use crate::reconcile::RunPhase;
use crate::run_id::RunId;
use crate::state::{RejectedRecord, RunState};

/// The directory of all runs of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    root: Utf8PathBuf,
}

/// One run, readable or not.
#[derive(Debug)]
pub struct RunEntry {
    pub id: RunId,
    pub found: Result<FoundRun, FindError>,
}

/// A run with a valid journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    pub state: RunState,
    pub tail: JournalTail,
}

/// The reason the state of a run is unknown.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error(transparent)]
    Read(#[from] JournalReadError),
    /// Every line is whole, but a record cannot follow those before it.
    #[error("the journal is not valid")]
    Illegal(#[from] RejectedRecord),
    /// The admission record is missing.
    #[error("the journal has lost its first record")]
    Lost,
}

impl RunEntry {
    /// The phase of the run; `None` if its journal cannot be read.
    pub fn phase(&self) -> Option<RunPhase> {
        self.found.as_ref().ok().map(|found| found.state.phase)
    }

    /// Returns true unless the run is known to be over. An active run excludes another one.
    pub fn is_active(&self) -> bool {
        self.phase().is_none_or(RunPhase::is_active)
    }
}

impl Runs {
    /// Makes a handle to the runs below `root`, which need not exist.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory of a run, which need not exist.
    pub fn dir(&self, run: &RunId) -> Utf8PathBuf {
        self.root.join(run.as_str())
    }

    /// Lists the ids of all runs, oldest first. Entries with other names are skipped.
    pub fn list(&self) -> io::Result<Vec<RunId>> {
        let entries = match fs_err::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut runs = Vec::new();
        for entry in entries {
            runs.extend(entry?.file_name().to_str().and_then(|name| name.parse().ok()));
        }
        runs.sort_unstable();
        Ok(runs)
    }

    /// Reads one run, without a lock: a concurrent writer is not disturbed.
    pub fn find(&self, id: &RunId) -> RunEntry {
        let found = || {
            let reading = read::read(&self.dir(id), id)?;
            let state = RunState::fold(&reading.entries)?.ok_or(FindError::Lost)?;
            Ok(FoundRun { state, tail: reading.tail })
        };
        RunEntry { id: id.clone(), found: found() }
    }

    /// Lists the runs that exclude another one, newest first: those that are not over, that wait for a
    /// person, or that cannot be read.
    pub fn active(&self) -> io::Result<Vec<RunEntry>> {
        let runs = self.list()?;
        Ok(runs.iter().rev().map(|id| self.find(id)).filter(RunEntry::is_active).collect())
    }

    /// Creates the directory of a run with its journal, atomically, and returns the journal's path.
    pub(crate) fn make(
        &self,
        run: &RunId,
        name: &str,
        journal: &[u8],
    ) -> Result<Utf8PathBuf, JournalCreateError> {
        let dir = self.dir(run);
        let io = |path: &Utf8Path, source| JournalCreateError::Io { path: path.to_owned(), source };
        fs_err::create_dir_all(&self.root).map_err(|source| io(&self.root, source))?;
        // A rename replaces an empty directory without an error.
        if fs_err::symlink_metadata(&dir).is_ok() {
            return Err(JournalCreateError::Exists { run: run.clone() });
        }
        // Not a valid run id, so `list` skips what a crash leaves of it.
        let new = self.root.join(format!(".new-{run}"));
        match fs_err::remove_dir_all(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(&new, error)),
            Ok(()) | Err(_) => {}
        }
        fs_err::create_dir(&new).map_err(|source| io(&new, source))?;
        files::replace(new.join(name), journal).map_err(|source| io(&new.join(name), source))?;
        // The journal is synced inside the new directory before its name appears, and the name is
        // synced before the caller acts: an effect never comes before the record of its run.
        fs_err::rename(&new, &dir).map_err(|source| io(&dir, source))?;
        files::sync_dir(&self.root).map_err(|source| io(&self.root, source))?;
        Ok(dir.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Epoch;
    use crate::journal::Journal;
    use crate::record::{Reason, Record};
    use crate::testing::{Scene, admitted, at};

    /// A run with this record after its admission.
    fn begin(scene: &Scene, number: u8, record: Option<Record>) -> RunId {
        let run = RunId::new(at(number.into()).wall, [number; 10]);
        let (runs, admission) = (scene.runs(), scene.admission());
        let mut journal =
            Journal::create(&runs, &admission, &run, Epoch::FIRST, at(0), admitted()).unwrap();
        journal.append(at(0), record.into_iter().collect()).unwrap();
        run
    }

    #[test]
    fn runs_are_listed_by_age_and_the_newest_that_is_not_over_comes_first() {
        let scene = Scene::new();
        assert!(
            scene.runs().list().unwrap().is_empty() && scene.runs().active().unwrap().is_empty()
        );
        let blocked = Record::Blocked {
            bundle: None,
            reason: Reason::Validation,
            evidence: "the base is red".to_owned(),
        };
        let [plain, over, blocked] = [
            begin(&scene, 1, None),
            begin(&scene, 3, Some(Record::Aborted { why: String::new() })),
            begin(&scene, 2, Some(blocked)),
        ];
        for name in ["notes.txt", "01short", ".new-01ARYZ6S410000000000000000"] {
            fs_err::write(scene.path().join("runs").join(name), "").unwrap();
        }
        assert_eq!(scene.runs().list().unwrap(), [plain.clone(), blocked.clone(), over]);
        let active = scene.runs().active().unwrap();
        let ids: Vec<&RunId> = active.iter().map(|run| &run.id).collect();
        assert_eq!(ids, [&blocked, &plain], "one that waits for a person is not over");
    }

    #[test]
    fn a_run_that_cannot_be_read_is_one_bad_row_and_not_over() {
        let scene = Scene::new();
        let run = begin(&scene, 1, Some(Record::Aborted { why: String::new() }));
        assert!(!scene.runs().find(&run).is_active());
        fs_err::write(scene.runs().dir(&run).join("journal"), "spoilt").unwrap();
        let active = scene.runs().active().unwrap();
        assert_eq!((active.len(), active[0].phase()), (1, None));
    }
}
