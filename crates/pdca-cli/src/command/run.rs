//! `pdca run`: runs the named bundles until a person has to decide.

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroU32;

use pdca_dag::{Frontier, Plan, Why};
use pdca_driver::integrate::GatedBase;
use pdca_driver::pool::{Batched, Stop};
use pdca_driver::{
    Batch, BeatError, BlockedPolicy, DueSplit, Halt, LaneCount, UnchangedReference,
    WorkspaceConfig, due_splits, split_due,
};
use pdca_journal::events::WarningCode;
use pdca_process::InstalledGit;
use pdca_state::{Bundle, BundleId};
use pdca_workspace::planning::plan_with_groups;
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::explain::planning::explained_in;
use crate::explain::rejection::explained;
use crate::explain::run as explain;
use crate::failure::Failure;
use crate::globals::{EventsArg, HostArgs};
use crate::report::{Report, Response};
use crate::session;
use crate::session::fleet::{RunPlaces, planned_slots, run_places};
use crate::style::printable;
use crate::words;

/// Build, gate and review bundles until a person has to decide
///
/// Each bundle continues from the files it has: finished steps are not repeated. After a stop or a kill, the same command
/// continues. With several lanes as many bundles are in flight at once as their briefs allow: one starts when all its
/// dependencies are complete, and never beside one that it conflicts with or shares files with.
///
/// Before any leaf is called the branch itself is gated once, unless it is known to be green; a red branch stops the run
/// (`gate_base` in [driver]).
///
/// Exit codes: 0 at sign-off, 2 the briefs contradict each other and nothing was started, 3 a person has to decide before
/// anything can be done, 4 nothing to do, 100 a gating check is red (the bundle is at sign-off nevertheless) or the branch
/// is red by itself (nothing was started), 130 interrupted.
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

/// Options of the commands that run bundles.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct DriveArgs {
    /// Run this many bundles at once, or `auto` for what the machine allows [default: `lanes` in [driver], 1]
    #[arg(long, short = 'l', value_name = "N|auto", allow_negative_numbers = true)]
    lanes: Option<LaneCount>,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    events: EventsArg,
}

