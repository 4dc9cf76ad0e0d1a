//! Active runs, as rows for people and for `--json`.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use camino::Utf8PathBuf;
use pdca_driver::{Recovered, RunStatus, WorkspaceConfig, cost_of_run};
use pdca_journal::{Liveness, Moment, Reason, RunState};
use pdca_state::CostTotal;
use serde::Serialize;

use crate::command::words;
use crate::context::Context;
use crate::style::printable;

use super::ago;

/// One active run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunRow {
    pub(crate) id: String,
    /// `batch` or `integration`.
    pub(crate) kind: &'static str,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(crate) dir: Utf8PathBuf,
    /// The phase of the run, or `unreadable`.
    pub(crate) phase: String,
    /// The start of the phase, in UTC.
    pub(crate) since: Option<String>,
    pub(crate) driver: Option<DriverRow>,
    /// The block of the run itself.
    pub(crate) block: Option<BlockRow>,
    /// The blocks of its bundles.
    pub(crate) blocked: Vec<BlockRow>,
    /// What the calls of its leaves cost; null if nothing is known of it.
    pub(crate) cost: Option<CostTotal>,
    /// The error of reading its journal.
    pub(crate) error: Option<String>,
    #[serde(skip)]
    at: Option<Moment>,
}

/// The present or last driver of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DriverRow {
    pub(crate) pid: u32,
    pub(crate) host: String,
    pub(crate) epoch: u64,
    /// `alive`, `dead`, or `unknown` if it cannot be determined from here.
    pub(crate) liveness: &'static str,
    /// It died in the middle of something, rather than stopping in order.
    pub(crate) cut_short: bool,
}

/// A block that a person has to lift.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BlockRow {
    /// The bundle; `None` for the run itself.
    pub(crate) bundle: Option<String>,
    pub(crate) reason: &'static str,
    /// `blocked_recovery`, `blocked_conflict` or `blocked_validation`.
    pub(crate) name: String,
    pub(crate) evidence: String,
    /// In UTC.
    pub(crate) since: String,
}

impl RunRow {
    pub(crate) fn of(sighting: &RunStatus, site: &WorkspaceConfig) -> Self {
        let (id, dir) = (sighting.id.to_string(), site.dirs.runs().dir(&sighting.id));
        let empty = RunRow {
            id,
            kind: "batch",
            dir,
            phase: "unreadable".to_owned(),
            since: None,
            driver: None,
            block: None,
            blocked: Vec::new(),
            cost: None,
            error: None,
            at: None,
        };
        match &sighting.state {
            Err(error) => RunRow { error: Some(pdca_state::chain(error)), ..empty },
            Ok(state) => {
                let since = state.since.at.wall.to_string();
                RunRow {
                    phase: state.phase.to_string(),
                    since: Some(since.clone()),
                    driver: Some(DriverRow::of(state, sighting.driver)),
                    block: state.block.as_ref().map(|block| BlockRow {
                        bundle: None,
                        reason: reason(block.reason),
                        name: format!("blocked_{}", reason(block.reason)),
                        evidence: block.evidence.clone(),
                        since,
                    }),
                    blocked: blocked(state),
                    cost: Some(cost_of_run(site, sighting.id.as_str(), state.bundles.keys()))
                        .filter(CostTotal::is_known),
                    at: Some(state.since.at),
                    ..empty
                }
            }
        }
    }

    /// Makes the row of an integration, whose record is in another directory.
    pub(crate) fn of_integration(sighting: &RunStatus, site: &WorkspaceConfig) -> Self {
        let dir = site.dirs.integrations().dir(&sighting.id);
        Self { kind: "integration", dir, ..Self::of(sighting, site) }
    }

