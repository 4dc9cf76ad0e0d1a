//! Adding globs to a `Touches` field that turned out too narrow.
//!
//! A brief belongs to its author, so every other byte stays the same. The edited text is parsed again
//! before it is returned: an edit that would be read differently, or that changes the value of another
//! field, is refused.

use super::target::is_nothing;
use super::{Brief, Label, Span};
use crate::lines::{folded, lines, without_bom};

/// The heading under which widenings are recorded.
const HEADING: &str = "## Widened";

/// Globs to add to the `Touches` field of a brief, with a dated reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widening<'a> {
    /// The globs to add; those that the brief has already are skipped.
    pub globs: &'a [String],
    /// The date to record, such as `2026-11-16`.
    pub date: &'a str,
    /// The name of the person or program that adds the globs.
    pub by: &'a str,
    /// The reason to record.
    pub reason: &'a str,
}

/// The error of adding globs to a brief.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WideningError {
    /// The glob would not be read back as written: it has a space, a comma or a backtick.
    #[error("`{}` cannot be written into a list of globs", glob.escape_debug())]
    Unwritable {
        /// The glob that was refused.
        glob: String,
    },
    /// No edit of the field reads back as intended, for instance because of an open parenthesis.
    #[error("line {line}: no globs can be added to `Touches` as it is written")]
    NoPlace {
        /// The line number of the field, from 1.
        line: usize,
    },
}

/// Returns the SHA-256 of what a brief asks for: its text without the `Touches` field and the record of widenings. Both
/// say where the work may reach, which the gates judge by themselves.
pub fn asked_digest(text: &str) -> String {
    let (mut asked, mut is_widened, mut is_touches) = (String::new(), false, false);
    for line in lines(without_bom(text)) {
        if line.text.starts_with('#') {
            is_widened = line.text.trim_end() == HEADING;
        }
        let is_field = line.text.starts_with(['-', '*']);
        let is_continued = line.text.starts_with([' ', '\t']);
        is_touches = (is_touches && is_continued && !is_field) || (is_field && is_label(line.text));
        // Blank lines come and go with the section.
        if !is_widened && !is_touches && !line.is_blank() {
            asked.push_str(line.text.trim_end());
            asked.push('\n');
        }
    }
    crate::digest::sha256_hex(asked.as_bytes())
}

fn is_label(line: &str) -> bool {
    let label = line.trim_start_matches(['-', '*', ' ']);
    label.get(..7).is_some_and(|label| label.eq_ignore_ascii_case("touches"))
}

impl Widening<'_> {
    /// Returns the brief with the globs in `Touches` and a dated line below `## Widened`. Returns the
    /// text unchanged if it has all of them already.
    pub fn apply(&self, text: &str) -> Result<String, WideningError> {
        let brief = Brief::parse(text);
        let known = brief.touches();
        let new: Vec<&str> = self
            .globs
            .iter()
            .map(String::as_str)
            .filter(|glob| !known.iter().any(|k| k == glob))
            .collect();
        if new.is_empty() {
            return Ok(text.to_owned());
        }
        if let Some(glob) = new.iter().find(|glob| !is_writable(glob)) {
            return Err(WideningError::Unwritable { glob: (*glob).to_owned() });
        }
        let mut expected = known;
        for glob in &new {
            if expected.iter().all(|other| other != glob) {
                expected.push((*glob).to_owned());
            }
        }
        expected.sort_unstable();
        let good = |edited: &String| {
            let after = Brief::parse(edited);
            let mut touches = after.touches();
            touches.sort_unstable();
            touches == expected && says_the_same(&brief, &after)
        };
        let edited = edits(text, &brief, &new.iter().map(|glob| quoted(glob)).collect::<Vec<_>>())
            .into_iter()
            .map(|edited| self.record(&edited, &new))
            .find(good);
        edited.ok_or(WideningError::NoPlace {
            line: brief.fields.written("touches").map_or(1, |field| field.line),
        })
    }

    fn record(&self, text: &str, new: &[&str]) -> String {
        let end = line_end(text);
        let globs: Vec<String> = new.iter().map(|glob| quoted(glob)).collect();
        // The date comes first, so that no reader takes the line for a known field.
        let entry = format!(
            "- {}, {}: {} — {}",
            folded(self.date),
            folded(self.by),
            globs.join(", "),
            folded(self.reason)
        );
        let all: Vec<_> = lines(text).collect();
        let Some(heading) = all.iter().position(|line| line.text.trim_end() == HEADING) else {
            let gap = if text.is_empty() || text.ends_with(['\n', '\r']) { "" } else { end };
            return format!("{text}{gap}{end}{HEADING}{end}{end}{entry}{end}");
        };
        let is_heading = |text: &str| text.starts_with('#');
        let section = all[heading + 1..].iter().take_while(|line| !is_heading(line.text));
        let last = section.filter(|line| !line.is_blank()).last().unwrap_or(&all[heading]);
        let gap = if last.number == heading + 1 { end } else { "" };
        let close = if last.next == last.range().end { end } else { "" };
        let (before, after) = text.split_at(last.next);
        format!("{before}{close}{gap}{entry}{end}{after}")
    }
}

