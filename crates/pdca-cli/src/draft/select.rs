//! Turns an export of the tracker into a profile, buckets and a batch of draft briefs.
//!
//! 1. The export is read whole and checked before anything is written, so that a bad one leaves nothing behind.
//! 2. The batch index is written before the first draft, so that a selection that was killed is finished by the next one.
//! 3. A draft appears with all its files at once, by a rename, so that one that exists is complete and is left alone.

mod batch;
mod draft;
mod explain;
mod output;
mod source;

use std::collections::HashSet;
use std::io::Write;

use camino::Utf8Path;
use pdca_forge::select::{Character, IssueRecord, Pool, Selector};
use pdca_process::Cancel;
use pdca_state::{BundleId, RootError};
use pdca_workspace::config::workspace::Workspace;

use self::batch::DraftBatch;
use self::draft::Drafter;
pub(crate) use self::output::SelectReport;
use self::output::{BatchRef, Draft, DraftState, OutlookRow};
use self::source::IssueSource;
use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::Response;
use crate::session::Interrupts;

/// The most drafts that one call writes unasked.
const MOST: usize = 50;

/// A request for a batch of drafts.
#[derive(Debug, Clone)]
pub(crate) struct SelectRequest<'a> {
    pub(crate) from: Export<'a>,
    /// Ids that must be in the export; otherwise it is the wrong one.
    pub(crate) expect: &'a [IdArg],
    /// The order of the batch.
    pub(crate) character: Option<Character>,
    /// Takes records of these buckets only.
    pub(crate) buckets: &'a [String],
    pub(crate) limit: Option<usize>,
    /// Takes exactly these records.
    pub(crate) only: &'a [IdArg],
    /// The name of the batch; today's date if none is given.
    pub(crate) batch: Option<&'a str>,
    /// Fetches threads.
    pub(crate) notes: bool,
}

/// The place that records are read from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Export<'a> {
    /// A CSV file; `-` is standard input.
    Csv { path: &'a Utf8Path, separator: Option<&'a str> },
    /// The open issues of a repository, through `gh`.
    Gh(&'a str),
    /// The output of `[select] cmd`.
    Configured,
}

/// Reads the export, and writes a draft for each record of the batch.
pub(crate) fn select(
    args: &SelectRequest<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let today: jiff::civil::Date = cx.env.today().parse().map_err(|error: jiff::Error| {
        Failure::unexpected("the clock gives no date").cause(&error)
    })?;
    let ids = |given: &[IdArg]| given.iter().map(IdArg::parse).collect::<Result<Vec<_>, _>>();
    let (expected, only) = (ids(args.expect)?, ids(args.only)?);
    let batch_name = batch::name(args.batch, cx)?;
    let selector = Selector::new(&workspace.config.select, today)
        .map_err(|error| explain::pool(&error, &FilePosition::file("pdca.toml")))?;
    // Standard input is read before signals are caught: until then nothing is written, and Ctrl-C ends it at once.
    let source = IssueSource::open(args.from, cx)?;
    let cancel = Cancel::new();
    let signals = Interrupts::listen(&cancel)?;
    let told = (|| {
        let pool = source.read(&selector, cx, &cancel)?;
        require_expected(&pool, &expected, &source)?;
        source.note_limit(&pool, cx, err)?;
        let work =
            SelectionRun { args, cx, workspace, selector, source, pool, today, cancel: &cancel };
        work.run(&only, &batch_name, err)
    })();
    signals.close();
    told
}

/// Refuses an export without the ids that a person knows to be in the tracker.
fn require_expected(
    pool: &Pool,
    expected: &[BundleId],
    source: &IssueSource,
) -> Result<(), Failure> {
    let missing = pool.missing(expected);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Err(Failure::usage(format!("this is the wrong export: {list} not in it"))
        .at(source.place())
        .detail(format!("it has {} records", pool.records.len()))
        .hint("export all issues, or the right project, and repeat; `--expect` names what must be there"))
}

