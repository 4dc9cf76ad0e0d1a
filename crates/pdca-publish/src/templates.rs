//! The texts that go with a change: those people or a leaf wrote, and what stands in for them.
//!
//! What stands in is made of the brief, the gate report and the summary, and of nothing else, so the
//! same bundle gives the same words.

use std::fmt::Write as _;

use pdca_state::{Brief, BundleId, GateReport, GateResult, Label, Summary, title_of};

use crate::inert;
use crate::key::{PublishKey, without_marks};

/// The longest subject of a message that is made here, in characters.
const SUBJECT: usize = 72;
/// The longest title that a forge takes, in characters, with room to spare.
const TITLE: usize = 240;
/// The longest text that a forge takes, in characters, with room for the mark.
const BODY: usize = 60_000;

/// What a bundle says about its change.
#[derive(Debug, Clone, Copy)]
pub struct Templates<'a> {
    /// The bundle.
    pub id: &'a BundleId,
    /// Its brief, as it is written.
    pub brief_text: &'a str,
    /// Its brief, read.
    pub brief: Option<&'a Brief>,
    /// What the gates said.
    pub gates: Option<&'a GateReport>,
    /// The result document.
    pub summary: Option<&'a Summary>,
}

impl Templates<'_> {
    /// What it is about, in a few words: the heading of the brief, or its slug.
    pub fn title(&self) -> String {
        title_of(self.brief_text, self.id)
    }

    /// A message for the commit.
    pub fn message(&self) -> String {
        let mut text = format!("{}\n", inert::plain(&cut(&self.title(), SUBJECT)));
        for (label, before) in [(Label::Defect, ""), (Label::SuccessCriterion, "Done when: ")] {
            if let Some(said) = self.field(label) {
                let said = inert::plain(&said);
                let _infallible = write!(text, "\n{before}{said}\n");
            }
        }
        let _infallible = write!(text, "\nIssue: {}\n", self.id);
        text
    }

    /// A text for the pull request.
    pub fn description(&self) -> String {
        let mut text = format!("Issue {}: {}\n", self.id, inert::in_markdown(&self.title()));
        let parts = [
            ("What is wrong, or wanted", Label::Defect),
            ("Done when", Label::SuccessCriterion),
            ("Fails without the change", Label::Falsifiability),
        ];
        for (heading, label) in parts {
            if let Some(said) = self.field(label) {
                let _infallible = write!(text, "\n### {heading}\n\n{}", inert::quoted(&said));
            }
        }
        if let Some(table) = self.checks() {
            let _infallible = write!(text, "\n### Checked\n\n{table}");
        }
        let proven = self.summary.and_then(|summary| summary.section(7));
        if let Some(proven) = proven.map(str::trim).filter(|text| !text.is_empty()) {
            let _infallible =
                write!(text, "\n### Proven, and not proven\n\n{}", inert::quoted(proven));
        }
        text
    }

    /// A comment for the tracker.
    pub fn comment(&self) -> String {
        let title = inert::in_markdown(&self.title());
        let mut text = format!("There is a change for this: {title}.\n");
        if let Some(done) = self.field(Label::SuccessCriterion) {
            let done = inert::quoted(&done);
            let _infallible = write!(text, "\nWhat can be observed with it:\n\n{done}");
        }
        text
    }

    fn field(&self, label: Label) -> Option<String> {
        let said = self.brief?.known(label)?.whole();
        Some(said.trim().to_owned()).filter(|said| !said.is_empty())
    }

    /// The rows that said something, as a table.
    fn checks(&self) -> Option<String> {
        let said = |row: &&pdca_state::GateRow| row.result != GateResult::None;
        let rows: Vec<_> = self.gates?.rows.iter().filter(said).collect();
        if rows.is_empty() {
            return None;
        }
        let mut table = "| check | result |\n|---|---|\n".to_owned();
        for row in rows {
            let check = inert::in_markdown(&one_line(&row.check));
            let _infallible = writeln!(table, "| {check} | {} |", row.result.as_str());
        }
        Some(table)
    }
}

/// The first line of a message that says something: the title of a pull request.
pub fn subject(message: &str) -> String {
    let lines = message.lines().map(one_line);
    let subject = lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
    cut(&without_marks(&subject), TITLE)
}

/// The text of a pull request, with the mark at its end.
pub fn pull_body(description: &str, key: &PublishKey) -> String {
    format!("{}\n\n{}\n", bounded(description), key.marker())
}

