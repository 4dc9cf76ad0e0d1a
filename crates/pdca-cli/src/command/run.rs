//! `pdca run`: Do, Check, assemble, stop, for the bundles named.

use std::io::Write;
use std::num::NonZeroU32;

use pdca_dag::{Frontier, Plan, Why};
use pdca_driver::pool::{Batched, Stop};
use pdca_driver::{Batch, DriveError, Halt, Site};
use pdca_state::{Bundle, BundleId};
use serde::Serialize;

use super::plan::rejected;
use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::{self, EventsArg};

/// Build, gate and review bundles, and stop where a person is due
///
/// Each bundle goes on from the files it has: nothing that is done is done again. Stopped or killed, the same command
/// goes on. With several lanes as many bundles are in flight at once as their briefs allow: one starts when all it depends
/// on is complete, and never beside one that it conflicts with or whose files it touches.
///
/// Exit codes: 0 at sign-off, 2 the briefs contradict each other and nothing was started, 3 a person is due before
/// anything can be done, 4 nothing to do, 100 a gating check is red (the bundle is at sign-off all the same), 130
/// interrupted.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca run 36                       # one bundle, until it waits for sign-off
  pdca run 36 PROJ-12 --lanes 2 --events run.jsonl
  pdca run 36 PROJ-12 --dry-run     # what would be started, and in which order
  PDCA_LEAVES_MODE=stub pdca run 36 # no model is called")]
pub(crate) struct Args {
    /// The bundles
    #[arg(value_name = "ID", required = true)]
    ids: Vec<IdArg>,
    #[command(flatten)]
    drive: DriveArgs,
}

/// How bundles are driven, for the commands that drive.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct DriveArgs {
    /// How many bundles may be in flight at once [default: `lanes` in [driver], 1]
    #[arg(long, short = 'l', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::config::MAX_LANES)))]
    lanes: Option<u32>,
    #[command(flatten)]
    events: EventsArg,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let bundles = cx.require_bundles(&args.ids)?;
    let site = session::site(cx)?;
    drive_all(&site, Some(&bundles), &args.drive, cx, out, err)
}

/// Drives these bundles, or all that are not finished, and says what became of each.
pub(super) fn drive_all(
    site: &Site,
    bundles: Option<&[Bundle]>,
    args: &DriveArgs,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    session::require_programs(cx, site)?;
    let load = || -> Result<(Batch, Plan), Failure> {
        let chosen = bundles.map(|all| all.iter().map(|bundle| bundle.id().clone()).collect());
        let batch = match &chosen {
            Some(chosen) => Batch::of(site, chosen)?,
            None => Batch::of_all(site)?,
        };
        let plan = batch.plan().map_err(|rejection| rejected(&rejection, cx))?;
        Ok((batch, plan))
    };
    let (batch, plan) = load()?;
    for remark in &batch.remarks {
        cx.note(err, &format!("{} {}: {}", cx.err.warn("warning:"), remark.place, remark.text))?;
    }
    let lanes = args.lanes.unwrap_or(cx.workspace()?.config.driver.lanes);
    let lanes = NonZeroU32::new(lanes).unwrap_or(NonZeroU32::MIN);
    if cx.globals.dry_run {
        return tell_plan(&batch, &plan, lanes, cx, out);
    }
    let _admitted = site.admit().map_err(|error| session::refused(&error))?;
    // Whoever drove until now may have changed what there is to do.
    let (batch, plan) = load()?;
    let batched =
        session::drive(cx, site, &batch, &plan, lanes, args.events.path(cx).as_deref(), err)?;
    let report = Report::of(&batched);
    if cx.globals.json {
        cx.emit_json(out, "run", &report)?;
    } else {
        report.print(cx, out)?;
    }
    if let Some(stop) = batched.stopped.clone() {
        return Err(stopped(&stop));
    }
    match first_failure(batched) {
        Some(failure) => Err(failure),
        None => Ok(report.exit()),
    }
}

