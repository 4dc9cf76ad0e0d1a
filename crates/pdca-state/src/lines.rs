//! Lines of a text, as the widest of its readers sees them.
//!
//! The files of a bundle are read by several tools. Some of them end a line not only at a line
//! feed but at every character Unicode calls a line boundary, and what is a heading to one
//! reader must not be plain text to another where a sign-off depends on it. So every parser of
//! this crate ends lines where the widest reader does: `\n`, `\r\n`, `\r`, vertical tab, form
//! feed, the three information separators, NEL, and the two Unicode separators.

use std::ops::Range;

/// One line of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The line without what ended it.
    pub(crate) text: &'a str,
    /// Where the line starts, in bytes.
    pub(crate) start: usize,
    /// Where the next line starts, in bytes.
    pub(crate) next: usize,
    /// The line number, from 1.
    pub(crate) number: usize,
}

impl Line<'_> {
    /// The bytes of the line without what ended it.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// How many characters of white space the line starts with.
    pub(crate) fn indent(&self) -> usize {
        indent(self.text)
    }

    /// Whether there is nothing on the line but white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim_start().is_empty()
    }
}

/// The lines of a text, each with its place. A text that ends in a line end has no empty last line.
pub(crate) fn lines(text: &str) -> Lines<'_> {
    Lines { text, at: 0, number: 0 }
}

/// A text without the mark some editors put in front of it.
pub(crate) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// How many characters of white space a line starts with.
pub(crate) fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

/// Whether a reader of some kind ends a line at this character.
#[cfg(test)]
pub(crate) fn is_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r'
            | '\u{b}'
            | '\u{c}'
            | '\u{1c}'
            | '\u{1d}'
            | '\u{1e}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
    )
}

/// The text on one line: every run of line ends, control characters and white space is one space.
pub(crate) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Iterator of [`lines`].
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    at: usize,
    number: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let (length, ending) = first_break(&self.text.as_bytes()[start..]);
        self.at = start + length + ending;
        self.number += 1;
        Some(Line {
            text: &self.text[start..start + length],
            start,
            next: self.at,
            number: self.number,
        })
    }
}

/// How many bytes are looked at together.
const BLOCK: usize = 16;

/// Length of the first line and of what ends it, in bytes.
fn first_break(bytes: &[u8]) -> (usize, usize) {
    // Most of a text is printable ASCII, which ends no line: pass over it many bytes at a time.
    let plain = |block: &&[u8; BLOCK]| block.iter().all(|byte| (b' '..0x7f).contains(byte));
    let passed = BLOCK * bytes.as_chunks().0.iter().take_while(plain).count();
    for (at, byte) in bytes.iter().enumerate().skip(passed) {
        let ending = match byte {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => 2,
            b'\n' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1e => 1,
            0xc2 if bytes.get(at + 1) == Some(&0x85) => 2,
            0xe2 if matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) => 3,
            _ => continue,
        };
        return (at, ending);
    }
    (bytes.len(), 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        lines(text).map(|line| line.text).collect()
    }

    #[test]
    fn a_line_ends_wherever_some_reader_ends_it() {
        let text =
            "a\nb\r\nc\rd\u{b}e\u{c}f\u{1c}g\u{1d}h\u{1e}i\u{85}j\u{2028}k\u{2029}l\u{2027}m\n";
        assert_eq!(
            split(text),
            ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l\u{2027}m"]
        );
    }

    #[test]
    fn an_empty_text_has_no_line_and_an_empty_line_is_one() {
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split("\n\n"), ["", ""]);
    }

    proptest! {
        #[test]
        fn lines_cover_the_text_without_gap_or_overlap(text in "(\\PC|[\\x00-\\x20\u{85}\u{2028}\u{2029}])*") {
            let mut at = 0;
            for (index, line) in lines(&text).enumerate() {
                prop_assert_eq!(line.start, at);
                prop_assert_eq!(line.number, index + 1);
                prop_assert_eq!(&text[line.range()], line.text);
                prop_assert!(!line.text.contains(is_break));
                prop_assert!(text[line.range().end..line.next].chars().all(is_break));
                at = line.next;
            }
            prop_assert_eq!(at, text.len());
        }

        #[test]
        fn folded_text_is_one_line_without_control_characters(text in any::<String>()) {
            let once = folded(&text);
            prop_assert!(!once.contains(|c: char| c.is_control() || is_break(c)));
            prop_assert_eq!(once.trim(), once.as_str());
            prop_assert_eq!(folded(&once), once);
        }
    }
}
