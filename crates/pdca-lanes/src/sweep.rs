//! Sweeping: which lanes to remove when they are old or the disk is full. Decided first, then carried out.

use std::{
    io,
    time::{Duration, SystemTime},
};

use camino::Utf8Path;
use serde::Serialize;

use crate::{
    claim::Lanes,
    inspect::{InspectError, LaneReport},
    target::Target,
};

/// The conditions under which lanes are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepPolicy {
    /// Removes lanes, oldest first, until the disk has this many bytes free.
    pub min_free: Option<u64>,
    /// Removes lanes that were not claimed for this long.
    pub max_age: Option<Duration>,
    /// The current time.
    pub now: SystemTime,
}

impl SweepPolicy {
    /// Creates a policy that removes nothing.
    pub fn new(now: SystemTime) -> Self {
        Self { min_free: None, max_age: None, now }
    }

    /// Sets the least free space on the disk, in bytes.
    #[must_use]
    pub fn with_min_free(self, min_free: Option<u64>) -> Self {
        Self { min_free, ..self }
    }

    /// Sets the greatest age of a lane.
    #[must_use]
    pub fn with_max_age(self, max_age: Option<Duration>) -> Self {
        Self { max_age, ..self }
    }
}

/// The decision about every lane: first those to remove, in the order of removal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepPlan {
    /// The free bytes on the disk of the lanes.
    pub free: u64,
    /// Every lane, each once.
    pub items: Vec<SweepItem>,
}

/// The decision about one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepItem {
    /// The state of the lane.
    pub lane: LaneReport,
    /// The time since the last claim; `None` if unknown.
    pub age: Option<Duration>,
    /// The decision.
    pub decision: SweepDecision,
}

/// The decision about a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "decision", content = "reason", rename_all = "snake_case")]
pub enum SweepDecision {
    /// The lane is removed.
    Remove(SweepReason),
    /// The lane stays.
    Keep(Stays),
}

/// The reason for removing a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SweepReason {
    /// It was not claimed for too long.
    #[serde(rename = "it is old")]
    Old,
    /// The disk has too little free space.
    #[serde(rename = "the disk is short of room")]
    DiskFloor,
}

/// The reason for keeping a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Stays {
    /// A process works in it.
    #[serde(rename = "it is in use")]
    InUse,
    /// Its target is not configured, so its work cannot be compared with the primary.
    #[serde(rename = "its target is not configured")]
    UnknownTarget,
    /// No condition of the policy applies.
    #[serde(rename = "nothing asks for it to go")]
    NoNeed,
}

impl Lanes {
    /// Decides what a sweep would remove now. Changes nothing.
    pub fn plan_sweep(
        &self,
        targets: &[Target],
        policy: &SweepPolicy,
    ) -> Result<SweepPlan, InspectError> {
        let lanes = self.list()?;
        let free = free_space(self.root())
            .map_err(|source| InspectError { path: self.root().to_owned(), source })?;
        let known = |lane: &LaneReport| targets.iter().any(|target| target.name() == lane.target);
        Ok(SweepPlan { free, items: decide(lanes, free, policy, known) })
    }
}