/// What would be started, in order, and what would not.
#[derive(Debug, Serialize)]
struct DryRun<'a> {
    lanes: u32,
    order: Vec<&'a BundleId>,
    blocked: Vec<Blocked>,
    waiting: Vec<&'a BundleId>,
}

#[derive(Debug, Serialize)]
struct Blocked {
    id: BundleId,
    blocked_by: Vec<BundleId>,
}

fn tell_plan(
    batch: &Batch,
    plan: &Plan,
    lanes: NonZeroU32,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let frontier = Frontier::new(plan);
    let mut told =
        DryRun { lanes: lanes.get(), order: Vec::new(), blocked: Vec::new(), waiting: Vec::new() };
    for id in plan.order() {
        match frontier.why(id) {
            Some(Why::Waits { on }) => told.blocked.push(Blocked {
                id: id.clone(),
                blocked_by: on.into_iter().map(|unmet| unmet.id).collect(),
            }),
            Some(_) | None => told.order.push(id),
        }
    }
    let has_work = |item: &&pdca_dag::Item| item.standing == pdca_dag::Standing::Active;
    told.waiting = batch.items.iter().filter(|item| !has_work(item)).map(|item| &item.id).collect();
    if cx.globals.json {
        cx.emit_json(out, "run-plan", &told)?;
        return Ok(Exit::Done);
    }
    let state = |id: &BundleId| {
        let glance = batch.bundle(id).and_then(|bundle| bundle.glance().ok());
        glance.map_or("cannot be read", |glance| glance.state.as_str())
    };
    for id in told.order.iter().chain(&told.waiting) {
        writeln!(out, "{}  {}", id.dir_name(), state(id))?;
    }
    for blocked in &told.blocked {
        let waits = cx.out.warn(waiting(&blocked.blocked_by));
        writeln!(out, "{}  {waits}", blocked.id.dir_name())?;
    }
    Ok(Exit::Done)
}