/// The text of a comment, which says where the change is, with the mark at its end.
pub fn comment_body(comment: &str, pull: &str, key: &PublishKey) -> String {
    format!("{}\n\nPull request: {pull}\n\n{}\n", bounded(comment), key.marker())
}

/// A text that a forge takes, without marks.
fn bounded(text: &str) -> String {
    let text = without_marks(text.trim_end());
    if text.chars().nth(BODY).is_none() {
        return text;
    }
    let kept: String = text.chars().take(BODY).collect();
    format!("{kept}\n\n(The rest is longer than a page takes.)")
}

/// Words on one line, without control characters.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As many characters as fit, cut between words where that can be.
fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    let kept = kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words);
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: &str = "# Brief: issue 36 — the list crashes when it is empty\n\n\
        - **Slug:** empty-list\n- **Defect (Goal):** an empty list\n  ends the program\n\
        - **Success criterion:** it prints nothing\n- **Falsifiability:** <which test>\n";

    struct Said {
        title: String,
        message: String,
        description: String,
    }

    fn said(text: &str) -> Said {
        let (id, brief) = ("36".parse().unwrap(), Brief::parse(text));
        let templates = Templates {
            id: &id,
            brief_text: text,
            brief: Some(&brief),
            gates: None,
            summary: None,
        };
        let (title, message) = (templates.title(), templates.message());
        Said { title, message, description: templates.description() }
    }

    #[test]
    fn a_message_is_made_of_the_brief() {
        insta::assert_snapshot!(said(BRIEF).message, @r"
        the list crashes when it is empty

        an empty list
        ends the program

        Done when: it prints nothing

        Issue: 36
        ");
    }

    #[test]
    fn a_description_tells_what_is_there_and_leaves_out_what_is_not() {
        insta::assert_snapshot!(said(BRIEF).description, @r"
        Issue 36: the list crashes when it is empty

        ### What is wrong, or wanted

        ```text
        an empty list
        ends the program
        ```

        ### Done when

        ```text
        it prints nothing
        ```
        ");
    }

    #[test]
    fn what_a_brief_says_closes_nothing_and_calls_nobody() {
        let said = said(
            "# Brief: issue 36 — Fixes #12 for @ann ![x](http://e/x.png)\n\n- **Slug:** s\n- **Defect (Goal):** closes o/r#1\n",
        );
        for text in [&said.message, &said.description] {
            let outside: String = text.split("```").step_by(2).collect();
            for word in ["#12", "@ann", "r#1", "http://"] {
                assert!(!outside.contains(word), "{word}: {outside}");
            }
        }
        assert!(!said.description.contains("![x]"), "{}", said.description);
        assert!(said.description.contains("```text\ncloses o/r#1\n```"), "{}", said.description);
    }

    #[test]
    fn without_a_title_the_slug_is_one() {
        assert_eq!(said("# Brief: issue 36\n\n- **Slug:** empty-list\n").title, "empty list");
        assert_eq!(said("").title, "issue 36");
    }

    #[test]
    fn a_long_subject_is_cut_between_words() {
        let title = "word ".repeat(30);
        let text = said(&format!("# Brief: issue 36 — {title}\n")).message;
        let subject = text.lines().next().unwrap();
        assert!(subject.chars().count() <= SUBJECT && subject.ends_with("word…"), "{subject}");
    }

    #[test]
    fn a_title_is_one_line_without_control_characters() {
        assert_eq!(subject("\n\n --body=evil \u{1b}[31m\trest\nsecond"), "--body=evil [31m rest");
    }

    #[test]
    fn the_only_mark_of_a_body_is_its_own_and_the_last_line() {
        let (own, other) = (
            PublishKey::new("r", &"1".parse().unwrap(), b"own"),
            PublishKey::new("r", &"2".parse().unwrap(), b"other"),
        );
        let body = pull_body(&format!("text\n{}\n{}\n", other.marker(), own.marker()), &own);
        assert!(own.is_in(&body) && !other.is_in(&body), "{body}");
        assert_eq!(body.matches("pdca-key:").count(), 1);
        assert_eq!(body.trim_end().lines().last(), Some(own.marker().as_str()));
    }

    #[test]
    fn a_text_too_long_for_a_page_keeps_its_mark() {
        let key = PublishKey::new("r", &"1".parse().unwrap(), b"seal");
        let body = pull_body(&"ä".repeat(100_000), &key);
        assert!(key.is_in(&body) && body.chars().count() < 65_536);
    }
}
