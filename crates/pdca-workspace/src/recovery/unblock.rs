//! Lifts blocks.

use std::time::Duration;

use pdca_driver::{Effects, WorkspaceConfig, run_statuses};
use pdca_integrate::{blocked_conflicts, unblock_conflicts};
use pdca_journal::{Clock, InboxRequest, Reason, RunId, RunState, WorkstreamStatus};
use pdca_state::BundleId;
use serde::Serialize;

use super::{
    CarriedOutBy, KnownRun, RecoveryError, RecoveryProgress, UnfinishedIntegration, ask_driver,
    report_cut, resume_run, unfinished_integrations, wait_for_driver,
};
use crate::{OpenWorkspace, OperationError};

/// The longest wait for a running driver.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request to lift blocks.
#[derive(Debug, Clone, Default)]
pub struct UnblockRequest<'a> {
    /// The bundle; without one, the run and everything in it that is blocked.
    pub bundle: Option<BundleId>,
    /// A note about the repair, for the record.
    pub note: Option<&'a str>,
}

/// The result of lifting blocks.
#[derive(Debug)]
pub enum Unblock {
    /// No run is active; these integrations are not over.
    NoRun {
        integrations: Vec<UnfinishedIntegration>,
    },
    Unblocked(UnblockedRun),
}

/// The blocks that were lifted, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnblockedRun {
    pub dry_run: bool,
    /// The run; `None` for the conflict of an accepted change.
    pub run: Option<String>,
    pub by: CarriedOutBy,
    /// The unblocked bundles; the run itself is `null`.
    pub unblocked: Vec<Option<BundleId>>,
}

/// Lifts the block of a bundle, or of the run and everything in it that is blocked.
pub fn unblock_run(
    open: &OpenWorkspace<'_>,
    request: UnblockRequest<'_>,
    effects: &dyn Effects,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Unblock, OperationError> {
    let UnblockRequest { bundle, note } = request;
    let config = open.driver_config()?;
    // Conflicts first: they belong to accepted changes, which may be in no active run.
    if let Some(id) = &bundle
        && unblock_conflict(id, note, open.dry_run, &config, effects)?
    {
        return Ok(Unblock::Unblocked(UnblockedRun {
            dry_run: open.dry_run,
            run: None,
            by: CarriedOutBy::Here,
            unblocked: vec![Some(id.clone())],
        }));
    }
    let Some(status) = run_statuses(&config)?.into_iter().next() else {
        return Ok(Unblock::NoRun { integrations: unfinished_integrations(&config)? });
    };
    let KnownRun { id, state, is_driven } = KnownRun::require(status, &config)?;
    let unblocked = require_blocked(&state, bundle)?;
    let clock = open.machine.moment;
    if open.dry_run {
    } else if is_driven {
        ask_driver_for_each(&config, &id, &unblocked, note, clock)?;
    } else {
        let (begun, _admitted) = resume_run(&id, &config, clock)?;
        report_cut(&begun, progress);
        for bundle in &unblocked {
            let name = RunId::generate(clock().wall)?;
            let done = begun.run.unblock(&name, bundle.as_ref(), note.map(str::to_owned));
            done.map_err(RecoveryError::run)?;
            // A bundle whose checkout was lost starts in a new one.
            if let Some(id) = bundle {
                pdca_driver::forget_lost_checkout(&config, id)?;
            }
        }
    }
    let by = if is_driven { CarriedOutBy::Driver } else { CarriedOutBy::Here };
    let run = Some(id.to_string());
    Ok(Unblock::Unblocked(UnblockedRun { dry_run: open.dry_run, run, by, unblocked }))
}

/// Lifts the block of an accepted change whose resolver attempts are used up. Returns whether there is one.
fn unblock_conflict(
    id: &BundleId,
    note: Option<&str>,
    dry_run: bool,
    config: &WorkspaceConfig,
    effects: &dyn Effects,
) -> Result<bool, OperationError> {
    if blocked_conflicts(&config.queue(), id).is_empty() {
        return Ok(false);
    }
    if !dry_run {
        let _taken = config.locks().take_within(id, PATIENCE)?;
        unblock_conflicts(&config.queue(), id, note, effects)?;
    }
    Ok(true)
}

/// Returns the blocks to lift: bundles, or the run itself as `None`.
fn require_blocked(
    state: &RunState,
    bundle: Option<BundleId>,
) -> Result<Vec<Option<BundleId>>, RecoveryError> {
    let is_blocked = |status: &WorkstreamStatus| {
        // A sign-off is a block that only a decision of a person lifts.
        status.block().is_some_and(|(reason, _)| reason != Reason::SignOff)
    };
    if let Some(id) = bundle {
        return match state.bundles.get(&id) {
            Some(work) if is_blocked(&work.status) => Ok(vec![Some(id)]),
            Some(work) => Err(RecoveryError::NotBlocked { id, phase: work.status.phase() }),
            None => Err(RecoveryError::NotInRun(id)),
        };
    }
    if state.phase.is_blocked() {
        return Ok(vec![None]);
    }
    let blocked = state.bundles.iter().filter(|(_, work)| is_blocked(&work.status));
    let blocked: Vec<_> = blocked.map(|(id, _)| Some(id.clone())).collect();
    if blocked.is_empty() { Err(RecoveryError::NothingBlocked) } else { Ok(blocked) }
}

/// Asks the running driver to lift each block, and waits until it has taken the request.
fn ask_driver_for_each(
    config: &WorkspaceConfig,
    run: &RunId,
    blocked: &[Option<BundleId>],
    note: Option<&str>,
    clock: Clock,
) -> Result<(), OperationError> {
    for bundle in blocked {
        let note = note.map(str::to_owned);
        let request = InboxRequest::Unblock { bundle: bundle.clone(), note };
        let name = ask_driver(config, run, &request, clock)?;
        let taken = |state: &RunState| state.answered.contains(name.as_str());
        if wait_for_driver(config, run, PATIENCE, taken).is_none() {
            return Err(RecoveryError::NotAnsweredYet.into());
        }
    }
    Ok(())
}
