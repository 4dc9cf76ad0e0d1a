//! What the events of runs tell about bundles in work: the last sign of life, and how long a step usually takes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use pdca_driver::WorkspaceConfig;
use pdca_journal::events::{EventKind, LogLine, LogReader, Scope};
use pdca_state::BundleId;

/// The runs whose events are read: the running one is the newest, and those before it tell what is usual.
const RUNS: usize = 3;

/// The events of the newest runs, as far as the board shows them.
#[derive(Debug, Default)]
pub(super) struct RunRecords {
    /// The last event of each bundle.
    signs: BTreeMap<BundleId, (Timestamp, String)>,
    /// The leaf or gate that each bundle began last.
    begun: BTreeMap<BundleId, String>,
    /// The durations of each leaf and gate.
    took: BTreeMap<String, Vec<Duration>>,
}

impl RunRecords {
    /// Reads the newest runs. What cannot be read is left out: it only adds to what the locks say.
    pub(super) fn load(config: &WorkspaceConfig) -> Self {
        let mut records = Self::default();
        let runs = config.dirs.runs();
        let mut ids = runs.list().unwrap_or_default();
        ids.sort_unstable();
        for id in &ids[ids.len().saturating_sub(RUNS)..] {
            let Ok(Some(mut reader)) = LogReader::open(&runs.dir(id)) else { continue };
            // The events of a long run are many, and this is read once a second.
            if reader.skip_to_tail().is_err() {
                continue;
            }
            for line in reader.read().unwrap_or_default() {
                if let LogLine::Event(event, _) = line
                    && let Scope::Bundle(id) = event.scope
                {
                    records.take(id, event.at, &event.kind);
                }
            }
        }
        records
    }

    fn take(&mut self, id: BundleId, at: Timestamp, kind: &EventKind) {
        if let Some(what) = began(kind) {
            self.begun.insert(id.clone(), what.to_owned());
        }
        if let Some((what, millis)) = ended(kind) {
            let took = Duration::from_millis(millis);
            self.took.entry(what.to_owned()).or_default().push(took);
        }
        if let Some(said) = said(kind) {
            self.signs.insert(id, (at, said));
        }
    }

    /// Returns the last sign of life of a bundle.
    pub(super) fn sign(&self, id: &BundleId) -> Option<&(Timestamp, String)> {
        self.signs.get(id)
    }

    /// Returns the median time of what a bundle does now; `None` if it has never ended.
    pub(super) fn usual(&self, id: &BundleId) -> Option<Duration> {
        let mut took = self.took.get(self.begun.get(id)?)?.clone();
        took.sort_unstable();
        took.get(took.len() / 2).copied()
    }
}

/// Returns the leaf or gate that begins.
#[expect(clippy::wildcard_enum_match_arm, reason = "leaves and gates are what takes time")]
fn began(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::GateBegan { rule_id, .. } => Some(rule_id),
        EventKind::LeafBegan { role, .. } => Some(role),
        _ => None,
    }
}

/// Returns the leaf or gate that has ended by itself, and its time in milliseconds.
#[expect(clippy::wildcard_enum_match_arm, reason = "leaves and gates are what takes time")]
fn ended(kind: &EventKind) -> Option<(&str, u64)> {
    match kind {
        EventKind::GateEnded { rule_id, reused: false, duration_ms, .. } => {
            Some((rule_id, *duration_ms))
        }
        EventKind::LeafRecorded { facts } if !facts.interrupted => {
            Some((&facts.role, facts.duration_ms?))
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(millis: u64) -> EventKind {
        EventKind::GateEnded {
            rule_id: "T3-tests".into(),
            result: "pass".into(),
            evidence: "12 tests".into(),
            proof: pdca_journal::events::RedEvidence::default(),
            gating: true,
            reused: false,
            duration_ms: millis,
        }
    }

    #[test]
    fn the_usual_time_is_the_median_of_the_same_gate() {
        let mut records = RunRecords::default();
        let id = |text: &str| text.parse::<BundleId>().unwrap();
        let mut take = |name: &str, kind: &EventKind| {
            records.take(id(name), Timestamp::UNIX_EPOCH, kind);
        };
        for (name, millis) in [("1", 4_000), ("2", 90_000), ("3", 5_000)] {
            take(name, &gate(millis));
        }
        take("9", &EventKind::GateBegan { rule_id: "T3-tests".into(), k: 1, n: 2 });
        take("8", &EventKind::LeafBegan { role: "builder".into(), attempt: 1 });
        assert_eq!(records.usual(&id("9")), Some(Duration::from_secs(5)));
        assert_eq!(records.usual(&id("8")), None, "no builder has ended yet");
        assert_eq!(records.sign(&id("9")).map(|sign| sign.1.as_str()), Some("T3-tests runs"));
    }
}
