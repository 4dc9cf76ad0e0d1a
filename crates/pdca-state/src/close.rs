//! Closing without a change: the brief's disposition hint says that nothing is to be built.

use crate::brief::Brief;

/// Returns the first of `close_words` that the brief's `Disposition hint` contains.
///
/// Case does not matter, nor whether the parts of a word are joined by spaces, hyphens or
/// underscores. `None` means that the bundle is built and checked as usual.
pub fn close_disposition(brief: &Brief, close_words: &[String]) -> Option<String> {
    let hint = alike(brief.disposition_hint()?);
    let is_in = |word: &&String| !word.trim().is_empty() && hint.contains(&alike(word));
    close_words.iter().find(is_in).cloned()
}

/// Normalizes to lower case, hyphens between words and straight apostrophes.
fn alike(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let parts: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || matches!(c, '_' | '-' | '‑' | '–')).collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("-").replace(['’', 'ʼ', '‘', '`', '´'], "'")
}

/// Returns whether two dispositions are the same: case, joins of words and kinds of apostrophes do not matter.
pub fn same_disposition(one: &str, other: &str) -> bool {
    alike(one) == alike(other)
}

/// The content of `close-disposition`: one line, whatever the input.
pub fn close_text(disposition: &str) -> String {
    format!("{}\n", disposition.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(hint: &str, words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        close_disposition(
            &Brief::parse(&format!("- **Slug:** x\n- **Disposition hint:** {hint}\n")),
            &words,
        )
    }

    // holds: S002-52
    #[test]
    fn a_hint_that_contains_a_close_word_closes_whatever_its_case() {
        assert_eq!(
            close("Likely-Close (see thread)", &["wontfix", "likely-close"]).as_deref(),
            Some("likely-close")
        );
        assert_eq!(
            close("upstream duplicate", &["duplicate", "upstream"]).as_deref(),
            Some("duplicate")
        );
        let words = ["already-fixed", "can't-reproduce"];
        for hint in ["already fixed (by 41)", "Already_Fixed", "can’t reproduce", "CAN'T-REPRODUCE"]
        {
            assert!(close(hint, &words).is_some(), "{hint}");
        }
        assert_eq!(close("fix, already", &words), None);
    }

    #[test]
    fn without_a_hint_or_a_word_in_it_the_full_band_runs() {
        assert_eq!(close("fix", &["wontfix"]), None);
        assert_eq!(close("<fix | wontfix>", &["wontfix"]), None);
        assert_eq!(close("fix", &["", " "]), None);
        assert_eq!(close_disposition(&Brief::parse("- **Slug:** x\n"), &["wontfix".into()]), None);
    }

    #[test]
    fn the_stand_in_is_one_line() {
        assert_eq!(close_text("by-design"), "by-design\n");
        assert_eq!(close_text("by\n## 9. Check sign-off"), "by ## 9. Check sign-off\n");
    }
}
