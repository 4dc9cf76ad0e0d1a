//! Do: the builder changes the code in a private checkout, and the difference becomes the patch.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::events::WarningCode;
use pdca_lanes::{ApplyError, LaneError, OwnerNote, Reset};
use pdca_leaves::{
    BoxError, Call, CallFacts, CallPaths, ChosenBuilder, Inputs, LeafError, LeafOutcome, Output,
    Role,
};
use pdca_state::{Artifact, Bundle, Snapshot, chain};

use crate::allowed_refs::breaches;
use crate::attempt_notes::Resumption;
use crate::check::tell_of_primary;
use crate::checkout::{Checkout, CheckoutError, claim_checkout, save};
use crate::commits::{harvest_commits, message_for};
use crate::dependencies::require_dependencies;
use crate::gate_lines::gate_lines;
use crate::instructions::instructions_for;
use crate::integrate::take_resolution;
use crate::lane_env::LaneEnv;
use crate::leaf::{Guarded, keep_log, leaf_failed, leaf_key, session_directory};
use crate::products::{leave_out_products, note_products_in};
use crate::refold::take_refolded;
use crate::run_bundle::{BeatError, Driver};
use crate::start::{Start, start_of};
use pdca_journal::events::EventKind;

const LOG: &str = "builder";

/// The directory of a builder's call, and the owner of the checkout meanwhile.
struct BuilderJob {
    dir: Utf8PathBuf,
    owner: String,
}

pub(crate) fn build(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    // Before dependencies and inputs are looked at: the change exists, and no leaf is paid for it.
    if take_resolution(cx, bundle, snapshot)? || take_refolded(cx, bundle, snapshot)? {
        return Ok(());
    }
    require_dependencies(cx, bundle, snapshot)?;
    let checkout = claim_checkout(cx, bundle, snapshot, true)?;
    if checkout.is_none() {
        let text = "no target is configured: the builder has no checkout".to_owned();
        cx.tell(bundle, EventKind::notice(WarningCode::NoTarget, text));
    }
    let checkout = checkout.as_ref();
    let instructed = instructions_for(cx.config, Role::Builder, checkout);
    let inputs = Inputs::gather(Role::Builder, bundle).map_err(LeafError::from);
    let inputs = match instructed.and_then(|found| Ok(inputs?.instructed(found))) {
        Ok(inputs) => inputs,
        Err(error) => return Err(leaf_failed(cx, bundle, LOG, Role::Builder, error)?),
    };
    let kept = cx.config.kept();
    let attempt = snapshot.iterations + 1;
    let chosen = cx.config.leaves.builder_for(snapshot.authored_brief(), attempt);
    let gates = gate_lines(cx.config, snapshot.authored_brief());
    let request = builder_request(cx, checkout, &inputs, &kept, chosen);
    let push = cx.config.builder_push.as_ref();
    let push = push.and_then(|push| push.arguments(bundle.id(), snapshot.authored_brief()));
    let git_common_dir = checkout.map(|checkout| checkout.target.common_dir().as_str());
    let (gates, push) = (gates.as_deref(), push.as_deref());
    let facts = CallFacts { attempt, gates, push, git_common_dir, ..request.facts };
    let request = Call { facts, ..request };
    let start = checkout.filter(|_| !request.is_stub());
    let start = start.map_or(Ok(None), |checkout| start_of(cx, bundle, checkout))?;
    // Not part of the job's key: an earlier attempt's session is the same for a driver that takes
    // over (decision 036).
    let session = session_of(cx, bundle, &request, start.is_some())?;
    let request = Call { session: session.as_deref(), ..request };
    if chosen.variant.is_some() {
        let text = format!("attempt {attempt} is built by {chosen}");
        cx.warn(bundle, WarningCode::BuilderVariant, text);
    }
    let job = match builder_job(cx, bundle, snapshot, checkout, &request)? {
        Ok(job) => job,
        Err(error) => return Err(leaf_failed(cx, bundle, LOG, Role::Builder, error)?),
    };
    let done = || cx.config.jobs().remove(&job.dir);
    let built = call_builder(cx, bundle, checkout, start.as_ref(), &request, &job)
        .and_then(|outcome| Ok((take_patch(cx, bundle, checkout, attempt, &outcome)?, outcome)));
    let ((patch, head), outcome) = match built {
        Ok(built) => built,
        Err(error) => {
            if !matches!(error, BeatError::Interrupted) {
                // The failure is final, so the next run asks again, starting from the branch's tip.
                done().map_err(BeatError::Own)?;
                cx.config.attempts().remove(bundle.id()).map_err(BeatError::Own)?;
                let notes = cx.config.attempt_notes(bundle.id());
                notes.forget_products(attempt).map_err(BeatError::Own)?;
            }
            return Err(error);
        }
    };
    if let (Some(start), Some(checkout)) = (&start, checkout)
        && !Start::has_work(Some(start), checkout)
    {
        let text = "the builder left the patch of the attempt before as it was";
        cx.warn(bundle, WarningCode::PatchUnchanged, text);
    }
    publish_change(cx, bundle, snapshot, &outcome, &patch)?;
    if let (Some(checkout), Some(head)) = (checkout, head) {
        // A commit holds the work now, so the next reset has nothing to rescue. Check starts from a reset checkout,
        // or from this one where `reset = "tracked"` lets the builder's untracked files count.
        let job = match cx.config.lanes.reset {
            Reset::Tracked => checkout.change_name(bundle, &patch),
            Reset::Clean | Reset::Pristine => job.owner.clone(),
        };
        cx.set_owner(checkout, &OwnerNote { job, head: Some(head) })?;
    }
    // Last: until here the job's verdict is what spares a second call of the builder after a crash.
    cx.effects.perform("job-done", done).map_err(BeatError::Own)
}

