//! The history of a run, from its events: spans of time per lane, and the steps of an integration.
//!
//! A log may end anywhere, and may have been taken up by another driver. A beginning without an end is a span that
//! lasts until the last sign of its bundle, and is marked as unfinished.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pdca_journal::events::{Event, EventKind, IntegrationStep, Scope, set};
use pdca_state::BundleId;

use crate::batch_report::text::Text;

/// The longest name that is kept, in characters.
const LONGEST: usize = 120;

/// One run or integration.
#[derive(Debug, Clone)]
pub struct RunHistory {
    pub id: String,
    pub kind: RunKind,
    /// The machine of its last driver, where the journal tells.
    pub host: Option<String>,
    /// Sorted by row, then by beginning, longer ones first.
    pub spans: Vec<Span>,
    /// The steps of an integration in their order, with the sentence of each.
    pub steps: Vec<(Text, IntegrationStep)>,
    /// The number of lines of the log that could not be read.
    pub unreadable: usize,
}

/// A batch of bundles, or an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    Batch,
    Integration,
}

impl RunKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Integration => "integration",
        }
    }
}

/// A stretch of time in one row of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub row: TimelineRow,
    pub kind: SpanKind,
    pub bundle: Option<BundleId>,
    pub name: Text,
    pub from: Timestamp,
    pub to: Timestamp,
    pub end: SpanEnd,
}

/// A row of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimelineRow {
    /// A branch gated by itself.
    Base,
    /// The only lane of a run without numbers.
    Driver,
    Lane(u32),
    /// One of the combinations that are gated at the same time.
    Together(u32),
}

impl std::fmt::Display for TimelineRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Driver => f.write_str("driver"),
            Self::Lane(lane) => write!(f, "lane {lane}"),
            Self::Together(0) => f.write_str("together"),
            Self::Together(slot) => write!(f, "together {}", slot + 1),
        }
    }
}

/// The kinds of spans, from the outermost to the innermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanKind {
    /// A bundle in a lane.
    Bundle,
    /// Gates over a combination.
    Combination,
    Step,
    Leaf,
    Gate,
}

impl SpanKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Combination => "combination",
            Self::Step => "step",
            Self::Leaf => "leaf",
            Self::Gate => "gate",
        }
    }
}

/// The end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanEnd {
    /// In order, where there is nothing to pass or fail.
    Done,
    Passed,
    Failed,
    /// Neither: no verdict, or a gate that a person decides.
    Undecided,
    /// The record ends before it does.
    Unfinished,
}

impl SpanEnd {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
            Self::Unfinished => "unfinished",
        }
    }
}

/// The owner of open spans.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Bundle(BundleId),
    Base(String),
    Together(String),
    Workspace,
}

impl Owner {
    fn of(scope: &Scope) -> Self {
        match scope {
            Scope::Workspace => Self::Workspace,
            Scope::Bundle(id) => Self::Bundle(id.clone()),
            Scope::Base { target, branch } => Self::Base(format!("{target} {branch}")),
            Scope::Integration { target, branch } => Self::Together(format!("{target} {branch}")),
        }
    }
}

/// Makes spans and steps of events.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    open: BTreeMap<Owner, Vec<Span>>,
    /// The combinations that are gated now, by their slot.
    combinations: Vec<Option<(Vec<BundleId>, Span)>>,
    /// The last sign of each owner, for spans that never end.
    last: BTreeMap<Owner, Timestamp>,
    pub(super) spans: Vec<Span>,
    pub(super) steps: Vec<(Text, IntegrationStep)>,
}

impl Recorder {
    pub(super) fn take(&mut self, event: &Event) {
        let owner = Owner::of(&event.scope);
        match &event.kind {
            EventKind::Dispatched { .. } => {
                // It was in flight when another driver ended.
                self.abandon(&owner);
                self.begin(event, SpanKind::Bundle, name(&event.scope));
            }
            EventKind::OnHost { host, .. } => self.on_host(&owner, name(&event.scope), host),
            EventKind::Began { step, .. } => self.begin(event, SpanKind::Step, step.word()),
            EventKind::Finished { step, .. } => {
                self.end(&owner, SpanKind::Step, step.word(), event.at, SpanEnd::Done);
            }
            EventKind::LeafBegan { role, .. } => self.begin(event, SpanKind::Leaf, role),
            EventKind::LeafEnded { role, .. } => {
                self.end(&owner, SpanKind::Leaf, role, event.at, SpanEnd::Done);
            }
            EventKind::GateBegan { rule_id, .. } => self.begin(event, SpanKind::Gate, rule_id),
            EventKind::GateEnded { rule_id, result, .. } => {
                let end = match result.as_str() {
                    "pass" => SpanEnd::Passed,
                    "fail" => SpanEnd::Failed,
                    _ => SpanEnd::Undecided,
                };
                self.end(&owner, SpanKind::Gate, rule_id, event.at, end);
            }
            EventKind::Halted { .. } => self.close(&owner, event.at, SpanEnd::Done),
            EventKind::Failed { .. } => self.close(&owner, event.at, SpanEnd::Failed),
            EventKind::Integration { text, step: Some(step) } => {
                self.step(event.at, step);
                self.steps.push((Text::line(text, 400), step.clone()));
            }
            EventKind::Integration { step: None, .. }
            | EventKind::Recovered { .. }
            | EventKind::Held { .. }
            | EventKind::Freed { .. }
            | EventKind::FlowBegan { .. }
            | EventKind::FlowEnded { .. }
            | EventKind::Reopened
            | EventKind::Drifted { .. }
            | EventKind::Checkout { .. }
            | EventKind::Hydrated { .. }
            | EventKind::Rescued { .. }
            | EventKind::LeafThrottled { .. }
            | EventKind::LeafRecorded { .. }
            | EventKind::Alive { .. }
            | EventKind::Warning { .. }
            | EventKind::Notice { .. } => {}
        }
        // At the end: `abandon` above needs the last sign before this event.
        self.last.insert(owner, event.at);
    }

