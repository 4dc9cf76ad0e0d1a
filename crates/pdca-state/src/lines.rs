//! Splitting text into lines at every character that any reader of a bundle treats as a line end.
//!
//! Several tools read the files of a bundle. Some end a line not only at a line feed but at every
//! Unicode line boundary. If two readers disagreed, a heading for one would be plain text for the
//! other, and a sign-off could be forged. So every parser of this crate ends lines at `\n`, `\r\n`,
//! `\r`, vertical tab, form feed, the three information separators, NEL, and the two Unicode
//! separators.

use std::ops::Range;

/// One line of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    /// The line without its line end.
    pub(crate) text: &'a str,
    /// Byte offset of the line.
    pub(crate) start: usize,
    /// Byte offset of the next line.
    pub(crate) next: usize,
    /// Line number, from 1.
    pub(crate) number: usize,
}

impl TextLine<'_> {
    /// The byte range of [`TextLine::text`].
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    pub(crate) fn indent(&self) -> usize {
        indent(self.text)
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim_start().is_empty()
    }
}

/// Iterates over the lines of a text. A final line end does not make an empty last line.
pub(crate) fn lines(text: &str) -> TextLines<'_> {
    TextLines { text, at: 0, number: 0 }
}

/// Strips the byte order mark that some editors write.
pub(crate) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Counts the leading white space of a line, in characters.
pub(crate) fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

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

/// Joins a text into one line: each run of white space and control characters becomes one space.
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

#[derive(Debug, Clone)]
pub(crate) struct TextLines<'a> {
    text: &'a str,
    at: usize,
    number: usize,
}

impl<'a> Iterator for TextLines<'a> {
    type Item = TextLine<'a>;

    fn next(&mut self) -> Option<TextLine<'a>> {
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let (length, ending) = first_break(&self.text.as_bytes()[start..]);
        self.at = start + length + ending;
        self.number += 1;
        Some(TextLine {
            text: &self.text[start..start + length],
            start,
            next: self.at,
            number: self.number,
        })
    }
}

/// Bytes that are compared at once.
const BLOCK: usize = 16;

/// The length of the first line and of its line end, in bytes.
fn first_break(bytes: &[u8]) -> (usize, usize) {
    // Fast path: most of a text is printable ASCII, which never ends a line.
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
