//! The active runs of a workspace, for `status`. Changes nothing.

use std::io;

use pdca_journal::{FindError, HostScope, JournalTail, Liveness, RunId, RunState, Runs};

use super::observe::{LanesOnDisk, Recovered, look};
use crate::config::WorkspaceConfig;

/// A run that is active, or whose journal cannot be read.
#[derive(Debug)]
pub struct RunStatus {
    pub id: RunId,
    /// The state from its journal, or the error of reading it.
    pub state: Result<Box<RunState>, FindError>,
    /// The number of bytes at the end of its journal that are no whole record.
    pub torn: u64,
    /// Unknown if the journal cannot be read.
    pub driver: Liveness,
    /// The facts about each bundle, with the action from the recovery table. Empty if
    /// lanes were not inspected.
    pub bundles: Vec<Recovered>,
}

/// Returns the active runs of the workspace, the newest first, without inspecting lanes.
pub fn run_statuses(config: &WorkspaceConfig) -> io::Result<Vec<RunStatus>> {
    see(&config.dirs.runs(), || None)
}

/// Like [`run_statuses`], with the facts from the lanes, which takes longer the larger they are.
pub fn run_statuses_in_lanes(config: &WorkspaceConfig) -> io::Result<Vec<RunStatus>> {
    see(&config.dirs.runs(), || Some(LanesOnDisk::look(config)))
}

/// Returns the active integrations of the workspace, the newest first. `pdca integrate` continues them.
pub fn integrations(config: &WorkspaceConfig) -> io::Result<Vec<RunStatus>> {
    see(&config.dirs.integrations(), || None)
}

fn see(runs: &Runs, look: impl FnOnce() -> Option<LanesOnDisk>) -> io::Result<Vec<RunStatus>> {
    let active = runs.active()?;
    if active.is_empty() {
        return Ok(Vec::new());
    }
    let (here, lanes) = (HostScope::here()?, look());
    Ok(active.into_iter().map(|run| RunStatus::of(run, &here, lanes.as_ref())).collect())
}

impl RunStatus {
    fn of(run: pdca_journal::RunEntry, here: &HostScope, lanes: Option<&LanesOnDisk>) -> Self {
        match run.found {
            Err(error) => Self {
                id: run.id,
                state: Err(error),
                torn: 0,
                driver: Liveness::Unknown,
                bundles: Vec::new(),
            },
            Ok(found) => {
                let state = found.state;
                let looked = lanes.map(|lanes| {
                    state.bundles.keys().filter_map(|id| look(lanes, &state, id)).collect()
                });
                let bundles = looked.unwrap_or_default();
                let driver = state.driver.liveness(here);
                let torn = match found.tail {
                    JournalTail::Torn { bytes, .. } => bytes,
                    JournalTail::Whole => 0,
                };
                Self { id: run.id, state: Ok(Box::new(state)), torn, driver, bundles }
            }
        }
    }
}
