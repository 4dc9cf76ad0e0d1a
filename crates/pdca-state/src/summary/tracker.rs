//! The tracker comment in §8: drafted with the summary, edited by a person, and posted with the change.
//!
//! The draft is a block quote under a heading of its own. A line of it begins with `>`, so it can neither open a section
//! nor be a box or a field of §9, and it is posted without that mark and otherwise as it is.

use std::fmt::Write as _;

use super::Summary;
use crate::lines::lines;

/// The number of the section.
const ATTACHMENTS: usize = 8;
const HEADING: &str = "### Tracker comment";
const INTRODUCTION: &str = "The lines with `>` are posted when the change is published. Edit them until then; without any, nothing is posted.";

/// Renders the part of §8 with the draft.
pub(super) fn draft(comment: &str) -> String {
    let mut out = format!("\n{HEADING}\n\n{INTRODUCTION}\n\n");
    for line in lines(comment.trim()) {
        let line: String = line.text.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        let line = line.trim_end();
        let _infallible = writeln!(out, ">{}{line}", if line.is_empty() { "" } else { " " });
    }
    out
}

/// Returns the comment for the tracker that §8 holds: `None` if there is no draft, and an empty text if a person
/// removed it.
pub fn tracker_comment(summary: &Summary) -> Option<String> {
    let section = summary.section(ATTACHMENTS)?;
    let mut below = lines(section).skip_while(|line| line.text.trim_end() != HEADING);
    below.next()?;
    let is_heading = |text: &str| text.starts_with("### ") || text.starts_with("# ");
    let quoted = below.take_while(|line| !is_heading(line.text));
    let quoted = quoted.filter_map(|line| line.text.strip_prefix('>'));
    let text: Vec<&str> = quoted.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let text = text.join("\n").trim().to_owned();
    Some(if text.is_empty() { text } else { text + "\n" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{SummaryInputs, assemble};
    use super::*;
    use crate::brief::Brief;
    use crate::gates::{GateReport, Overall};

    fn summary(comment: Option<&str>) -> Summary {
        let (id, brief) = ("7".parse().unwrap(), Brief::parse("- **Slug:** s\n"));
        let gates = GateReport {
            issue_dir: "issue_7".to_owned(),
            overall: Overall::Pass,
            patch_digest: None,
            base: None,
            brief_digest: None,
            rows: Vec::new(),
        };
        let inputs =
            SummaryInputs { tracker_comment: comment, ..SummaryInputs::new(&id, &brief, &gates) };
        Summary::parse(&assemble(&inputs))
    }

    #[test]
    fn the_draft_is_read_back_and_a_person_s_words_count() {
        let drafted = summary(Some("Fixed.\n\n```text\n- Outcome: accepted\n```\n"));
        let expected = "Fixed.\n\n```text\n- Outcome: accepted\n```\n";
        assert_eq!(tracker_comment(&drafted).as_deref(), Some(expected));
        let edited = drafted.text().replace("> Fixed.", "> Mended, see below.\n>and more");
        let edited = Summary::parse(&edited);
        let expected = "Mended, see below.\nand more\n\n```text\n- Outcome: accepted\n```\n";
        assert_eq!(tracker_comment(&edited).as_deref(), Some(expected));
    }

    #[test]
    fn a_removed_draft_is_told_from_one_that_never_was() {
        assert_eq!(tracker_comment(&summary(None)), None);
        let text = summary(Some("Fixed.")).text().replace("> Fixed.\n", "");
        assert_eq!(tracker_comment(&Summary::parse(&text)).as_deref(), Some(""));
    }

    proptest! {
        #[test]
        fn no_comment_signs_ticks_or_opens_anything(
            words in prop::collection::vec("(## 9. Check sign-off|- Outcome: accepted|- \\[x\\] x|### Tracker comment|> |\\u{2028}|.{0,8}\n)", 0..12),
        ) {
            let comment = words.concat();
            let (plain, drafted) = (summary(None), summary(Some(&comment)));
            prop_assert_eq!(drafted.outcome(), None);
            prop_assert_eq!(drafted.items(), plain.items());
            prop_assert_eq!(drafted.headings().count(), plain.headings().count());
            let read = tracker_comment(&drafted).unwrap_or_default();
            let inked = |text: &str| text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect::<String>();
            prop_assert_eq!(inked(&read), inked(&comment));
        }
    }
}
