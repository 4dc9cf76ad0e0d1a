//! Orders several branches and targets by the dependencies between their changes.

use std::collections::BTreeSet;

use pdca_driver::integrate::{ChangeState, TargetBranch, Unplaceable};
use pdca_state::BundleId;

/// Changes that have not landed, of any branch.
pub(super) struct Unlanded(BTreeSet<BundleId>);

impl Unlanded {
    /// Collects all of them, with unfinished bundles. An unreadable change counts as not landed.
    pub(super) fn of(
        branches: &[TargetBranch],
        unplaceable: &[Unplaceable],
        open: BTreeSet<BundleId>,
    ) -> Self {
        let changes = branches.iter().flat_map(|branch| &branch.changes);
        let sealed =
            changes.filter(|change| !matches!(change.standing, ChangeState::Landed { .. }));
        let unplaceable = unplaceable.iter().flat_map(|unplaceable| &unplaceable.ids);
        let accepted = sealed.map(|change| change.bundle.id()).chain(unplaceable).cloned();
        Self(accepted.chain(open).collect())
    }

    /// Returns those of other branches.
    pub(super) fn elsewhere(&self, branch: &TargetBranch) -> BTreeSet<BundleId> {
        let own: BTreeSet<&BundleId> = ids(branch).collect();
        self.0.iter().filter(|id| !own.contains(id)).cloned().collect()
    }

    /// Removes those that have landed now.
    pub(super) fn landed<'a>(&mut self, ids: impl IntoIterator<Item = &'a BundleId>) {
        for id in ids {
            self.0.remove(id);
        }
    }
}

/// Sorts the branches so that each comes after those it depends on, if possible.
pub(super) fn arranged(mut branches: Vec<TargetBranch>) -> Vec<TargetBranch> {
    let mut done = Vec::new();
    while !branches.is_empty() {
        let needs_none = |branch: &TargetBranch| {
            let others = branches.iter().filter(|other| !std::ptr::eq(*other, branch));
            let theirs: BTreeSet<&BundleId> = others.flat_map(ids).collect();
            let mut needed = branch.changes.iter().flat_map(|change| &change.depends_on);
            !needed.any(|id| theirs.contains(id))
        };
        // Two branches depend on each other: changes that cannot land are held, with the reason.
        let next = branches.iter().position(needs_none).unwrap_or(0);
        done.push(branches.remove(next));
    }
    done
}

fn ids(branch: &TargetBranch) -> impl Iterator<Item = &BundleId> {
    branch.changes.iter().map(|change| change.bundle.id())
}
