//! Anchors: refs that protect the commits being gated from garbage collection.

use std::collections::BTreeSet;

use crate::{ObjectId, RefError};

/// A bound on the numbers of anchor refs, against an endless loop.
const MAX_ANCHORS: u32 = 100_000;

/// The anchors of one integration: each commit has at most one, and no two have the same number.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    commits: BTreeSet<ObjectId>,
    last: u32,
}

impl Anchors {
    /// Anchors a commit with `create`, which makes the ref of a number, unless the commit has an anchor.
    pub(super) fn anchor<T>(
        &mut self,
        commit: ObjectId,
        mut create: impl FnMut(u32) -> Result<T, RefError>,
    ) -> Result<(), RefError> {
        if !self.commits.insert(commit) {
            return Ok(());
        }
        loop {
            self.last += 1;
            match create(self.last) {
                // An interrupted integration that was resumed under its name has left refs with low numbers.
                Err(RefError::Moved { .. }) if self.last < MAX_ANCHORS => {}
                created => return created.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(letter: &str) -> ObjectId {
        ObjectId::from_hex(letter.repeat(40).as_bytes()).unwrap()
    }

    fn taken() -> RefError {
        RefError::Moved { name: "refs/x".into(), expected: None, actual: Some(commit("f")) }
    }

    #[test]
    fn a_commit_is_anchored_once_and_each_under_a_number_of_its_own() {
        let (mut anchors, mut made) = (Anchors::default(), Vec::new());
        for letter in ["a", "b", "a"] {
            let create = |number| {
                made.push((letter, number));
                Ok(())
            };
            anchors.anchor(commit(letter), create).unwrap();
        }
        assert_eq!(made, [("a", 1), ("b", 2)]);
    }

    #[test]
    fn a_number_that_an_interrupted_driver_used_is_passed_over() {
        let mut anchors = Anchors::default();
        let mut tried = Vec::new();
        let create = |number| {
            tried.push(number);
            if number < 3 { Err(taken()) } else { Ok(()) }
        };
        anchors.anchor(commit("a"), create).unwrap();
        assert_eq!(tried, [1, 2, 3]);
    }

    #[test]
    fn a_driver_that_lost_the_fence_does_not_try_another_number() {
        let mut tried = 0;
        let create = |_| {
            tried += 1;
            Err::<(), _>(RefError::Fenced { held: 1, found: Some(2) })
        };
        let refused = Anchors::default().anchor(commit("a"), create);
        assert!(matches!(refused, Err(RefError::Fenced { .. })), "{refused:?}");
        assert_eq!(tried, 1);
    }
}
