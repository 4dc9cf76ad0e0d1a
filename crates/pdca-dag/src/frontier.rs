//! The scheduler: picks the bundle to start when a lane is free.
//!
//! A bundle is *open* until its prerequisites have made the progress that it waits for, then *ready*,
//! then *in flight*, then complete, halted or failed. Among ready bundles without a rival in flight,
//! the one with the longest chain of dependent work starts first, then the first by name. If
//! [`Options::rivals`](crate::Options::rivals) asks for a sign-off or a landing, a result that has not
//! come that far blocks its rivals as if it were in flight.
//!
//! # Starvation
//! A bundle with many rivals could starve, because one of them is always in flight. So a ready bundle
//! *ages* each time a rival that is later in the order starts before it. Once it has aged
//! [`PATIENCE`] times, no rival starts before it, except one that reached that age earlier.

mod blockers;
mod progress;
mod queue;
#[cfg(test)]
mod tests;
mod why;

use std::collections::BTreeSet;

use pdca_state::{Awaits, BundleId};

use crate::item::ItemState;
use crate::pattern::Pattern;
use crate::plan::Plan;

use blockers::Blockers;
use progress::FrontierProgress;
use queue::ReadyQueue;
use why::Explanation;
pub use why::{ClaimHolder, Unmet, Why};

/// The number of lower-ranked rivals that may start before a ready bundle.
pub const PATIENCE: u32 = 8;

/// The outcome of a bundle that was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Accepted; dependants that wait for acceptance may start.
    Complete,
    /// Built with passing gates, and waits for its sign-off.
    Built,
    /// Built with failed gates, and waits for its sign-off.
    Red,
    /// Waits for a person without a result. Rivals may start; dependants still wait.
    Halted,
    /// Failed without a result. Rivals may start; dependants do not.
    Failed,
}

/// The progress of a bundle in a frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemStatus {
    /// A prerequisite has not made the progress that the bundle waits for.
    Open,
    /// May start, unless a rival is in flight.
    Ready,
    /// Started and not ended.
    InFlight,
    /// Waits for a person.
    Halted,
    /// Ended as [`Completion::Failed`].
    Failed,
    /// Accepted or landed.
    Complete,
    /// Was given up before the plan was made.
    Ended,
}

/// The error of a report that does not fit the status of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontierError {
    /// The bundle is not part of the plan.
    #[error("{id} is not in the batch")]
    Unknown {
        /// The id in the report.
        id: BundleId,
    },
    /// The bundle is reported as ended and is not in flight.
    #[error("{id} is not in flight")]
    NotInFlight {
        /// The id in the report.
        id: BundleId,
    },
    /// The bundle is reported as reopened or withdrawn and has neither halted nor failed.
    #[error("{id} has neither halted nor failed")]
    NotHalted {
        /// The id in the report.
        id: BundleId,
    },
}

/// A constraint that a simulation ignores, to measure its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiver {
    /// Prerequisite and dependant: the dependant does not wait.
    Edge(usize, usize),
    /// Two rivals, lower first: they may be in flight together.
    Rivals(usize, usize),
}

/// The state of a plan that is being carried out.
///
/// The caller reports events; the frontier only decides which bundle is next. Rivals are never in
/// flight together, and no bundle starts before its prerequisites, for any number of lanes and any
/// order of reports. The longest chain of dependent work starts first, then the first name; a bundle
/// that lost to [`PATIENCE`] lower-ranked rivals takes precedence over its rivals.
#[derive(Debug, Clone)]
pub struct Frontier<'p> {
    plan: &'p Plan,
    status: Vec<ItemStatus>,
    progress: FrontierProgress<'p>,
    queue: ReadyQueue<'p>,
    blockers: Blockers<'p>,
    /// Completed from outside while in flight; the outcome that they report later is ignored.
    settled: BTreeSet<usize>,
}

impl<'p> Frontier<'p> {
    /// Starts with nothing in flight.
    pub fn new(plan: &'p Plan) -> Self {
        Self::waiving(plan, None)
    }

    pub(crate) fn waiving(plan: &'p Plan, waiver: Option<Waiver>) -> Self {
        let status = plan.items.iter().map(|item| match item.standing {
            ItemState::Active => ItemStatus::Open,
            ItemState::Waiting | ItemState::Built | ItemState::Red => ItemStatus::Halted,
            ItemState::Complete | ItemState::Landed => ItemStatus::Complete,
            ItemState::Ended => ItemStatus::Ended,
        });
        let (edge, rivals) = match waiver {
            Some(Waiver::Edge(before, after)) => (Some((before, after)), None),
            Some(Waiver::Rivals(a, b)) => (None, Some((a, b))),
            None => (None, None),
        };
        let mut frontier = Self {
            plan,
            status: status.collect(),
            progress: FrontierProgress::new(&plan.items, &plan.graph, edge),
            queue: ReadyQueue::new(&plan.rank, &plan.claims),
            blockers: Blockers::new(&plan.claims, rivals),
            settled: BTreeSet::new(),
        };
        for bundle in 0..plan.items.len() {
            frontier.make_ready(bundle);
        }
        for (bundle, item) in plan.items.iter().enumerate() {
            if item.standing.holds(plan.options.rivals) {
                frontier.blockers.hold(bundle);
            }
        }
        frontier
    }

