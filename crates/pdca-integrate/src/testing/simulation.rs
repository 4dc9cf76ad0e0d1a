//! Simulation: searches over synthetic batches, without gates.
//!
//! A [`Scenario`] defines which sets are red. [`carry_out`] answers a search from it, with all lanes in step or
//! each at its own pace. [`Scenario::one_by_one`] computes what gating one by one would let land.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::search::{
    Costs, Culprit, HoldReason, Search, SearchDecision, SearchSetup, Test, TestAnswer, TestId,
    TestRemarks,
};

/// Changes with bad sets: every set that contains one of those is red.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// For each change, the places of the changes that it needs.
    pub needs: Vec<Vec<usize>>,
    /// The number of changes that landed before the batch.
    pub landed_before: usize,
    pub bad: Vec<Bad>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bad {
    pub set: BTreeSet<usize>,
    /// The place that turns the set green again.
    pub mended_by: Option<usize>,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The places of the batch that landed, sorted.
    pub landed: Vec<usize>,
    pub held: BTreeMap<usize, HoldReason>,
    /// The partners of each culprit.
    pub explained: BTreeMap<usize, Vec<usize>>,
    /// The changes that could not be left out, for each culprit.
    pub context: BTreeMap<usize, Vec<usize>>,
    /// The most runs of one set.
    pub most_of_one: usize,
    /// The most runs in total, as told at the beginning of each run.
    pub told: Vec<usize>,
    pub decisions: Vec<SearchDecision>,
    pub culprits: Vec<Culprit>,
    /// The number of gate runs.
    pub runs: usize,
    /// The number of times that the simulation waited for gates.
    pub rounds: usize,
    /// The number of waits up to the last landing.
    pub rounds_to_land: usize,
    pub costs: Costs,
}

impl Scenario {
    /// Returns a batch of independent changes with these bad sets.
    pub fn of(count: usize, bad: &[&[usize]]) -> Self {
        let bad = bad.iter().map(|set| Bad::from(*set)).collect();
        Self { needs: vec![Vec::new(); count], landed_before: 0, bad }
    }

    pub fn setup(&self) -> SearchSetup {
        SearchSetup::new(self.needs.clone()).landed_before(self.landed_before)
    }

    /// Returns true if the gates fail for these places.
    pub fn is_red(&self, places: &[usize]) -> bool {
        self.bad.iter().any(|bad| {
            bad.set.iter().all(|place| places.contains(place))
                && !bad.mended_by.is_some_and(|mender| places.contains(&mender))
        })
    }

    pub fn answer(&self, test: &Test) -> TestAnswer {
        if self.is_red(&test.places) { TestAnswer::red() } else { TestAnswer::Green }
    }

    /// Returns what lands when gating one by one, and the number of runs for it without the base.
    pub fn one_by_one(&self) -> (Vec<usize>, usize) {
        let mut below: Vec<usize> = (0..self.landed_before).collect();
        let mut runs = 0;
        for place in self.landed_before..self.needs.len() {
            if !self.needs[place].iter().all(|need| below.contains(need)) {
                continue;
            }
            runs += 1;
            let mut with = below.clone();
            with.push(place);
            if !self.is_red(&with) {
                below = with;
            }
        }
        (below.split_off(self.landed_before), runs)
    }

    /// Returns the places and everything that they need, sorted.
    // Not the search's own function: the oracle must not share its mistakes.
    pub fn closure(&self, places: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut found = BTreeSet::new();
        let mut open: Vec<usize> = places.into_iter().collect();
        while let Some(place) = open.pop() {
            if found.insert(place) {
                open.extend(&self.needs[place]);
            }
        }
        found.into_iter().collect()
    }

    /// Returns true if a culprit and its partners are red together, and green without any one of them.
    pub fn is_exact(&self, culprit: usize, partners: &[usize]) -> bool {
        let named: Vec<usize> = partners.iter().copied().chain([culprit]).collect();
        let can_do_without = |left_out: &usize| {
            let needs_it = |place: &usize| self.closure([*place]).contains(left_out);
            let fewer = named.iter().copied().filter(|place| !needs_it(place));
            self.is_red(&self.closure(fewer))
        };
        self.is_red(&self.closure(named.iter().copied())) && !named.iter().any(can_do_without)
    }
}

impl From<&[usize]> for Bad {
    fn from(set: &[usize]) -> Self {
        Self { set: set.iter().copied().collect(), mended_by: None }
    }
}

