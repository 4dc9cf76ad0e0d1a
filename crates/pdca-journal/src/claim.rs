//! Epochs of drivers and generations of attempts: numbers that only grow.
//!
//! A stale writer cannot be relied on to stop. Its number is part of every name that it writes to, so
//! it can only change names that are no longer read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a driver among all drivers that ever worked on a repository.
///
/// Every driver that starts or resumes a run gets a new one. `refs/pdca/fence` holds the highest, and
/// every ref transaction verifies that the fence has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of the first driver of a repository.
    pub const FIRST: Self = Self(1);

    pub fn new(number: u64) -> Self {
        Self(number)
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the epoch of a new driver: one more than the highest in the fences of all targets and in
/// all journals. `None` on overflow, which only a forged fence can cause.
pub fn next_epoch(seen: impl IntoIterator<Item = Epoch>) -> Option<Epoch> {
    match seen.into_iter().max() {
        None => Some(Epoch::FIRST),
        Some(Epoch(highest)) => highest.checked_add(1).map(Epoch),
    }
}

/// The `claim_generation` of a bundle: the number of an attempt in its run, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(u32);

impl Generation {
    pub const FIRST: Self = Self(1);

    /// Returns the generation with this number, unless it is 0.
    pub fn new(number: u32) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// Returns the next generation, or `None` on overflow.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_is_above_all_that_were_seen() {
        assert_eq!(next_epoch([]), Some(Epoch::FIRST));
        assert_eq!(next_epoch([3, 9, 4].map(Epoch)), Some(Epoch(10)));
        assert_eq!(next_epoch([Epoch(u64::MAX)]), None);
    }
}