    /// Ends what is open, and sorts the spans.
    pub(super) fn finish(mut self) -> (Vec<Span>, Vec<(Text, IntegrationStep)>) {
        for owner in self.open.keys().cloned().collect::<Vec<_>>() {
            self.abandon(&owner);
        }
        let last = self.last.values().max().copied();
        for (_, span) in std::mem::take(&mut self.combinations).into_iter().flatten() {
            let to = last.unwrap_or(span.from);
            self.spans.push(Span { to, end: SpanEnd::Unfinished, ..span });
        }
        self.spans.sort_by(|a, b| {
            (a.row, a.from, a.kind).cmp(&(b.row, b.from, b.kind)).then(b.to.cmp(&a.to))
        });
        (self.spans, self.steps)
    }

    fn begin(&mut self, event: &Event, kind: SpanKind, name: &str) {
        let bundle = match &event.scope {
            Scope::Bundle(id) => Some(id.clone()),
            Scope::Workspace | Scope::Integration { .. } | Scope::Base { .. } => None,
        };
        let row = match (&event.scope, event.lane) {
            (Scope::Base { .. }, _) => TimelineRow::Base,
            (Scope::Integration { .. }, _) => TimelineRow::Together(0),
            (_, Some(lane)) => TimelineRow::Lane(lane),
            (_, None) => TimelineRow::Driver,
        };
        let (from, end) = (event.at, SpanEnd::Unfinished);
        let name = Text::line(name, LONGEST);
        let span = Span { row, kind, bundle, name, from, to: from, end };
        self.open.entry(Owner::of(&event.scope)).or_default().push(span);
    }

    /// Adds the host to the name of the bundle that is open.
    fn on_host(&mut self, owner: &Owner, name: &str, host: &str) {
        let open = self.open.get_mut(owner).into_iter().flatten();
        for span in open.filter(|span| span.kind == SpanKind::Bundle) {
            span.name = Text::line(&format!("{name} on {host}"), LONGEST);
        }
    }

    fn end(&mut self, owner: &Owner, kind: SpanKind, name: &str, at: Timestamp, end: SpanEnd) {
        let name = Text::line(name, LONGEST);
        let Some(open) = self.open.get_mut(owner) else { return };
        let is_it = |span: &Span| span.kind == kind && span.name == name;
        // Of two that are open under one name, the newer has ended.
        if let Some(place) = open.iter().rposition(is_it) {
            let span = open.remove(place);
            // The clock may have been set back in between.
            self.spans.push(Span { to: at.max(span.from), end, ..span });
        }
    }

    /// Ends the bundle with everything that is open in it.
    fn close(&mut self, owner: &Owner, at: Timestamp, end: SpanEnd) {
        for span in self.open.remove(owner).unwrap_or_default() {
            let end = if span.kind == SpanKind::Bundle { end } else { SpanEnd::Unfinished };
            self.spans.push(Span { to: at.max(span.from), end, ..span });
        }
    }

    /// Ends what never ended, at the last sign of its owner.
    fn abandon(&mut self, owner: &Owner) {
        for span in self.open.remove(owner).unwrap_or_default() {
            let to = self.last.get(owner).copied().unwrap_or(span.from).max(span.from);
            self.spans.push(Span { to, end: SpanEnd::Unfinished, ..span });
        }
    }

    fn step(&mut self, at: Timestamp, step: &IntegrationStep) {
        match step {
            IntegrationStep::Gating { bundles, .. } => self.gating(at, bundles),
            IntegrationStep::Green { bundles, .. } => self.judged(at, bundles, SpanEnd::Passed),
            IntegrationStep::Red { bundles, .. } => self.judged(at, bundles, SpanEnd::Failed),
            IntegrationStep::NoVerdict { bundles, .. } => {
                self.judged(at, bundles, SpanEnd::Undecided);
            }
            IntegrationStep::BaseMoved { .. }
            | IntegrationStep::Flaky { .. }
            | IntegrationStep::Mended { .. }
            | IntegrationStep::Held { .. }
            | IntegrationStep::Landed { .. } => {}
        }
    }