/// Describes the call, without its job directory.
fn builder_request<'a>(
    cx: &'a Driver<'_>,
    checkout: Option<&'a Checkout>,
    inputs: &'a Inputs,
    kept: &'a [Utf8PathBuf],
    chosen: ChosenBuilder<'a>,
) -> Call<'a> {
    let places = CallPaths {
        workspace: &cx.config.dirs.root,
        bundle_root: cx.config.dirs.bundles.path(),
        worktree: checkout.map(|checkout| checkout.lane.path()),
        tmp: cx.lane_env_of(checkout).and_then(LaneEnv::tmp),
        fix: None,
        primary: checkout.map(|checkout| checkout.target.path()),
        kept,
        hidden: &[],
    };
    Call {
        facts: cx.facts(checkout),
        force_stub: cx.config.force_stubs,
        model: chosen.model,
        effort: chosen.effort,
        ..Call::new(chosen.config, inputs, Utf8Path::new(""), places)
    }
}

/// Finds the session of an earlier attempt for the builder to go on in.
fn session_of(
    cx: &Driver<'_>,
    bundle: &Bundle,
    request: &Call<'_>,
    is_as_left: bool,
) -> Result<Option<String>, BeatError> {
    if request.is_stub() {
        return Ok(None);
    }
    let notes = cx.config.attempt_notes(bundle.id()).load().map_err(BeatError::Own)?;
    let directory = session_directory(request);
    let wanted = Resumption {
        role: Role::Builder,
        attempt: request.facts.attempt,
        config: request.config,
        directory: &directory,
        is_as_left,
    };
    let Some(found) = notes.session_for(&wanted) else { return Ok(None) };
    let text =
        format!("the builder goes on in session {} of attempt {}", found.session, found.attempt);
    cx.warn(bundle, WarningCode::SessionResumed, text);
    Ok(Some(found.session.clone()))
}

fn builder_job(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    checkout: Option<&Checkout>,
    request: &Call<'_>,
) -> Result<Result<BuilderJob, LeafError>, BeatError> {
    let attempt = snapshot.iterations.to_string();
    let key = match leaf_key(request, &[("attempt", &attempt)]) {
        Ok(key) => key,
        Err(error) => return Ok(Err(error)),
    };
    let jobs = cx.config.jobs();
    let dir = jobs.path(bundle.id(), Role::Builder.as_str(), &key);
    let owner =
        checkout.map_or(String::new(), |checkout| checkout.work_name(bundle, Role::Builder, &key));
    if let Some(checkout) = checkout
        && !checkout.is_owned_by(&owner).map_err(CheckoutError::from)?
    {
        // The recorded end of a builder counts only while its work is still in the checkout.
        jobs.remove(&dir).map_err(BeatError::Own)?;
    }
    Ok(Ok(BuilderJob { dir, owner }))
}

