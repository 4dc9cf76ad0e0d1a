//! Flaky rows: their history, and the number of reds that it takes to believe them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A culprit is named only if the probability that all reds seen were flakes is at most this.
const DOUBT: f64 = 3e-5;
/// The assumed number of runs per flake of a row without history.
/// With this rate two reds are within `DOUBT`: 1/200 squared is 2.5e-5.
const RUNS_PER_MISTAKE: f64 = 200.0;
/// The number of reds that is always enough, however flaky a row is.
/// A row that always fails by mistake would otherwise demand runs without end.
const MOST_REDS: u32 = 6;
/// The number of trees to remember for a row.
const TREES: usize = 8;
/// A row is known to be flaky after flakes over so many independent trees. One change can make any row fail once and
/// pass then, so the flakes of trees that have a change in common count as one.
const INDEPENDENT: usize = 3;
/// A row is known to be flaky if it flakes at least once in so many runs.
const RUNS_PER_FLAKE: u64 = 50;

/// The number of runs of each row, and of failures that did not repeat on the same tree.
///
/// The caller stores it, records every run in it, and passes it to each search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlakeLedger {
    rows: BTreeMap<String, RowHistory>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowHistory {
    pub runs: u64,
    /// The number of failures on a tree on which the row also passed.
    pub flakes: u64,
    /// The time of the last flake, as formatted by the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// The trees of the last flakes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<String>,
    /// The changes in the trees of the last flakes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_with: Vec<FlakeOccurrence>,
}

/// A flake: the tree, and the changes that it has beyond the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlakeOccurrence {
    pub tree: String,
    pub changes: Vec<String>,
}

impl RowHistory {
    /// Returns the number of flakes that have no tree and no change in common with one another.
    fn independent(&self) -> usize {
        let mut chosen: Vec<&FlakeOccurrence> = Vec::new();
        for one in &self.seen_with {
            let is_apart = |other: &&FlakeOccurrence| {
                other.tree != one.tree && !one.changes.iter().any(|id| other.changes.contains(id))
            };
            if chosen.iter().all(is_apart) {
                chosen.push(one);
            }
        }
        chosen.len()
    }

    /// Returns true if the row fails by mistake at a rate, and not only where one change is.
    fn is_flaky(&self) -> bool {
        self.independent() >= INDEPENDENT && self.flakes * RUNS_PER_FLAKE >= self.runs
    }
}

/// The treatment of a red row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlakePolicy {
    /// Believe it after as many reds as its flake rate demands.
    #[default]
    Confirm,
    /// As `Confirm` until the row is known to be flaky. From then on a red that passes when it is asked again over the
    /// same tree is reported and does not count; one that is red every time counts.
    Quarantine,
    /// Believe the first red.
    Fail,
}

/// The ledger and the policies, from which a search judges reds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlakeRules {
    pub ledger: FlakeLedger,
    /// The rows with a policy of their own. All others are confirmed.
    pub policies: BTreeMap<String, FlakePolicy>,
}

impl FlakeLedger {
    /// Records a run of a row.
    pub fn ran(&mut self, row: &str) {
        self.entry(row).runs += 1;
    }

    /// Records that a row failed and passed on the same tree, which has these changes beyond the branch.
    pub fn flaked(&mut self, row: &str, tree: &str, changes: &[String], at: &str) {
        let history = self.entry(row);
        history.flakes += 1;
        history.last_seen = Some(at.to_owned());
        history.trees.retain(|known| known != tree);
        history.trees.push(tree.to_owned());
        if history.trees.len() > TREES {
            history.trees.remove(0);
        }
        history.seen_with.retain(|known| known.tree != tree);
        let (tree, changes) = (tree.to_owned(), changes.to_vec());
        history.seen_with.push(FlakeOccurrence { tree, changes });
        if history.seen_with.len() > TREES {
            history.seen_with.remove(0);
        }
    }

    pub fn row(&self, row: &str) -> Option<&RowHistory> {
        self.rows.get(row)
    }

    /// Returns the rows with at least one known flake and their histories, ordered by name.
    pub fn flaky(&self) -> impl Iterator<Item = (&str, &RowHistory)> {
        let rows = self.rows.iter().filter(|(_, history)| history.flakes > 0);
        rows.map(|(row, history)| (row.as_str(), history))
    }

    /// Estimates the flake rate of a row. With few runs the estimate stays close to the assumed rate.
    pub fn rate(&self, row: &str) -> f64 {
        let (runs, flakes) =
            self.rows.get(row).map_or((0, 0), |history| (history.runs, history.flakes));
        // One flake in `RUNS_PER_MISTAKE` runs is assumed before the first run, so a single early flake does
        // not dominate.
        (float(flakes) + 1.0) / (float(runs.max(flakes)) + RUNS_PER_MISTAKE)
    }

