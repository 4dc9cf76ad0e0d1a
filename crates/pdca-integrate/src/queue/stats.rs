//! Statistics: one small record per integration, and totals over all of them.
//!
//! A record is written when an integration begins, after every gate run and when it ends. A killed integration
//! is thereby counted as far as it came, and a resumed one continues its record. Nothing is decided from these
//! files.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_journal::RunId;
use pdca_state::files;
use serde::{Deserialize, Serialize};

use crate::Light;

use super::held::{HeldChange, HeldReason};
use super::workspace::QueueWorkspace;
use super::{IntegrateError, Integrated};

/// The maximum size of a record, in bytes.
const LARGEST: u64 = 4 << 20;

/// The costs and results of one integration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntegrationTally {
    pub run: String,
    pub target: String,
    pub branch: String,
    /// The start, in seconds since 1970.
    pub begun: i64,
    /// The end, in seconds since 1970; `None` if it was interrupted.
    pub ended: Option<i64>,
    /// The time of the last landing so far, in seconds since 1970.
    pub landed_at: Option<i64>,
    /// The number of changes that took part.
    pub changes: u64,
    /// The number of changes that landed.
    pub landed: u64,
    /// The number of green gate runs.
    pub green: u64,
    /// The number of red gate runs.
    pub red: u64,
    /// The number of gate runs without a verdict.
    pub undecided: u64,
    /// The number of gate runs saved by known verdicts.
    pub reused: u64,
    /// The number of flakes by row.
    pub flakes: BTreeMap<String, u64>,
    /// The changes that were held because of the gates or a conflict.
    pub held: Vec<Blocked>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocked {
    pub id: String,
    pub reason: HeldReason,
    /// The changes that it breaks or conflicts with.
    pub by: Vec<String>,
    /// The red rows.
    pub rows: Vec<String>,
}

impl IntegrationTally {
    fn dir(workspace: &QueueWorkspace) -> Utf8PathBuf {
        workspace.dirs.private().join("stats")
    }

    /// Loads the records of all integrations, oldest first. Unreadable ones are skipped.
    pub fn all(workspace: &QueueWorkspace) -> Vec<Self> {
        let entries = Self::dir(workspace).read_dir_utf8().into_iter().flatten().flatten();
        let mut paths: Vec<Utf8PathBuf> = entries.map(|entry| entry.path().to_owned()).collect();
        paths.retain(|path| path.extension() == Some("json"));
        // File names are ULIDs, which sort by time.
        paths.sort();
        let read = |path: &Utf8PathBuf| {
            let text = files::read_bounded(path, LARGEST).ok().flatten()?;
            serde_json::from_slice(&text).ok()
        };
        paths.iter().filter_map(read).collect()
    }

    /// Loads the record of an integration, or returns a new one if there is none that can be read.
    pub(crate) fn load(workspace: &QueueWorkspace, run: &RunId) -> Self {
        let path = Self::dir(workspace).join(format!("{}.json", run.as_str()));
        let text = files::read_bounded(path, LARGEST).ok().flatten();
        let known = text.and_then(|text| serde_json::from_slice(&text).ok());
        known.unwrap_or_else(|| Self { run: run.as_str().to_owned(), ..Self::default() })
    }

    pub(crate) fn store(&self, workspace: &QueueWorkspace) -> Result<(), IntegrateError> {
        let dir = Self::dir(workspace);
        let path = dir.join(format!("{}.json", self.run));
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::other);
        let made = text.and_then(|text| fs_err::create_dir_all(&dir).map(|()| text));
        // Losing it with the machine's power is acceptable, because nothing is decided from it.
        let kept = made.and_then(|text| files::replace_unsynced(&path, &text));
        kept.map_err(|source| IntegrateError::Io { path, source })
    }

    /// Returns the number of gate runs.
    pub fn runs(&self) -> u64 {
        self.green + self.red + self.undecided
    }

    /// Counts a gate run.
    pub(crate) fn ran(&mut self, light: Option<Light>) {
        match light {
            Some(Light::Green) => self.green += 1,
            Some(Light::Red) => self.red += 1,
            None => self.undecided += 1,
        }
    }

    /// Updates the record with the results so far.
    pub(crate) fn came_to(&mut self, done: &Integrated, round: &[HeldChange], now: i64) {
        let landed = done.landed.len() as u64;
        if landed > self.landed {
            self.landed_at = Some(now);
        }
        self.landed = landed;
        self.changes = self.changes.max(done.order.len() as u64);
        let blamed = |held: &&HeldChange| {
            matches!(held.reason, HeldReason::Red | HeldReason::Undecidable | HeldReason::Conflict)
        };
        let held = done.held.iter().chain(round).filter(blamed);
        self.held = held.map(Blocked::of).collect();
    }
}

impl Blocked {
    fn of(held: &HeldChange) -> Self {
        Self {
            id: held.id.to_string(),
            reason: held.reason,
            by: held.partners.iter().map(ToString::to_string).collect(),
            rows: held.rows.clone(),
        }
    }
}

