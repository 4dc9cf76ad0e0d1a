//! Commit message, pull request text and comment, for a bundle that brings none of its own.
//!
//! They are made from the brief, the gate report and the summary alone, so the same bundle always yields the same
//! text.

use std::fmt::Write as _;

use crate::brief::{Brief, Label};
use crate::gates::{GateReport, GateResult, GateRow};
use crate::id::BundleId;
use crate::inert;
use crate::summary::Summary;
use crate::text::{cut_at_word, words_in_line};
use crate::title::title_of;

/// The maximum length, in characters, of a generated subject line.
/// The usual limit for the subject of a commit, which `git log` shows in 80 columns.
const SUBJECT: usize = 72;

/// The documents of a bundle that the texts are made from.
#[derive(Debug, Clone, Copy)]
pub struct DefaultTexts<'a> {
    /// The id of the bundle.
    pub id: &'a BundleId,
    /// The brief as written.
    pub brief_text: &'a str,
    /// The parsed brief.
    pub brief: Option<&'a Brief>,
    /// The report of the gates.
    pub gates: Option<&'a GateReport>,
    /// The parsed summary.
    pub summary: Option<&'a Summary>,
}

impl DefaultTexts<'_> {
    /// Returns the heading of the brief, or its slug.
    pub fn title(&self) -> String {
        title_of(self.brief_text, self.id)
    }

    /// Returns a commit message.
    pub fn message(&self) -> String {
        let mut text = format!("{}\n", inert::plain(&cut_at_word(&self.title(), SUBJECT)));
        for (label, before) in [(Label::Defect, ""), (Label::SuccessCriterion, "Done when: ")] {
            if let Some(said) = self.field(label) {
                let said = inert::plain(&said);
                let _infallible = write!(text, "\n{before}{said}\n");
            }
        }
        let _infallible = write!(text, "\nIssue: {}\n", self.id);
        text
    }

    /// Returns a text for the pull request.
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

    /// Returns a comment for the tracker.
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

    /// Renders the rows that have a result as a Markdown table.
    fn checks(&self) -> Option<String> {
        let said = |row: &&GateRow| row.result != GateResult::None;
        let rows: Vec<_> = self.gates?.rows.iter().filter(said).collect();
        if rows.is_empty() {
            return None;
        }
        let mut table = "| check | result |\n|---|---|\n".to_owned();
        for row in rows {
            let check = inert::in_markdown(&words_in_line(&row.check));
            let _infallible = writeln!(table, "| {check} | {} |", row.result.as_str());
        }
        Some(table)
    }
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
        let texts = DefaultTexts {
            id: &id,
            brief_text: text,
            brief: Some(&brief),
            gates: None,
            summary: None,
        };
        let (title, message) = (texts.title(), texts.message());
        Said { title, message, description: texts.description() }
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
}
