//! With which others a change is red: the smallest set of them.
//!
//! The others are looked at in the order in which they landed. The shortest prefix of them with
//! which the change is red ends in one that is needed for it; that one is kept, and the search
//! goes on before it, until what was kept is red by itself. Where more changes never make a red
//! tree green, nothing can be left out of what is kept.

use std::collections::BTreeMap;

use super::{closure, spread};

#[derive(Debug, Clone)]
pub(super) struct Explanation {
    culprit: usize,
    /// Those that may still be needed.
    others: Vec<usize>,
    /// Those that are.
    kept: Vec<usize>,
    /// A prefix of the others with which it is green, and a longer one with which it is red.
    green: usize,
    red: usize,
    heard: BTreeMap<Vec<usize>, bool>,
    done: bool,
}

impl Explanation {
    /// The change is green with none of the others, and red with all of them.
    pub(super) fn new(culprit: usize, others: Vec<usize>, needs: &[Vec<usize>]) -> Self {
        // What it needs is always there, and explains nothing.
        let needed = closure(needs, [culprit]);
        let others: Vec<usize> =
            others.into_iter().filter(|other| !needed.contains(other)).collect();
        let red = others.len();
        let heard = BTreeMap::new();
        let mut new = Self { culprit, others, kept: Vec::new(), green: 0, red, heard, done: false };
        new.advance(needs);
        new
    }

    pub(super) fn culprit(&self) -> usize {
        self.culprit
    }

    /// The others with which it is red, once they are known.
    pub(super) fn partners(&self) -> Option<Vec<usize>> {
        self.done.then(|| {
            let mut partners = self.kept.clone();
            partners.sort_unstable();
            partners
        })
    }

    /// Up to so many sets to be tested.
    pub(super) fn next(&self, lanes: usize, needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
        if self.done {
            return Vec::new();
        }
        let lengths = match self.red - self.green {
            // Between the two is one that is needed, and it is among the kept by now.
            0 => {
                if lanes > 0 {
                    vec![0]
                } else {
                    Vec::new()
                }
            }
            _ => spread(self.green, self.red, lanes),
        };
        let mut sets: Vec<Vec<usize>> =
            lengths.into_iter().map(|length| self.set(length, needs)).collect();
        sets.dedup();
        sets
    }

    pub(super) fn heard(&mut self, places: &[usize], is_red: bool, needs: &[Vec<usize>]) {
        self.heard.insert(places.to_vec(), is_red);
        self.advance(needs);
    }

    /// The gates could not be run for this set.
    pub(super) fn forget(&mut self, places: &[usize]) {
        self.heard.remove(places);
    }

    fn set(&self, length: usize, needs: &[Vec<usize>]) -> Vec<usize> {
        let chosen = self.others[..length].iter().chain(&self.kept).chain([&self.culprit]);
        closure(needs, chosen.copied())
    }

    /// Goes as far as what was heard leads.
    fn advance(&mut self, needs: &[Vec<usize>]) {
        while !self.done {
            let known = |length: usize| self.heard.get(&self.set(length, needs)).copied();
            if self.red > self.green + 1 {
                let between = self.green + 1..self.red;
                let longest = between.clone().rev().find(|length| known(*length) == Some(false));
                let green = longest.unwrap_or(self.green);
                let shortest = (green + 1..self.red).find(|length| known(*length) == Some(true));
                let red = shortest.unwrap_or(self.red);
                if (green, red) == (self.green, self.red) {
                    return;
                }
                (self.green, self.red) = (green, red);
            } else if self.red > self.green {
                // It takes this one.
                self.kept.push(self.others[self.green]);
                self.others.truncate(self.green);
                (self.green, self.red) = (0, 0);
                self.done = self.others.is_empty();
            } else {
                match known(0) {
                    None => return,
                    Some(true) => self.done = true,
                    Some(false) => self.red = self.others.len(),
                }
            }
        }
    }
}
