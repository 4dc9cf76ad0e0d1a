//! The dated entry of a review, printed or recorded.

use camino::Utf8PathBuf;
use pdca_act::{ActRecords, Index, IndexScope, LOG, Recorder, ScaffoldPaths, scaffold};
use pdca_state::BundleId;
use serde::Serialize;

use super::{baseline, date, prompts};
use crate::config::workspace::{FILE, Workspace};
use crate::{OpenWorkspace, OperationError};

/// An entry of the Act log as it is started from the index.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActEntry {
    pub date: String,
    pub cycles: Vec<BundleId>,
    /// Absent if no cycle ended since the last review.
    pub entry: Option<String>,
    pub recorded: bool,
    /// Dates of interrupted reviews that were finished.
    pub finished: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub log: Utf8PathBuf,
    /// The parts of the process that cannot be read.
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// Starts an entry of the Act log, and appends it with `record`. The date is today if none is given.
pub fn act_entry(
    open: &OpenWorkspace<'_>,
    record: bool,
    given_date: Option<&str>,
) -> Result<ActEntry, OperationError> {
    let workspace = open.workspace;
    let date = date(given_date, open)?;
    let dir = &workspace.process_dir;
    // Before the log is read.
    let recorder = if record && !open.dry_run { Some(Recorder::lock(dir)?) } else { None };
    let (now, problems) = baseline(workspace);
    let (records, finished) = match &recorder {
        Some(recorder) => recorder.load_finished(&now, &date)?,
        None => (ActRecords::load(dir)?, Vec::new()),
    };
    let index = pdca_act::index(&workspace.every_bundle()?, &records, IndexScope::SinceLastReview);
    let cycles: Vec<BundleId> = index.cycles.iter().map(|cycle| cycle.id.clone()).collect();
    let entry = (!cycles.is_empty()).then(|| started(workspace, &index, &date));
    if let (Some(recorder), Some(entry)) = (&recorder, &entry) {
        recorder.record(&records, entry, &index.marks(), &now, &date)?;
    }
    Ok(ActEntry {
        date,
        cycles,
        recorded: recorder.is_some() && entry.is_some(),
        entry,
        finished,
        log: dir.join(LOG),
        problems,
    })
}

/// Renders the entry as it is started, with the configured names of the parts of the process.
pub(super) fn started(workspace: &Workspace, index: &Index, date: &str) -> String {
    let agents = prompts(workspace);
    let template = workspace.config.paths.templates_dir.join("brief.md.tpl");
    let places = ScaffoldPaths { template: template.as_str(), config: FILE, agents: &agents };
    scaffold(index, date, &places)
}
