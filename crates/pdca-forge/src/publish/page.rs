//! Title, pull request and comment as they are sent to a forge, each with the key of the change.

use pdca_state::quote_claims_in;
use pdca_state::text::{cut_at_word, words_in_line};

use crate::publish::key::{PublishKey, without_marks};

/// The maximum length, in characters, of a title; forges accept slightly more.
const TITLE: usize = 240;
/// The maximum length, in characters, of a text; forges accept slightly more, which leaves room for the marker.
/// GitHub takes 65,536 characters.
const BODY: usize = 60_000;

/// Returns the first non-empty line of a commit message: the title of the pull request.
pub fn subject(message: &str) -> String {
    let lines = message.lines().map(words_in_line);
    let subject = lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
    cut_at_word(&quote_claims_in(&without_marks(&subject)), TITLE)
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

#[cfg(test)]
mod tests {
    use super::*;

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
