//! Problems that reject a batch, and notices that do not.

use std::fmt;

use pdca_state::{Awaits, BundleId};
use serde::Serialize;

use crate::item::{ItemState, SourceLocation};
use crate::pattern::PatternError;

/// The error of [`Plan::new`](crate::Plan::new), with all problems of the batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the batch cannot be carried out: {}", listed(problems))]
pub struct Rejection {
    /// The problems, sorted by location.
    pub problems: Vec<PlanProblem>,
}

/// One reason that a batch cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// Two items have the same id.
    #[error("{id} is in the batch twice: {first} and {again}")]
    DuplicateId {
        /// The id of both items.
        id: BundleId,
        /// The location of the first item.
        first: SourceLocation,
        /// The location of the other item.
        again: SourceLocation,
    },
    /// A bundle depends on itself.
    #[error("{id} depends on itself")]
    DependsOnItself {
        /// The id of the bundle.
        id: BundleId,
        /// The location of the declaration.
        place: SourceLocation,
    },
    /// Bundles depend on each other in a cycle.
    #[error("cycle: {}", edges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle {
        /// The cycle: the prerequisite of each edge is the dependant of the next, and the last edge
        /// leads back to the first.
        edges: Vec<Edge>,
        /// The number of bundles that wait for each other, on this cycle or on others.
        tangled: usize,
    },
    /// A prerequisite does not exist.
    #[error("{id} depends on {on}, which does not exist")]
    NoSuchPrerequisite {
        /// The id of the bundle with the declaration.
        id: BundleId,
        /// The id that does not exist.
        on: BundleId,
        /// The location of the declaration.
        place: SourceLocation,
        /// Bundles with a similar name, nearest first.
        near: Vec<BundleId>,
    },
    /// A bundle in `Conflicts with` does not exist, and its name looks like a typing error; compare
    /// [`PlanNotice::NoSuchRival`].
    #[error("{id} conflicts with {with}, which does not exist")]
    NoSuchRival {
        /// The id of the bundle with the declaration.
        id: BundleId,
        /// The id that does not exist.
        with: BundleId,
        /// The location of the declaration.
        place: SourceLocation,
        /// Bundles with a similar name, nearest first.
        near: Vec<BundleId>,
    },
    /// A prerequisite is not complete, and this batch will not complete it.
    #[error("{id} depends on {on}, which is {}", standing_words(*standing, *in_batch, *awaits))]
    PrerequisiteNotComplete {
        /// The id of the bundle with the declaration.
        id: BundleId,
        /// The id of the prerequisite.
        on: BundleId,
        /// The state of the prerequisite.
        standing: ItemState,
        /// True if the prerequisite is part of the batch.
        in_batch: bool,
        /// The progress that the bundle waits for.
        awaits: Awaits,
        /// The location of the declaration.
        place: SourceLocation,
    },
    /// A brief cannot be read.
    #[error("{id} cannot be read: {why}")]
    Unreadable {
        /// The id of the bundle.
        id: BundleId,
        /// The location of the brief.
        place: SourceLocation,
        /// The error of reading it, for people.
        why: String,
    },
    /// A line of the brief is almost a field that the scheduler acts on, and cannot be read as one.
    #[error("{id}: {what}")]
    Misspelled {
        /// The id of the bundle.
        id: BundleId,
        /// The location of the line.
        place: SourceLocation,
        /// The line and the spelling that counts, for people.
        what: String,
    },
    /// A prerequisite is left out of the batch, see
    /// [`Options::leave_alone`](crate::Options::leave_alone).
    #[error("{id} depends on {on}, which is left alone")]
    Behind {
        /// The id of the bundle with the declaration.
        id: BundleId,
        /// The id of the prerequisite.
        on: BundleId,
        /// The location of the declaration.
        place: SourceLocation,
    },
    /// A glob is malformed or leaves the tree.
    #[error("{id} touches `{}`", glob.escape_debug())]
    BadGlob {
        /// The id of the bundle with the declaration.
        id: BundleId,
        /// The glob as written.
        glob: String,
        /// The location of the glob.
        place: SourceLocation,
        /// The error of parsing the glob.
        source: PatternError,
    },
}

/// Joins the problems with `; `, each with its location, so that the error is complete by itself.
fn listed(problems: &[PlanProblem]) -> String {
    let one = |problem: &PlanProblem| match problem {
        PlanProblem::DuplicateId { .. } | PlanProblem::Cycle { .. } => problem.to_string(),
        PlanProblem::BadGlob { source, place, .. } => format!("{problem}: {source} ({place})"),
        PlanProblem::DependsOnItself { place, .. }
        | PlanProblem::NoSuchPrerequisite { place, .. }
        | PlanProblem::NoSuchRival { place, .. }
        | PlanProblem::PrerequisiteNotComplete { place, .. }
        | PlanProblem::Unreadable { place, .. }
        | PlanProblem::Misspelled { place, .. }
        | PlanProblem::Behind { place, .. } => format!("{problem} ({place})"),
    };
    problems.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn standing_words(standing: ItemState, in_batch: bool, awaits: Awaits) -> &'static str {
    match (standing, in_batch) {
        (ItemState::Ended, _) => "given up",
        (ItemState::Complete, _) if awaits == Awaits::Landed => "accepted and has not landed",
        (_, true) => "not complete",
        (_, false) => "not complete and not in the batch",
    }
}

