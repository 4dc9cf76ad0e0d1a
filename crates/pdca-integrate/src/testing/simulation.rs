//! Searches over made-up batches, carried out without gates.
//!
//! A [`Scenario`] says which sets are red. [`carry_out`] answers a search from it, all lanes in step or each
//! at a pace of its own, and [`Scenario::one_by_one`] says what the slow way would let land.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::search::{Answer, Costs, Culprit, Decision, Search, Setup, Test, TestId, Why};

/// Changes of which some sets are bad: whatever contains one of them is red.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// For each change the places of those that it needs.
    pub needs: Vec<Vec<usize>>,
    /// How many of them landed before the batch.
    pub landed_before: usize,
    /// The bad sets.
    pub bad: Vec<Bad>,
}

/// A set that is red.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bad {
    /// The places of the set.
    pub set: BTreeSet<usize>,
    /// With this one it is green again.
    pub mended_by: Option<usize>,
}

/// What a search came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What landed in the batch, in order of place.
    pub landed: Vec<usize>,
    /// What was held.
    pub held: BTreeMap<usize, Why>,
    /// The partners of the culprits.
    pub explained: BTreeMap<usize, Vec<usize>>,
    /// All decisions, in order.
    pub decisions: Vec<Decision>,
    /// The culprits, as they are remembered.
    pub culprits: Vec<Culprit>,
    /// How often the gates ran.
    pub runs: usize,
    /// How often one had to wait for gates.
    pub rounds: usize,
    /// How often until the last landing.
    pub rounds_to_land: usize,
    /// What the runs were good for.
    pub costs: Costs,
}

impl Scenario {
    /// A batch of changes that need nothing, of which these sets are bad.
    pub fn of(count: usize, bad: &[&[usize]]) -> Self {
        let bad = bad.iter().map(|set| Bad::from(*set)).collect();
        Self { needs: vec![Vec::new(); count], landed_before: 0, bad }
    }

    /// What a search of it starts from.
    pub fn setup(&self) -> Setup {
        Setup::new(self.needs.clone()).landed_before(self.landed_before)
    }

    /// Whether the gates fail for these places.
    pub fn is_red(&self, places: &[usize]) -> bool {
        self.bad.iter().any(|bad| {
            bad.set.iter().all(|place| places.contains(place))
                && !bad.mended_by.is_some_and(|mender| places.contains(&mender))
        })
    }

    /// The answer of the gates.
    pub fn answer(&self, test: &Test) -> Answer {
        if self.is_red(&test.places) { Answer::red() } else { Answer::Green }
    }

    /// What gating one by one lets land, and how many runs that takes without the base.
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

    /// The places and all that they need, in order.
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

    /// Whether a culprit and its partners are red, and green without any one of the partners.
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

/// How the lanes go on.
#[derive(Debug)]
pub enum Lanes<'d> {
    /// All gates take the same time.
    InStep(usize),
    /// Each run takes a time of its own, and useless ones are cancelled.
    AtRandom(usize, &'d mut Dice),
}

/// Carries a search out.
///
/// # Panics
///
/// If the search breaks a promise: more tests than lanes, a landing that was not gated green, a change decided
/// twice, or no end.
pub fn carry_out(
    mut search: Search,
    lanes: Lanes<'_>,
    mut gate: impl FnMut(&Test) -> Answer,
) -> Report {
    let mut report = Report::default();
    let mut green: BTreeSet<Vec<usize>> = BTreeSet::new();
    let mut running: BTreeMap<TestId, Answer> = BTreeMap::new();
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
            report.runs += 1;
            let answer = gate(&test);
            if answer == Answer::Green {
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
                for (id, answer) in std::mem::take(&mut running) {
                    search.report(id, &answer).expect("because it was asked for");
                }
                // Whatever was cancelled in this round has run as well.
                drop(search.cancelled());
            }
            Some(dice) => {
                let number = dice.below(running.len());
                let id = *running.keys().nth(number).expect("because it is below the length");
                let answer = running.remove(&id).expect("because the key is there");
                search.report(id, &answer).expect("because it was asked for");
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
            Decision::Land { places, gated } => {
                assert!(green.contains(gated), "not gated green: {gated:?}");
                assert!(places.iter().all(|place| !report.landed.contains(place)), "landed twice");
                report.landed.extend(places);
                report.rounds_to_land = report.rounds;
            }
            Decision::Hold { place, why } => {
                assert_eq!(report.held.insert(*place, *why), None, "held twice");
            }
            Decision::Explained { place, partners, .. } => {
                assert!(report.held.contains_key(place), "explained and not held");
                assert_eq!(report.explained.insert(*place, partners.clone()), None);
            }
            Decision::Flake { .. }
            | Decision::Mended { .. }
            | Decision::BaseRed
            | Decision::Stuck { .. } => {}
        }
        report.decisions.push(decision);
    }
}

/// A small generator, the same in every run.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// A generator that starts from this number.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below another, or zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = usize::try_from((word ^ (word >> 31)) >> 33).unwrap_or(0);
        word % limit.max(1)
    }

    /// Returns whether something happens that happens so often in a thousand.
    pub fn in_thousand(&mut self, often: usize) -> bool {
        self.below(1000) < often
    }
}