fn waiting(ids: &[BundleId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("[blocked-by: {}]", ids.join(", "))
}

/// What became of each bundle.
#[derive(Debug, Serialize)]
struct Report {
    bundles: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    id: BundleId,
    /// `sign-off`, `red`, `nothing-to-do`, `waiting`, `blocked`, `failed` or `interrupted`.
    outcome: Fate,
    #[serde(skip_serializing_if = "Option::is_none")]
    halt: Option<Halt>,
    steps: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<BundleId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Fate {
    Signoff,
    Red,
    NothingToDo,
    Waiting,
    Blocked,
    Failed,
    Interrupted,
}

impl Report {
    fn of(batched: &Batched) -> Self {
        let driven = batched.driven.iter().map(|(bundle, result)| Line::of(bundle, result));
        let left = batched.left.iter().map(|(bundle, why)| Line::left(bundle, why));
        Self { bundles: driven.chain(left).collect() }
    }

    fn print(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for line in &self.bundles {
            let name = line.id.dir_name();
            let p = cx.out;
            let said = match line.outcome {
                Fate::Signoff => {
                    format!("{}  pdca signoff {} show", p.good("waits for sign-off"), line.id)
                }
                Fate::Red => format!(
                    "{}  pdca status {}",
                    p.bad("a gating check is red, waits for sign-off"),
                    line.id
                ),
                Fate::NothingToDo => p.faint("nothing to do").to_string(),
                Fate::Waiting => p.warn("waits for a person").to_string(),
                Fate::Blocked => p.warn(waiting(&line.blocked_by)).to_string(),
                Fate::Failed => p.bad("failed").to_string(),
                Fate::Interrupted => p.warn("interrupted").to_string(),
            };
            writeln!(out, "{name}  {said}")?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        let any = |fate| self.bundles.iter().any(|line| line.outcome == fate);
        if any(Fate::Red) {
            Exit::GateRed
        } else if any(Fate::Signoff) {
            Exit::Done
        } else if any(Fate::Waiting) || any(Fate::Blocked) {
            Exit::Waiting
        } else {
            Exit::NothingToDo
        }
    }
}

impl Line {
    fn empty(bundle: &Bundle, outcome: Fate) -> Self {
        Self {
            id: bundle.id().clone(),
            outcome,
            halt: None,
            steps: 0,
            blocked_by: Vec::new(),
            error: None,
        }
    }

    /// One that was not started.
    fn left(bundle: &Bundle, why: &Why) -> Self {
        match why {
            Why::Waits { on } => Self {
                blocked_by: on.iter().map(|unmet| unmet.id.clone()).collect(),
                ..Self::empty(bundle, Fate::Blocked)
            },
            // Only a pool that was stopped leaves one that may start.
            Why::Ready { .. } | Why::Held { .. } | Why::Yields { .. } | Why::InFlight => {
                Self::empty(bundle, Fate::Interrupted)
            }
            Why::Halted | Why::Failed => Self::empty(bundle, Fate::Waiting),
            Why::Complete | Why::Ended => Self::empty(bundle, Fate::NothingToDo),
        }
    }

    fn of(bundle: &Bundle, result: &Result<pdca_driver::Drive, DriveError>) -> Self {
        match result {
            Ok(drive) => {
                let outcome = match drive.halt {
                    Halt::AwaitingSignoff if drive.red => Fate::Red,
                    Halt::AwaitingSignoff if drive.steps > 0 => Fate::Signoff,
                    Halt::AwaitingSignoff | Halt::Unplanned => Fate::Waiting,
                    Halt::Complete | Halt::Resolved | Halt::Discontinued => Fate::NothingToDo,
                };
                Self { halt: Some(drive.halt), steps: drive.steps, ..Self::empty(bundle, outcome) }
            }
            Err(DriveError::Interrupted) => Self::empty(bundle, Fate::Interrupted),
            Err(error) => {
                Self { error: Some(pdca_state::chain(error)), ..Self::empty(bundle, Fate::Failed) }
            }
        }
    }
}

/// What stopped the run, where it was no signal.
pub(super) fn stopped(stop: &Stop) -> Failure {
    match stop {
        Stop::Duration(longest) => {
            let span = crate::progress::span(*longest);
            Failure::new(
                Exit::Capped,
                format!("the run was at work for {span}, which is its limit"),
            )
            .hint("`max_duration_secs` in [driver] is the limit; the same command goes on")
        }
        Stop::Aborted { why } => {
            Failure::new(Exit::Interrupted, format!("the run was given up: {why}"))
                .hint("what is on disk is whole; `pdca status` shows it")
        }
        Stop::Room(short) => session::no_room(*short),
        Stop::Record { error } => Failure::unexpected(format!(
            "the run cannot be recorded any more: {error}"
        ))
        .hint("nothing that was not recorded was done; make room on the disk, and run it again"),
    }
}

/// The worst failure among the bundles, if any failed: an interruption first, and then what is nobody's mistake.
pub(super) fn first_failure(batched: Batched) -> Option<Failure> {
    let mut failures: Vec<Failure> = batched
        .driven
        .into_iter()
        .filter_map(|(bundle, result)| Some(session::explain(&bundle, result.err()?)))
        .collect();
    failures.sort_by_key(|failure| match failure.exit {
        Exit::Interrupted => 0,
        Exit::Unexpected => 1,
        Exit::Done
        | Exit::Usage
        | Exit::Waiting
        | Exit::NothingToDo
        | Exit::GateRed
        | Exit::CombinationRed
        | Exit::MergeConflict
        | Exit::Capped
        | Exit::RecoveryBlocked => 2,
    });
    let mut failures = failures.into_iter();
    let mut first = failures.next()?;
    first.problems.extend(failures.flat_map(|failure| failure.problems));
    Some(first)
}
