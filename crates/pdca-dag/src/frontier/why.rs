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

impl Frontier<'_> {
    pub(super) fn unmet(&self, bundle: usize) -> Vec<Unmet> {
        let mut unmet: Vec<_> = self.plan.graph.before(bundle).collect();
        unmet.retain(|(before, tie)| self.reached[*before] < Some(tie.awaits));
        unmet.sort_unstable_by_key(|(before, _)| *before);
        let describe = |(before, tie): (usize, &crate::graph::Tie)| Unmet {
            id: self.plan.items[before].id.clone(),
            status: self.status[before],
            awaits: tie.awaits,
            place: tie.place.clone(),
        };
        unmet.into_iter().map(describe).collect()
    }

    pub(super) fn why_ready(&self, bundle: usize) -> Why {
        let aged = self.age[bundle];
        let by = self.holders(bundle);
        if !by.is_empty() {
            return Why::Held { by, aged };
        }
        let mut waited_for = self.impatient.iter().take_while(|other| **other != bundle);
        if let Some(to) = waited_for.find_map(|other| self.holder(bundle, *other)) {
            return Why::Yields { to, aged };
        }
        Why::Ready { before: self.ready.range(..self.turn(bundle)).count() }
    }

    /// The rivals of a bundle that are in flight, then those whose result blocks it.
    pub(super) fn holders(&self, bundle: usize) -> Vec<ClaimHolder> {
        let others = self.in_flight.iter().chain(&self.holding).filter(|other| **other != bundle);
        others.filter_map(|other| self.holder(bundle, *other)).collect()
    }

    fn holder(&self, bundle: usize, other: usize) -> Option<ClaimHolder> {
        let rivalry = self.claims.rivalry(bundle, other)?;
        let until = self.holding.contains(&other).then_some(self.plan.options.rivals);
        Some(ClaimHolder { id: self.plan.items[other].id.clone(), rivalry, until })
    }
}
