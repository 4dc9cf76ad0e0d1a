//! What a plan is made from: the bundles of a batch and what their briefs declare.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_state::{Awaits, BundleId};
use serde::{Deserialize, Serialize};

/// Where something was declared, so that it can be found and changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceLocation {
    /// The file, as the operator should see it.
    pub file: Utf8PathBuf,
    /// The line in it, from 1.
    pub line: usize,
}

impl SourceLocation {
    /// A line of a file.
    pub fn new(file: impl Into<Utf8PathBuf>, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Another bundle, named in a `Depends on` or `Conflicts with`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The bundle that is named.
    pub id: BundleId,
    /// Where.
    pub place: SourceLocation,
    /// How far a prerequisite must be; [`Awaits::Landed`] where the brief says so itself. Otherwise
    /// [`Options::dependants`] decides.
    pub awaits: Awaits,
}

impl Declared {
    /// A bundle that is named without saying how far it must be.
    pub fn new(id: BundleId, place: SourceLocation) -> Self {
        Self { id, place, awaits: Awaits::Accepted }
    }
}

/// One glob of a `Touches`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The glob as written.
    pub glob: String,
    /// Where.
    pub place: SourceLocation,
    /// Whether the caller knows that this is a file of the tree and no directory. A plain path
    /// otherwise stands for all below it as well, and so meets `**/x` in `src/lib.rs/x`. On a
    /// glob that has a wildcard it changes nothing.
    pub is_file: bool,
}

/// Where a bundle stands, as far as what may start is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemState {
    /// There is work to do.
    Active,
    /// It waits for a person before anything can be built. It is not started; what depends on it
    /// waits too.
    Waiting,
    /// It is built and green, and waits for its sign-off.
    Built,
    /// It is built and red, and waits for its sign-off.
    Red,
    /// It was signed off.
    Complete,
    /// It was signed off and is in the target branch.
    Landed,
    /// It was given up and will never be complete.
    Ended,
}

impl ItemState {
    /// Whether a batch still has to do with it.
    pub(crate) fn is_live(self) -> bool {
        match self {
            Self::Active | Self::Waiting | Self::Built | Self::Red => true,
            Self::Complete | Self::Landed | Self::Ended => false,
        }
    }

    /// How far it has come, for what depends on it.
    pub fn reached(self) -> Option<Awaits> {
        match self {
            Self::Active | Self::Waiting | Self::Red | Self::Ended => None,
            Self::Built => Some(Awaits::Built),
            Self::Complete => Some(Awaits::Accepted),
            Self::Landed => Some(Awaits::Landed),
        }
    }

    /// Whether its result keeps rivals from starting, where those wait for `rivals`.
    pub fn holds(self, rivals: Awaits) -> bool {
        match self {
            Self::Built | Self::Red => rivals > Awaits::Built,
            Self::Complete => rivals > Awaits::Accepted,
            Self::Active | Self::Waiting | Self::Landed | Self::Ended => false,
        }
    }
}

/// One bundle of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: BundleId,
    /// Its brief.
    pub place: SourceLocation,
    /// Where it stands.
    pub standing: ItemState,
    /// Whether work on it has begun. Such a bundle is never moved to another group.
    pub started: bool,
    /// What must be complete before it.
    pub depends_on: Vec<Declared>,
    /// What it must not run beside.
    pub conflicts_with: Vec<Declared>,
    /// What it will change; empty makes no claim, see [`Untouched`].
    pub touches: Vec<Touch>,
    /// How long it is expected to take. Nobody's known: each counts as one. Some known: the
    /// others count as the median of those.
    pub duration: Option<Duration>,
    /// Why its brief cannot be read, where it cannot. Such a bundle is never started.
    pub unreadable: Option<String>,
    /// Whether it is no part of the batch and only keeps rivals waiting, see [`Options::rivals`].
    pub guest: bool,
}

impl Item {
    /// An active bundle that declares nothing.
    pub fn new(id: BundleId, place: SourceLocation) -> Self {
        Self {
            id,
            place,
            standing: ItemState::Active,
            started: false,
            depends_on: Vec::new(),
            conflicts_with: Vec::new(),
            touches: Vec::new(),
            duration: None,
            unreadable: None,
            guest: false,
        }
    }

    /// Whether both declare the same, wherever it is written.
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

/// The bundles that are known but not in the batch. One that is not here does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    bundles: BTreeMap<BundleId, ItemState>,
}

impl Outside {
    /// Where a bundle stands; `None` where there is none of this id.
    pub fn standing(&self, id: &BundleId) -> Option<ItemState> {
        self.bundles.get(id).copied()
    }

    /// The ids, sorted.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &BundleId> {
        self.bundles.keys()
    }
}

impl FromIterator<(BundleId, ItemState)> for Outside {
    fn from_iter<T: IntoIterator<Item = (BundleId, ItemState)>>(bundles: T) -> Self {
        Self { bundles: bundles.into_iter().collect() }
    }
}

/// What a bundle without `Touches` claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Untouched {
    /// Nothing.
    #[default]
    Free,
    /// The whole tree, so that it runs alone.
    Exclusive,
}

/// How declarations are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a bundle without `Touches` claims.
    pub untouched: Untouched,
    /// Whether the file system takes `README` and `readme` for one file.
    pub fold_case: bool,
    /// Whether a dependant joins the group of its prerequisite.
    pub join_dependencies: bool,
    /// How far a prerequisite must be before what depends on it may start.
    pub dependants: Awaits,
    /// How far the result of a bundle must be before its rivals may start.
    pub rivals: Awaits,
    /// Whether a bundle that cannot be started is left out, with all that depends on it, instead of
    /// keeping the others from starting. Declarations that contradict each other always do.
    pub leave_alone: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            untouched: Untouched::default(),
            fold_case: false,
            join_dependencies: false,
            dependants: Awaits::Accepted,
            rivals: Awaits::Built,
            leave_alone: false,
        }
    }
}
