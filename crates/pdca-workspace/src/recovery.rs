//! Active and interrupted runs: recovered, aborted, and unblocked.
//!
//! # Invariants
//! - A run is changed only while its driver is dead, or after it was taken from that driver. A live driver is asked.
//! - Nothing is changed if the journal cannot be read, or if it is unknown whether the driver is alive.

mod abort;
mod error;
mod recover;
mod unblock;

use std::io;
use std::time::{Duration, Instant};

use pdca_driver::{Begun, LockGuard, Run, RunStatus, WorkspaceConfig};
use pdca_journal::{
    Clock, HostScope, Inbox, InboxRequest, Liveness, RunId, RunPhase, RunState, Torn,
};
use serde::Serialize;

pub use abort::{Abort, AbortRequest, AbortedRun, RescuedAttempt, abort_run};
pub use error::RecoveryError;
pub use recover::{Recovery, RecoveryStep, RunDecision, RunRecovery, recover_runs};
pub use unblock::{Unblock, UnblockRequest, UnblockedRun, unblock_run};

use crate::OperationError;

/// The interval at which the journal is read while waiting for a driver.
const PERIOD: Duration = Duration::from_millis(20);

/// What a caller can show while an operation on a run works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryProgress {
    /// The unfinished end of the run's journal was cut off.
    JournalCut(Torn),
    /// The running driver was asked to abort the run, and is waited for.
    DriverAsked,
}

/// The process that carries out an operation on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CarriedOutBy {
    /// This process.
    Here,
    /// The running driver, which was asked.
    Driver,
}

/// An integration that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedIntegration {
    pub id: RunId,
    /// The evidence of its block, if it waits for a person.
    pub blocked: Option<String>,
}

/// Returns the integrations that are not over.
fn unfinished_integrations(config: &WorkspaceConfig) -> io::Result<Vec<UnfinishedIntegration>> {
    let unfinished = pdca_driver::integrations(config)?.into_iter().map(|status| {
        let block = status.state.ok().and_then(|state| state.block);
        UnfinishedIntegration { id: status.id, blocked: block.map(|block| block.evidence) }
    });
    Ok(unfinished.collect())
}

/// Resumes a run whose driver is dead, and locks other drivers out of the workspace.
pub(crate) fn resume_run(
    run: &RunId,
    config: &WorkspaceConfig,
    clock: Clock,
) -> Result<(Begun, LockGuard), OperationError> {
    // Before any lock is taken: supervisors of the dead driver may still be killing their trees in
    // the lanes.
    config.locks().wait_for_children()?;
    let admitted = config.locks().admit()?;
    let begun = Run::resume(config, run, clock).map_err(RecoveryError::Begin)?;
    Ok((begun, admitted))
}

/// Reports the unfinished end of a journal that was cut off.
fn report_cut(begun: &Begun, progress: &mut dyn FnMut(RecoveryProgress)) {
    if let Some(torn) = &begun.torn {
        progress(RecoveryProgress::JournalCut(torn.clone()));
    }
}

/// A run about which enough is known to change it.
struct KnownRun {
    id: RunId,
    state: Box<RunState>,
    /// Its driver is alive; otherwise it is dead.
    is_driven: bool,
}

impl KnownRun {
    /// Returns an error if the journal cannot be read, or if it is unknown whether the driver is alive.
    fn require(status: RunStatus, config: &WorkspaceConfig) -> Result<Self, RecoveryError> {
        let dir = config.dirs.runs().dir(&status.id);
        let state = match status.state {
            Ok(state) => state,
            Err(source) => return Err(RecoveryError::Unreadable { dir, source }),
        };
        let is_driven = match status.driver {
            Liveness::Alive => true,
            Liveness::Dead => false,
            Liveness::Unknown => {
                return Err(RecoveryError::DriverUnknown { dir, driver: state.driver.to_string() });
            }
        };
        Ok(Self { id: status.id, state, is_driven })
    }
}

/// Puts a request into the inbox of a run. Returns its name.
fn ask_driver(
    config: &WorkspaceConfig,
    run: &RunId,
    request: &InboxRequest,
    clock: Clock,
) -> Result<RunId, OperationError> {
    let name = RunId::generate(clock().wall)?;
    let inbox = Inbox::new(&config.dirs.runs(), run);
    inbox.drop_request(&name, request).map_err(RecoveryError::run)?;
    Ok(name)
}

/// Reads a run's journal again and again until `done`, for a limited time; returns the phase then.
fn wait_for_driver(
    config: &WorkspaceConfig,
    run: &RunId,
    patience: Duration,
    done: impl Fn(&RunState) -> bool,
) -> Option<RunPhase> {
    let begun = Instant::now();
    loop {
        if let Ok(found) = config.dirs.runs().find(run).found
            && (done(&found.state) || !may_be_alive(&found.state))
        {
            return Some(found.state.phase);
        }
        if begun.elapsed() >= patience {
            return None;
        }
        std::thread::park_timeout(PERIOD);
    }
}

/// Returns whether the driver of a run may be alive.
fn may_be_alive(state: &RunState) -> bool {
    HostScope::here()
        // If this host cannot be told apart, the driver counts as alive: its run must not be taken
        // from it.
        .map_or(true, |here| state.driver.liveness(&here) != Liveness::Dead)
}
