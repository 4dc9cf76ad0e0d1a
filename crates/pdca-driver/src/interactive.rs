//! Leaves that work together with a person: the planner fills in the brief, the sign-off leaf discusses a decision,
//! Act looks at finished cycles. Only a person starts them, never a step.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::{
    BoxError, Call, CallFacts, CallPaths, Inputs, LeafConfig, LeafError, LeafOutcome, Output, Role,
    WallClock, call,
};
use pdca_state::{Artifact, Bundle, Snapshot};

use crate::attempt_notes::Resumption;
use crate::calls::{SharedCalls, keep_shared_calls};
use crate::gate_lines::gate_lines;
use crate::instructions::{instructions_about, instructions_of_workspace};
use crate::leaf::Guarded;
use crate::plan_advice::advise_on_brief;
use crate::run_bundle::{BeatError, Driver};

/// Runs the planner on the bundle's brief. The caller must hold the bundle.
///
/// Returns `false` if the brief is unchanged.
pub fn plan(cx: &Driver<'_>, bundle: &Bundle) -> Result<bool, BeatError> {
    let outcome = consult(cx, bundle, Role::Planner)?;
    let Some(brief) = outcome.get(Output::Artifact(Artifact::Brief)) else { return Ok(false) };
    if bundle.read(Artifact::Brief)?.as_deref() == Some(brief) {
        return Ok(false);
    }
    cx.publish(bundle, Artifact::Brief, brief)?;
    advise_on_brief(cx, bundle)?;
    Ok(true)
}

