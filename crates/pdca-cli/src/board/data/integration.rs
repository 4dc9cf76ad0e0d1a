//! The newest integration: what was folded onto which commit, and what the gates said.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use pdca_driver::WorkspaceConfig;
use pdca_integrate::{IntegrationTally, Stats};
use pdca_journal::events::{
    EventKind, GatedCombination, IntegrationStep, LogLine, LogReader, combinations, set,
};
use pdca_journal::{ObjectId, Record, RunId};
use pdca_state::BundleId;
use pdca_state::text::one_line;

use super::Combined;

/// Reads the newest integration, and how long integrations usually take.
pub(super) fn load(config: &WorkspaceConfig) -> (Vec<Combined>, Option<Duration>) {
    let tallies = IntegrationTally::all(&config.queue());
    let usual = Stats::of(&tallies).median_secs_to_green;
    let usual = usual.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let runs = config.dirs.integrations();
    let Some(newest) = runs.list().unwrap_or_default().into_iter().max() else {
        return (Vec::new(), usual);
    };
    let dir = runs.dir(&newest);
    let mut rows = bases(&dir, &newest);
    let lines = LogReader::open(&dir).ok().flatten();
    let lines = lines.and_then(|mut reader| reader.read().ok()).unwrap_or_default();
    let steps: Vec<(String, IntegrationStep)> = lines
        .into_iter()
        .filter_map(|line| {
            let LogLine::Event(event, _) = line else { return None };
            let EventKind::Integration { text, step: Some(step) } = event.kind else { return None };
            Some((text, step))
        })
        .collect();
    rows.extend(combined(&steps));
    (rows, usual)
}

/// Returns the commit of each target that the changes are folded onto, as the journal has planned it last.
fn bases(dir: &Utf8Path, run: &RunId) -> Vec<Combined> {
    let entries = pdca_journal::read(dir, run).map(|reading| reading.entries).unwrap_or_default();
    let mut bases = BTreeMap::new();
    for entry in &entries {
        // Once everything has landed, the plan goes on with nothing.
        if let Record::Planned { target, base, order } = &entry.record
            && !order.is_empty()
        {
            // A later plan replaces an earlier one: the branch has moved in between.
            bases.insert(target, (base, order));
        }
    }
    let row = |(target, (base, order)): (&String, (&ObjectId, &Vec<BundleId>))| {
        let text = format!("{target} at {}, with {}", base.to_hex_with_len(12), set(order));
        Combined { depth: 0, word: "base", text: one_line(&text, 300) }
    };
    bases.into_iter().map(row).collect()
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

fn add(rows: &mut Vec<Combined>, one: &GatedCombination, depth: usize) {
    use pdca_journal::events::CombinationVerdict as Verdict;
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
