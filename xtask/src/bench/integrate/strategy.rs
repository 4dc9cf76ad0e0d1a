//! Strategies for finding the culprits of a batch, counted in gate runs and rounds.
//!
//! All of them start from a base that is known to be green, and every gate run takes one round. A change is a culprit
//! or not; interactions are for [the laws](pdca_integrate::testing::laws). The rules, as the projects describe them:
//!
//! - **One by one**: each change on top of what landed, in order. A red one is dropped.
//! - **Bisection** (bors, bors-ng): a batch is tested as a whole. A red batch is split in two, and each half is a batch
//!   of its own, the second on top of what landed of the first. A red batch of one is dropped. One run at a time.
//! - **Window** (Zuul's dependent pipeline): the first `w` changes are tested at once, each on top of all before it.
//!   Those before the first red one land, the red one is dropped, and what was behind it starts over without it. Zuul
//!   lets its window grow and shrink; here it stays as it is, and all of its runs have a lane of their own. Runs behind a
//!   red one count: they were started, and end with their round.
//!
//! None of the three confirms a red or says with which others a change is red. The search does both, and its
//! numbers have that in them.

use std::ops::Add;

use pdca_integrate::testing::simulation::{Dice, Lanes, Report, Scenario, carry_out};
use pdca_integrate::{FlakeLedger, FlakeRules, Search, TestAnswer};

/// The row that fails.
const ROW: &str = "T1";

/// The cost of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StrategyCount {
    /// The number of gate runs.
    pub(super) runs: usize,
    /// The number of times that a run had to be waited for.
    pub(super) rounds: usize,
    /// The number of rounds until every innocent change had landed.
    pub(super) rounds_to_land: usize,
}

impl Add for StrategyCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            rounds: self.rounds + other.rounds,
            rounds_to_land: self.rounds_to_land + other.rounds_to_land,
        }
    }
}

impl StrategyCount {
    fn of(runs: usize, rounds: usize) -> Self {
        Self { runs, rounds, rounds_to_land: rounds }
    }
}

/// Draws the culprits of a batch, with this probability in a thousand.
pub(super) fn batch(count: usize, in_thousand: usize, dice: &mut Dice) -> Vec<bool> {
    (0..count).map(|_| dice.in_thousand(in_thousand)).collect()
}

pub(super) fn one_by_one(guilty: &[bool]) -> StrategyCount {
    StrategyCount::of(guilty.len(), guilty.len())
}

pub(super) fn bisection(guilty: &[bool]) -> StrategyCount {
    let once = StrategyCount::of(1, 1);
    if guilty.len() < 2 || !guilty.contains(&true) {
        return once;
    }
    let (first, second) = guilty.split_at(guilty.len() / 2);
    once + bisection(first) + bisection(second)
}

pub(super) fn window(guilty: &[bool], size: usize) -> StrategyCount {
    let mut count = StrategyCount::default();
    let mut rest = guilty;
    while !rest.is_empty() {
        let window = &rest[..rest.len().min(size)];
        count = count + StrategyCount::of(window.len(), 1);
        let culprit = window.iter().position(|guilty| *guilty);
        rest = &rest[culprit.map_or(window.len(), |culprit| culprit + 1)..];
    }
    count
}

pub(super) fn search(guilty: &[bool], lanes: usize) -> StrategyCount {
    searched(guilty, lanes, true)
}

/// Counts the search with an unknown base.
pub(super) fn search_with_base(guilty: &[bool], lanes: usize) -> StrategyCount {
    searched(guilty, lanes, false)
}

fn searched(guilty: &[bool], lanes: usize, base_is_green: bool) -> StrategyCount {
    let scenario = scenario(guilty);
    let search = Search::new(scenario.setup().with_green_base(base_is_green));
    let report = carry_out(search, Lanes::InStep(lanes), |test| scenario.answer(test));
    let Report { runs, rounds, rounds_to_land, .. } = report;
    StrategyCount { runs, rounds, rounds_to_land }
}

/// Returns whether the search holds an innocent change, with gates that are flaky this often in a thousand.
pub(super) fn holds_an_innocent(
    guilty: &[bool],
    by_mistake: usize,
    rules: FlakeRules,
    dice: &mut Dice,
) -> bool {
    let scenario = scenario(guilty);
    let search = Search::new(scenario.setup().with_green_base(true).with_flakes(rules));
    let report = carry_out(search, Lanes::InStep(1), |test| {
        let is_red = dice.in_thousand(by_mistake) || scenario.is_red(&test.places);
        if is_red { TestAnswer::Red { rows: vec![ROW.to_owned()] } } else { TestAnswer::Green }
    });
    report.held.keys().any(|place| !guilty[*place])
}

/// Returns the history of the row after two hundred runs, of which so many were flaky.
pub(super) fn history(flakes: u32) -> FlakeRules {
    let mut ledger = FlakeLedger::default();
    (0..200).for_each(|_| ledger.ran(ROW));
    (0..flakes).for_each(|_| ledger.flaked(ROW, "tree", &[], "now"));
    FlakeRules { ledger, ..FlakeRules::default() }
}

fn scenario(guilty: &[bool]) -> Scenario {
    let culprits: Vec<[usize; 1]> =
        (0..guilty.len()).filter(|place| guilty[*place]).map(|place| [place]).collect();
    let culprits: Vec<&[usize]> = culprits.iter().map(|culprit| &culprit[..]).collect();
    Scenario::of(guilty.len(), &culprits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ways_take_what_they_are_known_to_take() {
        let mut guilty = [false; 8];
        assert_eq!(one_by_one(&guilty).runs, 8);
        assert_eq!(bisection(&guilty), StrategyCount::of(1, 1));
        assert_eq!(window(&guilty, 4), StrategyCount::of(8, 2));
        assert_eq!(window(&guilty, 20), StrategyCount::of(8, 1));
        guilty[3] = true;
        assert_eq!(bisection(&guilty).runs, 7);
        assert_eq!(window(&guilty, 4), StrategyCount::of(8, 2));
        assert_eq!(window(&guilty, 20), StrategyCount::of(12, 2));
        assert!(search(&guilty, 1).runs <= 6);
    }

    #[test]
    fn with_four_lanes_the_innocent_land_as_fast_as_with_a_window_of_four() {
        for in_thousand in [20, 50, 100, 200] {
            let mut dice = Dice::new(3);
            let (mut ours, mut theirs) = (StrategyCount::default(), StrategyCount::default());
            for _ in 0..60 {
                let guilty = batch(16, in_thousand, &mut dice);
                ours = ours + search(&guilty, 4);
                theirs = theirs + window(&guilty, 4);
            }
            assert!(
                ours.rounds_to_land * 100 <= theirs.rounds * 125,
                "{in_thousand}: {ours:?} {theirs:?}"
            );
            assert!(ours.rounds * 100 <= theirs.rounds * 150, "{in_thousand}: {ours:?} {theirs:?}");
        }
    }
}
