//! Many bundles at once: one dispatcher, one worker for each lane.
//!
//! The dispatcher owns the [`Frontier`] and is the only one who decides. It asks the frontier what
//! may start, hands it to a free lane, and waits until a worker reports or the next tick, at which it
//! asks the [`PoolHost`] what people did meanwhile. A worker is a thread that is pinned to a slot from
//! its first bundle to the last; it is made when a bundle needs it, so there are never more than
//! bundles that were in flight together. With one lane there is one worker and no slot.
//!
//! Nothing here knows what a bundle is. So the laws of the pool are tested on thousands of graphs
//! with work that takes no time, and its speed is measured with work that sleeps.

mod batch_host;
mod groups;
#[cfg(test)]
mod tests;
mod worker;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::thread::Scope;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use pdca_dag::{ClaimHolder, Completion, Frontier, Pattern, Plan};
use pdca_state::BundleId;

pub use batch_host::{Batched, Stop};
use groups::Groups;
use worker::Worker;

/// How often people's doings are looked at while nothing else happens.
const TICK: Duration = Duration::from_millis(100);

/// What a worker does with a bundle, in the slot it is pinned to; no slot with one lane.
pub type Work<'w, T> = &'w (dyn Fn(&BundleId, Option<u32>) -> T + Sync);

/// Callbacks from the dispatcher. Always called on the dispatcher thread.
pub trait PoolHost<T> {
    /// The slot that holds unfinished work of a bundle, if one does.
    fn assigned_lane(&self, _id: &BundleId) -> Option<u32> {
        None
    }

    /// A bundle is assigned to a lane; `resumed` if the lane holds its unfinished work.
    fn starting(&mut self, _id: &BundleId, _lane: Option<u32>, _resumed: bool) {}

    /// A bundle's turn came while rivals of it were in flight.
    fn held(&mut self, _id: &BundleId, _by: &[ClaimHolder]) {}

    /// A bundle may start, because `by` is complete.
    fn freed(&mut self, _id: &BundleId, _by: &BundleId) {}

    /// A bundle in flight touches more than it declared, and these in flight are its rivals now.
    fn met(&mut self, _id: &BundleId, _rivals: &[ClaimHolder]) {}

    /// A lane is not to be had: the system gives no more threads.
    fn short_of_lanes(&mut self, _lanes: usize) {}

    /// A bundle's worker is done with it. Says what that means for the others.
    fn ended(&mut self, id: &BundleId, result: Result<T, Panicked>) -> Completion;

    /// Returns what happened outside the pool since the last call. `last` is set when the pool is about to end.
    fn external_events(&mut self, _last: bool) -> Vec<ExternalEvent> {
        Vec::new()
    }

    /// Whether nothing new may be started.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Something that happened outside the pool.
#[derive(Debug)]
pub enum ExternalEvent {
    /// A bundle became complete.
    Complete(BundleId),
    /// A bundle came into the target branch.
    Landed(BundleId),
    /// A bundle that halted was given up, or sent back to Plan.
    Withdrawn(BundleId),
    /// A bundle that halted has work to do again.
    Reopened(BundleId),
    /// A bundle touches more than it declared.
    Widened(BundleId, Vec<Pattern>),
}

/// A worker panicked; what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked(pub String);

/// Carries a plan out on so many lanes, until nothing is in flight and nothing can start.
///
/// With groups, the bundles of each run one after the other in one lane, in the order given; without
/// any, each bundle goes to the first lane that is free.
///
/// Gives back the frontier as it stands at the end: what is complete, what halted, what waits and
/// for whom.
pub fn carry_out<'p, T: Send>(
    plan: &'p Plan,
    groups: &[Vec<BundleId>],
    lanes: NonZeroU32,
    work: Work<'_, T>,
    host: &mut dyn PoolHost<T>,
) -> Frontier<'p> {
    let (reports, arrived) = unbounded();
    std::thread::scope(|scope| {
        let spawn_worker = |slot, lane| worker::spawn_worker(scope, slot, lane, work, &reports);
        let mut dispatcher = Dispatcher {
            plan,
            frontier: Frontier::new(plan),
            groups: (!groups.is_empty()).then(|| Groups::new(plan, groups)),
            host,
            homes: BTreeMap::new(),
            busy: BTreeSet::new(),
            closed: BTreeSet::new(),
            lanes: (0..lanes.get()).map(|_| None).collect(),
            spawn_worker: &spawn_worker,
        };
        dispatcher.resume();
        dispatcher.run(&arrived);
        // The workers end with their lanes, and the scope with the workers.
        dispatcher.frontier
    })
}

