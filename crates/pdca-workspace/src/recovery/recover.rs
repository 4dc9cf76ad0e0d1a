//! Repairs interrupted runs, or shows them.

use camino::Utf8PathBuf;
use pdca_driver::integrate::{NextAction, TargetBranches};
use pdca_driver::{
    Begun, LockGuard, Run, RunStatus, WorkspaceConfig, has_work, integrations,
    run_statuses_in_lanes,
};
use pdca_integrate::end_integration;
use pdca_journal::{Clock, Liveness, RecoveryAction, RunState};
use pdca_state::BundleId;
use serde::Serialize;

use super::{RecoveryError, RecoveryProgress, report_cut, resume_run};
use crate::snapshot::{FoundRow, RunRow};
use crate::{OpenWorkspace, OperationError};

/// The active runs and integrations, with what was done about each.
#[derive(Debug)]
pub struct Recovery {
    pub dry_run: bool,
    pub runs: Vec<RunRecovery>,
}

/// One run or integration, with what was done about it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRecovery {
    #[serde(flatten)]
    pub run: RunRow,
    pub bundles: Vec<FoundRow>,
    pub action: RecoveryStep,
    /// The action was carried out.
    pub done: bool,
    /// The run is over now.
    pub over: bool,
    /// The next step of `pdca integrate`, for an integration.
    #[serde(skip)]
    pub next: Option<NextAction>,
    /// The decisions that a person must make before it can continue.
    #[serde(skip)]
    pub decide: Vec<RunDecision>,
}

/// What a recovery does about a run or an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryStep {
    /// Nothing.
    Leave,
    /// The run of a dead driver is resumed.
    TakeUp,
    /// The run is taken from its live driver, which is killed.
    TakeOver,
    /// Nothing is left to do in the integration, so it is ended.
    End,
    /// The next `pdca integrate` continues the integration.
    Integrate,
}

/// A decision that a person must make before a run or an integration can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunDecision {
    /// The journal in this directory cannot be read.
    Unreadable { dir: Utf8PathBuf },
    /// It is unknown whether this driver is alive.
    DriverUnknown { driver: String },
    /// The run or the integration is blocked.
    Blocked { evidence: String },
    /// A bundle is blocked.
    BundleBlocked { id: BundleId, evidence: String },
    /// It is unknown whether a process works in the lane of a bundle.
    LaneUnknown { id: BundleId },
    /// The accepted changes of an integration cannot be read.
    ChangesUnreadable { error: String },
}

