//! The laws of the search, checked over random batches against brute force.
//!
//! A sample has up to 32 changes with dependencies and up to three bad sets: 60 % single changes, 30 % pairs and 10 %
//! triples, which may overlap, a tenth of them mended by another change. It is integrated as one batch, then in
//! several batches, then a second and a third time.

use std::collections::{BTreeMap, BTreeSet};

use super::simulation::{Bad, Dice, Lanes, Report, Scenario, carry_out};
use crate::queue::search::{CulpritMemory, HoldReason, Known, Search, SearchSetup};

/// The results of many samples.
#[derive(Debug, Clone, Default)]
pub struct IntegrationTally {
    pub samples: usize,
    /// The number of culprits named, over all integrations.
    pub named: usize,
    /// The number of culprits named with exactly a smallest red set.
    pub exact: usize,
    /// The costs of batches in which something was held.
    pub red: Runs,
    /// The costs of such batches with nine changes and more.
    pub large: Runs,
    /// The violated laws, each with its sample.
    pub broken: Vec<String>,
}

/// Gate runs compared with gating one by one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Runs {
    /// The runs of the search.
    pub search: usize,
    /// The runs of gating one by one, with the base.
    pub one_by_one: usize,
}

impl Runs {
    /// Returns the runs of the search relative to gating one by one.
    pub fn ratio(self) -> f64 {
        let float = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        float(self.search) / float(self.one_by_one.max(1))
    }

    fn add(&mut self, search: usize, one_by_one: usize) {
        self.search += search;
        self.one_by_one += one_by_one;
    }
}

pub fn sample(dice: &mut Dice) -> Scenario {
    let count = 1 + dice.below(32);
    let mut bad = Vec::new();
    for _ in 0..dice.below(4) {
        let size = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3][dice.below(10)].min(count);
        let mut set = BTreeSet::new();
        while set.len() < size {
            set.insert(dice.below(count));
        }
        let mender = dice.below(count);
        let is_mended = dice.in_thousand(100) && !set.contains(&mender);
        bad.push(Bad { set, mended_by: is_mended.then_some(mender) });
    }
    let mut need = |place: usize| match place {
        0 => Vec::new(),
        _ if dice.in_thousand(150) => vec![dice.below(place)],
        _ => Vec::new(),
    };
    let needs = (0..count).map(&mut need).collect();
    Scenario { needs, landed_before: 0, bad }
}

/// Checks `samples` samples drawn from a seed.
pub fn check(seed: u64, samples: usize) -> IntegrationTally {
    let mut tally = IntegrationTally { samples, ..IntegrationTally::default() };
    for number in 0..samples {
        // Each sample has its own dice, so that it does not depend on the number of throws of another one.
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let scenario = sample(&mut dice);
        tally.check_batch(&scenario);
        tally.check_lanes(&scenario, &mut dice);
        tally.check_again(&scenario, 1 + dice.below(12));
    }
    tally
}

impl IntegrationTally {
    /// Checks one batch with one lane: what lands, which culprits are named, and the costs.
    fn check_batch(&mut self, scenario: &Scenario) {
        let report = carry_out(Search::new(scenario.setup()), Lanes::InStep(1), |test| {
            scenario.answer(test)
        });
        let (landed, runs) = scenario.one_by_one();
        self.landed_as(scenario, &landed, &report.landed);
        self.explained_exactly(scenario, &report);
        let costs = report.costs;
        self.law(costs.decide as usize <= runs, || {
            format!("{costs:?} to decide, {runs} one by one: {scenario:?}")
        });
        // Reds of larger sets that a smaller set confirms are counted separately, although they narrow the line
        // as well. So for a named set of three, the runs saved against one by one may be spent on it, plus two.
        let triples = report.explained.values().filter(|partners| partners.len() > 1).count();
        let saved = runs.saturating_sub(costs.decide as usize) * triples.min(1);
        let allowed = allowance(scenario.needs.len(), report.explained.len()) + saved + 2 * triples;
        let beside = (costs.confirm + costs.explain) as usize;
        self.law(beside <= allowed, || {
            format!("{costs:?} where {allowed} are allowed beside: {scenario:?}")
        });
        self.law(report.most_of_one <= 2, || {
            format!("a set was gated {} times: {scenario:?}", report.most_of_one)
        });
        self.law(costs.spare == 0, || format!("{costs:?} with one lane: {scenario:?}"));
        if report.held.is_empty() {
            let expected = 2;
            self.law(report.runs == expected, || {
                format!("a green batch took {} runs: {scenario:?}", report.runs)
            });
            return;
        }
        self.red.add(report.runs, runs + 1);
        if scenario.needs.len() >= 9 {
            self.large.add(report.runs, runs + 1);
        }
    }

