//! The one process that may write the records of reviews.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{FileLock, FileLockError};
use pdca_state::files;

use crate::baseline::Baseline;
use crate::ledger::Resolution;
use crate::mark::CycleMark;
use crate::records::{ActRecords, FileWrite, RecordsError};

/// The lock on a process directory, under which its records are read, appended to and replaced.
///
/// Without it two recorders would each append to what both have read.
#[derive(Debug)]
pub struct Recorder {
    dir: Utf8PathBuf,
    _lock: FileLock,
}

impl Recorder {
    /// Locks the process directory, which is created if it is absent. Does not wait for another recorder.
    pub fn lock(dir: &Utf8Path) -> Result<Self, RecordsError> {
        let failed = |source| RecordsError::Lock { dir: dir.to_owned(), source };
        fs_err::create_dir_all(dir).map_err(failed)?;
        match FileLock::take(&dir.join(".pdca.lock"), "") {
            Ok(taken) => Ok(Self { dir: dir.to_owned(), _lock: taken.transient() }),
            Err(FileLockError::Held { .. }) => Err(RecordsError::Busy { dir: dir.to_owned() }),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Loads the records. Fails if recording would lose the content of the ledger.
    pub fn load(&self) -> Result<ActRecords, RecordsError> {
        ActRecords::load(&self.dir)?.require_writable()
    }

    /// Completes interrupted records, and returns the records as they are then, with the dates of those completed.
    ///
    /// This comes before a new record: an entry that is half recorded would be followed by another one for the same
    /// cycles.
    pub fn load_finished(
        &self,
        now: &Baseline,
        date: &str,
    ) -> Result<(ActRecords, Vec<String>), RecordsError> {
        let records = self.load()?;
        let finished = records.unfinished().iter().map(|entry| entry.date.clone()).collect();
        replace(&records.finish(now, date)?)?;
        Ok((ActRecords::load(&self.dir)?, finished))
    }

    /// Records an entry: the text from [`crate::scaffold`], possibly edited below its heading, with the marks of the index
    /// it was started from.
    pub fn record(
        &self,
        records: &ActRecords,
        entry: &str,
        marks: &[CycleMark],
        now: &Baseline,
        date: &str,
    ) -> Result<(), RecordsError> {
        replace(&records.record(entry, marks, now, date)?)
    }

    /// Records resolved signals.
    pub fn resolve(
        &self,
        records: &ActRecords,
        resolved: &[Resolution],
    ) -> Result<(), RecordsError> {
        replace(&[records.resolve(resolved)?])
    }
}

fn replace(steps: &[FileWrite]) -> Result<(), RecordsError> {
    for step in steps {
        files::replace(&step.path, &step.bytes)
            .map_err(|source| RecordsError::Replace { path: step.path.clone(), source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn there_is_one_recorder_at_a_time() {
        let scene = Scene::new();
        let dir = scene.path().join("process");
        let first = Recorder::lock(&dir).unwrap();
        assert!(matches!(Recorder::lock(&dir), Err(RecordsError::Busy { .. })));
        drop(first);
        Recorder::lock(&dir).unwrap();
    }

    #[test]
    fn an_interrupted_record_is_finished_before_another_one() {
        let scene = Scene::new();
        let entry = "# Act review — 2026-11-16 — cycles considered: 36\n";
        scene.write("process/act-log.md", entry);
        let recorder = Recorder::lock(&scene.path().join("process")).unwrap();
        let now = Baseline::default();
        let (records, finished) = recorder.load_finished(&now, "2026-11-17").unwrap();
        assert_eq!(finished, ["2026-11-16"]);
        assert!(records.unfinished().is_empty());
        assert_eq!(recorder.load_finished(&now, "2026-11-17").unwrap().1, [""; 0]);
    }
}