    fn entry(&mut self, row: &str) -> &mut RowHistory {
        self.rows.entry(row.to_owned()).or_default()
    }
}

impl FlakeRules {
    /// Returns the number of reds that must agree before a change is held for these rows. The flakiest row decides.
    pub fn agreement<'r>(&self, rows: impl IntoIterator<Item = &'r str>) -> u32 {
        let demanded = rows.into_iter().map(|row| match self.policy(row) {
            FlakePolicy::Fail => 1,
            FlakePolicy::Confirm | FlakePolicy::Quarantine => reds(self.ledger.rate(row)),
        });
        // Reds without rows come from a cache whose evidence is gone.
        demanded.max().unwrap_or_else(|| reds(1.0 / RUNS_PER_MISTAKE))
    }

    /// Returns true if a single red of this row does not count: its policy is `Quarantine`, and it is known to be flaky.
    pub fn is_quarantined(&self, row: &str) -> bool {
        let is_flaky = self.ledger.row(row).is_some_and(RowHistory::is_flaky);
        is_flaky && self.policy(row) == FlakePolicy::Quarantine
    }

    fn policy(&self, row: &str) -> FlakePolicy {
        self.policies.get(row).copied().unwrap_or_default()
    }
}

/// Returns the number of reds that are hardly all flakes at this rate; at least two.
fn reds(rate: f64) -> u32 {
    (2..MOST_REDS).find(|count| rate.powi(count.cast_signed()) <= DOUBT).unwrap_or(MOST_REDS)
}

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(runs: u32, flakes: u32) -> FlakeRules {
        let mut ledger = FlakeLedger::default();
        (0..runs).for_each(|_| ledger.ran("T1"));
        (0..flakes).for_each(|tree| ledger.flaked("T1", &tree.to_string(), &[], "now"));
        FlakeRules { ledger, ..FlakeRules::default() }
    }

    #[test]
    fn the_more_often_a_row_fails_by_mistake_the_more_reds_must_agree() {
        let agreement = |runs, flakes| history(runs, flakes).agreement(["T1"]);
        assert_eq!(agreement(0, 0), 2, "nothing is known");
        assert_eq!(agreement(200, 0), 2, "it never did");
        assert_eq!(agreement(200, 4), 3);
        assert_eq!(agreement(200, 100), 6);
    }

    #[test]
    fn the_least_trusted_row_decides_and_a_policy_overrides_the_history() {
        let mut rules = history(200, 4);
        assert_eq!((rules.agreement(["new"]), rules.agreement(["T1", "new"])), (2, 3));
        rules.policies.insert("T1".to_owned(), FlakePolicy::Fail);
        assert_eq!(rules.agreement(["T1"]), 1);
    }

    /// Returns whether a row is in quarantine after `runs` runs and one flake for each set of changes, each over a tree
    /// of its own.
    fn is_quarantined(runs: u32, flakes: &[&[&str]]) -> bool {
        let mut rules = history(runs, 0);
        rules.policies.insert("T1".to_owned(), FlakePolicy::Quarantine);
        for (tree, changes) in flakes.iter().enumerate() {
            let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
            rules.ledger.flaked("T1", &tree.to_string(), &changes, "now");
        }
        rules.is_quarantined("T1")
    }

    #[test]
    fn a_row_is_in_quarantine_for_its_rate_and_not_for_what_one_change_provokes() {
        assert!(!is_quarantined(10, &[]));
        assert!(!is_quarantined(10, &[&["1"]]), "one flake");
        assert!(
            !is_quarantined(10, &[&["1"], &["1", "2"], &["1", "3"], &["1", "4"]]),
            "all have 1"
        );
        assert!(!is_quarantined(10, &[&["1"], &["2"], &["1", "2"]]));
        assert!(is_quarantined(10, &[&["1"], &["2"], &["3"]]));
        assert!(is_quarantined(10, &[&[], &[], &[]]), "the branch by itself, at three times");
        assert!(is_quarantined(150, &[&["1"], &["2"], &["3"]]));
        assert!(!is_quarantined(151, &[&["1"], &["2"], &["3"]]), "too seldom");
    }

    #[test]
    fn a_ledger_is_the_same_after_it_was_written_and_read() {
        let ledger = history(3, 12).ledger;
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(serde_json::from_str::<FlakeLedger>(&text).unwrap(), ledger);
        assert_eq!(ledger.row("T1").unwrap().trees.len(), TREES);
    }
}
