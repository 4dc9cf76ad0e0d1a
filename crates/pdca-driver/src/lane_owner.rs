//! Whose work lies in which lane, by the notes beside the checkouts.

use std::collections::BTreeMap;

use pdca_lanes::{Lanes, Note, OwnerNote};
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;
use crate::integrate::FIRST_SLOT;

/// What begins the name of a combination that lies in a lane.
pub(crate) const COMBINED: &str = "combined-";

/// Whose work lies in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneOwner {
    /// Nobody's.
    Nobody,
    /// That of a bundle of this workspace.
    Bundle(BundleId),
    /// A combination of accepted changes, which an integration of this workspace gated.
    Combination,
    /// That of another workspace, or nobody knows whose.
    Stranger,
}

/// Work in a lane that no commit of ours holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) bundle: BundleId,
    pub(crate) slot: u32,
    pub(crate) target: String,
    /// The job that did it.
    pub(crate) job: String,
}

/// The bundle whose work a note of a lane names: `<workspace>-<id>-<kind>-<digest>`.
pub(crate) fn owner(job: &str, workspace: &str) -> Option<BundleId> {
    let rest = job.strip_prefix(workspace)?.strip_prefix('-')?;
    let mut parts = rest.rsplitn(3, '-');
    let (_digest, _kind) = (parts.next()?, parts.next()?);
    parts.next()?.parse().ok()
}

/// The owners of the lanes of a workspace, which may share them with others.
#[derive(Debug)]
pub struct LaneOwners {
    lanes: Lanes,
    /// Tells the work of this workspace from that of another with the same lanes.
    workspace: String,
}

impl LaneOwners {
    /// The owners of the lanes of a workspace.
    pub fn in_lanes_of(config: &WorkspaceConfig) -> Self {
        Self { lanes: config.lanes.lent(), workspace: config.dirs.mark() }
    }

    /// The slot in which each bundle's latest work lies, for those that have any in a lane.
    ///
    /// A lane that says nothing readable is nobody's: what is lost by that is a shortcut.
    pub(crate) fn homes(&self) -> BTreeMap<BundleId, u32> {
        let mut notes = self.lanes.notes().unwrap_or_default();
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

    /// Work in lanes that no commit of ours holds, of the bundles of this workspace.
    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let of = |note: Note| {
            let noted = OwnerNote::from_note(&note.text)?;
            // The slots above are those of integrations and resolvers, which keep their own.
            let is_unfinished =
                noted.head.is_none() && !noted.is_clearing() && note.slot < FIRST_SLOT;
            let bundle = owner(&noted.job, &self.workspace).filter(|_| is_unfinished)?;
            let (slot, target) = (note.slot, note.target);
            Some(Unfinished { bundle, slot, target, job: noted.job })
        };
        self.lanes.notes().unwrap_or_default().into_iter().filter_map(of).collect()
    }

    /// Whose work lies in a lane, by the note beside it.
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
