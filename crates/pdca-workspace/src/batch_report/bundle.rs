//! Reads one bundle for a report.

use crate::review::{Card, CardSource, Tone};
use crate::snapshot::{SnapshotEntry, next_of_bundle};
use camino::Utf8Path;
use pdca_state::{
    Artifact, Bundle, CostTotal, GateReport, GateResult, GateRow, Snapshot, State, Summary, chain,
    files, named_paths, patch_files,
};

use crate::batch_report::load::ReportSource;
use crate::batch_report::model::{
    BundlePage, CardPart, DiffView, EvidenceView, GateView, ReportGroup,
};
use crate::batch_report::text::{Budget, Text};

/// The longest line of evidence, in characters.
const LINE: usize = 300;
/// The largest log that is read, in bytes.
const LARGEST_LOG: u64 = 16 << 20;
/// The failed tests of a row that are named.
const FAILING: usize = 20;
/// The files of a change that are named.
const FILES: usize = 20;

/// Reads a bundle. A bundle that cannot be read is a page that says so.
pub(super) fn page(
    source: ReportSource<'_>,
    entry: &SnapshotEntry,
    mut budget: Budget,
) -> BundlePage {
    let mut page = outline(source, entry);
    let Ok(bundle) = Bundle::at(&*entry.dir) else { return page };
    page.cost = bundle.calls().cost().unwrap_or_default();
    page.held = held(source, entry, &mut budget);
    let snapshot = match bundle.load() {
        Ok(snapshot) => snapshot,
        Err(error) => {
            page.why = Text::line(&chain(&error), LINE);
            return page;
        }
    };
    page.card = card(source, &bundle, &mut budget);
    fill(&mut page, &bundle, &snapshot, &mut budget);
    page
}

/// Makes a page of what the snapshot of the workspace knows.
fn outline(source: ReportSource<'_>, entry: &SnapshotEntry) -> BundlePage {
    let snapshot = source.snapshot;
    let (group, why) = group(source, entry);
    let glance = entry.glance.as_ref().ok();
    let title = glance.and_then(|glance| glance.slug.clone()).unwrap_or_default();
    let mark = snapshot.landing.mark(&entry.id);
    BundlePage {
        id: entry.id.clone(),
        title: Text::line(&title, 80),
        state: entry.state(),
        group,
        why: Text::line(&why, LINE),
        next: (!is_put_away(source, entry))
            .then(|| next_of_bundle(snapshot, entry, source.cwd))
            .flatten(),
        landing: mark
            .map(|mark| (mark.word, Text::line(mark.text.as_deref().unwrap_or_default(), LINE))),
        depends_on: glance.map(|glance| glance.depends_on.ids()).unwrap_or_default(),
        attempts: glance.map_or(0, |glance| glance.iterations),
        overall: glance.and_then(|glance| glance.overall),
        gates: Vec::new(),
        report: None,
        card: Vec::new(),
        open_items: Vec::new(),
        signoff: None,
        diff: None,
        cost: CostTotal::default(),
        held: Vec::new(),
    }
}

/// Decides the group of a bundle, and says why.
fn group(source: ReportSource<'_>, entry: &SnapshotEntry) -> (ReportGroup, String) {
    let snapshot = source.snapshot;
    let id = &entry.id;
    let Some(state) = entry.state() else {
        let why = entry.glance.as_ref().err().map(|error| chain(error)).unwrap_or_default();
        return (ReportGroup::Failed, why);
    };
    if let Some((name, evidence)) = snapshot.blocked.get(id) {
        return (ReportGroup::Failed, format!("{name}: {evidence}"));
    }
    if let Some(failure) = &entry.failed {
        return (ReportGroup::Failed, format!("{} failed: {}", failure.beat, failure.why));
    }
    if snapshot.work.on(id).is_some() {
        let doing = snapshot.work.doing(id);
        return (
            ReportGroup::AtWork,
            doing.map_or_else(|| "in a lane".to_owned(), crate::snapshot::Doing::text),
        );
    }
    match state {
        State::AwaitingSignoff => (ReportGroup::NeedsYou, "waits for your sign-off".to_owned()),
        State::Unplanned => (ReportGroup::NeedsYou, "waits for a brief".to_owned()),
        State::Planned | State::Built | State::Checked | State::Iterate(_) => {
            (ReportGroup::Waiting, waits_for(source, entry))
        }
        State::Complete if is_put_away(source, entry) => {
            (ReportGroup::Accepted, "accepted, and put away in completed/".to_owned())
        }
        State::Complete => landed(source, entry),
        State::Resolved => (ReportGroup::Closed, "resolved in the tracker".to_owned()),
        State::Discontinued => (ReportGroup::Closed, "discontinued".to_owned()),
    }
}

