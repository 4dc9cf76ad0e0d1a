//! The ready bundles in the order of their starts, and how long each was overtaken.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::PATIENCE;
use super::blockers::Blockers;
use crate::claims::Claims;

/// The sort key of the start order: the longest chain first, then the name.
type Turn = (Reverse<u64>, usize);

/// The ready bundles.
///
/// A ready bundle that is not a candidate was found blocked before, and something that blocked it still
/// does. So a start only looks at candidates, and does not cost a pass over all ready bundles. When a
/// claim becomes free, the first bundle that waits for it becomes a candidate ([`Self::offer`]); if that
/// one is blocked for another reason, it passes the turn to the next one that waits for the claim
/// ([`Self::pass_on`]).
#[derive(Debug, Clone)]
pub(super) struct ReadyQueue<'p> {
    rank: &'p [u64],
    ready: BTreeSet<Turn>,
    candidates: BTreeSet<Turn>,
    /// For each claim, the ready bundles that hold it.
    waiting: Vec<BTreeSet<Turn>>,
    /// For each ready bundle, the number of lower-ranked rivals that were started before it.
    age: Vec<u32>,
    /// The bundles that have aged [`PATIENCE`] times, in that order.
    impatient: Vec<usize>,
    /// For each claim, the number of impatient bundles that block it for the others.
    kept: Vec<u32>,
    /// The bundles that were skipped because of a rival, since [`Self::take_passed_over`].
    passed_over: Vec<usize>,
}

impl<'p> ReadyQueue<'p> {
    pub(super) fn new(rank: &'p [u64], claims: &Claims) -> Self {
        Self {
            rank,
            ready: BTreeSet::new(),
            candidates: BTreeSet::new(),
            waiting: vec![BTreeSet::new(); claims.len()],
            age: vec![0; rank.len()],
            impatient: Vec::new(),
            kept: vec![0; claims.len()],
            passed_over: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns the number of ready bundles before a bundle in the order, blocked ones included.
    pub(super) fn before(&self, bundle: usize) -> usize {
        self.ready.range(..self.turn(bundle)).count()
    }

    pub(super) fn age(&self, bundle: usize) -> u32 {
        self.age[bundle]
    }

    pub(super) fn enter(&mut self, claims: &Claims, bundle: usize) {
        let turn = self.turn(bundle);
        self.ready.insert(turn);
        self.candidates.insert(turn);
        for &claim in claims.of(bundle) {
            self.waiting[claim].insert(turn);
        }
    }

    pub(super) fn leave(&mut self, claims: &Claims, bundle: usize) {
        let turn = self.turn(bundle);
        self.ready.remove(&turn);
        self.candidates.remove(&turn);
        for &claim in claims.of(bundle) {
            self.waiting[claim].remove(&turn);
        }
        // The next attempt queues like any other bundle; age belongs to one wait.
        self.age[bundle] = 0;
        if let Some(at) = self.impatient.iter().position(|other| *other == bundle) {
            self.impatient.remove(at);
            for claim in claims.near(bundle) {
                self.kept[claim] -= 1;
                self.candidates.extend(self.waiting[claim].first());
            }
        }
    }

    /// Returns the first bundle in order that may start. It stays in the queue.
    pub(super) fn next(&mut self, blockers: &Blockers<'_>) -> Option<usize> {
        let mut after = Bound::Unbounded;
        loop {
            let &turn @ (_, bundle) = self.candidates.range((after, Bound::Unbounded)).next()?;
            let is_held = blockers.blocks(bundle);
            if !is_held && !self.yields(blockers, bundle) {
                return Some(bundle);
            }
            if is_held {
                self.passed_over.push(bundle);
            }
            self.pass_on(blockers, bundle);
            if blockers.is_waived(bundle) {
                // When the rival that blocks it ends, the waived one may still hold the claim, so no
                // claim becomes free and nothing would offer this bundle again.
                after = Bound::Excluded(turn);
            } else {
                self.candidates.remove(&turn);
            }
        }
    }

    /// Returns the bundles that were skipped since the last call and are ready still, in name order.
    pub(super) fn take_passed_over(&mut self) -> Vec<usize> {
        let mut passed = std::mem::take(&mut self.passed_over);
        passed.sort_unstable();
        passed.dedup();
        passed.retain(|bundle| self.ready.contains(&self.turn(*bundle)));
        passed
    }

    /// Makes candidates of the first bundles that wait for claims that became free.
    pub(super) fn offer(&mut self, freed: &[usize]) {
        for &claim in freed {
            self.candidates.extend(self.waiting[claim].first());
        }
    }

    /// Makes candidates of the bundles that may be waiting behind one that cannot start.
    pub(super) fn pass_on(&mut self, blockers: &Blockers<'_>, bundle: usize) {
        let after = (Bound::Excluded(self.turn(bundle)), Bound::Unbounded);
        for &claim in blockers.claims().of(bundle) {
            if blockers.is_free(claim) {
                self.candidates.extend(self.waiting[claim].range(after).next());
            }
        }
    }

    /// Ages the waiting rivals that are earlier in the order than the bundle that was started.
    pub(super) fn overtake(&mut self, claims: &Claims, started: usize) {
        let turn = self.turn(started);
        let near = claims.near(started);
        let before = near.flat_map(|claim| self.waiting[claim].range(..turn).copied());
        // As a set: a rival that shares several claims was overtaken once.
        let before: BTreeSet<Turn> = before.collect();
        for (_, bundle) in before {
            self.age[bundle] += 1;
            // Equal and not "at least": it enters `impatient` and `kept` once.
            if self.age[bundle] == PATIENCE {
                self.impatient.push(bundle);
                for claim in claims.near(bundle) {
                    self.kept[claim] += 1;
                }
            }
        }
    }

    /// Iterates over the impatient bundles that have precedence over a bundle, if they are its rivals.
    pub(super) fn impatient_before(&self, bundle: usize) -> impl Iterator<Item = usize> {
        self.impatient.iter().copied().take_while(move |other| *other != bundle)
    }

    /// Counts again and looks at every ready bundle again, after claims were added.
    pub(super) fn recount(&mut self, claims: &Claims) {
        self.kept = vec![0; claims.len()];
        for claim in self.impatient.iter().flat_map(|bundle| claims.near(*bundle)) {
            self.kept[claim] += 1;
        }
        self.candidates.clone_from(&self.ready);
        self.waiting = vec![BTreeSet::new(); claims.len()];
        for turn in &self.ready {
            for &claim in claims.of(turn.1) {
                self.waiting[claim].insert(*turn);
            }
        }
    }

    /// Returns true if an impatient rival has precedence over the bundle.
    fn yields(&self, blockers: &Blockers<'_>, bundle: usize) -> bool {
        if self.age[bundle] < PATIENCE {
            return blockers.claims().of(bundle).iter().any(|claim| self.kept[*claim] > 0);
        }
        // An impatient bundle counts in `kept` itself, so only those before it are compared.
        self.impatient_before(bundle).any(|other| blockers.are_rivals(bundle, other))
    }

    fn turn(&self, bundle: usize) -> Turn {
        (Reverse(self.rank[bundle]), bundle)
    }
}
