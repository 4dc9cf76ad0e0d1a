//! Changes in the process since the last review.

use std::io::Write;

use pdca_act::{ActRecords, Baseline, Changes, LedgerReview, PartDiff, Versions, explain};
use pdca_state::BundleId;
use serde::Serialize;

use crate::act_log::{counted, ids, sources};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BaselineDiff {
    /// The review compared with, if one was recorded.
    last_review: Option<Past>,
    since_last_review: Option<Changes>,
    /// How each of them changed.
    parts: Vec<PartDiff>,
    /// Every recorded review, oldest first, with the changes since the one before it.
    history: Vec<Past>,
    /// The present process, which the next record would store.
    now: Baseline,
    problems: Vec<String>,
}

#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Past {
    date: String,
    cycles: Vec<BundleId>,
    late: bool,
    files: usize,
    changes: Option<Changes>,
}

/// Compares the process with that of the last review; `names` leaves out how each part changed.
pub(crate) fn diff(names: bool, cx: &Context<'_>) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let records = ActRecords::load(&workspace.process_dir)?;
    let sources = sources(workspace);
    let (now, mut problems) = Baseline::collect(&sources);
    problems.extend(
        records.ledger_error.as_ref().map(|error| format!("the ledger counts as empty: {error}")),
    );
    let reviews = records.ledger.reviews();
    let history = history(&reviews);
    let changes = reviews.last().map(|last| now.changes_since(&last.baseline));
    let parts = match &changes {
        Some(changes) if !names && !changes.is_empty() => {
            let versions = Versions::open(&workspace.root);
            explain(changes, &sources, &workspace.root, versions.as_ref())
        }
        Some(_) | None => Vec::new(),
    };
    Ok(Response::done(BaselineDiff {
        last_review: history.last().cloned(),
        since_last_review: changes,
        parts,
        history,
        now,
        problems,
    }))
}

impl Report for BaselineDiff {
    const KIND: &'static str = "act-diff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        show(cx, self, out)
    }
}

fn history(reviews: &[LedgerReview]) -> Vec<Past> {
    let before = std::iter::once(None).chain(reviews.iter().map(Some));
    reviews
        .iter()
        .zip(before)
        .map(|(review, before)| Past {
            date: review.date.clone(),
            cycles: review.cycles.clone(),
            late: review.late,
            files: review.baseline.files().len(),
            changes: before.map(|before| review.baseline.changes_since(&before.baseline)),
        })
        .collect()
}

fn show(cx: &Context<'_>, document: &BaselineDiff, out: &mut dyn Write) -> Result<(), Failure> {
    for problem in &document.problems {
        writeln!(out, "{} {}", cx.out.warn("warning:"), printable(problem))?;
    }
    let (Some(last), Some(changes)) = (&document.last_review, &document.since_last_review) else {
        writeln!(out, "no review has recorded a baseline yet")?;
        for (file, digest) in document.now.files() {
            writeln!(out, "  {}  {}", short(digest), printable(file))?;
        }
        writeln!(out, "next: {}", cx.out.accent("pdca act log --record"))?;
        return Ok(());
    };
    writeln!(out, "since the review of {}: {}", printable(&last.date), summary(changes))?;
    for (word, list) in
        [("changed", &changes.changed), ("added", &changes.added), ("removed", &changes.removed)]
    {
        for change in list {
            let digests: Vec<&str> = [&change.before, &change.after]
                .into_iter()
                .flatten()
                .map(|digest| short(digest))
                .collect();
            let (word, file) = (cx.out.accent(format!("{word:<7}")), printable(&change.file));
            writeln!(out, "  {word}  {file}  {}", cx.out.faint(digests.join(" → ")))?;
        }
    }
    for part in &document.parts {
        show_part(cx, part, out)?;
    }
    let gap = if document.parts.is_empty() { "" } else { "\n" };
    writeln!(out, "{gap}history")?;
    for past in &document.history {
        let what = match &past.changes {
            None => format!("first baseline, {}", counted(past.files, "part", "parts")),
            Some(changes) => summary(changes),
        };
        let late = if past.late { " (baseline taken late)" } else { "" };
        writeln!(out, "  {}  cycles {}: {what}{late}", printable(&past.date), ids(&past.cycles))?;
    }
    Ok(())
}

fn show_part(cx: &Context<'_>, part: &PartDiff, out: &mut dyn Write) -> Result<(), Failure> {
    let mark = if part.uncommitted { " (not committed)" } else { "" };
    writeln!(out, "\n{}{mark}", cx.out.strong(printable(&part.file)))?;
    let Some(diff) = &part.diff else {
        writeln!(
            out,
            "  its text at the review is not in the git history, so only the digests are known"
        )?;
        return Ok(());
    };
    // The header repeats the name.
    for line in diff.lines().skip_while(|line| line.starts_with("--- ") || line.starts_with("+++ "))
    {
        let text = printable(line);
        match line.as_bytes().first() {
            Some(b'+') => writeln!(out, "  {}", cx.out.good(text))?,
            Some(b'-') => writeln!(out, "  {}", cx.out.bad(text))?,
            Some(_) | None => writeln!(out, "  {text}")?,
        }
    }
    Ok(())
}

fn summary(changes: &Changes) -> String {
    if changes.is_empty() {
        return "nothing changed".to_owned();
    }
    let counts = [
        (changes.changed.len(), "changed"),
        (changes.added.len(), "added"),
        (changes.removed.len(), "removed"),
    ];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

fn short(digest: &str) -> &str {
    digest.get(..8).unwrap_or(digest)
}
