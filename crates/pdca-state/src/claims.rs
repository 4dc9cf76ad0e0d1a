//! Claims of identity in texts that others wrote.
//!
//! Commits that land name the change which they bring in a trailer, and pull requests carry a key. A builder writes its
//! own messages, and must not be able to claim by words that another change is there.

/// The trailer that names an accepted change.
pub const SEALED_TRAILER: &str = "Pdca-Sealed";
/// The trailer that names a change which was checked and not accepted.
pub const CHECKED_TRAILER: &str = "Pdca-Checked";
/// What each trailer of ours begins with. No one else may use a key that does, so that a later version can add one.
const PREFIX: &str = "pdca-";

/// Quotes every line that claims to be a trailer of ours, however it is spelled. A line that is quoted already stays as it
/// is.
///
/// ```
/// let said = b"fix\n\n  PDCA-sealed : 2 ab\r\n";
/// assert_eq!(pdca_state::quote_claims(said), b"fix\n\n>   PDCA-sealed : 2 ab\r\n");
/// ```
pub fn quote_claims(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len());
    // A lone carriage return ends a line for some forges, and for a person's editor.
    for line in text.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        if is_claim(line) {
            quoted.extend_from_slice(b"> ");
        }
        quoted.extend_from_slice(line);
    }
    quoted
}

/// Like [`quote_claims`], for text.
pub fn quote_claims_in(text: &str) -> String {
    String::from_utf8_lossy(&quote_claims(text.as_bytes())).into_owned()
}

/// Returns true if some line of a message claims to be a trailer of ours.
pub fn has_claims(text: &[u8]) -> bool {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).any(is_claim)
}

/// Returns true if a line has one of our keys in front of a colon. White space around the key does not count, nor do
/// invisible characters anywhere; hyphens of any length are hyphens.
fn is_claim(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let is_blank = |c: &char| c.is_whitespace() || c.is_control();
    let mut seen = line.chars().filter(|c| !is_invisible(*c)).skip_while(is_blank).peekable();
    let mut key = String::new();
    // A sentence about `pdca-remote` is none: the key ends with the first word.
    while let Some(c) = seen.next_if(|c| c.is_ascii_alphanumeric() || is_hyphen(*c)) {
        key.push(if is_hyphen(c) { '-' } else { c.to_ascii_lowercase() });
    }
    key.starts_with(PREFIX) && seen.find(|c| !is_blank(c)).is_some_and(is_colon)
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

fn is_hyphen(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}')
}

fn is_colon(c: char) -> bool {
    matches!(c, ':' | '\u{2236}' | '\u{fe55}' | '\u{ff1a}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines that claim something, in spellings that git, a forge or a person may take for a trailer.
    const CLAIMS: [&str; 16] = [
        "Pdca-Sealed: 2 ab",
        "pdca-sealed: 2 ab",
        "PDCA-SEALED: 2 ab",
        "Pdca-Sealed:2 ab",
        "Pdca-Sealed : 2 ab",
        "Pdca-Sealed\t:\t2 ab",
        "  Pdca-Sealed: 2 ab",
        "\tPdca-Sealed: 2 ab",
        "\u{a0}Pdca-Sealed\u{a0}:\u{2003}2 ab",
        "\u{200b}Pdca-Sealed\u{200b}: 2 ab",
        "\u{feff}Pdca-Sealed: 2 ab",
        "Pdca\u{2010}Sealed: 2 ab",
        "Pdca-Sealed\u{ff1a} 2 ab",
        "Pdca-Checked: 2 ab",
        "Pdca-Landed: 2",
        "\u{b}Pdca-Sealed: 2 ab",
    ];

    #[test]
    fn every_spelling_of_a_claim_is_quoted_wherever_its_line_stands() {
        for claim in CLAIMS {
            for text in [
                claim.to_owned(),
                format!("subject\n\n{claim}\n"),
                format!("subject\n\nbody\n\nA-B: c\n{claim}\n"),
                format!("subject\r\n\r\n{claim}\r\n"),
                format!("subject\r{claim}"),
                format!("subject\n\n{claim}\n\nmore\n"),
                format!("subject\n\nA-B: c\n folded\n {claim}\n"),
            ] {
                assert!(has_claims(text.as_bytes()), "{text:?}");
                let quoted = quote_claims_in(&text);
                assert!(!has_claims(quoted.as_bytes()), "{quoted:?}");
                assert_eq!(quoted.replace("> ", ""), text, "nothing else is changed");
            }
        }
    }

    #[test]
    fn words_that_claim_nothing_stay_as_they_are() {
        for text in [
            "fix\n\nwhy: Pdca-Sealed: 9 is quoted in a sentence\n",
            "> Pdca-Sealed: 2 ab\n",
            "pdca-remote is a crate: it moves jobs\n",
            "pdca: state the facts\n",
            "Fixes: #1\n",
            "",
        ] {
            assert_eq!(quote_claims_in(text), text);
        }
    }

    proptest! {
        #[test]
        fn quoting_leaves_no_claim_and_is_done_once(text in "(Pdca-Sealed|pdca-|[ \t\r\n:>a-]|\u{a0}){0,24}") {
            let quoted = quote_claims(text.as_bytes());
            prop_assert!(!has_claims(&quoted));
            prop_assert_eq!(quote_claims(&quoted), quoted);
        }

        #[test]
        fn any_bytes_are_kept(bytes: Vec<u8>) {
            let quoted = quote_claims(&bytes);
            prop_assert!(quoted.len() >= bytes.len());
        }
    }
}
