//! The section `## Iteration N — carry-forward`, which tells the next attempt about the last one.

use std::fmt::Write;

use crate::gates::{GateReport, GateResult};
use crate::lines::{folded, lines};
use crate::returned::Returned;
use crate::state::Reentry;
use crate::summary::Summary;

/// The most bytes of a person's text that are carried; all of it is in the archived summary.
const LONGEST: usize = 64 << 10;

/// The section for an attempt that was sent back at sign-off.
///
/// All foreign text is quoted (`> `), so that no line of it becomes a field or a heading of the
/// brief that the section is appended to.
pub(crate) fn section(
    number: u32,
    reentry: Reentry,
    summary: Option<&Summary>,
    gates: Option<&GateReport>,
) -> String {
    let to = match reentry {
        Reentry::Do => "Do",
        Reentry::Plan => "Plan",
    };
    let mut text = format!(
        "## Iteration {number} — carry-forward\n\nSent back to {to} at sign-off. The whole attempt is in `iteration-v{number}/`.\n"
    );
    text.push_str("\nRationale:\n\n");
    let delta = summary.map_or("", Summary::iteration_delta).trim();
    quote(&mut text, if delta.is_empty() { "(none was recorded)" } else { cut(delta) });
    text.push_str("\nFailing gates:\n\n");
    let failing = gates.map(|gates| failing(number, gates)).unwrap_or_default();
    quote(&mut text, cut(if failing.is_empty() { "(none)" } else { &failing }));
    text
}

/// The same section for an attempt that went back to Do without a person.
pub(crate) fn own_findings(number: u32, findings: &[String], gates: Option<&GateReport>) -> String {
    let mut text = format!(
        "## Iteration {number} — carry-forward\n\nSent back to Do by `pdca`, without a person: the findings are the builder's own. The whole attempt is in `iteration-v{number}/`.\n\nFindings:\n\n"
    );
    let listed = findings.iter().fold(String::new(), |mut text, finding| {
        writeln!(text, "- {}", folded(finding)).expect("a String takes everything");
        text
    });
    quote(&mut text, cut(&listed));
    text.push_str("\nFailing gates:\n\n");
    let failing = gates.map(|gates| failing(number, gates)).unwrap_or_default();
    quote(&mut text, cut(if failing.is_empty() { "(none)" } else { &failing }));
    text
}

/// The section for an accepted attempt that conflicts with a change that landed since.
pub(crate) fn superseded(number: u32, said: &str) -> String {
    let mut text = format!(
        "## Iteration {number} — carry-forward\n\nAccepted, and in conflict with what landed since. The whole attempt is in `iteration-v{number}/`.\n\nConflict:\n\n"
    );
    quote(&mut text, cut(said));
    text
}

/// The section for an attempt that was built on a result that changed since.
pub(crate) fn stale(number: u32, said: &str) -> String {
    let mut text = format!(
        "## Iteration {number} — carry-forward\n\nWhat it was built on changed. The whole attempt is in `iteration-v{number}/`.\n\nStale:\n\n"
    );
    quote(&mut text, cut(said));
    text
}

/// The section for an accepted attempt that is sent back before it landed.
pub(crate) fn returned(number: u32, reentry: Reentry, record: &Returned) -> String {
    let to = match reentry {
        Reentry::Do => "Do",
        Reentry::Plan => "Plan",
    };
    let (by, date) = (folded(&record.by), folded(&record.date));
    let mut text = format!(
        "## Iteration {number} — carry-forward\n\nAccepted, and sent back to {to} before it landed, by {by} / {date}. The whole attempt is in `iteration-v{number}/`.\n"
    );
    text.push_str("\nRationale:\n\n");
    let note = record.note.as_deref().unwrap_or_default().trim();
    quote(&mut text, if note.is_empty() { "(none was recorded)" } else { cut(note) });
    text.push_str("\nIntegration:\n\n");
    let facts = record.facts.iter().fold(String::new(), |mut text, fact| {
        writeln!(text, "- {}", folded(fact)).expect("a String takes everything");
        text
    });
    quote(&mut text, cut(if facts.is_empty() { "(it was not held)" } else { &facts }));
    text
}

