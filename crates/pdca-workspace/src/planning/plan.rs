//! The order in which bundles may be built.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use pdca_dag::{BundleGroup, Edge, Join, LanesFile, Plan, PlanNotice, Simulation, SourceLocation};
use pdca_driver::{Batch, DeclarationRemark, DueSplit, WorkspaceConfig, due_splits_in};
use pdca_state::BundleId;
use serde::Serialize;

use super::PlanningError;
use super::lanes_file::{self, LanesFileState, load_lanes_file};
use crate::config::{ConfigError, Workspace};
use crate::{OpenWorkspace, OperationError};

/// The largest simulated number of lanes, where there are no more slots.
const LANES: usize = 16;

/// A request for a plan.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct PlanRequest<'a> {
    /// The bundles; all unfinished ones if none is named.
    pub ids: &'a [BundleId],
    /// Stores the groups in `lanes.json`.
    pub write: bool,
    /// Predicts the duration with 1 to 16 lanes.
    pub simulate: bool,
    /// Also returns which bundles depend on or exclude each other.
    pub workstreams: bool,
    /// Puts a bundle into the group of its dependencies.
    pub join_dependencies: bool,
}

/// A plan with the batch that it was made of.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedBatch {
    #[serde(flatten)]
    pub view: PlanView,
    /// Rivals, and the bundles that a batch leaves alone.
    #[serde(skip)]
    pub plan: Plan,
    #[serde(skip)]
    pub batch: Batch,
}

/// A plan as lists. All are empty for a batch without a plan.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanView {
    /// A digest of the declarations.
    pub digest: Option<String>,
    pub order: Vec<BundleId>,
    pub waves: Vec<Vec<BundleId>>,
    pub groups: Vec<BundleGroup>,
    /// The dependencies inside the batch.
    pub edges: Vec<Edge>,
    /// The results that a bundle would be built on if it started now; those without any are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stands_on: BTreeMap<BundleId, Vec<BundleId>>,
    /// The bundles that the next driver splits before it starts anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<DueSplit>,
    pub collapse_report: Vec<Join>,
    pub apart: Vec<Join>,
    pub critical_path: Vec<BundleId>,
    pub depth: usize,
    pub width: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workstreams: Option<Vec<Vec<BundleId>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulation: Option<Simulation>,
    pub lanes_file: Option<LanesFileReport>,
    pub notices: Vec<PlanRemark>,
}

/// The fate of `lanes.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LanesFileReport {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    /// The state, if it was not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<LanesFileState>,
    pub written: bool,
    /// Without the dry run it would be written.
    #[serde(skip)]
    pub would_write: bool,
}

/// Something odd about a brief that keeps no bundle from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanRemark {
    pub kind: PlanRemarkKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<BundleId>,
    pub text: String,
    #[serde(flatten)]
    pub place: SourceLocation,
    /// The bundles with a similar name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<BundleId>,
}

/// The kind of a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanRemarkKind {
    /// The bundle declares no paths.
    NothingDeclared,
    /// A bundle in `Conflicts with` does not exist.
    NoSuchRival,
    ConflictsWithItself,
    /// A line cannot be read as the author may have meant it.
    Declaration,
}

/// Plans the bundles, and writes `lanes.json` if asked to. A batch that cannot be carried out is an error with all
/// its problems.
pub fn plan(
    open: &OpenWorkspace<'_>,
    request: &PlanRequest<'_>,
) -> Result<PlannedBatch, OperationError> {
    open.workspace.require_all_distinct()?;
    let config = open.driver_config()?;
    let batch = load(open.workspace, request.ids, &config)?;
    let planned = if request.join_dependencies { batch.plan_joined() } else { batch.plan() };
    let (plan, previous) = match (planned, load_lanes_file(open.workspace)) {
        (Ok(plan), previous) => (plan, previous?),
        (Err(rejection), previous) => {
            let lanes_file = previous.err().map(Box::new);
            return Err(PlanningError::Rejected { rejection, lanes_file }.into());
        }
    };
    let file = plan.groups(previous.as_ref());
    let state = lanes_file::state_of(previous.as_ref(), &config)?;
    let lanes_file = if request.write {
        write(open, &batch, previous.as_ref(), &file, state)?
    } else {
        report(open.workspace, Some(state))
    };
    let stands_on = bases(&plan, open.workspace, &config)?;
    let splits = due_splits_in(&config, &batch)?;
    let notices = plan.notices().iter().map(PlanRemark::of_notice);
    let view = PlanView {
        digest: Some(plan.digest().to_owned()),
        order: owned(plan.order()),
        waves: plan.waves().into_iter().map(owned).collect(),
        groups: file.groups,
        edges: plan.edges(),
        stands_on,
        splits,
        collapse_report: file.collapse_report,
        apart: file.apart,
        critical_path: file.critical_path,
        depth: file.depth,
        width: file.width,
        workstreams: request
            .workstreams
            .then(|| plan.workstreams().into_iter().map(owned).collect()),
        simulation: request.simulate.then(|| plan.simulate(simulated_lanes(open.workspace))),
        lanes_file: Some(lanes_file),
        notices: notices.chain(batch.remarks.iter().map(PlanRemark::of_declaration)).collect(),
    };
    Ok(PlannedBatch { view, plan, batch })
}

