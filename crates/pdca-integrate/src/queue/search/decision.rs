//! Tests, answers and decisions of a search.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The identifier of a test within its search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestId(pub(super) u64);

/// A set of changes to be gated together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    pub id: TestId,
    /// The places of the changes, sorted. A set that contains every place that
    /// [landed before](super::SearchSetup::landed_before) is a candidate for landing; any other set only serves to explain.
    pub places: Vec<usize>,
    pub purpose: TestPurpose,
    /// Requires a gate run even if the tree has a verdict, because that verdict is in doubt.
    pub fresh: bool,
}

/// The purpose of a test when it is asked. [`Costs`](super::Costs) tells afterwards what it was good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestPurpose {
    /// Decides what lands: the base, or a prefix of the line.
    Decide,
    /// Repeats a red.
    Confirm,
    /// Looks for the smallest red set.
    Explain,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestAnswer {
    Green,
    Red {
        rows: Vec<String>,
    },
    /// No row failed, but some came to no verdict.
    Undecidable {
        rows: Vec<String>,
    },
    /// The changes cannot be folded together; the change at this place does not fit.
    Unfit(usize),
    /// The gates could not be run, which says nothing about the changes.
    Void,
}

/// Facts about a test beside its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestRemarks {
    /// The places outside of the test that could not be left out of its tree as a whole: the test folds only with their
    /// version of some files.
    pub context: Vec<usize>,
    /// The places that the evidence of a red points to, most likely first: they added or touched the failing test, or a
    /// file that its message names.
    pub witnesses: Vec<usize>,
}

impl TestAnswer {
    /// Returns a red answer whose rows are unknown.
    pub fn red() -> Self {
        Self::Red { rows: Vec::new() }
    }
}

/// The effect of a culprit on the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CulpritEffect {
    Red,
    /// The gates come to no verdict.
    Undecidable,
}

/// A decision of the search, to be carried out by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchDecision {
    /// Land these changes on top of earlier landings: the tree was gated green.
    Land {
        /// The new places.
        places: Vec<usize>,
        /// Everything that was gated together, sorted.
        gated: Vec<usize>,
    },
    /// Hold this change.
    Hold { place: usize, why: HoldReason },
    /// The smallest set with which a culprit is red, confirmed. Follows the culprit's [`SearchDecision::Hold`].
    Explained {
        place: usize,
        /// The places of its partners, sorted; empty if it is red alone.
        partners: Vec<usize>,
        /// The places that could not be left out and are not to blame, sorted.
        context: Vec<usize>,
        /// The rows that fail, or come to no verdict, with exactly this set.
        rows: Vec<String>,
        /// True if this was remembered and no gate ran for it.
        recalled: bool,
    },
    /// The same tree was red and then green. No change is blamed.
    Flake {
        places: Vec<usize>,
        /// The rows that were not red both times.
        rows: Vec<String>,
    },
    /// A prefix was red and a longer one green, so a change between them mends what was broken. The longer one
    /// lands as it was gated.
    Mended { red: Vec<usize>, green: Vec<usize> },
    /// The base is red by itself. No change is blamed and nothing lands.
    BaseRed,
    /// The gates repeatedly could not be run, or came to no verdict about the base.
    Stuck {
        purpose: TestPurpose,
        /// The rows without a verdict.
        rows: Vec<String>,
    },
}

/// The reasons for holding a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// With it the gates are red or come to no verdict.
    Culprit(CulpritEffect),
    /// It needs the held change at this place.
    Needs(usize),
    /// It cannot be folded onto the rest.
    Unfit,
}

/// The report of a test that is not in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("test {} is not in flight", .0.0)]
pub struct UnknownTest(pub TestId);
