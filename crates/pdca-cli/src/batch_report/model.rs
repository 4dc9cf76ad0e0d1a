//! The values of a report. Writers render them and read nothing.

use camino::Utf8PathBuf;
use jiff::Timestamp;
use pdca_state::{BundleId, CostTotal, GateResult, Overall, State};
use pdca_workspace::review::Tone;

use crate::batch_report::history::RunHistory;
use crate::batch_report::text::Text;

/// The record of a workspace, or of one run of it.
#[derive(Debug, Clone)]
pub(crate) struct WorkspaceReport {
    /// The name of the project.
    pub(crate) project: Text,
    /// The time of writing.
    pub(crate) made: Timestamp,
    /// The run that it is limited to.
    pub(crate) run: Option<String>,
    /// Those that need a person first.
    pub(crate) bundles: Vec<BundlePage>,
    /// The plan over these bundles, or the reason why there is none.
    pub(crate) plan: Result<PlanView, Text>,
    /// The recorded runs and integrations, the newest first.
    pub(crate) runs: Vec<RunHistory>,
    /// The newest first.
    pub(crate) certificates: Vec<CertificateView>,
    /// What all calls of leaves cost.
    pub(crate) cost: CostTotal,
    /// What could not be read, one line each.
    pub(crate) unread: Vec<Text>,
}

/// The bundles of a plan by waves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanView {
    pub(crate) waves: Vec<Vec<BundleId>>,
    /// Prerequisite and dependant.
    pub(crate) edges: Vec<(BundleId, BundleId)>,
    /// The bundles that are left out, with the reason.
    pub(crate) left_out: Vec<(BundleId, Text)>,
}

/// One bundle.
#[derive(Debug, Clone)]
pub(crate) struct BundlePage {
    pub(crate) id: BundleId,
    pub(crate) title: Text,
    /// `None` if it cannot be read.
    pub(crate) state: Option<State>,
    pub(crate) group: ReportGroup,
    /// The reason for the group, in one sentence.
    pub(crate) why: Text,
    /// The command that continues it.
    pub(crate) next: Option<String>,
    /// The state of an accepted change: `landed`, `held` and so on.
    pub(crate) landing: Option<(&'static str, Text)>,
    pub(crate) depends_on: Vec<BundleId>,
    /// The number of earlier attempts.
    pub(crate) attempts: u32,
    pub(crate) overall: Option<Overall>,
    pub(crate) gates: Vec<GateView>,
    /// The report of the gates as it is on disk, for programs.
    pub(crate) report: Option<pdca_state::GateReport>,
    /// The decision card, as far as there is room for it.
    pub(crate) card: Vec<CardPart>,
    pub(crate) open_items: Vec<Text>,
    /// The decision of a person: outcome, name and date, note.
    pub(crate) signoff: Option<(Text, Text, Text)>,
    pub(crate) diff: Option<DiffView>,
    pub(crate) cost: CostTotal,
    /// The evidence of a change that was held.
    pub(crate) held: Vec<EvidenceView>,
}

/// The groups of a report, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReportGroup {
    Failed,
    NeedsYou,
    AtWork,
    Waiting,
    Accepted,
    Closed,
}

impl ReportGroup {
    pub(crate) const ALL: [Self; 6] =
        [Self::Failed, Self::NeedsYou, Self::AtWork, Self::Waiting, Self::Accepted, Self::Closed];

    /// Returns the words that stand beside the symbol.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NeedsYou => "needs you",
            Self::AtWork => "at work",
            Self::Waiting => "waits",
            Self::Accepted => "accepted",
            Self::Closed => "closed",
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Failed => "✗",
            Self::NeedsYou => "●",
            Self::AtWork => "▶",
            Self::Waiting => "○",
            Self::Accepted => "✓",
            Self::Closed => "–",
        }
    }

    /// Returns the name in identifiers of the page.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NeedsYou => "needs",
            Self::AtWork => "work",
            Self::Waiting => "waits",
            Self::Accepted => "accepted",
            Self::Closed => "closed",
        }
    }
}

/// A gate that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GateView {
    pub(crate) rule_id: Text,
    /// The name for people.
    pub(crate) check: Text,
    pub(crate) result: GateResult,
    pub(crate) gating: bool,
    pub(crate) evidence: Text,
    pub(crate) failing: Vec<Text>,
    /// The number of failed tests that are not named.
    pub(crate) failing_more: usize,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) flaky: bool,
    pub(crate) note: Option<Text>,
    pub(crate) reproduce: Option<Text>,
    /// The end of the log of a red row.
    pub(crate) log: Option<Text>,
}

impl GateView {
    /// Returns whether it blocks.
    pub(crate) fn is_red(&self) -> bool {
        self.gating && self.result == GateResult::Fail
    }
}

/// A section of the decision card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CardPart {
    pub(crate) title: &'static str,
    pub(crate) lines: Vec<(Tone, Text)>,
    /// The number of lines that there is no room for.
    pub(crate) left_out: usize,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffView {
    pub(crate) files: Vec<Text>,
    /// The number of files that are not named.
    pub(crate) more_files: usize,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// As much of it as the report has room for.
    pub(crate) text: Text,
    /// The file with all of it.
    pub(crate) path: Text,
}

/// A red row of a combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvidenceView {
    pub(crate) row: Text,
    pub(crate) said: Text,
    pub(crate) failing: Vec<Text>,
    pub(crate) reproduce: Option<Text>,
    /// The end of its log.
    pub(crate) log: Option<Text>,
}

/// A certificate of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateView {
    /// Relative to the workspace.
    pub(crate) path: Utf8PathBuf,
    pub(crate) bundles: Vec<BundleId>,
    pub(crate) base: String,
    pub(crate) commit: String,
    pub(crate) tree: String,
    pub(crate) reference: Text,
    /// Re-verifies it.
    pub(crate) command: String,
}

impl WorkspaceReport {
    pub(crate) fn bundle(&self, id: &BundleId) -> Option<&BundlePage> {
        self.bundles.iter().find(|bundle| bundle.id == *id)
    }

    pub(crate) fn count(&self, group: ReportGroup) -> usize {
        self.bundles.iter().filter(|bundle| bundle.group == group).count()
    }

    /// Returns the bundles of a group.
    pub(crate) fn of(&self, group: ReportGroup) -> impl Iterator<Item = &BundlePage> {
        self.bundles.iter().filter(move |bundle| bundle.group == group)
    }

    /// Returns the counts in words: `2 failed, 1 needs you`.
    pub(crate) fn counts(&self) -> String {
        let words = ReportGroup::ALL.into_iter().filter_map(|group| match self.count(group) {
            0 => None,
            count => Some(format!("{count} {}", group.words())),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Shortens an object id for people.
pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Formats a duration.
pub(crate) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}
