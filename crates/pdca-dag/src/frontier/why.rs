//! Explanations for `pdca why`: the reason a bundle is not running.

use pdca_state::{Awaits, BundleId};

use super::{Frontier, ItemStatus};
use crate::claims::Rivalry;
use crate::item::SourceLocation;

/// The status of a bundle, with the reasons it is not running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Waits only for a free lane.
    Ready {
        /// The number of ready bundles before it in the order, blocked ones included.
        before: usize,
    },
    /// Waits for prerequisites.
    Waits {
        /// The prerequisites that have not made the required progress, in name order.
        on: Vec<Unmet>,
    },
    /// Blocked by rivals.
    Held {
        /// The rivals in flight in the order of their starts, then those whose result blocks.
        by: Vec<ClaimHolder>,
        /// The number of lower-ranked rivals that were started before it.
        aged: u32,
    },
    /// Gives way to a rival that has waited too long, see [`PATIENCE`](crate::PATIENCE).
    Yields {
        /// The rival that has precedence.
        to: ClaimHolder,
        /// The number of lower-ranked rivals that were started before this bundle.
        aged: u32,
    },
    /// See [`ItemStatus::InFlight`].
    InFlight,
    /// See [`ItemStatus::Halted`].
    Halted,
    /// See [`ItemStatus::Failed`].
    Failed,
    /// See [`ItemStatus::Complete`].
    Complete,
    /// See [`ItemStatus::Ended`].
    Ended,
}

/// A prerequisite that has not made the required progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The id of the prerequisite.
    pub id: BundleId,
    /// The current status of the prerequisite.
    pub status: ItemStatus,
    /// The progress that the dependant waits for.
    pub awaits: Awaits,
    /// The location of the declaration.
    pub place: SourceLocation,
}

/// A rival that prevents a bundle from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimHolder {
    /// The id of the rival.
    pub id: BundleId,
    /// The reason it is a rival; of two globs, the first belongs to the bundle that waits.
    pub rivalry: Rivalry,
    /// The progress that the rival's result must make first; `None` while the rival is in flight.
    pub until: Option<Awaits>,
}

/// A read-only view of a frontier that explains the status of one bundle.
pub(super) struct Explanation<'f, 'p> {
    pub(super) frontier: &'f Frontier<'p>,
    pub(super) bundle: usize,
}

impl Explanation<'_, '_> {
    pub(super) fn why(&self) -> Why {
        match self.frontier.status[self.bundle] {
            ItemStatus::Open => Why::Waits { on: self.unmet() },
            ItemStatus::Ready => self.ready(),
            ItemStatus::InFlight => Why::InFlight,
            ItemStatus::Halted => Why::Halted,
            ItemStatus::Failed => Why::Failed,
            ItemStatus::Complete => Why::Complete,
            ItemStatus::Ended => Why::Ended,
        }
    }

    fn unmet(&self) -> Vec<Unmet> {
        let describe = |(before, tie): (usize, &crate::graph::Tie)| Unmet {
            id: self.frontier.plan.items[before].id.clone(),
            status: self.frontier.status[before],
            awaits: tie.awaits,
            place: tie.place.clone(),
        };
        self.frontier.progress.unmet(self.bundle).into_iter().map(describe).collect()
    }

    fn ready(&self) -> Why {
        let queue = &self.frontier.queue;
        let aged = queue.age(self.bundle);
        let by = self.holders();
        if !by.is_empty() {
            return Why::Held { by, aged };
        }
        let mut waited_for = queue.impatient_before(self.bundle);
        if let Some(to) = waited_for.find_map(|other| self.holder(other)) {
            return Why::Yields { to, aged };
        }
        Why::Ready { before: queue.before(self.bundle) }
    }

    /// Returns the rivals of the bundle that are in flight, then those whose result blocks it.
    pub(super) fn holders(&self) -> Vec<ClaimHolder> {
        let others = self.frontier.blockers.iter().filter(|other| *other != self.bundle);
        others.filter_map(|other| self.holder(other)).collect()
    }

    fn holder(&self, other: usize) -> Option<ClaimHolder> {
        let Frontier { plan, blockers, .. } = self.frontier;
        let rivalry = blockers.rivalry(self.bundle, other)?;
        let until = blockers.is_holding(other).then_some(plan.options.rivals);
        Some(ClaimHolder { id: plan.items[other].id.clone(), rivalry, until })
    }
}
