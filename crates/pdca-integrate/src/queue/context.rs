//! The interface of the merge queue to its caller: values, and one trait that runs gates.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_journal::Effects;
use pdca_journal::events::{IntegrationStep, WarningCode};
use pdca_process::Cancel;
use pdca_state::{GateReport, GateResult, GateRow};

use crate::{FlakePolicy, FlakeRules, GateSetId, Light, ObjectId, TestAnswer};

use super::evidence::RedRow;
use super::target_branch::TargetBranch;
use super::workspace::QueueWorkspace;

/// The first slot for gating combinations, above all slots for bundles.
///
/// Every lane needs a block of ports, so there cannot be as many lanes for bundles as this.
pub const FIRST_SLOT: u32 = 10_000;
const _: () = assert!(FIRST_SLOT > pdca_lanes::MOST_PORT_BLOCKS, "the slots would overlap");

/// Runs gates over combinations. The driver implements it with private checkouts, tests with a table.
pub trait CombinationGate: Sync {
    /// Gates one tree. Called from several threads at once, each with a slot of its own.
    fn gate(
        &self,
        branch: &TargetBranch,
        job: &GateJob,
        cancel: &Cancel,
    ) -> Result<GateRuling, GateRunError>;
}

/// A commit to be gated, and the slot for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateJob {
    /// The integration that asks, or the batch.
    pub run: String,
    pub slot: u32,
    pub commit: ObjectId,
    pub tree: ObjectId,
    /// The number of fresh runs of this tree; 0 if earlier verdicts count.
    pub asked: u32,
    /// The directory for the results of the rows. Each fresh run has its own.
    pub jobs: Utf8PathBuf,
}

/// The distance between the numbers of runs that repeat one question, and those of other questions about its tree.
const REPEATED: u32 = 1000;

impl GateJob {
    /// Returns the same question for one more run, with a directory of its own: in that of an earlier run the finished
    /// rows would be found and reused.
    pub(crate) fn again(&self, number: u32) -> Self {
        let jobs = Utf8PathBuf::from(format!("{}-again-{number}", self.jobs));
        let asked = self.asked + number * REPEATED;
        Self { run: self.run.clone(), jobs, asked, ..*self }
    }
}

/// The reasons why gates gave no ruling.
#[derive(Debug, thiserror::Error)]
pub enum GateRunError {
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// The result of gating a combination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateRuling {
    /// The verdict; `None` if a gating row could not be decided.
    pub light: Option<Light>,
    /// The gating rows that are red or undecided.
    pub rows: Vec<String>,
    /// One line of explanation for each of those rows.
    pub evidence: Vec<String>,
    pub logs: Vec<Utf8PathBuf>,
    /// The red rows with their evidence.
    pub red: Vec<RedRow>,
    /// Rows that were red and then passed over the same tree.
    pub passed_again: Vec<String>,
    /// The number of runs after the first.
    pub asked_again: u32,
}

impl GateRuling {
    /// Reads a report. `reproduce` returns the command that reproduces a red row.
    pub fn of(report: &GateReport, reproduce: &dyn Fn(&GateRow) -> Option<String>) -> Self {
        let of = |light, rows: &[&GateRow], names: Vec<String>| Self {
            light,
            rows: names,
            red: rows.iter().map(|row| RedRow::of(row, reproduce(row))).collect(),
            evidence: rows.iter().map(|row| said(row)).collect(),
            logs: rows.iter().filter_map(|row| row.log.as_deref().map(Into::into)).collect(),
            passed_again: Vec::new(),
            asked_again: 0,
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

    /// Converts the ruling to an answer for the search.
    pub(crate) fn answer(&self) -> TestAnswer {
        let rows = self.rows.clone();
        match self.light {
            Some(Light::Green) => TestAnswer::Green,
            Some(Light::Red) => TestAnswer::Red { rows },
            None => TestAnswer::Undecidable { rows },
        }
    }
}

fn said(row: &GateRow) -> String {
    format!("{}: {}", row.rule_id, row.reason())
}

/// The gates for combinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinationGates {
    /// The identity of the gates and their environment.
    pub id: GateSetId,
    pub rows: Vec<String>,
    /// The configured treatment of red rows that may be flaky.
    pub policies: BTreeMap<String, FlakePolicy>,
}

impl CombinationGates {
    /// Loads the flake history and combines it with the policies.
    pub fn flake_rules(&self, workspace: &QueueWorkspace) -> FlakeRules {
        FlakeRules::load(workspace, self.policies.clone())
    }
}

/// A message about a running integration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntegrationNotice {
    /// The integration has its name and its journal.
    Begun {
        run: String,
        /// The directory of the journal.
        dir: Utf8PathBuf,
    },
    Progress {
        /// The text for people.
        text: String,
        /// The same as an event, if the step has one.
        step: Option<IntegrationStep>,
    },
    /// A warning that does not stop the integration.
    Warning { code: WarningCode, text: String },
}

