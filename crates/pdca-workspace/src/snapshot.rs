//! One view of a workspace: bundles, runs, lanes, queue and accepted changes.
//!
//! A [`WorkspaceSnapshot`] is read once, in this process, and then only looked at: `status`, `queue`, `why` and bare
//! `pdca` render the same values.
//!
//! ```
//! use pdca_workspace::snapshot::{SnapshotSource, WorkspaceSnapshot, next_of_workspace};
//! use pdca_state::{Awaits, BundleRoot};
//!
//! let bundles = BundleRoot::new("/workspace/results");
//! let source = SnapshotSource { bundles: &bundles, awaits: Awaits::Accepted, config: None };
//! let snapshot = WorkspaceSnapshot::load(source)?;
//! let next = next_of_workspace(&snapshot, "/workspace".into());
//! assert_eq!(next.why, "there is no bundle yet");
//! # Ok::<(), pdca_state::RootError>(())
//! ```
//!
//! # Invariants
//! - No child process is started: files, locks, and objects and refs of the targets are read here.
//! - Landed, staged and reverted are decided by the trailers that name a seal, never by ids, dates or branch names.
//! - Errors never hide the rest: what cannot be read is an entry with its error, or is left out.
//! - Nothing is changed but `.pdca/snapshot.json`, a cache that can be deleted at any time, and nothing is printed.

mod accepted;
mod activity;
mod flow;
mod group;
mod landing_summary;
mod next;
mod runs;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pdca_state::{
    Awaits, Bundle, BundleId, BundleRoot, Coverage, Glance, LoadError, Overall, Part, RootError,
    State, Stranger, held_parts, survey_bundles,
};

use accepted::AcceptedChanges;
use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::{BeatFailure, SplitPolicy, WorkspaceConfig};
use pdca_integrate::TargetBranches;

pub use activity::Doing;
pub use group::StatusGroup;
pub use landing_summary::{
    BranchSummary, ChangeMark, LandingSummary, after_held, after_unsealed, merge_command,
};
pub use next::{Next, after_stale, edit_brief, next_of_bundle, next_of_workspace, unblocking};
pub use runs::{BlockRow, DoingRow, DriverRow, FoundRow, RunRow, RunRowKind, blocked_bundles};
pub use work::{HeldBy, WorkspaceActivity, ago, timestamp};

/// The parts of a workspace that a snapshot reads.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotSource<'a> {
    pub bundles: &'a BundleRoot,
    /// The state that a dependency must reach if its declaration does not say.
    pub awaits: Awaits,
    /// The driver's configuration; without it runs, locks and targets are left out.
    pub config: Option<&'a WorkspaceConfig>,
}

/// Every active bundle of a workspace.
#[derive(Debug)]
pub struct WorkspaceSnapshot {
    /// Unreadable ones first, then by state, those that need a person before the others, then by id.
    pub entries: Vec<SnapshotEntry>,
    /// Entries that are named like a bundle and are none.
    pub strangers: Vec<Stranger>,
    /// The running drivers; empty unless loaded with [`Self::load_at_work`].
    pub work: WorkspaceActivity,
    /// The states of accepted changes; empty unless loaded with [`Self::load_at_work`].
    pub landing: LandingSummary,
    /// The bundles that wait to be unblocked, with name and evidence; empty unless loaded with [`Self::load_at_work`].
    pub blocked: BTreeMap<BundleId, (String, String)>,
    /// The active runs and integrations; empty unless loaded with [`Self::load_at_work`].
    pub runs: Vec<RunRow>,
    /// The errors of reading runs, one line each.
    pub unread: Vec<String>,
}

/// One bundle of the list.
#[derive(Debug)]
pub struct SnapshotEntry {
    pub id: BundleId,
    pub dir: Utf8PathBuf,
    /// Its state and key facts, or the error of reading them.
    pub glance: Result<Glance, LoadError>,
    /// The unmet dependencies.
    pub blocked_by: Vec<Blocker>,
    /// The declared conflicts.
    pub conflicts_with: Vec<BundleId>,
    /// Oddities in these declarations, one line each.
    pub warnings: Vec<String>,
    /// The failure that still counts.
    pub failed: Option<BeatFailure>,
}

/// A dependency that has not reached the required state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    pub id: BundleId,
    pub standing: DependencyStatus,
    /// The required state.
    pub awaits: Awaits,
}

