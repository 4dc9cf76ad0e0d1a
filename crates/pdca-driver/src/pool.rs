//! Runs many bundles at once: one dispatcher, one worker per lane.
//!
//! The dispatcher owns the [`Frontier`] and makes all decisions. It asks the frontier which bundles
//! may start, assigns them to free lanes, and waits until a worker reports or the next tick, at which it
//! asks the [`PoolHost`] for external events. A worker is a thread that is pinned to a slot from
//! its first bundle to the last. It is spawned when a bundle needs it, so there are never more workers than
//! bundles were in flight together. With one lane there is one worker and no slot.
//!
//! The pool does not know what a bundle is. So its laws are tested on thousands of graphs
//! with work that takes no time, and its speed is measured with work that sleeps.

mod batch_host;
mod groups;
mod looks;
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

/// The interval at which external events are polled while no worker reports.
// A person who signs off does not notice this delay; `looks.rs` bounds what a tick costs.
const TICK: Duration = Duration::from_millis(100);

/// The work on a bundle, given its slot; `None` with one lane.
pub type Work<'w, T> = &'w (dyn Fn(&BundleId, Option<u32>) -> T + Sync);

/// Callbacks from the dispatcher. Always called on the dispatcher thread.
pub trait PoolHost<T> {
    /// Returns the slot that holds unfinished work of a bundle, if one does.
    fn assigned_lane(&self, _id: &BundleId) -> Option<u32> {
        None
    }

    /// A bundle is assigned to a lane; `resumed` if the lane holds its unfinished work.
    fn starting(&mut self, _id: &BundleId, _lane: Option<u32>, _resumed: bool) {}

    /// A bundle's turn came while rivals of it were in flight.
    fn held(&mut self, _id: &BundleId, _by: &[ClaimHolder]) {}

    /// A bundle may start, because `by` is complete.
    fn freed(&mut self, _id: &BundleId, _by: &BundleId) {}

    /// A bundle in flight touches more than it declared, which makes these bundles in flight its rivals.
    fn met(&mut self, _id: &BundleId, _rivals: &[ClaimHolder]) {}

    /// The system refused a thread for a lane.
    fn short_of_lanes(&mut self, _lanes: usize) {}

    /// Returns how well a free slot suits a bundle, the least the best. `is_free` tells of the others.
    fn rank(&self, slot: u32, _is_free: &dyn Fn(u32) -> bool) -> (bool, u32, u32) {
        (false, 0, slot)
    }

    /// Returns whether a bundle whose worker is done has to go to another slot: its machine was lost. Called before
    /// [`ended`](Self::ended), which is not called then.
    fn moves_on(&mut self, _id: &BundleId, _result: &Result<T, Panicked>) -> bool {
        false
    }

    /// Returns the slots that are out of use.
    fn lost_slots(&self) -> BTreeSet<u32> {
        BTreeSet::new()
    }

    /// A bundle's worker is done with it. Returns what that means for the others.
    fn ended(&mut self, id: &BundleId, result: Result<T, Panicked>) -> Completion;

    /// Returns what happened outside the pool since the last call. `last` is set when the pool is about to end.
    fn external_events(&mut self, _last: bool) -> Vec<ExternalEvent> {
        Vec::new()
    }

    /// Returns whether nothing new may be started.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Something that happened outside the pool.
#[derive(Debug)]
pub enum ExternalEvent {
    /// A bundle became complete.
    Complete(BundleId),
    /// A bundle landed in the target branch.
    Landed(BundleId),
    /// A bundle that halted was discontinued or sent back to Plan.
    Withdrawn(BundleId),
    /// A bundle that halted has work to do again.
    Reopened(BundleId),
    /// A bundle touches more than it declared.
    Widened(BundleId, Vec<Pattern>),
}

/// The message of a worker's panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked(pub String);

/// Carries a plan out on this many lanes, until nothing is in flight and nothing can start.
///
/// With groups, the bundles of each run one after the other in one lane, in the order given; without
/// any, each bundle goes to the first lane that is free.
///
/// Returns the final frontier: the bundles that are complete, that halted, and that wait, with the
/// reason.
pub fn carry_out<'p, T: Send>(
    plan: &'p Plan,
    groups: &[Vec<BundleId>],
    lanes: NonZeroU32,
    work: Work<'_, T>,
    host: &mut dyn PoolHost<T>,
) -> Frontier<'p> {
    // Unbounded, so that a worker never waits for the dispatcher.
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
        // Dropping the dispatcher drops the workers' channels, which ends them; the scope waits for that.
        dispatcher.frontier
    })
}

/// A worker's report about a bundle.
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
    groups: Option<Groups>,
    host: &'d mut dyn PoolHost<T>,
    /// The slots that hold unfinished work of bundles that have not been started yet.
    homes: BTreeMap<usize, BundleId>,
    busy: BTreeSet<usize>,
    /// The slots for which the system refused a thread.
    closed: BTreeSet<usize>,
    /// The worker of each slot, from its first bundle on.
    lanes: Vec<Option<Worker>>,
    spawn_worker: SpawnWorker<'d>,
}

