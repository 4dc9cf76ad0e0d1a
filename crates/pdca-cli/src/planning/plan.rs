//! The order in which bundles may be built.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use pdca_dag::{LanesFile, Plan, Simulation};
use pdca_driver::{Batch, DueSplit, WorkspaceConfig, due_splits_in};
use pdca_state::BundleId;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::explain::rejection::rejected;
use crate::failure::Failure;
use crate::planning::document::PlanDocument;
use crate::planning::lanes_file::{Currency, Kept};
use crate::planning::{lanes_file, view};
use crate::report::{Report, Response, Table};
use crate::session;

/// A request for a plan.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct PlanRequest<'a> {
    /// The bundles; all unfinished ones if none is named.
    pub(crate) ids: &'a [IdArg],
    /// Stores the groups in `lanes.json`.
    pub(crate) write: bool,
    /// A stale `lanes.json` is an answer, and no failure.
    pub(crate) check: bool,
    /// Predicts the duration with 1 to 16 lanes.
    pub(crate) simulate: bool,
    /// Also returns which bundles depend on or exclude each other.
    pub(crate) workstreams: bool,
    /// Puts a bundle into the group of its dependencies.
    pub(crate) join_dependencies: bool,
}

/// The largest simulated number of lanes, where there are no more slots.
const LANES: usize = 16;

/// Returns the simulated numbers of lanes, up to all slots of this machine and its hosts.
fn simulated(cx: &Context<'_>) -> Result<std::ops::RangeInclusive<usize>, Failure> {
    let config = &cx.workspace()?.config;
    let far: usize = config.hosts.iter().map(|host| host.slots as usize).sum();
    let local = config.driver.lanes.number().map_or(1, |lanes| lanes.get() as usize);
    Ok(1..=LANES.max(local + far))
}

/// Plans the bundles, and writes `lanes.json` if asked to. A batch that cannot be carried out is an error with all
/// its problems.
pub(crate) fn plan(args: &PlanRequest<'_>, cx: &Context<'_>) -> Result<Response, Failure> {
    cx.workspace()?.require_all_distinct()?;
    let site = session::driver_config(cx)?;
    let batch = load(args, cx, &site)?;
    let planned = if args.join_dependencies { batch.plan_joined() } else { batch.plan() };
    // Report all problems at once, including those of the file.
    let (plan, kept) = match (planned, Kept::load(cx)) {
        (Ok(plan), Ok(kept)) => (plan, kept),
        (Ok(_), Err(failure)) => return Err(failure),
        (Err(rejection), kept) => {
            let mut failure = rejected(&rejection, cx);
            failure.problems.extend(kept.err().into_iter().flat_map(|error| error.problems));
            let document = PlanDocument::rejected(&rejection, cx);
            return Ok(Response::done(PlanReport { document, shown: None }).failed(failure));
        }
    };
    let file = plan.groups(kept.as_ref().map(|kept| &kept.file));
    let currency = match &kept {
        None => Currency::Absent,
        Some(kept) => kept.currency(&site)?,
    };
    let fate = write(args, cx, &batch, kept.as_ref(), &file, currency)?;
    let stands_on = foundations(&plan, cx, &site)?;
    let splits = due_splits_in(&site, &batch)?;
    let streams = |streams: Vec<Vec<&BundleId>>| -> Vec<Vec<BundleId>> {
        streams.into_iter().map(|ids| ids.into_iter().cloned().collect()).collect()
    };
    let shown = Shown {
        simulation: args
            .simulate
            .then(|| simulated(cx))
            .transpose()?
            .map(|lanes| plan.simulate(lanes)),
        workstreams: args.workstreams.then(|| streams(plan.workstreams())),
        batch,
        plan,
        splits,
        stands_on,
        file,
        fate,
    };
    let document = PlanDocument::of(&shown, cx);
    let report = PlanReport { document, shown: Some(shown) };
    Ok(match fate {
        LanesFileFate::Is(Currency::Stale) if args.check => Response::new(report, Exit::Waiting),
        // What is shown would be planned now, but drivers do not follow it before it is written.
        LanesFileFate::Is(Currency::Stale) => {
            Response::done(report).failed(lanes_file::outdated(cx)?)
        }
        LanesFileFate::Is(_) | LanesFileFate::Would(_) | LanesFileFate::Written => {
            Response::done(report)
        }
    })
}

