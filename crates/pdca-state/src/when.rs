//! The condition under which a check or a variant of a leaf applies to a brief.

use serde::{Deserialize, Serialize};

use crate::brief::{Brief, BriefField, Label};

/// The two forms of `when` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "expected \"Label: text\" or { field = \"Label\", substring = \"text\" }, with a list for any of several texts and `equals` for the whole value"
)]
pub enum WhenText {
    /// `"Surfaces: gui"`, or `"Surfaces gui"`.
    Text(String),
    /// `{ field = "Surfaces", substring = "gui" }`.
    Table(When),
}

/// Requires that the line of a field of the brief contains one of some texts, or is one of them, ignoring case.
///
/// The lines below the label do not count: they are prose about the value, and what they mention is not what was chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The label of the field.
    pub field: String,
    /// The texts of which the line of the label has to contain one; any value if there is none.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub substring: Texts,
    /// The texts of which the line of the label has to be one; any value if there is none.
    #[serde(default, skip_serializing_if = "Texts::is_empty")]
    pub equals: Texts,
}

/// One text or a list of them in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "OneOrMany", into = "OneOrMany")]
pub struct Texts(pub Vec<String>);

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(given: OneOrMany) -> Self {
        match given {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(texts) => Self(texts),
        }
    }
}

impl From<Texts> for OneOrMany {
    fn from(Texts(mut texts): Texts) -> Self {
        match texts.pop() {
            Some(only) if texts.is_empty() => Self::One(only),
            Some(last) => {
                texts.push(last);
                Self::Many(texts)
            }
            None => Self::Many(texts),
        }
    }
}

impl Texts {
    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn any(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.is_empty() || self.0.iter().any(|text| holds(&text.to_lowercase()))
    }
}

impl std::fmt::Display for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|text| format!("`{text}`")).collect();
        f.write_str(&texts.join(" or "))
    }
}

impl When {
    /// Requires that a field contains a text.
    pub fn contains(field: impl Into<String>, text: impl Into<String>) -> Self {
        let substring = Texts(vec![text.into()]);
        Self { field: field.into(), substring, equals: Texts::default() }
    }

    /// Returns true if the brief fulfils the condition. A known label is found under any of its spellings.
    pub fn holds_for(&self, brief: &Brief) -> bool {
        self.field_of(brief).is_some_and(|field| {
            let line = field.own_line.to_lowercase();
            self.substring.any(|text| line.contains(text)) && self.is_equal_to(&line)
        })
    }

    /// Like [`When::holds_for`], but a text may also be in the lines below the label: a check that was to run must not
    /// be lost because its value was wrapped.
    pub fn is_mentioned_in(&self, brief: &Brief) -> bool {
        self.field_of(brief).is_some_and(|field| {
            let (whole, line) = (field.whole().to_lowercase(), field.own_line.to_lowercase());
            self.substring.any(|text| whole.contains(text)) && self.is_equal_to(&line)
        })
    }

    fn field_of<'b>(&self, brief: &'b Brief) -> Option<BriefField<'b>> {
        match self.known_label() {
            Some(known) => brief.known(known),
            None => brief.field(&self.field.to_lowercase()),
        }
    }

    fn is_equal_to(&self, line: &str) -> bool {
        self.equals.any(|text| line.trim() == text.trim())
    }

    /// Returns the label of the field, if it is a known one.
    pub fn known_label(&self) -> Option<Label> {
        Label::of(&self.field)
    }

    /// Returns true if a part is missing, so that the condition would hold for every brief or for none.
    pub fn is_incomplete(&self) -> bool {
        let mut texts = self.substring.0.iter().chain(&self.equals.0);
        self.field.is_empty()
            || (self.substring.is_empty() && self.equals.is_empty())
            || texts.any(|text| text.trim().is_empty())
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
        When::contains(field.trim(), rest.trim().trim_start_matches(':').trim())
    }
}

/// Returns the length of the longest known label that `text` starts with.
fn known_label(text: &str) -> Option<usize> {
    // Each is one byte, so lengths stay the same.
    let lower = text.to_ascii_lowercase().replace(['_', '-'], " ");
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
        let Self { field, substring, equals } = self;
        match (substring.is_empty(), equals.is_empty()) {
            (true, false) => write!(f, "`{field}` is {equals}"),
            (false, false) => write!(f, "`{field}` has {substring} and is {equals}"),
            (_, true) => write!(f, "`{field}` has {substring}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(text: &str) -> When {
        serde_json::from_str(text).expect("the test's text is of the right shape")
    }

    #[test]
    fn one_of_several_texts_is_enough_and_the_line_is_compared_where_that_is_asked() {
        let brief = "- **Slug:** x\n- **Difficulty:** Very Hard\n  not a high one\n- **Do model:** opus-max\n  and why\n- **Risk:**\n  high\n";
        for (text, expected) in [
            (r#"{"field": "difficulty", "substring": ["high", "hard"]}"#, true),
            (r#"{"field": "difficulty", "substring": ["high"]}"#, false),
            (r#"{"field": "Risk", "substring": "high"}"#, false),
            (r#"{"field": "Do model", "substring": "and why"}"#, false),
            (r#"{"field": "difficulty", "substring": "hard"}"#, true),
            (r#"{"field": "Do model", "equals": "OPUS-MAX"}"#, true),
            (r#"{"field": "Do model", "equals": "opus"}"#, false),
            (r#"{"field": "Do model", "equals": ["opus", "opus-max"]}"#, true),
            (r#"{"field": "Do model", "substring": "opus", "equals": "opus"}"#, false),
            (r#"{"field": "nowhere", "equals": "x"}"#, false),
        ] {
            assert_eq!(when(text).holds_for(&Brief::parse(brief)), expected, "{text}");
        }
    }

    #[test]
    fn one_text_is_written_as_it_was_read() {
        for text in [r#"{"field":"a","substring":"b"}"#, r#"{"field":"a","equals":["b","c"]}"#] {
            assert_eq!(serde_json::to_string(&when(text)).unwrap(), text);
        }
    }

    #[test]
    fn a_condition_without_a_text_is_incomplete() {
        for (text, expected) in [
            (r#"{"field": "a"}"#, true),
            (r#"{"field": "", "equals": "b"}"#, true),
            (r#"{"field": "a", "substring": []}"#, true),
            (r#"{"field": "a", "substring": ["b", " "]}"#, true),
            (r#"{"field": "a", "equals": "b"}"#, false),
        ] {
            assert_eq!(when(text).is_incomplete(), expected, "{text}");
        }
    }
}
