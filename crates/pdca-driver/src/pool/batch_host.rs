//! The pool's host for a batch: runs bundles in their lanes and picks up people's decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, unbounded};
use pdca_dag::{Awaits, ClaimHolder, Completion, Item, ItemState, Plan, Rivalry, Why};
use pdca_integrate::landed_of;
use pdca_journal::events::WarningCode;
use pdca_journal::{Generation, InboxRequest};
use pdca_process::Cancel;
use pdca_state::{Bundle, BundleId, CostTotal, Reentry, State, chain};

use super::looks::Looks;
use super::{ExternalEvent, Panicked, PoolHost, carry_out};
use crate::batch::Batch;
use crate::calls::{CostCap, CostReached, cost_of_run};
use crate::config::WorkspaceConfig;
use crate::drift::Drifted;
use crate::integrate::{GateBase, GatedBase, gate_bases, leave_red_bases};
use crate::lane_env::LaneEnv;
use crate::lane_owner::LaneOwners;
use crate::leg::LegName;
use crate::place::{PlaceError, Places};
use crate::preflight::{Short, short};
use crate::run::{Run, Salvage};
use crate::run_bundle::{BeatError, BundleEnd, Driver, is_red};
use crate::step::{Halt, Step, step};
use pdca_journal::events::{EventKind, Hold, Scope};

/// The result of a batch.
#[derive(Debug)]
pub struct Batched {
    /// The bundles that were run or needed no run, in name order.
    pub driven: Vec<(Bundle, Result<BundleEnd, BeatError>)>,
    /// The bundles that were not started, in name order, with the reason.
    pub left: Vec<(Bundle, Why)>,
    /// The reason that the pool ended early, other than a signal.
    pub stopped: Option<Stop>,
    /// The verdicts over the branches alone.
    pub bases: Vec<GatedBase>,
    /// What the calls of the run cost so far; `None` outside a run.
    pub cost: Option<CostTotal>,
}

/// A reason that ends a pool early, other than a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The time limit of the run is reached.
    Duration(Duration),
    /// A person aborted the run.
    Aborted { why: String },
    /// The disk is nearly full, so nothing more was started. Bundles in flight were finished.
    Room(Short),
    /// The login of an agent is not accepted, so nothing more was started. Bundles in flight were finished.
    SignedOut { agent: String, said: String },
    /// The run spent what it may, so nothing more was started. Calls in flight were finished.
    Cost(CostReached),
    /// Every place was lost, and there is no local lane.
    NoPlace,
    /// A branch that bundles are built on is red by itself.
    BaseRed { bases: Vec<GatedBase> },
    /// The journal of the run cannot be written.
    Record {
        /// The error with its causes.
        error: String,
    },
}

