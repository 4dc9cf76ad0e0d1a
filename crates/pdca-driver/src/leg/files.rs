//! The files of a workspace that a leg needs and makes.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use super::{ClaimedLeg, LegWork};
use crate::config::WorkspaceConfig;

/// A file by its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the workspace of the leg.
    pub path: Utf8PathBuf,
    /// The SHA-256 of its content.
    pub digest: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A file of this workspace, which may not exist, and its path in the workspace of the leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegFile {
    pub from: Utf8PathBuf,
    pub to: Utf8PathBuf,
}

/// The base of an attempt, and the head of its latest change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptCommits {
    pub base: String,
    pub head: String,
}

/// Returns the directory of a bundle in the workspace of a leg.
pub(super) fn bundle_dir(id: &BundleId) -> Utf8PathBuf {
    Utf8Path::new("results").join(id.dir_name())
}

/// Returns the path of a record about a bundle, relative to the workspace.
pub(super) fn record_path(of: &str, id: &BundleId) -> Utf8PathBuf {
    Utf8Path::new(".pdca").join(of).join(format!("{}.json", id.dir_name()))
}

impl ClaimedLeg<'_> {
    /// Returns the files that the leg needs: those of the bundle, and the driver's records about it.
    pub fn files(&self, config: &WorkspaceConfig) -> io::Result<Vec<LegFile>> {
        let id = self.bundle.id();
        let below = files_below(self.bundle.dir())?.into_iter();
        let of_bundle = below.map(|path| LegFile {
            from: self.bundle.dir().join(&path),
            to: bundle_dir(id).join(path),
        });
        let records = [
            record_path("attempts", id),
            record_path("attempt-notes", id),
            // Rows in quarantine must not block there either.
            Utf8PathBuf::from(".pdca/flakes.json"),
        ];
        let records =
            records.into_iter().map(|to| LegFile { from: config.dirs.root.join(&to), to });
        Ok(of_bundle.chain(records).collect())
    }
}

/// Returns the files that make up the result of a leg, relative to the workspace that it ran in.
pub fn result_files(workspace: &Utf8Path, work: &LegWork) -> io::Result<Vec<Utf8PathBuf>> {
    let all_below = |dir: Utf8PathBuf| -> io::Result<Vec<Utf8PathBuf>> {
        let files = files_below(&workspace.join(&dir))?;
        Ok(files.into_iter().map(|path| dir.join(path)).collect())
    };
    let LegWork::Attempt { bundle: id } = work else {
        return all_below(Utf8PathBuf::from(".pdca/evidence"));
    };
    let mut paths = all_below(bundle_dir(id))?;
    for of in ["attempts", "attempt-notes"] {
        let path = record_path(of, id);
        if workspace.join(&path).is_file() {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Returns the commits that an attempt has; `None` before the first change.
pub fn attempt_commits(
    config: &WorkspaceConfig,
    id: &BundleId,
) -> io::Result<Option<AttemptCommits>> {
    let Some(mut attempt) = config.attempts().load(id)? else { return Ok(None) };
    let head = attempt.changes.pop().map(|change| change.head);
    Ok(head.map(|head| AttemptCommits { base: attempt.base, head }))
}

/// Returns the files below `dir`, relative to it and sorted. Symbolic links are not followed.
pub fn files_below(dir: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![Utf8PathBuf::new()];
    while let Some(at) = open.pop() {
        let entries = match dir.join(&at).read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = at.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
