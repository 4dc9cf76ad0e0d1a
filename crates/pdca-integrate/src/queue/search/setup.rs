//! The input of a search.

use super::{flake::FlakeRules, memory::Culprit};

/// The changes of a batch, and earlier knowledge about them.
///
/// Places are numbers: first the changes that landed since the integration began, in the order in which they landed,
/// then those of the batch, in the order of the plan.
///
/// ```
/// use pdca_integrate::{Search, SearchSetup};
/// // Two changes landed in an earlier batch; of three new ones the last needs the first.
/// let needs = vec![vec![], vec![], vec![], vec![], vec![2]];
/// let mut search = Search::new(SearchSetup::new(needs).landed_before(2).with_green_base(true));
/// assert_eq!(search.next_tests(1)[0].places, [0, 1, 2, 3, 4]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct SearchSetup {
    pub(super) needs: Vec<Vec<usize>>,
    pub(super) landed_before: usize,
    pub(super) base_is_green: bool,
    pub(super) known: Vec<Culprit>,
    pub(super) flakes: FlakeRules,
    pub(super) gates_each: bool,
}

impl SearchSetup {
    /// Takes, for each place, the earlier places that it needs.
    pub fn new(needs: Vec<Vec<usize>>) -> Self {
        Self { needs, ..Self::default() }
    }

    /// Declares that the first `count` places landed before this batch. They are part of every candidate and
    /// are left out only to explain a culprit.
    #[must_use]
    pub fn landed_before(mut self, count: usize) -> Self {
        self.landed_before = count.min(self.needs.len());
        self
    }

    /// Declares whether the base, with everything that landed before, is known to be green.
    #[must_use]
    pub fn with_green_base(mut self, is_green: bool) -> Self {
        self.base_is_green = is_green;
        self
    }

    /// Sets the culprits that earlier searches found.
    #[must_use]
    pub fn with_known(mut self, known: Vec<Culprit>) -> Self {
        self.known = known;
        self
    }

    #[must_use]
    pub fn with_flakes(mut self, flakes: FlakeRules) -> Self {
        self.flakes = flakes;
        self
    }

    /// Requires each change to be green on top of exactly what landed before it, so that every step of the
    /// branch is green and not only its tip.
    #[must_use]
    pub fn gating_each(mut self, is_asked: bool) -> Self {
        self.gates_each = is_asked;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::SearchSetup;
    use crate::queue::search::{Search, TestAnswer};
    use crate::testing::simulation::{Lanes, Scenario, carry_out};

    #[test]
    fn where_each_step_is_gated_every_change_lands_on_a_green_one_and_by_itself() {
        for lanes in [1, 3] {
            let scenario = Scenario::of(8, &[&[2, 5]]);
            let setup = scenario.setup().with_green_base(true).gating_each(true);
            let mut green = vec![Vec::new()];
            let report = carry_out(Search::new(setup), Lanes::InStep(lanes), |test| {
                let answer = scenario.answer(test);
                if answer == TestAnswer::Green {
                    green.push(test.places.clone());
                }
                answer
            });
            assert_eq!(report.landed, [0, 1, 2, 3, 4, 6, 7], "{lanes} lanes");
            assert_eq!(report.explained[&5], [2], "{lanes} lanes");
            for length in 1..=report.landed.len() {
                let step = report.landed[..length].to_vec();
                assert!(green.contains(&step), "{step:?} landed ungated, {lanes} lanes");
            }
        }
    }

    #[test]
    fn where_each_step_is_gated_a_change_that_only_a_later_one_mends_is_held() {
        // The first is red without the second; both together are green.
        let gate = |places: &[usize]| !places.contains(&0) || places.contains(&1);
        let land = |each: bool| {
            let setup =
                SearchSetup::new(vec![Vec::new(); 2]).with_green_base(true).gating_each(each);
            let report = carry_out(Search::new(setup), Lanes::InStep(1), |test| {
                if gate(&test.places) { TestAnswer::Green } else { TestAnswer::red() }
            });
            report.landed
        };
        assert_eq!(land(false), [0, 1]);
        assert_eq!(land(true), [1]);
    }
}