impl Driver<'_> {
    /// Runs a batch on this many lanes, as fast as its plan allows.
    ///
    /// The failure of one bundle stops no other. A sign-off that is recorded meanwhile frees the bundles that waited
    /// for it. Returns when nothing is in flight and nothing can start, or when it was cancelled
    /// and everything in flight has stopped.
    ///
    /// With the groups of a `lanes.json`, the bundles of each run one after the other in one lane.
    pub fn run_batch(
        &self,
        batch: &Batch,
        plan: &Plan,
        groups: &[Vec<BundleId>],
        lanes: NonZeroU32,
    ) -> Batched {
        let (drifts, heard) = unbounded();
        let driver = Driver { drifts: Some(&drifts), ..*self };
        let work = |id: &BundleId, lane: Option<u32>| run_at(&driver, id, lane);
        let mut host = BatchHost {
            driver,
            batch,
            homes: homes(self),
            chains: plan.chains().into_iter().map(|(id, chain)| (id.clone(), chain)).collect(),
            results: BTreeMap::new(),
            watched: BTreeMap::new(),
            heard,
            looks: Looks::default(),
            in_flight: 0,
            is_paced: false,
            short: short(self.config),
            stopped: None,
            accepted: batch.accepted(),
            awaited: batch.awaited_landings(),
            bases: Vec::new(),
            bases_heard: None,
        };
        host.settle_the_rest(plan);
        // A part of its own: ending the gates over branches must not cancel the batch.
        let gating = self.cancel.part();
        let asking = Driver { cancel: &gating, ..*self };
        let frontier = std::thread::scope(|scope| {
            // A verdict over the branch is useless once everything is built, so the gates are cancelled then.
            let _over = CalledOff(&gating);
            match self.config.gate_base {
                GateBase::Off => {}
                GateBase::Before => host.hear_bases(gate_bases(&asking, batch, plan)),
                GateBase::Beside => {
                    let (to, from) = unbounded();
                    host.bases_heard = Some(from);
                    // Sending fails only after the pool has ended.
                    // The scope joins this thread, so `_over` has to be dropped, and the gates
                    // cancelled, before it ends.
                    scope.spawn(move || drop(to.send(gate_bases(&asking, batch, plan))));
                }
            }
            carry_out(plan, groups, lanes, &work, &mut host)
        });
        host.leave_red_bases();
        host.end_the_run();
        if let Some(places) = self.places {
            // After the run has ended, because a finished run lets the places forget everything of
            // it.
            reap(self, places);
        }
        let is_left = |bundle: &Bundle| {
            !host.results.contains_key(bundle.id())
                && matches!(frontier.why(bundle.id()), Some(Why::Ready { .. } | Why::Held { .. }))
        };
        if let Some(short) = host.short
            && batch.bundles.iter().any(is_left)
        {
            // Reported only if something was left because of it: a disk that fills up during the
            // last bundle stopped nothing. The same holds for login and cost below.
            host.stopped.get_or_insert(Stop::Room(short));
        }
        if let Some((agent, said)) = self.config.breaker.any_signed_out()
            && batch.bundles.iter().any(is_left)
        {
            host.stopped.get_or_insert(Stop::SignedOut { agent, said });
        }
        let stopped_by_cost = |result: &Result<BundleEnd, BeatError>| {
            matches!(result, Err(BeatError::Cost(CostReached { cap: CostCap::Run, .. })))
        };
        if let Some(reached) = self.run_cost_reached()
            && (batch.bundles.iter().any(is_left) || host.results.values().any(stopped_by_cost))
        {
            host.stopped.get_or_insert(Stop::Cost(reached));
        }
        let mut batched = Batched {
            driven: Vec::new(),
            left: Vec::new(),
            stopped: host.stopped,
            bases: host.bases,
            cost: self.run.map(|run| cost_of_run(self.config, &self.config.run, &run.batch())),
        };
        for bundle in &batch.bundles {
            let id = bundle.id();
            if let Some(result) = host.results.remove(id) {
                batched.driven.push((bundle.clone(), result));
            } else if let Some(why) = frontier.why(id) {
                batched.left.push((bundle.clone(), why));
            }
        }
        batched
    }
}

/// Runs one bundle in a slot of the pool: in a lane here, or at another place.
fn run_at(cx: &Driver<'_>, id: &BundleId, slot: Option<u32>) -> Result<BundleEnd, BeatError> {
    let lane_env = slot.map(LaneEnv::new);
    let cx = &Driver { lane_env: lane_env.as_ref(), ..*cx };
    let bundle = cx.config.dirs.bundles.bundle(id);
    let place = cx.places.map(|places| places.at(slot.unwrap_or_default()));
    let Some(place) = place else { return cx.run_bundle(&bundle) };
    let Some(name) = place.place.name() else { return cx.run_bundle(&bundle) };
    // Whoever asks who holds a bundle is told where it runs.
    let holder = format!("{} on {name}", cx.config.holder);
    let config = &WorkspaceConfig { holder, ..cx.config.clone() };
    Driver { config, place, ..*cx }.run_bundle(&bundle)
}

/// Returns the slots that hold unfinished work of bundles: lanes here, and slots of other places.
fn homes(cx: &Driver<'_>) -> BTreeMap<BundleId, u32> {
    let mut homes = LaneOwners::in_lanes_of(cx.config).homes();
    let Some(places) = cx.places else { return homes };
    // A lane beyond those of this run has the number of another place's slot.
    homes.retain(|_, slot| *slot < places.lanes());
    for (id, (place, slot, _)) in cx.run.map(Run::elsewhere).unwrap_or_default() {
        // The claim is newer than work that an earlier attempt left in a lane here.
        homes.remove(&id);
        homes.extend(places.slot_of(&place, slot).map(|slot| (id, slot)));
    }
    homes
}

