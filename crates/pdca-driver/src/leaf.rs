//! Calls a leaf of any role: budget, guard, events, error log.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::events::WarningCode;
use pdca_journal::{EffectSide, Point};
use pdca_leaves::{
    BoxError, Call, CallFacts, FailureClass, LeafError, LeafEvent, LeafOutcome, LongWait, Role,
    WaitDecision, WallClock, call,
};
use pdca_state::{Artifact, Bundle, WriteError, chain};

use crate::attempt::forget_lost_checkout;
use crate::attempt_notes::{SessionNote, agent_of};
use crate::calls::{CallLog, CostReached};
use crate::checkout::{Checkout, CheckoutError};
use crate::guard::{relieve_guard, stand_guard};
use crate::job::JobKey;
use crate::lane_env::LaneEnv;
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::{EventKind, millis};

/// The answer of a leaf, with the files that were planted in the bundle meanwhile.
pub(crate) struct Guarded {
    pub(crate) answer: Result<LeafOutcome, LeafError>,
    /// Files that could have moved the bundle's state, now set aside.
    pub(crate) planted: Vec<String>,
}

impl Driver<'_> {
    /// Calls a leaf with a guard on the bundle, so that files it writes there cannot move the state.
    pub(crate) fn guarded(
        &self,
        bundle: &Bundle,
        request: &Call<'_>,
    ) -> Result<Guarded, BeatError> {
        if request.is_stub() {
            return Ok(Guarded { answer: leaf(self, bundle, request), planted: Vec::new() });
        }
        // Counted before it starts, so that a driver that is killed cannot call without limit.
        spend(self, bundle, request.inputs.role())?;
        stand_guard(self, bundle)?;
        let answer = leaf(self, bundle, request);
        // Before any error of the call is returned: a failed leaf may have planted files too.
        let planted = relieve_guard(self, bundle)?;
        let answer = within_budget(answer)?;
        // A reviewer works in a copy; the checkout to require is the one under review.
        require_there(self, bundle, request.places.fix.or(request.places.worktree))?;
        Ok(Guarded { answer, planted })
    }

    /// Returns the facts about the change that every leaf receives.
    pub(crate) fn facts<'a>(&'a self, checkout: Option<&'a Checkout>) -> CallFacts<'a> {
        CallFacts {
            push: None,
            base: checkout.map(|checkout| checkout.attempt.base.as_str()),
            brief_base: checkout.map(|checkout| checkout.attempt.branch.as_str()),
            target: checkout.map(|checkout| checkout.attempt.target.as_str()),
            git_common_dir: None,
            attempt: 1,
            gates: None,
            run: Some(&self.config.run),
            program: self.config.program.as_deref().map(Utf8Path::as_str),
            lane: self
                .lane_env_of(checkout)
                .map_or(CallFacts::default().lane, |lane_env| &lane_env.variables),
        }
    }

    /// Returns the environment of the checkout, or the driver's own, which has only the slot.
    pub(crate) fn lane_env_of<'a>(&'a self, checkout: Option<&'a Checkout>) -> Option<&'a LaneEnv> {
        checkout.and_then(|checkout| checkout.lane_env.as_ref()).or(self.lane_env)
    }
}

/// Returns the key of a leaf's job, over the digest of the call and facts that only the
/// driver knows, such as the attempt.
pub(crate) fn leaf_key(request: &Call<'_>, more: &[(&str, &str)]) -> Result<JobKey, LeafError> {
    let digest = request.digest()?;
    let more = more.iter().map(|(name, text)| (*name, text.as_bytes()));
    Ok(JobKey::over(std::iter::once(("call", digest.as_bytes())).chain(more)))
}

/// Counts a call against the run's limit.
fn spend(cx: &Driver<'_>, bundle: &Bundle, role: Role) -> Result<(), BeatError> {
    if let Some(grant) = cx.grant {
        return grant.take();
    }
    let Some(run) = cx.run else { return Ok(()) };
    // Legs elsewhere have calls set aside, which this one must not take.
    let limit = cx.config.limits.max_leaf_calls;
    let _one = match (cx.places, limit) {
        (Some(places), Some(limit)) => Some(places.reserve(run, limit, 1, cx.cancel)?),
        (None, _) | (_, None) => None,
    };
    run.leaf_called(bundle.id(), role.as_str(), limit)
}

