//! The JSON rows of the problems of a plan: with words and remedies, because scripts show them to people.

use pdca_dag::{Edge, PlanProblem};
use pdca_driver::Exhausted;
use pdca_state::BundleId;
use serde::Serialize;

use crate::context::Context;
use crate::explain::rejection::{explained, place};
use crate::words;

/// A problem of a plan, or of a bundle that a batch leaves out.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ProblemRow {
    kind: &'static str,
    bundles: Vec<BundleId>,
    message: String,
    file: String,
    line: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<Edge>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near: Vec<BundleId>,
    hint: Option<String>,
}

impl ProblemRow {
    pub(super) fn of_failed(one: &Exhausted) -> Self {
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

    pub(super) fn of(problem: &PlanProblem, cx: &Context<'_>) -> Self {
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
            PlanProblem::Cycle { edges, .. } => (edges.clone(), Vec::new()),
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
