//! Costs: the gate runs of a search, sorted in hindsight by what they were good for.
//!
//! The purpose of a test when it is asked differs from its use. A prefix that turns out red and is narrowed
//! further decides nothing; it is the first sight of a red that a smaller set confirms. So each run is counted
//! where it served:
//!
//! - `decide`: a green run that let something land, and the red run that is the last word on a culprit. Each
//!   decides at least one change, so there are never more of them than gating one by one would need.
//! - `confirm`: reds of larger sets that a smaller one confirms, and every repeated run of a set.
//! - `explain`: runs of a suspect without some of what landed below it.
//! - `base`: the base, once.
//! - `spare`: runs ahead of need, in lanes that would have been idle, that turned out not to be needed.
//!
//! No search can guarantee that the runs *asked* to decide are never more than one by one. With n changes of
//! which any may be a culprit there are 2^n outcomes. A decision tree of depth n has 2^n leaves only if every
//! leaf is at depth n, so a search that decides a green batch in one run needs more than n runs in some other
//! case.

use std::collections::BTreeSet;

use super::decision::{TestAnswer, TestPurpose};

/// Gate runs by use; the module describes each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    pub base: u32,
    pub decide: u32,
    pub confirm: u32,
    pub explain: u32,
    pub spare: u32,
}

impl Costs {
    pub fn total(&self) -> u32 {
        self.base + self.decide + self.confirm + self.explain + self.spare
    }
}

/// The runs of a search, in the order in which they were answered.
#[derive(Debug, Clone, Default)]
pub(super) struct SearchLog {
    runs: Vec<(Vec<usize>, TestPurpose, bool)>,
    /// Sets that landed, and sets that were the last word on a culprit.
    deciding: BTreeSet<Vec<usize>>,
}

impl SearchLog {
    pub(super) fn ran(&mut self, places: &[usize], purpose: TestPurpose, answer: &TestAnswer) {
        let is_green = match answer {
            TestAnswer::Green => true,
            TestAnswer::Red { .. } | TestAnswer::Undecidable { .. } => false,
            TestAnswer::Unfit(_) | TestAnswer::Void => return,
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
                // In this order: a repeated run is a confirmation, whatever it was asked for.
                _ if !seen.insert(places) => &mut costs.confirm,
                _ if places == base => &mut costs.base,
                _ if self.deciding.contains(places) => &mut costs.decide,
                TestPurpose::Explain => &mut costs.explain,
                TestPurpose::Decide if *is_green => &mut costs.spare,
                TestPurpose::Decide | TestPurpose::Confirm => &mut costs.confirm,
            };
            *count += 1;
        }
        costs
    }
}
