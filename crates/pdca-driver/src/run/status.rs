//! The runs of a workspace that are not over, as a person is shown them. Nothing is changed.

use std::io;

use pdca_journal::{FindError, HostScope, Liveness, RunId, RunState, Runs, Tail};

use super::observe::{Lanes, Recovered, look};
use crate::config::WorkspaceConfig;

/// A run that is not over, or of which that is not known.
#[derive(Debug)]
pub struct RunStatus {
    /// Its id.
    pub id: RunId,
    /// Where its journal has it, or why that cannot be read.
    pub state: Result<Box<RunState>, FindError>,
    /// How many bytes at the end of its journal are not a whole record.
    pub torn: u64,
    /// Whether its driver lives; not known where its journal cannot be read.
    pub driver: Liveness,
    /// Each bundle of it: what is found in lanes, and what the table says about it. Empty where
    /// lanes were not looked at.
    pub bundles: Vec<Recovered>,
}

/// Every run of the workspace that is not over, the newest first. Lanes are not looked at.
pub fn run_statuses(config: &WorkspaceConfig) -> io::Result<Vec<RunStatus>> {
    see(&config.dirs.runs(), || None)
}

/// As [`run_statuses`], with what is found in the lanes, which takes as long as they are large.
pub fn run_statuses_in_lanes(config: &WorkspaceConfig) -> io::Result<Vec<RunStatus>> {
    see(&config.dirs.runs(), || Some(Lanes::look(config)))
}

/// Every integration of the workspace that is not over, the newest first. `pdca integrate` goes on with it.
pub fn integrations(config: &WorkspaceConfig) -> io::Result<Vec<RunStatus>> {
    see(&config.dirs.integrations(), || None)
}

fn see(runs: &Runs, look: impl FnOnce() -> Option<Lanes>) -> io::Result<Vec<RunStatus>> {
    let active = runs.active()?;
    if active.is_empty() {
        return Ok(Vec::new());
    }
    let (here, lanes) = (HostScope::here()?, look());
    Ok(active.into_iter().map(|run| RunStatus::of(run, &here, lanes.as_ref())).collect())
}

impl RunStatus {
    fn of(run: pdca_journal::RunEntry, here: &HostScope, lanes: Option<&Lanes>) -> Self {
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
                    Tail::Torn { bytes, .. } => bytes,
                    Tail::Whole => 0,
                };
                Self { id: run.id, state: Ok(Box::new(state)), torn, driver, bundles }
            }
        }
    }
}
