//! Turns an export of the tracker into a profile, buckets and a batch of draft briefs.
//!
//! 1. [`open_export`] opens the export; an input that can be read once only is copied.
//! 2. [`OpenedExport::read`] reads it whole and checks it before anything is written, so that a bad one leaves nothing
//!    behind.
//! 3. [`IssueExport::write_drafts`] writes the batch index before the first draft, so that a selection that was killed is
//!    finished by the next one. A draft appears with all its files at once, by a rename, so that one that exists is
//!    complete and is left alone.

mod batch;
mod draft;
mod error;
mod source;

use std::collections::HashSet;

use camino::Utf8PathBuf;
use jiff::civil::Date;
use pdca_forge::select::{
    BucketCount, Character, IssueField, IssueRecord, Outlook, Pool, Profile, Selector, UnreadDates,
};
use pdca_process::Cancel;
use pdca_state::{Artifact, BundleId};
use serde::Serialize;

use self::batch::DraftBatch;
use self::draft::Drafter;
pub use self::error::SelectError;
pub use self::source::ExportSource;
use self::source::{IssueSource, MOST_ISSUES};
use crate::config::FilePosition;
use crate::config::workspace::Workspace;
use crate::{OpenWorkspace, OperationError};

/// The most drafts that one call writes unasked.
const MOST: usize = 50;

/// A request for a batch of drafts.
#[derive(Debug, Clone, Copy)]
pub struct DraftRequest<'a> {
    /// The order of the batch.
    pub character: Option<Character>,
    /// Takes records of these buckets only.
    pub buckets: &'a [String],
    pub limit: Option<usize>,
    /// Takes exactly these records.
    pub only: &'a [BundleId],
    /// Fetches threads.
    pub notes: bool,
}

/// The profile of an export, and the drafts of a batch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Selection {
    pub dry_run: bool,
    /// The export, as it is named to people.
    pub source: String,
    /// The number of records.
    pub records: usize,
    /// The fields that the export has no column for.
    pub absent: Vec<IssueField>,
    pub profile: Profile,
    /// In the order they are asked; the counts add up to `records`.
    pub buckets: Vec<BucketCount>,
    /// `fix`, `hygiene` or null.
    pub character: Option<Character>,
    pub outlook: Outlook,
    pub batch: DraftBatchRef,
    /// The bundles of the batch, in its order.
    pub drafts: Vec<DraftedIssue>,
    /// The number of records outside the batch that have a bundle already.
    pub left_alone: usize,
    /// The dates that cannot be read.
    #[serde(skip)]
    pub unread_dates: Option<UnreadDates>,
    /// The error that ended the selection before its last draft.
    #[serde(skip)]
    pub failure: Option<OperationError>,
}

/// The name of a batch and the file with its index.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DraftBatchRef {
    pub name: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
}

/// A record of the batch and its draft.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DraftedIssue {
    pub id: BundleId,
    pub title: String,
    pub bucket: String,
    pub severity: String,
    /// In days, or null.
    pub age: Option<i64>,
    /// The line of the export its record starts on.
    pub line: u64,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    pub state: DraftState,
    /// It has a `notes.json`.
    pub notes: bool,
    /// The default of the template that was taken out because it is stale, and why; or null.
    pub swept: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DraftState {
    Written,
    WouldWrite,
    /// There is a bundle of this id.
    LeftAlone,
    /// The selection failed before it.
    NotWritten,
}

/// An export that is open and not read yet.
#[derive(Debug)]
pub struct OpenedExport<'a> {
    open: &'a OpenWorkspace<'a>,
    selector: Selector,
    source: IssueSource,
    today: Date,
    batch: DraftBatchRef,
}

/// The records of an export.
#[derive(Debug)]
pub struct IssueExport<'a> {
    opened: OpenedExport<'a>,
    pool: Pool,
}

