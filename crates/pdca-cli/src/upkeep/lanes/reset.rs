//! Resets a lane to its base, and rescues its work.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_lanes::{LaneReport, Reset, Saved, Target};
use serde::Serialize;

use super::{WorkspaceLanes, explain, require_slots, without_driver};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::shell;

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    slot: u32,
    target: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    path: Utf8PathBuf,
    base: String,
    reset: Reset,
    /// The commit with the rescued work, or the path to which a broken checkout was moved, if there was any.
    rescued: Option<String>,
    #[serde(skip)]
    is_moved: bool,
    done: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ResetReport {
    dry_run: bool,
    lanes: Vec<Row>,
}

/// Resets the lane in a slot to its base, and rescues its work first.
pub(crate) fn reset(
    slot: u32,
    pristine: bool,
    only: Option<&str>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx)?;
    let targets = place.targets(only)?;
    let there = place.lanes.list().map_err(|error| explain::inspect(&error))?;
    require_slots(&[slot], &there)?;
    let what = if pristine { Reset::Pristine } else { place.workspace.config.lanes.reset };
    let dry_run = cx.globals.dry_run;
    let _kept_away = if dry_run { None } else { Some(without_driver(cx)?) };
    let mut rows = Vec::new();
    for target in &targets {
        let lane = there.iter().find(|lane| lane.slot == slot && lane.target == target.name());
        let Some(lane) = lane else { continue };
        rows.push(reset_one(&place, lane, target, what, dry_run)?);
    }
    Ok(Response::done(ResetReport { dry_run, lanes: rows }))
}

impl Row {
    /// Returns where the rescued work is, for a person.
    fn shown(&self, rescued: &str) -> String {
        if self.is_moved {
            return shell(rescued).into_owned();
        }
        format!("git -C {} show {rescued:.12}", shell(self.path.as_str()))
    }
}

impl Report for ResetReport {
    const KIND: &'static str = "lanes-reset";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for row in &self.lanes {
            let (would, kept) = if row.done { ("", "rescued") } else { ("would be ", "to rescue") };
            writeln!(out, "lane {} of {}: {would}reset to {:.12}", row.slot, row.target, row.base)?;
            match &row.rescued {
                Some(rescued) if row.done => writeln!(out, "  {kept}: {}", row.shown(rescued))?,
                Some(_) => writeln!(out, "  {kept}: the changes that are in it")?,
                None => {}
            }
        }
        Ok(())
    }
}

fn reset_one(
    place: &WorkspaceLanes<'_>,
    report: &LaneReport,
    target: &Target,
    what: Reset,
    dry_run: bool,
) -> Result<Row, Failure> {
    let base = place.base(target)?.commit;
    let mut row = Row {
        slot: report.slot,
        target: target.name().to_owned(),
        path: report.path.clone(),
        base,
        reset: what,
        rescued: None,
        is_moved: false,
        done: !dry_run,
    };
    if dry_run {
        let unlanded = report.head.is_some() && report.head != report.base;
        // A tree that only git could judge counts as changed: the forecast must not promise that
        // nothing is kept.
        let keeps = unlanded || report.dirty != Some(false) && report.head.is_some();
        row.rescued = keeps.then(|| report.head.clone().unwrap_or_default());
        return Ok(row);
    }
    let lanes = place.lanes.clone().of_kind(report.kind);
    let lane = lanes.claim(report.slot, target).map_err(|error| explain::claim(&error))?;
    let name = format!("lane-{}", report.slot);
    let mut moved = None;
    match lane.save(&name).map_err(|error| explain::claim(&error))? {
        Saved::Nothing => {}
        Saved::Commit(commit) => row.rescued = Some(commit),
        Saved::Aside { path, why: _ } => moved = path,
    }
    match lane.reset_with(&row.base, what) {
        Err(error) if error.is_of_the_lane() => {
            moved = moved.or(lane.renew().map_err(|error| explain::claim(&error))?);
            lane.reset_with(&row.base, what).map_err(|error| explain::lane(&error))?;
        }
        stood => stood.map_err(|error| explain::lane(&error))?,
    }
    // Rather than a commit, which was moved away with its repository.
    if let Some(path) = moved {
        (row.rescued, row.is_moved) = (Some(path.into()), true);
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_that_was_moved_is_shown_by_its_path_and_a_commit_by_the_command_that_reads_it() {
        let row = |is_moved| Row {
            slot: 0,
            target: "app".to_owned(),
            path: "/ws.lanes/lane-0/app".into(),
            base: String::new(),
            reset: Reset::Clean,
            rescued: None,
            is_moved,
            done: true,
        };
        assert_eq!(row(true).shown("/ws.lanes/rescued/app-0"), "/ws.lanes/rescued/app-0");
        let shown = row(false).shown("fc1959014369fc1959014369");
        assert_eq!(shown, "git -C /ws.lanes/lane-0/app show fc1959014369");
    }
}
