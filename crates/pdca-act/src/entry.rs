//! The text of an entry as a leaf or a person wrote it, made fit for the log.

use crate::log::{COMMENT, HEADING, JUDGED};

/// The sections that an entry must have, in this order.
const SECTIONS: [&str; 3] = ["## What the cycles' records exposed", "## Process deltas", JUDGED];

/// The reasons why a text is not an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the entry is empty")]
    Empty,
    #[error("the entry has no section `{section}` after line {line}")]
    NoSection {
        section: &'static str,
        /// The line of the section before it; 0 for the first.
        line: usize,
    },
}

/// Returns the text under `heading`, which names the considered cycles and is never taken from the text.
///
/// A line that would open another entry, or a comment that would hide later ones, becomes plain text.
///
/// ```
/// # let sections = ["What the cycles' records exposed", "Process deltas", "How effectiveness will be judged"];
/// let text: String = sections.iter().map(|name| format!("## {name}\n\n- none\n\n")).collect();
/// let entry = pdca_act::adopt(&text, "# Act review — 2026-11-16 — cycles considered: 36").unwrap();
/// assert!(entry.starts_with("# Act review — 2026-11-16 — cycles considered: 36\n\n## What"));
/// ```
pub fn adopt(text: &str, heading: &str) -> Result<String, EntryError> {
    let body = without_heading(text);
    if body.trim().is_empty() {
        return Err(EntryError::Empty);
    }
    let mut after = 0;
    for section in SECTIONS {
        let rest = body.lines().enumerate().skip(after);
        let found = rest.filter(|(_, line)| line.trim_end() == section).map(|(at, _)| at).next();
        let at = found.ok_or(EntryError::NoSection { section, line: after })?;
        after = at + 1;
    }
    let mut entry = format!("{heading}\n\n");
    for line in body.trim().lines() {
        if line.starts_with("# ") || line.trim_start().starts_with(COMMENT.0) {
            entry.push('\\');
        }
        entry.push_str(line.trim_end());
        entry.push('\n');
    }
    Ok(entry)
}

/// Returns the part after the last heading that stands before the sections, or all of a text that has none.
fn without_heading(text: &str) -> &str {
    let (mut body, mut rest) = (text, text);
    while !rest.is_empty() && !rest.starts_with("## ") {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        if line.starts_with(HEADING) {
            body = after;
        }
        rest = after;
    }
    body
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::{ActLog, append};

    const HEAD: &str = "# Act review — 2026-11-16 — cycles considered: 36, 41";

    fn text(middle: &str) -> String {
        format!(
            "{}\n\n- one\n\n{}\n\n{middle}\n\n{}\n\n- Signal: the T3 gate is flaky\n",
            SECTIONS[0], SECTIONS[1], SECTIONS[2]
        )
    }

    #[test]
    fn the_heading_of_the_text_is_replaced() {
        let other = "# Act review — 1999 — cycles considered: 7\n";
        let own = format!("I looked.\n\n{other}\n{other}{}", text("-"));
        let entry = adopt(&own, HEAD).unwrap();
        assert!(entry.starts_with(&format!("{HEAD}\n\n{}\n", SECTIONS[0])), "{entry}");
        assert!(!entry.contains("1999"));
    }

    #[test]
    fn a_missing_section_is_named() {
        for (position, section) in SECTIONS.into_iter().enumerate() {
            let error = adopt(&text("-").replace(section, "## Other"), HEAD).unwrap_err();
            let EntryError::NoSection { section: named, line } = error else { panic!("{error}") };
            assert_eq!((named, line == 0), (section, position == 0));
        }
        assert_eq!(adopt(" \n", HEAD), Err(EntryError::Empty));
        assert_eq!(adopt("# Act review\n\n", HEAD), Err(EntryError::Empty));
    }

    proptest! {
        #[test]
        fn no_text_opens_a_second_entry_or_hides_a_later_one(
            lines in proptest::collection::vec("(# Act review — x — cycles considered: 9|<!--|-->|  <!-- a|# b|- Signal: c d e|[ -~]{0,20})", 0..8),
        ) {
            let entry = adopt(&text(&lines.join("\n")), HEAD).unwrap();
            let log = append(None, &entry);
            let later = "# Act review — 2026-12-01 — cycles considered: 50\n\n-->\n";
            let read = ActLog::parse(&append(Some(&log), later)).entries;
            let cycles: Vec<Vec<&str>> =
                read.iter().map(|e| e.cycles.iter().map(AsRef::as_ref).collect()).collect();
            prop_assert_eq!(cycles, vec![vec!["36", "41"], vec!["50"]]);
            prop_assert_eq!(&read[0].signals.last().unwrap().text, "the T3 gate is flaky");
        }
    }
}
