//! Removes lanes, and rescues their work.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_lanes::{LaneReport, Removed, RescuedWork};
use serde::Serialize;

use super::{WorkspaceLanes, explain, require_slots, without_driver};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::shell;

/// The fate of one lane.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RemovalRow {
    pub(crate) slot: u32,
    pub(crate) target: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(crate) path: Utf8PathBuf,
    pub(crate) removed: bool,
    /// The file with its rescued work.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) bundle: Option<Utf8PathBuf>,
    /// The command that fetches it.
    pub(crate) fetch: Option<String>,
    /// The place that a broken checkout was moved to.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) moved_aside: Option<Utf8PathBuf>,
    /// The reason it was not removed.
    pub(crate) kept_because: Option<String>,
    /// There is, or would be, work to rescue.
    pub(crate) has_work: Option<bool>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Removal {
    dry_run: bool,
    lanes: Vec<RemovalRow>,
}

/// Removes the lanes in these slots, or all.
pub(crate) fn remove(
    slots: Option<&[u32]>,
    only: Option<&str>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx)?;
    let targets = place.targets(only)?;
    let there = place.lanes.list().map_err(|error| explain::inspect(&error))?;
    let slots = if let Some(slots) = slots {
        require_slots(slots, &there)?
    } else {
        let mut slots: Vec<u32> = there.iter().map(|lane| lane.slot).collect();
        slots.dedup();
        slots
    };
    let dry_run = cx.globals.dry_run;
    let _kept_away = if dry_run { None } else { Some(without_driver(cx)?) };
    let mut rows = Vec::new();
    for lane in there.iter().filter(|lane| slots.contains(&lane.slot)) {
        let Some(target) = targets.iter().find(|target| target.name() == lane.target) else {
            if only.is_none() {
                let why = Some("its target is not configured".to_owned());
                rows.push(RemovalRow { kept_because: why, ..foreseen(lane, None) });
            }
            continue;
        };
        rows.push(if dry_run {
            foreseen(lane, place.lanes.has_work(lane, target))
        } else {
            row(lane, place.lanes.remove(lane.slot, target), target.path())
        });
    }
    let failed = rows.iter().any(|row| row.kept_because.is_some());
    let nothing = rows.is_empty();
    let exit = match (failed, nothing) {
        (true, _) => Exit::Unexpected,
        (false, true) => Exit::NothingToDo,
        (false, false) => Exit::Done,
    };
    Ok(Response::new(Removal { dry_run, lanes: rows }, exit))
}

impl Report for Removal {
    const KIND: &'static str = "lanes-remove";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.lanes.is_empty() {
            writeln!(out, "there are no lanes to remove")?;
        }
        self.lanes.iter().try_for_each(|row| tell(row, cx, out))
    }
}

/// Predicts the fate of a lane.
pub(crate) fn foreseen(lane: &LaneReport, has_work: Option<bool>) -> RemovalRow {
    RemovalRow {
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

/// Returns the fate of a lane.
pub(crate) fn row(
    lane: &LaneReport,
    removed: Result<Removed, pdca_lanes::RemoveError>,
    primary: &camino::Utf8Path,
) -> RemovalRow {
    let row = foreseen(lane, None);
    match removed {
        Ok(Removed { rescued, kept, moved_aside, .. }) => {
            let show =
                |commit: String| format!("git -C {} show {commit:.12}", shell(primary.as_str()));
            let fetch = |kept: &RescuedWork| {
                let (primary, bundle) = (shell(primary.as_str()), shell(kept.bundle.as_str()));
                format!(
                    "git -C {primary} fetch {bundle} 'refs/*:refs/rescued/lane-{}/*'",
                    lane.slot
                )
            };
            RemovalRow {
                removed: true,
                kept_because: None,
                has_work: Some(rescued.is_some() || kept.is_some()),
                // The work in a linked worktree is in the target's own repository.
                fetch: kept.as_ref().map(fetch).or_else(|| rescued.map(show)),
                bundle: kept.map(|kept| kept.bundle),
                moved_aside,
                ..row
            }
        }
        Err(error) => {
            let told = explain::remove(&error);
            let what =
                told.problems.first().map_or_else(String::new, |problem| problem.what.clone());
            RemovalRow { kept_because: Some(what), ..row }
        }
    }
}

pub(crate) fn tell(row: &RemovalRow, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let lane = format!("lane {} of {}", row.slot, row.target);
    match (&row.kept_because, row.removed) {
        (Some(why), _) => writeln!(out, "{lane}: {} ({why})", cx.out.warn("stays"))?,
        (None, true) => writeln!(out, "{lane}: removed")?,
        (None, false) => {
            let work = match row.has_work {
                Some(true) => "; what is in it would be kept in a bundle",
                Some(false) => "",
                None => "; anything the target does not have would be kept in a bundle",
            };
            writeln!(out, "{lane}: would be removed{work}")?;
        }
    }
    if let Some(aside) = &row.moved_aside {
        writeln!(out, "  its checkout was broken, and is as it was in {aside}")?;
    }
    if let Some(bundle) = &row.bundle {
        writeln!(out, "  kept: {}", cx.show(bundle))?;
    }
    if let Some(fetch) = &row.fetch {
        writeln!(out, "  {} {fetch}", cx.out.accent("get it back:"))?;
    }
    Ok(())
}