/// Returns whether a bundle is in `completed/`.
fn is_put_away(source: ReportSource<'_>, entry: &SnapshotEntry) -> bool {
    entry.dir.starts_with(source.config.dirs.bundles.completed().path())
}

fn waits_for(source: ReportSource<'_>, entry: &SnapshotEntry) -> String {
    let on: Vec<&str> = entry.blocked_by.iter().map(|blocker| blocker.id.as_ref()).collect();
    let held: Vec<&str> =
        source.snapshot.work.holding(&entry.id).iter().map(|by| by.id.as_ref()).collect();
    match (on.as_slice(), held.as_slice()) {
        ([], []) => "may start".to_owned(),
        ([], held) => format!("waits beside {}", held.join(", ")),
        (on, _) => format!("waits for {}", on.join(", ")),
    }
}

fn landed(source: ReportSource<'_>, entry: &SnapshotEntry) -> (ReportGroup, String) {
    let Some(mark) = source.snapshot.landing.mark(&entry.id) else {
        return (ReportGroup::Accepted, "accepted".to_owned());
    };
    let text = mark.text.as_deref().unwrap_or_default();
    match mark.word {
        "sealed" => (ReportGroup::Accepted, "accepted, not landed yet".to_owned()),
        "staged" => (ReportGroup::Accepted, format!("gated together and green, on {text}")),
        "landed" => (ReportGroup::Accepted, format!("landed on {text}")),
        "held" => (ReportGroup::Failed, text.to_owned()),
        word => (ReportGroup::Failed, format!("{word} {text}")),
    }
}

/// Returns the decision card, as `show`, `review` and the board have it. Lines that it has no room for are counted.
fn card(source: ReportSource<'_>, bundle: &Bundle, budget: &mut Budget) -> Vec<CardPart> {
    let from = CardSource { snapshot: source.snapshot, config: Some(source.config) };
    // The error was told already: the same files make the page.
    let Ok(card) = Card::load(from, bundle) else { return Vec::new() };
    let mut half = budget.half();
    let parts = card.sections().into_iter().map(|section| {
        let all = section.lines.len();
        let lines: Vec<(Tone, Text)> = section
            .lines
            .into_iter()
            .map(|line| {
                (line.tone, Text::within(&Text::line(&line.text, LINE).to_string(), &mut half))
            })
            .take_while(|(_, text)| text.left_out == 0)
            .collect();
        CardPart { title: section.title, left_out: all - lines.len(), lines }
    });
    let parts = parts.collect();
    budget.give_back(half);
    parts
}

/// Adds what the files of the bundle say. Evidence of failures is paid for first, the diff with what is left.
fn fill(page: &mut BundlePage, bundle: &Bundle, snapshot: &Snapshot, budget: &mut Budget) {
    page.attempts = snapshot.iterations;
    if let Some(summary) = &snapshot.summary {
        page.open_items = open_items(summary, budget);
        page.signoff = summary.signoff().map(|signoff| {
            let by = format!("{}, {}", signoff.by, signoff.date);
            let note = signoff.note.unwrap_or_default();
            (
                Text::line(signoff.outcome.as_str(), 40),
                Text::line(&by, 120),
                Text::line(&note, LINE),
            )
        });
    }
    if let Some(report) = &snapshot.gates {
        page.gates = gates(report, bundle.dir(), budget);
        page.report = Some(report.clone());
    }
    let red: Vec<&str> =
        page.gates.iter().filter(|gate| gate.is_red()).map(|gate| gate.rule_id.as_str()).collect();
    if page.group == ReportGroup::NeedsYou && !red.is_empty() {
        page.why = Text::line(&format!("{}; red: {}", page.why, red.join(", ")), LINE);
    }
    page.diff = diff(bundle, budget);
}

