//! The report of a selection: profile, buckets, drafts.

use std::io::Write;

use camino::Utf8PathBuf;
use jiff::civil::Date;
use pdca_forge::select::{BucketCount, IssueRecord, Outlook, Pool, Profile, ValueCount};
use pdca_state::{Artifact, BundleId};
use pdca_workspace::config::workspace::Workspace;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::one_line;

/// The most values of one table that people are shown.
const MOST_VALUES: usize = 8;
/// The widths of a table: the value, its count and the longest bar fit into 80 columns.
const VALUE: usize = 24;
const COUNT: usize = 8;
const BAR: usize = 40;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SelectReport {
    pub(super) dry_run: bool,
    /// The export, as it is named to people.
    pub(super) source: String,
    /// The number of records.
    pub(super) records: usize,
    /// The fields that the export has no column for.
    pub(super) absent: Vec<&'static str>,
    pub(super) profile: ProfileRows,
    /// In the order they are asked; the counts add up to `records`.
    pub(super) buckets: Vec<BucketRow>,
    /// `fix`, `hygiene` or null.
    pub(super) character: Option<&'static str>,
    pub(super) outlook: OutlookRow,
    pub(super) batch: BatchRef,
    /// The bundles of the batch, in its order.
    pub(super) drafts: Vec<Draft>,
    /// The number of records outside the batch that have a bundle already.
    pub(super) left_alone: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ProfileRows {
    status: Vec<CountRow>,
    severity: Vec<CountRow>,
    component: Vec<CountRow>,
    age: Vec<CountRow>,
}

/// A value and the number of records that have it; the value is empty where they have none.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CountRow {
    value: String,
    count: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct BucketRow {
    name: String,
    count: u64,
    /// The reason why its records are dropped, or null.
    dropped: Option<String>,
    /// The outcome that is suggested for its records, or null.
    disposition: Option<String>,
}

/// What the records of the batch promise.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct OutlookRow {
    chosen: u64,
    /// Those of a grave severity.
    grave: u64,
    /// Those older than a year.
    old: u64,
    /// Those of unknown age.
    undated: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct BatchRef {
    pub(super) name: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(super) file: Utf8PathBuf,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Draft {
    id: BundleId,
    title: String,
    bucket: String,
    severity: String,
    /// In days, or null.
    age: Option<i64>,
    /// The line of the export its record starts on.
    line: u64,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    file: Utf8PathBuf,
    pub(super) state: DraftState,
    /// It has a `notes.json`.
    pub(super) notes: bool,
    /// The default of the template that was taken out because it is stale, and why; or null.
    pub(super) swept: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) enum DraftState {
    Written,
    WouldWrite,
    /// There is a bundle of this id.
    LeftAlone,
    /// The selection failed before it.
    NotWritten,
}

impl From<Profile> for ProfileRows {
    fn from(profile: Profile) -> Self {
        let rows = |counts: Vec<ValueCount>| {
            let row = |count: ValueCount| CountRow { value: count.value, count: count.count };
            counts.into_iter().map(row).collect()
        };
        Self {
            status: rows(profile.status),
            severity: rows(profile.severity),
            component: rows(profile.component),
            age: profile
                .age
                .into_iter()
                .map(|(band, count)| CountRow { value: band.as_str().to_owned(), count })
                .collect(),
        }
    }
}

impl From<&BucketCount> for BucketRow {
    fn from(tally: &BucketCount) -> Self {
        Self {
            name: tally.name.clone(),
            count: tally.count,
            dropped: tally.dropped.clone(),
            disposition: tally.disposition.clone(),
        }
    }
}

impl OutlookRow {
    pub(super) fn of(outlook: &Outlook) -> Self {
        let Outlook { chosen, grave, old, undated } = *outlook;
        Self { chosen, grave, old, undated }
    }
}

/// Returns the age of a record in days.
pub(super) fn age_of(record: &IssueRecord, today: Date) -> Option<i64> {
    Some(i64::from((today - record.created?).get_days().max(0)))
}

impl Draft {
    pub(super) fn of(
        record: &IssueRecord,
        pool: &Pool,
        workspace: &Workspace,
        today: Date,
    ) -> Self {
        Self {
            id: record.id.clone(),
            title: record.title.to_string(),
            bucket: pool.bucket_of(record).name.clone(),
            severity: record.severity.to_string(),
            age: age_of(record, today),
            line: record.line,
            file: workspace.bundle_root.bundle(&record.id).path(Artifact::Brief),
            state: DraftState::NotWritten,
            notes: false,
            swept: None,
        }
    }
}

impl Report for SelectReport {
    const KIND: &'static str = "select";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "{}: {}", one_line(&self.source, 60), counted(self.records, "record"))?;
        let tables = [
            ("status", &self.profile.status),
            ("severity", &self.profile.severity),
            ("component", &self.profile.component),
            ("age", &self.profile.age),
        ];
        for (name, rows) in tables {
            if self.absent.contains(&name) || (name == "age" && self.absent.contains(&"created")) {
                let column = if name == "age" { "created" } else { name };
                writeln!(out, "\n{}  no column for {column}", cx.out.strong(name))?;
            } else {
                table(cx, name, rows, out)?;
            }
        }
        self.show_buckets(cx, out)?;
        self.show_expectation(cx, out)?;
        self.show_drafts(cx, out)
    }
}

impl SelectReport {
    fn show_buckets(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\n{}", cx.out.strong("buckets"))?;
        for bucket in &self.buckets {
            let what = match (&bucket.dropped, &bucket.disposition) {
                (Some(reason), _) => format!("dropped: {}", one_line(reason, 40)),
                (None, Some(hint)) => format!("drafts, {}", one_line(hint, 34)),
                (None, None) => "drafts".to_owned(),
            };
            writeln!(
                out,
                "  {:<VALUE$}{:>COUNT$}  {what}",
                one_line(&bucket.name, VALUE - 1),
                bucket.count
            )?;
        }
        let sum: u64 = self.buckets.iter().map(|bucket| bucket.count).sum();
        let line =
            format!("  {:<VALUE$}{sum:>COUNT$}  of {}", "sum", counted(self.records, "record"));
        writeln!(out, "{}", cx.out.faint(line))?;
        Ok(())
    }

    fn show_expectation(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let OutlookRow { chosen, grave, old, .. } = self.outlook;
        let (Some(character), true) = (self.character, chosen > 0) else { return Ok(()) };
        writeln!(
            out,
            "\n{} {character}: {chosen} chosen, {grave} grave, {old} older than a year",
            cx.out.strong("batch")
        )?;
        let expect = if character == "fix" {
            "most are built and signed off; the old ones may be gone already"
        } else {
            "many close without a change (fixed already, duplicates); few are built"
        };
        writeln!(out, "  expect: {expect}")?;
        Ok(())
    }

    fn show_drafts(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let of = |state| self.drafts.iter().filter(move |draft| draft.state == state);
        writeln!(out)?;
        let room = cx.width().saturating_sub(30).max(20);
        for draft in &self.drafts {
            let word = match draft.state {
                DraftState::Written => cx.out.good("wrote"),
                DraftState::WouldWrite => cx.out.accent("would write"),
                DraftState::LeftAlone => cx.out.faint("left alone"),
                DraftState::NotWritten => cx.out.bad("not written"),
            };
            writeln!(out, "{word:<11}  {:<12}  {}", draft.id, one_line(&draft.title, room))?;
        }
        let mut swept: Vec<&str> =
            self.drafts.iter().filter_map(|draft| draft.swept.as_deref()).collect();
        swept.dedup();
        for stale in swept {
            writeln!(
                out,
                "{} the template's target {}",
                cx.out.warn("swept:"),
                one_line(stale, 60)
            )?;
        }
        if self.left_alone > 0 {
            let count = counted(self.left_alone, "further record");
            writeln!(out, "{count} have a bundle already and are left alone")?;
        }
        let (written, would) =
            (of(DraftState::Written).count(), of(DraftState::WouldWrite).count());
        if written > 0 {
            let file = cx.show(&self.batch.file);
            writeln!(
                out,
                "{} {}, listed in {file}",
                cx.out.good("done:"),
                counted(written, "draft")
            )?;
            let status = cx.out.accent(cx.typed("pdca status"));
            writeln!(
                out,
                "next: fill in verdict and slug of each; {status} shows what is missing"
            )?;
        } else if would > 0 {
            writeln!(out, "nothing was written")?;
        } else if self.drafts.is_empty() {
            writeln!(out, "no record is left to draft")?;
        } else if of(DraftState::NotWritten).count() == 0 {
            writeln!(
                out,
                "the batch {} is complete; `--batch NAME` starts another",
                self.batch.name
            )?;
        }
        Ok(())
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Writes one table with bars. The longest bar stands for the largest count.
fn table(
    cx: &Context<'_>,
    name: &str,
    rows: &[CountRow],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(out, "\n{}", cx.out.strong(name))?;
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0).max(1);
    for row in rows.iter().take(MOST_VALUES) {
        let value = if row.value.is_empty() {
            "(none)".to_owned()
        } else {
            one_line(&row.value, VALUE - 1)
        };
        // A value that is there has a bar, however short.
        let full = u64::try_from(BAR).unwrap_or(0);
        let length = (row.count * full).div_ceil(most);
        let bar = "█".repeat(usize::try_from(length).unwrap_or(BAR));
        let line = format!("  {value:<VALUE$}{:>COUNT$}  {}", row.count, cx.out.accent(bar));
        writeln!(out, "{}", line.trim_end())?;
    }
    let others = rows.iter().skip(MOST_VALUES);
    let (values, count) =
        others.fold((0_u64, 0_u64), |(values, count), row| (values + 1, count + row.count));
    if values > 0 {
        writeln!(out, "  {:<VALUE$}{count:>COUNT$}", format!("{values} others"))?;
    }
    Ok(())
}