/// Totals over all integrations.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stats {
    pub integrations: u64,
    /// The number of integrations that did not end.
    pub cut_short: u64,
    /// The number of changes, counted again in each integration.
    pub changes: u64,
    /// The number of changes that landed.
    pub landed: u64,
    /// The number of changes held for the gates or a conflict.
    pub held: u64,
    /// The number of gate runs.
    pub runs: u64,
    /// The share of red among the runs with a verdict.
    pub red_rate: Option<f64>,
    /// The number of runs without a verdict.
    pub undecided: u64,
    /// The number of gate runs saved by known verdicts.
    pub reused: u64,
    /// The number of runs saved against one run for each change and one for each branch by itself; negative if
    /// finding culprits cost more than that.
    pub saved: i64,
    /// The number of flakes.
    pub flakes: u64,
    /// The number of flakes by row.
    pub flaky_rows: BTreeMap<String, u64>,
    /// The median time from the start to the last landing, in seconds.
    pub median_secs_to_green: Option<i64>,
    /// The longest time from the start to the last landing, in seconds.
    pub longest_secs_to_green: Option<i64>,
    /// The blocked changes with their blockers, most frequent first.
    pub blocks: Vec<BlockedPair>,
}

/// A change that was held, and the changes that blocked it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockedPair {
    pub held: String,
    /// The blocking changes; empty if the change is at fault alone.
    pub by: Vec<String>,
    pub reason: HeldReason,
    /// The red rows.
    pub rows: Vec<String>,
    /// The number of integrations in which this happened.
    pub times: u64,
}

impl Stats {
    /// Computes the totals.
    pub fn of(tallies: &[IntegrationTally]) -> Self {
        let sum = |of: &dyn Fn(&IntegrationTally) -> u64| tallies.iter().map(of).sum::<u64>();
        let (green, red) = (sum(&|tally| tally.green), sum(&|tally| tally.red));
        let (runs, changes) = (sum(&IntegrationTally::runs), sum(&|tally| tally.changes));
        let alone = changes + tallies.iter().filter(|tally| tally.changes > 0).count() as u64;
        let mut times: Vec<i64> = tallies
            .iter()
            .filter_map(|tally| Some((tally.landed_at? - tally.begun).max(0)))
            .collect();
        times.sort_unstable();
        let mut flaky_rows = BTreeMap::new();
        for (row, count) in tallies.iter().flat_map(|tally| &tally.flakes) {
            *flaky_rows.entry(row.clone()).or_default() += count;
        }
        let mut stats = Self {
            integrations: tallies.len() as u64,
            cut_short: tallies.iter().filter(|tally| tally.ended.is_none()).count() as u64,
            changes,
            landed: sum(&|tally| tally.landed),
            held: sum(&|tally| tally.held.len() as u64),
            runs,
            red_rate: (green + red > 0).then(|| ratio(red, green + red)),
            undecided: sum(&|tally| tally.undecided),
            reused: sum(&|tally| tally.reused),
            saved: alone.cast_signed() - runs.cast_signed(),
            flakes: flaky_rows.values().sum(),
            flaky_rows,
            median_secs_to_green: times.get(times.len().saturating_sub(1) / 2).copied(),
            longest_secs_to_green: times.last().copied(),
            blocks: Vec::new(),
        };
        for blocked in tallies.iter().flat_map(|tally| &tally.held) {
            stats.count(blocked);
        }
        stats.blocks.sort_by(|one, other| (other.times, &one.held).cmp(&(one.times, &other.held)));
        stats
    }

    fn count(&mut self, blocked: &Blocked) {
        let is_it = |pair: &&mut BlockedPair| {
            pair.held == blocked.id && pair.by == blocked.by && pair.reason == blocked.reason
        };
        if let Some(known) = self.blocks.iter_mut().find(is_it) {
            known.times += 1;
            known.rows.clone_from(&blocked.rows);
            return;
        }
        let Blocked { id, reason, by, rows } = blocked.clone();
        self.blocks.push(BlockedPair { held: id, by, reason, rows, times: 1 });
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    let float = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(part) / float(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(id: &str, by: &[&str]) -> Blocked {
        Blocked {
            id: id.to_owned(),
            reason: HeldReason::Red,
            by: by.iter().map(ToString::to_string).collect(),
            rows: vec!["T3".to_owned()],
        }
    }

    #[test]
    fn nothing_follows_from_nothing() {
        let stats = Stats::of(&[]);
        assert_eq!((stats.runs, stats.red_rate, stats.median_secs_to_green), (0, None, None));
    }

    #[test]
    fn what_integrations_cost_is_set_against_one_by_one() {
        let first = IntegrationTally {
            begun: 100,
            ended: Some(190),
            landed_at: Some(160),
            changes: 8,
            landed: 7,
            green: 3,
            red: 3,
            reused: 1,
            flakes: BTreeMap::from([("T3".to_owned(), 1)]),
            held: vec![blocked("15", &["12"])],
            ..IntegrationTally::default()
        };
        let again = IntegrationTally {
            begun: 200,
            changes: 1,
            reused: 2,
            held: vec![blocked("15", &["12"])],
            ..IntegrationTally::default()
        };
        let stats = Stats::of(&[first, again]);
        assert_eq!((stats.integrations, stats.cut_short), (2, 1));
        assert_eq!((stats.runs, stats.red_rate, stats.reused), (6, Some(0.5), 3));
        assert_eq!(stats.saved, (8 + 1) + (1 + 1) - 6);
        assert_eq!((stats.flakes, stats.flaky_rows["T3"]), (1, 1));
        assert_eq!((stats.median_secs_to_green, stats.longest_secs_to_green), (Some(60), Some(60)));
        let [pair] = stats.blocks.as_slice() else { panic!("{:?}", stats.blocks) };
        assert_eq!(
            (pair.held.as_str(), pair.by.as_slice(), pair.times),
            ("15", &["12".to_owned()][..], 2)
        );
    }
}