/// One selection, after the export was read.
struct SelectionRun<'a> {
    args: &'a SelectRequest<'a>,
    cx: &'a Context<'a>,
    workspace: &'a Workspace,
    selector: Selector,
    source: IssueSource,
    pool: Pool,
    today: jiff::civil::Date,
    cancel: &'a Cancel,
}

/// The records of a batch, and those that were passed over.
struct Choice<'p> {
    chosen: Vec<&'p IssueRecord>,
    /// Records outside the batch that have a bundle.
    left_alone: usize,
    /// The choice is a person's to make: so many would become drafts.
    undecided: Option<usize>,
}

impl SelectionRun<'_> {
    fn run(
        &self,
        only: &[BundleId],
        batch_name: &str,
        err: &mut dyn Write,
    ) -> Result<Response, Failure> {
        let writes = !self.cx.globals.dry_run;
        let file = batch::file(self.workspace, batch_name);
        let mut batch = DraftBatch::load(file, batch_name)?;
        let mut there = Existing::list(self.workspace)?;
        let mut choice = self.choose(only, &batch, &there)?;
        // A call that writes nothing locks nothing and makes no directory.
        let is_due = writes && choice.undecided.is_none() && !choice.chosen.is_empty();
        // One selection at a time, or two would each replace the other's index.
        let _alone = if is_due { Some(batch::lock(&batch.file)?) } else { None };
        if is_due {
            // What was chosen before the lock may have been written by another since.
            batch = DraftBatch::load(batch.file, batch_name)?;
            there = Existing::list(self.workspace)?;
            choice = self.choose(only, &batch, &there)?;
        }
        let mut report = self.report(&choice, &batch);
        if let Some(count) = choice.undecided {
            let failure = Failure::usage(format!("{count} records would become drafts"))
                .hint("choose with `--limit 12`, `--only IDS` or `--bucket NAME`");
            return Ok(Response::done(report).failed(failure));
        }
        let new: Vec<&IssueRecord> =
            choice.chosen.iter().filter(|record| !there.has(&record.id)).copied().collect();
        // Before anything is written: an id that cannot be told from another must not leave half a batch.
        self.workspace.require_each_distinct(new.iter().map(|record| &record.id))?;
        let notes_apply = self.args.notes;
        let mut drafter = Drafter::new(self, notes_apply, &new)?;
        // Before the first draft: the next call finds the batch here and writes what is missing of it.
        if writes && choice.chosen.iter().any(|record| !batch.index.contains(&record.id)) {
            batch.put(&choice.chosen, &self.pool, &self.source.name(), self.today);
            batch.write()?;
        }
        let mut failure = None;
        for record in &choice.chosen {
            let mut row = Draft::of(record, &self.pool, self.workspace, self.today);
            if there.has(&record.id) {
                row.state = DraftState::LeftAlone;
            } else if failure.is_some() {
                row.state = DraftState::NotWritten;
            } else {
                match drafter.draft(record, writes) {
                    Ok(made) => {
                        row.state =
                            if writes { DraftState::Written } else { DraftState::WouldWrite };
                        (row.notes, row.swept) = (made.notes, made.swept);
                    }
                    Err(why) => {
                        row.state = DraftState::NotWritten;
                        failure = Some(why);
                    }
                }
            }
            report.drafts.push(row);
        }
        if let Some(dates) = &self.pool.unread_dates {
            let text = format!(
                "{} dates cannot be read, such as `{}` in line {}; their age is unknown ([select] dates)",
                dates.count,
                crate::style::one_line(&dates.first, 40),
                dates.line
            );
            self.cx.note(err, &format!("{} {text}", self.cx.err.warn("warning:")))?;
        }
        let exit = if new.is_empty() { Exit::NothingToDo } else { Exit::Done };
        Ok(Response::new(report, exit).failed(failure))
    }

    /// Chooses the records of the batch: those that its index lists, and as many further ones as there is room for.
    fn choose(
        &self,
        only: &[BundleId],
        batch: &DraftBatch,
        there: &Existing,
    ) -> Result<Choice<'_>, Failure> {
        if !only.is_empty() {
            let missing = self.pool.missing(only);
            if !missing.is_empty() {
                let list = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                return Err(Failure::usage(format!("{list} not in the export"))
                    .at(self.source.place())
                    .hint("`--only` takes ids of records; `--dry-run` shows what there is"));
            }
            let chosen = only.iter().filter_map(|id| self.pool.get(id)).collect();
            return Ok(Choice { chosen, left_alone: 0, undecided: None });
        }
        let tallies = self.pool.tallies();
        for name in self.args.buckets {
            if !tallies.iter().any(|tally| tally.name.eq_ignore_ascii_case(name)) {
                let known: Vec<&str> = tallies.iter().map(|tally| tally.name.as_str()).collect();
                return Err(Failure::usage(format!("there is no bucket `{name}`"))
                    .hint(format!("the buckets are {}", known.join(", "))));
            }
        }
        let is_wanted = |record: &&IssueRecord| {
            let name = &self.pool.bucket_of(record).name;
            let buckets = self.args.buckets;
            buckets.is_empty() || buckets.iter().any(|one| one.eq_ignore_ascii_case(name))
        };
        let ordered = self.pool.order(self.args.character);
        let (listed, others): (Vec<&IssueRecord>, Vec<&IssueRecord>) = ordered
            .into_iter()
            .filter(is_wanted)
            .partition(|record| batch.index.contains(&record.id));
        let (known, fresh): (Vec<&IssueRecord>, Vec<&IssueRecord>) =
            others.into_iter().partition(|record| there.has(&record.id));
        // The limit is that of the batch, not of the call. Repeating a call must not add further records.
        let room = match self.args.limit {
            Some(limit) => limit.saturating_sub(batch.index.rows.len()),
            None => usize::MAX,
        };
        let undecided = (self.args.limit.is_none() && fresh.len() > MOST).then_some(fresh.len());
        let chosen = listed.into_iter().chain(fresh.into_iter().take(room)).collect();
        Ok(Choice { chosen, left_alone: known.len(), undecided })
    }

    fn report(&self, choice: &Choice<'_>, batch: &DraftBatch) -> SelectReport {
        let chosen = if choice.undecided.is_some() { &[][..] } else { &choice.chosen[..] };
        let outlook = self.pool.outlook(chosen, self.today);
        SelectReport {
            dry_run: self.cx.globals.dry_run,
            source: self.source.name(),
            records: self.pool.records.len(),
            absent: self.pool.absent.iter().map(|field| field.as_str()).collect(),
            profile: self.pool.profile(self.today).into(),
            buckets: self.pool.tallies().iter().map(Into::into).collect(),
            character: self.args.character.map(|character| match character {
                Character::Fix => "fix",
                Character::Hygiene => "hygiene",
            }),
            outlook: OutlookRow::of(&outlook),
            batch: BatchRef { name: batch.name.clone(), file: batch.file.clone() },
            drafts: Vec::new(),
            left_alone: choice.left_alone,
        }
    }
}

/// The bundles that exist, completed ones included.
struct Existing(HashSet<BundleId>);

impl Existing {
    fn list(workspace: &Workspace) -> Result<Self, Failure> {
        let root = &workspace.bundle_root;
        let mut bundles = match root.list() {
            Err(RootError::Missing { .. }) => Vec::new(),
            listed => listed?,
        };
        if !bundles.is_empty() || root.path().exists() {
            bundles.extend(root.list_completed()?);
        }
        Ok(Self(bundles.iter().map(|bundle| bundle.id().clone()).collect()))
    }

    fn has(&self, id: &BundleId) -> bool {
        self.0.contains(id)
    }
}