/// Returns true if the `Touches` parser reads the quoted glob back as it is.
fn is_writable(glob: &str) -> bool {
    !glob.contains('`') && super::touches::globs(&quoted(glob)) == [glob]
}

fn quoted(glob: &str) -> String {
    format!("`{glob}`")
}

/// The candidate edits that add the globs, best first.
fn edits(text: &str, brief: &Brief, globs: &[String]) -> Vec<String> {
    let globs = globs.join(", ");
    // Spans are relative to the text without its byte order mark.
    let skip = text.len() - without_bom(text).len();
    let Some(span) = brief.fields.by_label.get("touches").map(|index| &brief.fields.spans[*index])
    else {
        return vec![with_field(text, brief, skip, &globs)];
    };
    let (from, to) = (span.own_line.start + skip, span.own_line.end + skip);
    let (before, value, after) = (&text[..from], &text[from..to], &text[to..]);
    if value.is_empty() || is_nothing(value) || brief.fields.view(span).is_placeholder() {
        let space = if before.ends_with([' ', '\t']) { "" } else { " " };
        return vec![format!("{before}{space}{globs}{after}")];
    }
    // The second form is for a value with an open parenthesis, which hides whatever follows it.
    vec![format!("{before}{value}, {globs}{after}"), format!("{before}{globs}, {value}{after}")]
}

/// Inserts a new `Touches` field after the fields about other bundles or the target.
fn with_field(text: &str, brief: &Brief, skip: usize, globs: &str) -> String {
    const BEHIND: [Label; 5] =
        [Label::ConflictsWith, Label::DependsOn, Label::OntoBranch, Label::RepoTarget, Label::Slug];
    let span = |label: &Label| {
        let indexes =
            label.spellings().iter().filter_map(|spelling| brief.fields.by_label.get(*spelling));
        indexes.map(|index| &brief.fields.spans[*index]).next()
    };
    let end = line_end(text);
    let Some(span) = BEHIND.iter().find_map(span) else {
        let gap = if text.is_empty() || text.ends_with(['\n', '\r']) { "" } else { end };
        return format!("{text}{gap}- **Touches:** {globs}{end}");
    };
    let at = last_line_end(brief, span) + skip;
    let (before, after) = text.split_at(at);
    let gap = if before.ends_with(['\n', '\r']) { "" } else { end };
    let indent = " ".repeat(span.indent);
    format!("{before}{gap}{indent}- **Touches:** {globs}{end}{after}")
}

