//! Text that is safe to show to people, and to paste into a shell.

use std::borrow::Cow;

/// Escapes control characters, including escape sequences, so that text from a file is safe to print.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(
            text.chars()
                .map(|c| if is_unsafe(c) { c.escape_unicode().to_string() } else { c.to_string() })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the first line of `text`, printable, cut to `max` characters with an ellipsis.
pub fn one_line(text: &str, max: usize) -> String {
    let line = printable(text.lines().next().unwrap_or_default().trim()).into_owned();
    if line.chars().count() <= max {
        return line;
    }
    let mut cut: String = line.chars().take(max.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Joins the words of a text by single spaces, without control characters.
pub fn words_in_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Shortens a text to `most` characters, at a word boundary if there is one.
pub fn cut_at_word(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    // One character is for the ellipsis.
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    let kept = kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words);
    format!("{kept}…")
}

/// Quotes a word for a shell, if needed.
pub fn shell(word: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Returns whether a character is a control character, or an invisible one that changes the reading direction.
fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_in_a_brief_never_reaches_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("plain"), "plain");
    }

    #[test]
    fn a_long_line_is_cut_with_an_ellipsis() {
        assert_eq!(one_line("one two three\nfour", 8), "one two…");
        assert_eq!(one_line("short", 8), "short");
    }
}
