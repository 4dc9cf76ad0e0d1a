//! Check: the reviewer and advisers judge the change without its builder's notes.

use camino::Utf8Path;
use pdca_journal::events::WarningCode;
use pdca_leaves::{
    BoxError, Call, CallFacts, CallPaths, Inputs, LeafConfig, LeafError, LeafOutcome, Role,
};
use pdca_state::{Artifact, Bundle, Snapshot, chain};

use crate::allowed_refs::breaches;
use crate::check::{require_patch, tell_of_primary};
use crate::checkout::{Checkout, CheckoutError, Patched, claim_checkout};
use crate::gate_lines::gate_lines;
use crate::instructions::instructions_for;
use crate::lane_env::LaneEnv;
use crate::leaf::{Guarded, keep_log, leaf_key, speaks_of_the_leaf};
use crate::run_bundle::{BeatError, Driver, REVIEW_LOG};

pub(crate) fn review(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    let checkout = claim_checkout(cx, bundle, snapshot, false)?;
    let patched = match &checkout {
        Some(checkout) => {
            let patch = require_patch(bundle)?;
            Some(Patched::stand(cx, bundle, checkout, patch)?)
        }
        None => None,
    };
    let fixed = patched.as_ref().map(Patched::tree);
    let brief = snapshot.authored_brief();
    for adviser in cx.config.leaves.advisory.iter().filter(|adviser| adviser.is_for(brief)) {
        // Before the reviewer, whose artifact moves the state: after it no adviser would be asked.
        advise(cx, bundle, snapshot, checkout.as_ref(), fixed, adviser)?;
    }
    let config = &cx.config.leaves.reviewer;
    match ask(cx, bundle, snapshot, checkout.as_ref(), fixed, Role::Reviewer, config) {
        Ok(outcome) => {
            let text = outcome.get(Role::Reviewer.output()).unwrap_or_default();
            cx.publish(bundle, Artifact::Review, text)
        }
        Err(BeatError::Leaf { source, .. }) if speaks_of_the_leaf(&source) => {
            cx.warn(
                bundle,
                WarningCode::NoReview,
                format!("there is no review: {}", chain(&source)),
            );
            let text = source.error_log().unwrap_or_default().to_owned();
            keep_log(cx, bundle, REVIEW_LOG, &text)?;
            Ok(())
        }
        Err(error) => Err(error),
    }
    // The job goes with the bundle's other jobs when it halts.
}

