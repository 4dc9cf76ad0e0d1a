//! The change of an attempt, or its difference to the attempt before.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_state::{Artifact, Bundle, BundleId, LoadError, PatchFile, patch_files};
use serde::Serialize;
use similar::TextDiff;

use crate::review::ChangedFile;

/// The change to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeRequest {
    /// The attempt, from 1; the present one if unset.
    pub attempt: Option<u32>,
    /// Reads the files and the numbers of lines only.
    pub stat: bool,
    /// Compares with the attempt before.
    pub since: bool,
}

/// The change of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundleChange {
    pub id: BundleId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The attempt that it is compared with; null for the base.
    pub since: Option<u32>,
    pub files: Vec<ChangedFile>,
    pub added: usize,
    pub removed: usize,
    /// The patch; null with `--stat`. Bytes that are not UTF-8 are replaced.
    pub patch: Option<String>,
}

/// A change could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("{id} has no attempt {attempt}")]
    NoAttempt { id: BundleId, attempt: u32, newest: u32 },
    #[error("attempt 1 of {id} has none before it")]
    NoAttemptBefore { id: BundleId },
    #[error("attempt {attempt} of {id} has no change")]
    NoChange { id: BundleId, attempt: u32, file: Utf8PathBuf },
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl BundleChange {
    /// Reads the change of an attempt.
    pub fn load(bundle: &Bundle, request: ChangeRequest) -> Result<Self, ChangeError> {
        let id = bundle.id();
        let newest = bundle.attempts().newest()?;
        let attempt = request.attempt.unwrap_or(newest);
        if !(1..=newest).contains(&attempt) {
            return Err(ChangeError::NoAttempt { id: id.clone(), attempt, newest });
        }
        if request.since && attempt == 1 {
            return Err(ChangeError::NoAttemptBefore { id: id.clone() });
        }
        let patch = patch_of(bundle, attempt, newest)?.ok_or_else(|| ChangeError::NoChange {
            id: id.clone(),
            attempt,
            file: bundle.path(Artifact::Patch),
        })?;
        let file = |file: PatchFile<'_>| {
            let (added, removed) = (file.added, file.removed);
            ChangedFile { path: file.path, added, removed }
        };
        let (since, text) = if request.since {
            let before = patch_of(bundle, attempt - 1, newest)?.unwrap_or_default();
            (Some(attempt - 1), between(&before, &patch))
        } else {
            (None, String::from_utf8_lossy(&patch).into_owned())
        };
        let files: Vec<ChangedFile> = patch_files(&patch).into_iter().map(file).collect();
        Ok(Self {
            id: id.clone(),
            attempt,
            since,
            added: files.iter().map(|file| file.added).sum(),
            removed: files.iter().map(|file| file.removed).sum(),
            files,
            patch: (!request.stat).then_some(text),
        })
    }
}

/// Reads the patch of an attempt; the newest one is not archived.
fn patch_of(bundle: &Bundle, attempt: u32, newest: u32) -> Result<Option<Vec<u8>>, LoadError> {
    if attempt == newest {
        bundle.read(Artifact::Patch)
    } else {
        bundle.attempts().read(attempt, Artifact::Patch)
    }
}

/// Compares two patches file by file, as texts.
fn between(before: &[u8], now: &[u8]) -> String {
    let by_path = |patch| -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        patch_files(patch).into_iter().map(|file| (file.path, text(file.text))).collect()
    };
    let (before, now) = (by_path(before), by_path(now));
    let mut paths: Vec<&String> = before.keys().chain(now.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut text = String::new();
    let of = |side: &BTreeMap<String, String>, path: &String| {
        side.get(path).cloned().unwrap_or_default()
    };
    for path in paths {
        let (old, new) = (of(&before, path), of(&now, path));
        if old != new {
            let diff = TextDiff::from_lines(&old, &new);
            let mut unified = diff.unified_diff();
            let unified =
                unified.header(&format!("before/{path}"), &format!("now/{path}")).to_string();
            text.push_str(&unified);
        }
    }
    if text.is_empty() {
        text.push_str("the change is the same as before\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_attempts_are_compared_file_by_file() {
        let file = |name: &str, line: &str| {
            format!(
                "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-o\n+{line}\n"
            )
        };
        let before = [file("a", "1"), file("b", "1")].concat();
        let now = [file("a", "1"), file("b", "2")].concat();
        let text = between(before.as_bytes(), now.as_bytes());
        assert!(text.starts_with("--- before/b\n+++ now/b\n"), "{text}");
        assert!(text.contains("\n-+1\n++2\n") && !text.contains("/a"), "{text}");
        let same = between(now.as_bytes(), now.as_bytes());
        assert_eq!(same, "the change is the same as before\n");
    }
}
