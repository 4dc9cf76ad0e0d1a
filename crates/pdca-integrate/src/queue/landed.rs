//! The accepted changes that are in their target branch.

use std::collections::BTreeSet;

use pdca_state::BundleId;

use crate::{ChangeState, QueueWorkspace, TargetBranches};

/// Returns those of some accepted bundles that are in their target branch.
///
/// Bundles without anything to land count as landed, or dependants would wait forever: a close without a
/// change, a bundle of a workspace without a target, one that was accepted before seals existed.
/// A bundle whose branch cannot be determined does not count.
pub fn landed_of(workspace: &QueueWorkspace, accepted: &BTreeSet<BundleId>) -> BTreeSet<BundleId> {
    if accepted.is_empty() || workspace.targets.is_empty() {
        return accepted.clone();
    }
    match TargetBranches::load(workspace) {
        Ok(found) => landed_among(&found, accepted),
        // Unknown counts as not landed: a dependant waits rather than starts on a branch without
        // it.
        Err(_) => BTreeSet::new(),
    }
}

/// Like [`landed_of`], for branches that were read before.
pub fn landed_among(found: &TargetBranches, accepted: &BTreeSet<BundleId>) -> BTreeSet<BundleId> {
    let mut landed = accepted.clone();
    for id in found.unplaceable.iter().flat_map(|unplaceable| &unplaceable.ids) {
        landed.remove(id);
    }
    for change in found.branches.iter().flat_map(|branch| &branch.changes) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_target_an_accepted_bundle_is_waited_for_no_longer() {
        let workspace = QueueWorkspace::at("/w");
        let accepted: BTreeSet<BundleId> = ["7", "8"].map(|id| id.parse().unwrap()).into();
        assert_eq!(landed_of(&workspace, &accepted), accepted);
        assert_eq!(landed_of(&workspace, &BTreeSet::new()), BTreeSet::new());
    }
}
