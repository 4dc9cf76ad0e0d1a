//! One issue in a list.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::BeatFailure;
use pdca_state::{BundleId, CostTotal, Coverage, LoadError, Overall, SignoffAction, State, chain};
use serde::{Serialize, Serializer};

use crate::issue::cost::cost;
use crate::snapshot::{
    DoingRow, SnapshotEntry, UNREADABLE, WorkspaceSnapshot, next_of_bundle, timestamp,
};

/// The key facts about one issue.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueRow {
    pub id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: Utf8PathBuf,
    pub state: ListedState,
    pub blocked_by: Vec<BundleId>,
    /// Rivals in flight.
    pub held_by: Vec<BundleId>,
    pub conflicts_with: Vec<BundleId>,
    pub touches: Vec<String>,
    pub lane: Option<u32>,
    /// The process that holds it, as it says.
    pub holder: Option<String>,
    /// In UTC: the start of the work on it, or the last change of its directory.
    pub since: Option<String>,
    /// Its current activity; null where it is not in work.
    pub doing: Option<DoingRow>,
    pub slug: Option<String>,
    /// The labels that a person has to fill in before a draft counts.
    pub missing: Vec<&'static str>,
    pub open_items: usize,
    pub disposition: Option<String>,
    pub overall: Option<Overall>,
    pub patch_changed: bool,
    /// The brief was edited after Check.
    pub brief_changed: bool,
    /// The decision that the sign-off leaf proposes and nobody has made.
    pub proposed: Option<SignoffAction>,
    pub iterations: u32,
    /// What the calls of leaves cost, over all attempts; null if nothing is known of it.
    pub cost: Option<CostTotal>,
    /// The failure that still counts, or null.
    pub failed: Option<BeatFailure>,
    /// The name of the block that a person must lift, such as `blocked_recovery`, or null.
    pub blocked: Option<String>,
    /// The state of an accepted change: `sealed`, `staged`, `landed`, `held`, `drifted`, `unsealed`.
    pub integration: Option<&'static str>,
    /// The staging branch, or the reason why it is held.
    pub integration_detail: Option<String>,
    /// The reason why its result is stale: something it was built on changed.
    pub stale: Option<String>,
    /// The bundles that its change conflicts with.
    pub forecast_conflicts: Vec<BundleId>,
    /// The command that continues it.
    pub next: Option<String>,
    pub error: Option<UnreadableIssue>,
}

/// The state of a bundle in a list; `None` if it cannot be read, in JSON `UNREADABLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct ListedState(pub Option<State>);

impl Serialize for ListedState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.map_or(UNREADABLE, State::as_str))
    }
}

/// The reason why a bundle cannot be read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableIssue {
    pub message: String,
    pub file: String,
    pub line: Option<usize>,
}

impl IssueRow {
    /// Returns the facts about an entry of a snapshot. Paths in its next command are relative to `cwd`.
    pub fn of(snapshot: &WorkspaceSnapshot, entry: &SnapshotEntry, cwd: &Utf8Path) -> Self {
        let (work, landing) = (&snapshot.work, &snapshot.landing);
        let at_work = work.on(&entry.id);
        let mark = landing.mark(&entry.id);
        let empty = Self {
            id: entry.id.clone(),
            dir: entry.dir.clone(),
            state: ListedState(None),
            blocked_by: entry.blocked_by.iter().map(|blocker| blocker.id.clone()).collect(),
            blocked: snapshot.blocked.get(&entry.id).map(|(name, _)| name.clone()),
            held_by: work.holding(&entry.id).iter().map(|by| by.id.clone()).collect(),
            conflicts_with: Vec::new(),
            touches: Vec::new(),
            lane: at_work.and_then(|at| at.lane),
            holder: at_work.map(|at| at.holder.clone()),
            since: at_work.and_then(|at| timestamp(at.since?)).or_else(|| changed_at(&entry.dir)),
            doing: work.doing(&entry.id).map(DoingRow::of),
            slug: None,
            missing: Vec::new(),
            open_items: 0,
            disposition: None,
            overall: None,
            patch_changed: false,
            brief_changed: false,
            proposed: None,
            iterations: 0,
            cost: cost(entry),
            failed: entry.failed.clone(),
            integration: mark.map(|mark| mark.word),
            integration_detail: mark.and_then(|mark| mark.text.clone()),
            stale: landing.stale(&entry.id).map(|stale| stale.why.clone()),
            forecast_conflicts: landing.conflicts(&entry.id).to_vec(),
            next: next_of_bundle(snapshot, entry, cwd),
            error: None,
        };
        match &entry.glance {
            Err(error) => Self { error: Some(UnreadableIssue::of(error)), ..empty },
            Ok(glance) => Self {
                state: ListedState(Some(glance.state)),
                conflicts_with: entry.conflicts_with.clone(),
                touches: glance.touches.clone(),
                slug: glance.slug.clone(),
                missing: glance.missing.clone(),
                open_items: glance.open_items,
                disposition: glance.disposition_hint.clone(),
                overall: glance.overall,
                patch_changed: glance.coverage == Coverage::Changed,
                brief_changed: glance.is_brief_edited,
                proposed: glance.proposed,
                iterations: glance.iterations,
                ..empty
            },
        }
    }
}

impl UnreadableIssue {
    fn of(error: &LoadError) -> Self {
        Self { message: chain(error), file: error.path().to_string(), line: error.line() }
    }
}

fn changed_at(dir: &Utf8Path) -> Option<String> {
    timestamp(fs_err::metadata(dir).ok()?.modified().ok()?)
}
