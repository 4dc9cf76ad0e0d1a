//! What the board shows, read from one snapshot of the workspace.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use pdca_driver::WorkspaceConfig;
use pdca_events::{
    Combination, EventKind, IntegrationStep, Line, Reader, Scope, combinations, set,
};
use pdca_integrate::{IntegrationTally, Stats};
use pdca_snapshot::{Entry, WorkspaceSnapshot, next_of_bundle, next_of_workspace};
use pdca_state::text::one_line;
use pdca_state::{BundleId, Overall, State};

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

impl Waiting {
    /// Returns whether one look is enough.
    pub fn is_cheap(&self) -> bool {
        self.open == 0 && self.gates != Some(Overall::Fail) && !self.warning
    }
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
    /// `green`, `red`, `held`, `landed` and so on.
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
        let signs = config.map(signs).unwrap_or_default();
        let (combined, usual_landing) = config.map(integration).unwrap_or_default();
        Self {
            project: one_line(project, 40),
            waiting: pdca_review::waiting(snapshot)
                .into_iter()
                .map(|entry| waiting(snapshot, entry))
                .collect(),
            lanes: lanes(snapshot, &signs, now),
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

fn title(entry: &Entry) -> String {
    let slug = entry.glance.as_ref().ok().and_then(|glance| glance.slug.as_deref());
    one_line(slug.unwrap_or("-"), 60)
}

fn waiting(snapshot: &WorkspaceSnapshot, entry: &Entry) -> Waiting {
    let glance = entry.glance.as_ref().ok();
    let open = glance.map_or(0, |glance| glance.open_items.saturating_sub(glance.standing_items));
    let landing = &snapshot.landing;
    let warning = !landing.conflicts(&entry.id).is_empty() || landing.stale(&entry.id).is_some();
    let gates = glance.and_then(|glance| glance.overall);
    Waiting { id: entry.id.clone(), title: title(entry), open, gates, warning }
}

/// The last event of a bundle.
type Signs = BTreeMap<BundleId, (Timestamp, String)>;

/// Reads the last event of each bundle in the runs that have a driver.
fn signs(config: &WorkspaceConfig) -> Signs {
    let mut signs = Signs::new();
    for run in pdca_driver::run_statuses(config).unwrap_or_default() {
        let Ok(Some(mut reader)) = Reader::open(&config.dirs.runs().dir(&run.id)) else { continue };
        if reader.skip_to_tail().is_err() {
            continue;
        }
        for line in reader.read().unwrap_or_default() {
            let Line::Event(event, _) = line else { continue };
            if let (Scope::Bundle(id), Some(said)) = (&event.scope, said(&event.kind)) {
                signs.insert(id.clone(), (event.at, said));
            }
        }
    }
    signs
}

/// Returns an event in a few words, if it says more than the beginning of a step.
fn said(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::GateEnded { rule_id, result, evidence, .. } => {
            format!("{rule_id} {result} {evidence}")
        }
        EventKind::LeafEnded { role, ending, .. } => format!("{role}: {ending}"),
        EventKind::LeafThrottled { role, .. } => format!("{role} is throttled"),
        EventKind::Warning { text, .. } | EventKind::Notice { text, .. } => text.clone(),
        EventKind::Finished { step, .. } => format!("{} done", step.word()),
        EventKind::Failed { error } => format!("failed: {error}"),
        EventKind::Drifted { outside } => format!("writes {} undeclared paths", outside.len()),
        EventKind::Checkout { .. } => "checkout ready".to_owned(),
        EventKind::Dispatched { .. } => "started".to_owned(),
        EventKind::OnHost { host, .. } => format!("runs on {host}"),
        EventKind::GateBegan { rule_id, .. } => format!("{rule_id} runs"),
        EventKind::LeafBegan { role, .. } => format!("{role} runs"),
        EventKind::Recovered { .. }
        | EventKind::Held { .. }
        | EventKind::Freed { .. }
        | EventKind::Reopened
        | EventKind::Began { .. }
        | EventKind::Hydrated { .. }
        | EventKind::Rescued { .. }
        | EventKind::LeafRecorded { .. }
        | EventKind::Alive { .. }
        | EventKind::Integration { .. }
        | EventKind::FlowBegan { .. }
        | EventKind::FlowEnded { .. }
        | EventKind::Halted { .. } => return None,
    })
}

