//! Replaces an accepted attempt that no longer merges by its resolution.
//!
//! The accepted attempt is archived like one that a person sent back. Then the bundle is at the beginning of Do,
//! which finds the resolution under the number of that archive and takes it in place of calling the
//! builder. So every driver that continues the bundle comes to the same files. A later attempt
//! has another number, and is built like any other.

use std::collections::BTreeSet;

use pdca_integrate::{
    ConflictDir, ConflictEnd, ConflictOutcome, ConflictRecord, ConflictReport, TargetBranch,
    find_sealed, is_as_it_was, is_put_away,
};
use pdca_journal::events::WarningCode;
use pdca_state::{Artifact, Bundle, BundleId, Snapshot, State, archive_superseded, sha256_hex};

use crate::attempt::Attempt;
use crate::checkout::CheckoutError;
use crate::config::WorkspaceConfig;
use crate::integrate::conflict::resolve::keep_conflict;
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::EventKind;

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
    let Some(said) = summary_of(&case) else { return Ok(false) };
    let plan = archive_superseded(bundle, &said).map_err(BeatError::from)?;
    if let Some(ConflictEnd::Resolved { iteration, .. }) = &mut case.end {
        *iteration = Some(plan.number);
    }
    // Recorded before the archive begins, because from then on any driver may continue the bundle.
    keep_conflict(cx, &file, &case, "conflict-adopt")?;
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
    let found = resolution(cx.config, bundle.id(), snapshot.iterations);
    let Some((file, case)) = found.map_err(BeatError::Own)? else { return Ok(false) };
    let brief = snapshot.authored_brief();
    let target = brief.map(|brief| cx.config.target_of(brief)).transpose()?.flatten();
    let read = |artifact: Artifact| file.read(artifact.file_name()).map_err(BeatError::Own);
    let patch = read(Artifact::Patch)?.filter(|patch| !patch.is_empty());
    let (Some(patch), Some(base)) = (patch, base_of(&case)) else { return Ok(false) };
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

/// Finds the resolution that is the attempt after this many archived ones.
fn resolution(
    config: &WorkspaceConfig,
    id: &BundleId,
    iterations: u32,
) -> std::io::Result<Option<(ConflictDir, ConflictRecord)>> {
    let is_it = |case: &ConflictRecord| match &case.end {
        Some(ConflictEnd::Resolved { iteration, .. }) => *iteration == Some(iterations),
        Some(ConflictEnd::Skipped { .. } | ConflictEnd::Blocked { .. }) | None => false,
    };
    Ok(ConflictDir::all(&config.queue(), id)?.into_iter().find(|(_, case)| is_it(case)))
}

/// Describes the conflict that the attempt after this many archived ones resolved, for the person who signs off.
pub(crate) fn resolved(
    config: &WorkspaceConfig,
    id: &BundleId,
    iterations: u32,
) -> std::io::Result<Option<String>> {
    let found = resolution(config, id, iterations)?;
    Ok(found.and_then(|(_, case)| summary_of(&case)))
}

/// Returns the bundles, of those named or of all, whose resolution is adopted and not at its sign-off yet. One
/// that is named may be there already.
pub fn resolving(
    config: &WorkspaceConfig,
    named: &BTreeSet<BundleId>,
) -> Result<Vec<ConflictReport>, ConflictResolveError> {
    let mut found = Vec::new();
    let conflicts = config.dirs.private().join("conflicts");
    for bundle in config.dirs.bundles.list()? {
        let id = bundle.id();
        let has_case = conflicts.join(id.dir_name()).is_dir();
        if !has_case || !(named.is_empty() || named.contains(id)) {
            continue;
        }
        let snapshot = bundle.load()?;
        let is_under_way = match snapshot.state {
            State::Iterate(_) | State::Planned | State::Built | State::Checked => true,
            State::AwaitingSignoff => !named.is_empty(),
            State::Unplanned | State::Resolved | State::Complete | State::Discontinued => false,
        };
        let failed = |source| ConflictResolveError::ConflictRecord {
            dir: conflicts.join(id.dir_name()),
            source,
        };
        let case = resolution(config, id, snapshot.iterations).map_err(failed)?;
        if let (true, Some((_, case))) = (is_under_way, case)
            && let Some(ConflictEnd::Resolved { by, .. }) = case.end
        {
            let (said, attempts) = (Some(case.said), case.attempts);
            found.push(ConflictReport {
                id: id.clone(),
                said,
                attempts,
                came: ConflictOutcome::Resolved { by },
            });
        }
    }
    Ok(found)
}

fn base_of(case: &ConflictRecord) -> Option<&str> {
    match &case.end {
        Some(ConflictEnd::Resolved { base, .. }) => Some(base),
        Some(ConflictEnd::Skipped { .. } | ConflictEnd::Blocked { .. }) | None => None,
    }
}

/// Describes a conflict and its resolution.
fn summary_of(case: &ConflictRecord) -> Option<String> {
    let Some(ConflictEnd::Resolved { attempt, base, by, .. }) = &case.end else { return None };
    let (said, branch) = (&case.said, &case.branch);
    Some(format!("{said}; resolved on {branch} at {base:.12} by {by}, attempt {attempt}"))
}
