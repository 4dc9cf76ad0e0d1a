//! Removes leftovers of runs that are no longer needed.

mod left;

use std::io::Write;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_driver::{
    EffectSide, Effects, LaneOwner, LaneOwners, Point, Prune, RecordOf, RunStatus, WorkspaceConfig,
    has_work, prune, run_statuses, to_prune,
};
use pdca_journal::Liveness;
use pdca_lanes::{LaneReport, RemovalStep, Target};
use pdca_state::{BundleId, State};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::explain::lanes as explain;
use crate::failure::Failure;
use crate::process_env;
use crate::report::{Report, Response};
use crate::session;
use crate::upkeep::lanes;
use crate::upkeep::recover::{take_up, unexpected};
use pdca_workspace::lanes::{WorkspaceLanes, removal};

const DAY: u64 = 24 * 3600;

/// One removal, or the reason against it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Step {
    /// `end-run`, `end-integration`, `checkout`, `anchor`, `record` or `evidence`.
    what: &'static str,
    name: String,
    /// `remove`, `end` or `keep`.
    decision: &'static str,
    reason: String,
    /// It was done; never with `--dry-run`.
    done: bool,
    /// The file with the rescued contents of a checkout.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    kept: Option<Utf8PathBuf>,
    /// The command that fetches them.
    fetch: Option<String>,
    /// The reason it could not be done.
    error: Option<String>,
}