/// Runs the builder, and rejects its work if it wrote outside the checkout.
fn call_builder(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: Option<&Checkout>,
    start: Option<&Start>,
    request: &Call<'_>,
    job: &BuilderJob,
) -> Result<LeafOutcome, BeatError> {
    let prepare = |_try: u32| -> Result<(), BoxError> {
        let Some(checkout) = checkout else { return Ok(()) };
        cx.clear(bundle, checkout, &job.owner)?;
        Ok(start.map_or(Ok(()), |start| start.apply(cx, checkout))?)
    };
    let has_work = || checkout.is_some_and(|checkout| Start::has_work(start, checkout));
    let request =
        Call { job: &job.dir, prepare: Some(&prepare), has_work: Some(&has_work), ..*request };
    if let (true, Some(checkout)) = (request.is_stub(), checkout) {
        cx.clear(bundle, checkout, &job.owner)?;
    }
    let watch = |checkout| cx.watch_from(checkout, &job.dir);
    let wire = checkout.map(watch).transpose()?;
    let Guarded { answer, planted } = cx.guarded(bundle, &request)?;
    let mut written = wire.map(|wire| breaches(cx.config, &wire)).unwrap_or_default();
    let outcome = match answer {
        Ok(outcome) => outcome,
        Err(error) => {
            for one in written.iter().chain(&planted) {
                cx.warn(
                    bundle,
                    WarningCode::ChangedMeanwhile,
                    format!("while the builder ran, this changed: {one}"),
                );
            }
            return Err(leaf_failed(cx, bundle, LOG, Role::Builder, error)?);
        }
    };
    if outcome.guard.is_enforced() {
        // The kernel kept the builder from opening these for writing, so another process wrote them: a person who
        // continued to work, a service that was asked to, or a change of mode, which Landlock does not cover. Report it
        // without failing the bundle.
        tell_of_primary(cx, bundle, Role::Builder.as_str(), &written);
        for one in &planted {
            let text =
                format!("another process wrote into the bundle; the file does not count: {one}");
            cx.warn(bundle, WarningCode::BundleWritten, text);
        }
        return Ok(outcome);
    }
    let inside = outcome.bundle_changed.iter().map(|path| bundle.dir().join(path).into_string());
    written.extend(inside.chain(planted));
    if written.is_empty() {
        return Ok(outcome);
    }
    let text = format!(
        "The builder's attempt is rejected. Written outside its checkout:\n- {}\n",
        written.join("\n- ")
    );
    let log = keep_log(cx, bundle, LOG, &text)?;
    Err(BeatError::Breach { role: Role::Builder.as_str(), log, written })
}

/// Publishes the result of Do. The patch comes last, because its presence moves the state.
fn publish_change(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    outcome: &LeafOutcome,
    patch: &[u8],
) -> Result<(), BeatError> {
    if let Some(earlier) = &outcome.earlier_failures {
        keep_log(cx, bundle, LOG, earlier)?;
    }
    if let Some(notes) = outcome.get(Output::Artifact(Artifact::BuildNotes)) {
        cx.publish(bundle, Artifact::BuildNotes, notes)?;
    }
    // A verdict from before this patch must not count for it.
    cx.set_aside_verdicts(bundle, snapshot)?;
    cx.publish(bundle, Artifact::Patch, patch)
}

