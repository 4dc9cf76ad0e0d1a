//! Why a bundle is not running.

use pdca_state::{Awaits, BundleId};

use super::{Frontier, ItemStatus};
use crate::claims::Rivalry;
use crate::item::SourceLocation;

/// Why a bundle is not running, or that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nothing keeps it but the number of lanes and those before it.
    Ready {
        /// How many ready bundles are before it in order, rivals in flight disregarded.
        before: usize,
    },
    /// It waits for prerequisites.
    Waits {
        /// Those that are not complete, in name order.
        on: Vec<Unmet>,
    },
    /// Rivals of it are in flight.
    Held {
        /// Which, in the order they were started.
        by: Vec<ClaimHolder>,
        /// How many lesser rivals were started before it.
        aged: u32,
    },
    /// A rival has waited long enough and is let by.
    Yields {
        /// That rival and why it is one.
        to: ClaimHolder,
        /// How many lesser rivals were started before it.
        aged: u32,
    },
    /// It is in flight.
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

/// A prerequisite that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The prerequisite.
    pub id: BundleId,
    /// What became of it so far.
    pub status: ItemStatus,
    /// How far it must be.
    pub awaits: Awaits,
    /// Where it is declared.
    pub place: SourceLocation,
}

/// A rival that keeps a bundle from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimHolder {
    /// The rival.
    pub id: BundleId,
    /// Why it is one; of two globs the first is of the one that waits.
    pub rivalry: Rivalry,
    /// How far its result must come before others may start; none while it is in flight.
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

    /// The rivals of a bundle that are in flight, then those whose result keeps it waiting.
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