/// Calls a leaf, emits its events, and announces start and end as effects.
fn leaf(cx: &Driver<'_>, bundle: &Bundle, request: &Call<'_>) -> Result<LeafOutcome, LeafError> {
    let role = request.inputs.role();
    cx.effects.announce(Point { name: role.as_str(), when: EffectSide::Before });
    let calls = CallLog::new(cx, bundle, request);
    let mut tell = |event| {
        if let LeafEvent::Ended { .. } = event {
            calls.keep();
        }
        if let LeafEvent::Started { .. } = event {
            cx.effects.announce(Point { name: "leaf-started", when: EffectSide::After });
        }
        tell_leaf(cx, bundle, role, event);
    };
    let children = cx.config.locks().children();
    let max_memory = cx.config.limits.leaf_memory;
    let hold = request.hold.or(Some(&children));
    let clock = WallClock { now: cx.config.clock, offset: cx.config.utc_offset };
    let breaker = Some(&cx.config.breaker);
    let prepare = |tried: u32| -> Result<(), BoxError> {
        // Only what is really started costs: the result of an earlier driver's call is used all the same.
        calls.require_budget()?;
        calls.begin(tried)?;
        request.prepare.map_or(Ok(()), |prepare| prepare(tried))
    };
    let prepare: Option<&dyn Fn(u32) -> Result<(), BoxError>> = Some(&prepare);
    let has_terminal = cx.config.has_terminal;
    let asked = |wait: &LongWait| cx.ask_wait.map_or(WaitDecision::Wait, |ask| ask(wait));
    let ask_wait: Option<&dyn Fn(&LongWait) -> WaitDecision> = match cx.ask_wait {
        Some(_) => Some(&asked),
        None => None,
    };
    let clock = Some(clock);
    let request =
        Call { hold, max_memory, breaker, clock, prepare, has_terminal, ask_wait, ..*request };
    let outcome = call(&request, &mut tell, cx.cancel);
    // One that was cancelled has no end that is told.
    calls.keep();
    let outcome = outcome?;
    cx.effects.announce(Point { name: role.as_str(), when: EffectSide::After });
    note_session(cx, bundle, &request, &outcome);
    if !outcome.guard.is_enforced() {
        let text = format!("the {role} was not confined by the kernel: {}", outcome.guard);
        cx.tell(bundle, EventKind::notice(WarningCode::Unconfined, text));
    }
    Ok(outcome)
}

/// Records the agent's session, for the next attempt to go on in. A session that is not recorded only costs a new one.
fn note_session(cx: &Driver<'_>, bundle: &Bundle, request: &Call<'_>, outcome: &LeafOutcome) {
    let role = request.inputs.role();
    let Some(session) = outcome.session.clone().filter(|_| role.may_resume()) else { return };
    let note = SessionNote {
        attempt: request.facts.attempt,
        role: role.as_str().to_owned(),
        agent: agent_of(request.config),
        session,
        directory: session_directory(request),
    };
    let notes = cx.config.attempt_notes(bundle.id());
    if let Err(error) = cx.effects.perform("session", || notes.note_session(note)) {
        let text = format!("the session of the {role} cannot be recorded: {error}");
        cx.tell(bundle, EventKind::notice(WarningCode::NotStored, text));
    }
}

/// Returns the directory that a leaf starts in, as far as its agent tells sessions apart by it.
pub(crate) fn session_directory(request: &Call<'_>) -> Utf8PathBuf {
    request.places.worktree.unwrap_or(request.job).to_owned()
}

/// Returns an error if the checkout in which something just ran is gone. The result is discarded, because
/// it says nothing about the change. A confined child cannot remove its checkout, so another process
/// did, and a person has to decide.
pub(crate) fn require_there(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: Option<&Utf8Path>,
) -> Result<(), BeatError> {
    let Some(path) = checkout.filter(|path| !path.is_dir()) else { return Ok(()) };
    cx.config.jobs().remove_all(bundle.id()).map_err(BeatError::Own)?;
    forget_lost_checkout(cx.config, bundle.id()).map_err(BeatError::Own)?;
    Err(CheckoutError::Lost { path: path.to_owned() }.into())
}

fn tell_leaf(cx: &Driver<'_>, bundle: &Bundle, role: Role, event: LeafEvent) {
    let role = role.as_str().to_owned();
    cx.tell(
        bundle,
        match event {
            LeafEvent::Attempt { n, of: _ } => EventKind::LeafBegan { role, attempt: n },
            LeafEvent::Started { .. } => return,
            LeafEvent::Output { bytes: _, last_line } => {
                EventKind::Alive { what: role, line: last_line }
            }
            LeafEvent::Throttled { wait } => {
                EventKind::LeafThrottled { role, wait_ms: millis(wait) }
            }
            LeafEvent::Diagnosed { class, evidence } => EventKind::notice(
                WarningCode::AgentDiagnosed,
                format!("{role}: {class}: {evidence}"),
            ),
            LeafEvent::NotResumed { session } => {
                let text =
                    format!("{role}: session {session} could not be resumed; a new one begins");
                EventKind::warning(WarningCode::SessionNotResumed, text)
            }
            LeafEvent::Ended { attempt: _, ending, held, reused } => EventKind::LeafEnded {
                role,
                ending: ending.to_string(),
                guard: held.to_string(),
                reused,
            },
        },
    );
}

