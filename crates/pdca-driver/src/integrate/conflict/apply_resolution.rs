//! Replaces an accepted attempt that no longer merges by its resolution.
//!
//! The accepted attempt is archived like one that a person sent back. Then the bundle is at the beginning of Do,
//! which finds the resolution under the number of that archive and takes it in place of calling the
//! builder. So every driver that continues the bundle comes to the same files. A later attempt
//! has another number, and is built like any other.

use pdca_integrate::{
    ConflictDir, ConflictEnd, TargetBranch, find_sealed, is_as_it_was, is_put_away, keep_conflict,
    resolution_for,
};
use pdca_journal::events::{EventKind, WarningCode};
use pdca_state::{Artifact, Bundle, BundleId, Snapshot, archive_superseded, sha256_hex};

use crate::attempt::Attempt;
use crate::checkout::CheckoutError;
use crate::run_bundle::{BeatError, Driver};

use super::resolve::{ConflictResolveError, unusable};

/// Archives an accepted attempt whose conflict is resolved. Returns whether it did; a bundle that was continued
/// meanwhile is left alone. The caller must be admitted to the workspace.
pub fn adopt(
    cx: &Driver<'_>,
    front: &TargetBranch,
    id: &BundleId,
) -> Result<bool, ConflictResolveError> {
    let Ok((change, sealed)) = find_sealed(front, id)? else { return Ok(false) };
    let bundle = &change.bundle;
    let _taken = cx.config.locks().take(id)?;
    // Looked at again under the lock: since `front` was read a person may have sent it back.
    if !is_as_it_was(change, sealed)? || is_put_away(&cx.config.queue(), bundle) {
        return Ok(false);
    }
    let file = ConflictDir::of(&cx.config.queue(), id, &sealed.record().head.to_string());
    let case = file.load().map_err(|source| unusable(&file, source))?;
    let Some(mut case) = case else { return Ok(false) };
    let Some(said) = case.resolution() else { return Ok(false) };
    let plan = archive_superseded(bundle, &said).map_err(BeatError::from)?;
    if let Some(ConflictEnd::Resolved { iteration, .. }) = &mut case.end {
        *iteration = Some(plan.number);
    }
    // Recorded before the archive begins, because from then on any driver may continue the bundle.
    keep_conflict(cx.effects, &file, &case, "conflict-adopt")?;
    for step in plan.steps {
        cx.effects.perform(step.name(), || step.apply()).map_err(BeatError::from)?;
    }
    Ok(true)
}

/// Publishes a resolution as the result of Do, if there is one for this attempt. Returns whether
/// there was.
pub(crate) fn take_resolution(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<bool, BeatError> {
    let found = resolution_for(&cx.config.queue(), bundle.id(), snapshot.iterations);
    let Some((file, case)) = found.map_err(BeatError::Own)? else { return Ok(false) };
    let brief = snapshot.authored_brief();
    let target = brief.map(|brief| cx.config.target_of(brief)).transpose()?.flatten();
    let read = |artifact: Artifact| file.read(artifact.file_name()).map_err(BeatError::Own);
    let patch = read(Artifact::Patch)?.filter(|patch| !patch.is_empty());
    let (Some(patch), Some(base)) = (patch, case.resolved_on()) else { return Ok(false) };
    if target.is_none_or(|target| target.name != case.target) {
        let text = "the brief names another target now: the resolution is not used".to_owned();
        cx.warn(bundle, WarningCode::ResolutionNotUsed, text);
        return Ok(false);
    }
    let attempt = Attempt {
        iterations: snapshot.iterations,
        brief: sha256_hex(&bundle.read(Artifact::Brief)?.unwrap_or_default()),
        target: case.target.clone(),
        branch: case.branch.clone(),
        base: base.to_owned(),
        // A resolver works on the tip of the branch, so the attempt stands on nothing else.
        tip: Some(base.to_owned()),
        stands_on: Vec::new(),
        made: None,
        changes: Vec::new(),
        asked: None,
        refolded: None,
        acceptance: None,
    };
    let store = || cx.config.attempts().store(bundle.id(), &attempt);
    cx.effects.perform("attempt", store).map_err(CheckoutError::Record)?;
    let text = format!("{}: takes the resolution", case.said);
    cx.tell(bundle, EventKind::integration(text));
    if let Some(notes) = read(Artifact::BuildNotes)? {
        cx.publish(bundle, Artifact::BuildNotes, &notes)?;
    }
    cx.set_aside_verdicts(bundle, snapshot)?;
    cx.publish(bundle, Artifact::Patch, &patch)?;
    Ok(true)
}
