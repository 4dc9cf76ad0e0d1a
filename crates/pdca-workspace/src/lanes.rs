//! The private checkouts of a workspace: made, listed, checked, reset, removed and swept.
//!
//! # Invariants
//! - Nothing is removed that is in use, or that is neither in its target nor rescued.
//! - Lanes are reset and removed only while no driver runs: the locks are held for the whole operation. They are made
//!   and hydrated after one look for a driver, because that takes long; each is claimed while it is worked on.

mod check;
mod env;
mod error;
mod hydration;
mod list;
mod provision;
mod remove;
mod reset;
mod sweep;

use pdca_lanes::{Base, LaneReport, Lanes, PrivateNames, Target, WorkspaceId};

pub use check::check_lanes;
pub use env::{LaneEnv, lane_env};
pub use error::LanesError;
pub use list::{LaneList, ListedLane, list_lanes};
pub use provision::{
    HydrationOutcome, MissingLane, ProvisionProgress, ProvisionRequest, ProvisionedLane,
    ProvisionedLanes, provision_lanes,
};
pub use remove::{LaneRemoval, LaneRemovals, remove_lanes};
pub use reset::{LaneReset, LaneResets, reset_lane};
pub use sweep::{Sweep, SweepRequest, SweptLane, sweep};

use crate::OperationError;
use crate::config::Workspace;

/// The lanes of a workspace, with their names.
#[derive(Debug)]
pub struct WorkspaceLanes<'a> {
    pub workspace: &'a Workspace,
    pub lanes: Lanes,
    id: WorkspaceId,
}

impl<'a> WorkspaceLanes<'a> {
    /// Finds the lanes of a workspace. They may not exist yet.
    pub fn of(workspace: &'a Workspace) -> Result<Self, OperationError> {
        let root = workspace.root.canonicalize_utf8()?;
        let lanes = Lanes::new(&workspace.lanes_root).of_kind(workspace.config.lanes.kind);
        Ok(Self { workspace, lanes, id: WorkspaceId::of(&root) })
    }

    /// Returns the id that the names of lanes are derived from.
    pub fn id(&self) -> &WorkspaceId {
        &self.id
    }

    /// Returns the private names of a slot for a target.
    pub fn names(&self, target: &str, slot: u32) -> PrivateNames {
        self.lanes.names(&self.id, target, slot, self.workspace.config.lanes.ports)
    }

    /// Opens the configured targets, or the named one.
    pub fn targets(&self, only: Option<&str>) -> Result<Vec<Target>, OperationError> {
        let configured = &self.workspace.targets;
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let chosen: Vec<_> = configured.iter().filter(|target| wanted(&target.name)).collect();
        if chosen.is_empty() {
            return Err(self.no_target(only));
        }
        let mut closed = Vec::new();
        let mut targets = Vec::new();
        for target in chosen {
            match Target::open(&target.name, &target.path) {
                Ok(target) => targets.push(target),
                Err(error) => closed.push((target.path.clone(), error)),
            }
        }
        if closed.is_empty() { Ok(targets) } else { Err(OperationError::Targets(closed)) }
    }

    /// Returns the error for a missing target.
    pub fn no_target(&self, only: Option<&str>) -> OperationError {
        let configured = self.workspace.targets.iter().map(|target| target.name.clone()).collect();
        OperationError::NoTarget { name: only.map(str::to_owned), configured }
    }

    /// Returns the base commit of a target's lanes.
    pub fn base(&self, target: &Target) -> Result<Base, OperationError> {
        let entry = self.workspace.targets.iter().find(|entry| entry.name == target.name());
        let branch = entry.and_then(|entry| entry.branch.as_deref());
        let branch = branch.or(self.workspace.config.project.default_branch.as_deref());
        target
            .resolve(branch)
            .map_err(|source| OperationError::Branch { checkout: target.path().to_owned(), source })
    }
}

/// Returns the named slots, sorted and unique; each must have a lane of one of the targets.
fn require_slots(slots: &[u32], there: &[LaneReport]) -> Result<Vec<u32>, OperationError> {
    let mut wanted: Vec<u32> = slots.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    match wanted.iter().find(|slot| !there.iter().any(|lane| lane.slot == **slot)) {
        None => Ok(wanted),
        Some(slot) => Err(OperationError::NoLane { slot: *slot, slots: slots_of(there) }),
    }
}

/// Returns the slots that have a lane, sorted and unique.
fn slots_of(there: &[LaneReport]) -> Vec<u32> {
    let mut slots: Vec<u32> = there.iter().map(|lane| lane.slot).collect();
    slots.dedup();
    slots
}
