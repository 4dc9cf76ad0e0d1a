//! Leaves that work together with a person: the planner fills in the brief, the sign-off leaf discusses a decision.
//! Only a person starts them, never a step.

use pdca_leaves::{Call, CallPaths, Inputs, LeafError, LeafOutcome, Output, Role};
use pdca_state::{Artifact, Bundle};

use crate::leaf::Guarded;
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

/// Calls one of them, without reusing the result of an earlier call: the person asks anew each time.
pub(crate) fn consult(
    cx: &Driver<'_>,
    bundle: &Bundle,
    role: Role,
) -> Result<LeafOutcome, BeatError> {
    let failed = |source: LeafError| {
        if matches!(source, LeafError::Cancelled) {
            return BeatError::Interrupted;
        }
        let log = bundle.dir().to_owned();
        BeatError::Leaf { role: role.as_str(), log, source: Box::new(source) }
    };
    let Some(config) = cx.config.leaves.of(role) else {
        return Err(failed(LeafError::NoProgram { role }));
    };
    let inputs = Inputs::gather(role, bundle).map_err(|error| failed(error.into()))?;
    let jobs = cx.config.jobs();
    let job = jobs.of(bundle.id()).join(role.as_str());
    cx.keep_calls(bundle, &job);
    jobs.remove(&job).map_err(BeatError::Own)?;
    let kept = cx.config.kept();
    let places = CallPaths {
        workspace: &cx.config.dirs.root,
        bundle_root: cx.config.dirs.bundles.path(),
        worktree: None,
        tmp: None,
        fix: None,
        primary: None,
        kept: &kept,
        hidden: &[],
    };
    let request = Call {
        facts: cx.facts(None),
        force_stub: cx.config.force_stubs,
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
