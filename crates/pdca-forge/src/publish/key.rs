//! The key by which a pull request or a comment is found again.

use std::fmt;

use pdca_state::{BundleId, sha256_hex};

/// The text before a key in a marker.
pub(crate) const LABEL: &str = "pdca-key:";

/// The key of one accepted change: the run that sealed it, the bundle, and a digest of the seal.
///
/// It cannot be guessed before the first publication, so a page that carries it was written by this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishKey(String);

impl PublishKey {
    /// Returns the key of a change that was sealed in `run` with the text `seal`.
    pub fn new(run: &str, id: &BundleId, seal: &[u8]) -> Self {
        // 64 bits distinguish the seals of one bundle in one run, and keep the line short.
        Self(format!("{run}/{id}/{}", &sha256_hex(seal)[..16]))
    }

    /// Wraps a key that was read from a record.
    pub(crate) fn known(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the line that carries the key: an HTML comment, which a rendered page does not show.
    pub fn marker(&self) -> String {
        format!("<!-- {LABEL} {self} -->")
    }

    /// Returns true if the marker is in the text, on a line of its own.
    pub fn is_in(&self, text: &str) -> bool {
        let marker = self.marker();
        // A quotation of the marker is not a marker. Forges change line ends, so white space around it does not
        // count.
        text.lines().any(|line| line.trim() == marker)
    }
}

impl fmt::Display for PublishKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Breaks every marker in a text, so that text from a bundle cannot carry a key.
pub(crate) fn without_marks(text: &str) -> String {
    // ASCII lowercasing keeps byte offsets, so matches in `lower` are valid offsets in `text`.
    let lower = text.to_ascii_lowercase();
    let mut tamed = String::with_capacity(text.len());
    let mut end = 0;
    for (at, found) in lower.match_indices(LABEL) {
        tamed.push_str(&text[end..at]);
        tamed.push_str("pdca key:");
        end = at + found.len();
    }
    tamed + &text[end..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> PublishKey {
        PublishKey::new("01JC", &"36".parse().unwrap(), b"seal")
    }

    #[test]
    fn another_seal_is_another_key() {
        let other = PublishKey::new("01JC", &"36".parse().unwrap(), b"another seal");
        assert_ne!(key(), other);
        assert!(!key().is_in(&other.marker()));
    }

    #[test]
    fn a_mark_in_the_middle_of_a_line_is_a_quotation() {
        let marker = key().marker();
        assert!(key().is_in(&format!("text\n  {marker}\r\nmore")));
        assert!(!key().is_in(&format!("> {marker}")));
    }

    proptest! {
        #[test]
        fn no_text_carries_a_mark_after_it_was_tamed(before in any::<String>(), after in any::<String>()) {
            for label in ["pdca-key:", "PDCA-key:"] {
                let text = format!("{before}\n{}\n{after}", key().marker().replace(LABEL, label));
                let tamed = without_marks(&text);
                prop_assert!(!key().is_in(&tamed));
                prop_assert!(!tamed.to_ascii_lowercase().contains(LABEL));
            }
        }

        #[test]
        fn a_text_without_a_mark_stays_as_it_is(text in any::<String>()) {
            prop_assume!(!text.to_ascii_lowercase().contains(LABEL));
            prop_assert_eq!(without_marks(&text), text);
        }
    }
}