impl DriveArgs {
    /// Returns the file that events are appended to.
    pub(super) fn events(&self, cx: &Context<'_>) -> Option<camino::Utf8PathBuf> {
        self.events.path(cx)
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let bundles = cx.require_bundles(&args.ids)?;
    let site = session::driver_config(cx)?;
    drive_all(&site, Some(&bundles), &args.drive, cx, err)
}

/// Runs these bundles, or all unfinished ones, and reports the outcome of each.
pub(super) fn drive_all(
    site: &WorkspaceConfig,
    bundles: Option<&[Bundle]>,
    args: &DriveArgs,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    InstalledGit::require()?;
    cx.workspace()?.require_all_distinct()?;
    session::require_programs(cx, site)?;
    let chosen: Option<BTreeSet<BundleId>> =
        bundles.map(|all| all.iter().map(|bundle| bundle.id().clone()).collect());
    let chosen = split_first(site, chosen, cx, err)?;
    let load = || {
        let batch = match &chosen {
            Some(chosen) => Batch::of(site, chosen)?,
            None => Batch::of_all(site)?,
        };
        planned(batch, site, cx)
    };
    let (batch, plan, _) = load()?;
    tell_oddities(&batch, &plan, cx, err)?;
    let choice = args.hosts.choice();
    if cx.globals.dry_run {
        let slots = planned_slots(cx, site, args.lanes, choice, err)?;
        return Ok(Response::done(RunDryRun::of(&batch, &plan, slots, cx)));
    }
    let RunPlaces { lanes, places } = run_places(cx, site, args.lanes, choice, err)?;
    let _admitted = site.locks().admit().map_err(|error| session::refused(&error))?;
    session::tell_changes(cx, err)?;
    // Loaded again under the lock: the driver before this one may have changed what there is to do.
    let (batch, plan, groups) = load()?;
    let places = places.as_ref();
    let todo = session::Todo { batch: &batch, plan: &plan, groups: &groups, lanes, places };
    let batched = session::run_bundles(cx, site, &todo, args.events.path(cx).as_deref(), err)?;
    let report = RunReport::of(&batched, &batch, &plan, cx);
    // What stopped the run explains why bundles failed or were not started, so it is told instead of them.
    let failure = match batched.stopped.as_ref().map(explain::stopped) {
        Some(stopped) => Some(stopped),
        None => explain::first_failure(batched),
    };
    // Interrupted while the branch was gated, before any bundle started.
    let failure = failure.or_else(|| {
        report.has(Fate::Interrupted).then(|| {
            Failure::new(Exit::Interrupted, "interrupted")
                .hint("nothing was started; the same command goes on")
        })
    });
    let exit = report.exit();
    Ok(Response::new(report, exit).failed(failure))
}

/// Runs these bundles, or all unfinished ones, none of them by name, and returns what came of it. A bundle that cannot start
/// is left alone.
pub(super) fn drive_unasked(
    site: &WorkspaceConfig,
    among: Option<&BTreeSet<BundleId>>,
    args: &DriveArgs,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Batched, Failure> {
    InstalledGit::require()?;
    cx.workspace()?.require_all_distinct()?;
    session::require_programs(cx, site)?;
    let _admitted = site.locks().admit().map_err(|error| session::refused(&error))?;
    session::tell_changes(cx, err)?;
    let among = split_admitted(site, among.cloned(), cx, err)?;
    let batch = match &among {
        Some(ids) => Batch::among(site, ids)?,
        None => Batch::of_all(site)?,
    };
    let (batch, plan, groups) = planned(batch, site, cx)?;
    tell_oddities(&batch, &plan, cx, err)?;
    let RunPlaces { lanes, places } = run_places(cx, site, args.lanes, args.hosts.choice(), err)?;
    let places = places.as_ref();
    let todo = session::Todo { batch: &batch, plan: &plan, groups: &groups, lanes, places };
    session::run_bundles(cx, site, &todo, args.events.path(cx).as_deref(), err)
}

/// Splits the bundles of which only some parts can start, and returns the bundles to run. Named, a part that waits for a
/// bundle that is not named is left out: it would be refused, and the ready parts with it.
fn split_first(
    site: &WorkspaceConfig,
    chosen: Option<BTreeSet<BundleId>>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Option<BTreeSet<BundleId>>, Failure> {
    let due = due_splits(site, chosen.as_ref())?;
    if due.is_empty() {
        return Ok(chosen);
    }
    if cx.globals.dry_run {
        for one in &due {
            cx.note(err, &format!("would split {}", words::due_split(one)))?;
        }
        return Ok(chosen.map(|ids| without(ids, &due)));
    }
    let _admitted = site.locks().admit().map_err(|error| session::refused(&error))?;
    let named = chosen.clone().unwrap_or_default();
    let done = split_and_tell(site, chosen.as_ref(), cx, err)?;
    Ok(chosen.map(|ids| {
        let new = done.iter().flat_map(|one| one.startable_with(&named));
        without(ids, &done).into_iter().chain(new).collect()
    }))
}

/// Like [`split_first`], for bundles that nobody named, with the lock of drivers held.
fn split_admitted(
    site: &WorkspaceConfig,
    among: Option<BTreeSet<BundleId>>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Option<BTreeSet<BundleId>>, Failure> {
    let done = split_and_tell(site, among.as_ref(), cx, err)?;
    Ok(among.map(|ids| {
        let waiting = done.iter().flat_map(|one| one.waiting.iter().map(|part| &part.id));
        let new = done.iter().flat_map(|one| &one.ready).chain(waiting).cloned();
        without(ids, &done).into_iter().chain(new).collect()
    }))
}

fn without(ids: BTreeSet<BundleId>, split: &[DueSplit]) -> BTreeSet<BundleId> {
    ids.into_iter().filter(|id| !split.iter().any(|one| one.id == *id)).collect()
}

fn split_and_tell(
    site: &WorkspaceConfig,
    chosen: Option<&BTreeSet<BundleId>>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Vec<DueSplit>, Failure> {
    let effects = crate::faults::effects(cx)?;
    let done = split_due(site, chosen, &cx.env.today(), effects.as_ref());
    let done = done.map_err(|error| Failure::from_error(Exit::Usage, &error))?;
    for (due, split) in &done {
        cx.note(err, &format!("split {}", words::due_split(due)))?;
        for UnchangedReference { id, why } in &split.unchanged {
            let text = format!("{id} still depends on {}: {why}; edit it there", due.id);
            cx.warn(err, WarningCode::DependencyGivenUp, text)?;
        }
    }
    Ok(done.into_iter().map(|(due, _)| due).collect())
}

/// Plans a batch. Reports all problems at once, including those of `lanes.json`.
fn planned(mut batch: Batch, site: &WorkspaceConfig, cx: &Context<'_>) -> Result<Loaded, Failure> {
    refuse_while_blocked(site)?;
    batch.postpone(&session::pauses(site));
    match plan_with_groups(cx.workspace()?, site, &batch) {
        Ok((plan, groups)) => Ok((batch, plan, groups)),
        Err(error) => Err(explained_in(error, cx)),
    }
}

/// Refuses to start anything while a bundle is blocked, where `[schedule] blocked` asks for that.
fn refuse_while_blocked(site: &WorkspaceConfig) -> Result<(), Failure> {
    if site.schedule.blocked == BlockedPolicy::Bundle {
        return Ok(());
    }
    let Some((id, (_, evidence))) =
        pdca_workspace::snapshot::blocked_bundles(site).into_iter().next()
    else {
        return Ok(());
    };
    let what = format!("{} is blocked, and `[schedule] blocked` keeps all others", id.dir_name());
    Err(Failure::new(Exit::RecoveryBlocked, what)
        .detail(printable(&evidence))
        .hint(format!("`pdca why {id}` tells more; `pdca unblock {id}` lifts the block")))
}

/// Tells what is odd about the briefs, what failed before, and what is left alone.
fn tell_oddities(
    batch: &Batch,
    plan: &Plan,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    for remark in &batch.remarks {
        cx.note(err, &format!("{} {}: {}", cx.err.warn("warning:"), remark.place, remark.text))?;
    }
    for one in &batch.failed {
        let said = words::failed(one);
        cx.note(err, &format!("{} failed before ({said}): trying again", one.id.dir_name()))?;
    }
    for left in LeftAlone::all(batch, plan, cx) {
        let said = format!("{} is left alone: {}", left.id.dir_name(), printable(&left.why));
        cx.note(err, &format!("{} {said}", cx.err.warn("warning:")))?;
        if let Some(hint) = &left.hint {
            cx.note(err, &format!("hint: {}", printable(hint)))?;
        }
    }
    Ok(())
}

/// The bundles, their plan, and the planning groups.
type Loaded = (Batch, Plan, Vec<Vec<BundleId>>);

/// The bundles that would be started, in order, and the others.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RunDryRun {
    lanes: u32,
    order: Vec<BundleId>,
    blocked: Vec<Blocked>,
    waiting: Vec<BundleId>,
    left_alone: Vec<LeftAlone>,
    /// The states of `order` and `waiting`.
    #[serde(skip)]
    states: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Blocked {
    id: BundleId,
    blocked_by: Vec<BundleId>,
}

/// A bundle that is not started and keeps no other from starting.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LeftAlone {
    id: BundleId,
    why: String,
    hint: Option<String>,
    blocked_by: Vec<BundleId>,
}

impl LeftAlone {
    /// Returns each bundle once, with all its problems.
    fn all(batch: &Batch, plan: &Plan, cx: &Context<'_>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for one in &batch.exhausted {
            all.push(Self {
                id: one.id.clone(),
                why: words::failed(one),
                hint: Some(format!("`pdca run {}` tries again", one.id)),
                blocked_by: Vec::new(),
            });
        }
        for problem in plan.left_alone() {
            let told = explained(problem, cx);
            let at = told.place.as_ref().map(|at| at.show(&cx.env.cwd)).unwrap_or_default();
            let why = format!("{} ({at})", told.what);
            let on = problem.on().cloned();
            match all.last_mut().filter(|last| last.id == *problem.id()) {
                Some(last) => {
                    last.why = format!("{}; {why}", last.why);
                    last.blocked_by.extend(on);
                }
                None => all.push(Self {
                    id: problem.id().clone(),
                    why,
                    hint: told.hint,
                    blocked_by: on.into_iter().collect(),
                }),
            }
        }
        all
    }

    fn line(&self, cx: &Context<'_>) -> String {
        let said = printable(&self.why).into_owned();
        format!("{}: {said}  pdca why {}", cx.out.warn("left alone"), self.id)
    }
}

impl RunDryRun {
    fn of(batch: &Batch, plan: &Plan, lanes: NonZeroU32, cx: &Context<'_>) -> Self {
        let frontier = Frontier::new(plan);
        let (mut order, mut blocked) = (Vec::new(), Vec::new());
        for id in plan.order() {
            let blocked_by = match frontier.why(id) {
                Some(Why::Waits { on }) => on.into_iter().map(|unmet| unmet.id).collect(),
                Some(Why::Held { by, .. }) => by.into_iter().map(|holder| holder.id).collect(),
                Some(_) | None => {
                    order.push(id.clone());
                    continue;
                }
            };
            blocked.push(Blocked { id: id.clone(), blocked_by });
        }
        let left_alone = LeftAlone::all(batch, plan, cx);
        let has_work = |item: &&pdca_dag::Item| item.standing == pdca_dag::ItemState::Active;
        let is_left = |id: &BundleId| left_alone.iter().any(|left| left.id == *id);
        let waits = |item: &&pdca_dag::Item| !has_work(item) && !is_left(&item.id);
        let waiting: Vec<BundleId> =
            batch.items.iter().filter(waits).map(|item| item.id.clone()).collect();
        let state = |id: &BundleId| {
            let glance = batch.bundle(id).and_then(|bundle| bundle.glance().ok());
            glance.map_or("cannot be read", |glance| glance.state.as_str())
        };
        let states = order.iter().chain(&waiting).map(state).collect();
        Self { lanes: lanes.get(), order, blocked, waiting, left_alone, states }
    }
}

impl Report for RunDryRun {
    const KIND: &'static str = "run-plan";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for (id, state) in self.order.iter().chain(&self.waiting).zip(&self.states) {
            writeln!(out, "{}  {state}", id.dir_name())?;
        }
        for blocked in &self.blocked {
            let waits = cx.out.warn(waiting(&blocked.blocked_by));
            writeln!(out, "{}  {waits}", blocked.id.dir_name())?;
        }
        for left in &self.left_alone {
            writeln!(out, "{}  {}", left.id.dir_name(), left.line(cx))?;
        }
        Ok(())
    }
}

fn waiting(ids: &[BundleId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("[blocked-by: {}]", ids.join(", "))
}

/// The outcome of each bundle.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RunReport {
    bundles: Vec<Line>,
    /// The verdicts over the branches alone.
    bases: Vec<GatedBase>,
    /// What the calls of leaves cost in this run so far; null if nothing is known of it.
    cost: Option<pdca_state::CostTotal>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Line {
    id: BundleId,
    /// `signoff`, `red`, `nothing-to-do`, `waiting`, `blocked`, `left-alone`, `not-started`, `failed` or `interrupted`.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum Fate {
    Signoff,
    Red,
    NothingToDo,
    Waiting,
    Blocked,
    LeftAlone,
    NotStarted,
    Failed,
    Interrupted,
}

impl RunReport {
    fn of(batched: &Batched, batch: &Batch, plan: &Plan, cx: &Context<'_>) -> Self {
        let alone = LeftAlone::all(batch, plan, cx);
        let is_alone = |id: &BundleId| alone.iter().any(|left| left.id == *id);
        let driven = batched.driven.iter().map(|(bundle, result)| Line::of(bundle, result));
        let is_refused = matches!(batched.stopped, Some(Stop::BaseRed { .. } | Stop::Cost(_)));
        let left = batched.left.iter().filter(|(bundle, _)| !is_alone(bundle.id()));
        let left = left.map(|(bundle, why)| {
            let line = Line::left(bundle, why);
            let not_started = is_refused && line.outcome == Fate::Interrupted;
            if not_started { Line { outcome: Fate::NotStarted, ..line } } else { line }
        });
        let left: Vec<Line> = left.collect();
        let alone = alone.into_iter().map(Line::left_alone);
        Self {
            bundles: driven.chain(left).chain(alone).collect(),
            bases: batched.bases.clone(),
            cost: batched.cost.filter(pdca_state::CostTotal::is_known),
        }
    }

    fn has(&self, fate: Fate) -> bool {
        self.bundles.iter().any(|line| line.outcome == fate)
    }

    fn exit(&self) -> Exit {
        let any = |fate| self.has(fate);
        if any(Fate::Red) {
            Exit::GateRed
        } else if any(Fate::Signoff) {
            Exit::Done
        } else if any(Fate::Waiting) || any(Fate::Blocked) || any(Fate::LeftAlone) {
            Exit::Waiting
        } else {
            Exit::NothingToDo
        }
    }
}

impl Report for RunReport {
    const KIND: &'static str = "run";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
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
                Fate::LeftAlone => format!(
                    "{}: {}  pdca why {}",
                    p.warn("left alone"),
                    printable(line.error.as_deref().unwrap_or_default()),
                    line.id
                ),
                Fate::NotStarted => p.warn("not started").to_string(),
                Fate::Failed => p.bad("failed").to_string(),
                Fate::Interrupted => p.warn("interrupted").to_string(),
            };
            writeln!(out, "{name}  {said}")?;
        }
        if let Some(cost) = self.cost.as_ref().and_then(crate::cost::total) {
            writeln!(out, "{}", cx.out.faint(format!("cost: {cost}")))?;
        }
        Ok(())
    }
}