fn lanes(snapshot: &WorkspaceSnapshot, signs: &Signs, now: Timestamp) -> Vec<LaneRow> {
    let passed = |since: Timestamp| {
        Duration::from_secs(u64::try_from(now.as_second() - since.as_second()).unwrap_or(0))
    };
    let row = |entry: &Entry| {
        let at = snapshot.work.on(&entry.id)?;
        let doing = snapshot.work.doing(&entry.id);
        let sign = signs.get(&entry.id);
        Some(LaneRow {
            id: entry.id.clone(),
            title: title(entry),
            lane: at.lane,
            holder: one_line(&at.holder, 60),
            doing: doing.map_or_else(|| "starts".to_owned(), |doing| one_line(&doing.what, 60)),
            elapsed: doing.map(|doing| passed(doing.since)),
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
    let row = |entry: &Entry| {
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
            state: entry.state().map_or(pdca_snapshot::UNREADABLE, State::as_str),
            why: one_line(&why(snapshot, entry), 200),
            next: next_of_bundle(snapshot, entry, cwd),
        })
    };
    snapshot.entries.iter().filter_map(row).collect()
}

/// Returns the reason why a bundle is not in work.
fn why(snapshot: &WorkspaceSnapshot, entry: &Entry) -> String {
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
    let row = |entry: &Entry| {
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

/// Reads the newest integration, and how long integrations usually take.
fn integration(config: &WorkspaceConfig) -> (Vec<Combined>, Option<Duration>) {
    let tallies = IntegrationTally::all(&config.queue());
    let usual = Stats::of(&tallies).median_secs_to_green;
    let usual = usual.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let runs = config.dirs.integrations();
    let newest = runs.list().unwrap_or_default().into_iter().max();
    let lines = newest.and_then(|id| Reader::open(&runs.dir(&id)).ok().flatten());
    let lines = lines.and_then(|mut reader| reader.read().ok()).unwrap_or_default();
    let steps: Vec<(String, IntegrationStep)> = lines
        .into_iter()
        .filter_map(|line| {
            let Line::Event(event, _) = line else { return None };
            let EventKind::Integration { text, step: Some(step) } = event.kind else { return None };
            Some((text, step))
        })
        .collect();
    (combined(&steps), usual)
}

/// Renders the steps of an integration: the tree of combinations, then what became of each change.
fn combined(steps: &[(String, IntegrationStep)]) -> Vec<Combined> {
    let mut rows = Vec::new();
    for one in &combinations(steps.iter().map(|(_, step)| step)) {
        add(&mut rows, one, 0);
    }
    for (text, step) in steps {
        let (word, text) = match step {
            IntegrationStep::Landed { bundle, onto, commit } => {
                ("landed", format!("{bundle} on {onto} as {}", commit.get(..12).unwrap_or(commit)))
            }
            IntegrationStep::Held { .. } => ("held", text.clone()),
            IntegrationStep::Flaky { .. } => ("flaky", text.clone()),
            IntegrationStep::BaseMoved { .. } | IntegrationStep::Mended { .. } => {
                ("note", text.clone())
            }
            IntegrationStep::Gating { .. }
            | IntegrationStep::Green { .. }
            | IntegrationStep::Red { .. }
            | IntegrationStep::NoVerdict { .. } => continue,
        };
        rows.push(Combined { depth: 0, word, text: one_line(&text, 300) });
    }
    rows
}

fn add(rows: &mut Vec<Combined>, one: &Combination, depth: usize) {
    use pdca_events::CombinationVerdict as Verdict;
    let rows_of = match &one.verdict {
        Verdict::Red { rows, .. } | Verdict::Undecided { rows } => format!(": {}", rows.join(", ")),
        Verdict::Green | Verdict::Open => String::new(),
    };
    let text = one_line(&format!("{}{rows_of}", set(&one.bundles)), 300);
    rows.push(Combined { depth, word: one.verdict.as_str(), text });
    for part in &one.parts {
        add(rows, part, depth + 1);
    }
}
