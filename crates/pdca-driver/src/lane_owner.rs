//! The owners of lanes, read from the notes beside the checkouts.

use std::collections::BTreeMap;

use pdca_lanes::{Lanes, Note, OwnerNote};
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;
use crate::integrate::FIRST_SLOT;

/// The prefix of the job name of a combination in a lane.
pub(crate) const COMBINED: &str = "combined-";

/// The owner of the work in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneOwner {
    Nobody,
    /// A bundle of this workspace.
    Bundle(BundleId),
    /// A combination of accepted changes that an integration of this workspace gated.
    Combination,
    /// Another workspace, or unknown.
    Stranger,
}

/// Work in a lane that no commit holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) bundle: BundleId,
    pub(crate) slot: u32,
    pub(crate) target: String,
    pub(crate) job: String,
}

/// Parses the bundle out of the job name in an owner note: `<workspace>-<id>-<kind>-<digest>`.
pub(crate) fn owner(job: &str, workspace: &str) -> Option<BundleId> {
    let rest = job.strip_prefix(workspace)?.strip_prefix('-')?;
    // From the right, because the id of a bundle may contain hyphens; kind and digest have none.
    let mut parts = rest.rsplitn(3, '-');
    let (_digest, _kind) = (parts.next()?, parts.next()?);
    parts.next()?.parse().ok()
}

/// The owners of the lanes of a workspace, which may share them with others.
#[derive(Debug)]
pub struct LaneOwners {
    lanes: Lanes,
    /// Distinguishes this workspace from others that share the lanes.
    workspace: String,
}

impl LaneOwners {
    pub fn in_lanes_of(config: &WorkspaceConfig) -> Self {
        Self { lanes: config.lanes.lent(), workspace: config.dirs.mark() }
    }

    /// Returns the slot of each bundle's latest work, for bundles with work in a lane.
    ///
    /// An unreadable note counts as no owner; that only loses a shortcut.
    pub(crate) fn homes(&self) -> BTreeMap<BundleId, u32> {
        let mut notes = self.lanes.notes().unwrap_or_default();
        // The latest note of a bundle wins, because later entries of the map replace earlier ones.
        notes.sort_by_key(|note| note.written);
        let home = |note: Note| {
            if note.slot >= FIRST_SLOT {
                return None;
            }
            let job = OwnerNote::from_note(&note.text)?.job;
            Some((owner(&job, &self.workspace)?, note.slot))
        };
        notes.into_iter().filter_map(home).collect()
    }

    /// Returns the work in lanes that no commit holds, for bundles of this workspace.
    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let of = |note: Note| {
            let noted = OwnerNote::from_note(&note.text)?;
            // Slots from here on belong to integrations and resolvers, which recover their own work.
            let is_unfinished =
                noted.head.is_none() && !noted.is_clearing() && note.slot < FIRST_SLOT;
            let bundle = owner(&noted.job, &self.workspace).filter(|_| is_unfinished)?;
            let (slot, target) = (note.slot, note.target);
            Some(Unfinished { bundle, slot, target, job: noted.job })
        };
        self.lanes.notes().unwrap_or_default().into_iter().filter_map(of).collect()
    }

    /// Returns the owner of the work in a lane, from the note beside it.
    pub fn of(&self, slot: u32, target: &str) -> LaneOwner {
        let notes = self.lanes.notes().unwrap_or_default();
        let note = notes.into_iter().find(|note| note.slot == slot && note.target == target);
        match note.and_then(|note| OwnerNote::from_note(&note.text)) {
            None => LaneOwner::Nobody,
            Some(owned) if owned.is_clearing() => LaneOwner::Nobody,
            Some(owned) if owned.job.starts_with(&format!("{COMBINED}{}-", self.workspace)) => {
                LaneOwner::Combination
            }
            Some(owned) => {
                owner(&owned.job, &self.workspace).map_or(LaneOwner::Stranger, LaneOwner::Bundle)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_work_lies_in_a_lane_is_read_from_its_note() {
        let of = |job: &str| owner(job, "0a1b2c3d").map(|id| id.to_string());
        assert_eq!(of("0a1b2c3d-7-builder-00ff").as_deref(), Some("7"));
        assert_eq!(of("0a1b2c3d-PROJ-12-builder-00ff").as_deref(), Some("PROJ-12"));
        assert_eq!(of("0a1b2c3d-PROJ-12-abc123-00ff").as_deref(), Some("PROJ-12"));
        assert_eq!(of("99999999-7-builder-00ff"), None, "another workspace");
        assert_eq!(of("clearing"), None);
    }
}
