//! The budget of a flow: the caps of `[driver]` count for all its batches together.
//!
//! A flow has a record from its beginning to its end. One that was killed leaves it, and the next goes on under it, so that a
//! kill buys no second budget.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use pdca_driver::{RunLimits, WorkspaceConfig, cost_since, run_statuses};
use pdca_state::files;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::session;

const MAX_BYTES: u64 = 1 << 16;

/// `.pdca/flow.json`, while a flow is under way.
pub(super) struct FlowRecord {
    path: Utf8PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Began {
    /// In seconds since 1970.
    began: i64,
}

fn path(config: &WorkspaceConfig) -> Utf8PathBuf {
    config.dirs.private().join("flow.json")
}

impl FlowRecord {
    /// Begins a flow, or goes on with one that was killed.
    pub(super) fn begin(cx: &Context<'_>) -> Result<Self, Failure> {
        let config = session::driver_config(cx)?;
        let path = path(&config);
        if began(&config).is_none() {
            fs_err::create_dir_all(config.dirs.private())?;
            let json = serde_json::to_vec(&Began { began: (config.clock)() })
                .map_err(|error| Failure::unexpected(error.to_string()))?;
            files::replace(&path, &json)?;
        }
        Ok(Self { path })
    }

    /// Ends the flow: the next one has a budget of its own.
    pub(super) fn end(self) -> Result<(), Failure> {
        match fs_err::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Returns when the flow began; `None` without a record that can be read.
fn began(config: &WorkspaceConfig) -> Option<i64> {
    let bytes = files::read_bounded(path(config), MAX_BYTES).ok().flatten()?;
    serde_json::from_slice::<Began>(&bytes).ok().map(|record| record.began)
}

/// Returns what is left of the limits for the next batch. A run that is still open counts its own calls.
pub(super) fn left(config: &WorkspaceConfig) -> RunLimits {
    let limits = config.limits;
    if limits.max_cost.is_none() && limits.max_leaf_calls.is_none() {
        return limits;
    }
    let Some(began) = began(config) else { return limits };
    let open: BTreeSet<String> = run_statuses(config)
        .unwrap_or_default()
        .iter()
        .map(|status| status.id.to_string())
        .collect();
    let spent = cost_since(config, began, &open);
    RunLimits {
        max_cost: limits.max_cost.map(|cap| cap.minus(spent.cost)),
        max_leaf_calls: limits.max_leaf_calls.map(|cap| cap.saturating_sub(spent.calls)),
        ..limits
    }
}
