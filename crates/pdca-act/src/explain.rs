//! The way in which parts of the process changed, as unified diffs.
//!
//! A review records digests, not texts. The text of that time is found in the git history of the workspace by its
//! digest, so nothing is stored twice, and a text that was never committed is said to be unknown instead of guessed.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{files, sha256_hex};
use serde::Serialize;
use similar::TextDiff;

use crate::baseline::{BaselineChange, Changes, MAX_LEN, ProcessPart, table};
use crate::versions::Versions;

/// One changed part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartDiff {
    pub file: String,
    /// The unified diff; absent if the text at the review is not in the git history, or is not UTF-8.
    pub diff: Option<String>,
    /// True if the present text is not committed yet.
    pub uncommitted: bool,
}

/// Returns a diff for each changed, added or removed part.
pub fn explain(
    changes: &Changes,
    sources: &[ProcessPart],
    workspace: &Utf8Path,
    versions: Option<&Versions>,
) -> Vec<PartDiff> {
    let all = changes.changed.iter().chain(&changes.added).chain(&changes.removed);
    all.map(|change| {
        let part = sources.iter().find_map(|source| Part::find(source, &change.file));
        part.map_or_else(
            || PartDiff { file: change.file.clone(), diff: None, uncommitted: false },
            |part| part.explain(change, workspace, versions),
        )
    })
    .collect()
}

/// The place of one part.
struct Part<'a> {
    path: Utf8PathBuf,
    /// The table, for a part of a TOML file.
    key: Option<&'a str>,
}

impl<'a> Part<'a> {
    fn find(source: &'a ProcessPart, file: &str) -> Option<Self> {
        match source {
            ProcessPart::Directory { name, path } => {
                let rest = file.strip_prefix(name.as_str())?.strip_prefix('/')?;
                Some(Self { path: path.join(rest), key: None })
            }
            ProcessPart::File { name, path } => {
                (name == file).then(|| Self { path: path.clone(), key: None })
            }
            ProcessPart::Table { name, path, key } => {
                (name == file).then(|| Self { path: path.clone(), key: Some(key) })
            }
        }
    }

    fn explain(
        &self,
        change: &BaselineChange,
        workspace: &Utf8Path,
        versions: Option<&Versions>,
    ) -> PartDiff {
        let now = files::read_bounded(&self.path, MAX_LEN).ok().flatten();
        let relative = self.path.strip_prefix(workspace).unwrap_or(&self.path);
        // Two kinds of absence: `None` for a part that was added since, `Some(None)` for a text that git does not have.
        let before = change.before.as_deref().map(|digest| {
            let mut known = versions.into_iter().flat_map(|versions| versions.of(relative));
            known.find_map(|bytes| self.read(&bytes).filter(|read| read.digest == digest))
        });
        let now_read = now.as_deref().and_then(|bytes| self.read(bytes));
        let head = versions.and_then(|versions| versions.head(relative));
        let head = head.and_then(|bytes| self.read(&bytes));
        let diff = match before {
            // A part that is added has no text at the review.
            None => Some(String::new()),
            Some(before) => before.map(|before| before.text),
        }
        .map(|before| {
            let after = now_read.as_ref().map_or("", |read| read.text.as_str());
            let name = &change.file;
            TextDiff::from_lines(before.as_str(), after)
                .unified_diff()
                .header(&format!("a/{name}"), &format!("b/{name}"))
                .to_string()
        });
        let uncommitted =
            versions.is_some() && head.map(|read| read.digest) != now_read.map(|read| read.digest);
        PartDiff { file: change.file.clone(), diff, uncommitted }
    }

    fn read(&self, bytes: &[u8]) -> Option<Content> {
        let Some(key) = self.key else {
            let text = String::from_utf8(bytes.to_vec()).ok()?;
            return Some(Content { digest: sha256_hex(bytes), text });
        };
        let value = table(bytes, key).ok()??;
        let mut whole = toml::Table::new();
        let digest = sha256_hex(value.to_string().as_bytes());
        whole.insert(key.to_owned(), value);
        Some(Content { digest, text: toml::to_string_pretty(&whole).ok()? })
    }
}

/// The text of a part, with the digest that a baseline has of it.
struct Content {
    digest: String,
    text: String,
}
