//! The three files of a review, and the order in which one is recorded. [`crate::Recorder`] writes them.
//!
//! 1. The log is replaced first. A cycle counts as reviewed as soon as the log names it, so a crash after this step
//!    does not lead to a second review.
//! 2. The ledger is replaced.
//! 3. The list of reviewed bundles is replaced last. A review that is in the log but not in the list was interrupted;
//!    `unfinished` finds it and `finish` completes it.

use std::collections::BTreeSet;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::BundleId;
use pdca_state::files::{FileReadError, read_bounded};

use crate::baseline::Baseline;
use crate::cycle::Cycle;
use crate::ledger::{Ledger, LedgerError, LedgerReview, Resolution};
use crate::log::{ActLog, LogEntry, append};
use crate::mark::CycleMark;
use crate::reviewed::ReviewedCycles;

/// The log of reviews.
pub const LOG: &str = "act-log.md";
/// The state of the process at each review.
pub const LEDGER: &str = "act-ledger.json";
/// The bundles that were reviewed.
pub const REVIEWED: &str = ".act-reviewed";

const MAX_LEN: u64 = 64 << 20;

/// Returns true if a file of the process directory is one of the three.
pub(crate) fn is_ours(file: &str) -> bool {
    [LOG, LEDGER, REVIEWED].contains(&file)
}

/// The three files, parsed.
#[derive(Debug, Default)]
pub struct ActRecords {
    dir: Utf8PathBuf,
    log_bytes: Option<Vec<u8>>,
    pub log: ActLog,
    pub reviewed: ReviewedCycles,
    pub ledger: Ledger,
    /// The reviews of the ledger, read once.
    reviews: Vec<LedgerReview>,
    /// The reason why the ledger cannot be read. It then counts as empty, and nothing may be recorded.
    pub ledger_error: Option<LedgerError>,
}