/// What a worker says when it is done with a bundle.
struct Done<T> {
    slot: usize,
    id: BundleId,
    result: Result<T, Panicked>,
}

/// Spawns the worker of a slot; the second number is the lane that the worker passes to the work.
type SpawnWorker<'h> = &'h dyn Fn(usize, Option<u32>) -> std::io::Result<Worker>;

struct Dispatcher<'p, 'd, T> {
    plan: &'p Plan,
    frontier: Frontier<'p>,
    /// The planning groups, where there are any.
    groups: Option<Groups>,
    host: &'d mut dyn PoolHost<T>,
    /// The slots in which work of bundles lies that have not been started yet.
    homes: BTreeMap<usize, BundleId>,
    busy: BTreeSet<usize>,
    /// The slots for which the system gave no thread.
    closed: BTreeSet<usize>,
    /// The worker of each slot, from its first bundle on.
    lanes: Vec<Option<Worker>>,
    spawn_worker: SpawnWorker<'d>,
}

impl<T> Dispatcher<'_, '_, T> {
    /// Starts what was in flight when an earlier pool was stopped, each where its work lies. They
    /// were in flight together then, so they may be now.
    fn resume(&mut self) {
        for id in self.plan.ids() {
            let lane = self.host.assigned_lane(id).and_then(|slot| usize::try_from(slot).ok());
            if let Some(slot) = lane.filter(|slot| *slot < self.lanes.len()) {
                self.homes.insert(slot, id.clone());
            }
        }
        if self.host.is_stopped() {
            return;
        }
        for (slot, id) in self.homes.clone() {
            // In a group only the one whose turn it is.
            let next = self.groups.as_ref().map(|groups| groups.next(self.plan, &self.frontier));
            if next.is_some_and(|next| !next.contains(&(id.clone(), None))) {
                continue;
            }
            if self.frontier.start_first(&id).is_ok_and(|started| started) {
                self.assign(&id, slot);
            }
        }
    }