/// The environment of an integration.
#[derive(Clone, Copy)]
pub struct QueueContext<'a> {
    pub workspace: &'a QueueWorkspace,
    pub gates: &'a CombinationGates,
    pub gate: &'a dyn CombinationGate,
    /// Called around every effect.
    pub effects: &'a dyn Effects,
    /// Receives messages on the thread on which they arise.
    pub notify: &'a (dyn Fn(IntegrationNotice) + Sync),
    pub cancel: &'a Cancel,
    /// The wall clock, in seconds since 1970.
    pub now: fn() -> i64,
}

impl QueueContext<'_> {
    /// Reports a step, for people and as an event.
    pub(super) fn emit(&self, text: String, step: IntegrationStep) {
        (self.notify)(IntegrationNotice::Progress { text, step: Some(step) });
    }

    /// Reports something for people only.
    pub(super) fn tell(&self, text: String) {
        (self.notify)(IntegrationNotice::Progress { text, step: None });
    }
}

impl std::fmt::Debug for QueueContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueContext").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use pdca_state::Element;

    use super::*;

    fn report(rows: &[(&str, GateResult, bool)]) -> GateReport {
        let row = |(id, result, gating): &(&str, GateResult, bool)| {
            let (rule_id, result, gating) = ((*id).to_owned(), *result, *gating);
            (Element::T3, GateRow { rule_id, result, gating, ..GateRow::none(Element::T3) })
        };
        let provenance = pdca_state::Provenance { patch_digest: None, base: None };
        GateReport::assemble("combined".to_owned(), rows.iter().map(row).collect(), provenance)
    }

    fn ruling(rows: &[(&str, GateResult, bool)]) -> GateRuling {
        GateRuling::of(&report(rows), &|row| Some(format!("run {}", row.rule_id)))
    }

    #[test]
    fn a_red_row_decides_also_beside_one_without_a_verdict() {
        let both = [("T3", GateResult::Fail, true), ("T4", GateResult::Unverifiable, true)];
        let ruling = ruling(&both);
        assert_eq!((ruling.light, ruling.rows), (Some(Light::Red), vec!["T3".to_owned()]));
        assert_eq!(ruling.red[0].reproduce.as_deref(), Some("run T3"));
    }

    #[test]
    fn without_a_verdict_of_a_gating_row_there_is_none_about_the_tree() {
        let ruling =
            ruling(&[("T3", GateResult::Pass, true), ("T4", GateResult::Unverifiable, true)]);
        assert_eq!(ruling.light, None);
        assert!(matches!(ruling.answer(), TestAnswer::Undecidable { rows } if rows.len() == 1));
    }

    #[test]
    fn rows_that_do_not_gate_say_nothing_about_a_combination() {
        let ruling =
            ruling(&[("a", GateResult::Fail, false), ("b", GateResult::Unverifiable, false)]);
        assert_eq!((ruling.light, ruling.answer()), (Some(Light::Green), TestAnswer::Green));
    }
}
