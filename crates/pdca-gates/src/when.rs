//! The condition under which a check applies to a brief.

use pdca_state::{Brief, Label};
use serde::{Deserialize, Serialize};

/// The two forms of `when` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "expected \"Label: text\" or { field = \"Label\", substring = \"text\" }"
)]
pub enum WhenText {
    /// `"Surfaces: gui"`, or `"Surfaces gui"`.
    Text(String),
    /// `{ field = "Surfaces", substring = "gui" }`.
    Table(When),
}

/// Requires that a field of the brief contains a text, ignoring case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The label of the field.
    pub field: String,
    pub substring: String,
}

impl When {
    /// Returns true if the brief fulfils the condition. A known label is found under any of its spellings.
    pub fn holds_for(&self, brief: &Brief) -> bool {
        let label = self.field.to_lowercase();
        let known = Label::ALL.iter().find(|known| known.spellings().contains(&label.as_str()));
        let field = match known {
            Some(known) => brief.known(*known),
            None => brief.field(&label),
        };
        let wanted = self.substring.to_lowercase();
        field.is_some_and(|field| field.whole().to_lowercase().contains(&wanted))
    }
}

impl WhenText {
    /// Parses either form; missing parts are empty.
    ///
    /// In a text the label is a known one, or else everything before the first colon, or else the first word.
    pub(crate) fn read(&self) -> When {
        let text = match self {
            Self::Table(when) => return when.clone(),
            Self::Text(text) => text.trim(),
        };
        let label = known_label(text)
            .or_else(|| text.find(':'))
            .or_else(|| text.find(char::is_whitespace))
            .unwrap_or(text.len());
        let (field, rest) = text.split_at(label);
        When {
            field: field.trim().to_owned(),
            substring: rest.trim().trim_start_matches(':').trim().to_owned(),
        }
    }
}

/// Returns the length of the longest known label that `text` starts with.
fn known_label(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let spellings = Label::ALL.iter().flat_map(|label| label.spellings());
    let ends = |label: &str| {
        let rest = lower.strip_prefix(label)?;
        let ended = rest.is_empty() || rest.starts_with([':', ' ', '\t']);
        ended.then_some(label.len())
    };
    spellings.filter_map(|label| ends(label)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatesConfig;

    fn checks(text: &str) -> GatesConfig {
        toml::from_str(text).expect("the test's text is of the right shape")
    }

    fn when(text: &str) -> (String, String) {
        let When { field, substring } = WhenText::Text(text.to_owned()).read();
        (field, substring)
    }

    #[test]
    fn both_spellings_of_when_are_read() {
        let checks = checks(
            "checks = [{ id = 'a', tier = 'T1', cmd = 'true', \
             when = { field = 'Surfaces', substring = 'gui' } }]",
        )
        .checks()
        .unwrap();
        let table = checks.as_slice()[0].when.clone().unwrap();
        assert_eq!((table.field.as_str(), table.substring.as_str()), ("Surfaces", "gui"));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(when("Surfaces gui"), pair("Surfaces", "gui"));
        assert_eq!(when("Surfaces: the gui"), pair("Surfaces", "the gui"));
        assert_eq!(when("Disposition hint fix"), pair("Disposition hint", "fix"));
        assert_eq!(
            when("Repo + branch target: own/repo"),
            pair("Repo + branch target", "own/repo")
        );
        assert_eq!(when("My own label: x"), pair("My own label", "x"));
        assert_eq!(when("Surfaces http://x"), pair("Surfaces", "http://x"));
        assert_eq!(when("Surfaces"), pair("Surfaces", ""));
    }

    #[test]
    fn a_malformed_when_says_what_is_expected() {
        let check = "checks = [{ id = 'a', tier = 'T1', cmd = 'true', when = { fild = 'x' } }]";
        let error = toml::from_str::<GatesConfig>(check).unwrap_err().to_string();
        assert!(error.contains("{ field = \"Label\", substring = \"text\" }"), "{error}");
    }
}
