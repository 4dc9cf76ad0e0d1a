//! What the board shows, read from one snapshot of the workspace.

mod integration;
mod records;

use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use pdca_driver::WorkspaceConfig;
use pdca_state::text::one_line;
use pdca_state::{BundleId, Overall, State};
use pdca_workspace::snapshot::{
    SnapshotEntry, WorkspaceSnapshot, next_of_bundle, next_of_workspace,
};

use records::RunRecords;

/// One reading of a workspace.
#[derive(Debug, Clone, Default)]
pub struct BoardData {
    pub project: String,
    /// What waits for sign-off, cheapest first.
    pub waiting: Vec<Waiting>,
    /// What is in work, by lane.
    pub lanes: Vec<LaneRow>,
    /// What is not: the reason, and the next command.
    pub rest: Vec<WorkRow>,
    /// Lines about the running or last integration.
    pub combined: Vec<Combined>,
    /// The name of the running integration.
    pub integration: Option<String>,
    /// The median time from the beginning of an integration to its landing.
    pub usual_landing: Option<Duration>,
    /// The accepted changes.
    pub changes: Vec<ChangeRow>,
    /// The next command of the workspace, and the reason for it.
    pub next: (String, String),
    /// The time of reading.
    pub now: Timestamp,
}

/// A bundle that waits for sign-off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub id: BundleId,
    pub title: String,
    /// The open items, without the standing question.
    pub open: usize,
    pub gates: Option<Overall>,
    /// It conflicts with another change, or its result is stale.
    pub warning: bool,
}

/// A bundle in a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRow {
    pub id: BundleId,
    pub title: String,
    pub lane: Option<u32>,
    /// The process that holds it, as it says.
    pub holder: String,
    /// The step, leaf or gate `k/n`.
    pub doing: String,
    /// The time since the step began.
    pub elapsed: Option<Duration>,
    /// The median time of such a step.
    pub usual: Option<Duration>,
    /// The time that its last event is old.
    pub silent: Option<Duration>,
    /// The last thing that its record says.
    pub last: String,
}

/// A bundle that is not in work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRow {
    pub id: BundleId,
    pub title: String,
    pub state: &'static str,
    pub why: String,
    pub next: Option<String>,
}

/// A line about an integration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// The depth in the tree of combinations.
    pub depth: usize,
    /// `base`, `green`, `red`, `held`, `landed` and so on.
    pub word: &'static str,
    pub text: String,
}

/// An accepted change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRow {
    pub id: BundleId,
    pub title: String,
    pub word: &'static str,
    pub text: String,
    pub next: Option<String>,
}

impl BoardData {
    /// Reads the events that the snapshot leads to. Starts no process; what cannot be read is left out.
    pub fn load(
        project: &str,
        snapshot: &WorkspaceSnapshot,
        config: Option<&WorkspaceConfig>,
        cwd: &Utf8Path,
        now: Timestamp,
    ) -> Self {
        let next = next_of_workspace(snapshot, cwd);
        let records = config.map(RunRecords::load).unwrap_or_default();
        let (combined, usual_landing) = config.map(integration::load).unwrap_or_default();
        Self {
            project: one_line(project, 40),
            waiting: pdca_workspace::review::waiting(snapshot)
                .into_iter()
                .map(|entry| waiting(snapshot, entry))
                .collect(),
            lanes: lanes(snapshot, &records, now),
            rest: rest(snapshot, cwd),
            combined,
            integration: snapshot.work.integration.as_deref().map(|name| one_line(name, 60)),
            usual_landing,
            changes: changes(snapshot),
            next: (next.command, next.why),
            now,
        }
    }
}

fn title(entry: &SnapshotEntry) -> String {
    let slug = entry.glance.as_ref().ok().and_then(|glance| glance.slug.as_deref());
    one_line(slug.unwrap_or("-"), 60)
}

fn waiting(snapshot: &WorkspaceSnapshot, entry: &SnapshotEntry) -> Waiting {
    let glance = entry.glance.as_ref().ok();
    let open = glance.map_or(0, |glance| glance.open_items.saturating_sub(glance.standing_items));
    let landing = &snapshot.landing;
    let warning = !landing.conflicts(&entry.id).is_empty() || landing.stale(&entry.id).is_some();
    let gates = glance.and_then(|glance| glance.overall);
    Waiting { id: entry.id.clone(), title: title(entry), open, gates, warning }
}