/// Plans a batch that is about to run, with the groups of `lanes.json` that it has to follow. All problems are one
/// error, those of `lanes.json` included.
pub fn plan_with_groups(
    workspace: &Workspace,
    config: &WorkspaceConfig,
    batch: &Batch,
) -> Result<(Plan, Vec<Vec<BundleId>>), OperationError> {
    let groups = lanes_file::require_groups(workspace, config);
    match batch.plan() {
        Ok(plan) => Ok((plan, groups?)),
        Err(rejection) => {
            let lanes_file = groups.err().map(Box::new);
            Err(PlanningError::Rejected { rejection, lanes_file }.into())
        }
    }
}

fn owned(ids: Vec<&BundleId>) -> Vec<BundleId> {
    ids.into_iter().cloned().collect()
}

fn load(
    workspace: &Workspace,
    ids: &[BundleId],
    config: &WorkspaceConfig,
) -> Result<Batch, OperationError> {
    if ids.is_empty() {
        return Ok(Batch::of_all(config)?);
    }
    let bundles = workspace.require_bundles(ids)?;
    let ids: BTreeSet<BundleId> = bundles.iter().map(|bundle| bundle.id().clone()).collect();
    Ok(Batch::of(config, &ids)?)
}

/// Returns the simulated numbers of lanes, up to all slots of this machine and its hosts.
fn simulated_lanes(workspace: &Workspace) -> std::ops::RangeInclusive<usize> {
    let config = &workspace.config;
    let remote: usize = config.hosts.iter().map(|host| host.slots as usize).sum();
    let local = config.driver.lanes.number().map_or(1, |lanes| lanes.get() as usize);
    1..=LANES.max(local + remote)
}

/// Returns the results that bundles would be based on beyond their branches.
fn bases(
    plan: &Plan,
    workspace: &Workspace,
    config: &WorkspaceConfig,
) -> Result<BTreeMap<BundleId, Vec<BundleId>>, ConfigError> {
    let all =
        pdca_driver::would_all_stand_on(config, &workspace.require_bundles(&owned(plan.order()))?);
    // A bundle that waits for a prerequisite is shown with its dependencies, and `why` says more.
    let known = all.into_iter().filter_map(|(id, on)| Some((id, on.ok()?)));
    Ok(known.filter(|(_, on)| !on.is_empty()).collect())
}

/// Writes `lanes.json`, unless it is a dry run.
fn write(
    open: &OpenWorkspace<'_>,
    batch: &Batch,
    previous: Option<&LanesFile>,
    file: &LanesFile,
    state: LanesFileState,
) -> Result<LanesFileReport, PlanningError> {
    if let Some(previous) = previous {
        lanes_file::require_all_named(previous, batch, open.workspace)?;
    }
    if open.dry_run {
        return Ok(LanesFileReport { would_write: true, ..report(open.workspace, Some(state)) });
    }
    lanes_file::store(open.workspace, file)?;
    Ok(report(open.workspace, None))
}

fn report(workspace: &Workspace, was: Option<LanesFileState>) -> LanesFileReport {
    let path = lanes_file::path(workspace);
    LanesFileReport { path, was, written: was.is_none(), would_write: false }
}

impl PlanRemark {
    fn of_notice(notice: &PlanNotice) -> Self {
        let (kind, id, place, near) = match notice {
            PlanNotice::NothingDeclared { id, place } => {
                (PlanRemarkKind::NothingDeclared, id, place, &[][..])
            }
            PlanNotice::NoSuchRival { id, place, near, .. } => {
                (PlanRemarkKind::NoSuchRival, id, place, near.as_slice())
            }
            PlanNotice::ConflictsWithItself { id, place } => {
                (PlanRemarkKind::ConflictsWithItself, id, place, &[][..])
            }
        };
        Self {
            kind,
            id: Some(id.clone()),
            text: notice.to_string(),
            place: place.clone(),
            near: near.to_vec(),
        }
    }

    fn of_declaration(remark: &DeclarationRemark) -> Self {
        Self {
            kind: PlanRemarkKind::Declaration,
            id: None,
            text: remark.text.clone(),
            place: remark.place.clone(),
            near: Vec::new(),
        }
    }
}
