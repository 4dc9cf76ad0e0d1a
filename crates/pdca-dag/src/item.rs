//! The input of a plan: the bundles of a batch and their declarations.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_state::{Awaits, BundleId};
use serde::{Deserialize, Serialize};

/// The file and line of a declaration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceLocation {
    /// The path, in the form to show to people.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    /// The line number, from 1.
    pub line: usize,
}

impl SourceLocation {
    /// Makes a location of a path and a line number.
    pub fn new(file: impl Into<Utf8PathBuf>, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A reference to another bundle in `Depends on` or `Conflicts with`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The id of the other bundle.
    pub id: BundleId,
    /// The location of the reference.
    pub place: SourceLocation,
    /// The progress that a prerequisite must have. Only [`Awaits::Landed`] is taken from here; for
    /// the others, [`Options::dependants`] decides.
    pub awaits: Awaits,
}

impl Declared {
    /// Makes a reference for which [`Options::dependants`] decides what it waits for.
    pub fn new(id: BundleId, place: SourceLocation) -> Self {
        Self { id, place, awaits: Awaits::Accepted }
    }
}

/// One glob in a `Touches` declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The glob as written.
    pub glob: String,
    /// The location of the glob.
    pub place: SourceLocation,
    /// Set it if the path is known to be a file and not a directory. A plain path otherwise also
    /// covers everything below it, and so `src/lib.rs` overlaps `**/x` in `src/lib.rs/x`. Has no
    /// effect on a glob with wildcards.
    pub is_file: bool,
}

/// The state of a bundle, as far as it matters for scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemState {
    /// Has work to do.
    Active,
    /// Waits for a person before it can be built. It is not started, and its dependants wait too.
    Waiting,
    /// Built with passing gates, and waits for its sign-off.
    Built,
    /// Built with failed gates, and waits for its sign-off.
    Red,
    /// Accepted at sign-off.
    Complete,
    /// Accepted and landed in the target branch.
    Landed,
    /// Given up; will never be complete.
    Ended,
}

impl ItemState {
    /// Returns true unless the bundle is complete, landed or given up.
    pub(crate) fn is_live(self) -> bool {
        match self {
            Self::Active | Self::Waiting | Self::Built | Self::Red => true,
            Self::Complete | Self::Landed | Self::Ended => false,
        }
    }

    /// The progress that dependants compare with what they wait for.
    pub fn reached(self) -> Option<Awaits> {
        match self {
            Self::Active | Self::Waiting | Self::Red | Self::Ended => None,
            Self::Built => Some(Awaits::Built),
            Self::Complete => Some(Awaits::Accepted),
            Self::Landed => Some(Awaits::Landed),
        }
    }

    /// Returns true if the result blocks rivals that wait for the progress `rivals`.
    pub fn holds(self, rivals: Awaits) -> bool {
        match self {
            Self::Built | Self::Red => rivals > Awaits::Built,
            Self::Complete => rivals > Awaits::Accepted,
            Self::Active | Self::Waiting | Self::Landed | Self::Ended => false,
        }
    }
}

/// One bundle and its declarations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The id, unique in the batch.
    pub id: BundleId,
    /// The location of the brief, for problems without a more exact one.
    pub place: SourceLocation,
    /// The current state.
    pub standing: ItemState,
    /// True if work on it has begun. Such a bundle is never moved to another group.
    pub started: bool,
    /// The bundles that must be complete first.
    pub depends_on: Vec<Declared>,
    /// The bundles that must not run at the same time.
    pub conflicts_with: Vec<Declared>,
    /// The paths that it will change. If empty, [`Options::untouched`] decides.
    pub touches: Vec<Touch>,
    /// The parts of the product that it shows on, see [`Options::join_surfaces`].
    pub surfaces: Vec<String>,
    /// The expected duration. A bundle without one counts as the median of the others, or as one unit
    /// if none is known.
    pub duration: Option<Duration>,
    /// The reason its brief cannot be read. Such a bundle is never started.
    pub unreadable: Option<String>,
    /// The lines of its brief that are almost a declaration. Such a bundle is never started.
    pub misspelled: Vec<(SourceLocation, String)>,
    /// True if it is not part of the batch and only blocks rivals, see [`Options::rivals`].
    pub guest: bool,
}

impl Item {
    /// Makes an active bundle without declarations.
    pub fn new(id: BundleId, place: SourceLocation) -> Self {
        Self {
            id,
            place,
            standing: ItemState::Active,
            started: false,
            depends_on: Vec::new(),
            conflicts_with: Vec::new(),
            touches: Vec::new(),
            surfaces: Vec::new(),
            duration: None,
            unreadable: None,
            misspelled: Vec::new(),
            guest: false,
        }
    }

    /// Returns true if both declare the same; locations are ignored.
    pub fn declares_as(&self, other: &Self) -> bool {
        let ids = |list: &[Declared]| {
            list.iter().map(|one| (one.id.clone(), one.awaits)).collect::<Vec<_>>()
        };
        let globs =
            |item: &Self| item.touches.iter().map(|one| one.glob.clone()).collect::<Vec<_>>();
        ids(&self.depends_on) == ids(&other.depends_on)
            && ids(&self.conflicts_with) == ids(&other.conflicts_with)
            && globs(self) == globs(other)
    }
}

/// The bundles that exist and are not in the batch. A reference to any other id is a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    bundles: BTreeMap<BundleId, ItemState>,
}

impl Outside {
    /// The state of a bundle; `None` if it does not exist.
    pub fn standing(&self, id: &BundleId) -> Option<ItemState> {
        self.bundles.get(id).copied()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &BundleId> {
        self.bundles.keys()
    }
}

impl FromIterator<(BundleId, ItemState)> for Outside {
    fn from_iter<T: IntoIterator<Item = (BundleId, ItemState)>>(bundles: T) -> Self {
        Self { bundles: bundles.into_iter().collect() }
    }
}

/// The claim of a bundle without `Touches`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Untouched {
    /// Claims nothing, so that it may run beside any other.
    #[default]
    Free,
    /// Claims the whole tree, so that it runs alone.
    Exclusive,
}

/// Options of [`Plan::new`](crate::Plan::new).
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own in [schedule]")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The claim of a bundle without `Touches`.
    pub untouched: Untouched,
    /// Set it if the file system is case-insensitive: `README` and `readme` are one file.
    pub fold_case: bool,
    /// Put a dependant into the group of its prerequisite.
    pub join_dependencies: bool,
    /// Put bundles with a common surface into one group.
    pub join_surfaces: bool,
    /// The progress that a prerequisite must have before its dependants may start.
    pub dependants: Awaits,
    /// The progress that the result of a bundle must have before its rivals may start.
    pub rivals: Awaits,
    /// Leave out bundles that cannot be started, with all their dependants, instead of rejecting the
    /// batch. Contradictions such as cycles still reject it, see
    /// [`PlanProblem::is_of_one`](crate::PlanProblem::is_of_one).
    pub leave_alone: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            untouched: Untouched::default(),
            fold_case: false,
            join_dependencies: false,
            join_surfaces: false,
            dependants: Awaits::Accepted,
            rivals: Awaits::Built,
            leave_alone: false,
        }
    }
}
