//! The merge queue of a branch: candidates, verdicts, bisection, landing, and the journal of it.
//!
//! # Protocol
//! 1. *Choose*: sealed changes that are neither in the branch nor held, on the base that the landing mode
//!    names. Contents are read from git, so a change never lands twice.
//! 2. *Journal and fence*: an integration that was cut short is taken up under its name; the fence keeps
//!    its former driver from moving a ref.
//! 3. *Fold* the batch in the object store. A conflict holds its change, not the batch.
//! 4. *Bisect* with gates over combinations. A verdict is stored before anything relies on it, so a gate
//!    run is not paid for twice; a red counts only when it is red again.
//! 5. *Land* a green candidate: certificate announced, intent journalled, ref moved from exactly the gated
//!    base, certificate published, outcome journalled. A crash between two of them is told by the ref.
//! 6. A branch that moved meanwhile is followed, and the rest goes on from 3.

pub(crate) mod below;
pub(crate) mod bisect;
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
pub(crate) mod held;
pub(crate) mod integration;
pub(crate) mod journal;
pub(crate) mod landing;
pub(crate) mod landing_base;
pub(crate) mod landing_mode;
pub(crate) mod max_age;
pub(crate) mod plan;
mod records;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod stats;
pub(crate) mod target_branch;
pub(crate) mod unfinished;
pub(crate) mod verdict;
pub(crate) mod workspace;

use crate::Engine;
use crate::conflict::state::skipped;

use context::{CombinationGates, QueueContext};
pub(crate) use error::IntegrateError;
pub(crate) use integration::{Integrated, IntegrationRequest};
use integration::{Integration, choose};
use landing_base::LandingBase;
use landing_mode::BaseSearch;
use target_branch::TargetBranch;

/// Integrates what is sealed for a branch. The caller is admitted to the workspace.
pub fn integrate(
    cx: QueueContext<'_>,
    branch: &TargetBranch,
    request: &IntegrationRequest<'_>,
) -> Result<Integrated, IntegrateError> {
    let settings = request.settings;
    require_landable(cx.gates, branch, request)?;
    let tell = |text| (cx.notify)(context::Notice::Progress { text, step: None });
    let search = BaseSearch { branch, settings, cancel: cx.cancel, tell: &tell };
    let base = LandingBase::to_land_on(&search)?;
    let skipped = skipped(cx.workspace, branch, base.at)?;
    let chosen = choose(branch, request, &base, &skipped)?;
    let engine = Engine::new(&branch.store, settings.drivers()?);
    let mut integration = Integration::begin(cx, branch, request, engine, &chosen.entries, base)?;
    integration.done.present = request.wanted(skipped);
    let ended = integration.run(chosen);
    let kept = integration.keep(&ended);
    // The first failure is the one that a person must know.
    let done = ended?;
    kept?;
    Ok(done)
}

/// Refuses what can be known before any gate is paid for: no gate decides, or nothing may move.
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
