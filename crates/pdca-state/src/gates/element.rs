//! The eleven elements of the check matrix.

use std::str::FromStr;

/// One element: five of the correctness chain, five of the conformance stack, and validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// The spec.
    C1,
    /// The reproduction: red before the fix.
    C2,
    /// The change.
    C3,
    /// The verification: red to green.
    C4,
    /// Causal adequacy.
    C5,
    /// Structure.
    T1,
    /// Shape.
    T2,
    /// Runtime.
    T3,
    /// Contribution.
    T4,
    /// Judgment.
    T5,
    /// Validation: fitness to purpose.
    V,
}

/// Who settles an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// It is given to the check.
    Input,
    /// A configured row settles it.
    Gate,
    /// The reviewer and the person at sign-off settle it.
    Judgment,
}

/// A text that names no element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no element of the check matrix (C1 to C5, T1 to T5, V)")]
pub struct ElementError {
    /// What was given.
    pub given: String,
}

impl Element {
    /// All eleven, in the order of every report.
    pub const ALL: [Element; 11] = [
        Element::C1,
        Element::C2,
        Element::C3,
        Element::C4,
        Element::C5,
        Element::T1,
        Element::T2,
        Element::T3,
        Element::T4,
        Element::T5,
        Element::V,
    ];

    /// The short name, `C4`.
    pub fn as_str(self) -> &'static str {
        match self {
            Element::C1 => "C1",
            Element::C2 => "C2",
            Element::C3 => "C3",
            Element::C4 => "C4",
            Element::C5 => "C5",
            Element::T1 => "T1",
            Element::T2 => "T2",
            Element::T3 => "T3",
            Element::T4 => "T4",
            Element::T5 => "T5",
            Element::V => "V",
        }
    }

    /// How reports and reviews call it.
    pub fn title(self) -> &'static str {
        match self {
            Element::C1 => "C1 Spec",
            Element::C2 => "C2 Reproduction (red pre-fix)",
            Element::C3 => "C3 Change",
            Element::C4 => "C4 Verification (red→green)",
            Element::C5 => "C5 Causal adequacy",
            Element::T1 => "T1 Structure",
            Element::T2 => "T2 Shape",
            Element::T3 => "T3 Runtime",
            Element::T4 => "T4 Contribution",
            Element::T5 => "T5 Judgment",
            Element::V => "Validation — fitness-to-purpose",
        }
    }

    /// Who settles it.
    pub fn kind(self) -> ElementKind {
        match self {
            Element::C1 | Element::C3 => ElementKind::Input,
            Element::C2 | Element::C4 | Element::T1 | Element::T2 | Element::T3 | Element::T4 => {
                ElementKind::Gate
            }
            Element::C5 | Element::T5 | Element::V => ElementKind::Judgment,
        }
    }

    /// What decides it where no row is configured.
    pub fn default_oracle(self) -> &'static str {
        match self {
            Element::C1 => "brief.md",
            Element::C3 => "patch.diff",
            Element::C5 | Element::T5 => "reviewer + human sign-off",
            Element::V => "human at sign-off",
            Element::C2 | Element::C4 | Element::T1 | Element::T2 | Element::T3 | Element::T4 => {
                "(no gate configured)"
            }
        }
    }

    /// Its place in [`Self::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }
}

impl FromStr for Element {
    type Err = ElementError;

    fn from_str(text: &str) -> Result<Self, ElementError> {
        Element::ALL
            .into_iter()
            .find(|element| element.as_str() == text)
            .ok_or_else(|| ElementError { given: text.to_owned() })
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