    fn gating(&mut self, at: Timestamp, bundles: &[BundleId]) {
        let free = self.combinations.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.combinations.push(None);
            self.combinations.len() - 1
        });
        let span = Span {
            row: TimelineRow::Together(u32::try_from(slot).unwrap_or(u32::MAX)),
            kind: SpanKind::Combination,
            bundle: None,
            name: Text::line(&set(bundles), LONGEST),
            from: at,
            to: at,
            end: SpanEnd::Unfinished,
        };
        self.combinations[slot] = Some((bundles.to_vec(), span));
    }

    fn judged(&mut self, at: Timestamp, bundles: &[BundleId], end: SpanEnd) {
        let is_it = |slot: &Option<(Vec<BundleId>, Span)>| {
            slot.as_ref().is_some_and(|(asked, _)| asked == bundles)
        };
        let Some(slot) = self.combinations.iter_mut().find(|slot| is_it(slot)) else { return };
        if let Some((_, span)) = slot.take() {
            self.spans.push(Span { to: at.max(span.from), end, ..span });
        }
    }
}

fn name(scope: &Scope) -> &str {
    match scope {
        Scope::Bundle(id) => id.as_str(),
        Scope::Workspace => "workspace",
        Scope::Integration { branch, .. } | Scope::Base { branch, .. } => branch,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pdca_journal::events::{EventStream, GatePurpose, Halt, RedEvidence};
    use pdca_state::State;

    use super::*;

    /// Plays events a second apart, and shows the spans.
    fn played(play: impl FnOnce(&EventStream)) -> String {
        // A clock is a plain function; each test has a thread of its own, and so its own time.
        thread_local!(static NOW: std::cell::Cell<i64> = const { std::cell::Cell::new(0) });
        let (to, events) = mpsc::channel();
        let clock = || Timestamp::from_second(NOW.replace(NOW.get() + 1)).unwrap();
        let stream = EventStream::new(clock, move |event| drop(to.send(event)));
        play(&stream);
        drop(stream);
        let mut recorder = Recorder::default();
        for event in events {
            recorder.take(&event);
        }
        let (spans, _) = recorder.finish();
        let first = spans.iter().map(|span| span.from).min().unwrap_or_default();
        let at = |time: Timestamp| (time.as_second() - first.as_second()).to_string();
        let line = |span: &Span| {
            let (kind, end) = (span.kind.as_str(), span.end.as_str());
            format!("{} {kind} {}: {}-{} {end}", span.row, span.name, at(span.from), at(span.to))
        };
        spans.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn bundle(id: &str) -> Scope {
        Scope::Bundle(id.parse().unwrap())
    }

    fn gate_ended(rule: &str, result: &str) -> EventKind {
        EventKind::GateEnded {
            rule_id: rule.to_owned(),
            result: result.to_owned(),
            evidence: String::new(),
            proof: RedEvidence::default(),
            gating: true,
            reused: false,
            duration_ms: 0,
        }
    }

    #[test]
    fn spans_begin_and_end_with_their_events_and_a_driver_that_died_leaves_them_unfinished() {
        let spans = played(|stream| {
            let emit = |id: &str, lane, kind| stream.emit(bundle(id), Some(lane), kind);
            emit("7", 0, EventKind::Dispatched { chain: 1, resumed: false });
            emit(
                "7",
                0,
                EventKind::Began { step: pdca_journal::events::Step::Build, from: State::Planned },
            );
            emit("7", 0, EventKind::LeafBegan { role: "builder".into(), attempt: 1 });
            // Another driver takes it up.
            emit("7", 1, EventKind::Dispatched { chain: 1, resumed: true });
            emit("7", 1, EventKind::GateBegan { rule_id: "T3".into(), k: 1, n: 1 });
            emit("7", 1, gate_ended("T3", "fail"));
            emit("7", 1, EventKind::Halted { halt: Halt::AwaitingSignoff });
        });
        insta::assert_snapshot!(spans, @r"
        lane 0 bundle 7: 0-2 unfinished
        lane 0 step build: 1-2 unfinished
        lane 0 leaf builder: 2-2 unfinished
        lane 1 bundle 7: 3-6 done
        lane 1 gate T3: 4-5 failed
        ");
    }

    #[test]
    fn combinations_that_are_gated_at_once_have_rows_of_their_own() {
        let ids =
            |ids: &[&str]| ids.iter().map(|id| id.parse().unwrap()).collect::<Vec<BundleId>>();
        let spans = played(|stream| {
            let emit = |step| {
                let scope = Scope::Integration { target: "app".into(), branch: "main".into() };
                let kind = EventKind::Integration { text: "said".into(), step: Some(step) };
                stream.emit(scope, None, kind);
            };
            let gating = |set: &[&str]| IntegrationStep::Gating {
                bundles: ids(set),
                tree: "t".into(),
                purpose: GatePurpose::Decide,
            };
            emit(gating(&["1", "2"]));
            emit(gating(&["1"]));
            emit(IntegrationStep::Green { bundles: ids(&["1", "2"]), tree: "t".into() });
            emit(gating(&["2"]));
        });
        insta::assert_snapshot!(spans, @r"
        together combination 1 + 2: 0-2 passed
        together combination 2: 3-3 unfinished
        together 2 combination 1: 1-3 unfinished
        ");
    }
}
