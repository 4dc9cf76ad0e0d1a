//! Which bundle to start when a lane is free.
//!
//! A bundle is *open* until all its prerequisites are as far as they must be, then *ready*, then *in
//! flight*, then complete, halted or failed. Of those that are ready the one with the longest chain of
//! work behind it starts first, then the first by name, unless a rival is in flight. Where rivals wait
//! for a sign-off or a landing, a result that has not come that far keeps its rivals waiting as if it
//! were in flight.
//!
//! A bundle with many rivals could lose to lesser ones again and again, because there is always
//! one of them in flight. So it ages each time a rival that comes after it in order is started
//! before it, and once it has aged [`PATIENCE`] times no rival is started until it was, except one
//! that ran out of patience earlier.

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

/// How many lesser rivals may be started before a bundle that is ready.
pub const PATIENCE: u32 = 8;

/// How a bundle ended for the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// It is complete: what depends on it may start.
    Complete,
    /// It is green and waits for its sign-off.
    Built,
    /// It is red and waits for its sign-off.
    Red,
    /// It waits for somebody, and nothing was built. Its rivals may start; what depends on it waits
    /// on.
    Halted,
    /// It failed. Its rivals may start; what depends on it does not.
    Failed,
}

/// What became of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemStatus {
    /// A prerequisite is not complete.
    Open,
    /// It may start, unless a rival is in flight.
    Ready,
    /// It was started and has not ended.
    InFlight,
    /// It waits for somebody.
    Halted,
    /// It failed.
    Failed,
    /// It is complete.
    Complete,
    /// It was given up before.
    Ended,
}

/// A report about a bundle that is not what the report says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontierError {
    /// It is no part of the plan.
    #[error("{id} is not in the batch")]
    Unknown {
        /// The id.
        id: BundleId,
    },
    /// It cannot end.
    #[error("{id} is not in flight")]
    NotInFlight {
        /// The id.
        id: BundleId,
    },
    /// It cannot be taken up again.
    #[error("{id} has neither halted nor failed")]
    NotHalted {
        /// The id.
        id: BundleId,
    },
}

/// A constraint that a simulation leaves out, to see what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiver {
    /// The dependant does not wait for the prerequisite.
    Edge(usize, usize),
    /// The two may be in flight together.
    Rivals(usize, usize),
}

/// Who goes first: the longest chain, then the name.
type Turn = (Reverse<u64>, usize);

/// A plan that is being carried out: what is in flight, what may start next, and why the rest may
/// not.
///
/// It is told what happens and decides nothing but who is next. Bundles that are rivals are never
/// in flight together, and none is started before its prerequisites are complete, whatever the
/// number of lanes and the order of reports.
#[derive(Debug, Clone)]
pub struct Frontier<'p> {
    plan: &'p Plan,
    claims: Cow<'p, Claims>,
    status: Vec<ItemStatus>,
    /// How far each bundle has come, for what depends on it.
    reached: Vec<Option<Awaits>>,
    /// The bundles that are not in flight and whose result keeps rivals from starting.
    holding: BTreeSet<usize>,
    /// Prerequisites that are not as far as they must be.
    unmet: Vec<usize>,
    ready: BTreeSet<Turn>,
    /// The ready bundles that are worth a look when a lane is free.
    candidates: BTreeSet<Turn>,
    /// The ready bundles that have each claim.
    waiting: Vec<BTreeSet<Turn>>,
    /// In the order they were started.
    in_flight: Vec<usize>,
    /// Completed from outside while in flight: so it stays, whatever it reports in the end.
    settled: BTreeSet<usize>,
    /// How many bundles in flight keep each claim from others.
    held: Vec<u32>,
    /// How many lesser rivals were started before each bundle that is ready.
    age: Vec<u32>,
    /// The bundles without patience left, in the order they ran out of it.
    impatient: Vec<usize>,
    /// How many of those keep each claim from bundles that still have patience.
    kept: Vec<u32>,
    /// The bundles whose turn it was while a rival was in flight, since that was last asked.
    passed_over: Vec<usize>,
    waiver: Option<Waiver>,
}

impl<'p> Frontier<'p> {
    /// Nothing in flight, everything that can start ready.
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

    /// Starts the bundle that is next, if one may start now. Ask again while a lane is free.
    pub fn start_next(&mut self) -> Option<BundleId> {
        self.start().map(|bundle| self.plan.items[bundle].id.clone())
    }

    /// Starts this bundle, out of turn, if it is ready and no rival of it is in flight: one that
    /// was in flight when an earlier pool was stopped. Says whether it was started.
    pub fn start_first(&mut self, id: &BundleId) -> Result<bool, FrontierError> {
        let bundle = self.find(id)?;
        let may = self.status[bundle] == ItemStatus::Ready && !self.is_held(bundle);
        if may {
            self.begin(bundle);
        }
        Ok(may)
    }

    /// The bundles whose turn it was since this was last asked, and which had to wait because a
    /// rival was in flight, with those rivals. One is named again only after a rival ended.
    pub fn take_passed_over(&mut self) -> Vec<(BundleId, Vec<ClaimHolder>)> {
        let mut passed = std::mem::take(&mut self.passed_over);
        passed.sort_unstable();
        passed.dedup();
        passed.retain(|bundle| self.status[*bundle] == ItemStatus::Ready);
        let named = |bundle: usize| (self.plan.items[bundle].id.clone(), self.holders(bundle));
        passed.into_iter().map(named).filter(|(_, holders)| !holders.is_empty()).collect()
    }

    /// A bundle in flight has ended. Says which bundles became ready by that, in name order.
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

    /// A bundle became complete without the pool, by a sign-off for instance. Says which bundles
    /// became ready by that, in name order.
    ///
    /// One in flight goes on, and keeps its rivals waiting, until it is reported as ended.
    pub fn completed_elsewhere(&mut self, id: &BundleId) -> Result<Vec<BundleId>, FrontierError> {
        self.settle(id, Awaits::Accepted)
    }

    /// A bundle came into the target branch. Says which bundles became ready by that, in name order.
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

    /// A bundle that halted or failed has work to do again. What it had come to no longer counts.
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

    /// A bundle that halted was given up, or sent back to Plan: its result keeps nobody waiting any
    /// more, and what depends on it waits on.
    pub fn withdrawn(&mut self, id: &BundleId) -> Result<(), FrontierError> {
        let bundle = self.find(id)?;
        if !matches!(self.status[bundle], ItemStatus::Halted | ItemStatus::Failed) {
            return Err(FrontierError::NotHalted { id: id.clone() });
        }
        self.take_back(bundle);
        Ok(())
    }

    /// A bundle touches more than it declared. Says which bundles in flight are its rivals now,
    /// if it is in flight itself; they cannot be stopped from here.
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

    /// Why a bundle is not running; `None` where there is none of this id.
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

    /// What became of a bundle so far; `None` where there is none of this id.
    pub fn status(&self, id: &BundleId) -> Option<ItemStatus> {
        self.plan.find(id).map(|bundle| self.status[bundle])
    }

    /// The bundles in flight, in the order they were started.
    pub fn in_flight(&self) -> impl ExactSizeIterator<Item = &BundleId> {
        self.in_flight.iter().map(|bundle| &self.plan.items[*bundle].id)
    }

    /// Whether nothing is in flight and nothing can start unless something happens outside.
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