    fn run(&mut self, arrived: &Receiver<Done<T>>) {
        loop {
            self.take_external_events(false);
            self.dispatch();
            if self.busy.is_empty() {
                // Nobody could report any more, so this is the last time to look.
                self.take_external_events(true);
                self.dispatch();
                if self.busy.is_empty() {
                    return;
                }
            }
            match arrived.recv_timeout(TICK) {
                Ok(done) => self.take(done),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            while let Ok(done) = arrived.try_recv() {
                self.take(done);
            }
        }
    }

    /// Fills the free lanes, as far as the frontier allows.
    fn dispatch(&mut self) {
        if self.groups.is_some() {
            self.dispatch_groups();
            return;
        }
        while self.has_free_lane() && !self.host.is_stopped() {
            let Some(id) = self.frontier.start_next() else { break };
            let slot = self.choose(&id);
            self.assign(&id, slot);
        }
        for (id, by) in self.frontier.take_passed_over() {
            self.host.held(&id, &by);
        }
    }

    /// Fills the free lanes group by group.
    fn dispatch_groups(&mut self) {
        while self.has_free_lane() && !self.host.is_stopped() {
            let Some(groups) = &self.groups else { return };
            let mut next = groups.next(self.plan, &self.frontier);
            if next.is_empty() && self.busy.is_empty() {
                next = groups.any(&self.frontier);
            }
            // A lane is kept for the group that is bound to it and can go on.
            let kept: BTreeSet<usize> = next.iter().filter_map(|(_, slot)| *slot).collect();
            let Some((id, slot)) = next.into_iter().find_map(|(id, bound)| {
                let slot = match bound {
                    Some(slot) => self.is_free(slot).then_some(slot)?,
                    None => self.choose_but(&id, &kept)?,
                };
                self.frontier.start_first(&id).is_ok_and(|started| started).then_some((id, slot))
            }) else {
                return;
            };
            self.assign(&id, slot);
        }
    }

    fn has_free_lane(&self) -> bool {
        self.busy.len() + self.closed.len() < self.lanes.len()
    }

    fn is_free(&self, slot: usize) -> bool {
        !self.busy.contains(&slot) && !self.closed.contains(&slot)
    }

    /// As [`Self::choose`], without the slots that are kept for others.
    fn choose_but(&self, id: &BundleId, kept: &BTreeSet<usize>) -> Option<usize> {
        let is_free = |slot: &usize| self.is_free(*slot) && !kept.contains(slot);
        let home = self.homes.iter().find(|(_, other)| *other == id).map(|(slot, _)| *slot);
        let free = || (0..self.lanes.len()).filter(is_free);
        home.filter(is_free)
            .or_else(|| free().find(|slot| !self.homes.contains_key(slot)))
            .or_else(|| free().next())
    }

    /// The slot for a bundle: where its work lies, else the first in which nobody else's does.
    fn choose(&self, id: &BundleId) -> usize {
        self.choose_but(id, &BTreeSet::new())
            .expect("a lane is free, or nothing would have been started")
    }

    fn assign(&mut self, id: &BundleId, slot: usize) {
        let resumed = self.homes.get(&slot) == Some(id);
        self.homes.retain(|home, other| *home != slot && other != id);
        let lane = if self.lanes.len() > 1 { u32::try_from(slot).ok() } else { None };
        if self.lanes[slot].is_none() {
            match (self.spawn_worker)(slot, lane) {
                Ok(hired) => self.lanes[slot] = Some(hired),
                Err(error) => {
                    self.fall_short(id, slot, &error);
                    return;
                }
            }
        }
        if let Some(groups) = &mut self.groups {
            groups.started(id, slot);
        }
        self.host.starting(id, lane, resumed);
        let worker = self.lanes[slot].as_ref().expect("the lane has a worker by now");
        worker.assign(id.clone());
        self.busy.insert(slot);
    }

    /// The system gives no thread for a lane: the bundle goes to another, or fails where none is.
    fn fall_short(&mut self, id: &BundleId, slot: usize, error: &std::io::Error) {
        self.closed.insert(slot);
        if let Some(groups) = &mut self.groups {
            groups.closed(slot);
        }
        let others = self.lanes.len() - self.closed.len();
        self.host.short_of_lanes(others);
        if others == 0 {
            let said = format!("no thread for a lane: {error}");
            let outcome = self.host.ended(id, Err(Panicked(said)));
            self.end(id, outcome);
            return;
        }
        // It is ready again, and in its turn as it was.
        self.end(id, Completion::Halted);
        self.frontier.reopened(id).expect("it has just halted");
    }

    fn take(&mut self, done: Done<T>) {
        self.busy.remove(&done.slot);
        // What ended may have made room for a thread that the system refused before.
        self.closed.clear();
        let outcome = self.host.ended(&done.id, done.result);
        self.end(&done.id, outcome);
    }

    fn end(&mut self, id: &BundleId, outcome: Completion) {
        if let Some(groups) = &mut self.groups {
            groups.ended(id);
        }
        let freed = self.frontier.ended(id, outcome).expect("this dispatcher started it");
        for freed in freed {
            self.host.freed(&freed, id);
        }
    }

    fn take_external_events(&mut self, last: bool) {
        for event in self.host.external_events(last) {
            match event {
                ExternalEvent::Complete(id) => {
                    let freed = self.frontier.completed_elsewhere(&id).unwrap_or_default();
                    for freed in freed {
                        self.host.freed(&freed, &id);
                    }
                }
                ExternalEvent::Landed(id) => {
                    let freed = self.frontier.landed_elsewhere(&id).unwrap_or_default();
                    for freed in freed {
                        self.host.freed(&freed, &id);
                    }
                }
                ExternalEvent::Withdrawn(id) => drop(self.frontier.withdrawn(&id)),
                // One that is in flight again, or was never halted, needs no reopening.
                ExternalEvent::Reopened(id) => drop(self.frontier.reopened(&id)),
                ExternalEvent::Widened(id, patterns) => {
                    let rivals = self.frontier.widen(&id, patterns).unwrap_or_default();
                    if !rivals.is_empty() {
                        self.host.met(&id, &rivals);
                    }
                }
            }
        }
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "nothing that can be shown".to_owned())
}