/// The offset after the last line of a field, its line end included.
fn last_line_end(brief: &Brief, span: &Span) -> usize {
    let body = &brief.fields.text[span.body.clone()];
    let last = lines(body).filter(|line| !line.is_blank()).last();
    span.body.start + last.map_or(0, |line| line.next)
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Returns true if every known field except `Touches` has the same value.
fn says_the_same(before: &Brief, after: &Brief) -> bool {
    let said = |brief: &Brief, label: &Label| brief.known(*label).map(|field| field.whole());
    let others = Label::ALL.iter().filter(|label| **label != Label::Touches);
    others.into_iter().all(|label| said(before, label) == said(after, label))
        && before.is_placeholder() == after.is_placeholder()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_widened_brief_asks_for_the_same_and_an_edited_one_does_not() {
        let text = "# Brief\n\n- **Slug:** a\n- **Touches:** src/a.rs\n- **Success criterion:** it works\n";
        let globs = ["docs/**".to_owned()];
        let widening =
            super::Widening { globs: &globs, date: "2026-11-18", by: "Eve", reason: "more" };
        let wider = widening.apply(text).unwrap();
        assert_ne!(wider, text);
        assert_eq!(super::asked_digest(&wider), super::asked_digest(text));
        let bare = "# Brief\n\n- **Slug:** a\n- **Success criterion:** it works\n";
        assert_eq!(super::asked_digest(&widening.apply(bare).unwrap()), super::asked_digest(bare));
        let edited = text.replace("it works", "it works twice");
        assert_ne!(super::asked_digest(&edited), super::asked_digest(text));
    }

    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn widened(text: &str, globs: &[&str]) -> Result<String, WideningError> {
        let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
        let widening = Widening {
            globs: &globs,
            date: "2026-11-16",
            by: "Ada",
            reason: "the parser\n- **Depends on:** 9\nmoved",
        };
        widening.apply(text)
    }

    #[test]
    fn a_glob_joins_the_list_and_a_line_says_why() {
        let brief = "# Brief\n\n- **Slug:** x\n- **Touches:** src/a.rs (parser), docs/**  \n- **Scope:** one\n";
        assert_snapshot!(widened(brief, &["src/b.rs", "docs/**"]).unwrap(), @"
        # Brief

        - **Slug:** x
        - **Touches:** src/a.rs (parser), docs/**, `src/b.rs`  
        - **Scope:** one

        ## Widened

        - 2026-11-16, Ada: `src/b.rs` — the parser - **Depends on:** 9 moved
        ");
    }

    #[test]
    fn a_second_widening_goes_below_the_first_and_before_the_next_heading() {
        let once = widened("- **Slug:** x\n- **Touches:** a\n", &["b"]).unwrap();
        let twice = widened(&format!("{once}\n## Notes\n\nmine"), &["c/**", "d"]).unwrap();
        assert_snapshot!(twice, @"
        - **Slug:** x
        - **Touches:** a, `b`, `c/**`, `d`

        ## Widened

        - 2026-11-16, Ada: `b` — the parser - **Depends on:** 9 moved
        - 2026-11-16, Ada: `c/**`, `d` — the parser - **Depends on:** 9 moved

        ## Notes

        mine
        ");
    }

    #[test]
    fn a_brief_without_the_field_gets_one_behind_its_neighbours() {
        let brief = "- **Slug:** x\r\n- **Depends on:** 3\r\n  because\r\n\r\n- **Scope:** s";
        let text = widened(brief, &["a"]).unwrap();
        assert_eq!(
            text.split("## Widened").next(),
            Some(
                "- **Slug:** x\r\n- **Depends on:** 3\r\n  because\r\n- **Touches:** `a`\r\n\r\n- **Scope:** s\r\n\r\n"
            )
        );
    }

    #[test]
    fn every_way_to_write_the_field_can_be_added_to() {
        for (touches, expected) in [
            ("- **Touches:**\n  - a\n  - `b`\n", "- **Touches:** `new`\n  - a\n  - `b`\n"),
            ("- **Touches:** none\n", "- **Touches:** `new`\n"),
            ("- **Touches:** <globs>\n", "- **Touches:** `new`\n"),
            ("- **Touches:**\n", "- **Touches:** `new`\n"),
            ("- Touches: a (not closed\n", "- Touches: `new`, a (not closed\n"),
            ("- **Touches:** a\n  and `b`\n", "- **Touches:** a, `new`\n  and `b`\n"),
        ] {
            let text = widened(&format!("- **Slug:** x\n{touches}"), &["new"]).unwrap();
            assert!(text.contains(expected), "{touches:?}: {text}");
        }
    }

    #[test]
    fn what_cannot_be_read_back_is_refused() {
        for glob in ["a b", "a,b", "a`b", "x;", "none"] {
            let error = widened("- **Slug:** x\n- **Touches:** a\n", &[glob]).unwrap_err();
            assert_eq!(error, WideningError::Unwritable { glob: glob.to_owned() });
        }
        let odd = "- **Slug:** x\n- **Touches:** <globs\n  more>\n";
        assert_eq!(widened(odd, &["a"]), Err(WideningError::NoPlace { line: 2 }));
    }

    #[test]
    fn what_is_there_already_changes_nothing() {
        let brief = "- **Slug:** x\n- **Touches:** a, b\n";
        assert_eq!(widened(brief, &["b", "a"]).unwrap(), brief);
    }

    proptest! {
        #[test]
        fn whatever_the_brief_nothing_of_it_is_lost(
            text in "(\u{feff})?((- \\*\\*(Slug|Touches|Depends on|Scope):\\*\\*|  -|#|## Widened|[a-z`(){}<>,./* ]{0,6})[a-z`(){}<>,./* ]{0,9}(\n|\r\n|\r|\u{2028})){0,8}",
        ) {
            if let Ok(widened) = widened(&text, &["new/*.rs"]) {
                let after = Brief::parse(&widened);
                prop_assert!(after.touches().contains(&"new/*.rs".to_owned()));
                // A warning names its line, and lines may move down.
                let brief = Brief::parse(&text);
                let (was, is) = (brief.depends_on(), after.depends_on());
                prop_assert_eq!(was.ids(), is.ids());
                prop_assert_eq!(was.warnings.len(), is.warnings.len());
                // Apart from a value that stands for nothing, all that was there is there, in order.
                let stands_for_nothing = brief.fields.written("touches").is_some_and(|field| {
                    is_nothing(field.own_line) || field.is_placeholder()
                });
                let mut rest = widened.chars();
                let is_kept = text.chars().all(|c| rest.any(|other| other == c));
                prop_assert!(stands_for_nothing || is_kept);
            }
        }
    }
}
