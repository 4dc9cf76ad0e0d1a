//! Why there is no plan, and what is odd about one.

use std::fmt;

use pdca_state::{Awaits, BundleId};

use crate::item::{ItemState, SourceLocation};
use crate::pattern::PatternError;

/// A batch that cannot be carried out, with everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the batch cannot be carried out: {} problem(s)", problems.len())]
pub struct Rejection {
    /// All of it, by place.
    pub problems: Vec<Problem>,
}

/// One thing that makes a batch impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Two items have one id.
    #[error("{id} is in the batch twice: {first} and {again}")]
    DuplicateId {
        /// The id.
        id: BundleId,
        /// The first that has it.
        first: SourceLocation,
        /// Another one.
        again: SourceLocation,
    },
    /// A bundle waits for itself.
    #[error("{id} depends on itself")]
    DependsOnItself {
        /// The bundle.
        id: BundleId,
        /// Where it says so.
        place: SourceLocation,
    },
    /// Bundles wait for each other.
    #[error("cycle: {}", edges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle {
        /// The way round: each edge ends where the next starts, the last where the first starts.
        edges: Vec<Edge>,
        /// How many bundles wait for each other, those of other ways round included.
        tangled: usize,
    },
    /// There is no such bundle.
    #[error("{id} depends on {on}, which does not exist")]
    NoSuchPrerequisite {
        /// The bundle.
        id: BundleId,
        /// What it names.
        on: BundleId,
        /// Where.
        place: SourceLocation,
        /// Bundles of nearly this name, nearest first.
        near: Vec<BundleId>,
    },
    /// It is named as a rival, has the shape of a word, and is no bundle.
    #[error("{id} conflicts with {with}, which does not exist")]
    NoSuchRival {
        /// The bundle.
        id: BundleId,
        /// What it names.
        with: BundleId,
        /// Where.
        place: SourceLocation,
        /// Bundles of nearly this name, nearest first.
        near: Vec<BundleId>,
    },
    /// The batch will not complete it, and nobody has.
    #[error("{id} depends on {on}, which is {}", standing_words(*standing, *in_batch, *awaits))]
    PrerequisiteNotComplete {
        /// The bundle.
        id: BundleId,
        /// What it names.
        on: BundleId,
        /// Where that stands.
        standing: ItemState,
        /// Whether that is part of the batch.
        in_batch: bool,
        /// How far it must be.
        awaits: Awaits,
        /// Where it is named.
        place: SourceLocation,
    },
    /// Its brief cannot be read.
    #[error("{id} cannot be read: {why}")]
    Unreadable {
        /// The bundle.
        id: BundleId,
        /// Its brief.
        place: SourceLocation,
        /// Why not.
        why: String,
    },
    /// It depends on a bundle that is left alone.
    #[error("{id} depends on {on}, which is left alone")]
    Behind {
        /// The bundle.
        id: BundleId,
        /// What it depends on.
        on: BundleId,
        /// Where.
        place: SourceLocation,
    },
    /// A glob that says nothing, or nothing inside the tree.
    #[error("{id} touches `{}`", glob.escape_debug())]
    BadGlob {
        /// The bundle.
        id: BundleId,
        /// The glob as written.
        glob: String,
        /// Where.
        place: SourceLocation,
        /// What is wrong with it.
        source: PatternError,
    },
}

fn standing_words(standing: ItemState, in_batch: bool, awaits: Awaits) -> &'static str {
    match (standing, in_batch) {
        (ItemState::Ended, _) => "given up",
        (ItemState::Complete, _) if awaits == Awaits::Landed => "accepted and has not landed",
        (_, true) => "not complete",
        (_, false) => "not complete and not in the batch",
    }
}

impl Problem {
    /// The bundle that it is about; of a cycle, one of them.
    pub fn id(&self) -> &BundleId {
        match self {
            Self::DuplicateId { id, .. }
            | Self::DependsOnItself { id, .. }
            | Self::NoSuchPrerequisite { id, .. }
            | Self::NoSuchRival { id, .. }
            | Self::PrerequisiteNotComplete { id, .. }
            | Self::Unreadable { id, .. }
            | Self::Behind { id, .. }
            | Self::BadGlob { id, .. } => id,
            Self::Cycle { edges, .. } => &edges[0].dependant,
        }
    }

    /// The bundle that must change first, where it is not the one that the problem is about.
    pub fn on(&self) -> Option<&BundleId> {
        match self {
            Self::NoSuchPrerequisite { on, .. }
            | Self::PrerequisiteNotComplete { on, .. }
            | Self::Behind { on, .. } => Some(on),
            Self::DuplicateId { .. }
            | Self::DependsOnItself { .. }
            | Self::NoSuchRival { .. }
            | Self::Unreadable { .. }
            | Self::BadGlob { .. }
            | Self::Cycle { .. } => None,
        }
    }

    /// Whether it keeps its own bundle from starting and says nothing about the others. The rest are
    /// contradictions, with which nothing is started.
    pub fn is_of_one(&self) -> bool {
        match self {
            Self::NoSuchRival { .. }
            | Self::PrerequisiteNotComplete { .. }
            | Self::Unreadable { .. }
            | Self::Behind { .. }
            | Self::BadGlob { .. } => true,
            Self::DuplicateId { .. }
            | Self::DependsOnItself { .. }
            | Self::NoSuchPrerequisite { .. }
            | Self::Cycle { .. } => false,
        }
    }

    /// Where to start looking.
    pub fn place(&self) -> &SourceLocation {
        match self {
            Self::DuplicateId { again: place, .. }
            | Self::DependsOnItself { place, .. }
            | Self::NoSuchPrerequisite { place, .. }
            | Self::NoSuchRival { place, .. }
            | Self::Unreadable { place, .. }
            | Self::Behind { place, .. }
            | Self::PrerequisiteNotComplete { place, .. }
            | Self::BadGlob { place, .. } => place,
            Self::Cycle { edges, .. } => &edges[0].place,
        }
    }
}

/// A declared dependency between two bundles of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The one that waits.
    pub dependant: BundleId,
    /// The one it waits for.
    pub prerequisite: BundleId,
    /// Where the dependant says so.
    pub place: SourceLocation,
    /// How far the prerequisite must be.
    pub awaits: Awaits,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} depends on {} ({})", self.dependant, self.prerequisite, self.place)
    }
}

/// Something the author of a brief should look at; the plan stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// Nothing is known about what it will change.
    #[error("{id} declares no `Touches`")]
    NothingDeclared {
        /// The bundle.
        id: BundleId,
        /// Its brief.
        place: SourceLocation,
    },
    /// A conflict with a bundle that does not exist holds nothing apart.
    #[error("{id} conflicts with {with}, which does not exist")]
    NoSuchRival {
        /// The bundle.
        id: BundleId,
        /// What it names.
        with: BundleId,
        /// Where.
        place: SourceLocation,
        /// Bundles of nearly this name, nearest first.
        near: Vec<BundleId>,
    },
    /// A bundle never runs beside itself anyway.
    #[error("{id} conflicts with itself")]
    ConflictsWithItself {
        /// The bundle.
        id: BundleId,
        /// Where it says so.
        place: SourceLocation,
    },
}
