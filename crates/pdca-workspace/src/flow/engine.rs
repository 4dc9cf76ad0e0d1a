//! The loop that carries out what [`next`] decides.
//!
//! The calling thread is the person's, because it owns the terminal. A second one looks what can be built and delivered,
//! and starts a thread for each. So a person may take an hour over one decision while lanes build and accepted changes land.
//!
//! A decision counts only if no track ended since its facts were read: otherwise a flow could end with the work of a batch
//! that it has not seen.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use pdca_state::BundleId;

use crate::flow::step::{FlowEnd, FlowFacts, FlowStatus, FlowStep, Moves, next};

/// The longest time between two looks at the workspace: people also decide in other terminals.
const LOOK: Duration = Duration::from_millis(500);

/// The work of the tracks, and the facts. Called from several threads.
pub trait FlowHost: Sync {
    /// Why a track did not do its work.
    type Failure: Send;

    /// Reads the workspace. While a batch runs nobody asks what could be built.
    fn facts(&self, is_building: bool) -> Result<FlowFacts, Self::Failure>;

    /// Runs a batch to its end. A failure means that nothing more can be built.
    fn build(&self) -> Result<(), Self::Failure>;

    /// Delivers what is accepted, `ids` among it.
    fn deliver(&self, ids: &[BundleId]) -> Result<(), Self::Failure>;

    /// Returns true after an interrupt.
    fn is_interrupted(&self) -> bool;

    /// A person is needed who was not needed before.
    fn needs_you(&self, step: &FlowStep);

    /// Has the tracks come to an end soon.
    fn stop(&self);

    /// Makes a failure of a panic.
    fn panicked(&self, said: String) -> Self::Failure;
}

/// The person at the terminal. Always called on the thread that [`run`] was called on.
pub trait Person<F> {
    /// Plans these drafts in one session.
    fn plan(&mut self, ids: &[BundleId]) -> Result<Visit, F>;

    /// Decides about these bundles.
    fn sign_off(&mut self, ids: &[BundleId]) -> Result<Visit, F>;

    /// Looks back.
    fn act(&mut self) -> Result<(), F>;

    /// Called between sessions, and a few times a second while there is nothing to do.
    fn idle(&mut self) {}
}

/// The result of a session with the person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visit {
    /// The bundles that were left as they are: they are not asked about again in this flow.
    pub left: Vec<BundleId>,
}

/// The result of a flow.
#[derive(Debug)]
pub struct FlowReport<F> {
    /// Why it ended.
    pub end: FlowEnd,
    /// The failures of its tracks and sessions, in the order in which they were found.
    pub failures: Vec<F>,
    /// The number of batches, deliveries and sessions that it began.
    pub steps: u32,
}

/// Carries out a flow until nothing is left that it can do.
pub fn run<H: FlowHost>(
    host: &H,
    person: &mut dyn Person<H::Failure>,
    standing: FlowStatus,
) -> FlowReport<H::Failure> {
    let state = State { standing, generation: 0, steps: 0, is_over: false, failures: Vec::new() };
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new() };
    let end = std::thread::scope(|scope| {
        let _over = Over { shared: &shared, host };
        scope.spawn(|| conduct(scope, &shared, host));
        attend(&shared, host, person)
    });
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    FlowReport { end, failures: state.failures, steps: state.steps }
}

struct State<F> {
    standing: FlowStatus,
    /// The number of tracks and sessions that have ended.
    generation: u64,
    steps: u32,
    is_over: bool,
    failures: Vec<F>,
}

struct Shared<F> {
    state: Mutex<State<F>>,
    changed: Condvar,
}

impl<F> Shared<F> {
    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changed, or for the next look.
    fn wait(&self) {
        let state = self.lock();
        // A change that came between the decision and this wait is not lost: the next look is due
        // anyway.
        let _woken = self.changed.wait_timeout(state, LOOK);
    }

    /// Records the end of a track or session.
    fn ended(&self, change: impl FnOnce(&mut State<F>)) {
        let mut state = self.lock();
        state.generation += 1;
        change(&mut state);
        self.changed.notify_all();
    }
}

/// Ends the flow when the person's thread leaves it, also by a panic.
struct Over<'s, H: FlowHost> {
    shared: &'s Shared<H::Failure>,
    host: &'s H,
}

