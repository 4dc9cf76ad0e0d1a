//! Rows that fail by mistake: how often they did, and what follows from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decision::Answer;

/// A culprit is named only where reds as often as it was seen have at most this probability of all
/// being mistakes.
const DOUBT: f64 = 3e-5;
/// A row that is not known is taken to fail by mistake in one of so many runs.
const RUNS_PER_MISTAKE: f64 = 200.0;
/// However often a row fails by mistake, this many reds are enough.
const MOST_REDS: u32 = 6;
/// How many trees are remembered for a row.
const TREES: usize = 8;
/// How often a row must have run before its rate says anything to a person.
const RUNS_TO_TELL: u64 = 20;

/// How often each row ran, and how often it failed and then passed on the same tree.
///
/// The caller keeps it, records every run in it, and gives it to each search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlakeLedger {
    rows: BTreeMap<String, RowHistory>,
}

/// The history of one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowHistory {
    /// How often it ran.
    pub runs: u64,
    /// How often it failed on a tree on which it also passed.
    pub flakes: u64,
    /// When it last did, as the caller writes times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// The last trees on which it did, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<String>,
}

/// What to do about a red row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlakePolicy {
    /// Believe it after as many reds as its rate of mistakes demands.
    #[default]
    Confirm,
    /// As `Confirm`, until it is known to be flaky: from then on report it and let the combination pass.
    Quarantine,
    /// Believe it at once.
    Fail,
}

/// The ledger and the policies: all that a search needs to judge a red.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlakeRules {
    /// The history.
    pub ledger: FlakeLedger,
    /// The rows that have a policy of their own. The others are confirmed.
    pub policies: BTreeMap<String, FlakePolicy>,
}

impl FlakeLedger {
    /// Records that a row ran.
    pub fn ran(&mut self, row: &str) {
        self.entry(row).runs += 1;
    }

    /// Records that a row failed and passed on the same tree.
    pub fn flaked(&mut self, row: &str, tree: &str, at: &str) {
        let history = self.entry(row);
        history.flakes += 1;
        history.last_seen = Some(at.to_owned());
        history.trees.retain(|known| known != tree);
        history.trees.push(tree.to_owned());
        if history.trees.len() > TREES {
            history.trees.remove(0);
        }
    }

    /// The history of a row.
    pub fn row(&self, row: &str) -> Option<&RowHistory> {
        self.rows.get(row)
    }

    /// Every row that is known to have failed by mistake, with its history, in the order of their names.
    pub fn flaky(&self) -> impl Iterator<Item = (&str, &RowHistory)> {
        let rows = self.rows.iter().filter(|(_, history)| history.flakes > 0);
        rows.map(|(row, history)| (row.as_str(), history))
    }

    /// How often a row fails by mistake. Few runs count for little.
    pub fn rate(&self, row: &str) -> f64 {
        let (runs, flakes) =
            self.rows.get(row).map_or((0, 0), |history| (history.runs, history.flakes));
        (float(flakes) + 1.0) / (float(runs.max(flakes)) + RUNS_PER_MISTAKE)
    }

    /// The rows that fail by mistake more often than this, to be named to a person, with their rates.
    pub fn above(&self, limit: f64) -> Vec<(&str, f64)> {
        let known = self.rows.iter().filter(|(_, history)| history.runs >= RUNS_TO_TELL);
        let rates =
            known.map(|(row, history)| (row.as_str(), float(history.flakes) / float(history.runs)));
        rates.filter(|(_, rate)| *rate > limit).collect()
    }

    fn entry(&mut self, row: &str) -> &mut RowHistory {
        self.rows.entry(row.to_owned()).or_default()
    }
}

impl FlakeRules {
    /// How many reds must agree before a change is held for these rows: as many as the row that fails
    /// by mistake most often demands.
    pub fn agreement<'r>(&self, rows: impl IntoIterator<Item = &'r str>) -> u32 {
        let demanded = rows.into_iter().map(|row| match self.policy(row) {
            FlakePolicy::Fail => 1,
            FlakePolicy::Confirm | FlakePolicy::Quarantine => reds(self.ledger.rate(row)),
        });
        demanded.max().unwrap_or_else(|| reds(1.0 / RUNS_PER_MISTAKE))
    }

    /// The answer without the rows that are in quarantine.
    ///
    /// The caller asks this before it keeps a verdict, so that what lands is what it calls green.
    #[must_use]
    pub fn judge(&self, answer: Answer) -> Answer {
        let counts = |row: &String| !self.is_quarantined(row);
        match answer {
            Answer::Red { rows } if !rows.is_empty() => {
                let rows: Vec<String> = rows.into_iter().filter(counts).collect();
                if rows.is_empty() { Answer::Green } else { Answer::Red { rows } }
            }
            Answer::Red { .. }
            | Answer::Green
            | Answer::Undecidable { .. }
            | Answer::Unfit(_)
            | Answer::Void => answer,
        }
    }

    /// Whether a row does not count: its policy says so, and it is known to be flaky.
    pub fn is_quarantined(&self, row: &str) -> bool {
        let is_flaky = self.ledger.row(row).is_some_and(|history| history.flakes > 0);
        is_flaky && self.policy(row) == FlakePolicy::Quarantine
    }

    fn policy(&self, row: &str) -> FlakePolicy {
        self.policies.get(row).copied().unwrap_or_default()
    }
}

/// How many reds are not mistakes, where each is one so often. Never fewer than two.
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
        (0..flakes).for_each(|tree| ledger.flaked("T1", &tree.to_string(), "now"));
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

    #[test]
    fn a_red_is_green_only_where_every_red_row_is_in_quarantine_and_known_to_be_flaky() {
        let mut rules = history(20, 0);
        rules.policies.insert("T1".to_owned(), FlakePolicy::Quarantine);
        let red =
            |rows: &[&str]| Answer::Red { rows: rows.iter().map(ToString::to_string).collect() };
        assert_eq!(rules.judge(red(&["T1"])), red(&["T1"]), "it never failed by mistake");
        rules.ledger.flaked("T1", "tree", "now");
        assert_eq!(rules.judge(red(&["T1"])), Answer::Green);
        assert_eq!(rules.judge(red(&["T1", "T2"])), red(&["T2"]));
        assert_eq!(rules.judge(Answer::red()), Answer::red());
    }

    #[test]
    fn a_row_above_the_limit_is_named_once_it_ran_often_enough() {
        assert_eq!(history(10, 5).ledger.above(0.1), []);
        assert_eq!(history(100, 20).ledger.above(0.1), [("T1", 0.2)]);
        assert_eq!(history(100, 20).ledger.above(0.2), []);
    }

    #[test]
    fn a_ledger_is_the_same_after_it_was_written_and_read() {
        let ledger = history(3, 12).ledger;
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(serde_json::from_str::<FlakeLedger>(&text).unwrap(), ledger);
        assert_eq!(ledger.row("T1").unwrap().trees.len(), TREES);
    }
}
