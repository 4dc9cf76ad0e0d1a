//! The JSON of `plan`.

use std::collections::BTreeMap;

use pdca_dag::{BundleGroup, Edge, Join, PlanNotice, PlanProblem, Rejection};
use pdca_driver::{DueSplit, Exhausted};
use pdca_state::BundleId;
use serde::Serialize;

use crate::context::Context;
use crate::explain::rejection::{explained, place};
use crate::planning::lanes_file::{self, Currency};
use crate::planning::plan::{LanesFileFate, Shown};
use crate::planning::simulation::Prediction;
use crate::words;

/// The JSON of a plan. A rejected one has only problems.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanDocument {
    /// A digest of the declarations.
    digest: Option<String>,
    order: Vec<BundleId>,
    waves: Vec<Vec<BundleId>>,
    groups: Vec<BundleGroup>,
    edges: Vec<EdgeRow>,
    /// The results that a bundle would be built on if it started now; those without any are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stands_on: BTreeMap<BundleId, Vec<BundleId>>,
    /// The bundles that the next driver splits before it starts anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<SplitRow>,
    collapse_report: Vec<Join>,
    apart: Vec<Join>,
    critical_path: Vec<BundleId>,
    depth: usize,
    width: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    workstreams: Option<Vec<Vec<BundleId>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<Prediction>,
    lanes_file: Option<FileRow>,
    notices: Vec<NoticeRow>,
    problems: Vec<ProblemRow>,
    /// The bundles that a batch over everything leaves out, with the reasons.
    left_alone: Vec<ProblemRow>,
}

/// A bundle of which some parts can start and others wait for open bundles.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SplitRow {
    id: BundleId,
    /// The new bundles that wait for no open bundle.
    ready: Vec<BundleId>,
    waiting: Vec<WaitingRow>,
}

/// A new bundle that waits.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WaitingRow {
    id: BundleId,
    /// The open bundles; none if it comes after another new one that waits.
    waits_for: Vec<BundleId>,
}

impl SplitRow {
    fn of(split: &DueSplit) -> Self {
        let row = |(id, on): &(BundleId, Vec<BundleId>)| WaitingRow {
            id: id.clone(),
            waits_for: on.clone(),
        };
        let waiting = split.waiting.iter().map(row).collect();
        Self { id: split.id.clone(), ready: split.ready.clone(), waiting }
    }
}

/// A dependency inside the batch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EdgeRow {
    from: BundleId,
    to: BundleId,
    rule: &'static str,
    /// The state that the prerequisite must reach: `built`, `accepted` or `landed`.
    awaits: &'static str,
    file: String,
    line: usize,
}