    /// Starts the next bundle, if one may start now. Call it again while a lane is free.
    pub fn start_next(&mut self) -> Option<BundleId> {
        self.start().map(|bundle| self.plan.items[bundle].id.clone())
    }

    /// Starts a bundle out of turn, if it is ready and has no rival in flight; for bundles that were
    /// in flight when an earlier run stopped. Returns true if it was started.
    pub fn start_first(&mut self, id: &BundleId) -> Result<bool, FrontierError> {
        let bundle = self.find(id)?;
        let may = self.status[bundle] == ItemStatus::Ready && !self.blockers.blocks(bundle);
        if may {
            self.begin(bundle);
        }
        Ok(may)
    }

    /// Returns the bundles that were skipped since the last call because a rival was in flight, with
    /// those rivals. A bundle is returned again only after one of its rivals ended.
    pub fn take_passed_over(&mut self) -> Vec<(BundleId, Vec<ClaimHolder>)> {
        let passed = self.queue.take_passed_over();
        let named = |bundle: usize| {
            let holders = Explanation { frontier: self, bundle }.holders();
            (self.plan.items[bundle].id.clone(), holders)
        };
        passed.into_iter().map(named).filter(|(_, holders)| !holders.is_empty()).collect()
    }

    /// Reports that a bundle in flight has ended. Returns the bundles that became ready, in name order.
    pub fn ended(
        &mut self,
        id: &BundleId,
        outcome: Completion,
    ) -> Result<Vec<BundleId>, FrontierError> {
        let bundle = self.find(id)?;
        if self.status[bundle] != ItemStatus::InFlight {
            return Err(FrontierError::NotInFlight { id: id.clone() });
        }
        let freed = self.end(bundle, outcome);
        Ok(self.ids(&freed))
    }

    /// Reports that a bundle was completed by something other than a worker, such as a sign-off.
    /// Returns the bundles that became ready, in name order.
    ///
    /// A bundle in flight still blocks its rivals until it is reported as [ended](Self::ended).
    pub fn completed_elsewhere(&mut self, id: &BundleId) -> Result<Vec<BundleId>, FrontierError> {
        self.settle(id, Awaits::Accepted)
    }

    /// Reports that a bundle landed in the target branch. Returns the bundles that became ready, in
    /// name order.
    pub fn landed_elsewhere(&mut self, id: &BundleId) -> Result<Vec<BundleId>, FrontierError> {
        self.settle(id, Awaits::Landed)
    }

    fn settle(&mut self, id: &BundleId, level: Awaits) -> Result<Vec<BundleId>, FrontierError> {
        let bundle = self.find(id)?;
        match self.status[bundle] {
            ItemStatus::Complete => {}
            // Its status stays: the worker is still writing, so its rivals must wait until it has
            // ended.
            ItemStatus::InFlight => drop(self.settled.insert(bundle)),
            ItemStatus::Open
            | ItemStatus::Ready
            | ItemStatus::Halted
            | ItemStatus::Failed
            | ItemStatus::Ended => {
                // Before it leaves: its turn at free claims goes to the next bundle that waits for
                // them.
                self.queue.pass_on(&self.blockers, bundle);
                self.queue.leave(self.blockers.claims(), bundle);
                self.status[bundle] = ItemStatus::Complete;
                // As at the end of a worker: it has a result now, also if it had none before.
                if level < self.plan.options.rivals {
                    self.blockers.hold(bundle);
                }
            }
        }
        let freed = self.reach(bundle, level);
        Ok(self.ids(&freed))
    }

    /// Reports that a bundle that halted or failed has work to do again. Its earlier progress no longer
    /// counts.
    pub fn reopened(&mut self, id: &BundleId) -> Result<(), FrontierError> {
        let bundle = self.find(id)?;
        if !matches!(self.status[bundle], ItemStatus::Halted | ItemStatus::Failed) {
            return Err(FrontierError::NotHalted { id: id.clone() });
        }
        self.take_back(bundle);
        self.status[bundle] = ItemStatus::Open;
        self.make_ready(bundle);
        Ok(())
    }

    /// Reports that a bundle that halted or failed was given up or sent back to Plan. Its result no
    /// longer blocks rivals; its dependants still wait.
    pub fn withdrawn(&mut self, id: &BundleId) -> Result<(), FrontierError> {
        let bundle = self.find(id)?;
        if !matches!(self.status[bundle], ItemStatus::Halted | ItemStatus::Failed) {
            return Err(FrontierError::NotHalted { id: id.clone() });
        }
        self.take_back(bundle);
        Ok(())
    }

