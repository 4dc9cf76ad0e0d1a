//! Removes lanes, and rescues their work.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::{EffectSide, Effects, Point, Unwatched};
use pdca_lanes::{LaneReport, RemovalStep, RemoveError, Removed, RescuedWork, Target};
use pdca_state::text::shell;
use serde::Serialize;

use super::{WorkspaceLanes, require_slots, slots_of};
use crate::{OpenWorkspace, OperationError};

/// The fate of each lane of a removal.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneRemovals {
    pub dry_run: bool,
    pub lanes: Vec<LaneRemoval>,
}

/// The fate of one lane.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneRemoval {
    pub slot: u32,
    pub target: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    pub removed: bool,
    /// The file with its rescued work.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub bundle: Option<Utf8PathBuf>,
    /// The command that fetches it.
    pub fetch: Option<String>,
    /// The place that a broken checkout was moved to.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub moved_aside: Option<Utf8PathBuf>,
    /// The reason it was not removed.
    pub kept_because: Option<String>,
    /// There is, or would be, work to rescue.
    pub has_work: Option<bool>,
}

/// Removes the lanes in these slots, or all.
pub fn remove_lanes(
    open: &OpenWorkspace<'_>,
    slots: Option<&[u32]>,
    only: Option<&str>,
) -> Result<LaneRemovals, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let targets = place.targets(only)?;
    let there = place.lanes.list()?;
    let slots = match slots {
        Some(slots) => require_slots(slots, &there)?,
        None => slots_of(&there),
    };
    let dry_run = open.dry_run;
    let _no_driver = open.without_driver()?;
    let mut lanes = Vec::new();
    for lane in there.iter().filter(|lane| slots.contains(&lane.slot)) {
        let Some(target) = targets.iter().find(|target| target.name() == lane.target) else {
            if only.is_none() {
                let why = Some("its target is not configured".to_owned());
                lanes.push(LaneRemoval { kept_because: why, ..foreseen(lane, None) });
            }
            continue;
        };
        lanes.push(if dry_run {
            foreseen(lane, place.lanes.has_work(lane, target))
        } else {
            place.remove(lane, target, &Unwatched)
        });
    }
    Ok(LaneRemovals { dry_run, lanes })
}

impl WorkspaceLanes<'_> {
    /// Removes a lane, and rescues its work.
    pub(crate) fn remove(
        &self,
        lane: &LaneReport,
        target: &Target,
        effects: &dyn Effects,
    ) -> LaneRemoval {
        let announce = |step: RemovalStep| {
            let name = match step {
                RemovalStep::Rescued => "lane-rescued",
                RemovalStep::Kept => "lane-kept",
                RemovalStep::Renamed => "lane-renamed",
                RemovalStep::Cleared => "lane-cleared",
                RemovalStep::Left => "lane-left",
            };
            effects.announce(Point { name, when: EffectSide::After });
        };
        let remove = || self.lanes.remove_told(lane.slot, target, &announce);
        removal(lane, effects.perform("checkout", remove), target.path())
    }
}

/// Predicts the fate of a lane.
pub(super) fn foreseen(lane: &LaneReport, has_work: Option<bool>) -> LaneRemoval {
    LaneRemoval {
        slot: lane.slot,
        target: lane.target.clone(),
        path: lane.path.clone(),
        removed: false,
        bundle: None,
        fetch: None,
        moved_aside: None,
        kept_because: lane.holder.map(|holder| match holder.pid {
            Some(pid) => format!("in use by process {pid}"),
            None => "in use".to_owned(),
        }),
        has_work,
    }
}

/// Returns the fate of a lane after its removal was tried.
fn removal(
    lane: &LaneReport,
    removed: Result<Removed, RemoveError>,
    primary: &Utf8Path,
) -> LaneRemoval {
    let before = foreseen(lane, None);
    match removed {
        Ok(Removed { rescued, kept, moved_aside, .. }) => {
            let primary = shell(primary.as_str());
            let show = |commit: String| format!("git -C {primary} show {commit:.12}");
            let fetch = |kept: &RescuedWork| {
                let bundle = shell(kept.bundle.as_str());
                format!(
                    "git -C {primary} fetch {bundle} 'refs/*:refs/rescued/lane-{}/*'",
                    lane.slot
                )
            };
            LaneRemoval {
                removed: true,
                kept_because: None,
                has_work: Some(rescued.is_some() || kept.is_some()),
                // The work in a linked worktree is in the target's own repository.
                fetch: kept.as_ref().map(fetch).or_else(|| rescued.map(show)),
                bundle: kept.map(|kept| kept.bundle),
                moved_aside,
                ..before
            }
        }
        Err(error) => LaneRemoval { kept_because: Some(error.to_string()), ..before },
    }
}
