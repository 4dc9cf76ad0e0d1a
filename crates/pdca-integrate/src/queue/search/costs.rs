//! What the gate runs of a search were good for, told from the end.
//!
//! Why a test is asked and what it is good for are two things. A prefix that turns out red and is narrowed
//! further decided nothing: it is the first sight of a red that a smaller set confirms. So a run is put
//! down where it served:
//!
//! - `decide`: the green run that let something land, and the red run that is the last word on a culprit. Each
//!   decides at least one change, so they are never more than the changes: what gating one by one costs.
//! - `confirm`: reds of larger sets that a smaller one confirms, and every run of a set that ran before.
//! - `explain`: runs of a suspect without some of what landed below it.
//! - `base`: the base, once.
//! - `spare`: runs that lanes which would have been idle did ahead, and that nothing needed.
//!
//! No search can promise that the runs *asked* to decide are never more than one by one: with n changes of which
//! any may be a culprit there are 2^n outcomes, a tree of questions of depth n has 2^n leaves only if all of them
//! are at depth n, and so whatever decides a green batch in one run needs more than n in some other case.

use std::collections::BTreeSet;

use super::decision::{Answer, Purpose};

/// Gate runs by what they were good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// The base, once.
    pub base: u32,
    /// Runs that decided about a change.
    pub decide: u32,
    /// Runs that saw a red again.
    pub confirm: u32,
    /// Runs that looked for the smallest red set.
    pub explain: u32,
    /// Runs ahead of need that were not needed.
    pub spare: u32,
}

impl Costs {
    /// All of them.
    pub fn total(&self) -> u32 {
        self.base + self.decide + self.confirm + self.explain + self.spare
    }
}

/// The runs of a search, in the order in which they were answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    runs: Vec<(Vec<usize>, Purpose, bool)>,
    /// Sets that landed, and sets that were the last word on a culprit.
    deciding: BTreeSet<Vec<usize>>,
}

impl Log {
    pub(super) fn ran(&mut self, places: &[usize], purpose: Purpose, answer: &Answer) {
        let is_green = match answer {
            Answer::Green => true,
            Answer::Red { .. } | Answer::Undecidable { .. } => false,
            Answer::Unfit(_) | Answer::Void => return,
        };
        self.runs.push((places.to_vec(), purpose, is_green));
    }

    pub(super) fn decided(&mut self, places: &[usize]) {
        self.deciding.insert(places.to_vec());
    }

    pub(super) fn costs(&self, base: &[usize]) -> Costs {
        let mut costs = Costs::default();
        let mut seen: BTreeSet<&[usize]> = BTreeSet::new();
        for (places, purpose, is_green) in &self.runs {
            let count = match purpose {
                _ if !seen.insert(places) => &mut costs.confirm,
                _ if places == base => &mut costs.base,
                _ if self.deciding.contains(places) => &mut costs.decide,
                Purpose::Explain => &mut costs.explain,
                Purpose::Decide if *is_green => &mut costs.spare,
                Purpose::Decide | Purpose::Confirm => &mut costs.confirm,
            };
            *count += 1;
        }
        costs
    }
}
