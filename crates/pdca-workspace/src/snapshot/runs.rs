//! Active runs, as rows for people and for `--json`.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_driver::{Recovered, RunStatus, WorkspaceConfig, cost_of_run};
use pdca_journal::{BranchFact, CheckoutFact, Liveness, Moment, Reason, RecoveryAction, RunState};
use pdca_state::CostTotal;
use serde::Serialize;

use super::{Doing, activity};

/// One active run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRow {
    pub id: String,
    pub kind: RunRowKind,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: Utf8PathBuf,
    /// The phase of the run, or `unreadable`.
    pub phase: String,
    /// The start of the phase, in UTC.
    pub since: Option<String>,
    pub driver: Option<DriverRow>,
    /// The block of the run itself.
    pub block: Option<BlockRow>,
    /// The blocks of its bundles.
    pub blocked: Vec<BlockRow>,
    /// What the calls of its leaves cost; null if nothing is known of it.
    pub cost: Option<CostTotal>,
    /// The error of reading its journal.
    pub error: Option<String>,
    /// The current activity of an integration with a live driver. That of a batch is with its bundles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<DoingRow>,
    #[serde(skip)]
    pub at: Option<Moment>,
}

/// Whether a row is of a run or of an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunRowKind {
    /// A run over a batch.
    Batch,
    Integration,
}

/// The current activity of a bundle or an integration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoingRow {
    /// The step, leaf or gate.
    pub what: String,
    /// The host that it is done on; absent for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// In UTC.
    pub since: String,
}

impl DoingRow {
    pub fn of(doing: &Doing) -> Self {
        let (what, host) = (doing.what.clone(), doing.host.clone());
        Self { what, host, since: doing.since.to_string() }
    }

    /// Returns the number of seconds that it takes so far.
    pub fn seconds(&self, now: i64) -> u64 {
        let begun: Option<jiff::Timestamp> = self.since.parse().ok();
        let seconds = begun.map_or(0, |begun| now.saturating_sub(begun.as_second()));
        u64::try_from(seconds).unwrap_or(0)
    }
}

/// The present or last driver of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriverRow {
    pub pid: u32,
    pub host: String,
    pub epoch: u64,
    pub liveness: Liveness,
    /// It died in the middle of something, rather than stopping in order.
    pub cut_short: bool,
}

/// A block that a person has to lift.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockRow {
    /// The bundle; `None` for the run itself.
    pub bundle: Option<String>,
    pub reason: Reason,
    /// `blocked_recovery`, `blocked_conflict` or `blocked_validation`.
    pub name: String,
    pub evidence: String,
    /// In UTC.
    pub since: String,
}

impl RunRow {
    pub fn of(status: &RunStatus, config: &WorkspaceConfig) -> Self {
        let (id, dir) = (status.id.to_string(), config.dirs.runs().dir(&status.id));
        let empty = RunRow {
            id,
            kind: RunRowKind::Batch,
            dir,
            phase: "unreadable".to_owned(),
            since: None,
            driver: None,
            block: None,
            blocked: Vec::new(),
            cost: None,
            error: None,
            doing: None,
            at: None,
        };
        match &status.state {
            Err(error) => RunRow { error: Some(pdca_state::chain(error)), ..empty },
            Ok(state) => {
                let since = state.since.at.wall.to_string();
                RunRow {
                    phase: state.phase.to_string(),
                    since: Some(since.clone()),
                    driver: Some(DriverRow::of(state, status.driver)),
                    block: state.block.as_ref().map(|block| BlockRow {
                        bundle: None,
                        reason: block.reason,
                        name: format!("blocked_{}", block.reason.as_str()),
                        evidence: block.evidence.clone(),
                        since,
                    }),
                    blocked: blocked(state),
                    cost: Some(cost_of_run(config, status.id.as_str(), state.bundles.keys()))
                        .filter(CostTotal::is_known),
                    at: Some(state.since.at),
                    ..empty
                }
            }
        }
    }

    /// Makes the row of an integration, whose record is in another directory.
    pub fn of_integration(status: &RunStatus, config: &WorkspaceConfig) -> Self {
        let dir = config.dirs.integrations().dir(&status.id);
        let is_driven = status.driver == Liveness::Alive;
        let doing = is_driven.then(|| activity::of_integration(&dir)).flatten();
        let doing = doing.as_ref().map(DoingRow::of);
        Self { kind: RunRowKind::Integration, dir, doing, ..Self::of(status, config) }
    }
}

impl DriverRow {
    fn of(state: &RunState, driver: Liveness) -> Self {
        let (pid, host) = (state.driver.pid, state.driver.place.host.clone());
        let cut_short = driver == Liveness::Dead && pdca_driver::was_cut_short(state);
        Self { pid, host, epoch: state.epoch.get(), liveness: driver, cut_short }
    }
}

/// Returns the active runs and integrations, and the errors of reading some. Errors never hide the bundles.
pub(crate) fn all(config: &WorkspaceConfig) -> (Vec<RunRow>, Vec<String>) {
    let (mut rows, mut unread) = (Vec::new(), Vec::new());
    match pdca_driver::run_statuses(config) {
        Ok(runs) => rows.extend(runs.iter().map(|run| RunRow::of(run, config))),
        Err(error) => unread.push(pdca_state::chain(&error)),
    }
    match pdca_driver::integrations(config) {
        Ok(runs) => rows.extend(runs.iter().map(|run| RunRow::of_integration(run, config))),
        Err(error) => unread.push(pdca_state::chain(&error)),
    }
    (rows, unread)
}

/// Returns the blocks of a run's bundles. Those that wait for their sign-off are listed by
/// `queue`.
fn blocked(state: &RunState) -> Vec<BlockRow> {
    let of = |(id, work): (&pdca_state::BundleId, &pdca_journal::Workstream)| {
        let (why, evidence) = work.status.block().filter(|(why, _)| *why != Reason::SignOff)?;
        Some(BlockRow {
            bundle: Some(id.to_string()),
            reason: why,
            name: format!("blocked_{}", why.as_str()),
            evidence: evidence.to_owned(),
            since: work.since.at.wall.to_string(),
        })
    };
    state.bundles.iter().filter_map(of).collect()
}

/// Returns the blocked bundles of active runs, each with the name of its
/// block and the evidence. Unreadable runs are reported elsewhere.
pub fn blocked_bundles(
    config: &WorkspaceConfig,
) -> BTreeMap<pdca_state::BundleId, (String, String)> {
    let runs = pdca_driver::run_statuses(config).unwrap_or_default();
    let rows = runs.iter().filter_map(|run| run.state.as_ref().ok()).flat_map(|run| blocked(run));
    rows.filter_map(|row| Some((row.bundle?.parse().ok()?, (row.name, row.evidence)))).collect()
}

/// One bundle of a run: its phase in the journal, the facts found, the action.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundRow {
    pub id: String,
    pub was: &'static str,
    pub lane: Option<u32>,
    pub checkout: CheckoutFact,
    pub branch: BranchFact,
    pub runner: Liveness,
    pub action: RecoveryAction,
}

impl FoundRow {
    pub fn of(found: &Recovered) -> Self {
        Self {
            id: found.id.to_string(),
            was: found.was,
            lane: found.slot,
            checkout: found.observed.checkout,
            branch: found.observed.branch,
            runner: found.observed.runner,
            action: found.action,
        }
    }

    /// Removes the proposed action.
    pub fn leave(&mut self) {
        self.action = RecoveryAction::Noop;
    }
}
