//! Text from outside, made harmless once, and cut to a budget.
//!
//! Titles, reviews, logs and diffs are written by models and by the programs they start. They reach a page only as
//! [`Text`], which has no escape sequence and no control character; the writer of each format escapes the rest.

use std::fmt;

use pdca_state::text::printable;
use serde::Serialize;

/// Text without control characters, perhaps cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Text {
    text: String,
    /// The number of lines that were left out; of a cut line the rest counts as one.
    pub left_out: usize,
}

impl Text {
    /// Removes escape sequences, and makes other control characters visible.
    pub fn new(raw: &str) -> Self {
        Self { text: clean(raw), left_out: 0 }
    }

    /// Like [`Self::new`], on one line of at most `max` characters.
    pub fn line(raw: &str, max: usize) -> Self {
        let folded = clean(raw).split_whitespace().collect::<Vec<_>>().join(" ");
        Self { text: pdca_state::text::one_line(&folded, max), left_out: 0 }
    }

    /// Like [`Self::new`], with as many whole lines as the budget pays for.
    pub fn within(raw: &str, budget: &mut Budget) -> Self {
        let mut kept = String::new();
        let mut lines = raw.lines();
        let mut left_out = 0;
        for line in lines.by_ref() {
            let line = clean(line);
            if !budget.pay(&line) {
                left_out = 1 + lines.count();
                break;
            }
            kept.push_str(&line);
            kept.push('\n');
        }
        Self { text: kept, left_out }
    }

    /// Like [`Self::within`], with the last lines: a log says at its end what failed.
    pub fn tail_within(raw: &str, budget: &mut Budget) -> Self {
        let mut kept: Vec<String> = Vec::new();
        let mut lines = raw.lines().rev();
        let mut left_out = 0;
        for line in lines.by_ref() {
            let line = clean(line);
            if !budget.pay(&line) {
                left_out = 1 + lines.count();
                break;
            }
            kept.push(line + "\n");
        }
        kept.reverse();
        Self { text: kept.concat(), left_out }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the sentence about what was left out, if something was.
    pub fn cut_note(&self) -> Option<String> {
        match self.left_out {
            0 => None,
            1 => Some("cut here: 1 line is left out".to_owned()),
            lines => Some(format!("cut here: {lines} lines are left out")),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The bytes that the texts of one bundle may take in a page.
#[derive(Debug, Clone, Copy)]
pub struct Budget(usize);

impl Budget {
    /// Makes a budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes at most so many bytes out of this budget, as one of its own.
    #[must_use]
    pub fn part(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.0);
        self.0 -= bytes;
        Self(bytes)
    }

    /// Takes a quarter of what is left.
    #[must_use]
    pub fn quarter(&mut self) -> Self {
        self.part(self.0 / 4)
    }

    /// Takes half of what is left.
    #[must_use]
    pub fn half(&mut self) -> Self {
        self.part(self.0 / 2)
    }

    /// Gives back what a part did not need.
    pub fn give_back(&mut self, part: Self) {
        self.0 += part.0;
    }

    /// Pays for a line, as long as it is when it is escaped.
    fn pay(&mut self, line: &str) -> bool {
        let escaped = 1 + line.bytes().map(escaped_len).sum::<usize>();
        let is_paid = escaped <= self.0;
        if is_paid {
            self.0 -= escaped;
        }
        is_paid
    }
}

fn escaped_len(byte: u8) -> usize {
    match byte {
        b'&' => "&amp;".len(),
        b'<' | b'>' => "&lt;".len(),
        b'"' => "&quot;".len(),
        _ => 1,
    }
}

/// Removes the escape sequences of terminals, and makes what is left of control characters visible.
fn clean(raw: &str) -> String {
    let mut rest = raw.chars().peekable();
    let mut plain = String::with_capacity(raw.len());
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut rest),
            // Alone it would go back to the beginning of the line; before a line feed it is only its ending.
            '\r' => {}
            // No document of XML may have these.
            '\u{fffe}' | '\u{ffff}' => plain.extend(c.escape_unicode()),
            _ => plain.push(c),
        }
    }
    printable(&plain).into_owned()
}

/// Skips the rest of an escape sequence: parameters up to a final byte, or a string up to its terminator.
fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next_if(|c| matches!(c, '[' | ']' | 'P' | 'X' | '^' | '_' | ' '..='~')) {
        Some('[') => {
            while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
            rest.next_if(|c| matches!(c, '@'..='~'));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // A string that never ends must not swallow the lines after it.
            while let Some(c) = rest.next_if(|c| *c != '\n') {
                if c == '\u{7}' || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_go_and_other_control_characters_are_seen() {
        let clean = |raw| Text::new(raw).to_string();
        assert_eq!(clean("\u{1b}[1;31mred\u{1b}[0m\tand\nplain\r\n"), "red\tand\nplain\n");
        assert_eq!(clean("\u{1b}]0;title\u{7}after"), "after");
        assert_eq!(clean("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"), "link");
        assert_eq!(clean("\u{1b}]never ends\nnext line"), "\nnext line");
        assert_eq!(clean("a\u{0}b\u{202e}c\u{9b}d"), "a\\u{0}b\\u{202e}c\\u{9b}d");
        assert_eq!(clean("naïve 測試 🦀"), "naïve 測試 🦀");
    }

    #[test]
    fn what_does_not_fit_is_left_out_in_whole_lines_and_counted() {
        let text = Text::within("one\ntwo\nthree\n", &mut Budget::new(8));
        assert_eq!((text.as_str(), text.left_out), ("one\ntwo\n", 1));
        let text = Text::tail_within("one\ntwo\nthree\n", &mut Budget::new(8));
        assert_eq!((text.as_str(), text.left_out), ("three\n", 2));
        let text = Text::within("<&>\n", &mut Budget::new(8));
        assert_eq!((text.as_str(), text.left_out), ("", 1));
    }

    #[test]
    fn a_part_of_a_budget_gives_back_what_it_did_not_need() {
        let mut whole = Budget::new(10);
        let mut part = whole.part(6);
        assert_eq!(Text::within("abc", &mut part).as_str(), "abc\n");
        whole.give_back(part);
        assert_eq!(Text::within("12345", &mut whole).as_str(), "12345\n");
        assert_eq!(Text::within("x", &mut whole).left_out, 1);
    }

    proptest! {
        #[test]
        fn no_text_has_a_control_character_but_line_feed_and_tab(raw in any::<String>()) {
            let text = Text::new(&raw);
            prop_assert!(text.as_str().chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
    }
}