    /// Checks that several lanes, with answers in any order, yield the same result.
    fn check_lanes(&mut self, scenario: &Scenario, dice: &mut Dice) {
        if scenario.bad.iter().any(|bad| bad.mended_by.is_some()) {
            return;
        }
        let search = || Search::new(scenario.setup());
        let gate = |test: &crate::queue::search::Test| scenario.answer(test);
        let one = carry_out(search(), Lanes::InStep(1), gate);
        let lanes = 2 + dice.below(7);
        for report in [
            carry_out(search(), Lanes::InStep(lanes), gate),
            carry_out(search(), Lanes::AtRandom(lanes, dice), gate),
        ] {
            let is_same = (&report.landed, &report.held, &report.explained)
                == (&one.landed, &one.held, &one.explained);
            self.law(is_same, || format!("{lanes} lanes decide otherwise: {scenario:?}"));
        }
    }

    /// Checks integration in batches, repeated: explanations stay the same, and remembered culprits cost no run.
    fn check_again(&mut self, scenario: &Scenario, size: usize) {
        let mut memory = CulpritMemory::default();
        let mut landed = Vec::new();
        let mut named: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for time in 0..3 {
            let again = in_batches(scenario, size, &mut landed, &mut memory);
            self.law(time == 0 || again.runs == 0, || {
                format!("integrating again took {} runs: {scenario:?}", again.runs)
            });
            for (culprit, partners) in &again.explained {
                self.named += 1;
                self.exact += usize::from(scenario.is_exact(*culprit, partners));
                let before = named.insert(*culprit, partners.clone());
                self.law(before.is_none_or(|before| before == *partners), || {
                    format!("{culprit} has other partners the next time: {scenario:?}")
                });
            }
        }
        let (expected, _) = scenario.one_by_one();
        let mut all = landed.clone();
        all.sort_unstable();
        self.landed_as(scenario, &expected, &all);
        // Without a memory the search runs again and finds the same.
        let forgetful = in_batches(scenario, size, &mut landed, &mut CulpritMemory::default());
        for (culprit, partners) in &forgetful.explained {
            self.named += 1;
            self.exact += usize::from(scenario.is_exact(*culprit, partners));
        }
    }

    fn landed_as(&mut self, scenario: &Scenario, expected: &[usize], landed: &[usize]) {
        let is_mended = scenario.bad.iter().any(|bad| bad.mended_by.is_some());
        let is_right = landed == expected || (is_mended && landed.len() >= expected.len());
        self.law(is_right && !scenario.is_red(landed), || {
            format!("{landed:?} landed, one by one {expected:?}: {scenario:?}")
        });
    }

    fn explained_exactly(&mut self, scenario: &Scenario, report: &Report) {
        for (place, why) in &report.held {
            let partners = report.explained.get(place);
            self.law(partners.is_some() == matches!(why, HoldReason::Culprit(_)), || {
                format!("{place} is held and not explained: {scenario:?}")
            });
            if let Some(partners) = partners {
                self.named += 1;
                self.exact += usize::from(scenario.is_exact(*place, partners));
            }
        }
    }

    fn law(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(text());
        }
    }
}

/// Returns the number of runs allowed for confirming and explaining culprits: 2 + 2 log2 n for each.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is small and not negative"
)]
fn allowance(count: usize, culprits: usize) -> usize {
    let float = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    (float(culprits) * (2.0 + 2.0 * float(count).log2())) as usize
}

/// Integrates what has not landed yet, in batches, in the order of places. `landed` holds what landed so far,
/// in order.
fn in_batches(
    scenario: &Scenario,
    size: usize,
    landed: &mut Vec<usize>,
    memory: &mut CulpritMemory,
) -> Report {
    let mut total = Report::default();
    let waiting: Vec<usize> =
        (0..scenario.needs.len()).filter(|change| !landed.contains(change)).collect();
    for batch in waiting.chunks(size) {
        let may_land = |change: &usize, taken: &[usize]| {
            scenario.needs[*change].iter().all(|need| taken.contains(need))
        };
        let before = landed.len();
        let mut changes = landed.clone();
        for change in batch {
            if may_land(change, &changes) {
                changes.push(*change);
            }
        }
        let place = |change: &usize| changes.iter().position(|other| other == change);
        let needs = changes
            .iter()
            .map(|change| scenario.needs[*change].iter().filter_map(place).collect())
            .collect();
        let names: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let setup = SearchSetup::new(needs)
            .landed_before(before)
            .with_green_base(before > 0)
            .with_known(memory.recall(&names, "gates"));
        let report = carry_out(Search::new(setup), Lanes::InStep(1), |test| {
            let mut places: Vec<usize> = test.places.iter().map(|place| changes[*place]).collect();
            places.sort_unstable();
            scenario.answer(&crate::queue::search::Test { places, ..test.clone() })
        });
        for culprit in &report.culprits {
            memory.learn(Known::new(culprit, &names, "gates", None));
        }
        for (culprit, partners) in &report.explained {
            let partners = partners.iter().map(|partner| changes[*partner]).collect();
            total.explained.insert(changes[*culprit], partners);
        }
        landed.extend(report.landed.iter().map(|place| changes[*place]));
        total.runs += report.runs;
    }
    total
}
