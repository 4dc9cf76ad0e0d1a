//! Which accepted changes are in their target branch, for those who wait for exactly that.

use std::collections::BTreeSet;

use pdca_integrate::{ChangeState, TargetBranches};
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;

/// Those of some accepted bundles that are in their target branch.
///
/// What has nothing to land counts as landed, or it would be waited for in vain: a close without a
/// change, a bundle of a workspace without a target, one that was accepted before there were seals.
/// What cannot be told does not count.
pub fn landed_of(config: &WorkspaceConfig, accepted: &BTreeSet<BundleId>) -> BTreeSet<BundleId> {
    if accepted.is_empty() || config.targets.is_empty() {
        return accepted.clone();
    }
    let Ok(found) = TargetBranches::load(&config.queue()) else { return BTreeSet::new() };
    let mut landed = accepted.clone();
    for id in found.unplaceable.iter().flat_map(|unplaceable| &unplaceable.ids) {
        landed.remove(id);
    }
    for change in found.branches.iter().flat_map(|front| &front.changes) {
        match change.standing {
            ChangeState::Landed { .. } | ChangeState::Unsealed => {}
            ChangeState::Sealed(_)
            | ChangeState::Staged { .. }
            | ChangeState::Reverted { .. }
            | ChangeState::Drifted { .. } => {
                landed.remove(change.bundle.id());
            }
        }
    }
    landed
}