impl<H: FlowHost> Drop for Over<'_, H> {
    fn drop(&mut self) {
        // Otherwise the scope would wait for a batch of hours before the panic is seen.
        if std::thread::panicking() {
            self.host.stop();
        }
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

/// Reads the facts and decides; `None` if something ended meanwhile.
fn decide<H: FlowHost>(
    shared: &Shared<H::Failure>,
    host: &H,
) -> Result<Option<(Moves, FlowFacts)>, H::Failure> {
    let (before, is_building) = {
        let mut state = shared.lock();
        state.standing.stopping |= host.is_interrupted();
        (state.generation, state.standing.building)
    };
    let facts = host.facts(is_building)?;
    let state = shared.lock();
    // Reading the facts takes a while, and the lock is not held over it.
    if state.generation != before || state.standing.building != is_building {
        return Ok(None);
    }
    Ok(Some((next(&facts, &state.standing), facts)))
}

/// The person's thread: one session after the other.
fn attend<H: FlowHost>(
    shared: &Shared<H::Failure>,
    host: &H,
    person: &mut dyn Person<H::Failure>,
) -> FlowEnd {
    let mut is_needed = false;
    loop {
        person.idle();
        let moves = match decide(shared, host) {
            Ok(Some((moves, _))) => moves,
            Ok(None) => continue,
            Err(failure) => {
                host.stop();
                shared.ended(|state| {
                    state.failures.push(failure);
                    state.standing.stopping = true;
                });
                return FlowEnd::Interrupted;
            }
        };
        let needs = match &moves.person {
            FlowStep::Plan(_)
            | FlowStep::SignOff(_)
            | FlowStep::Act
            | FlowStep::End(FlowEnd::NeedsYou { .. }) => true,
            FlowStep::Wait | FlowStep::End(FlowEnd::Done | FlowEnd::Interrupted) => false,
        };
        if needs && !is_needed {
            host.needs_you(&moves.person);
        }
        is_needed = needs;
        let visited = match &moves.person {
            FlowStep::Wait => {
                shared.wait();
                continue;
            }
            FlowStep::End(end) => return end.clone(),
            FlowStep::Plan(ids) => person.plan(ids),
            FlowStep::SignOff(ids) => person.sign_off(ids),
            FlowStep::Act => person.act().map(|()| Visit::default()),
        };
        shared.ended(|state| after_visit(state, &moves.person, visited));
    }
}

/// Records a session. One that failed is not begun again.
fn after_visit<F>(state: &mut State<F>, step: &FlowStep, visited: Result<Visit, F>) {
    state.steps += 1;
    let visit = visited.unwrap_or_else(|failure| {
        state.failures.push(failure);
        let left = match step {
            FlowStep::Plan(ids) | FlowStep::SignOff(ids) => ids.clone(),
            FlowStep::Act | FlowStep::Wait | FlowStep::End(_) => Vec::new(),
        };
        Visit { left }
    });
    let standing = &mut state.standing;
    match step {
        FlowStep::Plan(_) => standing.left_drafts.extend(visit.left),
        FlowStep::SignOff(_) => standing.left_unsigned.extend(visit.left),
        FlowStep::Act => standing.acted = true,
        FlowStep::Wait | FlowStep::End(_) => {}
    }
}

/// The other thread: starts batches and deliveries until the flow is over.
fn conduct<'scope, H: FlowHost>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<H::Failure>,
    host: &'scope H,
) {
    while !shared.lock().is_over {
        // The person's thread meets the same error, and reports it.
        if let Ok(Some((Moves { build, deliver, .. }, facts))) = decide(shared, host) {
            if build && begin(shared, |standing| &mut standing.building) {
                scope.spawn(move || build_once(shared, host, facts.fingerprint));
            }
            if !deliver.is_empty() && begin(shared, |standing| &mut standing.delivering) {
                scope.spawn(move || deliver_once(shared, host, &deliver));
            }
        }
        shared.wait();
    }
}

/// Marks a track as running; false if the flow is over or it runs already.
fn begin<F>(shared: &Shared<F>, track: impl FnOnce(&mut FlowStatus) -> &mut bool) -> bool {
    let mut state = shared.lock();
    // Looked at again under the lock: the decision was made without it.
    if state.is_over || state.standing.stopping {
        return false;
    }
    let running = track(&mut state.standing);
    if std::mem::replace(running, true) {
        return false;
    }
    state.steps += 1;
    true
}

fn build_once<H: FlowHost>(shared: &Shared<H::Failure>, host: &H, before: String) {
    let built = guarded(host, || host.build());
    // A person may have decided something after the batch looked for the last time, so facts from after it are no proof that
    // it had nothing to do with them. Equal facts before and after are. Those that cannot be read are reported by the
    // person's thread.
    let changed_nothing = host.facts(true).is_ok_and(|facts| facts.fingerprint == before);
    shared.ended(|state| {
        state.standing.building = false;
        state.standing.built = changed_nothing.then_some(before);
        if let Err(failure) = built {
            state.standing.build_stopped = true;
            state.failures.push(failure);
        }
    });
}

fn deliver_once<H: FlowHost>(shared: &Shared<H::Failure>, host: &H, ids: &[BundleId]) {
    let delivered = guarded(host, || host.deliver(ids));
    shared.ended(|state| {
        state.standing.delivering = false;
        // Also after a failure: the same facts would have the same answer, for as long as this flow
        // lasts.
        state.standing.delivered.extend(ids.iter().cloned());
        state.failures.extend(delivered.err());
    });
}

fn guarded<H: FlowHost>(
    host: &H,
    work: impl FnOnce() -> Result<(), H::Failure>,
) -> Result<(), H::Failure> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(host.panicked(words(panic.as_ref()))))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "nothing that can be shown".to_owned())
}

#[cfg(test)]
mod tests;