impl PlanProblem {
    /// The bundle that the problem is about; for a cycle, one of its bundles.
    pub fn id(&self) -> &BundleId {
        match self {
            Self::DuplicateId { id, .. }
            | Self::DependsOnItself { id, .. }
            | Self::NoSuchPrerequisite { id, .. }
            | Self::NoSuchRival { id, .. }
            | Self::PrerequisiteNotComplete { id, .. }
            | Self::Unreadable { id, .. }
            | Self::Misspelled { id, .. }
            | Self::Behind { id, .. }
            | Self::BadGlob { id, .. } => id,
            Self::Cycle { edges, .. } => &edges[0].dependant,
        }
    }

    /// The bundle that must change first, if it is not the one that the problem is about.
    pub fn on(&self) -> Option<&BundleId> {
        match self {
            Self::NoSuchPrerequisite { on, .. }
            | Self::PrerequisiteNotComplete { on, .. }
            | Self::Behind { on, .. } => Some(on),
            Self::DuplicateId { .. }
            | Self::DependsOnItself { .. }
            | Self::NoSuchRival { .. }
            | Self::Unreadable { .. }
            | Self::Misspelled { .. }
            | Self::BadGlob { .. }
            | Self::Cycle { .. } => None,
        }
    }

    /// Returns true if the problem affects only its own bundle and its dependants. The others are
    /// contradictions, which reject the whole batch.
    pub fn is_of_one(&self) -> bool {
        match self {
            Self::NoSuchRival { .. }
            | Self::PrerequisiteNotComplete { .. }
            | Self::Unreadable { .. }
            | Self::Misspelled { .. }
            | Self::Behind { .. }
            | Self::BadGlob { .. } => true,
            Self::DuplicateId { .. }
            | Self::DependsOnItself { .. }
            | Self::NoSuchPrerequisite { .. }
            | Self::Cycle { .. } => false,
        }
    }

    /// The location to look at first.
    pub fn place(&self) -> &SourceLocation {
        match self {
            Self::DuplicateId { again: place, .. }
            | Self::DependsOnItself { place, .. }
            | Self::NoSuchPrerequisite { place, .. }
            | Self::NoSuchRival { place, .. }
            | Self::Unreadable { place, .. }
            | Self::Misspelled { place, .. }
            | Self::Behind { place, .. }
            | Self::PrerequisiteNotComplete { place, .. }
            | Self::BadGlob { place, .. } => place,
            Self::Cycle { edges, .. } => &edges[0].place,
        }
    }
}

/// A declared dependency between two bundles of the batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Edge", transform = with_rule))]
#[serde(tag = "rule", rename = "depends_on")]
pub struct Edge {
    /// The bundle that it waits for.
    #[serde(rename = "from")]
    pub prerequisite: BundleId,
    /// The bundle that waits.
    #[serde(rename = "to")]
    pub dependant: BundleId,
    /// The state that the prerequisite must reach.
    pub awaits: Awaits,
    /// The location of the declaration.
    #[serde(flatten)]
    pub place: SourceLocation,
}

/// Adds the tag of a dependency to its schema. Schemas are derived without the tag of a struct.
#[cfg(feature = "schema")]
pub(crate) fn with_rule(schema: &mut schemars::Schema) {
    let schema = schema.ensure_object();
    let rule = serde_json::json!({"type": "string", "const": "depends_on"});
    if let Some(properties) = schema.get_mut("properties").and_then(|found| found.as_object_mut()) {
        properties.insert("rule".to_owned(), rule);
    }
    if let Some(required) = schema.get_mut("required").and_then(|found| found.as_array_mut()) {
        required.push("rule".into());
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} depends on {} ({})", self.dependant, self.prerequisite, self.place)
    }
}

/// A hint for the author of a brief; the plan is valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanNotice {
    /// A bundle declares no paths, so overlaps with it cannot be found.
    #[error("{id} declares no `Touches`")]
    NothingDeclared {
        /// The id of the bundle.
        id: BundleId,
        /// The location of the brief.
        place: SourceLocation,
    },
    /// A bundle in `Conflicts with` does not exist; it may have been removed.
    #[error("{id} conflicts with {with}, which does not exist")]
    NoSuchRival {
        /// The id of the bundle with the declaration.
        id: BundleId,
        /// The id that does not exist.
        with: BundleId,
        /// The location of the declaration.
        place: SourceLocation,
        /// Bundles with a similar name, nearest first.
        near: Vec<BundleId>,
    },
    /// A bundle declares a conflict with itself, which has no effect.
    #[error("{id} conflicts with itself")]
    ConflictsWithItself {
        /// The id of the bundle.
        id: BundleId,
        /// The location of the declaration.
        place: SourceLocation,
    },
}