/// The state of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyStatus {
    In(State),
    Unreadable,
    /// There is no such bundle.
    Missing,
}

impl std::fmt::Display for DependencyStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DependencyStatus::In(state) => write!(f, "{state}"),
            DependencyStatus::Unreadable => f.write_str("unreadable"),
            DependencyStatus::Missing => f.write_str("no such bundle"),
        }
    }
}

impl SnapshotEntry {
    /// Returns the state; `None` if unreadable.
    pub fn state(&self) -> Option<State> {
        self.glance.as_ref().ok().map(|glance| glance.state)
    }

    /// Returns whether a driver can continue it now.
    pub fn can_go_on(&self) -> bool {
        self.blocked_by.is_empty() && self.has_work()
    }

    /// Returns whether a driver has work to do for it, now or after its dependencies.
    pub fn has_work(&self) -> bool {
        self.state().is_some_and(|state| match state {
            State::Planned | State::Built | State::Checked | State::Iterate(_) => true,
            State::Unplanned
            | State::Resolved
            | State::AwaitingSignoff
            | State::Complete
            | State::Discontinued => false,
        })
    }
}

impl WorkspaceSnapshot {
    /// Loads every bundle. An unreadable bundle is an entry with an error; a missing bundle root is empty.
    pub fn load(source: SnapshotSource<'_>) -> Result<Self, RootError> {
        Self::load_with(source, &mut None)
    }

    /// Like [`Self::load`], with running drivers, accepted changes and blocks.
    pub fn load_at_work(source: SnapshotSource<'_>) -> Result<Self, RootError> {
        let mut accepted = None;
        let mut snapshot = Self::load_with(source, &mut accepted)?;
        if let Some(config) = source.config {
            snapshot.work = WorkspaceActivity::load(config, &snapshot.entries);
            snapshot.landing = LandingSummary::load(config, &snapshot.entries, accepted);
            snapshot.blocked = blocked_bundles(config);
            (snapshot.runs, snapshot.unread) = runs::all(config);
        }
        Ok(snapshot)
    }

    /// Loads every bundle; `accepted` keeps what was read of the targets.
    fn load_with(
        source: SnapshotSource<'_>,
        accepted: &mut Option<AcceptedChanges>,
    ) -> Result<Self, RootError> {
        let root = source.bundles;
        let empty = WorkspaceSnapshot {
            entries: Vec::new(),
            strangers: Vec::new(),
            work: WorkspaceActivity::default(),
            landing: LandingSummary::default(),
            blocked: BTreeMap::new(),
            runs: Vec::new(),
            unread: Vec::new(),
        };
        let listing = match root.scan() {
            Err(RootError::Missing { .. }) => return Ok(empty),
            listing => listing?,
        };
        let rows = survey_bundles(&listing.bundles);
        let mut standings: BTreeMap<BundleId, DependencyStatus> = rows
            .iter()
            .map(|row| {
                let standing = row.result.as_ref().map_or(DependencyStatus::Unreadable, |glance| {
                    DependencyStatus::In(glance.state)
                });
                (row.id.clone(), standing)
            })
            .collect();
        let mut standing_of = |id: &BundleId| {
            *standings.entry(id.clone()).or_insert_with(|| {
                let put_away = root.completed().bundle(id);
                match put_away.glance() {
                    Ok(glance) => DependencyStatus::In(glance.state),
                    Err(LoadError::Missing { .. }) => DependencyStatus::Missing,
                    Err(_) => DependencyStatus::Unreadable,
                }
            })
        };
        let green: BTreeSet<BundleId> = rows
            .iter()
            .filter(|row| row.result.as_ref().is_ok_and(is_green))
            .map(|row| row.id.clone())
            .collect();
        // With those in `completed/`: a dependency on one of them must not be read as prose.
        let names: BTreeSet<BundleId> = listing
            .bundles
            .iter()
            .chain(&root.list_completed()?)
            .map(|bundle| bundle.id().clone())
            .collect();
        let mut entries: Vec<SnapshotEntry> = rows
            .into_iter()
            .map(|row| {
                let declared = Declared::of(&row.result, &names);
                let mut blocked_by = Vec::new();
                let mut unmet = |id: BundleId| {
                    let awaits =
                        if declared.landed.contains(&id) { Awaits::Landed } else { source.awaits };
                    let standing = standing_of(&id);
                    let is_met = match (standing, awaits) {
                        (
                            DependencyStatus::In(State::Complete),
                            Awaits::Built | Awaits::Accepted,
                        ) => true,
                        (_, Awaits::Built) => green.contains(&id),
                        _ => false,
                    };
                    (!is_met).then_some(Blocker { id, standing, awaits })
                };
                blocked_by.extend(declared.depends_on.iter().cloned().filter_map(&mut unmet));
                if source.config.is_none_or(|config| config.schedule.split == SplitPolicy::Auto) {
                    let waited_for = row.result.iter().flat_map(|glance| &glance.parts);
                    let waited_for = waited_for.flat_map(|part| part.blockers.iter().cloned());
                    let open: BTreeMap<BundleId, Blocker> =
                        waited_for.filter_map(|id| Some((id.clone(), unmet(id)?))).collect();
                    let is_new = |id: &BundleId| !blocked_by.iter().any(|known| known.id == *id);
                    let waits = whole_waits(&row.result, &names, &|id| open.contains_key(id));
                    let new: Vec<BundleId> = waits.into_iter().filter(is_new).collect();
                    blocked_by.extend(new.iter().filter_map(|id| open.get(id).cloned()));
                }
                SnapshotEntry {
                    id: row.id,
                    dir: row.dir,
                    glance: row.result,
                    blocked_by,
                    conflicts_with: declared.conflicts_with,
                    warnings: declared.warnings,
                    failed: None,
                }
            })
            .collect();
        if let Some(config) = source.config {
            take_out_landed(config, &mut entries, accepted);
            let failures = pdca_driver::BeatFailures::listed(config);
            for entry in &mut entries {
                let (Ok(glance), Ok(bundle)) = (&entry.glance, Bundle::at(&*entry.dir)) else {
                    continue;
                };
                entry.failed = failures.find(&bundle, glance);
            }
        }
        // The sort is stable: entries of one state stay in the order of their ids.
        entries.sort_by_key(|entry| rank(entry.state()));
        Ok(WorkspaceSnapshot { entries, strangers: listing.strangers, ..empty })
    }

