//! One issue in full.

use pdca_forge::publish::{PublishRecord, PullState};
use pdca_state::{
    Artifact, Bundle, GateReport, Label, RecordedSignoff, Snapshot, SnapshotProblem, Summary,
};
use serde::Serialize;

use crate::issue::IssueRow;
use crate::snapshot::{SnapshotEntry, WorkspaceSnapshot};
use crate::{OpenWorkspace, OperationError};

/// Everything about one issue: its brief, gates, open decisions, sign-off and publication.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Issue {
    #[serde(flatten)]
    pub row: IssueRow,
    /// The address of the issue in its tracker.
    pub url: Option<String>,
    pub fields: Vec<IssueField>,
    pub gates: Option<GateReport>,
    pub needs_human: Option<OpenDecisions>,
    pub signoff: Option<RecordedSignoff>,
    /// The recorded publication, if there is one.
    pub published: Option<PublishedIssue>,
    /// The names of the files that exist.
    pub artifacts: Vec<&'static str>,
    pub problems: Vec<SnapshotProblem>,
    /// The bundle as it was read.
    #[serde(skip)]
    pub snapshot: Snapshot,
    /// The workspace around it.
    #[serde(skip)]
    pub workspace: WorkspaceSnapshot,
}

/// A known field of the brief.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssueField {
    pub label: String,
    pub value: String,
    pub line: usize,
}

/// The items of §6.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenDecisions {
    pub open: Vec<String>,
    pub cleared: Vec<String>,
    /// 1 if the standing question is open.
    pub standing: usize,
}

/// The contents of `publish.json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedIssue {
    pub url: Option<String>,
    pub state: Option<PullState>,
    pub remote: Option<String>,
    pub branch: Option<String>,
}

impl Issue {
    /// Reads everything about a bundle.
    pub fn load(open: &OpenWorkspace<'_>, bundle: &Bundle) -> Result<Self, OperationError> {
        let snapshot = bundle.load()?;
        let workspace = open.snapshot_at_work()?;
        let pattern = open.workspace.config.tracker.issue_url_pattern.as_ref();
        let entry = workspace.get(&snapshot.id);
        let entry = entry.ok_or_else(|| OperationError::Vanished(snapshot.id.clone()))?;
        let summary = snapshot.summary.as_ref();
        let field = |label: &Label| {
            let field = snapshot.brief.as_ref()?.known(*label)?;
            Some(IssueField {
                label: field.label.to_owned(),
                value: field.whole(),
                line: field.line,
            })
        };
        Ok(Self {
            row: IssueRow::of(&workspace, entry, open.environment.cwd),
            url: pattern.map(|pattern| pattern.replace("{id}", snapshot.id.as_ref())),
            fields: Label::ALL.iter().filter_map(field).collect(),
            gates: snapshot.gates.clone(),
            needs_human: summary.map(|summary| OpenDecisions {
                open: summary.open_texts(),
                cleared: summary.cleared_items().to_vec(),
                standing: summary.open_standing(),
            }),
            signoff: summary.and_then(Summary::signoff),
            published: PublishedIssue::load(bundle),
            artifacts: snapshot.artifacts.iter().map(Artifact::file_name).collect(),
            problems: snapshot.problems.clone(),
            snapshot,
            workspace,
        })
    }

    /// Returns its entry in the list of all bundles.
    pub fn entry(&self) -> Option<&SnapshotEntry> {
        self.workspace.get(&self.snapshot.id)
    }
}

impl PublishedIssue {
    /// Reads the record of publishing; `None` if another program wrote it.
    fn load(bundle: &Bundle) -> Option<Self> {
        let record = PublishRecord::parse(&bundle.read(Artifact::Publish).ok()??).ok()?;
        let (remote, branch) = record.branch.map(|branch| (branch.remote, branch.name)).unzip();
        let pull = record.pull_request;
        let state = pull.as_ref().and_then(|pull| pull.state);
        Some(Self { url: pull.and_then(|pull| pull.url), state, remote, branch })
    }
}