/// A plan, or the reasons against it.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanReport {
    #[serde(flatten)]
    document: PlanDocument,
    #[serde(skip)]
    shown: Option<Shown>,
}

impl Report for PlanReport {
    const KIND: &'static str = "plan";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        self.shown.as_ref().map_or(Ok(()), |shown| view::show(shown, cx, out))
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let Shown { plan, file, .. } = self.shown.as_ref()?;
        let mut table = Table::new(&["wave", "id", "group", "after", "not beside"]);
        let joined = |ids: Vec<&BundleId>| -> String {
            ids.into_iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
        };
        let edges = plan.edges();
        for (wave, ids) in plan.waves().into_iter().enumerate() {
            for id in ids {
                let group = file.groups.iter().find(|group| group.bundles.contains(id));
                let after = edges.iter().filter(|edge| edge.dependant == *id);
                let rivals = plan.rivals_of(id).into_iter().map(|(other, _)| other);
                table.row([
                    (wave + 1).to_string(),
                    id.to_string(),
                    group.map_or_else(String::new, |group| group.id.to_string()),
                    joined(after.map(|edge| &edge.prerequisite).collect()),
                    joined(rivals.collect()),
                ]);
            }
        }
        Some(table)
    }
}

/// The parts of a plan to show.
pub(crate) struct Shown {
    pub(crate) batch: Batch,
    pub(crate) plan: Plan,
    /// The bundles that the next driver splits before it starts anything.
    pub(crate) splits: Vec<DueSplit>,
    /// The results that each bundle would be built on if it started now; those without any are left out.
    pub(crate) stands_on: BTreeMap<BundleId, Vec<BundleId>>,
    pub(crate) file: LanesFile,
    pub(crate) fate: LanesFileFate,
    pub(crate) simulation: Option<Simulation>,
    pub(crate) workstreams: Option<Vec<Vec<BundleId>>>,
}

/// The fate of `lanes.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LanesFileFate {
    /// Unchanged.
    Is(Currency),
    /// `--write` would change it.
    Would(Currency),
    Written,
}

fn load(
    args: &PlanRequest<'_>,
    cx: &Context<'_>,
    site: &WorkspaceConfig,
) -> Result<Batch, Failure> {
    if args.ids.is_empty() {
        return Ok(Batch::of_all(site)?);
    }
    let bundles = cx.require_bundles(args.ids)?;
    let ids: BTreeSet<BundleId> = bundles.iter().map(|bundle| bundle.id().clone()).collect();
    Ok(Batch::of(site, &ids)?)
}

/// Returns the results that bundles would stand on beyond their branches.
fn foundations(
    plan: &Plan,
    cx: &Context<'_>,
    site: &WorkspaceConfig,
) -> Result<BTreeMap<BundleId, Vec<BundleId>>, Failure> {
    let ids: Vec<BundleId> = plan.order().into_iter().cloned().collect();
    let all = pdca_driver::would_all_stand_on(site, &cx.workspace()?.require_bundles(&ids)?);
    // A bundle that waits for a prerequisite is shown with its dependencies, and `why` says more.
    let known = all.into_iter().filter_map(|(id, on)| Some((id, on.ok()?)));
    Ok(known.filter(|(_, on)| !on.is_empty()).collect())
}

/// Writes `lanes.json` with `--write`.
fn write(
    args: &PlanRequest<'_>,
    cx: &Context<'_>,
    batch: &Batch,
    kept: Option<&Kept>,
    file: &LanesFile,
    currency: Currency,
) -> Result<LanesFileFate, Failure> {
    if !args.write {
        return Ok(LanesFileFate::Is(currency));
    }
    if let Some(kept) = kept {
        kept.require_all_named(batch, cx)?;
    }
    if cx.globals.dry_run {
        return Ok(LanesFileFate::Would(currency));
    }
    lanes_file::store(cx, file)?;
    Ok(LanesFileFate::Written)
}
