//! The eleven elements of the check matrix.

use std::str::FromStr;

/// One element: five of the correctness chain, five of the conformance stack, and validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// Correctness: the specification, `brief.md`.
    C1,
    /// Correctness: the reproduction, which fails before the fix.
    C2,
    /// Correctness: the change, `patch.diff`.
    C3,
    /// Correctness: the verification, which passes after the fix.
    C4,
    /// Correctness: causal adequacy, judged by people.
    C5,
    /// Conformance: the structure of the code.
    T1,
    /// Conformance: the shape of the change.
    T2,
    /// Conformance: the runtime, usually the test suite.
    T3,
    /// Conformance: the rules for contributions.
    T4,
    /// Conformance: judgment by people.
    T5,
    /// Validation: fitness for purpose.
    V,
}

/// The party that decides an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// An input of the check; there is nothing to decide.
    Input,
    /// A configured gate decides.
    Gate,
    /// The reviewer and the person at sign-off decide.
    Judgment,
}

/// The error of parsing an [`Element`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an element of the check matrix (C1 to C5, T1 to T5, V)")]
pub struct ElementError {
    /// The text that is not an element.
    pub given: String,
}

impl Element {
    /// All eleven elements, in the order of every report.
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

    /// The short name, such as `C4`.
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

    /// The title in reports and reviews.
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

    /// The subject of the element in plain words, to be shown beside its code.
    pub fn plain(self) -> &'static str {
        match self {
            Element::C1 => "the spec",
            Element::C2 => "red before the change",
            Element::C3 => "the change",
            Element::C4 => "green after the change",
            Element::C5 => "the cause",
            Element::T1 => "structure",
            Element::T2 => "shape",
            Element::T3 => "all tests",
            Element::T4 => "contribution rules",
            Element::T5 => "judgment",
            Element::V => "fitness for purpose",
        }
    }

    /// The party that decides the element.
    pub fn kind(self) -> ElementKind {
        match self {
            Element::C1 | Element::C3 => ElementKind::Input,
            Element::C2 | Element::C4 | Element::T1 | Element::T2 | Element::T3 | Element::T4 => {
                ElementKind::Gate
            }
            Element::C5 | Element::T5 | Element::V => ElementKind::Judgment,
        }
    }

    /// The oracle of the row if nothing is configured.
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

    /// The index in [`Self::ALL`].
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