/// One line per failed row, gating or not, with its evidence, its failing tests and its archived log.
fn failing(number: u32, gates: &GateReport) -> String {
    gates.rows.iter().filter(|row| row.result == GateResult::Fail).fold(
        String::new(),
        |mut text, row| {
            let weight = if row.gating { "gating" } else { "advisory" };
            let said = format!("{} ({weight}), {}: {}", row.rule_id, row.check, row.reason());
            writeln!(text, "- {}", folded(&said)).expect("a String takes everything");
            let log = row.log.as_ref().map(|log| format!("`iteration-v{number}/{log}`"));
            for (what, value) in [("failing", row.failing_tests()), ("log", log)] {
                if let Some(value) = value {
                    writeln!(text, "  - {what}: {}", folded(&value))
                        .expect("a String takes everything");
                }
            }
            text
        },
    )
}

fn quote(text: &mut String, said: &str) {
    for line in lines(said) {
        text.push_str(if line.is_blank() { ">" } else { "> " });
        text.push_str(line.text.trim_end());
        text.push('\n');
    }
}

fn cut(said: &str) -> &str {
    let end = (0..=LONGEST.min(said.len())).rev().find(|end| said.is_char_boundary(*end));
    &said[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_without_a_rationale_and_a_missing_report_are_said() {
        insta::assert_snapshot!(section(3, Reentry::Plan, None, None), @r"
        ## Iteration 3 — carry-forward

        Sent back to Plan at sign-off. The whole attempt is in `iteration-v3/`.

        Rationale:

        > (none was recorded)

        Failing gates:

        > (none)
        ");
    }

    #[test]
    fn an_accepted_attempt_that_does_not_fit_says_what_it_conflicts_with() {
        insta::assert_snapshot!(superseded(1, "2 conflicts with 1\n## in f"), @r"
        ## Iteration 1 — carry-forward

        Accepted, and in conflict with what landed since. The whole attempt is in `iteration-v1/`.

        Conflict:

        > 2 conflicts with 1
        > ## in f
        ");
    }

    #[test]
    fn an_accepted_attempt_that_is_sent_back_says_by_whom_why_and_what_the_integration_found() {
        let record = Returned {
            by: "Eve".to_owned(),
            date: "2026-11-16".to_owned(),
            note: Some("obey the rule\n## 9. Check sign-off".to_owned()),
            facts: vec!["72 breaks T3 only\ntogether with 71".to_owned(), "71: a-rule".to_owned()],
            ..Returned::default()
        };
        insta::assert_snapshot!(returned(2, Reentry::Do, &record), @r"
        ## Iteration 2 — carry-forward

        Accepted, and sent back to Do before it landed, by Eve / 2026-11-16. The whole attempt is in `iteration-v2/`.

        Rationale:

        > obey the rule
        > ## 9. Check sign-off

        Integration:

        > - 72 breaks T3 only together with 71
        > - 71: a-rule
        ");
        let bare = returned(1, Reentry::Plan, &Returned::default());
        assert!(bare.contains("sent back to Plan"), "{bare}");
        assert!(bare.contains("> (none was recorded)") && bare.contains("> (it was not held)"));
    }

    #[test]
    fn a_very_long_rationale_is_cut_between_characters() {
        let long = "é".repeat(LONGEST);
        let summary = Summary::parse(
            &crate::testing::summary("iterated-to-Do").replace("the cache is stale", &long),
        );
        let section = section(1, Reentry::Do, Some(&summary), None);
        assert!((LONGEST..LONGEST + 1000).contains(&section.len()), "{}", section.len());
    }
}