/// Returns the bytes that an unprivileged user can still write on the disk of `root`, which need not exist.
pub fn free_space(root: &Utf8Path) -> io::Result<u64> {
    let made = root.ancestors().find(|above| above.exists()).unwrap_or(root);
    let disk = rustix::fs::statvfs(made.as_std_path())?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Removes the oldest lanes first, and no more than necessary.
fn decide(
    lanes: Vec<LaneReport>,
    free: u64,
    policy: &SweepPolicy,
    known: impl Fn(&LaneReport) -> bool,
) -> Vec<SweepItem> {
    let mut items: Vec<SweepItem> = lanes
        .into_iter()
        .map(|lane| {
            let age = lane.used.and_then(|used| policy.now.duration_since(used).ok());
            let decision = SweepDecision::Keep(match lane.holder {
                Some(_) => Stays::InUse,
                None if !known(&lane) => Stays::UnknownTarget,
                None => Stays::NoNeed,
            });
            SweepItem { lane, age, decision }
        })
        .collect();
    // An unknown age counts as new: a clock that was set back must not remove every lane.
    items.sort_by_key(|item| {
        (std::cmp::Reverse(item.age), item.lane.slot, item.lane.target.clone())
    });
    let mut free = free;
    for item in &mut items {
        if item.decision != SweepDecision::Keep(Stays::NoNeed) {
            continue;
        }
        let old = policy.max_age.is_some_and(|most| item.age.is_some_and(|age| age > most));
        // `free` counts what the lanes before this one will free, so no lane is removed beyond the
        // floor.
        let full = policy.min_free.is_some_and(|floor| free < floor);
        let reason = match (old, full) {
            (true, _) => SweepReason::Old,
            (false, true) => SweepReason::DiskFloor,
            (false, false) => continue,
        };
        item.decision = SweepDecision::Remove(reason);
        free = free.saturating_add(item.lane.size);
    }
    // A stable sort, so the lanes to remove keep their order.
    items.sort_by_key(|item| matches!(item.decision, SweepDecision::Keep(_)));
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hydrate::HydrationState, inspect::LaneState, provision::LaneKind};

    const DAY: u64 = 24 * 3600;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1000 * DAY)
    }

    /// A lane that was last used some days ago and has some bytes.
    fn lane(slot: u32, days: Option<u64>, size: u64) -> LaneReport {
        LaneReport {
            slot,
            target: "app".to_owned(),
            path: format!("/lanes/lane-{slot}/app").into(),
            kind: LaneKind::Reference,
            primary: "/app/.git".into(),
            state: LaneState::Ready,
            base: None,
            head: None,
            dirty: None,
            holder: None,
            hydration: HydrationState::None,
            size,
            used: days.map(|days| now() - Duration::from_secs(days * DAY)),
        }
    }

    fn shown(
        lanes: Vec<LaneReport>,
        free: u64,
        floor: Option<u64>,
        days: Option<u64>,
    ) -> Vec<String> {
        let max_age = days.map(|days| Duration::from_secs(days * DAY));
        let policy = SweepPolicy { min_free: floor, max_age, now: now() };
        decide(lanes, free, &policy, |lane| lane.target == "app")
            .iter()
            .map(|item| format!("{} {:?}", item.lane.slot, item.decision))
            .collect()
    }

    #[test]
    fn nothing_goes_where_nothing_asks_for_it() {
        let lanes = || vec![lane(0, Some(100), 10), lane(1, Some(1), 10)];
        let all_stay = ["0 Keep(NoNeed)", "1 Keep(NoNeed)"];
        assert_eq!(shown(lanes(), 0, None, None), all_stay);
        assert_eq!(shown(lanes(), 50, Some(50), Some(100)), all_stay);
    }

    #[test]
    fn the_oldest_go_first_and_no_more_than_are_needed() {
        let lanes = vec![lane(0, Some(1), 30), lane(1, Some(9), 30), lane(2, Some(5), 30)];
        assert_eq!(
            shown(lanes, 10, Some(60), None),
            ["1 Remove(DiskFloor)", "2 Remove(DiskFloor)", "0 Keep(NoNeed)"]
        );
    }

    #[test]
    fn room_that_the_old_ones_give_is_counted() {
        let lanes = vec![lane(0, Some(1), 30), lane(1, Some(9), 30)];
        assert_eq!(shown(lanes, 40, Some(60), Some(7)), ["1 Remove(Old)", "0 Keep(NoNeed)"]);
    }

    #[test]
    fn what_is_in_use_or_unknown_stays_however_old() {
        let mut lanes = vec![lane(0, Some(9), 1), lane(1, Some(9), 1), lane(2, None, 1)];
        lanes[0].holder = Some(crate::LaneHolder { pid: Some(7) });
        lanes[1].target = "other".to_owned();
        assert_eq!(
            shown(lanes, 0, None, Some(1)),
            ["0 Keep(InUse)", "1 Keep(UnknownTarget)", "2 Keep(NoNeed)",]
        );
    }

    #[test]
    fn a_lane_from_the_future_is_the_last_to_go() {
        let mut lanes = vec![lane(0, Some(0), 5), lane(1, Some(3), 5)];
        lanes[0].used = Some(now() + Duration::from_secs(DAY));
        assert_eq!(shown(lanes, 0, Some(5), Some(1)), ["1 Remove(Old)", "0 Keep(NoNeed)"]);
    }
}
