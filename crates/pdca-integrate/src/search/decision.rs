//! What the search asks, hears and says.

use thiserror::Error;

/// The name of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestId(pub(super) u64);

/// A set of changes to be gated together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub id: TestId,
    /// The places in the plan, in order. None is the base itself.
    pub places: Vec<usize>,
    /// What it is for.
    pub purpose: Purpose,
    /// Whether the gates must run: an earlier verdict about the same tree is what is doubted.
    pub fresh: bool,
}

/// What a test is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Whether the base is green.
    Base,
    /// Whether everything is.
    Whole,
    /// Where the first red prefix ends.
    Prefix,
    /// Whether a change is red by itself.
    Alone,
    /// Whether a red is red again.
    Confirm,
    /// With which others a change is red.
    Explain,
}

/// What came of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The gates passed.
    Green,
    /// They did not.
    Red,
    /// The changes cannot be folded together, because of the one at this place.
    Unfit(usize),
    /// The gates could not be run, which says nothing.
    Void,
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
    /// With which others a held one is red: the smallest such set, none where it needs no other.
    Explained {
        /// The place of the held one.
        place: usize,
        /// The places of the others, in order.
        partners: Vec<usize>,
    },
    /// The same tree was red and then green. Nobody is blamed.
    Flake {
        /// What was gated.
        places: Vec<usize>,
    },
    /// A shorter prefix was red and a longer one green: what came between mends what was broken.
    /// What lands is the longer one, as it was gated.
    Mended {
        /// What was red.
        red: Vec<usize>,
        /// What was green.
        green: Vec<usize>,
    },
    /// The base is red by itself. Nobody is blamed and nothing lands.
    BaseRed,
    /// The gates could not be run, again and again.
    Stuck {
        /// For what.
        purpose: Purpose,
    },
}

/// Why a change is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// With it the gates are red.
    Culprit,
    /// It needs one that is held.
    Needs(usize),
    /// It cannot be folded onto what is left.
    Unfit,
}

/// A report about a test that was not asked for, or was answered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("nobody waits for test {}", .0.0)]
pub struct UnknownTest(pub TestId);