/// Asks one adviser. Its failure is a warning only; a breach fails the bundle, as the reviewer's does.
fn advise(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    checkout: Option<&Checkout>,
    fixed: Option<&str>,
    config: &LeafConfig,
) -> Result<(), BeatError> {
    let id = config.id.as_deref().unwrap_or("adviser");
    let place = Artifact::advisory(id);
    // A driver that takes over does not ask again what was answered and paid for.
    if bundle.dir().join(&place).exists() {
        return Ok(());
    }
    match ask(cx, bundle, snapshot, checkout, fixed, Role::Adviser, config) {
        Ok(outcome) => {
            let text = outcome.get(Role::Adviser.output()).unwrap_or_default();
            Ok(cx.effects.perform("advisory", || bundle.publish_file(&place, text))?)
        }
        Err(BeatError::Leaf { source, .. }) if speaks_of_the_leaf(&source) => {
            cx.warn(
                bundle,
                WarningCode::NoAdvice,
                format!("the adviser {id} has no advice: {}", chain(&source)),
            );
            keep_log(cx, bundle, &log_name(config), source.error_log().unwrap_or_default())?;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Asks one independent leaf about the change, in a private copy of the checkout.
fn ask(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    checkout: Option<&Checkout>,
    fixed: Option<&str>,
    role: Role,
    config: &LeafConfig,
) -> Result<LeafOutcome, BeatError> {
    let failed = |error| BeatError::Leaf {
        role: role.as_str(),
        log: bundle.dir().to_owned(),
        source: Box::new(error),
    };
    let instructions = instructions_for(cx.config, role, checkout).map_err(failed)?;
    let inputs = Inputs::gather(role, bundle).map_err(|error| failed(error.into()))?;
    let inputs = inputs.instructed(instructions);
    let kept = cx.config.kept();
    // Hides the builder's checkout with its uncommitted files, and all other lanes.
    let hidden = [cx.config.lanes.root.clone()];
    let places = CallPaths {
        workspace: &cx.config.dirs.root,
        bundle_root: cx.config.dirs.bundles.path(),
        worktree: None,
        tmp: cx.lane_env_of(checkout).and_then(LaneEnv::tmp),
        fix: checkout.map(|checkout| checkout.lane.path()),
        primary: checkout.map(|checkout| checkout.target.path()),
        kept: &kept,
        hidden: &hidden,
    };
    let gates = gate_lines(cx.config, snapshot.authored_brief());
    let number = snapshot.iterations + 1;
    let request = Call {
        facts: CallFacts { attempt: number, gates: gates.as_deref(), ..cx.facts(checkout) },
        force_stub: cx.config.force_stubs,
        ..Call::new(config, &inputs, Utf8Path::new(""), places)
    };
    let attempt = snapshot.iterations.to_string();
    // The same tree may come back in a later attempt, which is reviewed on its own.
    let parts = [("tree", fixed.unwrap_or("")), ("attempt", &attempt)];
    let key = leaf_key(&request, &parts).map_err(failed)?;
    let name =
        config.id.as_deref().map_or_else(|| role.as_str().to_owned(), |id| format!("adviser-{id}"));
    let job = cx.config.jobs().path(bundle.id(), &name, &key);
    let copy = job.join("checkout");
    let prepare = |_try: u32| -> Result<(), BoxError> {
        checkout.map_or(Ok(()), |checkout| lay_out_copy(cx, bundle, checkout, &copy))
    };
    let fingerprint = || -> Result<String, BoxError> {
        checkout.map_or(Ok(String::new()), |checkout| Ok(checkout.lane.tree()?))
    };
    let has_copy = checkout.is_some() && !request.is_stub();
    let places = CallPaths { worktree: has_copy.then_some(copy.as_path()), ..places };
    let request = Call {
        job: &job,
        places,
        prepare: Some(&prepare),
        fingerprint: Some(&fingerprint),
        ..request
    };
    let watch = |checkout| cx.watch_from(checkout, &job);
    let wire = checkout.map(watch).transpose()?;
    let Guarded { answer, planted } = cx.guarded(bundle, &request)?;
    let mut written = wire.map(|wire| breaches(cx.config, &wire)).unwrap_or_default();
    if answer.as_ref().map_or(true, |outcome| outcome.guard.is_enforced()) {
        // A confined leaf cannot have written there, so another process did; and one that failed has no answer that
        // could be void. Warn only.
        tell_of_primary(cx, bundle, role.as_str(), &written);
        written.clear();
    }
    written.extend(planted);
    if !written.is_empty() {
        let text =
            format!("The {role} is void. Written beyond its view:\n- {}\n", written.join("\n- "));
        let log = keep_log(cx, bundle, &log_name(config), &text)?;
        return Err(BeatError::Breach { role: role.as_str(), log, written });
    }
    answer.map_err(|error| {
        if matches!(error, LeafError::Cancelled) { BeatError::Interrupted } else { failed(error) }
    })
}

fn log_name(config: &LeafConfig) -> String {
    match &config.id {
        Some(id) => format!("check-advisory-{id}"),
        None => REVIEW_LOG.to_owned(),
    }
}

/// Makes a fresh copy of the checkout, with agents' configuration restored from the base, so that the change under
/// review cannot instruct its reviewer.
fn lay_out_copy(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    copy: &Utf8Path,
) -> Result<(), BoxError> {
    // Each try has a fresh copy: what a failed one wrote there must not be reviewed.
    pdca_lanes::discard(copy, &copy.with_file_name("discarded"))?;
    checkout.lane.copy_to(copy).map_err(CheckoutError::from)?;
    let base = &checkout.attempt.base;
    let selected = pdca_lanes::Selected {
        is_of: &pdca_leaves::is_agent_config,
        imports: &pdca_leaves::agent_imports,
    };
    let back = checkout.lane.put_back(copy, base, &selected);
    let back = back.map_err(CheckoutError::from)?;
    if !back.is_empty() {
        let files = back.join(", ");
        let text = format!(
            "the change has configuration of agents in it, which the reviewer reads in the patch and does not load: {files}"
        );
        cx.warn(bundle, WarningCode::AgentConfig, text);
    }
    Ok(())
}
