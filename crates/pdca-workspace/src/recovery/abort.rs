//! Aborts a run, and rescues its unfinished work.

use std::time::Duration;

use pdca_driver::{Salvage, WorkspaceConfig, run_statuses, unfinished_work};
use pdca_journal::{InboxRequest, RunPhase};
use pdca_state::BundleId;
use pdca_state::text::shell;
use serde::Serialize;

use super::{
    CarriedOutBy, KnownRun, RecoveryError, RecoveryProgress, UnfinishedIntegration, ask_driver,
    may_be_alive, report_cut, resume_run, unfinished_integrations, wait_for_driver,
};
use crate::{OpenWorkspace, OperationError};

/// A request to abort the active run.
#[derive(Debug, Clone, Copy)]
pub struct AbortRequest<'a> {
    /// The reason, for the record.
    pub why: &'a str,
    /// The longest wait for a running driver.
    pub patience: Duration,
}

/// The result of aborting.
#[derive(Debug)]
pub enum Abort {
    /// No run is active; these integrations are not over.
    NoRun {
        integrations: Vec<UnfinishedIntegration>,
    },
    Aborted(AbortedRun),
}

/// A run that was aborted, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbortedRun {
    pub dry_run: bool,
    pub run: String,
    pub by: CarriedOutBy,
    /// The phase of the run afterwards.
    pub phase: RunPhase,
    pub kept: Vec<RescuedAttempt>,
}

/// The unfinished work of a bundle that is kept in its lane.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RescuedAttempt {
    pub bundle: BundleId,
    pub lane: u32,
    /// The commit; `None` with `--dry-run`, and if a running driver rescues it.
    pub commit: Option<String>,
    /// The command that fetches it.
    pub fetch: Option<String>,
}

/// Aborts the active run. A live driver is asked, and waited for.
pub fn abort_run(
    open: &OpenWorkspace<'_>,
    request: AbortRequest<'_>,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Abort, OperationError> {
    let AbortRequest { why, patience } = request;
    let config = open.driver_config()?;
    let clock = open.machine.moment;
    let Some(status) = run_statuses(&config)?.into_iter().next() else {
        return Ok(Abort::NoRun { integrations: unfinished_integrations(&config)? });
    };
    let KnownRun { id, state, is_driven } = KnownRun::require(status, &config)?;
    let bundles: Vec<BundleId> = state.bundles.keys().cloned().collect();
    let rescued = |work: &[Salvage]| work.iter().map(|one| rescued(one, &config)).collect();
    let aborted = |by, dry_run| {
        let kept = rescued(&unfinished_work(&config, &bundles));
        Abort::Aborted(AbortedRun {
            dry_run,
            run: id.to_string(),
            by,
            phase: RunPhase::Aborted,
            kept,
        })
    };
    if open.dry_run {
        let by = if is_driven { CarriedOutBy::Driver } else { CarriedOutBy::Here };
        return Ok(aborted(by, true));
    }
    if is_driven {
        let request = InboxRequest::Abort { why: why.to_owned() };
        let asked = ask_driver(&config, &id, &request, clock)?;
        progress(RecoveryProgress::DriverAsked);
        let phase = wait_for_driver(&config, &id, patience, |state| {
            // An answer alone is not the end: the driver still stops its lanes, and their work is
            // rescued only then.
            !state.is_active() || state.answered.contains(asked.as_str()) && !may_be_alive(state)
        });
        match phase {
            Some(RunPhase::Aborted) => return Ok(aborted(CarriedOutBy::Driver, false)),
            Some(RunPhase::Completed | RunPhase::Failed) => {
                return Err(RecoveryError::EndedBefore.into());
            }
            // It stopped without ending the run, so the run is ended here.
            Some(
                RunPhase::Preparing
                | RunPhase::Running
                | RunPhase::Integrating
                | RunPhase::BlockedConflict
                | RunPhase::BlockedValidation
                | RunPhase::BlockedRecovery
                | RunPhase::Draining,
            ) => {}
            None => return Err(RecoveryError::NotEndedYet(patience).into()),
        }
    }
    let (begun, _admitted) = resume_run(&id, &config, clock)?;
    report_cut(&begun, progress);
    let kept = begun.run.abort(&config, why).map_err(RecoveryError::run)?;
    Ok(Abort::Aborted(AbortedRun {
        dry_run: false,
        run: id.to_string(),
        by: CarriedOutBy::Here,
        phase: begun.run.state().phase,
        kept: rescued(&kept),
    }))
}

fn rescued(work: &Salvage, config: &WorkspaceConfig) -> RescuedAttempt {
    let target = config.targets.iter().find(|target| target.name == work.target);
    let primary = shell(target.map_or("", |target| target.path.as_str()));
    let checkout = shell(work.checkout.as_str());
    let commit = Some(work.commit.clone()).filter(|commit| !commit.is_empty());
    let what = commit.as_deref().unwrap_or("'refs/pdca/rescue/*:refs/rescued/*'");
    let fetch = Some(format!("git -C {primary} fetch {checkout} {what}"));
    RescuedAttempt { bundle: work.bundle.clone(), lane: work.slot, commit, fetch }
}
