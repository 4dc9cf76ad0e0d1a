//! Batch size.

use std::collections::VecDeque;

/// The size of the first batch.
const START: usize = 8;
/// The maximum size.
const MOST: usize = 64;
/// The number of recent changes that the rate of culprits is computed from.
const MEMORY: usize = 40;
/// The number of decided changes from which the rate counts.
const ENOUGH: usize = 5;

/// The size of the next batch: it doubles after a green batch, halves after a red one, and is 1 while more than
/// a fifth of the recent changes are culprits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPace {
    size: usize,
    /// For each of the recent changes, whether it was a culprit.
    last: VecDeque<bool>,
}

impl Default for BatchPace {
    fn default() -> Self {
        Self { size: START, last: VecDeque::new() }
    }
}

impl BatchPace {
    pub fn batch(&self) -> usize {
        // `size` is adapted meanwhile, for when the rate is lower again.
        if self.is_too_red() { 1 } else { self.size }
    }

    /// Records the outcome of a batch.
    pub fn learn(&mut self, changes: usize, culprits: usize) {
        let culprits = culprits.min(changes);
        self.last.extend((0..changes).map(|place| place < culprits));
        while self.last.len() > MEMORY {
            self.last.pop_front();
        }
        self.size = match culprits {
            0 => (self.size * 2).min(MOST),
            _ => (self.size / 2).max(1),
        };
    }

    fn is_too_red(&self) -> bool {
        let red = self.last.iter().filter(|red| **red).count();
        self.last.len() >= ENOUGH && red * 5 > self.last.len()
    }
}

#[cfg(test)]
mod tests {
    use super::BatchPace;

    #[test]
    fn a_batch_grows_on_green_and_shrinks_on_red() {
        let mut pace = BatchPace::default();
        assert_eq!(pace.batch(), 8);
        pace.learn(8, 0);
        assert_eq!(pace.batch(), 16);
        pace.learn(16, 1);
        assert_eq!(pace.batch(), 8);
    }

    #[test]
    fn above_a_fifth_of_red_changes_go_one_by_one_until_it_is_better() {
        let mut pace = BatchPace::default();
        pace.learn(8, 2);
        assert_eq!(pace.batch(), 1);
        for _ in 0..2 {
            pace.learn(1, 0);
        }
        assert!(pace.batch() > 1, "two of ten are no more than a fifth");
    }
}
