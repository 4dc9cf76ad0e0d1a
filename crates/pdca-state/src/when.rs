//! The condition under which a check or a variant of a leaf applies to a brief.

use serde::{Deserialize, Serialize};

use crate::brief::{Brief, Label};

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
    /// The text that the value has to contain.
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
    pub fn read(&self) -> When {
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

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` has `{}`", self.field, self.substring)
    }
}
