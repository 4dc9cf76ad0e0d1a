//! What the red of a row means that may be flaky: the policy of each row beside what is known of it.

use pdca_gates::{Flaky, GatesOutcome};
use pdca_integrate::{FlakePolicy, FlakeRules, Light, RowHistory, Verdict};
use pdca_state::Bundle;

use crate::config::WorkspaceConfig;
use crate::event::What;
use crate::run_bundle::Driver;

use super::gate::Ruling;

/// A row that was red over a tree and did not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The row.
    pub row: String,
    /// The tree.
    pub tree: String,
}

impl WorkspaceConfig {
    /// The policies of the rows and the history that they are applied to.
    pub(crate) fn flake_rules(&self) -> FlakeRules {
        let policy = |flaky| match flaky {
            Flaky::Confirm => None,
            Flaky::Quarantine => Some(FlakePolicy::Quarantine),
            Flaky::Fail => Some(FlakePolicy::Fail),
        };
        let rows = self.rows.as_slice().iter();
        let policies = rows.filter_map(|row| Some((row.id.clone(), policy(row.flaky)?))).collect();
        FlakeRules { ledger: self.flakes(), policies }
    }

    /// The rows that decide about combinations and are known to have failed by mistake.
    pub(super) fn flaky_rows(&self, rules: &FlakeRules) -> Vec<(String, RowHistory)> {
        let decides = |(row, _): &(&str, _)| self.combined_gates().any(|id| id == *row);
        let flaky = rules.ledger.flaky().filter(decides);
        flaky.map(|(row, history)| (row.to_owned(), history.clone())).collect()
    }
}

/// Takes the rows in quarantine out of what the gates said, and gives them back.
pub(super) fn pardon(ruling: &mut Ruling, rules: &FlakeRules) -> Vec<String> {
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
pub(super) fn counts(verdict: &Verdict, rules: &FlakeRules) -> bool {
    verdict.quarantined.iter().all(|row| rules.is_quarantined(row))
}

/// Why a red row does not block, for a person.
pub(super) fn excuse(row: &str, rules: &FlakeRules) -> String {
    let (flakes, runs) =
        rules.ledger.row(row).map_or((0, 0), |history| (history.flakes, history.runs));
    format!("in quarantine, does not block: failed by mistake in {flakes} of {runs} runs")
}

impl Driver<'_> {
    /// The same report in which rows in quarantine do not block. Each says so, and so does the driver.
    pub(crate) fn with_quarantine(&self, bundle: &Bundle, outcome: GatesOutcome) -> GatesOutcome {
        if outcome.report.failed_gating().next().is_none() {
            return outcome;
        }
        let rules = self.config.flake_rules();
        let red = outcome.report.failed_gating().map(|row| row.rule_id.clone());
        let red: Vec<String> = red.filter(|row| rules.is_quarantined(row)).collect();
        let mut report = outcome.report;
        for row in red {
            let why = excuse(&row, &rules);
            self.tell(bundle, What::Warning { text: format!("{row} is red and {why}") });
            report = report.with_pardon(&row, &why);
        }
        GatesOutcome { report, ..outcome }
    }
}