/// Ends what is left of this run and of earlier ones at other places, as far as they answer.
fn reap(cx: &Driver<'_>, places: &Places) {
    let Some(run) = cx.run else { return };
    let over = (!run.state().is_active()).then(|| run.id().to_string());
    let current = run.elsewhere().into_iter();
    let name = |(bundle, (_, _, generation)): (BundleId, (String, u32, Generation))| {
        cx.leg_name(bundle.as_str(), generation).ok()
    };
    let current: Vec<LegName> = current.filter_map(name).collect();
    for place in places.others().filter(|place| !place.is_lost()) {
        place.reap(&current, over.as_deref());
    }
}

/// Returns the end of a bundle that waits for a person or is finished, without taking its lock:
/// the person may be about to sign it.
fn look(cx: &Driver<'_>, bundle: &Bundle) -> Result<Option<BundleEnd>, BeatError> {
    let snapshot = bundle.load()?;
    let Step::Halt(halt) = step(cx.position(&snapshot)?) else { return Ok(None) };
    let red = is_red(&snapshot);
    let jobs = cx.config.jobs();
    // A driver that died after the last step left them. If another process holds the bundle, it may need them.
    if jobs.of(bundle.id()).exists()
        && let Ok(_taken) = cx.config.locks().take(bundle.id())
    {
        cx.keep_left_calls(bundle);
        jobs.remove_all(bundle.id()).map_err(BeatError::Own)?;
    }
    cx.tell(bundle, EventKind::Halted { halt });
    Ok(Some(BundleEnd { halt, steps: 0, red }))
}

/// A bundle that waits for a sign-off.
struct Watched {
    /// The modification time of its directory when last checked.
    seen: Option<SystemTime>,
    /// The turn at which it is loaded in any case.
    turn: usize,
}

struct BatchHost<'d> {
    driver: Driver<'d>,
    batch: &'d Batch,
    homes: BTreeMap<BundleId, u32>,
    chains: BTreeMap<BundleId, u64>,
    results: BTreeMap<BundleId, Result<BundleEnd, BeatError>>,
    watched: BTreeMap<BundleId, Watched>,
    heard: Receiver<Drifted>,
    looks: Looks,
    /// The bundles that are being worked on.
    in_flight: usize,
    /// Set while lanes wait for the person.
    is_paced: bool,
    /// Set while the disk is below its floor.
    short: Option<Short>,
    stopped: Option<Stop>,
    /// The bundles that are signed off and not known to have landed.
    accepted: BTreeSet<BundleId>,
    /// The bundles whose landing others wait for.
    awaited: BTreeSet<BundleId>,
    /// The verdicts over the branches alone, as far as known.
    bases: Vec<GatedBase>,
    /// Delivers them while bundles are built.
    bases_heard: Option<Receiver<Result<Vec<GatedBase>, BeatError>>>,
}

/// Cancels the gates over branches on drop.
struct CalledOff<'c>(&'c Cancel);