/// Returns the patch and its head commit: the patch that the builder wrote as a file, or the changes in the
/// checkout.
fn take_patch(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: Option<&Checkout>,
    attempt: u32,
    outcome: &LeafOutcome,
) -> Result<(Vec<u8>, Option<String>), BeatError> {
    let written = outcome.get(Output::Artifact(Artifact::Patch));
    let (patch, head) = match (written, checkout) {
        (Some(written), None) => (written.to_vec(), None),
        (None, None) => (Vec::new(), None),
        (None, Some(checkout)) => {
            let left = leave_out_products(cx, bundle, checkout, attempt);
            if let Err(BeatError::Checkout(CheckoutError::Lane(error))) = left {
                return Err(refuse_left(cx, bundle, error)?);
            }
            left?;
            harvest(cx, bundle, checkout)?
        }
        (Some(written), Some(checkout)) => {
            // The patch counts; other changes in the checkout are rescued before the reset.
            let name = format!("beside-the-patch-of-{}", bundle.id());
            save(cx, bundle, checkout, &name)?;
            let reset = || checkout.lane.reset(&checkout.attempt.base);
            cx.effects.perform("reset", reset).map_err(CheckoutError::from)?;
            match cx.effects.perform("apply", || checkout.lane.apply(written)) {
                Ok(()) => harvest(cx, bundle, checkout)?,
                Err(ApplyError::Lane(source)) => return Err(CheckoutError::from(source).into()),
                Err(source) => {
                    let text = format!("The builder's patch cannot be taken: {}\n", chain(&source));
                    let log = keep_log(cx, bundle, LOG, &text)?;
                    return Err(BeatError::Patch { log, source });
                }
            }
        }
    };
    if patch.is_empty() {
        let mut text = "The builder ended well and changed nothing.\n".to_owned();
        if let Some(said) = &outcome.said {
            text = format!("{text}Its last message:\n\n{}\n\n", said.trim());
        }
        // The notes may say why nothing can be done, which is an answer.
        if let Some(notes) = outcome.get(Output::Artifact(Artifact::BuildNotes)) {
            cx.publish(bundle, Artifact::BuildNotes, notes)?;
            let name = Artifact::BuildNotes.file_name();
            let notes = String::from_utf8_lossy(notes);
            text = format!("{text}It wrote in {name}:\n\n{notes}");
        }
        let notes = cx.config.attempt_notes(bundle.id()).load().map_err(BeatError::Own)?;
        for sentence in notes.product_sentences(attempt) {
            text = format!("{text}\nBuild products: {sentence}.\n");
        }
        return Err(BeatError::NoChange { log: keep_log(cx, bundle, LOG, &text)? });
    }
    if let Some(checkout) = checkout {
        note_products_in(cx, bundle, checkout, attempt, &patch)?;
    }
    Ok((patch, head))
}

fn harvest(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
) -> Result<(Vec<u8>, Option<String>), BeatError> {
    // Before the commit, which would record a nested repository as a link to a commit that no store
    // has.
    let nested = checkout.lane.nested();
    let nested = nested.or_else(|error| Err(refuse_left(cx, bundle, error)?))?;
    if !nested.is_empty() {
        let names: Vec<&str> = nested.iter().map(|path| path.as_str()).collect();
        let text = format!(
            "The builder left repositories inside the checkout, which no patch can hold:\n- {}\n",
            names.join("\n- ")
        );
        return Err(BeatError::Nested { log: keep_log(cx, bundle, LOG, &text)?, nested });
    }
    let harvested = harvest_commits(cx, bundle, checkout, &message_for(bundle));
    let (patch, head) = match harvested {
        Err(BeatError::Checkout(CheckoutError::Lane(error))) => {
            return Err(refuse_left(cx, bundle, error)?);
        }
        harvested => harvested?,
    };
    if let Err(source) = require_readable(&patch) {
        let text = format!("The builder's change cannot be taken: {}\n", chain(&source));
        let log = keep_log(cx, bundle, LOG, &text)?;
        return Err(BeatError::Patch { log, source });
    }
    Ok((patch, Some(head)))
}

/// Returns the error of a builder that left an unusable checkout. The checkout is replaced when it is
/// claimed next.
fn refuse_left(cx: &Driver<'_>, bundle: &Bundle, error: LaneError) -> Result<BeatError, BeatError> {
    if cx.cancel.is_cancelled() {
        return Ok(BeatError::Interrupted);
    }
    if !error.is_of_the_lane() {
        return Ok(CheckoutError::from(error).into());
    }
    let text = format!("What the builder left cannot be taken: {}\n", chain(&error));
    let log = keep_log(cx, bundle, LOG, &text)?;
    Ok(BeatError::Patch { log, source: error.into() })
}

/// Refuses a change that is too large to read back, or whose links lead out of the tree. The same rules apply to
/// a patch that the builder wrote as a file.
fn require_readable(patch: &[u8]) -> Result<(), ApplyError> {
    let (size, limit) = (patch.len() as u64, Artifact::Patch.max_len());
    if size > limit {
        let what = format!("the difference to the base ({})", Artifact::Patch.file_name());
        return Err(LaneError::TooLarge { path: what, size, limit }.into());
    }
    if !patch.is_empty() {
        pdca_state::footprint(patch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_too_large_to_be_read_is_refused() {
        let limit = usize::try_from(Artifact::Patch.max_len()).unwrap();
        let refused = require_readable(&vec![b'x'; limit + 1]);
        assert!(
            matches!(refused, Err(ApplyError::Lane(LaneError::TooLarge { .. }))),
            "{refused:?}"
        );
        require_readable(b"").unwrap();
    }
}
