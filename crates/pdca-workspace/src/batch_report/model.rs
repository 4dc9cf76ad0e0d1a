//! The values of a report. Writers render them and read nothing.

use crate::review::Tone;
use camino::Utf8PathBuf;
use jiff::Timestamp;
use pdca_state::{BundleId, CostTotal, GateResult, Overall, State};
use serde::Serialize;

use crate::batch_report::history::RunHistory;
use crate::batch_report::text::Text;

/// The record of a workspace, or of one run of it.
#[derive(Debug, Clone)]
pub struct WorkspaceReport {
    /// The name of the project.
    pub project: Text,
    /// The time of writing.
    pub made: Timestamp,
    /// The run that it is limited to.
    pub run: Option<String>,
    /// Those that need a person first.
    pub bundles: Vec<BundlePage>,
    /// The plan over these bundles, or the reason why there is none.
    pub plan: Result<PlanView, Text>,
    /// The recorded runs and integrations, the newest first.
    pub runs: Vec<RunHistory>,
    /// The newest first.
    pub certificates: Vec<CertificateView>,
    /// What all calls of leaves cost.
    pub cost: CostTotal,
    /// What could not be read, one line each.
    pub unread: Vec<Text>,
}

/// The bundles of a plan by waves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanView {
    pub waves: Vec<Vec<BundleId>>,
    /// Prerequisite and dependant.
    pub edges: Vec<(BundleId, BundleId)>,
    /// The bundles that are left out, with the reason.
    pub left_out: Vec<(BundleId, Text)>,
}

/// One bundle.
#[derive(Debug, Clone)]
pub struct BundlePage {
    pub id: BundleId,
    pub title: Text,
    /// `None` if it cannot be read.
    pub state: Option<State>,
    pub group: ReportGroup,
    /// The reason for the group, in one sentence.
    pub why: Text,
    /// The command that continues it.
    pub next: Option<String>,
    /// The state of an accepted change: `landed`, `held` and so on.
    pub landing: Option<(&'static str, Text)>,
    pub depends_on: Vec<BundleId>,
    /// The number of earlier attempts.
    pub attempts: u32,
    pub overall: Option<Overall>,
    pub gates: Vec<GateView>,
    /// The report of the gates as it is on disk, for programs.
    pub report: Option<pdca_state::GateReport>,
    /// The decision card, as far as there is room for it.
    pub card: Vec<CardPart>,
    pub open_items: Vec<Text>,
    /// The decision of a person: outcome, name and date, note.
    pub signoff: Option<(Text, Text, Text)>,
    pub diff: Option<DiffView>,
    pub cost: CostTotal,
    /// The evidence of a change that was held.
    pub held: Vec<EvidenceView>,
}

/// The groups of a report, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReportGroup {
    Failed,
    #[serde(rename = "needs you")]
    NeedsYou,
    #[serde(rename = "at work")]
    AtWork,
    #[serde(rename = "waits")]
    Waiting,
    Accepted,
    Closed,
}

impl ReportGroup {
    pub const ALL: [Self; 6] =
        [Self::Failed, Self::NeedsYou, Self::AtWork, Self::Waiting, Self::Accepted, Self::Closed];
}

/// A gate that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateView {
    pub rule_id: Text,
    /// The name for people.
    pub check: Text,
    pub result: GateResult,
    pub gating: bool,
    pub evidence: Text,
    pub failing: Vec<Text>,
    /// The number of failed tests that are not named.
    pub failing_more: usize,
    pub duration_ms: Option<u64>,
    pub flaky: bool,
    pub note: Option<Text>,
    pub reproduce: Option<Text>,
    /// The end of the log of a red row.
    pub log: Option<Text>,
}

impl GateView {
    /// Returns whether it blocks.
    pub fn is_red(&self) -> bool {
        self.gating && self.result == GateResult::Fail
    }
}

/// A section of the decision card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPart {
    pub title: &'static str,
    pub lines: Vec<(Tone, Text)>,
    /// The number of lines that there is no room for.
    pub left_out: usize,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffView {
    pub files: Vec<Text>,
    /// The number of files that are not named.
    pub more_files: usize,
    pub added: usize,
    pub removed: usize,
    /// As much of it as the report has room for.
    pub text: Text,
    /// The file with all of it.
    pub path: Text,
}

/// A red row of a combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceView {
    pub row: Text,
    pub said: Text,
    pub failing: Vec<Text>,
    pub reproduce: Option<Text>,
    /// The end of its log.
    pub log: Option<Text>,
}

/// A certificate of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateView {
    /// Relative to the workspace.
    pub path: Utf8PathBuf,
    pub bundles: Vec<BundleId>,
    pub base: String,
    pub commit: String,
    pub tree: String,
    pub reference: Text,
    /// Re-verifies it.
    pub command: String,
}

impl WorkspaceReport {
    pub fn bundle(&self, id: &BundleId) -> Option<&BundlePage> {
        self.bundles.iter().find(|bundle| bundle.id == *id)
    }

    pub fn count(&self, group: ReportGroup) -> usize {
        self.bundles.iter().filter(|bundle| bundle.group == group).count()
    }

    /// Returns the bundles of a group.
    pub fn of(&self, group: ReportGroup) -> impl Iterator<Item = &BundlePage> {
        self.bundles.iter().filter(move |bundle| bundle.group == group)
    }
}