/// Runs the sign-off leaf with the person, and returns the proposed decision;
/// `None` if there is none. The caller must hold the bundle.
pub fn propose(cx: &Driver<'_>, bundle: &Bundle) -> Result<Option<Vec<u8>>, BeatError> {
    match consult(cx, bundle, Role::Signoff) {
        Ok(outcome) => Ok(outcome.get(Output::Proposal).map(<[u8]>::to_vec)),
        Err(BeatError::Leaf { source, .. }) if matches!(*source, LeafError::NoArtifact { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Runs the publisher, and returns the texts that it wrote. The caller must hold the bundle.
pub fn ask_publisher(cx: &Driver<'_>, bundle: &Bundle) -> Result<LeafOutcome, BeatError> {
    consult(cx, bundle, Role::Publisher)
}

/// Runs the Act leaf over the records of finished cycles, and returns the entry that it wrote. What the call cost is recorded
/// in the bundles of these cycles, each with its part.
pub fn review_cycles(
    cx: &Driver<'_>,
    cycles: &[Bundle],
    records: Vec<(Utf8PathBuf, Vec<u8>)>,
) -> Result<Vec<u8>, BeatError> {
    let role = Role::Act;
    let job = cx.config.dirs.private().join("act");
    let failed = |source: LeafError| leaf_failure(role, &job, source);
    let Some(config) = cx.config.leaves.of(role) else {
        return Err(failed(LeafError::NoProgram { role }));
    };
    let inputs = Inputs::for_act(records).map_err(|error| failed(error.into()))?;
    let inputs = inputs.instructed(instructions_of_workspace(cx.config, role).map_err(failed)?);
    let jobs = cx.config.jobs();
    // A driver that died in the middle of a review left a call that is paid for.
    keep_shared_calls(cx, cycles, &job);
    jobs.remove(&job).map_err(BeatError::Own)?;
    let kept = cx.config.kept();
    let children = cx.config.locks().children();
    let gates = gate_lines(cx.config, None);
    let request = Call {
        facts: CallFacts { gates: gates.as_deref(), ..cx.facts(None) },
        force_stub: cx.config.force_stubs,
        has_terminal: cx.config.has_terminal,
        hold: Some(&children),
        max_memory: cx.config.limits.leaf_memory,
        breaker: Some(&cx.config.breaker),
        clock: Some(WallClock { now: cx.config.clock, offset: cx.config.utc_offset }),
        ..Call::new(config, &inputs, &job, own_places(cx, &kept))
    };
    let calls = SharedCalls::new(cx, cycles, &request);
    let prepare = |tried: u32| -> Result<(), BoxError> { Ok(calls.begin(tried)?) };
    let request = Call { prepare: Some(&prepare), ..request };
    let answer = call(&request, &mut |_| {}, cx.cancel);
    calls.keep();
    let outcome = answer.map_err(failed)?;
    let entry = outcome.get(Output::ActEntry).map(<[u8]>::to_vec);
    let entry = entry.ok_or_else(|| failed(LeafError::NoProgram { role }))?;
    jobs.remove(&job).map_err(BeatError::Own)?;
    Ok(entry)
}

pub(crate) fn leaf_failure(role: Role, log: &Utf8Path, source: LeafError) -> BeatError {
    if matches!(source, LeafError::Cancelled) {
        return BeatError::Interrupted;
    }
    BeatError::Leaf { role: role.as_str(), log: log.to_owned(), source: Box::new(source) }
}

/// Returns the places of a call that has no checkout.
pub(crate) fn own_places<'a>(cx: &'a Driver<'_>, kept: &'a [Utf8PathBuf]) -> CallPaths<'a> {
    CallPaths {
        workspace: &cx.config.dirs.root,
        bundle_root: cx.config.dirs.bundles.path(),
        worktree: None,
        tmp: None,
        fix: None,
        primary: None,
        kept,
        hidden: &[],
    }
}

/// Calls one of them, without reusing the result of an earlier call: the person asks anew each time.
pub(crate) fn consult(
    cx: &Driver<'_>,
    bundle: &Bundle,
    role: Role,
) -> Result<LeafOutcome, BeatError> {
    match cx.config.leaves.of(role) {
        Some(config) => consult_leaf(cx, bundle, role, config),
        None => Err(leaf_failure(role, bundle.dir(), LeafError::NoProgram { role })),
    }
}

/// Like [`consult`], with a leaf of a role that several have.
pub(crate) fn consult_leaf(
    cx: &Driver<'_>,
    bundle: &Bundle,
    role: Role,
    config: &LeafConfig,
) -> Result<LeafOutcome, BeatError> {
    let failed = |source: LeafError| leaf_failure(role, bundle.dir(), source);
    let inputs = Inputs::gather(role, bundle).map_err(|error| failed(error.into()))?;
    let jobs = cx.config.jobs();
    let job = jobs.of(bundle.id()).join(role.as_str());
    // Before the job goes: the cost of a call whose driver died is in its directory only.
    cx.keep_calls(bundle, &job);
    jobs.remove(&job).map_err(BeatError::Own)?;
    let kept = cx.config.kept();
    let snapshot = bundle.load()?;
    let instructions = instructions_about(cx.config, role, bundle.id(), &snapshot);
    let inputs = inputs.instructed(instructions.map_err(failed)?);
    let primary = code_of(cx, &snapshot);
    let attempt = snapshot.iterations + 1;
    let gates = gate_lines(cx.config, snapshot.authored_brief());
    let notes = cx.config.attempt_notes(bundle.id()).load().map_err(BeatError::Own)?;
    // No checkout is as the agent left it, so only `resume = true` continues a session here.
    let wanted = Resumption { role, attempt, config, directory: &job, is_as_left: false };
    let places = CallPaths { primary: primary.as_deref(), ..own_places(cx, &kept) };
    let request = Call {
        facts: CallFacts { attempt, gates: gates.as_deref(), ..cx.facts(None) },
        force_stub: cx.config.force_stubs,
        session: notes.session_for(&wanted).map(|note| note.session.as_str()),
        ..Call::new(config, &inputs, &job, places)
    };
    let Guarded { answer, planted } = cx.guarded(bundle, &request)?;
    let outcome = answer.map_err(failed)?;
    let changed = outcome.bundle_changed.iter().map(ToString::to_string);
    let written: Vec<String> = changed.chain(planted).collect();
    if !written.is_empty() && !outcome.guard.is_enforced() {
        let log = bundle.dir().to_owned();
        return Err(BeatError::Breach { role: role.as_str(), log, written });
    }
    jobs.remove(&job).map_err(BeatError::Own)?;
    Ok(outcome)
}

/// Returns the checkout to read the code in: that of the brief's target, or of the only one.
fn code_of(cx: &Driver<'_>, snapshot: &Snapshot) -> Option<Utf8PathBuf> {
    let brief = snapshot.authored_brief();
    let named = brief.and_then(|brief| cx.config.target_of(brief).ok().flatten());
    let targets = &cx.config.targets;
    let only = || targets.first().filter(|_| targets.len() == 1).cloned();
    named.or_else(only).map(|target| target.path)
}