/// The reasons why the records cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error(transparent)]
    Read(#[from] FileReadError),
    /// The ledger is invalid, and writing it would lose its content.
    #[error("{path} is not a ledger")]
    Ledger { path: Utf8PathBuf, source: LedgerError },
    #[error("the review cannot be written")]
    Encode(#[from] serde_json::Error),
    /// Another process holds the lock of the directory.
    #[error("another process is recording a review right now")]
    Busy { dir: Utf8PathBuf },
    #[error("{dir} cannot be locked")]
    Lock { dir: Utf8PathBuf, source: io::Error },
    /// A file cannot be replaced. Those before it in the order of recording were.
    #[error("{path} cannot be written")]
    Replace { path: Utf8PathBuf, source: io::Error },
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileWrite {
    pub(crate) path: Utf8PathBuf,
    pub(crate) bytes: Vec<u8>,
}

impl ActRecords {
    /// Loads the records of the process directory; missing files count as empty.
    pub fn load(dir: &Utf8Path) -> Result<Self, RecordsError> {
        let read = |name: &str| read_bounded(dir.join(name), MAX_LEN);
        let log_bytes = read(LOG)?;
        let (ledger, ledger_error) = match Ledger::parse(&read(LEDGER)?.unwrap_or_default()) {
            Ok(ledger) => (ledger, None),
            Err(error) => (Ledger::default(), Some(error)),
        };
        Ok(Self {
            dir: dir.to_owned(),
            log: ActLog::parse(log_bytes.as_deref().unwrap_or_default()),
            log_bytes,
            reviewed: ReviewedCycles::parse(&read(REVIEWED)?.unwrap_or_default()),
            reviews: ledger.reviews(),
            ledger,
            ledger_error,
        })
    }

    /// Returns every bundle that a review considered, according to the log or the list.
    pub fn covered(&self) -> BTreeSet<BundleId> {
        let logged = self.log.entries.iter().flat_map(|entry| &entry.cycles);
        logged.chain(self.reviewed.ids()).cloned().collect()
    }

    /// Returns whether a review considered this cycle.
    pub(crate) fn has_considered_cycle(&self, cycle: &Cycle) -> bool {
        self.has_considered(&cycle.id, &cycle.mark, &cycle.signoff.date, cycle.iterations)
    }

    /// Returns whether a review considered this end of a bundle, which was signed at `date` after so many archived attempts.
    ///
    /// The ledger has the mark of each cycle. An entry of the log without such a review is of a person or of an earlier
    /// version: it considered the bundle, unless that was sent back and signed again at a later date. The list has ids
    /// alone, so it decides only where no entry names the bundle.
    pub(crate) fn has_considered(
        &self,
        id: &BundleId,
        mark: &CycleMark,
        date: &str,
        iterations: u32,
    ) -> bool {
        let reviews = &self.reviews;
        let of_it = |marks: bool| {
            let is_of_it = move |review: &&LedgerReview| {
                review.cycles.contains(id) && review.marks.is_empty() != marks
            };
            reviews.iter().filter(is_of_it)
        };
        if of_it(true).any(|review| review.marks.contains(mark)) {
            return true;
        }
        let entries: Vec<&LogEntry> =
            self.log.entries.iter().filter(|entry| entry.cycles.contains(id)).collect();
        // Those of a person, of an earlier version, or of a record that was interrupted.
        let unmarked = entries.len().saturating_sub(of_it(true).count());
        let is_later = |entry: &&LogEntry| {
            let are_dates = is_date(date) && is_date(&entry.date);
            iterations > 0 && are_dates && date > entry.date.as_str()
        };
        let is_unnamed = entries.is_empty() && self.reviewed.ids().contains(id);
        is_unnamed || (unmarked > 0 && !entries.iter().all(is_later))
    }

    /// Returns the reviews in the log whose recording was interrupted.
    pub(crate) fn unfinished(&self) -> Vec<&LogEntry> {
        let is_listed = |id: &BundleId| self.reviewed.ids().contains(id);
        let entries = self.log.entries.iter();
        entries.filter(|entry| !entry.cycles.iter().all(is_listed)).collect()
    }

    /// Returns the steps that complete interrupted reviews, if there are any.
    ///
    /// If the ledger lacks a review, the baseline of that time is lost; the current one is recorded and marked
    /// as late.
    pub(crate) fn finish(
        &self,
        baseline: &Baseline,
        date: &str,
    ) -> Result<Vec<FileWrite>, RecordsError> {
        let unfinished = self.unfinished();
        if unfinished.is_empty() {
            return Ok(Vec::new());
        }
        let missing = unfinished.iter().filter(|entry| !self.ledger.has(&entry.heading));
        let reviews: Vec<LedgerReview> = missing
            .map(|entry| LedgerReview { late: true, ..review(entry, &[], baseline) })
            .collect();
        let ids = unfinished.iter().flat_map(|entry| &entry.cycles);
        self.last_steps(&reviews, &self.reviewed.with(ids, date))
    }

    /// Returns the steps that record a new entry, in order. `entry` is the text from [`crate::scaffold`],
    /// possibly edited below its heading, and `marks` are those of the index it was started from.
    pub(crate) fn record(
        &self,
        entry: &str,
        marks: &[CycleMark],
        baseline: &Baseline,
        date: &str,
    ) -> Result<Vec<FileWrite>, RecordsError> {
        let added = ActLog::parse(entry.as_bytes()).entries;
        let reviews: Vec<LedgerReview> =
            added.iter().map(|entry| review(entry, marks, baseline)).collect();
        let ids = added.iter().flat_map(|entry| &entry.cycles);
        let mut steps = vec![FileWrite {
            path: self.dir.join(LOG),
            bytes: append(self.log_bytes.as_deref(), entry),
        }];
        steps.extend(self.last_steps(&reviews, &self.reviewed.with(ids, date))?);
        Ok(steps)
    }

    /// Returns the step that records resolved signals.
    pub(crate) fn resolve(&self, resolved: &[Resolution]) -> Result<FileWrite, RecordsError> {
        Ok(FileWrite { path: self.dir.join(LEDGER), bytes: self.ledger.with_resolved(resolved)? })
    }

    fn last_steps(
        &self,
        reviews: &[LedgerReview],
        reviewed: &[u8],
    ) -> Result<Vec<FileWrite>, RecordsError> {
        let ledger = FileWrite { path: self.dir.join(LEDGER), bytes: self.ledger.with(reviews)? };
        let reviewed = FileWrite { path: self.dir.join(REVIEWED), bytes: reviewed.to_vec() };
        Ok(if reviews.is_empty() { vec![reviewed] } else { vec![ledger, reviewed] })
    }

    /// Fails if recording would lose the content of the ledger.
    pub(crate) fn require_writable(self) -> Result<Self, RecordsError> {
        match self.ledger_error {
            Some(source) => Err(RecordsError::Ledger { path: self.dir.join(LEDGER), source }),
            None => Ok(self),
        }
    }
}

/// Returns whether a text looks like `2026-11-16`, so that it compares as text.
fn is_date(text: &str) -> bool {
    let is_part = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(is_part)
}

fn review(entry: &LogEntry, marks: &[CycleMark], baseline: &Baseline) -> LedgerReview {
    LedgerReview {
        review: entry.heading.clone(),
        date: entry.date.clone(),
        cycles: entry.cycles.clone(),
        baseline: baseline.clone(),
        late: false,
        marks: marks.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    const ENTRY: &str =
        "# Act review — 2026-11-16 — cycles considered: 36, 41\n\n## Process deltas\n";

    fn baseline(digest: &str) -> Baseline {
        [("process/rules.md".to_owned(), digest.to_owned())].into_iter().collect()
    }

    fn load(scene: &Scene) -> ActRecords {
        ActRecords::load(&scene.path().join("process")).unwrap()
    }

    fn apply(steps: &[FileWrite]) {
        for step in steps {
            fs_err::create_dir_all(step.path.parent().unwrap()).unwrap();
            fs_err::write(&step.path, &step.bytes).unwrap();
        }
    }

    #[test]
    fn a_crash_after_any_step_loses_and_duplicates_nothing() {
        for done in 0..=3 {
            let scene = Scene::new();
            let steps = load(&scene).record(ENTRY, &[], &baseline("then"), "2026-11-16").unwrap();
            assert_eq!(steps.len(), 3);
            apply(&steps[..done]);
            let records = load(&scene);
            let covered = records.covered().len();
            assert_eq!(covered, if done == 0 { 0 } else { 2 }, "after {done}");
            assert_eq!(
                records.unfinished().len(),
                usize::from(done == 1 || done == 2),
                "after {done}"
            );
            apply(&records.finish(&baseline("later"), "2026-11-17").unwrap());
            let records = load(&scene);
            assert_eq!(records.finish(&baseline("later"), "2026-11-17").unwrap(), []);
            let entries = usize::from(done > 0);
            assert_eq!(
                (records.log.entries.len(), records.ledger.reviews().len()),
                (entries, entries),
                "after {done}"
            );
            assert_eq!(records.reviewed.ids().len(), 2 * entries);
            let late: Vec<bool> =
                records.ledger.reviews().iter().map(|review| review.late).collect();
            assert_eq!(
                late,
                vec![done == 1; entries],
                "only where the ledger had no baseline of that moment"
            );
        }
    }

    #[test]
    fn a_ledger_that_is_none_is_read_as_empty_and_never_written() {
        let scene = Scene::new();
        scene.write("process/act-ledger.json", "{\"mine\": 1}");
        let records = load(&scene);
        assert!(records.ledger.reviews().is_empty());
        assert!(matches!(records.require_writable(), Err(RecordsError::Ledger { .. })));
    }

    #[test]
    fn a_log_that_is_a_directory_is_an_error() {
        let scene = Scene::new();
        scene.write("process/act-log.md/x", "");
        assert!(matches!(
            ActRecords::load(&scene.path().join("process")),
            Err(RecordsError::Read(_))
        ));
    }
}