/// The timing of the lanes.
#[derive(Debug)]
pub enum Lanes<'d> {
    /// All gates take the same time.
    InStep(usize),
    /// Each run takes a random time, and useless ones are cancelled.
    AtRandom(usize, &'d mut Dice),
}

/// Runs a search to its end.
///
/// # Panics
///
/// If the search violates its contract: more tests than lanes, a landing that was not gated green, a change that is
/// decided twice, or no end.
pub fn carry_out(
    search: Search,
    lanes: Lanes<'_>,
    mut gate: impl FnMut(&Test) -> TestAnswer,
) -> Report {
    carry_out_with(search, lanes, |test, _| (gate(test), TestRemarks::default()))
}

/// Like [`carry_out`], with gates that know what landed so far and see more than a light.
///
/// # Panics
///
/// As [`carry_out`].
pub fn carry_out_with(
    mut search: Search,
    lanes: Lanes<'_>,
    mut gate: impl FnMut(&Test, &[usize]) -> (TestAnswer, TestRemarks),
) -> Report {
    let mut report = Report::default();
    let mut green: BTreeSet<Vec<usize>> = BTreeSet::new();
    let mut running: BTreeMap<TestId, (TestAnswer, TestRemarks)> = BTreeMap::new();
    let mut runs_of: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let (count, mut dice) = match lanes {
        Lanes::InStep(count) => (count, None),
        Lanes::AtRandom(count, dice) => (count, Some(dice)),
    };
    loop {
        take_decisions(&mut search, &green, &mut report);
        for id in search.cancelled() {
            running.remove(&id);
        }
        let tests = search.next_tests(count - running.len());
        assert!(tests.len() + running.len() <= count, "more tests than lanes: {tests:?}");
        for test in tests {
            let answer = gate(&test, &report.landed);
            if !matches!(answer.0, TestAnswer::Unfit(_)) {
                report.runs += 1;
                let runs = runs_of.entry(test.places.clone()).or_default();
                *runs += 1;
                report.most_of_one = report.most_of_one.max(*runs);
                let left = usize::try_from(search.most_runs_left()).unwrap_or(usize::MAX);
                report.told.push(report.runs - 1 + left);
            }
            if answer.0 == TestAnswer::Green {
                green.insert(test.places.clone());
            }
            running.insert(test.id, answer);
        }
        if running.is_empty() {
            break;
        }
        assert!(report.runs < 5000, "it does not end: {search:?}");
        report.rounds += 1;
        match &mut dice {
            None => {
                for (id, (answer, seen)) in std::mem::take(&mut running) {
                    search.report_with(id, &answer, &seen).expect("because it was asked for");
                }
                // All gates of a round take the same time, so a test that was cancelled in it has run as well.
                drop(search.cancelled());
            }
            Some(dice) => {
                let number = dice.below(running.len());
                let id = *running.keys().nth(number).expect("because it is below the length");
                let (answer, seen) = running.remove(&id).expect("because the key is there");
                search.report_with(id, &answer, &seen).expect("because it was asked for");
            }
        }
    }
    assert!(search.is_done(), "it stopped half-way: {search:?}");
    report.landed.sort_unstable();
    report.culprits = search.culprits().to_vec();
    report.costs = search.costs();
    report
}

fn take_decisions(search: &mut Search, green: &BTreeSet<Vec<usize>>, report: &mut Report) {
    for decision in search.decisions() {
        match &decision {
            SearchDecision::Land { places, gated } => {
                assert!(green.contains(gated), "not gated green: {gated:?}");
                assert!(places.iter().all(|place| !report.landed.contains(place)), "landed twice");
                report.landed.extend(places);
                report.rounds_to_land = report.rounds;
            }
            SearchDecision::Hold { place, why } => {
                assert_eq!(report.held.insert(*place, *why), None, "held twice");
            }
            SearchDecision::Explained { place, partners, context, .. } => {
                assert!(report.held.contains_key(place), "explained and not held");
                report.context.insert(*place, context.clone());
                assert_eq!(report.explained.insert(*place, partners.clone()), None);
            }
            SearchDecision::Flake { .. }
            | SearchDecision::Mended { .. }
            | SearchDecision::BaseRed
            | SearchDecision::Stuck { .. } => {}
        }
        report.decisions.push(decision);
    }
}

/// A small deterministic random number generator.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `limit`, or zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = usize::try_from((word ^ (word >> 31)) >> 33).unwrap_or(0);
        word % limit.max(1)
    }

    /// Returns true with a probability of `often` in a thousand.
    pub fn in_thousand(&mut self, often: usize) -> bool {
        self.below(1000) < often
    }
}
