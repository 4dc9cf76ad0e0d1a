//! Removes lanes by age and for free disk space.

use std::time::{Duration, UNIX_EPOCH};

use pdca_driver::Unwatched;
use pdca_lanes::{SweepDecision, SweepItem, SweepPolicy, Target};
use serde::Serialize;

use super::WorkspaceLanes;
use super::remove::{LaneRemoval, foreseen};
use crate::{OpenWorkspace, OperationError};

const DAY: u64 = 24 * 3600;
const GIB: u64 = 1 << 30;

/// The limits of a sweep; those of `[lanes]` where none is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct SweepRequest {
    /// Removes lanes that were not used for so many days.
    pub older_than: Option<u64>,
    /// Removes lanes, the oldest first, until so many GiB are free.
    pub min_free_gb: Option<u64>,
}

/// The lanes after a sweep.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    pub dry_run: bool,
    /// Free bytes before the sweep.
    pub free: u64,
    pub lanes: Vec<SweptLane>,
}

/// The fate of one lane, actual or predicted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptLane {
    #[serde(flatten)]
    pub decision: SweepDecision,
    pub size: u64,
    /// Seconds since the last claim.
    pub age: Option<u64>,
    #[serde(flatten)]
    pub lane: LaneRemoval,
}

impl SweptLane {
    /// Returns whether the lane is removed, or would be.
    pub fn goes(&self) -> bool {
        matches!(self.decision, SweepDecision::Remove(_))
    }
}

/// Removes lanes by age and for free disk space.
pub fn sweep(open: &OpenWorkspace<'_>, request: SweepRequest) -> Result<Sweep, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let config = &open.workspace.config.lanes;
    let days = request.older_than.or(config.max_age_days);
    let floor = request.min_free_gb.or(config.min_free_gb);
    if days.is_none() && floor.is_none() {
        return Err(OperationError::NoSweepLimit);
    }
    let policy = SweepPolicy::new(UNIX_EPOCH + Duration::from_secs(open.now()))
        .with_min_free(floor.map(|floor| floor.saturating_mul(GIB)))
        .with_max_age(days.map(|days| Duration::from_secs(days.saturating_mul(DAY))));
    let targets = place.targets(None)?;
    let _no_driver = open.without_driver()?;
    let plan = place.lanes.plan_sweep(&targets, &policy)?;
    let mut lanes = Vec::new();
    for item in &plan.items {
        let seen = &item.lane;
        let lane = match target_to_sweep(item, &targets) {
            Some(target) if open.dry_run => foreseen(seen, place.lanes.has_work(seen, target)),
            Some(target) => place.remove(seen, target, &Unwatched),
            None => foreseen(seen, None),
        };
        let age = item.age.map(|age| age.as_secs());
        lanes.push(SweptLane { decision: item.decision, size: seen.size, age, lane });
    }
    Ok(Sweep { dry_run: open.dry_run, free: plan.free, lanes })
}

/// Returns the target of a lane to remove.
fn target_to_sweep<'a>(item: &SweepItem, targets: &'a [Target]) -> Option<&'a Target> {
    match item.decision {
        SweepDecision::Remove(_) => targets.iter().find(|target| target.name() == item.lane.target),
        SweepDecision::Keep(_) => None,
    }
}