/// Opens an export for a batch; its name is today's date if none is given.
pub fn open_export<'a>(
    open: &'a OpenWorkspace<'a>,
    source: ExportSource<'_>,
    batch_name: Option<&str>,
) -> Result<OpenedExport<'a>, OperationError> {
    let workspace = open.workspace;
    let today = open.today();
    let name = batch::name(batch_name, today)?;
    let batch = DraftBatchRef { file: batch::file(workspace, &name), name };
    let selector =
        Selector::new(&workspace.config.select, today).map_err(|error| SelectError::Pool {
            place: FilePosition::file(crate::config::workspace::FILE),
            source: Box::new(error),
        })?;
    let source = IssueSource::open(source, open)?;
    Ok(OpenedExport { open, selector, source, today, batch })
}

impl<'a> OpenedExport<'a> {
    /// Reads every record. `expected` are ids that a person knows to be in the tracker: an export without one of them is
    /// the wrong one.
    pub fn read(
        self,
        expected: &[BundleId],
        cancel: &Cancel,
    ) -> Result<IssueExport<'a>, OperationError> {
        let pool = self.source.read(&self.selector, self.open.workspace, cancel)?;
        let missing = pool.missing(expected);
        if missing.is_empty() {
            return Ok(IssueExport { opened: self, pool });
        }
        let (place, records) = (self.source.place(), pool.records.len());
        Err(SelectError::WrongExport { missing, records, place }.into())
    }
}

/// The records of a batch, and those that were passed over.
struct Choice<'p> {
    chosen: Vec<&'p IssueRecord>,
    /// Records outside the batch that have a bundle.
    left_alone: usize,
    /// The choice is a person's to make: so many would become drafts.
    undecided: Option<usize>,
}

