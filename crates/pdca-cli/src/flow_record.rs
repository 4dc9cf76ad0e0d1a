//! The record of a flow: its name, its log, and when it began, for its budget.
//!
//! The caps of `[driver]` count for all batches of a flow together. A flow has a record from its beginning to its end. One that
//! was killed leaves it, and the next goes on under it and in its log, so that a kill buys no second budget.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::{RunLimits, WorkspaceConfig, cost_since, run_statuses};
use pdca_journal::RunId;
use pdca_journal::events::{EventStream, FlowTask};
use pdca_state::{BundleId, files};
use pdca_workspace::logs::flow_runs;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::process_env;
use crate::session;

const MAX_BYTES: u64 = 1 << 16;
/// The logs of flows that are kept.
const KEPT: usize = 20;

/// `.pdca/flow.json`, while a flow is under way, and its log in `.pdca/flows/<id>`.
pub(crate) struct FlowRecord {
    path: Utf8PathBuf,
    events: EventStream,
}

#[derive(Debug, Serialize, Deserialize)]
struct Began {
    /// In seconds since 1970.
    began: i64,
    /// The name of the flow; absent in the record of an older version.
    #[serde(default)]
    flow: Option<RunId>,
}

fn path(config: &WorkspaceConfig) -> Utf8PathBuf {
    config.dirs.private().join("flow.json")
}

impl FlowRecord {
    /// Begins a flow, or goes on with one that was killed. Its events are also appended to `events`.
    pub(crate) fn begin(cx: &Context<'_>, events: Option<&Utf8Path>) -> Result<Self, Failure> {
        let config = session::driver_config(cx)?;
        let path = path(&config);
        let before = load(&config);
        let known = before.as_ref().and_then(|began| began.flow.clone());
        let flow = match known {
            Some(flow) => flow,
            None => RunId::generate(process_env::moment().wall)?,
        };
        // The beginning of a flow that was killed is kept, and with it what was spent since.
        let began = before.map_or_else(|| (config.clock)(), |before| before.began);
        let dir = flow_runs(&config).dir(&flow);
        forget_old(&config, &flow)?;
        // Before the record that names it.
        fs_err::create_dir_all(&dir)?;
        let json = serde_json::to_vec(&Began { began, flow: Some(flow.clone()) })
            .map_err(|error| Failure::unexpected(error.to_string()))?;
        files::replace(&path, &json)?;
        let mut copy = session::EventsFile::open(events)?;
        // A copy that cannot be written any more costs the flow nothing.
        let listener = move |event| drop(copy.write(&event));
        let events = EventStream::new(|| process_env::moment().wall, listener);
        events.record(flow.as_str(), &dir);
        Ok(Self { path, events })
    }

    /// Does a step of the flow between its two events.
    pub(crate) fn step<T>(
        &self,
        task: FlowTask,
        bundles: &[BundleId],
        job: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.events.flow_step(task, bundles, Failure::sentence, job)
    }

    /// Ends the flow: the next one has a budget of its own.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        match fs_err::remove_file(&self.path) {
            // A record that is gone already has the same effect.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Removes the logs of the oldest flows.
fn forget_old(config: &WorkspaceConfig, current: &RunId) -> Result<(), Failure> {
    let flows = flow_runs(config);
    let ids = flows.list()?;
    let old = ids.len().saturating_sub(KEPT);
    for id in ids.iter().take(old).filter(|id| *id != current) {
        fs_err::remove_dir_all(flows.dir(id))?;
    }
    Ok(())
}

fn load(config: &WorkspaceConfig) -> Option<Began> {
    let bytes = files::read_bounded(path(config), MAX_BYTES).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns what is left of the limits for the next batch. A run that is still open counts its own calls.
pub(crate) fn left(config: &WorkspaceConfig) -> RunLimits {
    let limits = config.limits;
    if limits.max_cost.is_none() && limits.max_leaf_calls.is_none() {
        return limits;
    }
    let Some(Began { began, .. }) = load(config) else { return limits };
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
