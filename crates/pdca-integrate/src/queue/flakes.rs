//! The meaning of a red row that may be flaky: the policy of each row beside its history.

use std::collections::BTreeMap;

use crate::{FlakeLedger, FlakePolicy, FlakeRules, Light, RowHistory, Verdict};

use super::IntegrateError;
use super::context::{CombinationGates, Ruling};
use super::records;
use super::workspace::QueueWorkspace;

/// How often rows failed by mistake.
const FLAKES: &str = "flakes.json";

impl FlakeRules {
    /// Loads the history that the policies of rows are applied to. A file that cannot be read is as good
    /// as none.
    pub fn load(workspace: &QueueWorkspace, policies: BTreeMap<String, FlakePolicy>) -> Self {
        Self { ledger: records::load(workspace, FLAKES), policies }
    }
}

pub(crate) fn store_ledger(
    workspace: &QueueWorkspace,
    ledger: &FlakeLedger,
) -> Result<(), IntegrateError> {
    records::store(workspace, FLAKES, ledger)
}

/// The rows that decide about combinations and are known to have failed by mistake.
pub(crate) fn flaky_rows(
    gates: &CombinationGates,
    rules: &FlakeRules,
) -> Vec<(String, RowHistory)> {
    let decides = |(row, _): &(&str, _)| gates.rows.iter().any(|id| id == *row);
    let flaky = rules.ledger.flaky().filter(decides);
    flaky.map(|(row, history)| (row.to_owned(), history.clone())).collect()
}

/// A row that was red over a tree and did not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The row.
    pub row: String,
    /// The tree.
    pub tree: String,
}

/// Takes the rows in quarantine out of what the gates said, and gives them back.
pub fn pardon(ruling: &mut Ruling, rules: &FlakeRules) -> Vec<String> {
    if ruling.light != Some(Light::Red) {
        return Vec::new();
    }
    let rows = std::mem::take(&mut ruling.rows);
    let (pardoned, red): (Vec<String>, Vec<String>) =
        rows.into_iter().partition(|row| rules.is_quarantined(row));
    if red.is_empty() && !pardoned.is_empty() {
        ruling.light = Some(Light::Green);
    }
    ruling.rows = red;
    ruling.red.retain(|row| !pardoned.contains(&row.row));
    pardoned
}

/// Whether a kept verdict still counts: every row that did not count to it is still in quarantine.
pub fn counts(verdict: &Verdict, rules: &FlakeRules) -> bool {
    verdict.quarantined.iter().all(|row| rules.is_quarantined(row))
}

/// Why a red row does not block, for a person.
pub fn excuse(row: &str, rules: &FlakeRules) -> String {
    let (flakes, runs) =
        rules.ledger.row(row).map_or((0, 0), |history| (history.flakes, history.runs));
    format!("in quarantine, does not block: failed by mistake in {flakes} of {runs} runs")
}