impl<T> Dispatcher<'_, '_, T> {
    /// Starts the bundles that were in flight when an earlier pool was stopped, each in its lane. They
    /// were in flight together then, so no two of them are rivals.
    fn resume(&mut self) {
        for id in self.plan.ids() {
            let lane = self.host.assigned_lane(id).and_then(|slot| usize::try_from(slot).ok());
            if let Some(slot) = lane.filter(|slot| *slot < self.lanes.len()) {
                // A slot holds the work of one bundle. Work in a slot beyond the present number of
                // lanes stays there.
                self.homes.insert(slot, id.clone());
            }
        }
        if self.host.is_stopped() {
            return;
        }
        for (slot, id) in self.homes.clone() {
            // Within a group, only the bundle whose turn it is.
            let next = self.groups.as_ref().map(|groups| groups.next(self.plan, &self.frontier));
            if next.is_some_and(|next| !next.contains(&(id.clone(), None))) {
                continue;
            }
            // `start_first` still refuses a bundle with a rival in flight: briefs may have changed
            // since.
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
                // No worker is left to report, so this is the last chance for an external event to start something.
                self.take_external_events(true);
                self.dispatch();
                if self.busy.is_empty() {
                    return;
                }
            }
            match arrived.recv_timeout(TICK) {
                Ok(done) => self.take(done),
                // `Disconnected` does not come: `carry_out` keeps a sender.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            // Everything that ended counts before the next bundle is chosen, so that the order does not depend on which
            // report came first.
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

    fn dispatch_groups(&mut self) {
        while self.has_free_lane() && !self.host.is_stopped() {
            let Some(groups) = &self.groups else { return };
            let mut next = groups.next(self.plan, &self.frontier);
            // Nothing can free the groups any more, so order within a group yields to progress.
            if next.is_empty() && self.busy.is_empty() {
                next = groups.any(&self.frontier);
            }
            // Keep the lane of a group that can continue in it.
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
        // Not by the sizes of the sets: a busy slot of a lost host is in both.
        (0..self.lanes.len()).any(|slot| self.is_free(slot))
    }

    fn is_free(&self, slot: usize) -> bool {
        !self.busy.contains(&slot) && !self.closed.contains(&slot)
    }

    /// Like [`Self::choose`], without the slots that are kept for groups.
    fn choose_but(&self, id: &BundleId, kept: &BTreeSet<usize>) -> Option<usize> {
        let is_free = |slot: &usize| self.is_free(*slot) && !kept.contains(slot);
        let home = self.homes.iter().find(|(_, other)| *other == id).map(|(slot, _)| *slot);
        let number = |slot: usize| u32::try_from(slot).unwrap_or(u32::MAX);
        let is_free_too = |slot: u32| usize::try_from(slot).is_ok_and(|slot| self.is_free(slot));
        let rank = |slot: &usize| self.host.rank(number(*slot), &is_free_too);
        let free = || (0..self.lanes.len()).filter(is_free);
        home.filter(is_free)
            .or_else(|| free().filter(|slot| !self.homes.contains_key(slot)).min_by_key(rank))
            .or_else(|| free().min_by_key(rank))
    }

    /// Returns the slot that holds the bundle's work, else the first free one without work of another bundle.
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
                Ok(spawned) => self.lanes[slot] = Some(spawned),
                Err(error) => {
                    self.fall_short(id, slot, &error);
                    return;
                }
            }
        }
        if let Some(groups) = &mut self.groups {
            groups.started(id, slot);
        }
        // Before the worker has it: what it emits about the bundle must come after its start.
        self.host.starting(id, lane, resumed);
        let worker = self.lanes[slot].as_ref().expect("the lane has a worker by now");
        worker.assign(id.clone());
        self.busy.insert(slot);
    }

    /// Handles a refused thread: the bundle goes to another lane, or fails if none is left.
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
        // Ready again, in its old place in the order.
        self.end(id, Completion::Halted);
        self.frontier.reopened(id).expect("it has just halted");
    }

    fn take(&mut self, done: Done<T>) {
        self.busy.remove(&done.slot);
        // The end of a worker's child may have freed resources for a thread that was refused before.
        self.closed.clear();
        let moves = self.host.moves_on(&done.id, &done.result);
        let lost = self.host.lost_slots();
        self.closed.extend(lost.into_iter().filter_map(|slot| usize::try_from(slot).ok()));
        if moves {
            if let Some(groups) = &mut self.groups {
                // The group would otherwise wait for its slot for the rest of the run.
                groups.closed(done.slot);
            }
            // Ready again, in its old place in the order.
            self.end(&done.id, Completion::Halted);
            self.frontier.reopened(&done.id).expect("it has just halted");
            return;
        }
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
                // Fails for a bundle that has not halted, whose claims are needed as they are.
                ExternalEvent::Withdrawn(id) => drop(self.frontier.withdrawn(&id)),
                // Fails for a bundle that is in flight again or never halted, which needs no reopening.
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

/// Returns the message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "nothing that can be shown".to_owned())
}