    /// Reports that a bundle touches more than it declared. If it is in flight, returns the bundles in
    /// flight that are its rivals now; the frontier cannot stop them.
    pub fn widen(
        &mut self,
        id: &BundleId,
        patterns: Vec<Pattern>,
    ) -> Result<Vec<ClaimHolder>, FrontierError> {
        let bundle = self.find(id)?;
        self.blockers.widen(|claims| claims.widen(bundle, patterns));
        self.queue.recount(self.blockers.claims());
        let is_in_flight = self.status[bundle] == ItemStatus::InFlight;
        let explanation = Explanation { frontier: self, bundle };
        Ok(if is_in_flight { explanation.holders() } else { Vec::new() })
    }

    /// Explains the status of a bundle; `None` if the plan has no such bundle.
    pub fn why(&self, id: &BundleId) -> Option<Why> {
        let bundle = self.plan.find(id)?;
        Some(Explanation { frontier: self, bundle }.why())
    }

    /// The status of a bundle; `None` if the plan has no such bundle.
    pub fn status(&self, id: &BundleId) -> Option<ItemStatus> {
        self.plan.find(id).map(|bundle| self.status[bundle])
    }

    /// Iterates over the bundles in flight, in the order of their starts.
    pub fn in_flight(&self) -> impl ExactSizeIterator<Item = &BundleId> {
        self.blockers.in_flight().iter().map(|bundle| &self.plan.items[*bundle].id)
    }

    /// Returns true if nothing is in flight or ready: without an outside event nothing will start.
    pub fn is_exhausted(&self) -> bool {
        self.blockers.in_flight().is_empty() && self.queue.is_empty()
    }

    fn find(&self, id: &BundleId) -> Result<usize, FrontierError> {
        self.plan.find(id).ok_or_else(|| FrontierError::Unknown { id: id.clone() })
    }

    fn ids(&self, bundles: &[usize]) -> Vec<BundleId> {
        self.plan.names(bundles).into_iter().cloned().collect()
    }

    /// Starts the first bundle in order that may start.
    pub(crate) fn start(&mut self) -> Option<usize> {
        let bundle = self.queue.next(&self.blockers)?;
        self.begin(bundle);
        Some(bundle)
    }

    fn begin(&mut self, bundle: usize) {
        self.queue.leave(self.blockers.claims(), bundle);
        self.status[bundle] = ItemStatus::InFlight;
        self.blockers.start(bundle);
        self.queue.overtake(self.blockers.claims(), bundle);
    }

    pub(crate) fn end(&mut self, bundle: usize, outcome: Completion) -> Vec<usize> {
        // Freed even if the result goes on blocking: `hold` takes the claims again below, and a
        // candidate that is blocked then is passed over.
        let freed = self.blockers.end(bundle);
        self.queue.offer(&freed);
        // What the worker reports comes after the decision of a person and does not overrule it.
        if self.settled.remove(&bundle) {
            self.status[bundle] = ItemStatus::Complete;
            if self.progress.of(bundle) < Some(self.plan.options.rivals) {
                self.blockers.hold(bundle);
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
            self.blockers.hold(bundle);
        }
        level.map_or_else(Vec::new, |level| self.reach(bundle, level))
    }

    pub(crate) fn are_rivals(&self, a: usize, b: usize) -> bool {
        self.blockers.are_rivals(a, b)
    }

    fn make_ready(&mut self, bundle: usize) {
        if self.status[bundle] == ItemStatus::Open && self.progress.is_met(bundle) {
            self.status[bundle] = ItemStatus::Ready;
            self.queue.enter(self.blockers.claims(), bundle);
        }
    }

    /// Records the progress of a bundle. Returns the bundles that became ready, in name order.
    pub(crate) fn reach(&mut self, bundle: usize, level: Awaits) -> Vec<usize> {
        let Some(mut released) = self.progress.raise(bundle, level) else { return Vec::new() };
        if level >= self.plan.options.rivals {
            let freed = self.blockers.unhold(bundle);
            self.queue.offer(&freed);
        }
        for &dependant in &released {
            self.make_ready(dependant);
        }
        // A released dependant may wait for another prerequisite still, or be halted itself.
        released.retain(|dependant| self.status[*dependant] == ItemStatus::Ready);
        released.sort_unstable();
        released
    }

    /// Resets the progress of a bundle. Dependants that were ready wait again; those in flight go on.
    fn take_back(&mut self, bundle: usize) {
        let freed = self.blockers.unhold(bundle);
        self.queue.offer(&freed);
        for dependant in self.progress.reset(bundle) {
            if self.status[dependant] == ItemStatus::Ready {
                self.queue.pass_on(&self.blockers, dependant);
                self.queue.leave(self.blockers.claims(), dependant);
                self.status[dependant] = ItemStatus::Open;
            }
        }
    }
}
