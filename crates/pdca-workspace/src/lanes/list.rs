//! Lists the lanes with their states.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use camino::Utf8PathBuf;
use pdca_lanes::{HydrationState, LaneKind, LaneReport, LaneState};
use serde::Serialize;

use super::WorkspaceLanes;
use crate::{OpenWorkspace, OperationError};

/// The lanes of a workspace.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneList {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: Utf8PathBuf,
    pub lanes: Vec<ListedLane>,
}

/// A lane in a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedLane {
    pub slot: u32,
    pub target: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    pub kind: LaneKind,
    pub state: LaneState,
    pub base: Option<String>,
    pub head: Option<String>,
    /// Null if unknown.
    pub dirty: Option<bool>,
    pub in_use: bool,
    /// The process that holds it, as it says.
    pub holder: Option<u32>,
    pub hydration: HydrationState,
    pub size: u64,
    /// The last claim, in seconds since the epoch.
    pub used: Option<u64>,
    pub env: BTreeMap<&'static str, String>,
}

/// Lists the lanes with holder, state, age and size.
pub fn list_lanes(open: &OpenWorkspace<'_>) -> Result<LaneList, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let lanes = place.lanes.list()?.into_iter().map(|lane| listed(&place, lane)).collect();
    Ok(LaneList { root: place.lanes.root().to_owned(), lanes })
}

fn listed(place: &WorkspaceLanes<'_>, lane: LaneReport) -> ListedLane {
    let env = place.names(&lane.target, lane.slot).env().collect();
    let used = lane.used.and_then(|used| used.duration_since(UNIX_EPOCH).ok());
    ListedLane {
        slot: lane.slot,
        target: lane.target,
        path: lane.path,
        kind: lane.kind,
        state: lane.state,
        base: lane.base,
        head: lane.head,
        dirty: lane.dirty,
        in_use: lane.holder.is_some(),
        holder: lane.holder.and_then(|holder| holder.pid),
        hydration: lane.hydration,
        size: lane.size,
        used: used.map(|used| used.as_secs()),
        env,
    }
}
