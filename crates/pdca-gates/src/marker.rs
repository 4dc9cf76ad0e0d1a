//! The markers with which a check declares something in its output.
//!
//! A marker counts only at the very start of a line: anywhere else it is text that the check relays, such as the source
//! of another check. The supervisor collects these lines while it drains the output, so a marker in the part of a long
//! output that is not kept counts as well.

use pdca_state::EVIDENCE_MAX;

use crate::failing::{Digested, Failing};

const UNVERIFIABLE: &str = "PDCA-UNVERIFIABLE:";
const DEFERRED: &str = "PDCA-DEFERRED:";
const EVIDENCE: &str = "PDCA-EVIDENCE:";

/// The line prefixes that have a meaning.
pub(crate) const MARKERS: &[&str] = &[UNVERIFIABLE, DEFERRED, EVIDENCE];

/// The declarations and the evidence in one output. Every text is one printable line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MarkedOutput {
    /// The first declaration that the check could not verify anything; later output cannot withdraw it.
    pub(crate) unverifiable: Option<String>,
    /// The first declaration that there is nothing to verify yet.
    pub(crate) deferred: Option<String>,
    /// The last evidence that is not empty: a check of several steps reports at the end.
    pub(crate) evidence: Option<String>,
    /// The last line that is not blank.
    pub(crate) last_line: String,
    /// The failing tests and error lines in the output of a failed check.
    pub(crate) digested: Digested,
}

impl MarkedOutput {
    /// Reads the lines that start with one of [`MARKERS`], in the order they were printed, and the last line of the
    /// output.
    pub(crate) fn read<'a>(marked: impl IntoIterator<Item = &'a str>, last_line: &[u8]) -> Self {
        let mut said = Self { last_line: drawn(last_line), ..Self::default() };
        for line in marked {
            if let Some(why) = line.strip_prefix(UNVERIFIABLE) {
                said.unverifiable.get_or_insert_with(|| harmless(why.as_bytes()));
            } else if let Some(why) = line.strip_prefix(DEFERRED) {
                said.deferred.get_or_insert_with(|| harmless(why.as_bytes()));
            } else if let Some(text) = line.strip_prefix(EVIDENCE) {
                let text = harmless(text.as_bytes());
                if !text.is_empty() {
                    said.evidence = Some(text);
                }
            }
        }
        said
    }

    /// Returns the declared evidence, or else the last line.
    pub(crate) fn gist(&self) -> &str {
        self.evidence.as_deref().unwrap_or(&self.last_line)
    }

    /// Returns the failing tests. Declared evidence takes precedence over names found in the output.
    pub(crate) fn failing(&self) -> Failing {
        match &self.evidence {
            Some(evidence) => Failing::only(evidence.clone()),
            None => self.digested.failing.clone(),
        }
    }

    /// Returns the reason for a failure: the declared evidence, or the failing tests.
    pub(crate) fn named(&self) -> Option<String> {
        let failing = &self.digested.failing;
        let count = failing.count();
        let found = || (count > 0).then(|| format!("{count} failed: {failing}"));
        self.evidence.clone().or_else(found)
    }

    /// Returns the last lines of a check that names no reason.
    pub(crate) fn last_words(&self) -> Option<String> {
        let Digested { complaint, last, .. } = &self.digested;
        match (complaint, last.as_slice()) {
            (Some(complaint), _) => Some(complaint.clone()),
            (None, []) if self.last_line.is_empty() => None,
            (None, []) => Some(format!("last output: {}", self.last_line)),
            (None, last) => Some(format!("last output: {}", last.join(" / "))),
        }
    }
}

/// Returns the last line of an output that is not blank.
pub(crate) fn last_line(output: &[u8]) -> &[u8] {
    output.rsplit(|byte| *byte == b'\n').find(|line| !drawn(line).is_empty()).unwrap_or_default()
}

/// Returns the visible text of a line. A progress bar redraws its line after carriage returns; the last version counts.
fn drawn(line: &[u8]) -> String {
    line.rsplit(|byte| *byte == b'\r')
        .map(harmless)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// Makes bytes safe to show on one line: at most 120 characters, no terminal control sequences, no characters that
/// change the direction of text, and no repeated, leading or trailing blanks.
pub fn harmless(bytes: &[u8]) -> String {
    // Longer than any text that is kept, even if most of it is colour.
    let bytes = &bytes[..bytes.len().min(EVIDENCE_MAX * 40)];
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    let mut count = 0;
    let mut blank = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            skip_escape(&mut letters);
        } else if letter.is_whitespace() || letter.is_control() {
            blank = count > 0;
        } else if !is_invisible(letter) {
            let wanted = usize::from(blank) + 1;
            if count + wanted > EVIDENCE_MAX {
                // The ellipsis takes the last place.
                if count == EVIDENCE_MAX {
                    shown.pop();
                }
                shown.push('…');
                break;
            }
            if blank {
                shown.push(' ');
            }
            shown.push(letter);
            count += wanted;
            blank = false;
        }
    }
    shown
}

