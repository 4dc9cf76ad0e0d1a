//! Removes lanes by age and for free disk space.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use pdca_lanes::{Stays, SweepDecision, SweepItem, SweepPolicy, SweepReason, Target};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::explain::lanes as explain;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::upkeep::lanes::remove::{self, RemovalRow};
use crate::upkeep::lanes::{self, WorkspaceLanes};
use crate::words::{age as ago, size};

const DAY: u64 = 24 * 3600;
const GIB: u64 = 1 << 30;

/// The fate of one lane, actual or predicted.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    /// `remove` or `keep`.
    decision: &'static str,
    reason: String,
    size: u64,
    /// Seconds since the last claim.
    age: Option<u64>,
    #[serde(flatten)]
    lane: RemovalRow,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SweepReport {
    dry_run: bool,
    /// Free bytes before the sweep.
    free: u64,
    lanes: Vec<Row>,
}

/// Removes lanes that were not used for so many days, and further ones until so many GiB are free, the oldest first.
pub(crate) fn sweep(
    older_than: Option<u64>,
    min_free_gb: Option<u64>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx)?;
    let config = &place.workspace.config.lanes;
    let days = older_than.or(config.max_age_days);
    let floor = min_free_gb.or(config.min_free_gb);
    if days.is_none() && floor.is_none() {
        return Err(Failure::usage("nothing says which lanes are to go").hint(
            "give `--older-than DAYS` or `--min-free-gb GB`, or set `max_age_days` or `min_free_gb` in [lanes]",
        ));
    }
    let now = u64::try_from(cx.env.now()).unwrap_or(0);
    let policy = SweepPolicy::new(UNIX_EPOCH + Duration::from_secs(now))
        .with_min_free(floor.map(|floor| floor.saturating_mul(GIB)))
        .with_max_age(days.map(|days| Duration::from_secs(days.saturating_mul(DAY))));
    let targets = place.targets(None)?;
    let dry_run = cx.globals.dry_run;
    let _kept_away = if dry_run { None } else { Some(lanes::without_driver(cx)?) };
    let plan =
        place.lanes.plan_sweep(&targets, &policy).map_err(|error| explain::inspect(&error))?;
    let mut rows = Vec::new();
    for item in &plan.items {
        let seen = &item.lane;
        let lane = match target_to_sweep(item, &targets) {
            Some(target) if dry_run => remove::foreseen(seen, place.lanes.has_work(seen, target)),
            Some(target) => remove::row(seen, place.lanes.sweep(item, target), target.path()),
            None => remove::foreseen(seen, None),
        };
        rows.push(row(item, lane));
    }
    let report = SweepReport { dry_run, free: plan.free, lanes: rows };
    let failed = report.going().any(|row| row.lane.kept_because.is_some());
    let exit = match (failed, report.going().next()) {
        (true, _) => Exit::Unexpected,
        (false, None) => Exit::NothingToDo,
        (false, Some(_)) => Exit::Done,
    };
    Ok(Response::new(report, exit))
}

/// Returns the target of a lane to remove.
fn target_to_sweep<'a>(item: &SweepItem, targets: &'a [Target]) -> Option<&'a Target> {
    match item.decision {
        SweepDecision::Remove(_) => targets.iter().find(|target| target.name() == item.lane.target),
        SweepDecision::Keep(_) => None,
    }
}

fn row(item: &SweepItem, lane: RemovalRow) -> Row {
    let (decision, reason) = match item.decision {
        SweepDecision::Remove(SweepReason::Old) => ("remove", "it is old"),
        SweepDecision::Remove(SweepReason::DiskFloor) => ("remove", "the disk is short of room"),
        SweepDecision::Keep(Stays::InUse(_)) => ("keep", "it is in use"),
        SweepDecision::Keep(Stays::UnknownTarget) => ("keep", "its target is not configured"),
        SweepDecision::Keep(Stays::NoNeed) => ("keep", "nothing asks for it to go"),
    };
    let age = item.age.map(|age| age.as_secs());
    Row { decision, reason: reason.to_owned(), size: item.lane.size, age, lane }
}

impl Row {
    fn goes(&self) -> bool {
        self.decision == "remove"
    }
}

impl SweepReport {
    fn going(&self) -> impl Iterator<Item = &Row> {
        self.lanes.iter().filter(|row| row.goes())
    }
}

impl Report for SweepReport {
    const KIND: &'static str = "sweep";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "{} free", size(self.free))?;
        for row in &self.lanes {
            let lane = format!("lane {} of {}", row.lane.slot, row.lane.target);
            let age = row.age.map_or_else(String::new, |age| format!(", used {} ago", ago(age)));
            if row.goes() {
                remove::tell(&row.lane, cx, out)?;
                writeln!(out, "  because {} ({}{age})", row.reason, size(row.size))?;
            } else if cx.globals.verbose > 0 {
                writeln!(out, "{lane}: stays, {} ({}{age})", row.reason, size(row.size))?;
            }
        }
        if self.going().next().is_none() {
            writeln!(out, "no lane has to go")?;
        }
        Ok(())
    }
}
