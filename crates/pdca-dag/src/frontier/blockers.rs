//! Blockers: the bundles because of which a rival may not start now.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::claims::{Claims, Rivalry};

/// The bundles that block their rivals: those in flight, and those whose result holds its claims.
///
/// For each claim, `held` is the number of blockers that hold it or one that overlaps it, so a bundle is
/// blocked exactly if `held` is above zero for one of its own claims.
#[derive(Debug, Clone)]
pub(super) struct Blockers<'p> {
    claims: Cow<'p, Claims>,
    /// A pair, lower first, that a simulation treats as if it were no rivals.
    waived: Option<(usize, usize)>,
    /// In the order of their starts.
    in_flight: Vec<usize>,
    holding: BTreeSet<usize>,
    held: Vec<u32>,
}

impl<'p> Blockers<'p> {
    pub(super) fn new(claims: &'p Claims, waived: Option<(usize, usize)>) -> Self {
        let held = vec![0; claims.len()];
        let (in_flight, holding) = (Vec::new(), BTreeSet::new());
        Self { claims: Cow::Borrowed(claims), waived, in_flight, holding, held }
    }

    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    pub(super) fn start(&mut self, bundle: usize) {
        self.in_flight.push(bundle);
        self.keep_claims(bundle);
    }

    /// Returns the claims that nothing blocks any more.
    pub(super) fn end(&mut self, bundle: usize) -> Vec<usize> {
        self.in_flight.retain(|other| *other != bundle);
        self.free_claims(bundle)
    }

    /// Makes a bundle that is not in flight block its rivals.
    pub(super) fn hold(&mut self, bundle: usize) {
        if self.holding.insert(bundle) {
            self.keep_claims(bundle);
        }
    }

    /// Returns the claims that nothing blocks any more.
    pub(super) fn unhold(&mut self, bundle: usize) -> Vec<usize> {
        if self.holding.remove(&bundle) { self.free_claims(bundle) } else { Vec::new() }
    }

    /// Adds claims to a bundle with `widen`, and counts again: the bundle may block more than before.
    pub(super) fn widen(&mut self, widen: impl FnOnce(&mut Claims)) {
        // The plan's claims are copied at the first widening only; most frontiers never need one.
        widen(self.claims.to_mut());
        self.held = vec![0; self.claims.len()];
        for claim in self.iter().flat_map(|bundle| self.claims.near(bundle)).collect::<Vec<_>>() {
            self.held[claim] += 1;
        }
    }

    /// Iterates over the bundles in flight, in the order of their starts.
    pub(super) fn in_flight(&self) -> &[usize] {
        &self.in_flight
    }

    /// Iterates over the bundles in flight, then over those whose result blocks.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.in_flight.iter().chain(&self.holding).copied()
    }

    pub(super) fn is_free(&self, claim: usize) -> bool {
        self.held[claim] == 0
    }

    /// Returns true if the result of the bundle blocks its rivals although it is not in flight.
    pub(super) fn is_holding(&self, bundle: usize) -> bool {
        self.holding.contains(&bundle)
    }

    /// Returns true if a rival in flight, or the result of one, blocks the bundle.
    pub(super) fn blocks(&self, bundle: usize) -> bool {
        let held = self.claims.of(bundle).iter().any(|claim| !self.is_free(*claim));
        if held && self.is_waived(bundle) {
            // The counts include the waived rival, so each blocker has to be looked at.
            return self.iter().any(|other| self.are_rivals(bundle, other));
        }
        held
    }

    /// Returns true if the bundle is one of the waived pair.
    pub(super) fn is_waived(&self, bundle: usize) -> bool {
        self.waived.is_some_and(|(a, b)| a == bundle || b == bundle)
    }

    pub(super) fn are_rivals(&self, a: usize, b: usize) -> bool {
        if self.waived == Some((a.min(b), a.max(b))) {
            return false;
        }
        let near: BTreeSet<usize> = self.claims.near(b).collect();
        self.claims.of(a).iter().any(|claim| near.contains(claim))
    }

    pub(super) fn rivalry(&self, bundle: usize, other: usize) -> Option<Rivalry> {
        self.claims.rivalry(bundle, other)
    }

    fn keep_claims(&mut self, bundle: usize) {
        for claim in self.claims.near(bundle) {
            self.held[claim] += 1;
        }
    }

    fn free_claims(&mut self, bundle: usize) -> Vec<usize> {
        let mut freed = Vec::new();
        for claim in self.claims.near(bundle) {
            self.held[claim] -= 1;
            if self.held[claim] == 0 {
                freed.push(claim);
            }
        }
        freed
    }
}
