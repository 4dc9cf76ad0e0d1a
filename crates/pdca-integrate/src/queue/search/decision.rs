//! The questions, answers and decisions of a search.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestId(pub(super) u64);

/// A set of changes to be gated together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub id: TestId,
    /// The places of the changes, in order, on top of where the integration began. A set with every
    /// place that [landed before](super::Setup::landed_before) is what would land; any other one is
    /// only asked to explain.
    pub places: Vec<usize>,
    /// Why it is asked.
    pub purpose: Purpose,
    /// Whether the gates must run, because an earlier verdict about the same tree is in doubt.
    pub fresh: bool,
}

/// Why a test is asked. [`Costs`](super::Costs) says afterwards what it was good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To decide who lands: the base, or a prefix of the line.
    Decide,
    /// To see a red again.
    Confirm,
    /// To find the smallest set that is red.
    Explain,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The gates passed.
    Green,
    /// They failed.
    Red {
        /// The rows that failed.
        rows: Vec<String>,
    },
    /// No row failed, and some came to no verdict.
    Undecidable {
        /// The rows without a verdict.
        rows: Vec<String>,
    },
    /// The changes cannot be folded together, because of the one at this place.
    Unfit(usize),
    /// The gates could not be run, which says nothing about the changes.
    Void,
}

impl Answer {
    /// A red answer of which the rows are not known.
    pub fn red() -> Self {
        Self::Red { rows: Vec::new() }
    }
}

/// What a culprit does to the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// With it they fail.
    Red,
    /// With it they come to no verdict.
    Undecidable,
}

/// What the search has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// These may land, on top of what landed before: the tree was gated green.
    Land {
        /// The places that are new.
        places: Vec<usize>,
        /// All that was gated together, in order.
        gated: Vec<usize>,
    },
    /// This one does not land.
    Hold {
        /// Its place.
        place: usize,
        /// Why.
        why: Why,
    },
    /// The smallest set with which a culprit is red, confirmed. Follows its [`Decision::Hold`].
    Explained {
        /// The place of the culprit.
        place: usize,
        /// The places of its partners, in order; none where it needs no other.
        partners: Vec<usize>,
        /// The rows that fail, or come to no verdict, with exactly this set.
        rows: Vec<String>,
        /// Whether this was known before and no gates ran for it.
        recalled: bool,
    },
    /// The same tree was red and green. Nobody is blamed.
    Flake {
        /// What was gated.
        places: Vec<usize>,
        /// The rows that were not red both times.
        rows: Vec<String>,
    },
    /// A shorter prefix was red and a longer one green: what came between mends what was broken.
    /// The longer one lands, as it was gated.
    Mended {
        /// What was red.
        red: Vec<usize>,
        /// What was green.
        green: Vec<usize>,
    },
    /// The base is red by itself. Nobody is blamed and nothing lands.
    BaseRed,
    /// The gates could not be run, or came to no verdict about the base, again and again.
    Stuck {
        /// For what.
        purpose: Purpose,
        /// The rows without a verdict.
        rows: Vec<String>,
    },
}

/// Why a change is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// With it the gates are red, or come to no verdict.
    Culprit(Fault),
    /// It needs one that is held.
    Needs(usize),
    /// It cannot be folded onto what is left.
    Unfit,
}

/// A report about a test that was not asked for, or was answered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("test {} is not in flight", .0.0)]
pub struct UnknownTest(pub TestId);
