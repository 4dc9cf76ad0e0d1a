//! Why a bundle is not running.

use pdca_state::BundleId;

use super::{Frontier, Status};
use crate::claims::Rivalry;
use crate::item::Place;

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
        by: Vec<Holder>,
        /// How many lesser rivals were started before it.
        aged: u32,
    },
    /// A rival has waited long enough and is let by.
    Yields {
        /// That rival and why it is one.
        to: Holder,
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
    pub status: Status,
    /// Where it is declared.
    pub place: Place,
}

/// A rival that keeps a bundle from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The rival.
    pub id: BundleId,
    /// Why it is one; of two globs the first is of the one that waits.
    pub rivalry: Rivalry,
}

impl Frontier<'_> {
    pub(super) fn unmet(&self, bundle: usize) -> Vec<Unmet> {
        let is_met = |before: &usize| {
            self.status[*before] == Status::Complete || self.settled.contains(before)
        };
        let mut unmet: Vec<usize> = self.plan.graph.prerequisites(bundle).collect();
        unmet.retain(|before| !is_met(before));
        unmet.sort_unstable();
        let describe = |before: usize| {
            let place = self.plan.graph.place(before, bundle)?.clone();
            let id = self.plan.items[before].id.clone();
            Some(Unmet { id, status: self.status[before], place })
        };
        unmet.into_iter().filter_map(describe).collect()
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

    /// The rivals of a bundle that are in flight.
    pub(super) fn holders(&self, bundle: usize) -> Vec<Holder> {
        let others = self.in_flight.iter().filter(|other| **other != bundle);
        others.filter_map(|other| self.holder(bundle, *other)).collect()
    }

    fn holder(&self, bundle: usize, other: usize) -> Option<Holder> {
        let rivalry = self.claims.rivalry(bundle, other)?;
        Some(Holder { id: self.plan.items[other].id.clone(), rivalry })
    }
}
