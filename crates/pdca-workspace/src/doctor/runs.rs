//! Checks the active runs.

use camino::Utf8PathBuf;
use jiff::Timestamp;
use pdca_driver::{RunStatus, WorkspaceConfig, has_work, integrations, run_statuses};
use pdca_journal::{Liveness, Reason, RunId, RunPhase, Runs};
use pdca_state::BundleId;

use super::{Fact, Finding, Health};
use crate::snapshot::RunRowKind;

/// An active run or integration.
#[derive(Debug)]
pub struct RunFinding {
    pub id: RunId,
    pub kind: RunRowKind,
    pub state: RunFindingState,
}

/// The state of an active run or integration.
#[derive(Debug)]
pub enum RunFindingState {
    /// Its journal cannot be read.
    Unreadable { dir: Utf8PathBuf, error: String },
    /// It waits for a person.
    Blocked { phase: RunPhase, since: Timestamp, evidence: String },
    /// One of its bundles waits for a person, because the facts contradict the record.
    BundleBlocked { id: BundleId, since: Timestamp, evidence: String },
    /// Its driver is alive.
    Driven { phase: RunPhase, since: Timestamp, driver: String },
    /// It is unknown whether its driver is alive.
    DriverUnknown { phase: RunPhase, since: Timestamp, driver: String },
    /// Its driver is dead.
    DriverDead { phase: RunPhase, since: Timestamp, driver: String },
    /// Its driver is dead, and nothing is left to do.
    Finished { driver: String },
}

/// Returns a finding for each active run and integration, or one that says that there is no run.
pub(super) fn findings(config: &WorkspaceConfig) -> Vec<Finding> {
    let mut findings = match run_statuses(config) {
        Err(error) => {
            vec![Finding::broken(Fact::RunsUnlisted { error: error.to_string() })]
        }
        Ok(runs) if runs.is_empty() => vec![Finding::ok(Fact::NoRuns)],
        Ok(runs) => {
            runs.into_iter().map(|status| finding(status, RunRowKind::Batch, config)).collect()
        }
    };
    let integrations = integrations(config).unwrap_or_default().into_iter();
    findings.extend(integrations.map(|status| finding(status, RunRowKind::Integration, config)));
    findings
}

fn finding(status: RunStatus, kind: RunRowKind, config: &WorkspaceConfig) -> Finding {
    let runs = match kind {
        RunRowKind::Batch => config.dirs.runs(),
        RunRowKind::Integration => config.dirs.integrations(),
    };
    let state = state(&status, kind, &runs, config);
    let health = match &state {
        RunFindingState::Unreadable { .. } => Health::Broken,
        RunFindingState::Driven { .. } => Health::Ok,
        RunFindingState::Blocked { .. }
        | RunFindingState::BundleBlocked { .. }
        | RunFindingState::DriverUnknown { .. }
        | RunFindingState::DriverDead { .. }
        | RunFindingState::Finished { .. } => Health::Warning,
    };
    Finding { health, fact: Fact::Run(RunFinding { id: status.id, kind, state }) }
}

fn state(
    status: &RunStatus,
    kind: RunRowKind,
    runs: &Runs,
    config: &WorkspaceConfig,
) -> RunFindingState {
    let state = match &status.state {
        Ok(state) => state,
        Err(error) => {
            let (dir, error) = (runs.dir(&status.id), pdca_state::chain(error));
            return RunFindingState::Unreadable { dir, error };
        }
    };
    let (phase, since) = (state.phase, state.since.at.wall);
    if let Some(block) = &state.block {
        return RunFindingState::Blocked { phase, since, evidence: block.evidence.clone() };
    }
    let is_batch = kind == RunRowKind::Batch;
    let blocked = state.bundles.iter().find_map(|(id, work)| {
        let (_, evidence) =
            work.status.block().filter(|(reason, _)| *reason == Reason::Recovery)?;
        let (id, since) = (id.clone(), work.since.at.wall);
        Some(RunFindingState::BundleBlocked { id, since, evidence: evidence.to_owned() })
    });
    if let Some(blocked) = blocked.filter(|_| is_batch) {
        return blocked;
    }
    let driver = state.driver.to_string();
    match status.driver {
        Liveness::Alive => RunFindingState::Driven { phase, since, driver },
        Liveness::Unknown => RunFindingState::DriverUnknown { phase, since, driver },
        Liveness::Dead if is_batch && !has_work(config, state) => {
            RunFindingState::Finished { driver }
        }
        Liveness::Dead => RunFindingState::DriverDead { phase, since, driver },
    }
}
