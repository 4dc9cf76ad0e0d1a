//! `pdca act diff`: changes in the process since the last review.

use std::io::Write;

use pdca_act::{Baseline, Changes, LedgerReview, PartDiff, Records, Versions, explain};
use pdca_state::BundleId;
use serde::Serialize;

use super::{counted, ids, sources};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

/// Show the changes in the process since the last review, and at each one before
///
/// Compares the templates, the process directory, prompts and agent files, and the tables [driver], [gates] and [leaves]
/// of `pdca.toml` with their digests at the last recorded review. How a part changed is shown as a diff against its
/// text of that time, which is looked up in git; edits that are not committed yet are included and marked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act diff
  pdca act diff --names        # which parts, not how
  pdca act diff --json | jq -r '.since_last_review.changed[].file'")]
pub(crate) struct Args {
    /// Show only which parts changed
    #[arg(long)]
    names: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct BaselineDiff {
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

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let records = Records::load(&workspace.process_dir)?;
    let sources = sources(workspace);
    let (now, mut problems) = Baseline::collect(&sources);
    problems.extend(
        records.ledger_error.as_ref().map(|error| format!("the ledger counts as empty: {error}")),
    );
    let reviews = records.ledger.reviews();
    let history = history(&reviews);
    let changes = reviews.last().map(|last| now.changes_since(&last.baseline));
    let parts = match &changes {
        Some(changes) if !args.names && !changes.is_empty() => {
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
        insta::assert_snapshot!(desk.run(&["act-diff", "--names"]), @"
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
    fn a_part_is_shown_as_a_diff_against_its_text_of_the_review() {
        let desk = desk();
        let repo = pdca_testkit::Repo::at(desk.workspace.path());
        repo.commit("the process");
        desk.complete("36");
        desk.run(&["act", "log", "--record", "--date", "2026-11-01"]);
        desk.workspace.write("process/rules.md", "be kind\nbe quick\n");
        repo.commit("quicker");
        desk.workspace.write("AGENTS.md", "ask first\n");
        desk.workspace.config(
            "# a comment\n[driver]\nlanes = 3\n[leaves.act]\nprompt_file = \"agents/act.md\"\n",
        );
        insta::assert_snapshot!(desk.run(&["act", "diff"]), @"
        since the review of 2026-11-01: 2 changed, 1 added
          changed  pdca.toml [driver]  5da5e4af → a1f6659e
          changed  process/rules.md  9933b688 → 8c9355a7
          added    AGENTS.md  cbdd501b

        pdca.toml [driver] (not committed)
          @@ -1,2 +1,2 @@
           [driver]
          -lanes = 1
          +lanes = 3

        process/rules.md
          @@ -1 +1,2 @@
           be kind
          +be quick

        AGENTS.md (not committed)
          @@ -0,0 +1 @@
          +ask first

        history
          2026-11-01  cycles 36: first baseline, 5 parts
        ");
    }

    #[test]
    fn a_text_that_was_never_committed_is_said_to_be_unknown() {
        let desk = desk();
        let repo = pdca_testkit::Repo::at(desk.workspace.path());
        repo.commit("the process");
        desk.workspace.write("process/rules.md", "a draft\n");
        desk.complete("36");
        desk.run(&["act", "log", "--record"]);
        desk.workspace.write("process/rules.md", "be kind\n");
        let run = desk.run(&["act", "diff"]);
        let part = "\nprocess/rules.md\n  its text at the review is not in the git history";
        assert!(run.out.contains(part), "{run}");
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
