//! The search beside gating one by one, over many scenarios.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Answer, Decision, Search, Test, Why, closure};

/// What a whole search came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) landed: Vec<usize>,
    pub(super) held: BTreeMap<usize, Why>,
    pub(super) explained: BTreeMap<usize, Vec<usize>>,
    pub(super) decisions: Vec<Decision>,
    pub(super) runs: usize,
    pub(super) rounds: usize,
}

impl Why {
    pub(super) fn is_culprit(self) -> bool {
        matches!(self, Why::Culprit)
    }
}

/// Carries a search out with so many lanes; a verdict is asked for twice only where it must be.
pub(super) fn carry_out(
    mut search: Search,
    lanes: usize,
    mut gate: impl FnMut(&Test) -> Answer,
) -> Report {
    let mut report = Report::default();
    let mut known: BTreeMap<Vec<usize>, Answer> = BTreeMap::new();
    loop {
        let tests = search.next_tests(lanes);
        assert!(tests.len() <= lanes, "{tests:?}");
        if tests.is_empty() {
            assert!(search.is_done(), "it stopped half-way: {search:?}");
            break;
        }
        let runs = report.runs;
        for test in tests {
            let cached = known.get(&test.places).copied().filter(|_| !test.fresh);
            let answer = cached.unwrap_or_else(|| {
                report.runs += 1;
                gate(&test)
            });
            if answer != Answer::Void {
                known.insert(test.places.clone(), answer);
            }
            search.report(test.id, answer).unwrap();
        }
        report.rounds += usize::from(report.runs > runs);
        assert!(report.runs < 1000, "it does not end");
        for decision in search.decisions() {
            match &decision {
                Decision::Land { places, gated } => {
                    assert_eq!(known.get(gated), Some(&Answer::Green), "not gated: {gated:?}");
                    report.landed.extend(places);
                }
                Decision::Hold { place, why } => {
                    assert_eq!(report.held.insert(*place, *why), None);
                }
                Decision::Explained { place, partners } => {
                    report.explained.insert(*place, partners.clone());
                }
                Decision::Flake { .. }
                | Decision::Mended { .. }
                | Decision::BaseRed
                | Decision::Stuck { .. } => {}
            }
            report.decisions.push(decision);
        }
    }
    report.landed.sort_unstable();
    report
}

/// Changes of which some sets are red: whatever contains one of them is.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) needs: Vec<Vec<usize>>,
    pub(super) bad: Vec<BTreeSet<usize>>,
}

impl Scenario {
    pub(super) fn is_red(&self, places: &[usize]) -> bool {
        self.bad.iter().any(|bad| bad.iter().all(|place| places.contains(place)))
    }

    /// What gating one by one lets land.
    pub(super) fn one_by_one(&self) -> Vec<usize> {
        let mut landed: Vec<usize> = Vec::new();
        for place in 0..self.needs.len() {
            let has_all = self.needs[place].iter().all(|need| landed.contains(need));
            let mut with = landed.clone();
            with.push(place);
            if has_all && !self.is_red(&with) {
                landed = with;
            }
        }
        landed
    }
}

fn scenarios() -> impl Strategy<Value = (Scenario, usize)> {
    (1..=16_usize).prop_flat_map(|count| {
        let bad = prop::collection::vec(prop::collection::btree_set(0..count, 1..=3), 0..=3);
        let need =
            prop::collection::vec(prop::option::weighted(0.2, any::<prop::sample::Index>()), count);
        (bad, need, 1..=5_usize).prop_map(|(bad, need, lanes)| {
            let needs = need.iter().enumerate().map(|(place, need)| match need {
                Some(index) if place > 0 => vec![index.index(place)],
                Some(_) | None => Vec::new(),
            });
            (Scenario { needs: needs.collect(), bad }, lanes)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn what_lands_is_what_gating_one_by_one_lets_land((scenario, lanes) in scenarios()) {
        let search = Search::new(scenario.needs.clone(), false);
        let report = carry_out(search, lanes, |test| {
            if scenario.is_red(&test.places) { Answer::Red } else { Answer::Green }
        });
        prop_assert_eq!(&report.landed, &scenario.one_by_one());
        for (culprit, why) in &report.held {
            if !why.is_culprit() {
                continue;
            }
            let partners = report.explained.get(culprit);
            prop_assert!(partners.is_some(), "{} is not explained", culprit);
            let named: Vec<usize> =
                partners.into_iter().flatten().copied().chain([*culprit]).collect();
            let whole = closure(&scenario.needs, named.clone());
            prop_assert!(scenario.is_red(&whole), "{:?} is not red", named);
            for left_out in named.iter().filter(|place| *place != culprit) {
                let fewer = named.iter().copied().filter(|place| place != left_out);
                let fewer = closure(&scenario.needs, fewer);
                prop_assert!(!scenario.is_red(&fewer), "{:?} can do without {}", named, left_out);
            }
        }
    }
}

/// A small generator, the same in every run.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Whether something happens that happens so often in a thousand.
    pub(super) fn in_thousand(&mut self, often: u64) -> bool {
        self.next() % 1000 < often
    }
}

#[test]
fn with_three_percent_of_false_reds_an_innocent_is_held_in_under_two_of_a_thousand_batches() {
    const BATCHES: u32 = 40_000;
    let mut dice = Dice::new(7);
    let mut evicted = 0_u32;
    for _ in 0..BATCHES {
        let guilty: BTreeSet<usize> = (0..8).filter(|_| dice.in_thousand(50)).collect();
        let report = carry_out(Search::new(vec![Vec::new(); 8], true), 1, |test| {
            let red = test.places.iter().any(|place| guilty.contains(place));
            if red || dice.in_thousand(30) { Answer::Red } else { Answer::Green }
        });
        let innocent = report.held.keys().any(|place| !guilty.contains(place));
        evicted += u32::from(innocent);
        assert!(guilty.iter().all(|place| !report.landed.contains(place)), "a culprit landed");
    }
    let per_thousand = f64::from(evicted) * 1000.0 / f64::from(BATCHES);
    assert!(per_thousand < 2.0, "{per_thousand} of a thousand");
}
