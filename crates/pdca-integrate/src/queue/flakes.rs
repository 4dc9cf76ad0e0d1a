//! Quarantine of flaky rows in rulings and verdicts, and the stored flake history.

use std::collections::BTreeMap;

use crate::{FlakeLedger, FlakePolicy, FlakeRules, Light, RowHistory, Verdict};

use super::IntegrateError;
use super::context::{CombinationGates, GateRuling};
use super::records;
use super::workspace::QueueWorkspace;

/// The flake history of the workspace.
const FLAKES: &str = "flakes.json";

impl FlakeRules {
    /// Loads the flake history. An unreadable file counts as empty: the history only saves runs.
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

/// Returns the gating rows that have a known flake.
pub(crate) fn flaky_rows(
    gates: &CombinationGates,
    rules: &FlakeRules,
) -> Vec<(String, RowHistory)> {
    let decides = |(row, _): &(&str, _)| gates.rows.iter().any(|id| id == *row);
    let flaky = rules.ledger.flaky().filter(decides);
    flaky.map(|(row, history)| (row.to_owned(), history.clone())).collect()
}

/// A red row that did not count, and the tree.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quarantined {
    pub row: String,
    pub tree: String,
}

/// Removes quarantined rows that passed when they were asked again from a ruling, which turns green if no other row is
/// red, and returns them. A row that is red every time stays.
pub fn pardon(ruling: &mut GateRuling, rules: &FlakeRules) -> Vec<String> {
    if ruling.light != Some(Light::Red) {
        return Vec::new();
    }
    let rows = std::mem::take(&mut ruling.rows);
    let (pardoned, red): (Vec<String>, Vec<String>) =
        rows.into_iter().partition(|row| is_pardoned(row, &ruling.passed_again, rules));
    if red.is_empty() && !pardoned.is_empty() {
        ruling.light = Some(Light::Green);
    }
    ruling.rows = red;
    ruling.red.retain(|row| !pardoned.contains(&row.row));
    pardoned
}

/// Returns true if a red of a row does not count: the row is in quarantine, and passed over the same tree.
pub(crate) fn is_pardoned(row: &String, passed_again: &[String], rules: &FlakeRules) -> bool {
    passed_again.contains(row) && rules.is_quarantined(row)
}

/// Returns true if a stored verdict still counts: every row that it ignored is still in quarantine.
pub fn counts(verdict: &Verdict, rules: &FlakeRules) -> bool {
    verdict.quarantined.iter().all(|row| rules.is_quarantined(row))
}

/// Returns the reason why a red row does not block, for people.
pub fn excuse(row: &str, rules: &FlakeRules) -> String {
    let (flakes, runs) =
        rules.ledger.row(row).map_or((0, 0), |history| (history.flakes, history.runs));
    format!("in quarantine, does not block: failed by mistake in {flakes} of {runs} runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_red_is_green_only_where_every_red_row_is_in_quarantine_and_passed_when_asked_again() {
        let policies = BTreeMap::from([("T1".to_owned(), FlakePolicy::Quarantine)]);
        let mut rules = FlakeRules { policies, ..FlakeRules::default() };
        (0..20).for_each(|_| rules.ledger.ran("T1"));
        let asked = |rules: &FlakeRules, rows: &[&str], again: &[&str]| {
            let rows = rows.iter().map(ToString::to_string).collect();
            let passed_again = again.iter().map(ToString::to_string).collect();
            let light = Some(Light::Red);
            let mut ruling = GateRuling { light, rows, passed_again, ..GateRuling::default() };
            pardon(&mut ruling, rules);
            (ruling.light, ruling.rows.join(" "))
        };
        let left = |rules: &FlakeRules, rows: &[&str]| asked(rules, rows, &["T1"]);
        let red = |rows: &str| (Some(Light::Red), rows.to_owned());
        assert_eq!(left(&rules, &["T1"]), red("T1"), "it never failed by mistake");
        rules.ledger.flaked("T1", "tree", &["1".to_owned()], "now");
        assert_eq!(left(&rules, &["T1"]), red("T1"), "once, which a change can provoke");
        for change in ["2", "3"] {
            rules.ledger.flaked("T1", change, &[change.to_owned()], "now");
        }
        assert_eq!(asked(&rules, &["T1"], &[]), red("T1"), "it is red every time");
        assert_eq!(left(&rules, &["T1"]), (Some(Light::Green), String::new()));
        assert_eq!(left(&rules, &["T1", "T2"]), red("T2"));
        assert_eq!(left(&rules, &[]), red(""), "it may be any row");
    }
}