    pub fn get(&self, id: &BundleId) -> Option<&SnapshotEntry> {
        self.entries.iter().find(|entry| entry.id == *id)
    }

    /// Returns the shortest dependency cycle through a bundle, if there is one.
    pub fn cycle(&self, start: &BundleId) -> Option<Vec<BundleId>> {
        let entries: BTreeMap<&BundleId, &SnapshotEntry> =
            self.entries.iter().map(|entry| (&entry.id, entry)).collect();
        // Maps each reached bundle to its predecessor.
        let mut reached: BTreeMap<&BundleId, &BundleId> = BTreeMap::new();
        let mut waiting = VecDeque::from([entries.get(start)?.id.clone()]);
        while let Some(at) = waiting.pop_front() {
            let Some((&at, entry)) = entries.get_key_value(&at) else { continue };
            for blocker in &entry.blocked_by {
                if blocker.id == *start {
                    let mut way = vec![start.clone(), at.clone()];
                    while let Some(before) = way.last().and_then(|last| reached.get(last)) {
                        way.push((*before).clone());
                    }
                    way.reverse();
                    return Some(way);
                }
                if !reached.contains_key(&blocker.id) {
                    reached.insert(&blocker.id, at);
                    waiting.push_back(blocker.id.clone());
                }
            }
        }
        None
    }

    /// Returns the number of bundles in each state, in display order.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for entry in &self.entries {
            let name = entry.state().map_or(UNREADABLE, State::as_str);
            // Entries are sorted by state, so those of one state are neighbours.
            match counts.last_mut() {
                Some((last, count)) if *last == name => *count += 1,
                _ => counts.push((name, 1)),
            }
        }
        counts
    }
}

/// The declarations of an open bundle about others.
#[derive(Default)]
struct Declared {
    depends_on: Vec<BundleId>,
    landed: Vec<BundleId>,
    conflicts_with: Vec<BundleId>,
    warnings: Vec<String>,
}

