//! The cost of several issues.

use std::collections::BTreeMap;

use pdca_state::{Artifact, Bundle, BundleId, CostTotal, Glance, State};

use crate::snapshot::{SnapshotEntry, WorkspaceSnapshot};

/// The cost of each issue, and the number of accepted ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueCosts {
    /// The cost of each bundle of which something is known.
    pub bundles: BTreeMap<BundleId, CostTotal>,
    /// The number of accepted bundles.
    pub accepted: u64,
}

impl IssueCosts {
    /// Reads the cost of all bundles.
    pub fn load(snapshot: &WorkspaceSnapshot) -> Self {
        let mut costs = Self::default();
        for entry in &snapshot.entries {
            costs.accepted += u64::from(entry.state() == Some(State::Complete));
            if let Some(total) = cost(entry) {
                costs.bundles.insert(entry.id.clone(), total);
            }
        }
        costs
    }

    /// Returns the sum over all bundles.
    pub fn sum(&self) -> CostTotal {
        self.bundles.values().copied().fold(CostTotal::default(), CostTotal::plus)
    }
}

/// Returns the cost of a bundle; `None` if nothing is known of it.
pub(crate) fn cost(entry: &SnapshotEntry) -> Option<CostTotal> {
    // Most bundles have no record of calls.
    let has_calls =
        |glance: &Glance| glance.iterations > 0 || glance.artifacts.contains(Artifact::Logs);
    if entry.glance.as_ref().is_ok_and(|glance| !has_calls(glance)) {
        return None;
    }
    Bundle::at(&entry.dir).ok()?.calls().cost().ok().filter(CostTotal::is_known)
}
