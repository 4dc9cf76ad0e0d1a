//! Evidence of red combinations: logs, failing tests, and a command that reproduces the failure.
//!
//! 1. The gates write the log of each red row to `.pdca/evidence/<tree>/`.
//! 2. `red.json` beside the logs holds the results of the rows, so that a verdict from the cache still has its
//!    evidence.
//! 3. When a change is held, the logs are copied into its bundle, and move with the attempt when it is sent back.
//! 4. `pdca cleanup` removes a directory that neither a held change nor an open brief names.

use std::collections::BTreeSet;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{Artifact, Bundle, GateRow, files};
use serde::{Deserialize, Serialize};

use super::held::{HeldBack, HeldChange};
use super::workspace::QueueWorkspace;

/// The file with the results of the rows, beside the logs.
const LIST: &str = "red.json";
/// The maximum size of `red.json`, in bytes.
const LARGEST_LIST: u64 = 4 << 20;
/// The maximum size of a log, in bytes. The gates keep the beginning and the end of longer output.
const LARGEST_LOG: u64 = 16 << 20;

/// A row that is red over a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedRow {
    pub row: String,
    /// The reason in one line.
    pub said: String,
    /// The failed tests that the row names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// The number of further failed tests.
    #[serde(default)]
    pub failing_more: usize,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub log: Option<Utf8PathBuf>,
    /// A shell command that checks out the tree and runs the row.
    #[serde(default)]
    pub reproduce: Option<String>,
}

impl RedRow {
    pub(crate) fn of(row: &GateRow, reproduce: Option<String>) -> Self {
        Self {
            row: row.rule_id.clone(),
            said: row.reason().to_owned(),
            failing: row.failing.clone(),
            failing_more: row.failing_more,
            log: row.log.as_deref().map(Into::into),
            reproduce,
        }
    }
}

/// Returns the first `most` failed tests of all rows in one line, or `None` if no row names any.
pub fn failing(rows: &[RedRow], most: usize) -> Option<String> {
    let names: Vec<&str> =
        rows.iter().flat_map(|row| &row.failing).map(String::as_str).take(most).collect();
    let all: usize = rows.iter().map(|row| row.failing.len() + row.failing_more).sum();
    let more = match all.saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
}

/// The evidence directory of a workspace, with one directory for each red tree.
#[derive(Debug, Clone)]
pub struct Evidence {
    root: Utf8PathBuf,
}

impl Evidence {
    pub fn of(workspace: &QueueWorkspace) -> Self {
        Self { root: workspace.dirs.private().join("evidence") }
    }

    /// Returns the directory for logs of rows that were red or undecided over a tree.
    pub fn of_tree(&self, tree: &str) -> Utf8PathBuf {
        self.root.join(format!("{tree:.20}"))
    }

    /// Returns the directory for logs of rows that a person ran by hand over a bundle or a working tree.
    pub fn by_hand(&self, of: &str) -> Utf8PathBuf {
        self.root.join(of)
    }

    /// Stores the results of the rows beside their logs, replacing those of an earlier run.
    pub fn keep(&self, tree: &str, rows: &[RedRow]) -> io::Result<()> {
        // A green tree must not erase the evidence of an earlier red, which a held change may name.
        if rows.is_empty() {
            return Ok(());
        }
        let dir = self.of_tree(tree);
        fs_err::create_dir_all(&dir)?;
        let text = serde_json::to_vec_pretty(rows).map_err(io::Error::other)?;
        // Gating again restores it, so it is not worth a sync.
        files::replace_unsynced(dir.join(LIST), &text)
    }

    /// Returns the stored results about a tree. They only explain, so an unreadable file counts as empty.
    pub(crate) fn about(&self, tree: &str) -> Vec<RedRow> {
        let text = files::read_bounded(self.of_tree(tree).join(LIST), LARGEST_LIST);
        let list = text.ok().flatten().and_then(|text| serde_json::from_slice(&text).ok());
        list.unwrap_or_default()
    }

    /// Returns the directories that neither a held change nor an open brief names.
    pub fn unnamed(&self, workspace: &QueueWorkspace) -> io::Result<Vec<Utf8PathBuf>> {
        let entries = match self.root.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found: BTreeSet<Utf8PathBuf> = BTreeSet::new();
        for entry in entries {
            found.insert(entry?.into_path());
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        for held in HeldBack::load(workspace).all() {
            let logs = held.logs.iter().chain(held.red.iter().filter_map(|row| row.log.as_ref()));
            for dir in logs.filter_map(|log| log.parent()) {
                found.remove(dir);
            }
        }
        // If it is unknown which evidence a bundle names, all of it must stay.
        let Ok(bundles) = workspace.dirs.bundles.list() else { return Ok(Vec::new()) };
        for bundle in bundles {
            // An unreadable bundle is not over, so its brief is read and keeps what it names.
            let is_over = bundle.glance().is_ok_and(|glance| glance.state.is_terminal());
            if is_over {
                continue;
            }
            let Ok(brief) = bundle.read(Artifact::Brief) else { return Ok(Vec::new()) };
            let brief = brief.unwrap_or_default();
            let brief = String::from_utf8_lossy(&brief);
            found.retain(|dir| !names(&brief, dir));
        }
        Ok(found.into_iter().collect())
    }

    pub fn remove(&self, dir: &Utf8Path) -> io::Result<()> {
        debug_assert!(dir.starts_with(&self.root), "{dir} is no evidence");
        fs_err::remove_dir_all(dir)
    }
}

/// Copies the logs of a held change into its bundle, replacing those of an earlier integration.
pub(super) fn keep_logs_beside(bundle: &Bundle, held: Option<&HeldChange>) {
    // The copies are a convenience: the originals stay in the evidence directory, so errors are ignored.
    drop(bundle.remove_integration_logs());
    for row in held.iter().flat_map(|held| &held.red) {
        let log = row.log.as_ref();
        let log = log.and_then(|log| files::read_bounded(log, LARGEST_LOG).ok().flatten());
        if let Some(log) = log {
            drop(bundle.publish_derived_file(&Artifact::integration_log(&row.row), &log));
        }
    }
}

/// Returns true if a text names a file in the directory.
fn names(text: &str, dir: &Utf8Path) -> bool {
    dir.file_name().is_some_and(|name| text.contains(&format!("/{name}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(row: &str, failing: &[&str], failing_more: usize) -> RedRow {
        let failing = failing.iter().map(ToString::to_string).collect();
        RedRow {
            row: row.into(),
            said: String::new(),
            failing,
            failing_more,
            log: None,
            reproduce: None,
        }
    }

    #[test]
    fn the_failing_tests_of_several_rows_are_counted_together() {
        assert_eq!(failing(&[red("a", &[], 0)], 3), None);
        assert_eq!(failing(&[red("a", &["x"], 0)], 3).as_deref(), Some("x"));
        let rows = [red("a", &["x", "y"], 0), red("b", &["z", "w"], 7)];
        assert_eq!(failing(&rows, 3).as_deref(), Some("x, y, z and 8 more"));
    }

    #[test]
    fn a_directory_is_named_only_as_a_whole() {
        let dir = Utf8Path::new("/w/.pdca/evidence/0123");
        assert!(names("log: /w/.pdca/evidence/0123/T3.log", dir));
        assert!(!names("log: /w/.pdca/evidence/01234/T3.log", dir));
    }
}