impl IssueExport<'_> {
    /// Returns the limit of a forge's answer, if the export reached it: only the newest issues were read.
    pub fn limit_reached(&self) -> Option<u32> {
        let is_cut = u32::try_from(self.pool.records.len()).is_ok_and(|count| count >= MOST_ISSUES);
        (matches!(self.opened.source, IssueSource::Gh { .. }) && is_cut).then_some(MOST_ISSUES)
    }

    /// Writes a draft for each record of the batch.
    pub fn write_drafts(
        &self,
        request: DraftRequest<'_>,
        cancel: &Cancel,
    ) -> Result<Selection, OperationError> {
        let OpenedExport { open, source, today, .. } = &self.opened;
        let workspace = open.workspace;
        let writes = !open.dry_run;
        let mut batch = DraftBatch::load(&self.opened.batch)?;
        let mut existing = existing(workspace)?;
        let mut choice = self.choose(request, &batch, &existing)?;
        // A call that writes nothing locks nothing and makes no directory.
        let is_due = writes && choice.undecided.is_none() && !choice.chosen.is_empty();
        // One selection at a time, or two would each replace the other's index.
        let _alone = if is_due { Some(batch::lock(&batch.file)?) } else { None };
        if is_due {
            // Another process may have written some of the chosen before the lock was taken.
            batch = DraftBatch::load(&self.opened.batch)?;
            existing = self::existing(workspace)?;
            choice = self.choose(request, &batch, &existing)?;
        }
        let mut selection = self.selection(request, &choice);
        if let Some(count) = choice.undecided {
            selection.failure = Some(SelectError::Undecided { count }.into());
            return Ok(selection);
        }
        let new: Vec<&IssueRecord> =
            choice.chosen.iter().filter(|record| !existing.contains(&record.id)).copied().collect();
        // Before anything is written: an id that cannot be told from another must not leave half a batch.
        workspace.require_each_distinct(new.iter().map(|record| &record.id))?;
        let mut drafter = Drafter::new(&self.opened, &self.pool, request.notes, cancel, &new)?;
        // Before the first draft: the next call finds the batch here and writes what is missing of it.
        if writes && choice.chosen.iter().any(|record| !batch.index.contains(&record.id)) {
            batch.put(&choice.chosen, &self.pool, &source.name(), *today);
            batch.write()?;
        }
        for record in &choice.chosen {
            let mut row = self.drafted(record);
            if existing.contains(&record.id) {
                row.state = DraftState::LeftAlone;
            } else if selection.failure.is_none() {
                match drafter.draft(record, writes) {
                    Ok(made) => {
                        row.state =
                            if writes { DraftState::Written } else { DraftState::WouldWrite };
                        (row.notes, row.swept) = (made.notes, made.swept);
                    }
                    Err(error) => selection.failure = Some(error),
                }
            }
            selection.drafts.push(row);
        }
        selection.unread_dates.clone_from(&self.pool.unread_dates);
        Ok(selection)
    }

    /// Chooses the records of the batch: those that its index lists, and as many further ones as there is room for.
    fn choose(
        &self,
        request: DraftRequest<'_>,
        batch: &DraftBatch,
        existing: &HashSet<BundleId>,
    ) -> Result<Choice<'_>, SelectError> {
        if !request.only.is_empty() {
            let missing = self.pool.missing(request.only);
            if !missing.is_empty() {
                return Err(SelectError::NotInExport {
                    missing,
                    place: self.opened.source.place(),
                });
            }
            let chosen = request.only.iter().filter_map(|id| self.pool.get(id)).collect();
            return Ok(Choice { chosen, left_alone: 0, undecided: None });
        }
        let tallies = self.pool.tallies();
        for name in request.buckets {
            if !tallies.iter().any(|tally| tally.name.eq_ignore_ascii_case(name)) {
                let known = tallies.iter().map(|tally| tally.name.clone()).collect();
                return Err(SelectError::NoBucket { name: name.clone(), known });
            }
        }
        let is_wanted = |record: &&IssueRecord| {
            let name = &self.pool.bucket_of(record).name;
            let buckets = request.buckets;
            buckets.is_empty() || buckets.iter().any(|one| one.eq_ignore_ascii_case(name))
        };
        let ordered = self.pool.order(request.character);
        let (listed, others): (Vec<&IssueRecord>, Vec<&IssueRecord>) = ordered
            .into_iter()
            .filter(is_wanted)
            .partition(|record| batch.index.contains(&record.id));
        let (known, fresh): (Vec<&IssueRecord>, Vec<&IssueRecord>) =
            others.into_iter().partition(|record| existing.contains(&record.id));
        // The limit is that of the batch, not of the call. Repeating a call must not add further records.
        let room = match request.limit {
            Some(limit) => limit.saturating_sub(batch.index.rows.len()),
            None => usize::MAX,
        };
        let undecided = (request.limit.is_none() && fresh.len() > MOST).then_some(fresh.len());
        let chosen = listed.into_iter().chain(fresh.into_iter().take(room)).collect();
        Ok(Choice { chosen, left_alone: known.len(), undecided })
    }

    fn selection(&self, request: DraftRequest<'_>, choice: &Choice<'_>) -> Selection {
        let chosen = if choice.undecided.is_some() { &[][..] } else { &choice.chosen[..] };
        let today = self.opened.today;
        Selection {
            dry_run: self.opened.open.dry_run,
            source: self.opened.source.name(),
            records: self.pool.records.len(),
            absent: self.pool.absent.clone(),
            profile: self.pool.profile(today),
            buckets: self.pool.tallies().to_vec(),
            character: request.character,
            outlook: self.pool.outlook(chosen, today),
            batch: self.opened.batch.clone(),
            drafts: Vec::new(),
            left_alone: choice.left_alone,
            unread_dates: None,
            failure: None,
        }
    }

    /// Returns a record of the batch whose draft is not written yet.
    fn drafted(&self, record: &IssueRecord) -> DraftedIssue {
        let root = &self.opened.open.workspace.bundle_root;
        DraftedIssue {
            id: record.id.clone(),
            title: record.title.to_string(),
            bucket: self.pool.bucket_of(record).name.clone(),
            severity: record.severity.to_string(),
            age: record.age(self.opened.today),
            line: record.line,
            file: root.bundle(&record.id).path(Artifact::Brief),
            state: DraftState::NotWritten,
            notes: false,
            swept: None,
        }
    }
}

/// Returns the ids of the bundles that exist, completed ones included.
fn existing(workspace: &Workspace) -> Result<HashSet<BundleId>, OperationError> {
    Ok(workspace.every_bundle()?.iter().map(|bundle| bundle.id().clone()).collect())
}