impl EdgeRow {
    pub(crate) fn of(edge: &Edge) -> Self {
        let (from, to) = (edge.prerequisite.clone(), edge.dependant.clone());
        Self {
            from,
            to,
            rule: "depends_on",
            awaits: words::awaits(edge.awaits),
            file: edge.place.file.to_string(),
            line: edge.place.line,
        }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FileRow {
    path: String,
    /// The state before writing: `absent`, `current` or `stale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'static str>,
    written: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NoticeRow {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<BundleId>,
    text: String,
    file: String,
    line: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near: Vec<BundleId>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProblemRow {
    kind: &'static str,
    bundles: Vec<BundleId>,
    message: String,
    file: String,
    line: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<EdgeRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near: Vec<BundleId>,
    hint: Option<String>,
}

impl PlanDocument {
    pub(crate) fn of(shown: &Shown, cx: &Context<'_>) -> Self {
        let Shown { batch, plan, splits, stands_on, file, fate, simulation, workstreams } = shown;
        let owned = |ids: Vec<&BundleId>| ids.into_iter().cloned().collect::<Vec<_>>();
        let remarks = batch.remarks.iter().map(|remark| NoticeRow {
            kind: "declaration",
            id: None,
            text: remark.text.clone(),
            file: remark.place.file.to_string(),
            line: remark.place.line,
            near: Vec::new(),
        });
        Self {
            digest: Some(plan.digest().to_owned()),
            order: owned(plan.order()),
            waves: plan.waves().into_iter().map(owned).collect(),
            groups: file.groups.clone(),
            stands_on: stands_on.clone(),
            edges: plan.edges().iter().map(EdgeRow::of).collect(),
            splits: splits.iter().map(SplitRow::of).collect(),
            collapse_report: file.collapse_report.clone(),
            apart: file.apart.clone(),
            critical_path: file.critical_path.clone(),
            depth: file.depth,
            width: file.width,
            workstreams: workstreams.clone(),
            simulation: simulation.as_ref().map(Prediction::of),
            lanes_file: lanes_file::path(cx).ok().map(|path| FileRow::of(path.as_str(), *fate)),
            notices: plan.notices().iter().map(NoticeRow::of).chain(remarks).collect(),
            problems: Vec::new(),
            left_alone: plan
                .left_alone()
                .iter()
                .map(|one| ProblemRow::of(one, cx))
                .chain(batch.exhausted.iter().map(ProblemRow::of_failed))
                .collect(),
        }
    }

    pub(crate) fn rejected(rejection: &Rejection, cx: &Context<'_>) -> Self {
        let problems = rejection.problems.iter().map(|problem| ProblemRow::of(problem, cx));
        Self { problems: problems.collect(), ..Self::default() }
    }
}

impl FileRow {
    fn of(path: &str, fate: LanesFileFate) -> Self {
        let (was, written) = match fate {
            LanesFileFate::Is(currency) | LanesFileFate::Would(currency) => (Some(currency), false),
            LanesFileFate::Written => (None, true),
        };
        Self { path: path.to_owned(), was: was.map(Currency::as_str), written }
    }
}

impl NoticeRow {
    fn of(notice: &PlanNotice) -> Self {
        let (kind, id, at, near) = match notice {
            PlanNotice::NothingDeclared { id, place } => {
                ("nothing_declared", id, place, Vec::new())
            }
            PlanNotice::NoSuchRival { id, place, near, .. } => {
                ("no_such_rival", id, place, near.clone())
            }
            PlanNotice::ConflictsWithItself { id, place } => {
                ("conflicts_with_itself", id, place, Vec::new())
            }
        };
        Self {
            kind,
            id: Some(id.clone()),
            text: notice.to_string(),
            file: at.file.to_string(),
            line: at.line,
            near,
        }
    }
}

impl ProblemRow {
    fn of_failed(one: &Exhausted) -> Self {
        Self {
            kind: "failed",
            bundles: vec![one.id.clone()],
            message: words::failed(one),
            file: one.failure.log.as_ref().map(ToString::to_string).unwrap_or_default(),
            line: 1,
            path: Vec::new(),
            near: Vec::new(),
            hint: Some(format!("`pdca run {}` tries again", one.id)),
        }
    }

    fn of(problem: &PlanProblem, cx: &Context<'_>) -> Self {
        let told = explained(problem, cx);
        let at = place(problem.place(), cx);
        let (kind, bundles) = match problem {
            PlanProblem::DuplicateId { id, .. } => ("duplicate_id", vec![id.clone()]),
            PlanProblem::DependsOnItself { id, .. } => ("depends_on_itself", vec![id.clone()]),
            PlanProblem::Cycle { edges, .. } => {
                ("cycle", edges.iter().map(|edge| edge.dependant.clone()).collect())
            }
            PlanProblem::NoSuchPrerequisite { id, on, .. } => {
                ("no_such_prerequisite", vec![id.clone(), on.clone()])
            }
            PlanProblem::PrerequisiteNotComplete { id, on, .. } => {
                ("prerequisite_not_complete", vec![id.clone(), on.clone()])
            }
            PlanProblem::NoSuchRival { id, with, .. } => {
                ("no_such_rival", vec![id.clone(), with.clone()])
            }
            PlanProblem::Unreadable { id, .. } => ("unreadable", vec![id.clone()]),
            PlanProblem::Misspelled { id, .. } => ("misspelled", vec![id.clone()]),
            PlanProblem::Behind { id, on, .. } => {
                ("behind_left_alone", vec![id.clone(), on.clone()])
            }
            PlanProblem::BadGlob { id, .. } => ("bad_glob", vec![id.clone()]),
        };
        let (path, near) = match problem {
            PlanProblem::Cycle { edges, .. } => {
                (edges.iter().map(EdgeRow::of).collect(), Vec::new())
            }
            PlanProblem::NoSuchPrerequisite { near, .. }
            | PlanProblem::NoSuchRival { near, .. } => (Vec::new(), near.clone()),
            PlanProblem::Unreadable { .. }
            | PlanProblem::Misspelled { .. }
            | PlanProblem::Behind { .. }
            | PlanProblem::DuplicateId { .. }
            | PlanProblem::DependsOnItself { .. }
            | PlanProblem::PrerequisiteNotComplete { .. }
            | PlanProblem::BadGlob { .. } => (Vec::new(), Vec::new()),
        };
        Self {
            kind,
            bundles,
            message: told.what,
            file: problem.place().file.to_string(),
            line: at.line.unwrap_or(1),
            path,
            near,
            hint: told.hint,
        }
    }
}
