//! Reads, checks and replaces `lanes.json`.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use pdca_dag::{ItemState, LanesFile, LanesFileError};
use pdca_driver::{Batch, LanesJson, WorkspaceConfig};
use pdca_state::{BundleId, RootError, files};
use serde::Serialize;

use super::PlanningError;
use crate::OperationError;
use crate::config::Workspace;

/// Beside `pdca.toml`.
pub(super) const FILE: &str = "lanes.json";

/// The largest file that is read, in bytes.
const MAX_LEN: u64 = 64 << 20;

/// Compares `lanes.json` with the declarations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LanesFileState {
    Absent,
    /// It was made from the present declarations.
    Current,
    /// The declarations have changed.
    Stale,
}

pub(super) fn path(workspace: &Workspace) -> Utf8PathBuf {
    workspace.root.join(FILE)
}

/// Reads `lanes.json`; `None` if there is none. A damaged one is an error, because planning without it would move
/// started work.
pub fn load_lanes_file(workspace: &Workspace) -> Result<Option<LanesFile>, OperationError> {
    let path = path(workspace);
    let Some(bytes) = files::read_bounded(&path, MAX_LEN)? else { return Ok(None) };
    LanesFile::parse(&bytes).map(Some).map_err(|source| {
        let line = line_of(&source, &String::from_utf8_lossy(&bytes));
        PlanningError::LanesFile { path, line, source }.into()
    })
}

/// Compares the file with the present declarations. Bundles of it that are finished by now still count, so that
/// it does not become stale by being carried out.
pub(super) fn state_of(
    file: Option<&LanesFile>,
    config: &WorkspaceConfig,
) -> Result<LanesFileState, RootError> {
    let Some(file) = file else { return Ok(LanesFileState::Absent) };
    let mut ids: BTreeSet<BundleId> =
        Batch::of_all(config)?.items.into_iter().map(|item| item.id).collect();
    ids.extend(bundles(file).cloned());
    let batch = Batch::of(config, &ids)?;
    let is_current = batch.digests().contains(&file.digest);
    Ok(if is_current { LanesFileState::Current } else { LanesFileState::Stale })
}

/// Returns the groups that a driver has to follow; none without a file. A damaged or stale file is an error, because
/// ignoring it silently would break the plan that it records.
pub(super) fn require_groups(
    workspace: &Workspace,
    config: &WorkspaceConfig,
) -> Result<Vec<Vec<BundleId>>, OperationError> {
    let file = load_lanes_file(workspace)?;
    match state_of(file.as_ref(), config)? {
        LanesFileState::Absent => match config.schedule.lanes_json {
            LanesJson::Optional => Ok(Vec::new()),
            LanesJson::Required => Err(PlanningError::NoLanesFile { path: path(workspace) }.into()),
        },
        LanesFileState::Current => {
            let groups = file.into_iter().flat_map(|file| file.groups);
            Ok(groups.map(|group| group.bundles).collect())
        }
        LanesFileState::Stale => {
            Err(PlanningError::StaleLanesFile { path: path(workspace) }.into())
        }
    }
}

/// Returns an error if an unfinished bundle with a group is left out: it would lose its letter.
pub(super) fn require_all_named(
    file: &LanesFile,
    batch: &Batch,
    workspace: &Workspace,
) -> Result<(), PlanningError> {
    let is_open = |id: &&BundleId| match batch.outside.standing(id) {
        Some(ItemState::Active | ItemState::Waiting | ItemState::Built | ItemState::Red) => true,
        Some(ItemState::Complete | ItemState::Landed | ItemState::Ended) | None => false,
    };
    let missing: BTreeSet<&BundleId> = bundles(file).filter(is_open).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter().cloned().collect();
    Err(PlanningError::LeftOutOfLanesFile { path: path(workspace), missing })
}

/// Replaces the file.
pub(super) fn store(workspace: &Workspace, file: &LanesFile) -> Result<(), PlanningError> {
    let path = path(workspace);
    files::replace(&path, file.to_json().as_bytes())
        .map_err(|source| PlanningError::WriteLanesFile { path, source })
}

fn bundles(file: &LanesFile) -> impl Iterator<Item = &BundleId> {
    file.groups.iter().flat_map(|group| &group.bundles)
}

/// Returns the line that an error is about, as far as the text tells.
fn line_of(error: &LanesFileError, text: &str) -> Option<usize> {
    let find = |needle: &str, skip: usize| {
        let hits = text.lines().enumerate().filter(|(_, line)| line.contains(needle));
        hits.map(|(index, _)| index + 1).nth(skip)
    };
    match error {
        LanesFileError::Damaged { source } => Some(source.line().max(1)),
        LanesFileError::Schema { .. } => find("\"schema\"", 0),
        LanesFileError::DuplicateGroup { id } => find(&format!("\"id\": \"{id}\""), 1),
        LanesFileError::EmptyGroup { id } | LanesFileError::BadDependency { id, .. } => {
            find(&format!("\"id\": \"{id}\""), 0)
        }
        LanesFileError::BundleTwice { id, .. } => find(&format!("\"{id}\""), 1),
        LanesFileError::NextInUse { .. } => find("\"next\"", 0),
    }
    .or(Some(1))
}
