//! Changes in the process as text.

use std::io::Write;

use pdca_act::{Changes, PartDiff};
use pdca_workspace::act::BaselineDiff;

use super::{counted, ids};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::printable;

impl Report for BaselineDiff {
    const KIND: &'static str = "act-diff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for problem in &self.problems {
            writeln!(out, "{} {}", cx.out.warn("warning:"), printable(problem))?;
        }
        let (Some(last), Some(changes)) = (&self.last_review, &self.since_last_review) else {
            writeln!(out, "no review has recorded a baseline yet")?;
            for (file, digest) in self.now.files() {
                writeln!(out, "  {}  {}", short(digest), printable(file))?;
            }
            writeln!(out, "next: {}", cx.out.accent("pdca act log --record"))?;
            return Ok(());
        };
        writeln!(out, "since the review of {}: {}", printable(&last.date), summary(changes))?;
        for (word, list) in [
            ("changed", &changes.changed),
            ("added", &changes.added),
            ("removed", &changes.removed),
        ] {
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
        for part in &self.parts {
            show_part(cx, part, out)?;
        }
        let gap = if self.parts.is_empty() { "" } else { "\n" };
        writeln!(out, "{gap}history")?;
        for past in &self.history {
            let what = match &past.changes {
                None => format!("first baseline, {}", counted(past.files, "part", "parts")),
                Some(changes) => summary(changes),
            };
            let late = if past.late { " (baseline taken late)" } else { "" };
            writeln!(
                out,
                "  {}  cycles {}: {what}{late}",
                printable(&past.date),
                ids(&past.cycles)
            )?;
        }
        Ok(())
    }
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
