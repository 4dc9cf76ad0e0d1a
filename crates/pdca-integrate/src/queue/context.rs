//! What the merge queue asks of its surroundings: values, and one trait for running gates.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_events::IntegrationStep;
use pdca_journal::Effects;
use pdca_process::Cancel;
use pdca_state::{GateReport, GateResult, GateRow};

use crate::{Answer, FlakePolicy, FlakeRules, GateSetId, Light, ObjectId};

use super::evidence::RedRow;
use super::target_branch::TargetBranch;
use super::workspace::QueueWorkspace;

/// The first slot that combinations are gated in: above those that bundles are worked on in.
///
/// Each lane at work holds a block of ports, so no range of ports gives as many lanes as this.
pub const FIRST_SLOT: u32 = 10_000;
const _: () = assert!(FIRST_SLOT > pdca_lanes::MOST_PORT_BLOCKS, "the slots would overlap");

/// Runs the gates over combinations. The driver implements it over private checkouts, tests over a table.
pub trait CombinationGate: Sync {
    /// Gates one tree. Called from several threads at once, each with a slot of its own.
    fn gate(
        &self,
        branch: &TargetBranch,
        job: &GateJob,
        cancel: &Cancel,
    ) -> Result<Ruling, GateRunError>;
}

/// A commit to be gated, and the place for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateJob {
    /// The checkout.
    pub slot: u32,
    /// The commit.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// How often the tree was asked about before, where an earlier verdict does not count.
    pub asked: u32,
    /// Where the rows leave their verdicts. A run that is asked anew has another one.
    pub jobs: Utf8PathBuf,
}

/// Why gates came to no ruling.
#[derive(Debug, thiserror::Error)]
pub enum GateRunError {
    /// They were told to stop.
    #[error("interrupted")]
    Interrupted,
    /// They could not be run.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// What the gates said about a combination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruling {
    /// The verdict; none where a row that blocks could not be decided.
    pub light: Option<Light>,
    /// The rows that block and are red, or could not be decided.
    pub rows: Vec<String>,
    /// What those rows said, one line each.
    pub evidence: Vec<String>,
    /// Their logs.
    pub logs: Vec<Utf8PathBuf>,
    /// Those that are red, with what they left.
    pub red: Vec<RedRow>,
}

impl Ruling {
    /// Reads a report. `reproduce` gives the command that shows a red row again.
    pub fn of(report: &GateReport, reproduce: &dyn Fn(&GateRow) -> Option<String>) -> Self {
        let of = |light, rows: &[&GateRow], names: Vec<String>| Self {
            light,
            rows: names,
            red: rows.iter().map(|row| RedRow::of(row, reproduce(row))).collect(),
            evidence: rows.iter().map(|row| said(row)).collect(),
            logs: rows.iter().filter_map(|row| row.log.as_deref().map(Into::into)).collect(),
        };
        let red: Vec<&GateRow> = report.failed_gating().collect();
        if !red.is_empty() {
            let names = red.iter().map(|row| row.rule_id.clone()).collect();
            return of(Some(Light::Red), &red, names);
        }
        let undecided = |row: &&GateRow| row.gating && row.result == GateResult::Unverifiable;
        let rows: Vec<&GateRow> = report.rows.iter().filter(undecided).collect();
        let light = rows.is_empty().then_some(Light::Green);
        of(light, &rows, rows.iter().map(|row| said(row)).collect())
    }

    /// The same for the search.
    pub(crate) fn answer(&self) -> Answer {
        let rows = self.rows.clone();
        match self.light {
            Some(Light::Green) => Answer::Green,
            Some(Light::Red) => Answer::Red { rows },
            None => Answer::Undecidable { rows },
        }
    }
}

fn said(row: &GateRow) -> String {
    format!("{}: {}", row.rule_id, row.reason())
}

/// The gates that decide about combinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinationGates {
    /// Their identity, environment included.
    pub id: GateSetId,
    /// The rows.
    pub rows: Vec<String>,
    /// What becomes of a red row that may be flaky, where the configuration says.
    pub policies: BTreeMap<String, FlakePolicy>,
}

impl CombinationGates {
    /// The policies of the rows and the history that they are applied to.
    pub fn flake_rules(&self, workspace: &QueueWorkspace) -> FlakeRules {
        FlakeRules::load(workspace, self.policies.clone())
    }
}

/// Something a person follows while an integration runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The integration has its name and its journal.
    Begun {
        /// The name.
        run: String,
        /// The directory of its journal.
        dir: Utf8PathBuf,
    },
    /// A step.
    Progress {
        /// What a person reads.
        text: String,
        /// The same as facts, for the steps that have them.
        step: Option<IntegrationStep>,
    },
    /// A fact that does not stop the integration.
    Warning(String),
}

/// The surroundings of an integration.
#[derive(Clone, Copy)]
pub struct QueueContext<'a> {
    /// Directories and targets.
    pub workspace: &'a QueueWorkspace,
    /// The gates that decide.
    pub gates: &'a CombinationGates,
    /// Runs them.
    pub gate: &'a dyn CombinationGate,
    /// Is told of every effect.
    pub effects: &'a dyn Effects,
    /// Is told what happens, from the thread in which it happens.
    pub notify: &'a (dyn Fn(Notice) + Sync),
    /// Stops the integration.
    pub cancel: &'a Cancel,
    /// The wall clock, in seconds since 1970.
    pub now: fn() -> i64,
}

impl std::fmt::Debug for QueueContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueContext").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}