/// Skips the rest of an escape sequence: `[`, parameters and a final letter; a title up to its end; or, as for the
/// choice of a character set, marks and the letter after them.
pub(crate) fn skip_escape(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.peek() {
        Some('[') => {
            letters.next();
            while let Some(letter) = letters.next_if(|next| !next.is_control()) {
                if ('@'..='~').contains(&letter) {
                    break;
                }
            }
        }
        Some(']') => {
            while let Some(letter) = letters.next() {
                if letter == '\u{7}' || (letter == '\u{1b}' && letters.next_if_eq(&'\\').is_some())
                {
                    break;
                }
            }
        }
        Some(' '..='/') => {
            while letters.next_if(|next| (' '..='/').contains(next)).is_some() {}
            letters.next_if(|next| !next.is_control());
        }
        Some(_) | None => {}
    }
}

/// Returns true for characters that are invisible and change how their neighbours are shown.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads an output in the way the supervisor does.
    pub(crate) fn said_by(text: &str) -> MarkedOutput {
        let lines = text.split('\n').collect::<Vec<_>>();
        let marks = |line: &&str| MARKERS.iter().any(|marker| line.starts_with(marker));
        let marked = lines.iter().copied().filter(marks);
        MarkedOutput::read(marked, last_line(text.as_bytes()))
    }

    #[test]
    fn a_line_that_only_chooses_colours_and_letters_shows_nothing() {
        assert_eq!(harmless(b"\x1b(B\x1b[m "), "");
        assert_eq!(harmless(b"\x1b(B\x1b[m\x1b[32m+pub fn a() {}"), "+pub fn a() {}");
    }

    #[test]
    fn a_marker_counts_only_at_the_start_of_a_line() {
        let said = said_by("ok\nPDCA-UNVERIFIABLE: no docker\nPDCA-DEFERRED: later\nend\n");
        assert_eq!(said.unverifiable.as_deref(), Some("no docker"));
        assert_eq!(said.deferred.as_deref(), Some("later"));
        for relayed in [
            "see PDCA-UNVERIFIABLE: x\n",
            " PDCA-UNVERIFIABLE: x\n",
            "# PDCA-UNVERIFIABLE: x\n",
            "pdca-unverifiable: x\n",
            "PDCA-UNVERIFIABLE x\n",
            "50%\rPDCA-UNVERIFIABLE: x\n",
            "\u{1b}[1mPDCA-UNVERIFIABLE: x\n",
        ] {
            assert_eq!(said_by(relayed).unverifiable, None, "{relayed:?}");
        }
    }

    #[test]
    fn the_first_reason_and_the_last_evidence_win() {
        let said = said_by(
            "PDCA-UNVERIFIABLE: one\nPDCA-UNVERIFIABLE: two\nPDCA-EVIDENCE: red\n\
             PDCA-EVIDENCE: green\nPDCA-EVIDENCE: \nbye\n",
        );
        assert_eq!(said.unverifiable.as_deref(), Some("one"));
        assert_eq!(said.gist(), "green");
        assert_eq!(said.last_line, "bye");
    }

    #[test]
    fn a_marker_without_text_still_counts() {
        assert_eq!(said_by("PDCA-UNVERIFIABLE:").unverifiable.as_deref(), Some(""));
    }

    #[test]
    fn the_last_line_is_what_a_person_saw_last() {
        assert_eq!(said_by("a\nb\n\n \u{1b}[0m \n").last_line, "b");
        assert_eq!(said_by("10%\r50%\r100% done\r\n").last_line, "100% done");
        assert_eq!(said_by("").last_line, "");
        assert_eq!(said_by("no newline").last_line, "no newline");
    }

    #[test]
    fn control_characters_cannot_reach_a_terminal_or_a_table() {
        assert_eq!(harmless(b"\x1b[31mred\x1b[0m\ttext\x07"), "red text");
        assert_eq!(harmless(b"\x1b]0;title\x07shown"), "shown");
        assert_eq!(harmless("a\u{202e}b\u{feff}".as_bytes()), "ab");
        assert_eq!(harmless(b"\x1b[2J"), "");
        assert_eq!(harmless(b"a\x1b[3"), "a");
    }

    #[test]
    fn evidence_is_counted_in_characters() {
        let long = "é".repeat(130);
        let kept = harmless(long.as_bytes());
        assert_eq!(kept.chars().count(), 120);
        assert!(kept.ends_with('…'));
        let exact = "é".repeat(120);
        assert_eq!(harmless(exact.as_bytes()), exact);
    }

    proptest! {
        #[test]
        fn any_bytes_become_one_short_harmless_line(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let text = harmless(&bytes);
            prop_assert!(text.chars().count() <= EVIDENCE_MAX);
            prop_assert!(!text.contains(char::is_control));
            prop_assert_eq!(text.trim(), text.as_str());
        }

        #[test]
        fn any_lines_give_one_harmless_line(marked in any::<Vec<String>>(), last in any::<Vec<u8>>()) {
            let said = MarkedOutput::read(marked.iter().map(String::as_str), &last);
            prop_assert!(!said.gist().contains(char::is_control));
        }
    }
}
