//! `pdca act diff`: changes in the process since the last review.

use std::io::Write;

use pdca_act::{Baseline, Changes, LedgerReview, Records};
use pdca_state::BundleId;
use serde::Serialize;

use super::{baseline, counted, ids};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

/// Show the changes in the process since the last review, and at each one before
///
/// Compares the templates, the process directory, the prompts of leaves and the tables [driver], [gates] and [leaves]
/// of `pdca.toml` with their digests at the last recorded review. It tells which of them changed; git tells how.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act diff
  pdca act diff --json | jq -r '.since_last_review.changed[].file'")]
pub(crate) struct Args {}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct BaselineDiff {
    /// The review compared with, if one was recorded.
    last_review: Option<Past>,
    since_last_review: Option<Changes>,
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

pub(crate) fn run(_: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let records = Records::load(&workspace.process_dir)?;
    let (now, mut problems) = baseline(workspace)?;
    problems.extend(
        records.ledger_error.as_ref().map(|error| format!("the ledger counts as empty: {error}")),
    );
    let reviews = records.ledger.reviews();
    let history = history(&reviews);
    Ok(Response::done(BaselineDiff {
        last_review: history.last().cloned(),
        since_last_review: reviews.last().map(|last| now.changes_since(&last.baseline)),
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
    writeln!(out, "history")?;
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

#[cfg(test)]
mod tests {
    use crate::testing::Desk;

    fn desk() -> Desk {
        let desk = Desk::new();
        desk.workspace
            .config("[driver]\nlanes = 1\n[leaves.act]\nprompt_file = \"agents/act.md\"\n");
        desk.workspace.write("agents/act.md", "look back\n");
        desk.workspace.write("templates/brief.md.tpl", "- **Slug:** <slug>\n");
        desk.workspace.write("process/rules.md", "be kind\n");
        desk
    }

    #[test]
    fn before_the_first_review_the_present_process_is_shown() {
        insta::assert_snapshot!(desk().run(&["act", "diff"]), @"
        no review has recorded a baseline yet
          f93b8e55  agents/act.md
          5da5e4af  pdca.toml [driver]
          ffb5627f  pdca.toml [leaves]
          9933b688  process/rules.md
          d6b55651  templates/brief.md.tpl
        next: pdca act log --record
        ");
    }

    #[test]
    fn what_changed_since_the_last_review_is_told_with_the_history() {
        let desk = desk();
        desk.complete("36");
        desk.run(&["act", "log", "--record", "--date", "2026-11-01"]);
        desk.workspace.write("process/rules.md", "be kind and quick\n");
        desk.complete("41");
        desk.run(&["act", "log", "--record"]);
        desk.workspace.config("# a comment is no change\n[driver]\nlanes = 2\n");
        desk.workspace.write("templates/more.md", "x\n");
        insta::assert_snapshot!(desk.run(&["act-diff"]), @"
        since the review of 2026-11-16: 1 changed, 1 added, 2 removed
          changed  pdca.toml [driver]  5da5e4af → 5cbebaf3
          added    templates/more.md  73cb3858
          removed  agents/act.md  f93b8e55
          removed  pdca.toml [leaves]  ffb5627f
        history
          2026-11-01  cycles 36: first baseline, 5 parts
          2026-11-16  cycles 41: 1 changed
        ");
    }

    #[test]
    fn scripts_get_the_digests() {
        let desk = desk();
        desk.complete("36");
        desk.run(&["act", "log", "--record"]);
        desk.workspace.write("process/rules.md", "other\n");
        let json: serde_json::Value =
            serde_json::from_str(&desk.run(&["act", "diff", "--json"]).out).unwrap();
        assert_eq!(json["kind"], "act-diff");
        let changed = &json["since_last_review"]["changed"];
        assert_eq!(changed[0]["file"], "process/rules.md");
        assert_ne!(changed[0]["before"], changed[0]["after"]);
        assert_eq!(json["last_review"]["cycles"], serde_json::json!(["36"]));
    }

    #[test]
    fn a_ledger_that_is_none_is_said_and_counts_as_empty() {
        let desk = desk();
        desk.workspace.write("process/act-ledger.json", "[{");
        let run = desk.run(&["act", "diff"]);
        assert!(
            run.out
                .starts_with("warning: the ledger counts as empty: not JSON (line 1, column 2)\n"),
            "{run}"
        );
    }
}
