//! The scheduler's view of one bundle: its dependencies, its rivals, and the time it waits.

use std::collections::{BTreeMap, BTreeSet};

use pdca_dag::{
    Awaits, ClaimHolder, Frontier, ItemState, ItemStatus, JoinRule, LanesFile, Plan, PlanProblem,
    Rejection, Rivalry, Unmet, Why,
};
use pdca_driver::{AtWork, Batch, WorkspaceConfig};
use pdca_state::{BundleId, State};
use pdca_workspace::planning::load_lanes_file;
use pdca_workspace::snapshot::{WorkspaceSnapshot, ago, timestamp};
use serde::Serialize;

use crate::context::Context;
use crate::explain::rejection::{explained, place};
use crate::failure::Failure;
use crate::session;
use crate::words;

/// The most idle rivals that are named.
const NAMED: usize = 5;

/// The JSON of the scheduler's view.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ScheduleView {
    /// `ready`, `waits`, `held`, `yields`, `in_flight`, `halted`, `failed`, `complete`, `ended`,
    /// `left_alone` if a batch does not start it, or `rejected` if the batch has no plan.
    status: &'static str,
    /// The number of ready bundles before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<usize>,
    waits_on: Vec<WaitsOn>,
    held_by: Vec<HeldBy>,
    #[serde(flatten)]
    at_work: Option<Worker>,
    problems: Vec<String>,
    #[serde(skip)]
    said: Vec<String>,
    /// The position of each dependency's declaration.
    #[serde(skip)]
    places: BTreeMap<BundleId, String>,
    /// The activity of dependencies in flight.
    #[serde(skip)]
    working: BTreeMap<BundleId, String>,
    #[serde(skip)]
    driver: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WaitsOn {
    id: BundleId,
    status: &'static str,
    /// The state it must reach: `built`, `accepted` or `landed`.
    awaits: Awaits,
    file: String,
    line: usize,
    #[serde(flatten)]
    at_work: Option<Worker>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HeldBy {
    id: BundleId,
    rule: JoinRule,
    witness: Option<String>,
    /// `accepted` or `landed` if its result is awaited; null while it is in flight.
    until: Option<Awaits>,
    #[serde(flatten)]
    at_work: Option<Worker>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Worker {
    holder: String,
    lane: Option<u32>,
    since: Option<String>,
}

impl Worker {
    fn of(at: &AtWork) -> Self {
        let since = at.since.and_then(timestamp);
        Self { holder: at.holder.clone(), lane: at.lane, since }
    }
}

impl ScheduleView {
    /// Rebuilds the frontier from disk: the briefs, and the bundles in flight.
    pub(super) fn load(
        cx: &Context<'_>,
        id: &BundleId,
        overview: &WorkspaceSnapshot,
    ) -> Result<Self, Failure> {
        let site = session::driver_config(cx)?;
        let batch = Batch::of_all(&site)?;
        let work = Works::load(&site, &batch, id, cx);
        let driver = work.driver;
        let mut schedule = match batch.plan() {
            Ok(plan) if plan.left_alone().iter().any(|problem| problem.id() == id) => {
                Self::left_alone(&plan, id, cx)
            }
            Ok(plan) => work.explain(&plan, id, overview),
            Err(rejection) => Self::rejected(&rejection, id, cx),
        };
        if matches!(schedule.status, "ready" | "held" | "yields")
            && let Some(file) = load_lanes_file(cx.workspace()?)?
        {
            schedule.said.extend(in_group(&file, id, &batch));
        }
        for split in pdca_driver::due_splits(&site, Some(&BTreeSet::from([id.clone()])))? {
            let what = words::due_split(&split);
            schedule.said.push(format!("the next run splits it; {what}"));
        }
        schedule.driver = driver;
        schedule.at_work = work.at.get(id).map(Worker::of);
        let item = batch.items.iter().find(|item| item.id == *id);
        for declared in item.into_iter().flat_map(|item| &item.depends_on) {
            let at = place(&declared.place, cx).show(&cx.env.cwd);
            schedule.places.insert(declared.id.clone(), format!(" ({at})"));
            if let Some(at) = work.at.get(&declared.id) {
                let now = format!(" and in work{}", work.worker(at));
                schedule.working.insert(declared.id.clone(), now);
            }
        }
        Ok(schedule)
    }

    /// Returns the position of a dependency's declaration, in parentheses.
    pub(super) fn place(&self, on: &BundleId) -> &str {
        self.places.get(on).map_or("", String::as_str)
    }

    /// Returns the activity of a dependency, if it is in flight.
    pub(super) fn working(&self, on: &BundleId) -> &str {
        self.working.get(on).map_or("", String::as_str)
    }

    pub(super) fn sentences(&self) -> &[String] {
        &self.said
    }

    /// Returns whether it could start now.
    pub(super) fn may_start(&self) -> bool {
        !matches!(self.status, "waits" | "held" | "yields" | "in_flight" | "left_alone")
            && !self.driver
    }

    /// Returns whether a batch does not start it.
    pub(super) fn is_left_alone(&self) -> bool {
        self.status == "left_alone"
    }

    /// Makes the view of a bundle that a batch does not start.
    fn left_alone(plan: &Plan, id: &BundleId, cx: &Context<'_>) -> Self {
        let own: Vec<&PlanProblem> =
            plan.left_alone().iter().filter(|problem| problem.id() == id).collect();
        let problems: Vec<String> = own.iter().map(|problem| sentence(problem, cx)).collect();
        let said = own.iter().zip(&problems).filter(|(problem, _)| is_news(problem));
        let mut said: Vec<String> = said.map(|(_, text)| text.clone()).collect();
        said.push("a batch leaves it alone until that is mended: `pdca plan`".to_owned());
        Self { status: "left_alone", problems, said, ..Self::default() }
    }

    pub(super) fn has_driver(&self) -> bool {
        self.driver
    }

    fn rejected(rejection: &Rejection, id: &BundleId, cx: &Context<'_>) -> Self {
        let (own, others): (Vec<&PlanProblem>, Vec<&PlanProblem>) =
            rejection.problems.iter().partition(|problem| concerns(problem, id));
        let problems: Vec<String> = own.iter().map(|problem| sentence(problem, cx)).collect();
        let said = problems.iter().zip(&own).filter(|(_, problem)| is_news(problem));
        let mut said: Vec<String> = said.map(|(text, _)| text.clone()).collect();
        said.push(match own.as_slice() {
            [] => {
                let places = match others.len() {
                    1 => "one place".to_owned(),
                    many => format!("{many} places"),
                };
                format!("other bundles keep the batch from being planned, in {places}: `pdca plan`")
            }
            [..] => "the batch cannot be planned until that is mended: `pdca plan`".to_owned(),
        });
        Self { status: "rejected", problems, said, ..Self::default() }
    }
}

/// Renders a problem with its position.
fn sentence(problem: &PlanProblem, cx: &Context<'_>) -> String {
    let told = explained(problem, cx);
    let at = told.place.map_or_else(String::new, |at| at.show(&cx.env.cwd));
    format!("{} ({at})", told.what)
}

/// Returns whether a problem is worth a sentence: unmet dependencies are reported with their states already.
fn is_news(problem: &PlanProblem) -> bool {
    match problem {
        PlanProblem::BadGlob { .. }
        | PlanProblem::NoSuchRival { .. }
        | PlanProblem::Unreadable { .. } => true,
        PlanProblem::DuplicateId { .. }
        | PlanProblem::DependsOnItself { .. }
        | PlanProblem::Cycle { .. }
        | PlanProblem::NoSuchPrerequisite { .. }
        | PlanProblem::PrerequisiteNotComplete { .. }
        | PlanProblem::Misspelled { .. }
        | PlanProblem::Behind { .. } => false,
    }
}

fn concerns(problem: &PlanProblem, bundle: &BundleId) -> bool {
    match problem {
        PlanProblem::DuplicateId { id, .. }
        | PlanProblem::DependsOnItself { id, .. }
        | PlanProblem::NoSuchPrerequisite { id, .. }
        | PlanProblem::NoSuchRival { id, .. }
        | PlanProblem::PrerequisiteNotComplete { id, .. }
        | PlanProblem::Unreadable { id, .. }
        | PlanProblem::Misspelled { id, .. }
        | PlanProblem::Behind { id, .. }
        | PlanProblem::BadGlob { id, .. } => id == bundle,
        PlanProblem::Cycle { edges, .. } => edges.iter().any(|edge| edge.dependant == *bundle),
    }
}

/// Describes the members of the planning group that come before a bundle.
fn in_group(file: &LanesFile, id: &BundleId, batch: &Batch) -> Option<String> {
    let group = file.group_of(id)?;
    let has_work = |other: &&BundleId| {
        let item = batch.items.iter().find(|item| item.id == **other);
        item.is_some_and(|item| item.standing == ItemState::Active)
    };
    let before = group.bundles.iter().take_while(|other| *other != id).filter(has_work);
    let before: Vec<&str> = before.map(AsRef::as_ref).collect();
    let before = before.join(", ");
    (!before.is_empty()).then(|| {
        format!("in group {} of lanes.json it comes after {before}, in the same lane", group.id)
    })
}

/// The processes that work on bundles of the batch.
struct Works<'a> {
    cx: &'a Context<'a>,
    at: BTreeMap<BundleId, AtWork>,
    driver: bool,
}

impl<'a> Works<'a> {
    fn load(site: &WorkspaceConfig, batch: &Batch, id: &BundleId, cx: &'a Context<'a>) -> Self {
        let driver = site.locks().driver_at_work().ok().flatten().is_some();
        // Without a driver nothing works on the others, but a person may hold this one.
        let looked = batch.items.iter().map(|item| &item.id).filter(|other| driver || *other == id);
        let at = looked
            .filter_map(|id| Some((id.clone(), site.locks().at_work_on(id).ok()??)))
            .collect();
        Self { cx, at, driver }
    }

    fn explain(&self, plan: &Plan, id: &BundleId, overview: &WorkspaceSnapshot) -> ScheduleView {
        let frontier = self.replay(plan);
        let Some(why) = frontier.why(id) else { return ScheduleView::default() };
        let mut schedule = ScheduleView { status: name(&why), ..ScheduleView::default() };
        match &why {
            Why::Waits { on } => {
                schedule.waits_on = on.iter().map(|unmet| self.waits_on(unmet)).collect();
            }
            Why::Held { by, aged } => {
                schedule.held_by = by.iter().map(|holder| self.held_by(holder)).collect();
                schedule.said.extend(by.iter().map(|holder| self.holder(holder)));
                if *aged > 0 {
                    schedule.said.push(format!("{aged} lesser rivals were started before it"));
                }
            }
            Why::Yields { to, .. } => {
                schedule.held_by.push(self.held_by(to));
                schedule.said.push(format!("{} has waited long enough and goes first", to.id));
            }
            Why::Ready { before } => {
                schedule.before = Some(*before);
                schedule.said.extend(self.ready(*before));
            }
            Why::InFlight => schedule.said.push(match self.at.get(id) {
                Some(at) => format!("it is in work{}", self.worker(at)),
                None => "it is in work".to_owned(),
            }),
            // The state says what a person has to do.
            Why::Halted | Why::Failed | Why::Complete | Why::Ended => {}
        }
        if !matches!(why, Why::InFlight)
            && let Some(at) = self.at.get(id)
        {
            schedule.said.push(format!("it is in use right now{}", self.worker(at)));
        }
        schedule.said.extend(self.others(plan, id, overview, &why));
        schedule
    }

    /// Makes a frontier in which everything in flight was started, the longest first.
    fn replay<'p>(&self, plan: &'p Plan) -> Frontier<'p> {
        let mut frontier = Frontier::new(plan);
        let mut started: Vec<(&BundleId, &AtWork)> = self.at.iter().collect();
        started.sort_by_key(|(id, at)| (at.since, *id));
        for (id, _) in started {
            // Fails for a bundle that a person holds, or whose declarations changed meanwhile.
            drop(frontier.start_first(id));
        }
        frontier
    }

    fn waits_on(&self, unmet: &Unmet) -> WaitsOn {
        WaitsOn {
            id: unmet.id.clone(),
            status: status_name(unmet.status),
            awaits: unmet.awaits,
            file: unmet.place.file.to_string(),
            line: unmet.place.line,
            at_work: self.at.get(&unmet.id).map(Worker::of),
        }
    }

    fn held_by(&self, holder: &ClaimHolder) -> HeldBy {
        HeldBy {
            id: holder.id.clone(),
            rule: holder.rivalry.rule(),
            witness: holder.rivalry.witness().map(str::to_owned),
            until: holder.until,
            at_work: self.at.get(&holder.id).map(Worker::of),
        }
    }

    fn holder(&self, holder: &ClaimHolder) -> String {
        let worker = self.at.get(&holder.id).map_or_else(String::new, |at| self.worker(at));
        let why = match &holder.rivalry {
            Rivalry::Conflict { place: at } => {
                format!("they conflict ({})", place(at, self.cx).show(&self.cx.env.cwd))
            }
            Rivalry::Overlap { witness, .. } => format!("both can write `{witness}`"),
        };
        let id = &holder.id;
        match holder.until {
            None | Some(Awaits::Built) => format!("it waits for {id}, in work{worker}: {why}"),
            Some(Awaits::Accepted) => {
                format!("it waits until {id} is signed off, sent back or given up: {why}")
            }
            Some(Awaits::Landed) => {
                format!("it waits until {id} has landed, is sent back or given up: {why}")
            }
        }
    }

    /// Renders ` in lane 2 for 3 min (process 12)`.
    fn worker(&self, at: &AtWork) -> String {
        let lane = at.lane.map_or_else(String::new, |lane| format!(" in lane {lane}"));
        let now = self.cx.env.now();
        let long = at.since.map(|since| format!(" for {}", words::duration(ago(since, now))));
        let holder = at.holder.split(',').next().unwrap_or(&at.holder);
        format!("{lane}{} ({holder})", long.unwrap_or_default())
    }

    fn ready(&self, before: usize) -> Option<String> {
        let first = match before {
            0 => "it is next in order".to_owned(),
            1 => "1 bundle is before it in order".to_owned(),
            many => format!("{many} bundles are before it in order"),
        };
        match (self.driver, before) {
            (true, _) => Some(format!("it waits for a free lane; {first}")),
            (false, 0) => None,
            (false, _) => Some(format!("nothing keeps it; {first}")),
        }
    }

    /// Describes idle rivals with work left, beside which it will not run either.
    fn others(
        &self,
        plan: &Plan,
        id: &BundleId,
        overview: &WorkspaceSnapshot,
        why: &Why,
    ) -> Vec<String> {
        let is_left = match why {
            Why::Ready { .. } | Why::Waits { .. } | Why::Held { .. } | Why::Yields { .. } => true,
            Why::InFlight | Why::Halted | Why::Failed | Why::Complete | Why::Ended => false,
        };
        if !is_left {
            return Vec::new();
        }
        let with_work = overview.entries.iter().filter(|entry| entry.has_work());
        let states: BTreeMap<&BundleId, State> =
            with_work.filter_map(|entry| Some((&entry.id, entry.state()?))).collect();
        let mut said = Vec::new();
        let mut more = 0;
        for (other, rivalry) in plan.rivals_of(id) {
            let Some(state) = states.get(other) else { continue };
            // A declared conflict is already reported with the state.
            let Rivalry::Overlap { witness, .. } = &rivalry else { continue };
            if self.at.contains_key(other) {
                continue;
            }
            if said.len() == NAMED {
                more += 1;
                continue;
            }
            said.push(format!(
                "it is never in work beside {other}, which is {state}: both can write `{witness}`"
            ));
        }
        if more > 0 {
            said.push(format!("nor beside {more} more: `pdca plan -v` names them"));
        }
        said
    }
}

fn name(why: &Why) -> &'static str {
    match why {
        Why::Ready { .. } => "ready",
        Why::Waits { .. } => "waits",
        Why::Held { .. } => "held",
        Why::Yields { .. } => "yields",
        Why::InFlight => "in_flight",
        Why::Halted => "halted",
        Why::Failed => "failed",
        Why::Complete => "complete",
        Why::Ended => "ended",
    }
}

fn status_name(status: ItemStatus) -> &'static str {
    match status {
        ItemStatus::Open => "waits",
        ItemStatus::Ready => "ready",
        ItemStatus::InFlight => "in_flight",
        ItemStatus::Halted => "halted",
        ItemStatus::Failed => "failed",
        ItemStatus::Complete => "complete",
        ItemStatus::Ended => "ended",
    }
}