impl Drop for CalledOff<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl BatchHost<'_> {
    /// Handles the bundles that the pool does not start. Archiving an attempt that goes back
    /// to Plan belongs to a person's beat, so it happens here, one by one, before any lane starts.
    fn settle_the_rest(&mut self, plan: &Plan) {
        let driver = self.driver;
        let left: BTreeSet<&BundleId> =
            plan.left_alone().iter().map(pdca_dag::PlanProblem::id).collect();
        let rest = self.batch.items.iter().zip(&self.batch.bundles);
        for (Item { id, standing, .. }, bundle) in rest {
            let is_left = *standing == ItemState::Active || left.contains(id);
            if is_left || driver.cancel.is_cancelled() {
                continue;
            }
            let looked = match look(&driver, bundle) {
                Ok(None) => self.put_away(bundle),
                Ok(Some(drive)) => Some(Ok(drive)),
                Err(error) => Some(Err(error)),
            };
            if let Some(result) = looked {
                self.keep(id, result);
            }
        }
    }

    /// Archives an attempt that a person sent back to Plan; `None` in any other state.
    fn put_away(&self, bundle: &Bundle) -> Option<Result<BundleEnd, BeatError>> {
        let state = bundle.glance().ok()?.state;
        (state == State::Iterate(Reentry::Plan)).then(|| self.driver.run_bundle(bundle))
    }

    /// Stores the result of a bundle, and watches the bundle if a person may change it.
    fn keep(&mut self, id: &BundleId, result: Result<BundleEnd, BeatError>) -> Completion {
        let outcome = match &result {
            Ok(BundleEnd { halt: Halt::Complete, .. }) => Completion::Complete,
            Ok(BundleEnd { halt: Halt::AwaitingSignoff, red, .. }) => {
                // Numbered by arrival, so that about a twentieth is due at each look.
                let turn = Looks::turn(self.watched.len());
                self.watched.insert(id.clone(), Watched { seen: None, turn });
                if *red { Completion::Red } else { Completion::Built }
            }
            Ok(BundleEnd {
                halt: Halt::Unplanned | Halt::Resolved | Halt::Discontinued, ..
            }) => Completion::Halted,
            Err(_) => Completion::Failed,
        };
        self.results.insert(id.clone(), result);
        outcome
    }

    /// Returns what people decided since the last look.
    fn decisions(&mut self, last: bool) -> Vec<ExternalEvent> {
        let Some(look) = self.looks.begin(Instant::now(), last) else { return Vec::new() };
        let watched: Vec<(BundleId, usize)> =
            self.watched.iter().map(|(id, watched)| (id.clone(), watched.turn)).collect();
        let mut news: Vec<ExternalEvent> =
            watched.iter().filter_map(|(id, turn)| self.decision(id, look.loads(*turn))).collect();
        if look.loads(0) {
            news.extend(self.landings());
        }
        news
    }

    /// Returns what a person decided about a bundle at its sign-off; `None` while it waits.
    fn decision(&mut self, id: &BundleId, thorough: bool) -> Option<ExternalEvent> {
        let bundle = self.batch.bundle(id)?;
        let watched = self.watched.get_mut(id)?;
        // Read before the state: a change that comes in between has a later time and is seen at the
        // next look, or at the bundle's turn.
        let changed = fs_err::metadata(bundle.dir()).and_then(|found| found.modified()).ok();
        if !thorough && changed.is_some() && watched.seen == changed {
            return None;
        }
        watched.seen = changed;
        // A process that holds the bundle is still writing it. Look again at the next tick.
        if self.driver.config.locks().at_work_on(id).map_or(true, |holder| holder.is_some()) {
            watched.seen = None;
            return None;
        }
        match bundle.glance().ok()?.state {
            State::AwaitingSignoff => None,
            State::Complete => {
                self.watched.remove(id);
                self.accepted.insert(id.clone());
                Some(ExternalEvent::Complete(id.clone()))
            }
            State::Planned | State::Built | State::Checked | State::Iterate(Reentry::Do) => {
                self.watched.remove(id);
                self.reopen(bundle).then(|| ExternalEvent::Reopened(id.clone()))
            }
            // Back to Plan, or discontinued: no longer for the pool.
            State::Unplanned
            | State::Resolved
            | State::Iterate(Reentry::Plan)
            | State::Discontinued => {
                self.watched.remove(id);
                Some(ExternalEvent::Withdrawn(id.clone()))
            }
        }
    }

    /// Returns the awaited bundles that landed meanwhile.
    fn landings(&mut self) -> Vec<ExternalEvent> {
        let asked: BTreeSet<BundleId> =
            self.awaited.intersection(&self.accepted).cloned().collect();
        if asked.is_empty() {
            return Vec::new();
        }
        // Walks the history of the target, so it is asked only about bundles that others wait for.
        let landed = landed_of(&self.driver.config.queue(), &asked);
        // Each landing is told once.
        self.accepted.retain(|id| !landed.contains(id));
        landed.into_iter().map(ExternalEvent::Landed).collect()
    }

    /// Returns whether a bundle that was sent back may run again in this pool: only if its declarations are those
    /// that the plan was made from.
    fn reopen(&mut self, bundle: &Bundle) -> bool {
        let planned = self.batch.items.iter().find(|item| item.id == *bundle.id());
        let same = planned
            // The frontier was computed from these declarations; with others, two rivals could be
            // in flight together.
            .is_some_and(|item| item.declares_as(&Batch::item_of(self.driver.config, bundle)));
        if same {
            self.results.remove(bundle.id());
            self.driver.tell(bundle, EventKind::Reopened);
        } else {
            let text = "it was sent back with other declarations: the next batch takes it up";
            self.driver.warn(bundle, WarningCode::DeclarationsChanged, text);
        }
        same
    }

    /// Stores the verdicts over the branches. A red branch stops the pool.
    fn hear_bases(&mut self, found: Result<Vec<GatedBase>, BeatError>) {
        match found {
            Ok(bases) => self.bases = bases,
            Err(BeatError::Interrupted) => return,
            Err(error) => {
                if let Some(bundle) = self.batch.bundles.first() {
                    let text =
                        format!("the branches cannot be gated by themselves: {}", chain(&error));
                    self.driver.warn(bundle, WarningCode::BaseNotGated, text);
                }
                return;
            }
        }
        let red: Vec<GatedBase> = self.bases.iter().filter(|base| base.stops()).cloned().collect();
        if !red.is_empty() {
            self.stopped.get_or_insert(Stop::BaseRed { bases: red });
        }
    }

    /// Receives the verdicts over branches while bundles are built, and cancels everything if one is red.
    fn listen_for_bases(&mut self) {
        let Some(found) = self.bases_heard.as_ref().and_then(|heard| heard.try_recv().ok()) else {
            return;
        };
        self.hear_bases(found);
        if self.is_refused() {
            self.driver.cancel.cancel();
        }
    }

    /// Returns whether a red branch stopped the pool.
    fn is_refused(&self) -> bool {
        matches!(self.stopped, Some(Stop::BaseRed { .. }))
    }

    /// Discards attempts that began on a red base, so that they start over once it is repaired.
    fn leave_red_bases(&mut self) {
        if let Some(Stop::BaseRed { bases }) = &self.stopped
            && let Err(error) = leave_red_bases(&self.driver, self.batch, bases)
        {
            self.stopped = Some(Stop::Record { error: chain(&error) });
        }
    }

    /// Cancels everything, for a reason other than a signal. The first reason counts.
    fn stop(&mut self, why: Stop) {
        self.stopped.get_or_insert(why);
        self.driver.cancel.cancel();
    }

    /// Ends the run if all bundles are done or a person aborted it. An interrupted run
    /// stays active, and the next command resumes it.
    fn end_the_run(&mut self) {
        let driver = self.driver;
        let Some(run) = driver.run else { return };
        if let Some(Stop::Aborted { why }) = &self.stopped {
            match run.abort(driver.config, why) {
                Ok(kept) => {
                    for Salvage { bundle, slot, checkout, commit, .. } in kept {
                        self.tell(&bundle, Some(slot), EventKind::Rescued { commit, checkout });
                    }
                }
                Err(error) => self.stopped = Some(Stop::Record { error: chain(&error) }),
            }
        } else if !driver.cancel.is_cancelled()
            // The run stays open, so that the next command goes on under the same cap.
            && driver.run_cost_reached().is_none()
            && let Err(error) = run.finish()
        {
            self.stop(Stop::Record { error: chain(&error) });
        }
    }

    /// Checks the time limit of the run and the requests in its inbox.
    fn hear_the_run(&mut self) {
        let Some(run) = self.driver.run else { return };
        if self.driver.cancel.is_cancelled() {
            return;
        }
        let longest = self.driver.config.limits.max_duration;
        // The time that drivers worked, not the time since the start: a run may rest overnight.
        if run.worked() >= longest {
            return self.stop(Stop::Duration(longest));
        }
        match run.requests() {
            Ok(requests) => {
                for request in requests {
                    if let InboxRequest::Abort { why } = request {
                        self.stop(Stop::Aborted { why });
                    }
                }
            }
            Err(error) => self.stop(Stop::Record { error: chain(&error) }),
        }
    }

    /// Checks the free space before the next start, and reports changes.
    fn look_for_room(&mut self) {
        let short = short(self.driver.config);
        if let Some(bundle) = self.batch.bundles.first() {
            match (self.short, short) {
                (None, Some(short)) => {
                    let text =
                        format!("{short}: no more bundles are started, running ones are finished");
                    self.driver.warn(bundle, WarningCode::NoRoom, text);
                }
                (Some(_), None) => {
                    let text = "enough disk space is free again".to_owned();
                    self.driver.tell(bundle, EventKind::notice(WarningCode::RoomAgain, text));
                }
                (None, None) | (Some(_), Some(_)) => {}
            }
        }
        self.short = short;
    }

    /// Returns whether so much waits for the person, or soon will, that nothing new is started.
    fn is_ahead(&self) -> bool {
        let Some(pace) = self.driver.config.pace else { return false };
        // What is in flight will wait for the person too, so it counts already.
        let unsigned = self.watched.len() + self.in_flight;
        u32::try_from(unsigned).unwrap_or(u32::MAX).saturating_add(pace.elsewhere)
            >= pace.max_unsigned
    }

    /// Says once that lanes wait for the person, and not for something else.
    fn look_at_pace(&mut self) {
        let is_ahead = self.is_ahead();
        if is_ahead && !self.is_paced && !self.watched.is_empty() {
            let text = format!(
                "{} wait for sign-off: no more bundles are started until some are decided",
                self.watched.len()
            );
            if let Some(bundle) = self.batch.bundles.first() {
                self.driver.tell(bundle, EventKind::notice(WarningCode::Paced, text));
            }
            self.is_paced = true;
        }
        self.is_paced &= is_ahead;
    }

    fn tell(&self, id: &BundleId, lane: Option<u32>, what: EventKind) {
        self.driver.events.emit(Scope::Bundle(id.clone()), lane, what);
    }
}

