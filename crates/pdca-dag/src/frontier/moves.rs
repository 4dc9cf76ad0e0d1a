//! State transitions of a frontier. Bundles are indices in name order.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use pdca_state::Awaits;

use super::{Completion, Frontier, ItemStatus, PATIENCE, Turn, Waiver};

impl Frontier<'_> {
    /// Starts the first bundle in order that may start.
    ///
    /// Only candidates are checked, so that a start does not cost a pass over all ready bundles. This
    /// finds the right one because a ready bundle that is not a candidate was found blocked before.
    /// When a claim becomes free, the first bundle that waits for it becomes a candidate
    /// (`free_claims`); if that one is blocked for another reason, it passes the turn to the next one
    /// that waits for the claim (`pass_on`).
    pub(crate) fn start(&mut self) -> Option<usize> {
        let mut after = Bound::Unbounded;
        let bundle = loop {
            let &turn @ (_, bundle) = self.candidates.range((after, Bound::Unbounded)).next()?;
            let is_held = self.is_held(bundle);
            if !is_held && !self.lets_another_by(bundle) {
                break bundle;
            }
            if is_held {
                self.passed_over.push(bundle);
            }
            self.pass_on(bundle);
            if self.is_waived(bundle) {
                after = Bound::Excluded(turn);
            } else {
                self.candidates.remove(&turn);
            }
        };
        self.begin(bundle);
        Some(bundle)
    }

    pub(super) fn begin(&mut self, bundle: usize) {
        self.leave_ready(bundle);
        self.status[bundle] = ItemStatus::InFlight;
        self.in_flight.push(bundle);
        self.keep_claims(bundle);
        self.make_others_older(bundle);
    }

    pub(crate) fn end(&mut self, bundle: usize, outcome: Completion) -> Vec<usize> {
        self.in_flight.retain(|other| *other != bundle);
        self.free_claims(bundle);
        if self.settled.remove(&bundle) {
            self.status[bundle] = ItemStatus::Complete;
            if self.reached[bundle] < Some(self.plan.options.rivals) {
                self.hold(bundle);
            }
            return Vec::new();
        }
        let (status, level) = match outcome {
            Completion::Complete => (ItemStatus::Complete, Some(Awaits::Accepted)),
            Completion::Built => (ItemStatus::Halted, Some(Awaits::Built)),
            Completion::Red | Completion::Halted => (ItemStatus::Halted, None),
            Completion::Failed => (ItemStatus::Failed, None),
        };
        self.status[bundle] = status;
        let has_result =
            matches!(outcome, Completion::Complete | Completion::Built | Completion::Red);
        // A red result blocks rivals as well: a person may find the gate at fault and accept it.
        let far = level.unwrap_or(Awaits::Built);
        if has_result && far < self.plan.options.rivals {
            self.hold(bundle);
        }
        level.map_or_else(Vec::new, |level| self.reach(bundle, level))
    }

    /// Makes a bundle that is not in flight block its rivals.
    pub(super) fn hold(&mut self, bundle: usize) {
        if self.holding.insert(bundle) {
            self.keep_claims(bundle);
        }
    }

    fn unhold(&mut self, bundle: usize) {
        if self.holding.remove(&bundle) {
            self.free_claims(bundle);
        }
    }

    fn keep_claims(&mut self, bundle: usize) {
        for claim in self.claims.near(bundle) {
            self.held[claim] += 1;
        }
    }

    fn free_claims(&mut self, bundle: usize) {
        for claim in self.claims.near(bundle) {
            self.held[claim] -= 1;
            if self.held[claim] == 0 {
                self.candidates.extend(self.waiting[claim].first());
            }
        }
    }

    pub(crate) fn are_rivals(&self, a: usize, b: usize) -> bool {
        self.waiver != Some(Waiver::Rivals(a.min(b), a.max(b))) && self.holds_any(a, &self.near(b))
    }

    /// Returns true if a rival in flight, or the result of one, blocks the bundle.
    pub(super) fn is_held(&self, bundle: usize) -> bool {
        let held = self.claims.of(bundle).iter().any(|claim| self.held[*claim] > 0);
        if held && self.is_waived(bundle) {
            let mut keeping = self.in_flight.iter().chain(&self.holding);
            return keeping.any(|other| self.are_rivals(bundle, *other));
        }
        held
    }

    fn is_waived(&self, bundle: usize) -> bool {
        matches!(self.waiver, Some(Waiver::Rivals(a, b)) if a == bundle || b == bundle)
    }

    /// Returns true if an impatient rival has precedence over the bundle.
    fn lets_another_by(&self, bundle: usize) -> bool {
        if self.age[bundle] < PATIENCE {
            return self.claims.of(bundle).iter().any(|claim| self.kept[*claim] > 0);
        }
        let mut earlier = self.impatient.iter().take_while(|other| **other != bundle);
        earlier.any(|other| self.are_rivals(bundle, *other))
    }

    fn near(&self, bundle: usize) -> Vec<usize> {
        let mut near: Vec<usize> = self.claims.near(bundle).collect();
        near.sort_unstable();
        near.dedup();
        near
    }

    fn holds_any(&self, bundle: usize, near: &[usize]) -> bool {
        self.claims.of(bundle).iter().any(|claim| near.binary_search(claim).is_ok())
    }

    /// Recomputes `held`, `kept`, `candidates` and `waiting` after claims were added.
    pub(super) fn recount(&mut self) {
        self.held = vec![0; self.claims.len()];
        self.kept = self.held.clone();
        let keeping = self.in_flight.iter().chain(&self.holding);
        for claim in keeping.flat_map(|bundle| self.claims.near(*bundle)) {
            self.held[claim] += 1;
        }
        for claim in self.impatient.iter().flat_map(|bundle| self.claims.near(*bundle)) {
            self.kept[claim] += 1;
        }
        self.candidates.clone_from(&self.ready);
        self.waiting = vec![BTreeSet::new(); self.claims.len()];
        for turn in &self.ready {
            for &claim in self.claims.of(turn.1) {
                self.waiting[claim].insert(*turn);
            }
        }
    }

    /// Ages the waiting rivals that are earlier in the order than the bundle that was started.
    fn make_others_older(&mut self, started: usize) {
        let turn = self.turn(started);
        let near = self.claims.near(started);
        let before = near.flat_map(|claim| self.waiting[claim].range(..turn).copied());
        let before: BTreeSet<Turn> = before.collect();
        for (_, bundle) in before {
            self.age[bundle] += 1;
            if self.age[bundle] == PATIENCE {
                self.impatient.push(bundle);
                for claim in self.claims.near(bundle) {
                    self.kept[claim] += 1;
                }
            }
        }
    }

    /// Makes candidates of the bundles that may be waiting behind one that cannot start.
    pub(super) fn pass_on(&mut self, bundle: usize) {
        let after = (Bound::Excluded(self.turn(bundle)), Bound::Unbounded);
        for &claim in self.claims.of(bundle) {
            if self.held[claim] == 0 {
                self.candidates.extend(self.waiting[claim].range(after).next());
            }
        }
    }

    pub(super) fn turn(&self, bundle: usize) -> Turn {
        (Reverse(self.plan.rank[bundle]), bundle)
    }

    pub(super) fn make_ready(&mut self, bundle: usize) {
        if self.status[bundle] == ItemStatus::Open && self.unmet[bundle] == 0 {
            self.status[bundle] = ItemStatus::Ready;
            let turn = self.turn(bundle);
            self.ready.insert(turn);
            self.candidates.insert(turn);
            for &claim in self.claims.of(bundle) {
                self.waiting[claim].insert(turn);
            }
        }
    }

    pub(super) fn leave_ready(&mut self, bundle: usize) {
        let turn = self.turn(bundle);
        self.ready.remove(&turn);
        self.candidates.remove(&turn);
        for &claim in self.claims.of(bundle) {
            self.waiting[claim].remove(&turn);
        }
        self.age[bundle] = 0;
        if let Some(at) = self.impatient.iter().position(|other| *other == bundle) {
            self.impatient.remove(at);
            for claim in self.claims.near(bundle) {
                self.kept[claim] -= 1;
                self.candidates.extend(self.waiting[claim].first());
            }
        }
    }

    /// Records the progress of a bundle. Returns the bundles that became ready, in name order.
    pub(crate) fn reach(&mut self, bundle: usize, level: Awaits) -> Vec<usize> {
        let before = self.reached[bundle];
        if before >= Some(level) {
            return Vec::new();
        }
        self.reached[bundle] = Some(level);
        if level >= self.plan.options.rivals {
            self.unhold(bundle);
        }
        let mut released = self.dependants_between(bundle, before, Some(level));
        for &dependant in &released {
            self.unmet[dependant] -= 1;
            self.make_ready(dependant);
        }
        released.retain(|dependant| self.status[*dependant] == ItemStatus::Ready);
        released.sort_unstable();
        released
    }

    /// Resets the progress of a bundle. Dependants that were ready wait again; those in flight go on.
    pub(super) fn take_back(&mut self, bundle: usize) {
        self.unhold(bundle);
        let before = self.reached[bundle].take();
        for dependant in self.dependants_between(bundle, None, before) {
            self.unmet[dependant] += 1;
            if self.status[dependant] == ItemStatus::Ready {
                self.pass_on(dependant);
                self.leave_ready(dependant);
                self.status[dependant] = ItemStatus::Open;
            }
        }
    }

    /// The dependants that the progress `to` satisfies and the progress `from` does not.
    fn dependants_between(
        &self,
        bundle: usize,
        from: Option<Awaits>,
        to: Option<Awaits>,
    ) -> Vec<usize> {
        let after = self.plan.graph.after(bundle);
        after
            .filter(|(_, tie)| from < Some(tie.awaits) && Some(tie.awaits) <= to)
            .filter(|(after, _)| self.waiver != Some(Waiver::Edge(bundle, *after)))
            .map(|(after, _)| after)
            .collect()
    }
}