impl Line {
    fn left_alone(left: LeftAlone) -> Self {
        Self {
            blocked_by: left.blocked_by,
            error: Some(left.why),
            ..Self::blank(left.id, Fate::LeftAlone)
        }
    }

    fn empty(bundle: &Bundle, outcome: Fate) -> Self {
        Self::blank(bundle.id().clone(), outcome)
    }

    fn blank(id: BundleId, outcome: Fate) -> Self {
        Self { id, outcome, halt: None, steps: 0, blocked_by: Vec::new(), error: None }
    }

    /// Makes the line of a bundle that was not started.
    fn left(bundle: &Bundle, why: &Why) -> Self {
        match why {
            Why::Waits { on } => Self {
                blocked_by: on.iter().map(|unmet| unmet.id.clone()).collect(),
                ..Self::empty(bundle, Fate::Blocked)
            },
            // It waits for the sign-off or the landing of a result.
            Why::Held { by, .. } if by.iter().any(|holder| holder.until.is_some()) => Self {
                blocked_by: by.iter().map(|holder| holder.id.clone()).collect(),
                ..Self::empty(bundle, Fate::Blocked)
            },
            // Only a stopped pool leaves a bundle that may start.
            Why::Ready { .. } | Why::Held { .. } | Why::Yields { .. } | Why::InFlight => {
                Self::empty(bundle, Fate::Interrupted)
            }
            Why::Halted | Why::Failed => Self::empty(bundle, Fate::Waiting),
            Why::Complete | Why::Ended => Self::empty(bundle, Fate::NothingToDo),
        }
    }

    fn of(bundle: &Bundle, result: &Result<pdca_driver::BundleEnd, BeatError>) -> Self {
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
            Err(BeatError::Interrupted) => Self::empty(bundle, Fate::Interrupted),
            Err(error) => {
                Self { error: Some(pdca_state::chain(error)), ..Self::empty(bundle, Fate::Failed) }
            }
        }
    }
}