/// Recovers the runs of dead drivers, with `take_over` also that of a live one, which is killed. Ends integrations with
/// nothing left to do.
pub fn recover_runs(
    open: &OpenWorkspace<'_>,
    take_over: bool,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Recovery, OperationError> {
    let config = open.driver_config()?;
    let clock = open.machine.moment;
    let mut runs = Vec::new();
    for status in run_statuses_in_lanes(&config)? {
        let mut recovery = RunRecovery::of_run(&status, &config, take_over);
        if !open.dry_run && recovery.action != RecoveryStep::Leave {
            recovery.recover(&status, &config, clock, progress)?;
        }
        runs.push(recovery);
    }
    runs.extend(recover_integrations(&config, open.dry_run, clock)?);
    Ok(Recovery { dry_run: open.dry_run, runs })
}

impl RunRecovery {
    /// Predicts what is done about a run.
    fn of_run(status: &RunStatus, config: &WorkspaceConfig, take_over: bool) -> Self {
        let mut bundles: Vec<FoundRow> = status.bundles.iter().map(FoundRow::of).collect();
        let (action, decide) = match (&status.state, status.driver) {
            (Err(_), _) => {
                let dir = config.dirs.runs().dir(&status.id);
                (RecoveryStep::Leave, vec![RunDecision::Unreadable { dir }])
            }
            // Not even `take_over` touches it: a process number of another host, boot or namespace
            // may belong to another process here.
            (Ok(state), Liveness::Unknown) => {
                let driver = state.driver.to_string();
                (RecoveryStep::Leave, vec![RunDecision::DriverUnknown { driver }])
            }
            (Ok(_), Liveness::Alive) if take_over => (RecoveryStep::TakeOver, Vec::new()),
            (Ok(_), Liveness::Alive) => (RecoveryStep::Leave, Vec::new()),
            (Ok(state), Liveness::Dead) => (RecoveryStep::TakeUp, decisions(state, status)),
        };
        if status.driver == Liveness::Alive && action == RecoveryStep::Leave {
            // A live driver is about to do whatever a bundle lacks, so there is nothing to recover.
            bundles.iter_mut().for_each(FoundRow::leave);
        }
        let run = RunRow::of(status, config);
        Self { run, bundles, action, done: false, over: false, next: None, decide }
    }

    /// Resumes the run or takes it over, and ends it if nothing is left to do.
    fn recover(
        &mut self,
        status: &RunStatus,
        config: &WorkspaceConfig,
        clock: Clock,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<(), OperationError> {
        let (begun, _admitted) = if self.action == RecoveryStep::TakeOver {
            take_over_run(status, config, clock)?
        } else {
            resume_run(&status.id, config, clock)?
        };
        report_cut(&begun, progress);
        let Begun { run, recovered, .. } = begun;
        self.bundles = recovered.iter().map(FoundRow::of).collect();
        self.over = !has_work(config, &run.state()) && run.finish().map_err(RecoveryError::run)?;
        let state = run.state();
        self.decide = if self.over { Vec::new() } else { decisions(&state, status) };
        self.run.phase = state.phase.to_string();
        self.done = true;
        Ok(())
    }

    /// Predicts what is done about an integration.
    fn of_integration(status: &RunStatus, config: &WorkspaceConfig, next: NextAction) -> Self {
        let run = RunRow::of_integration(status, config);
        let mut decide = Vec::new();
        let action = match &next {
            NextAction::Wait => {
                if let (Ok(state), Liveness::Unknown) = (&status.state, status.driver) {
                    let driver = state.driver.to_string();
                    decide.push(RunDecision::DriverUnknown { driver });
                }
                RecoveryStep::Leave
            }
            NextAction::Look => {
                let dir = config.dirs.integrations().dir(&status.id);
                decide.push(RunDecision::Unreadable { dir });
                RecoveryStep::Leave
            }
            NextAction::End => RecoveryStep::End,
            NextAction::GoOn { .. } => {
                if let Some(block) = &run.block {
                    decide.push(RunDecision::Blocked { evidence: block.evidence.clone() });
                }
                RecoveryStep::Integrate
            }
        };
        let (bundles, next) = (Vec::new(), Some(next));
        Self { run, bundles, action, done: false, over: false, next, decide }
    }
}

/// Takes a run from its driver, which is killed.
fn take_over_run(
    status: &RunStatus,
    config: &WorkspaceConfig,
    clock: Clock,
) -> Result<(Begun, LockGuard), OperationError> {
    let begun = Run::take_over(config, &status.id, clock).map_err(RecoveryError::TakeOver)?;
    // The lock of the workspace comes last: the old driver has it until `take_over` has ended it
    // (decision 014).
    Ok((begun, config.locks().admit()?))
}

/// Returns the decisions that a person must make before a run can continue.
fn decisions(state: &RunState, status: &RunStatus) -> Vec<RunDecision> {
    let mut decisions = Vec::new();
    if let Some(block) = &state.block {
        decisions.push(RunDecision::Blocked { evidence: block.evidence.clone() });
    }
    for (id, work) in &state.bundles {
        if let Some(evidence) = work.status.recovery_block() {
            let (id, evidence) = (id.clone(), evidence.to_owned());
            decisions.push(RunDecision::BundleBlocked { id, evidence });
        }
    }
    for found in status.bundles.iter().filter(|found| found.action == RecoveryAction::AlertNoop) {
        decisions.push(RunDecision::LaneUnknown { id: found.id.clone() });
    }
    decisions
}

/// Returns every active integration, and ends those with nothing left to do.
fn recover_integrations(
    config: &WorkspaceConfig,
    dry_run: bool,
    clock: Clock,
) -> Result<Vec<RunRecovery>, OperationError> {
    let found = integrations(config)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let branches = TargetBranches::load(&config.queue());
    let mut recovered = Vec::new();
    for status in &found {
        let branches = match &branches {
            Ok(branches) => branches,
            // Part of each result, so that it hides neither them nor the runs before them.
            Err(error) => {
                let error = pdca_state::chain(error);
                let decide = vec![RunDecision::ChangesUnreadable { error }];
                let wait = RunRecovery::of_integration(status, config, NextAction::Wait);
                recovered.push(RunRecovery { decide, ..wait });
                continue;
            }
        };
        let next = NextAction::of(status.state.as_deref().ok(), status.driver, branches);
        let is_at_end = next == NextAction::End;
        let mut recovery = RunRecovery::of_integration(status, config, next);
        if is_at_end && !dry_run {
            // An integration has locks of its own, beside those of a run.
            let integrating = config.clone().for_integration();
            let _admitted = integrating.locks().admit()?;
            end_integration(&config.queue(), &status.id, branches, clock)
                .map_err(RecoveryError::EndIntegration)?;
            (recovery.done, recovery.over) = (true, true);
        }
        recovered.push(recovery);
    }
    Ok(recovered)
}