impl PoolHost<Result<BundleEnd, BeatError>> for BatchHost<'_> {
    fn assigned_lane(&self, id: &BundleId) -> Option<u32> {
        self.homes.get(id).copied()
    }

    fn rank(&self, slot: u32, is_free: &dyn Fn(u32) -> bool) -> (bool, u32, u32) {
        self.driver.places.map_or((false, 0, slot), |places| places.rank(slot, is_free))
    }

    fn moves_on(
        &mut self,
        id: &BundleId,
        result: &Result<Result<BundleEnd, BeatError>, Panicked>,
    ) -> bool {
        let Ok(Err(BeatError::Place(error @ (PlaceError::Lost { .. } | PlaceError::Unfit { .. })))) =
            result
        else {
            return false;
        };
        let Some(places) = self.driver.places else { return false };
        let text = format!("{error}; it goes elsewhere under a new generation");
        self.tell(id, None, EventKind::warning(WarningCode::HostLost, text));
        // No attempt is charged: the claim is over, and nothing is counted.
        if let Some(run) = self.driver.run
            && let Err(error) = run.ended(id, &Err(BeatError::Interrupted))
        {
            self.stop(Stop::Record { error: chain(&error) });
            return false;
        }
        // Local lanes count as slots, so this says that no machine is left.
        let has_slot = places.lost_slots().len() < places.slots() as usize;
        if !has_slot {
            self.stopped.get_or_insert(Stop::NoPlace);
        }
        // `ended` is not called for it, and its next start counts it again.
        self.in_flight = self.in_flight.saturating_sub(1);
        true
    }

    fn lost_slots(&self) -> BTreeSet<u32> {
        self.driver.places.map(Places::lost_slots).unwrap_or_default()
    }

    fn starting(&mut self, id: &BundleId, lane: Option<u32>, resumed: bool) {
        self.in_flight += 1;
        let chain = self.chains.get(id).copied().unwrap_or(1);
        self.tell(id, lane, EventKind::Dispatched { chain, resumed });
    }

    fn held(&mut self, id: &BundleId, by: &[ClaimHolder]) {
        self.tell(id, None, EventKind::Held { by: by.iter().map(hold).collect() });
    }

    fn freed(&mut self, id: &BundleId, by: &BundleId) {
        self.tell(id, None, EventKind::Freed { by: by.clone() });
    }

    fn met(&mut self, id: &BundleId, rivals: &[ClaimHolder]) {
        for rival in rivals.iter().map(hold) {
            let text = format!(
                "it now writes paths of {}, which is in flight ({}): the two may conflict",
                rival.id, rival.why
            );
            self.tell(id, None, EventKind::warning(WarningCode::RivalMet, text));
        }
    }

    fn short_of_lanes(&mut self, lanes: usize) {
        let text = format!("the system refuses more threads: continuing with {lanes} lanes");
        if let Some(bundle) = self.batch.bundles.first() {
            self.driver.tell(bundle, EventKind::notice(WarningCode::FewerLanes, text));
        }
    }

    fn ended(
        &mut self,
        id: &BundleId,
        result: Result<Result<BundleEnd, BeatError>, Panicked>,
    ) -> Completion {
        self.in_flight = self.in_flight.saturating_sub(1);
        let result = result.unwrap_or_else(|Panicked(said)| {
            self.tell(
                id,
                None,
                EventKind::Failed { error: format!("the driver panicked: {said}") },
            );
            Err(BeatError::Panicked { said })
        });
        if let Some(run) = self.driver.run
            && let Err(error) = run.ended(id, &result)
        {
            self.stop(Stop::Record { error: chain(&error) });
        }
        self.keep(id, result)
    }

    fn external_events(&mut self, last: bool) -> Vec<ExternalEvent> {
        let mut news = Vec::new();
        for (id, outside) in self.heard.try_iter() {
            news.push(ExternalEvent::Widened(id.clone(), self.batch.files_of(&id, &outside)));
        }
        self.hear_the_run();
        self.listen_for_bases();
        self.look_for_room();
        self.look_at_pace();
        news.extend(self.decisions(last));
        news
    }

    fn is_stopped(&self) -> bool {
        self.driver.cancel.is_cancelled()
            || self.short.is_some()
            || self.is_ahead()
            || self.is_refused()
            || self.driver.config.breaker.any_signed_out().is_some()
            || self.driver.run_cost_reached().is_some()
    }
}

