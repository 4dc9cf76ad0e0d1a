//! Checks the lanes.

use pdca_lanes::{LaneFinding, Target};

use super::WorkspaceLanes;
use crate::{OpenWorkspace, OperationError};

/// Returns what is wrong with the lanes.
pub fn check_lanes(open: &OpenWorkspace<'_>) -> Result<Vec<LaneFinding>, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let targets = place.workspace.targets.iter();
    // The lanes of a target that cannot be opened cannot be judged; `pdca doctor` reports it.
    let targets: Vec<Target> =
        targets.filter_map(|target| Target::open(&target.name, &target.path).ok()).collect();
    Ok(place.lanes.doctor(&targets)?)
}