/// Publishes an error log and returns its path.
pub(crate) fn keep_log(
    cx: &Driver<'_>,
    bundle: &Bundle,
    name: &str,
    text: &str,
) -> Result<Utf8PathBuf, WriteError> {
    let relative = Artifact::error_log(name);
    let write = || bundle.publish_file(&relative, text.as_bytes());
    cx.effects.perform("error-log", write)?;
    Ok(bundle.dir().join(relative))
}

/// Converts a leaf's failure to the bundle's: its log published, or an interruption.
pub(crate) fn leaf_failed(
    cx: &Driver<'_>,
    bundle: &Bundle,
    name: &str,
    role: Role,
    error: LeafError,
) -> Result<BeatError, WriteError> {
    // A failure during cancellation is a consequence of it.
    if matches!(error, LeafError::Cancelled) || cx.cancel.is_cancelled() {
        return Ok(BeatError::Interrupted);
    }
    let error = match without_checkout(error) {
        Ok(checkout) => return Ok(BeatError::Checkout(checkout)),
        Err(error) => *error,
    };
    let text = match error.error_log() {
        Some(text) => text.to_owned(),
        None => format!("{}\n", chain(&error)),
    };
    let log = keep_log(cx, bundle, name, &text)?;
    Ok(BeatError::Leaf { role: role.as_str(), log, source: Box::new(error) })
}

/// Separates a cap that was reached before the leaf was started from the leaf's own failures.
fn within_budget(
    answer: Result<LeafOutcome, LeafError>,
) -> Result<Result<LeafOutcome, LeafError>, CostReached> {
    match answer {
        Err(LeafError::Prepare(source)) => match source.downcast::<CostReached>() {
            Ok(reached) => Err(*reached),
            Err(source) => Ok(Err(LeafError::Prepare(source))),
        },
        answer => Ok(answer),
    }
}

/// Separates a failure to prepare the checkout, which is not the leaf's fault, from the leaf's own.
pub(crate) fn without_checkout(error: LeafError) -> Result<CheckoutError, Box<LeafError>> {
    let LeafError::Prepare(source) = error else { return Err(Box::new(error)) };
    match source.downcast::<CheckoutError>() {
        Ok(checkout) => Ok(*checkout),
        Err(source) => Err(Box::new(LeafError::Prepare(source))),
    }
}

/// Returns whether a failure is the leaf's own, for a person to judge, rather than
/// the host's, where only trying again helps.
pub(crate) fn speaks_of_the_leaf(error: &LeafError) -> bool {
    match error {
        LeafError::Failed { .. } | LeafError::NoArtifact { .. } | LeafError::Voided { .. } => true,
        LeafError::Stage(_)
        | LeafError::NoProgram { .. }
        | LeafError::Template(_)
        | LeafError::NoValue(_)
        | LeafError::Prompt { .. }
        | LeafError::Writable { .. }
        | LeafError::NoSandbox { .. }
        | LeafError::NoTerminal { .. }
        | LeafError::Prepare(_)
        | LeafError::Fingerprint(_)
        | LeafError::Digest(_)
        | LeafError::Sweep(_)
        | LeafError::Job(_)
        | LeafError::Log(_)
        | LeafError::Run(_)
        | LeafError::NotStarted { .. }
        | LeafError::Host { .. }
        | LeafError::Cancelled
        | LeafError::Throttled { .. } => false,
        LeafError::Agent { class, .. } => match class {
            FailureClass::ContextTooLong | FailureClass::Refused => true,
            FailureClass::Auth | FailureClass::Host | FailureClass::Throttled => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use pdca_leaves::Flaw;

    use super::*;

    #[test]
    fn only_a_leaf_that_ran_speaks_for_itself() {
        let (role, log) = (Role::Reviewer, String::new());
        let flaw = Flaw::Missing("check-review.md");
        let said = LeafError::NoArtifact { role, attempts: 1, flaw, log: log.clone() };
        assert!(speaks_of_the_leaf(&said));
        let guard = None;
        let void = LeafError::Voided { role, changed: Vec::new(), fix: true, guard, log };
        assert!(speaks_of_the_leaf(&void));
        let host = [
            LeafError::Cancelled,
            LeafError::NoProgram { role },
            LeafError::NotStarted { role, why: "x".into() },
            LeafError::Job(std::io::Error::other("x")),
        ];
        for error in host {
            assert!(!speaks_of_the_leaf(&error), "{error:?}");
        }
    }

    #[test]
    fn a_checkout_that_could_not_be_prepared_is_no_failure_of_the_leaf() {
        let lost = CheckoutError::Lost { path: "lane".into() };
        let found = without_checkout(LeafError::Prepare(Box::new(lost)));
        assert!(matches!(found, Ok(CheckoutError::Lost { .. })), "{found:?}");
        for error in [LeafError::Prepare("no disk".into()), LeafError::Cancelled] {
            let said = error.to_string();
            assert_eq!(without_checkout(error).unwrap_err().to_string(), said);
        }
    }
}
