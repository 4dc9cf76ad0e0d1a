//! A selection as text: profile, buckets, drafts.

use std::io::Write;

use pdca_forge::select::{Character, IssueField, Outlook, ValueCount};
use pdca_workspace::drafts::{DraftState, IssueExport, Selection};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::one_line;

/// The most values of one table that people are shown.
const MOST_VALUES: usize = 8;
/// The widths of a table: the value, its count and the longest bar fit into 80 columns.
const VALUE: usize = 24;
const COUNT: usize = 8;
const BAR: usize = 40;

/// Warns if a forge has more issues than were asked for.
pub(crate) fn note_limit(
    export: &IssueExport<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(limit) = export.limit_reached() else { return Ok(()) };
    let text = format!("only the newest {limit} open issues were read");
    cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))
}

/// Writes the warnings of a selection, and makes its response.
pub(crate) fn selected(
    mut selection: Selection,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if let Some(dates) = &selection.unread_dates {
        let text = format!(
            "{} dates cannot be read, such as `{}` in line {}; their age is unknown ([select] dates)",
            dates.count,
            one_line(&dates.first, 40),
            dates.line
        );
        cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))?;
    }
    let failure = selection.failure.take().map(Failure::from);
    let has_new = selection.drafts.iter().any(|draft| draft.state != DraftState::LeftAlone);
    let exit = if has_new { Exit::Done } else { Exit::NothingToDo };
    Ok(Response::new(selection, exit).failed(failure))
}

impl Report for Selection {
    const KIND: &'static str = "select";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "{}: {}", one_line(&self.source, 60), counted(self.records, "record"))?;
        let profile = &self.profile;
        let values = |counts: &[ValueCount]| -> Vec<(String, u64)> {
            counts.iter().map(|count| (count.value.clone(), count.count)).collect()
        };
        let ages = profile.age.iter().map(|age| (age.value.as_str().to_owned(), age.count));
        let tables = [
            ("status", IssueField::Status, values(&profile.status)),
            ("severity", IssueField::Severity, values(&profile.severity)),
            ("component", IssueField::Component, values(&profile.component)),
            ("age", IssueField::Created, ages.collect()),
        ];
        for (name, column, rows) in &tables {
            if self.absent.contains(column) {
                writeln!(out, "\n{}  no column for {}", cx.out.strong(name), column.as_str())?;
            } else {
                table(cx, name, rows, out)?;
            }
        }
        show_buckets(self, cx, out)?;
        show_outlook(self, cx, out)?;
        show_drafts(self, cx, out)
    }
}

fn show_buckets(
    selection: &Selection,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(out, "\n{}", cx.out.strong("buckets"))?;
    for bucket in &selection.buckets {
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
    let sum: u64 = selection.buckets.iter().map(|bucket| bucket.count).sum();
    let line =
        format!("  {:<VALUE$}{sum:>COUNT$}  of {}", "sum", counted(selection.records, "record"));
    writeln!(out, "{}", cx.out.faint(line))?;
    Ok(())
}

fn show_outlook(
    selection: &Selection,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Outlook { chosen, grave, old, .. } = selection.outlook;
    let (Some(character), true) = (selection.character, chosen > 0) else { return Ok(()) };
    let (name, expect) = match character {
        Character::Fix => {
            ("fix", "most are built and signed off; the old ones may be gone already")
        }
        Character::Hygiene => {
            ("hygiene", "many close without a change (fixed already, duplicates); few are built")
        }
    };
    writeln!(
        out,
        "\n{} {name}: {chosen} chosen, {grave} grave, {old} older than a year",
        cx.out.strong("batch")
    )?;
    writeln!(out, "  expect: {expect}")?;
    Ok(())
}

fn show_drafts(
    selection: &Selection,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let of = |state| selection.drafts.iter().filter(move |draft| draft.state == state);
    writeln!(out)?;
    let room = cx.width().saturating_sub(30).max(20);
    for draft in &selection.drafts {
        let word = match draft.state {
            DraftState::Written => cx.out.good("wrote"),
            DraftState::WouldWrite => cx.out.accent("would write"),
            DraftState::LeftAlone => cx.out.faint("left alone"),
            DraftState::NotWritten => cx.out.bad("not written"),
        };
        writeln!(out, "{word:<11}  {:<12}  {}", draft.id, one_line(&draft.title, room))?;
    }
    let mut swept: Vec<&str> =
        selection.drafts.iter().filter_map(|draft| draft.swept.as_deref()).collect();
    swept.dedup();
    for stale in swept {
        writeln!(out, "{} the template's target {}", cx.out.warn("swept:"), one_line(stale, 60))?;
    }
    if selection.left_alone > 0 {
        let count = counted(selection.left_alone, "further record");
        writeln!(out, "{count} have a bundle already and are left alone")?;
    }
    let (written, would) = (of(DraftState::Written).count(), of(DraftState::WouldWrite).count());
    if written > 0 {
        let file = cx.show(&selection.batch.file);
        writeln!(out, "{} {}, listed in {file}", cx.out.good("done:"), counted(written, "draft"))?;
        let status = cx.out.accent(cx.typed("pdca status"));
        writeln!(out, "next: fill in verdict and slug of each; {status} shows what is missing")?;
    } else if would > 0 {
        writeln!(out, "nothing was written")?;
    } else if selection.drafts.is_empty() {
        writeln!(out, "no record is left to draft")?;
    } else if of(DraftState::NotWritten).count() == 0 {
        writeln!(
            out,
            "the batch {} is complete; `--batch NAME` starts another",
            selection.batch.name
        )?;
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Writes one table with bars. The longest bar stands for the largest count.
fn table(
    cx: &Context<'_>,
    name: &str,
    rows: &[(String, u64)],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(out, "\n{}", cx.out.strong(name))?;
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (value, count) in rows.iter().take(MOST_VALUES) {
        let value = if value.is_empty() { "(none)".to_owned() } else { one_line(value, VALUE - 1) };
        // A value that is there has a bar, however short.
        let full = u64::try_from(BAR).unwrap_or(0);
        let length = (count * full).div_ceil(most);
        let bar = "█".repeat(usize::try_from(length).unwrap_or(BAR));
        let line = format!("  {value:<VALUE$}{count:>COUNT$}  {}", cx.out.accent(bar));
        writeln!(out, "{}", line.trim_end())?;
    }
    let others = rows.iter().skip(MOST_VALUES);
    let (values, count) =
        others.fold((0_u64, 0_u64), |(values, sum), (_, count)| (values + 1, sum + count));
    if values > 0 {
        writeln!(out, "  {:<VALUE$}{count:>COUNT$}", format!("{values} others"))?;
    }
    Ok(())
}
