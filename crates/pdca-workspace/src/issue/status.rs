//! All issues in a list, with the runs and the branches around them.

use std::collections::BTreeMap;

use pdca_state::{CostTotal, State, Stranger};
use serde::Serialize;

use crate::act::{ActCadence, cadence};
use crate::flow::UnsignedWork;
use crate::issue::{IssueCosts, IssueRow};
use crate::snapshot::{BranchSummary, RunRow, WorkspaceSnapshot};
use crate::{OpenWorkspace, OperationError};

/// The parts of a status to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusRequest {
    /// Includes [`WorkspaceStatus::bundles`]. The next command of each bundle is searched over all its dependencies, which is
    /// slow for many bundles.
    pub with_rows: bool,
}

/// The state of every issue of a workspace.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceStatus {
    /// The active runs.
    pub runs: Vec<RunRow>,
    /// The errors of reading runs, one line each.
    pub unread: Vec<String>,
    /// The branches with accepted changes that have not landed.
    pub targets: Vec<BranchStatus>,
    pub bundles: Vec<IssueRow>,
    pub strangers: Vec<IgnoredEntry>,
    /// What the calls of leaves cost, over all bundles.
    pub cost: CostTotal,
    /// How much waits for sign-off, and how much may before `pdca flow` holds builds back.
    pub pace: UnsignedWork,
    /// How many cycles wait for a review of the process, and whether one is due; null if the Act log cannot be read.
    pub act: Option<ActCadence>,
    /// The bundles as they were read.
    #[serde(skip)]
    pub snapshot: WorkspaceSnapshot,
    #[serde(skip)]
    pub costs: IssueCosts,
}

/// A branch with accepted changes that have not landed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchStatus {
    pub target: String,
    pub branch: String,
    /// The number of changes per state, without landed ones.
    pub counts: BTreeMap<&'static str, usize>,
    pub next: Option<String>,
    pub why: Option<String>,
}

/// A directory that is named like a bundle and is none.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoredEntry {
    pub name: String,
    pub why: String,
}

/// Reads the state of every bundle. An unreadable one is a row with its error.
pub fn workspace_status(
    open: &OpenWorkspace<'_>,
    request: StatusRequest,
) -> Result<WorkspaceStatus, OperationError> {
    let mut snapshot = open.snapshot_at_work()?;
    let row = |entry| IssueRow::of(&snapshot, entry, open.environment.cwd);
    let bundles = snapshot.entries.iter().filter(|_| request.with_rows).map(row).collect();
    let ended =
        snapshot.entries.iter().filter(|entry| entry.state().is_some_and(State::is_terminal));
    // A log that cannot be read is told by `pdca act index`; the bundles are shown all the same.
    let ended = ended.map(|entry| &entry.id);
    let act = cadence(open.workspace, ended, &open.today().to_string()).ok();
    let costs = IssueCosts::load(&snapshot);
    Ok(WorkspaceStatus {
        bundles,
        targets: snapshot.landing.branches.iter().map(BranchStatus::of).collect(),
        strangers: snapshot.strangers.iter().map(IgnoredEntry::of).collect(),
        cost: costs.sum(),
        act,
        pace: snapshot.pace(&open.workspace.config.flow),
        runs: std::mem::take(&mut snapshot.runs),
        unread: std::mem::take(&mut snapshot.unread),
        costs,
        snapshot,
    })
}

impl BranchStatus {
    fn of(branch: &BranchSummary) -> Self {
        let (next, why) = branch.next.clone().unzip();
        Self {
            target: branch.target.clone(),
            branch: branch.name.clone(),
            counts: branch.counts.iter().copied().collect(),
            next,
            why,
        }
    }
}

impl IgnoredEntry {
    fn of(stranger: &Stranger) -> Self {
        Self { name: stranger.name.clone(), why: stranger.why.to_string() }
    }
}
