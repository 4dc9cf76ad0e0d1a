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

mod moves;
#[cfg(test)]
mod tests;
mod why;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use pdca_state::{Awaits, BundleId};

use crate::claims::Claims;
use crate::item::ItemState;
use crate::pattern::Pattern;
use crate::plan::Plan;

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

/// The sort key of the start order: the longest chain first, then the name.
type Turn = (Reverse<u64>, usize);

/// The state of a plan that is being carried out.
///
/// The caller reports events; the frontier only decides which bundle is next. Rivals are never in
/// flight together, and no bundle starts before its prerequisites, for any number of lanes and any
/// order of reports. The longest chain of dependent work starts first, then the first name; a bundle
/// that lost to [`PATIENCE`] lower-ranked rivals takes precedence over its rivals.
#[derive(Debug, Clone)]
pub struct Frontier<'p> {
    plan: &'p Plan,
    claims: Cow<'p, Claims>,
    status: Vec<ItemStatus>,
    /// The progress of each bundle, compared with what its dependants wait for.
    reached: Vec<Option<Awaits>>,
    /// The bundles that are not in flight and whose result blocks rivals.
    holding: BTreeSet<usize>,
    /// For each bundle, the number of prerequisites that it still waits for.
    unmet: Vec<usize>,
    ready: BTreeSet<Turn>,
    /// The ready bundles that [`Frontier::start`] has to look at; the others cannot start now.
    candidates: BTreeSet<Turn>,
    /// For each claim, the ready bundles that hold it.
    waiting: Vec<BTreeSet<Turn>>,
    /// In the order of their starts.
    in_flight: Vec<usize>,
    /// Completed from outside while in flight; the outcome that they report later is ignored.
    settled: BTreeSet<usize>,
    /// For each claim, the number of bundles in `in_flight` and `holding` that block it.
    held: Vec<u32>,
    /// For each ready bundle, the number of lower-ranked rivals that were started before it.
    age: Vec<u32>,
    /// The bundles that have aged [`PATIENCE`] times, in that order.
    impatient: Vec<usize>,
    /// For each claim, the number of impatient bundles that block it for the others.
    kept: Vec<u32>,
    /// The bundles that were skipped because of a rival, since [`Frontier::take_passed_over`].
    passed_over: Vec<usize>,
    waiver: Option<Waiver>,
}

impl<'p> Frontier<'p> {
    /// Starts with nothing in flight.
    pub fn new(plan: &'p Plan) -> Self {
        Self::waiving(plan, None)
    }

    pub(crate) fn waiving(plan: &'p Plan, waiver: Option<Waiver>) -> Self {
        let bundles = plan.items.len();
        let status = plan.items.iter().map(|item| match item.standing {
            ItemState::Active => ItemStatus::Open,
            ItemState::Waiting | ItemState::Built | ItemState::Red => ItemStatus::Halted,
            ItemState::Complete | ItemState::Landed => ItemStatus::Complete,
            ItemState::Ended => ItemStatus::Ended,
        });
        let reached = plan.items.iter().map(|item| item.standing.reached());
        let mut frontier = Self {
            plan,
            claims: Cow::Borrowed(&plan.claims),
            status: status.collect(),
            reached: reached.collect(),
            holding: BTreeSet::new(),
            unmet: vec![0; bundles],
            ready: BTreeSet::new(),
            candidates: BTreeSet::new(),
            waiting: vec![BTreeSet::new(); plan.claims.len()],
            in_flight: Vec::new(),
            settled: BTreeSet::new(),
            held: vec![0; plan.claims.len()],
            age: vec![0; bundles],
            impatient: Vec::new(),
            kept: vec![0; plan.claims.len()],
            passed_over: Vec::new(),
            waiver,
        };
        for bundle in 0..bundles {
            let unmet = plan.graph.before(bundle).filter(|(before, tie)| {
                frontier.reached[*before] < Some(tie.awaits)
                    && waiver != Some(Waiver::Edge(*before, bundle))
            });
            frontier.unmet[bundle] = unmet.count();
            frontier.make_ready(bundle);
        }
        for (bundle, item) in plan.items.iter().enumerate() {
            if item.standing.holds(plan.options.rivals) {
                frontier.hold(bundle);
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
        let may = self.status[bundle] == ItemStatus::Ready && !self.is_held(bundle);
        if may {
            self.begin(bundle);
        }
        Ok(may)
    }

    /// Returns the bundles that were skipped since the last call because a rival was in flight, with
    /// those rivals. A bundle is returned again only after one of its rivals ended.
    pub fn take_passed_over(&mut self) -> Vec<(BundleId, Vec<ClaimHolder>)> {
        let mut passed = std::mem::take(&mut self.passed_over);
        passed.sort_unstable();
        passed.dedup();
        passed.retain(|bundle| self.status[*bundle] == ItemStatus::Ready);
        let named = |bundle: usize| (self.plan.items[bundle].id.clone(), self.holders(bundle));
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
            ItemStatus::InFlight => drop(self.settled.insert(bundle)),
            ItemStatus::Open
            | ItemStatus::Ready
            | ItemStatus::Halted
            | ItemStatus::Failed
            | ItemStatus::Ended => {
                self.pass_on(bundle);
                self.leave_ready(bundle);
                self.status[bundle] = ItemStatus::Complete;
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
        self.claims.to_mut().widen(bundle, patterns);
        self.recount();
        let is_in_flight = self.status[bundle] == ItemStatus::InFlight;
        Ok(if is_in_flight { self.holders(bundle) } else { Vec::new() })
    }

    /// Explains the status of a bundle; `None` if the plan has no such bundle.
    pub fn why(&self, id: &BundleId) -> Option<Why> {
        let bundle = self.plan.find(id)?;
        Some(match self.status[bundle] {
            ItemStatus::Open => Why::Waits { on: self.unmet(bundle) },
            ItemStatus::Ready => self.why_ready(bundle),
            ItemStatus::InFlight => Why::InFlight,
            ItemStatus::Halted => Why::Halted,
            ItemStatus::Failed => Why::Failed,
            ItemStatus::Complete => Why::Complete,
            ItemStatus::Ended => Why::Ended,
        })
    }

    /// The status of a bundle; `None` if the plan has no such bundle.
    pub fn status(&self, id: &BundleId) -> Option<ItemStatus> {
        self.plan.find(id).map(|bundle| self.status[bundle])
    }

    /// Iterates over the bundles in flight, in the order of their starts.
    pub fn in_flight(&self) -> impl ExactSizeIterator<Item = &BundleId> {
        self.in_flight.iter().map(|bundle| &self.plan.items[*bundle].id)
    }

    /// Returns true if nothing is in flight or ready: without an outside event nothing will start.
    pub fn is_exhausted(&self) -> bool {
        self.in_flight.is_empty() && self.ready.is_empty()
    }

    fn find(&self, id: &BundleId) -> Result<usize, FrontierError> {
        self.plan.find(id).ok_or_else(|| FrontierError::Unknown { id: id.clone() })
    }

    fn ids(&self, bundles: &[usize]) -> Vec<BundleId> {
        self.plan.names(bundles).into_iter().cloned().collect()
    }
}