impl Step {
    fn new(
        what: &'static str,
        name: impl Into<String>,
        decision: &'static str,
        reason: impl Into<String>,
    ) -> Self {
        let (name, reason) = (name.into(), reason.into());
        Self { what, name, decision, reason, done: false, kept: None, fetch: None, error: None }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CleanupReport {
    dry_run: bool,
    steps: Vec<Step>,
}

/// Removes leftovers of finished work; records of runs that are over stay for so many days.
pub(crate) fn cleanup(keep_days: u64, cx: &Context<'_>) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let dry_run = cx.globals.dry_run;
    let effects = crate::faults::effects(cx)?;
    let effects: &dyn Effects = effects.as_ref();
    // Before the drivers are locked out: ending a run takes the same locks.
    let (mut steps, active) = runs(&site, effects, dry_run)?;
    // Held to the end, so that no driver starts in a checkout that is being removed.
    let _kept_away = if dry_run { None } else { Some(lanes::without_driver(cx)?) };
    let watched = (!dry_run).then_some(effects);
    steps.extend(checkouts(cx, &site, active.as_deref(), watched)?);
    let (ended, ending) = left::integrations(&site, watched)?;
    steps.extend(ended);
    let keep = Duration::from_secs(keep_days.saturating_mul(DAY));
    steps.extend(left::anchors(cx, &site, keep, &ending, watched)?);
    for one in to_prune(&site, process_env::moment(), keep)? {
        // A run that ends only now is left to the next call, as `-n` announces it.
        if one.run.as_ref().is_none_or(|(run, _)| !ending.contains(run)) {
            steps.push(record(&one, keep_days, watched));
        }
    }
    steps.extend(left::evidence(cx, &site, &ending, watched)?);
    let report = CleanupReport { dry_run, steps };
    let failed = report.steps.iter().any(|step| step.error.is_some());
    let exit = match (failed, report.has_work()) {
        (true, _) => Exit::Unexpected,
        (false, false) => Exit::NothingToDo,
        (false, true) => Exit::Done,
    };
    Ok(Response::new(report, exit))
}

/// Ends runs in which nothing is left to do; also returns an active one, if any.
fn runs(
    site: &WorkspaceConfig,
    effects: &dyn Effects,
    dry_run: bool,
) -> Result<(Vec<Step>, Option<String>), Failure> {
    let mut steps = Vec::new();
    let mut active = None;
    for sighting in run_statuses(site)? {
        let is_done = |sighting: &RunStatus| {
            sighting.driver == Liveness::Dead
                && sighting.state.as_ref().is_ok_and(|state| !has_work(site, state))
        };
        if !is_done(&sighting) {
            active = Some(sighting.id.to_string());
            continue;
        }
        let name = format!("run {}", sighting.id);
        let mut step = Step::new("end-run", name, "end", "nothing is left to do in it");
        if !dry_run {
            let (begun, _admitted) = take_up(&sighting, site)?;
            let end = || begun.run.finish();
            step.done = effects.perform("end-run", end).map_err(|error| unexpected(&error))?;
        }
        steps.push(step);
    }
    Ok((steps, active))
}

fn checkouts(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    active: Option<&str>,
    effects: Option<&dyn Effects>,
) -> Result<Vec<Step>, Failure> {
    if cx.workspace()?.targets.is_empty() {
        return Ok(Vec::new());
    }
    let place = WorkspaceLanes::of(cx.workspace()?)?;
    let targets = place.targets(None)?;
    let there = place.lanes.list().map_err(|error| explain::inspect(&error))?;
    let mut steps = Vec::new();
    for lane in &there {
        let name = format!("lane {} of {}", lane.slot, lane.target);
        let target = targets.iter().find(|target| target.name() == lane.target);
        match (stays(lane, site, active), target) {
            (Some(why), _) => steps.push(Step::new("checkout", name, "keep", why)),
            (None, None) => {
                steps.push(Step::new("checkout", name, "keep", "its target is not configured"));
            }
            (None, Some(target)) => {
                let step = Step::new("checkout", name, "remove", "nothing unfinished lies in it");
                steps.push(match effects {
                    None => step,
                    Some(effects) => removed(step, lane, (&place, target), effects),
                });
            }
        }
    }
    Ok(steps)
}

fn removed(
    step: Step,
    lane: &LaneReport,
    (place, target): (&WorkspaceLanes<'_>, &Target),
    effects: &dyn Effects,
) -> Step {
    let tell = |step: RemovalStep| {
        let name = match step {
            RemovalStep::Rescued => "lane-rescued",
            RemovalStep::Kept => "lane-kept",
            RemovalStep::Renamed => "lane-renamed",
            RemovalStep::Cleared => "lane-cleared",
            RemovalStep::Left => "lane-left",
        };
        effects.announce(Point { name, when: EffectSide::After });
    };
    let go = || place.lanes.remove_told(lane.slot, target, &tell);
    let row = removal(lane, effects.perform("checkout", go), target.path());
    Step { done: row.removed, kept: row.bundle, fetch: row.fetch, error: row.kept_because, ..step }
}

/// Returns the reason to keep a checkout.
fn stays(lane: &LaneReport, site: &WorkspaceConfig, active: Option<&str>) -> Option<String> {
    if lane.holder.is_some() {
        return Some("it is in use".to_owned());
    }
    // Whatever the owner notes say: a run that is taken up expects the checkouts that its record
    // names.
    if let Some(run) = active {
        return Some(format!("run {run} is not over"));
    }
    match LaneOwners::in_lanes_of(site).of(lane.slot, &lane.target) {
        // A combination can be made again from the seals.
        LaneOwner::Nobody | LaneOwner::Combination => None,
        LaneOwner::Stranger => Some("work of another workspace lies in it".to_owned()),
        LaneOwner::Bundle(id) => unfinished(site, &id).map(|state| format!("{id} is {state}")),
    }
}

/// Returns the state of a bundle that may continue; `None` if it is finished or gone.
fn unfinished(site: &WorkspaceConfig, id: &BundleId) -> Option<&'static str> {
    let state = match site.dirs.bundles.bundle(id).glance() {
        Ok(glance) => glance.state,
        Err(pdca_state::LoadError::Missing { .. }) => return None,
        Err(_) => return Some("not readable"),
    };
    match state {
        State::Complete | State::Discontinued | State::Resolved => None,
        State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => Some(state.as_str()),
    }
}

fn record(one: &Prune, days: u64, effects: Option<&dyn Effects>) -> Step {
    let mut step = if let Some((run, phase)) = &one.run {
        let reason = format!("it is {phase} for more than {days} days");
        let of = match one.of {
            RecordOf::Run => "run",
            RecordOf::Integration => "integration",
        };
        Step::new("record", format!("{of} {run}"), "remove", reason)
    } else {
        let name = one.dir.file_name().unwrap_or_default();
        Step::new("record", name, "remove", "a crash left it")
    };
    if let Some(effects) = effects {
        match effects.perform("record", || prune(one)) {
            Ok(()) => step.done = true,
            Err(error) => step.error = Some(error.to_string()),
        }
    }
    step
}

impl CleanupReport {
    /// Returns whether anything is removed or would be.
    fn has_work(&self) -> bool {
        self.steps.iter().any(|step| step.decision != "keep")
    }
}

impl Report for CleanupReport {
    const KIND: &'static str = "cleanup";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for step in &self.steps {
            print(step, cx, out)?;
        }
        if !self.has_work() {
            writeln!(out, "nothing has to go")?;
        }
        Ok(())
    }
}

/// Prints the same line with and without `--dry-run`, except for the tense.
fn print(step: &Step, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let Step { name, reason, decision, .. } = step;
    let said = match (*decision, step.done, &step.error) {
        ("keep", ..) if cx.globals.verbose == 0 => return Ok(()),
        ("keep", ..) => "stays",
        (_, _, Some(_)) => "could not be removed",
        ("end", true, None) => "ended",
        ("end", false, None) => "would be ended",
        (_, true, None) => "removed",
        (_, false, None) => "would be removed",
    };
    writeln!(out, "{name}: {said} ({reason})")?;
    if let Some(error) = &step.error {
        writeln!(out, "  {}", cx.out.bad(error))?;
    }
    if let Some(kept) = &step.kept {
        writeln!(out, "  kept: {}", cx.show(kept))?;
    }
    if let Some(fetch) = &step.fetch {
        writeln!(out, "  {} {fetch}", cx.out.accent("get it back:"))?;
    }
    Ok(())
}
