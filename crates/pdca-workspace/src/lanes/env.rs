//! The private names of a lane.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{LanesError, WorkspaceLanes};
use crate::{OpenWorkspace, OperationError};

/// The private names of a lane: ports, database, temporary directory, compose project.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneEnv {
    pub slot: u32,
    pub target: String,
    pub env: BTreeMap<&'static str, String>,
    /// The lane was made.
    #[serde(skip)]
    pub exists: bool,
}

/// Returns the private names of a lane, which need not exist.
pub fn lane_env(
    open: &OpenWorkspace<'_>,
    slot: u32,
    target: Option<&str>,
) -> Result<LaneEnv, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let target = choose(&place, target)?;
    let env = place.names(&target, slot).env().collect();
    let exists = place.lanes.slot_dir(slot).join(&target).exists();
    Ok(LaneEnv { slot, target, env, exists })
}

/// Returns the named target, or the only one.
fn choose(place: &WorkspaceLanes<'_>, only: Option<&str>) -> Result<String, OperationError> {
    let names: Vec<&str> = place.workspace.targets.iter().map(|target| &*target.name).collect();
    match (only, names.as_slice()) {
        (Some(name), known) if known.contains(&name) => Ok(name.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (None, known @ [_, _, ..]) => {
            let configured = known.iter().map(|name| (*name).to_owned()).collect();
            Err(LanesError::SeveralTargets { configured }.into())
        }
        (Some(_), _) | (None, []) => Err(place.no_target(only)),
    }
}