impl Declared {
    fn of(glance: &Result<Glance, LoadError>, names: &BTreeSet<BundleId>) -> Self {
        let Ok(glance) = glance else { return Self::default() };
        let there = |id: &BundleId| names.contains(id);
        let conflicts_with = glance.conflicts_with.among(&there);
        let mut declared = Self { conflicts_with: conflicts_with.ids, ..Self::default() };
        if glance.state.is_open() {
            let depends_on = glance.depends_on.among(&there);
            declared.landed = glance.depends_on_landed.among(&there).ids;
            declared.depends_on = depends_on.ids;
            let remarks = glance.remarks.iter();
            declared.warnings =
                remarks.map(|remark| format!("line {}: {remark}", remark.line)).collect();
            declared.warnings.extend(depends_on.warnings);
            declared.warnings.extend(conflicts_with.warnings);
        }
        declared
    }
}

/// Returns the open bundles for which a bundle waits as a whole, because a part of it waits for them and no other part can
/// start without them.
fn whole_waits(
    glance: &Result<Glance, LoadError>,
    names: &BTreeSet<BundleId>,
    is_open: &dyn Fn(&BundleId) -> bool,
) -> BTreeSet<BundleId> {
    let Ok(glance) = glance else { return BTreeSet::new() };
    if glance.state != State::Planned || glance.iterations > 0 || glance.parts.is_empty() {
        return BTreeSet::new();
    }
    let mut parts = glance.parts.clone();
    for part in &mut parts {
        part.keep_blockers(&|id| names.contains(id));
    }
    let held = held_parts(&parts, is_open).len();
    // The next driver splits it, and the ready parts start.
    if parts.iter().all(Part::is_complete) && parts.len() > 1 && held < parts.len() {
        return BTreeSet::new();
    }
    let on = parts.into_iter().flat_map(|part| part.blockers);
    on.filter(is_open).collect()
}

/// Returns whether a bundle is green and waits for its sign-off.
fn is_green(glance: &Glance) -> bool {
    glance.state == State::AwaitingSignoff
        && glance.overall == Some(Overall::Pass)
        && glance.coverage != Coverage::Changed
        && !glance.is_brief_edited
}

/// Removes blockers that have landed. The targets are read only if something waits for a landing.
fn take_out_landed(
    config: &WorkspaceConfig,
    entries: &mut [SnapshotEntry],
    changes: &mut Option<AcceptedChanges>,
) {
    let is_accepted =
        |blocker: &&Blocker| blocker.standing == DependencyStatus::In(State::Complete);
    let accepted: BTreeSet<BundleId> = entries
        .iter()
        .flat_map(|entry| entry.blocked_by.iter().filter(is_accepted))
        .map(|blocker| blocker.id.clone())
        .collect();
    if accepted.is_empty() {
        return;
    }
    // Without a target there is no branch to land in, and an acceptance is the end.
    let landed = if config.targets.is_empty() {
        accepted
    } else {
        let Some(found) = AcceptedChanges::load(config, entries) else { return };
        accepted.difference(&changes.insert(found).not_landed).cloned().collect()
    };
    for entry in entries {
        entry.blocked_by.retain(|blocker| !landed.contains(&blocker.id));
    }
}

/// Reads the branches of the targets with the accepted changes. The bundles were looked at before, so those that are
/// not accepted are not read again.
fn read_branches(config: &WorkspaceConfig, open: &BTreeSet<&Utf8Path>) -> Option<TargetBranches> {
    TargetBranches::load_bundles(&config.queue(), |bundle| !open.contains(bundle.dir())).ok()
}

/// Returns the directories of bundles that are not accepted.
fn open_dirs(entries: &[SnapshotEntry]) -> BTreeSet<&Utf8Path> {
    let is_open = |entry: &&SnapshotEntry| entry.state() != Some(State::Complete);
    entries.iter().filter(is_open).map(|entry| entry.dir.as_path()).collect()
}

/// Shown in place of the state of an unreadable bundle.
pub const UNREADABLE: &str = "UNREADABLE";

fn rank(state: Option<State>) -> u8 {
    match state {
        None => 0,
        Some(State::AwaitingSignoff) => 1,
        Some(State::Iterate(pdca_state::Reentry::Do)) => 2,
        Some(State::Iterate(pdca_state::Reentry::Plan)) => 3,
        Some(State::Checked) => 4,
        Some(State::Built) => 5,
        Some(State::Planned) => 6,
        Some(State::Unplanned) => 7,
        Some(State::Resolved) => 8,
        Some(State::Complete) => 9,
        Some(State::Discontinued) => 10,
    }
}
