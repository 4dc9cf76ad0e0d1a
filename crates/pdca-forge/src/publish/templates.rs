//! Commit message, pull request text and comment, for a bundle that brings none of its own.
//!
//! They are made from the brief, the gate report and the summary alone, so the same bundle always yields the same
//! text.

use std::fmt::Write as _;

use pdca_state::{
    Brief, BundleId, GateReport, GateResult, Label, Summary, quote_claims_in, title_of,
};

use crate::publish::inert;
use crate::publish::key::{PublishKey, without_marks};

/// The maximum length, in characters, of a generated subject line.
/// The usual limit for the subject of a commit, which `git log` shows in 80 columns.
const SUBJECT: usize = 72;
/// The maximum length, in characters, of a title; forges accept slightly more.
const TITLE: usize = 240;
/// The maximum length, in characters, of a text; forges accept slightly more, which leaves room for the marker.
/// GitHub takes 65,536 characters.
const BODY: usize = 60_000;

/// The documents of a bundle that the texts are made from.
#[derive(Debug, Clone, Copy)]
pub struct Templates<'a> {
    pub id: &'a BundleId,
    /// The brief as written.
    pub brief_text: &'a str,
    /// The parsed brief.
    pub brief: Option<&'a Brief>,
    pub gates: Option<&'a GateReport>,
    pub summary: Option<&'a Summary>,
}

impl Templates<'_> {
    /// Returns the heading of the brief, or its slug.
    pub fn title(&self) -> String {
        title_of(self.brief_text, self.id)
    }

    /// Returns a commit message.
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

/// Returns the first non-empty line of a commit message: the title of the pull request.
pub fn subject(message: &str) -> String {
    let lines = message.lines().map(one_line);
    let subject = lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
    cut(&quote_claims_in(&without_marks(&subject)), TITLE)
}

/// Returns the text of a pull request with the marker of `key` at its end. `note` is a line of ours before it.
pub fn pull_body(description: &str, note: Option<&str>, key: &PublishKey) -> String {
    let note = note.map_or_else(String::new, |note| format!("{note}\n\n"));
    format!("{}\n\n{note}{}\n", bounded(description), key.marker())
}

/// Returns the text of a comment, with a link to the pull request, if there is one, and the marker of `key` at its end.
pub fn comment_body(comment: &str, pull: Option<&str>, key: &PublishKey) -> String {
    let pull = pull.map_or_else(String::new, |pull| format!("Pull request: {pull}\n\n"));
    format!("{}\n\n{pull}{}\n", bounded(comment), key.marker())
}

/// Removes markers and shortens a text to what a forge accepts.
fn bounded(text: &str) -> String {
    // A forge may make the message of a merge from this text.
    let text = quote_claims_in(&without_marks(text.trim_end()));
    if text.chars().nth(BODY).is_none() {
        return text;
    }
    let kept: String = text.chars().take(BODY).collect();
    format!("{kept}\n\n(The rest is longer than a page takes.)")
}

/// Joins the words of a text by single spaces, without control characters.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Shortens a text to `most` characters, at a word boundary if there is one.
fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    // One character is for the ellipsis.
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
        let body = pull_body(&format!("text\n{}\n{}\n", other.marker(), own.marker()), None, &own);
        assert!(own.is_in(&body) && !other.is_in(&body), "{body}");
        assert_eq!(body.matches("pdca-key:").count(), 1);
        assert_eq!(body.trim_end().lines().last(), Some(own.marker().as_str()));
    }

    #[test]
    fn a_text_too_long_for_a_page_keeps_its_mark() {
        let key = PublishKey::new("r", &"1".parse().unwrap(), b"seal");
        let body = pull_body(&"ä".repeat(100_000), Some("Stands on #1."), &key);
        assert!(key.is_in(&body) && body.chars().count() < 65_536);
    }
}
