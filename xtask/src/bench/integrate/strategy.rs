//! Ways to find the culprits of a batch, counted.

use std::collections::BTreeMap;
use std::ops::Add;

use pdca_integrate::{Answer, Decision, Search, Why};

/// What a batch took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// How often gates ran.
    pub(super) runs: u32,
    /// How often one had to wait for them.
    pub(super) rounds: u32,
}

impl Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { runs: self.runs + other.runs, rounds: self.rounds + other.rounds }
    }
}

pub(super) fn one_by_one(guilty: &[bool]) -> Count {
    let runs = u32::try_from(guilty.len()).unwrap_or(u32::MAX);
    Count { runs, rounds: runs }
}

/// A red batch is tested again in two halves, the second on top of what is left of the first.
pub(super) fn halves(guilty: &[bool]) -> Count {
    let once = Count { runs: 1, rounds: 1 };
    if guilty.len() < 2 || !guilty.contains(&true) {
        return once;
    }
    let (first, second) = guilty.split_at(guilty.len() / 2);
    once + halves(first) + halves(second)
}

/// Every prefix is tested at once; behind the first red one everything starts over.
pub(super) fn speculation(guilty: &[bool]) -> Count {
    let mut count = Count::default();
    let mut rest = guilty;
    while !rest.is_empty() {
        count.runs += u32::try_from(rest.len()).unwrap_or(u32::MAX);
        count.rounds += 1;
        match rest.iter().position(|guilty| *guilty) {
            Some(culprit) => rest = &rest[culprit + 1..],
            None => break,
        }
    }
    count
}

pub(super) fn search(guilty: &[bool], lanes: usize) -> Count {
    let is_red = |places: &[usize]| places.iter().any(|place| guilty[*place]);
    carry_out(guilty.len(), lanes, is_red).0
}

/// Whether the search holds one that is not guilty, where gates are red by mistake so often.
pub(super) fn holds_an_innocent(guilty: &[bool], by_mistake: f64, dice: &mut Dice) -> bool {
    let is_red = |places: &[usize]| {
        let mistaken = dice.chance(by_mistake);
        mistaken || places.iter().any(|place| guilty[*place])
    };
    carry_out(guilty.len(), 1, is_red).1.iter().any(|place| !guilty[*place])
}

fn carry_out(
    count: usize,
    lanes: usize,
    mut is_red: impl FnMut(&[usize]) -> bool,
) -> (Count, Vec<usize>) {
    let mut search = Search::new(vec![Vec::new(); count], true);
    let mut known: BTreeMap<Vec<usize>, bool> = BTreeMap::new();
    let (mut total, mut held) = (Count::default(), Vec::new());
    loop {
        let tests = search.next_tests(lanes);
        if tests.is_empty() {
            return (total, held);
        }
        let before = total.runs;
        for test in tests {
            let red = match known.get(&test.places) {
                Some(red) if !test.fresh => *red,
                Some(_) | None => {
                    total.runs += 1;
                    is_red(&test.places)
                }
            };
            known.insert(test.places, red);
            let answer = if red { Answer::Red } else { Answer::Green };
            search.report(test.id, answer).expect("because it was just asked for");
        }
        total.rounds += u32::from(total.runs > before);
        for decision in search.decisions() {
            if let Decision::Hold { place, why: Why::Culprit } = decision {
                held.push(place);
            }
        }
    }
}

/// A small generator, the same in every run.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = u32::try_from((word ^ (word >> 31)) >> 32).unwrap_or(0);
        f64::from(high) < share * f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ways_take_what_they_are_known_to_take() {
        let mut guilty = [false; 8];
        assert_eq!(one_by_one(&guilty).runs, 8);
        assert_eq!(halves(&guilty), Count { runs: 1, rounds: 1 });
        assert_eq!(speculation(&guilty), Count { runs: 8, rounds: 1 });
        guilty[3] = true;
        assert_eq!(halves(&guilty).runs, 7);
        assert_eq!(speculation(&guilty), Count { runs: 12, rounds: 2 });
        assert!(search(&guilty, 1).runs <= 6);
    }

    #[test]
    fn dice_fall_as_often_as_they_should() {
        let mut dice = Dice::new(1);
        let fell = (0..10_000).filter(|_| dice.chance(0.2)).count();
        assert!((1800..2200).contains(&fell), "{fell}");
    }
}
