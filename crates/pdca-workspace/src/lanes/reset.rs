//! Resets a lane to its base, and rescues its work.

use camino::Utf8PathBuf;
use pdca_lanes::{LaneReport, Reset, Saved, Target};
use serde::Serialize;

use super::{WorkspaceLanes, require_slots};
use crate::{OpenWorkspace, OperationError};

/// The lanes of one slot after a reset.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneResets {
    pub dry_run: bool,
    pub lanes: Vec<LaneReset>,
}

/// A lane after a reset.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneReset {
    pub slot: u32,
    pub target: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    pub base: String,
    pub reset: Reset,
    /// The commit with the rescued work, or the path to which a broken checkout was moved, if there was any.
    pub rescued: Option<String>,
    /// True if `rescued` is a path.
    #[serde(skip)]
    pub is_moved: bool,
    pub done: bool,
}

/// Resets the lane in a slot to its base, and rescues its work first. `pristine` also removes ignored files.
pub fn reset_lane(
    open: &OpenWorkspace<'_>,
    slot: u32,
    pristine: bool,
    only: Option<&str>,
) -> Result<LaneResets, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let targets = place.targets(only)?;
    let there = place.lanes.list()?;
    require_slots(&[slot], &there)?;
    let reset = if pristine { Reset::Pristine } else { open.workspace.config.lanes.reset };
    let _no_driver = open.without_driver()?;
    let mut lanes = Vec::new();
    for target in &targets {
        let lane = there.iter().find(|lane| lane.slot == slot && lane.target == target.name());
        let Some(lane) = lane else { continue };
        lanes.push(reset_one(&place, lane, target, reset, open.dry_run)?);
    }
    Ok(LaneResets { dry_run: open.dry_run, lanes })
}

fn reset_one(
    place: &WorkspaceLanes<'_>,
    report: &LaneReport,
    target: &Target,
    reset: Reset,
    dry_run: bool,
) -> Result<LaneReset, OperationError> {
    let base = place.base(target)?.commit;
    let mut done = LaneReset {
        slot: report.slot,
        target: target.name().to_owned(),
        path: report.path.clone(),
        base,
        reset,
        rescued: None,
        is_moved: false,
        done: !dry_run,
    };
    if dry_run {
        let unlanded = report.head.is_some() && report.head != report.base;
        // A tree that only git could judge counts as changed: the forecast must not promise that
        // nothing is kept.
        let keeps = unlanded || report.dirty != Some(false) && report.head.is_some();
        done.rescued = keeps.then(|| report.head.clone().unwrap_or_default());
        return Ok(done);
    }
    let lanes = place.lanes.clone().of_kind(report.kind);
    let lane = lanes.claim(report.slot, target)?;
    let mut moved = None;
    match lane.save(&format!("lane-{}", report.slot))? {
        Saved::Nothing => {}
        Saved::Commit(commit) => done.rescued = Some(commit),
        Saved::Aside { path, why: _ } => moved = path,
    }
    match lane.reset_with(&done.base, reset) {
        Err(error) if error.is_of_the_lane() => {
            moved = moved.or(lane.renew()?);
            lane.reset_with(&done.base, reset)?;
        }
        result => result?,
    }
    // Rather than a commit, which was moved away with its repository.
    if let Some(path) = moved {
        (done.rescued, done.is_moved) = (Some(path.into()), true);
    }
    Ok(done)
}
