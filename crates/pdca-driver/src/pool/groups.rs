//! Planning groups: bundles that run one after the other in one lane.
//!
//! A group is bound to the lane of its first bundle for as long as the pool runs. Its bundles start in
//! the order of the group, each when the one before it is no longer in flight. One that cannot start
//! before a person acts is passed over, so that it does not block the others; it starts when it
//! may, in the same lane. A lane serves one group until none of its bundles can start, and then another.

use std::collections::{BTreeMap, BTreeSet};

use pdca_dag::{Frontier, ItemStatus, Plan, Why};
use pdca_state::BundleId;

/// The groups, with the slot and the bundle in flight of each.
pub(super) struct Groups {
    /// The members of each group, in the order in which they run.
    members: Vec<Vec<BundleId>>,
    of: BTreeMap<BundleId, usize>,
    /// The position of each bundle in the plan's order, regardless of groups.
    turns: BTreeMap<BundleId, usize>,
    /// The slot of each group, from its first bundle on.
    slots: BTreeMap<usize, usize>,
    /// The bundle in flight of each group.
    in_flight: BTreeMap<usize, BundleId>,
}

impl Groups {
    /// Makes the groups of a plan; a bundle that is in no group becomes one of its own.
    pub(super) fn new(plan: &Plan, groups: &[Vec<BundleId>]) -> Self {
        let mut members: Vec<Vec<BundleId>> = groups.to_vec();
        let mut of: BTreeMap<BundleId, usize> = BTreeMap::new();
        for (group, ids) in members.iter().enumerate() {
            of.extend(ids.iter().map(|id| (id.clone(), group)));
        }
        for id in plan.ids() {
            if !of.contains_key(id) {
                of.insert(id.clone(), members.len());
                members.push(vec![id.clone()]);
            }
        }
        let turns = plan.order().into_iter().enumerate().map(|(turn, id)| (id.clone(), turn));
        let turns = turns.collect();
        Self { members, of, turns, slots: BTreeMap::new(), in_flight: BTreeMap::new() }
    }

    /// Returns the bundles that may start by the order of their groups, in plan order, each with
    /// the slot that its group is bound to.
    pub(super) fn next(
        &self,
        plan: &Plan,
        frontier: &Frontier<'_>,
    ) -> Vec<(BundleId, Option<usize>)> {
        let mut stuck: Option<BTreeSet<BundleId>> = None;
        let mut next = Vec::new();
        for (group, members) in self.members.iter().enumerate() {
            if self.in_flight.contains_key(&group) {
                continue;
            }
            for id in members {
                match frontier.status(id) {
                    Some(ItemStatus::Ready) => {
                        next.push((self.turn(id), id.clone(), self.slots.get(&group).copied()));
                        break;
                    }
                    Some(ItemStatus::Open) => {
                        let stuck = stuck.get_or_insert_with(|| stuck_in(plan, frontier));
                        // It can still become ready by itself, so the group waits for it.
                        if !stuck.contains(id) {
                            break;
                        }
                    }
                    Some(
                        ItemStatus::InFlight
                        | ItemStatus::Halted
                        | ItemStatus::Failed
                        | ItemStatus::Complete
                        | ItemStatus::Ended,
                    )
                    | None => {}
                }
            }
        }
        next.sort();
        next.into_iter().map(|(_, id, slot)| (id, slot)).collect()
    }

    /// Returns the bundles that may start regardless of the order in their groups. Groups made after some of their
    /// bundles had started may wait for each other.
    pub(super) fn any(&self, frontier: &Frontier<'_>) -> Vec<(BundleId, Option<usize>)> {
        let is_ready = |id: &&BundleId| frontier.status(id) == Some(ItemStatus::Ready);
        let ready = self.of.iter().filter(|(id, _)| is_ready(id));
        let ready = ready.filter(|(_, group)| !self.in_flight.contains_key(group));
        let mut ready: Vec<_> = ready
            .map(|(id, group)| (self.turn(id), id.clone(), self.slots.get(group).copied()))
            .collect();
        ready.sort();
        ready.into_iter().map(|(_, id, slot)| (id, slot)).collect()
    }

    /// Records that a bundle was assigned to a slot.
    pub(super) fn started(&mut self, id: &BundleId, slot: usize) {
        if let Some(&group) = self.of.get(id) {
            self.slots.entry(group).or_insert(slot);
            self.in_flight.insert(group, id.clone());
        }
    }

    /// Records that a bundle is no longer in flight.
    pub(super) fn ended(&mut self, id: &BundleId) {
        self.in_flight.retain(|_, other| other != id);
    }

    /// Unbinds the groups of a slot that is no longer available.
    pub(super) fn closed(&mut self, slot: usize) {
        self.slots.retain(|_, other| *other != slot);
    }

    fn turn(&self, id: &BundleId) -> usize {
        self.turns.get(id).copied().unwrap_or(usize::MAX)
    }
}

/// Returns the bundles that cannot become ready before a person acts.
fn stuck_in(plan: &Plan, frontier: &Frontier<'_>) -> BTreeSet<BundleId> {
    let mut stuck = BTreeSet::new();
    // In this order every prerequisite is decided before its dependants.
    for id in plan.order() {
        let Some(Why::Waits { on }) = frontier.why(id) else { continue };
        let is_stuck = on.iter().any(|unmet| match unmet.status {
            ItemStatus::Halted | ItemStatus::Failed | ItemStatus::Complete | ItemStatus::Ended => {
                true
            }
            ItemStatus::Open => stuck.contains(&unmet.id),
            ItemStatus::Ready | ItemStatus::InFlight => false,
        });
        if is_stuck {
            stuck.insert(id.clone());
        }
    }
    stuck
}