    /// Returns the command that continues it.
    fn command(&self) -> &'static str {
        if self.kind == "integration" { "pdca integrate" } else { "pdca batch" }
    }

    /// Renders the run, with a line for each block.
    pub(crate) fn lines(&self, cx: &Context<'_>) -> Vec<String> {
        let p = cx.out;
        let long = self.at.map(|at| {
            let begun =
                UNIX_EPOCH + Duration::from_secs(at.wall.as_second().try_into().unwrap_or(0));
            words::duration(ago(begun, cx.ambient.now()).max(Duration::from_secs(1)))
        });
        let long = long.map_or_else(String::new, |long| format!(" for {long}"));
        let phase = if self.block.is_some() || self.error.is_some() {
            p.bad(&self.phase).to_string()
        } else {
            p.accent(&self.phase).to_string()
        };
        let driver = self.driver.as_ref().map_or_else(String::new, |driver| {
            let DriverRow { pid, liveness, .. } = driver;
            let what = match *liveness {
                "alive" => format!("driven by process {pid}"),
                "dead" if driver.cut_short => {
                    format!("its driver died (process {pid}), `{}` goes on with it", self.command())
                }
                // Nothing is left for a driver: its bundles wait for people.
                "dead" if !self.blocked.is_empty() => format!("stopped by process {pid}"),
                "dead" => format!("stopped by process {pid}, `{}` goes on with it", self.command()),
                _ => format!("driven from {} by process {pid}, if it lives", driver.host),
            };
            format!(", {what}")
        });
        let name = if self.kind == "integration" { "integration" } else { "run" };
        let mut lines = vec![format!("{name} {}  {phase}{long}{driver}", self.id)];
        let told = |what: &str, evidence: &str, hint: &str| {
            let evidence = printable(evidence).into_owned();
            format!("  {} {evidence}  {hint}", p.warn(what))
        };
        if let Some(error) = &self.error {
            lines.push(told("cannot be read:", error, "`pdca doctor` says more"));
        }
        if let Some(block) = &self.block {
            let hint = if self.kind == "integration" {
                "mend it, and `pdca integrate` goes on"
            } else {
                "`pdca unblock` lets it go on, `pdca abort` gives it up"
            };
            lines.push(told(
                &format!("waits for a person ({}):", block.name),
                &block.evidence,
                hint,
            ));
        }
        for block in &self.blocked {
            let id = block.bundle.as_deref().unwrap_or_default();
            let what = format!("{id} waits for a person ({}):", block.name);
            let hint = if self.kind == "integration" {
                "`pdca integrate` tries it again".to_owned()
            } else {
                format!("`pdca unblock {id}`")
            };
            lines.push(told(&what, &block.evidence, &hint));
        }
        lines
    }
}

impl DriverRow {
    fn of(state: &RunState, driver: Liveness) -> Self {
        let (pid, host) = (state.driver.pid, state.driver.place.host.clone());
        let cut_short = driver == Liveness::Dead && pdca_driver::was_cut_short(state);
        Self { pid, host, epoch: state.epoch.get(), liveness: liveness(driver), cut_short }
    }
}

/// Returns the blocks of a run's bundles. Those that wait for their sign-off are listed by
/// `queue`.
fn blocked(state: &RunState) -> Vec<BlockRow> {
    let of = |(id, work): (&pdca_state::BundleId, &pdca_journal::Workstream)| {
        let (why, evidence) = work.status.block().filter(|(why, _)| *why != Reason::SignOff)?;
        Some(BlockRow {
            bundle: Some(id.to_string()),
            reason: reason(why),
            name: format!("blocked_{}", reason(why)),
            evidence: evidence.to_owned(),
            since: work.since.at.wall.to_string(),
        })
    };
    state.bundles.iter().filter_map(of).collect()
}

/// Returns the blocked bundles of active runs, each with the name of its
/// block and the evidence. Unreadable runs are reported elsewhere.
pub(crate) fn blocked_bundles(
    site: &WorkspaceConfig,
) -> BTreeMap<pdca_state::BundleId, (String, String)> {
    let runs = pdca_driver::run_statuses(site).unwrap_or_default();
    let rows = runs.iter().filter_map(|run| run.state.as_ref().ok()).flat_map(|run| blocked(run));
    rows.filter_map(|row| Some((row.bundle?.parse().ok()?, (row.name, row.evidence)))).collect()
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::SignOff => "sign-off",
        Reason::NoChange => "no-change",
        Reason::Failed => "failed",
        Reason::Conflict => "conflict",
        Reason::Validation => "validation",
        Reason::Recovery => "recovery",
    }
}

pub(crate) fn liveness(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Dead => "dead",
        Liveness::Alive => "alive",
        Liveness::Unknown => "unknown",
    }
}

/// One bundle of a run: its phase in the journal, the facts found, the action.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FoundRow {
    pub(crate) id: String,
    pub(crate) was: &'static str,
    pub(crate) lane: Option<u32>,
    pub(crate) checkout: String,
    pub(crate) branch: String,
    pub(crate) runner: &'static str,
    pub(crate) action: serde_json::Value,
}

impl FoundRow {
    pub(crate) fn of(found: &Recovered) -> Self {
        Self {
            id: found.id.to_string(),
            was: found.was,
            lane: found.slot,
            checkout: format!("{:?}", found.observed.checkout).to_lowercase(),
            branch: match found.observed.branch {
                pdca_journal::BranchFact::Absent => "absent".to_owned(),
                pdca_journal::BranchFact::AsExpected => "as-expected".to_owned(),
                pdca_journal::BranchFact::Moved => "moved".to_owned(),
            },
            runner: liveness(found.observed.runner),
            action: serde_json::to_value(found.action).unwrap_or_default(),
        }
    }

    /// Removes the proposed action.
    pub(crate) fn leave(&mut self) {
        self.action = serde_json::to_value(pdca_journal::RecoveryAction::Noop).unwrap_or_default();
    }

    pub(crate) fn line(&self) -> String {
        let Self { id, was, checkout, branch, runner, .. } = self;
        let action = self.action.as_str().unwrap_or_default();
        let lane = self.lane.map_or_else(String::new, |lane| format!(" in lane {lane}"));
        format!(
            "  {id}  was {was}{lane}; its checkout is {checkout}, its commits {branch}, its runner {runner}: {action}"
        )
    }
}