fn open_items(summary: &Summary, budget: &mut Budget) -> Vec<Text> {
    let items = summary.open_items().iter();
    let items = items.map(|item| item.trim_start().trim_start_matches("- [ ]").trim());
    items.map(|item| line_within(item, budget)).collect()
}

/// Cuts a line so that it fits into its part of the budget.
fn line_within(raw: &str, budget: &mut Budget) -> Text {
    let line = Text::line(raw, LINE);
    let text = Text::within(line.as_str(), budget);
    if text.left_out == 0 { line } else { Text::new("… (no room for it here)") }
}

/// Returns the rows that ran, red ones first.
fn gates(report: &GateReport, dir: &Utf8Path, budget: &mut Budget) -> Vec<GateView> {
    let mut rows: Vec<&GateRow> =
        report.rows.iter().filter(|row| row.result != GateResult::None).collect();
    rows.sort_by_key(|row| !row.is_failed_gating());
    rows.into_iter().map(|row| gate(row, dir, budget)).collect()
}

fn gate(row: &GateRow, dir: &Utf8Path, budget: &mut Budget) -> GateView {
    let is_red = row.result == GateResult::Fail;
    let failing: Vec<Text> =
        row.failing.iter().take(FAILING).map(|test| line_within(test, budget)).collect();
    let more = row.failing_more + row.failing.len().saturating_sub(failing.len());
    let log = row.log.as_deref().filter(|_| is_red);
    GateView {
        rule_id: Text::line(&row.rule_id, 60),
        check: Text::line(&row.check, 80),
        result: row.result,
        gating: row.gating,
        evidence: line_within(&row.path_line, budget),
        failing,
        failing_more: more,
        duration_ms: row.duration_ms,
        flaky: row.flaky,
        note: row.note.as_deref().map(|note| line_within(note, budget)),
        reproduce: row.reproduce.as_deref().filter(|_| is_red).map(|how| line_within(how, budget)),
        log: log.and_then(|log| log_tail(&dir.join(log), budget)),
    }
}

/// Reads the end of a log, within a quarter of what is left. A log that is gone is left out: the row names the evidence.
fn log_tail(path: &Utf8Path, budget: &mut Budget) -> Option<Text> {
    let bytes = files::read_bounded(path, LARGEST_LOG).ok()??;
    let mut part = budget.quarter();
    let text = Text::tail_within(&String::from_utf8_lossy(&bytes), &mut part);
    budget.give_back(part);
    Some(text).filter(|text| !text.is_empty() || text.left_out > 0)
}

fn diff(bundle: &Bundle, budget: &mut Budget) -> Option<DiffView> {
    let bytes = bundle.read(Artifact::Patch).ok()??;
    let text = String::from_utf8_lossy(&bytes);
    let (paths, changed) = (named_paths(&bytes), patch_files(&bytes));
    Some(DiffView {
        files: paths.iter().take(FILES).map(|path| line_within(path, budget)).collect(),
        more_files: paths.len().saturating_sub(FILES),
        added: changed.iter().map(|file| file.added).sum(),
        removed: changed.iter().map(|file| file.removed).sum(),
        path: Text::line(bundle.path(Artifact::Patch).as_str(), LINE),
        text: Text::within(&text, budget),
    })
}

/// Returns the evidence of a change that an integration held.
fn held(source: ReportSource<'_>, entry: &SnapshotEntry, budget: &mut Budget) -> Vec<EvidenceView> {
    let mark = source.snapshot.landing.mark(&entry.id);
    let red = mark.and_then(|mark| mark.held.as_ref()).map(|held| held.red.as_slice());
    let view = |row: &pdca_integrate::RedRow| EvidenceView {
        row: Text::line(&row.row, 60),
        said: line_within(&row.said, budget),
        failing: row.failing.iter().take(FAILING).map(|test| line_within(test, budget)).collect(),
        reproduce: row.reproduce.as_deref().map(|how| line_within(how, budget)),
        log: row.log.as_ref().and_then(|log| log_tail(&source.config.dirs.root.join(log), budget)),
    };
    red.unwrap_or_default().iter().map(view).collect()
}
