//! An entry of the Act log, filled in by the act leaf and recorded by a person.
//!
//! 1. The leaf gets the index, the started entry and the log; its text is checked and kept as a draft. A crash after this
//!    costs no second call.
//! 2. The person reads the draft, and may edit it.
//! 3. It is recorded as [`super::act_entry`] does, under a heading of our own, and the draft is removed.

use camino::Utf8PathBuf;
use pdca_act::{ActRecords, Baseline, Index, IndexScope, LOG, Recorder, adopt};
use pdca_driver::Driver;
use pdca_leaves::Role;
use pdca_state::{Bundle, BundleId, files};
use serde::Serialize;

use super::{ActError, DraftError, baseline, date, entry};
use crate::config::require_leaf;
use crate::{OpenWorkspace, OperationError};

/// The most of the log that the leaf gets, from its end.
const MAX_LOG: usize = 256 << 10;
const MAX_LOG_FILE: u64 = 64 << 20;
const MAX_DRAFT: u64 = 4 << 20;

/// An entry that the act leaf filled in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewedEntry {
    pub date: String,
    pub cycles: Vec<BundleId>,
    pub entry: String,
    pub recorded: bool,
    /// True if the entry is a draft of an earlier call.
    pub reused: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub draft: Utf8PathBuf,
}

/// A review under way: the lock, the records, and the entry as it is started.
#[derive(Debug)]
pub struct ActReview<'a> {
    open: &'a OpenWorkspace<'a>,
    /// Also held during the call of the leaf: a second review would pay for an entry about the same cycles. A dry run has
    /// none.
    recorder: Option<Recorder>,
    /// The parts of the process that cannot be read.
    pub problems: Vec<String>,
    /// Dates of interrupted reviews that were finished.
    pub finished: Vec<String>,
    /// The cycles since the last review. Without one there is nothing to do.
    pub cycles: Vec<BundleId>,
    date: String,
    now: Baseline,
    records: ActRecords,
    bundles: Vec<Bundle>,
    index: Index,
    started: String,
}

/// A draft of an entry.
#[derive(Debug)]
pub struct EntryDraft {
    path: Utf8PathBuf,
    text: String,
    reused: bool,
}

/// Begins a review: locks the log, finishes interrupted records, and starts an entry. The date is today if none is given.
pub fn begin_review<'a>(
    open: &'a OpenWorkspace<'a>,
    given_date: Option<&str>,
) -> Result<ActReview<'a>, OperationError> {
    let workspace = open.workspace;
    let dir = &workspace.process_dir;
    let date = date(given_date, open)?;
    let recorder = if open.dry_run { None } else { Some(Recorder::lock(dir)?) };
    let (now, problems) = baseline(workspace);
    let (records, finished) = match &recorder {
        Some(recorder) => recorder.load_finished(&now, &date)?,
        None => (ActRecords::load(dir)?, Vec::new()),
    };
    let bundles = workspace.every_bundle()?;
    let index = pdca_act::index(&bundles, &records, IndexScope::SinceLastReview);
    let cycles: Vec<BundleId> = index.cycles.iter().map(|cycle| cycle.id.clone()).collect();
    let started = entry::started(workspace, &index, &date);
    let bundles = bundles.into_iter().filter(|bundle| cycles.contains(bundle.id())).collect();
    Ok(ActReview {
        open,
        recorder,
        problems,
        finished,
        cycles,
        date,
        now,
        records,
        bundles,
        index,
        started,
    })
}

impl ActReview<'_> {
    fn draft_path(&self) -> Result<Utf8PathBuf, OperationError> {
        Ok(self.open.driver_config()?.dirs.private().join("act-entry.md"))
    }

    fn heading(&self) -> &str {
        self.started.lines().next().unwrap_or_default()
    }

    /// Returns a draft of an earlier call that is about exactly these cycles.
    pub fn kept_draft(&self) -> Result<Option<EntryDraft>, OperationError> {
        let path = self.draft_path()?;
        let Some(bytes) = files::read_bounded(&path, MAX_DRAFT)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let entries = pdca_act::ActLog::parse(&bytes).entries;
        let is_about_these = entries.first().is_some_and(|entry| entry.cycles == self.cycles);
        Ok(is_about_these.then_some(EntryDraft { path, text, reused: true }))
    }

    /// Returns an error if the act leaf cannot be called.
    pub fn require_leaf(&self) -> Result<(), OperationError> {
        let open = self.open;
        Ok(require_leaf(open.workspace, Role::Act, open.environment, open.machine.has_terminal)?)
    }

    /// Calls the act leaf, and keeps its text as the draft.
    pub fn write_draft(&self, driver: &Driver<'_>) -> Result<EntryDraft, OperationError> {
        let log = self.open.workspace.process_dir.join(LOG);
        let log = files::read_bounded(log, MAX_LOG_FILE)?.unwrap_or_default();
        let inputs = leaf_inputs(&self.index, &self.started, &log)?;
        let written =
            pdca_driver::review_cycles(driver, &self.bundles, inputs).map_err(ActError::Leaf)?;
        // The heading says which cycles the draft is about, also of a draft that is not valid yet.
        let text = format!("{}\n{}", self.heading(), String::from_utf8_lossy(&written));
        let path = self.draft_path()?;
        files::replace(&path, text.as_bytes())?;
        Ok(EntryDraft { path, text, reused: false })
    }

    /// Returns the entry that the draft makes.
    ///
    /// It is under a heading of our own: no text of a model opens an entry, hides one, or names cycles for it.
    pub fn entry_of(&self, draft: &EntryDraft) -> Result<String, OperationError> {
        let invalid = |source| ActError::Draft(DraftError { path: draft.path.clone(), source });
        Ok(adopt(&draft.text, self.heading()).map_err(invalid)?)
    }

    /// Ends the review. The entry is recorded if a person `agreed`, and remains a draft otherwise or in a dry run.
    pub fn finish(
        self,
        draft: EntryDraft,
        entry: String,
        agreed: bool,
    ) -> Result<ReviewedEntry, OperationError> {
        let recorder = self.recorder.filter(|_| agreed);
        if let Some(recorder) = &recorder {
            recorder.record(&self.records, &entry, &self.index.marks(), &self.now, &self.date)?;
            // After the record. A draft that a crash leaves here is about cycles that are no longer due, and
            // `kept_draft` passes over it.
            fs_err::remove_file(&draft.path)?;
        }
        Ok(ReviewedEntry {
            date: self.date,
            cycles: self.cycles,
            entry,
            recorded: recorder.is_some(),
            reused: draft.reused,
            draft: draft.path,
        })
    }
}

/// Returns the files that the leaf sees.
fn leaf_inputs(
    index: &Index,
    started: &str,
    log: &[u8],
) -> Result<Vec<(Utf8PathBuf, Vec<u8>)>, OperationError> {
    let json = serde_json::to_vec_pretty(index).map_err(std::io::Error::from)?;
    let tail = log.len().saturating_sub(MAX_LOG);
    Ok(vec![
        ("index.json".into(), json),
        ("entry-started.md".into(), started.as_bytes().to_vec()),
        (LOG.into(), log[tail..].to_vec()),
    ])
}