fn lanes(snapshot: &WorkspaceSnapshot, records: &RunRecords, now: Timestamp) -> Vec<LaneRow> {
    let passed = |since: Timestamp| {
        // The clock may have been set back since the event; then no time has passed.
        Duration::from_secs(u64::try_from(now.as_second() - since.as_second()).unwrap_or(0))
    };
    let row = |entry: &SnapshotEntry| {
        let at = snapshot.work.on(&entry.id)?;
        let doing = snapshot.work.doing(&entry.id);
        let sign = records.sign(&entry.id);
        Some(LaneRow {
            id: entry.id.clone(),
            title: title(entry),
            lane: at.lane,
            holder: one_line(&at.holder, 60),
            doing: doing.map_or_else(|| "starts".to_owned(), |doing| one_line(&doing.text(), 60)),
            elapsed: doing.map(|doing| passed(doing.since)),
            usual: records.usual(&entry.id),
            silent: sign.map(|(at, _)| passed(*at)),
            last: sign.map(|(_, said)| one_line(said, 200)).unwrap_or_default(),
        })
    };
    let mut rows: Vec<LaneRow> = snapshot.entries.iter().filter_map(row).collect();
    rows.sort_by(|a, b| (a.lane, &a.id).cmp(&(b.lane, &b.id)));
    rows
}

/// Lists what is neither in work, nor waiting for sign-off, nor done.
fn rest(snapshot: &WorkspaceSnapshot, cwd: &Utf8Path) -> Vec<WorkRow> {
    let row = |entry: &SnapshotEntry| {
        let is_shown = match entry.state() {
            None
            | Some(
                State::Unplanned
                | State::Planned
                | State::Built
                | State::Checked
                | State::Iterate(_),
            ) => true,
            Some(
                State::AwaitingSignoff | State::Complete | State::Discontinued | State::Resolved,
            ) => false,
        };
        (is_shown && snapshot.work.on(&entry.id).is_none()).then(|| WorkRow {
            id: entry.id.clone(),
            title: title(entry),
            state: entry.state().map_or(pdca_workspace::snapshot::UNREADABLE, State::as_str),
            why: one_line(&why(snapshot, entry), 200),
            next: next_of_bundle(snapshot, entry, cwd),
        })
    };
    snapshot.entries.iter().filter_map(row).collect()
}

/// Returns the reason why a bundle is not in work.
fn why(snapshot: &WorkspaceSnapshot, entry: &SnapshotEntry) -> String {
    if let Err(error) = &entry.glance {
        return pdca_state::chain(error);
    }
    if let Some((name, evidence)) = snapshot.blocked.get(&entry.id) {
        return format!("{name}: {evidence}");
    }
    if let Some(failure) = &entry.failed {
        return format!("{} failed: {}", failure.beat, failure.why);
    }
    let names = |ids: Vec<&str>| ids.join(", ");
    let blockers: Vec<&str> = entry.blocked_by.iter().map(|on| on.id.as_ref()).collect();
    let rivals: Vec<&str> =
        snapshot.work.holding(&entry.id).iter().map(|by| by.id.as_ref()).collect();
    match (entry.state(), blockers.is_empty(), rivals.is_empty()) {
        (Some(State::Unplanned), _, _) => "waits for a brief".to_owned(),
        (_, false, _) => format!("waits for {}", names(blockers)),
        (_, true, false) => format!("waits beside {}", names(rivals)),
        (_, true, true) => "may start".to_owned(),
    }
}

fn changes(snapshot: &WorkspaceSnapshot) -> Vec<ChangeRow> {
    let row = |entry: &SnapshotEntry| {
        let mark = snapshot.landing.mark(&entry.id)?;
        let text = mark.text.as_deref().unwrap_or_default();
        Some(ChangeRow {
            id: entry.id.clone(),
            title: title(entry),
            word: mark.word,
            text: one_line(text, 300),
            next: mark.next.clone(),
        })
    };
    let mut rows: Vec<ChangeRow> = snapshot.entries.iter().filter_map(row).collect();
    // What needs a person first, what landed last.
    let rank = |word: &str| match word {
        "staged" => 1,
        "sealed" => 2,
        "landed" => 3,
        _ => 0,
    };
    rows.sort_by(|a, b| (rank(a.word), &a.id).cmp(&(rank(b.word), &b.id)));
    rows
}