fn hold(holder: &ClaimHolder) -> Hold {
    let why = match &holder.rivalry {
        Rivalry::Conflict { place } => format!("a declared conflict, {place}"),
        Rivalry::Overlap { witness, .. } => format!("both can write `{witness}`"),
    };
    let why = match holder.until {
        None | Some(Awaits::Built) => why,
        Some(Awaits::Accepted) => format!("{why}; until that is signed off"),
        Some(Awaits::Landed) => format!("{why}; until that has landed"),
    };
    Hold { id: holder.id.clone(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_hold_names_the_path_and_how_long_it_lasts() {
        let why = |until| {
            let globs = ("src/**".to_owned(), "src/a".to_owned());
            let rivalry = Rivalry::Overlap { globs, witness: "src/a".to_owned() };
            hold(&ClaimHolder { id: "2".parse().unwrap(), rivalry, until }).why
        };
        assert_eq!(why(None), "both can write `src/a`");
        assert_eq!(why(Some(Awaits::Built)), why(None));
        assert_eq!(why(Some(Awaits::Accepted)), "both can write `src/a`; until that is signed off");
        assert_eq!(why(Some(Awaits::Landed)), "both can write `src/a`; until that has landed");
    }

    #[test]
    fn a_bundle_that_leaves_a_lost_place_is_not_in_flight_until_it_starts_again() {
        let scene = Scene::planned();
        let (places, batch) = (Places::new(1, Vec::new()), Batch::of_all(&scene.config).unwrap());
        let mut host = BatchHost {
            driver: Driver { places: Some(&places), ..scene.driver() },
            batch: &batch,
            homes: BTreeMap::new(),
            chains: BTreeMap::new(),
            results: BTreeMap::new(),
            watched: BTreeMap::new(),
            heard: unbounded().1,
            looks: Looks::default(),
            in_flight: 0,
            is_paced: false,
            short: None,
            stopped: None,
            accepted: BTreeSet::new(),
            awaited: BTreeSet::new(),
            bases: Vec::new(),
            bases_heard: None,
        };
        let (id, place, said) = (scene.bundle().id().clone(), "a".to_owned(), "gone".to_owned());
        host.starting(&id, Some(1), false);
        assert!(host.moves_on(&id, &Ok(Err(BeatError::Place(PlaceError::Lost { place, said })))));
        assert_eq!(host.in_flight, 0);
    }
}
