//! The merge queue of one branch: candidates, verdicts, bisection, landing and the journal.
//!
//! # Protocol
//! 1. *Choose* the sealed changes that are neither in the branch nor held, and the base that the landing mode
//!    names. Presence is read from git, not from a record, so that a change cannot land twice.
//! 2. *Journal and fence*: an interrupted integration is resumed under its name. Taking the fence stops its former
//!    driver, should that one still be alive, from moving a ref.
//! 3. *Fold* the batch in the object store. A conflict holds its own change, not the batch.
//! 4. *Bisect* by gating combinations. A verdict is stored before it is used, so that a crash does not cost a gate
//!    run twice; a red counts only after it was reproduced, so that a flake does not hold a change.
//! 5. *Land* a green candidate: announce the certificate, journal the intent, move the ref from exactly the gated
//!    base, publish the certificate, journal the outcome. After a crash between two of these the ref tells which
//!    of them happened.
//! 6. *Follow* a branch that moved meanwhile: the remaining changes continue at step 3 on the new base.

mod anchors;
pub(crate) mod below;
pub(crate) mod bisect;
pub(crate) mod branch_forecast;
pub(crate) mod candidate;
pub(crate) mod certificate;
pub(crate) mod combination;
pub(crate) mod context;
pub(crate) mod culprits;
pub(crate) mod dry_run;
pub(crate) mod error;
pub(crate) mod evidence;
pub(crate) mod flakes;
pub(crate) mod forecast;
pub(crate) mod gc_refs;
pub(crate) mod held;
pub(crate) mod integration;
mod integration_dir;
pub(crate) mod journal;
mod known_verdicts;
pub(crate) mod landed;
pub(crate) mod landing;
pub(crate) mod landing_base;
pub(crate) mod landing_mode;
pub(crate) mod max_age;
mod patch_scope;
pub(crate) mod plan;
mod records;
pub(crate) mod reproduce;
pub(crate) mod returns;
mod run_progress;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod staging;
pub(crate) mod stats;
pub(crate) mod target_branch;
pub(crate) mod unfinished;
pub(crate) mod verdict;
mod witnesses;
pub(crate) mod workspace;

use crate::MergeEngine;
use crate::conflict::state::skipped;

use context::{CombinationGates, QueueContext};
pub(crate) use error::IntegrateError;
pub(crate) use integration::{Integrated, IntegrationRequest};
use integration::{Integration, choose};
use landing_base::LandingBase;
use landing_mode::BaseSearch;
use target_branch::TargetBranch;

/// Integrates the sealed changes of a branch. The caller must hold the admission to the workspace.
pub fn integrate(
    cx: QueueContext<'_>,
    branch: &TargetBranch,
    request: &IntegrationRequest<'_>,
) -> Result<Integrated, IntegrateError> {
    let settings = request.settings;
    require_landable(cx.gates, branch, request)?;
    let tell = |text| cx.tell(text);
    let search = BaseSearch { branch, settings, cancel: cx.cancel, tell: &tell };
    let base = LandingBase::to_land_on(&search)?;
    let skipped = skipped(cx.workspace, branch, base.at)?;
    let chosen = choose(branch, request, &base, &skipped)?;
    let engine = MergeEngine::new(&branch.store, settings.drivers()?);
    let mut integration = Integration::begin(cx, branch, request, engine, &chosen.entries, base)?;
    integration.done.present = request.wanted(skipped);
    let ended = integration.run(chosen);
    let kept = integration.keep(&ended);
    // An error of the run explains more than an error from recording it.
    let done = ended?;
    kept?;
    Ok(done)
}

/// Fails early where nothing could land in the end: no gate is configured, or the ref may not move.
fn require_landable(
    gates: &CombinationGates,
    branch: &TargetBranch,
    request: &IntegrationRequest<'_>,
) -> Result<(), IntegrateError> {
    if gates.rows.is_empty() {
        return Err(IntegrateError::NoGate);
    }
    request.settings.land.mode().require_landable(branch)
}
