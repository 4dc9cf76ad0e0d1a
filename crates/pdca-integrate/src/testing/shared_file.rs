//! Batches whose changes write to one file, such as a changelog.
//!
//! A change of the chain was written on top of the earlier ones, so a set with it and without one of those does not fold
//! by itself.

use std::collections::BTreeSet;

use super::simulation::{Bad, Dice, Lanes, Report, Scenario, carry_out_with};
use crate::queue::search::{Search, Test, TestAnswer, TestRemarks};

/// A batch with a file that many changes write to, and the truth about its culprits.
#[derive(Debug, Clone)]
pub struct SharedFile {
    pub scenario: Scenario,
    /// The places that write to the file, in order.
    pub chain: BTreeSet<usize>,
    /// The places of the chain that need more of the earlier ones than their version of the file.
    pub torn: BTreeSet<usize>,
    /// False if the file cannot be taken from elsewhere, so that a part of the chain does not fold at all.
    pub lends: bool,
    /// The changes that the evidence of any red points to.
    pub witnesses: Vec<usize>,
}

impl SharedFile {
    /// Draws a batch of 4 to 27 changes with one or two bad sets of one to three changes.
    pub fn draw(dice: &mut Dice) -> Self {
        let count = 4 + dice.below(24);
        let mut bad = Vec::new();
        for _ in 0..=dice.below(2) {
            let size = [1, 2, 2, 2, 2, 3][dice.below(6)];
            let mut set = BTreeSet::new();
            while set.len() < size {
                set.insert(dice.below(count));
            }
            bad.push(Bad { set, mended_by: None });
        }
        let scenario = Scenario { needs: vec![Vec::new(); count], landed_before: 0, bad };
        let often = 400 + dice.below(600);
        let chain = (0..count).filter(|_| dice.in_thousand(often)).collect();
        Self { scenario, chain, torn: BTreeSet::new(), lends: true, witnesses: Vec::new() }
    }

    /// Returns the answer about a set, with what is seen beside it.
    pub fn answer(&self, test: &Test, landed: &[usize]) -> (TestAnswer, TestRemarks) {
        let has = |place: &usize| test.places.contains(place);
        let lacks = |place: &usize| self.chain.range(..*place).any(|earlier| !has(earlier));
        let alone = test.places.iter().find(|place| self.chain.contains(place) && lacks(place));
        let mut is_red = self.scenario.is_red(&test.places);
        let mut context = Vec::new();
        if let Some(alone) = alone {
            let may_land = landed.iter().all(has);
            if may_land || !self.lends {
                return (TestAnswer::Unfit(*alone), TestRemarks::default());
            }
            let last = test.places.last().copied().unwrap_or_default();
            context = landed.iter().copied().filter(|it| self.chain.contains(it)).collect();
            context.retain(|place| !has(place) && *place < last);
            is_red |= test.places.iter().any(|place| self.torn.contains(place) && lacks(place));
        }
        let witnesses = if is_red { self.witnesses.clone() } else { Vec::new() };
        let answer = if is_red { TestAnswer::red() } else { TestAnswer::Green };
        (answer, TestRemarks { context, witnesses })
    }

    pub fn integrate(&self, lanes: usize) -> Report {
        let search = Search::new(self.scenario.setup().with_green_base(true));
        carry_out_with(search, Lanes::InStep(lanes), |test, landed| self.answer(test, landed))
    }

    /// Returns true if a partner is in no bad set with the culprit.
    pub fn names_an_innocent(&self, culprit: usize, partners: &[usize]) -> bool {
        let is_with = |partner: &usize| {
            let sets = self.scenario.bad.iter().map(|bad| &bad.set);
            sets.into_iter().any(|set| set.contains(&culprit) && set.contains(partner))
        };
        !partners.iter().all(is_with)
    }
}
