//! Merge conflicts: the files, their versions and the lines.

pub(crate) mod attempts;
pub(crate) mod branch_side;
pub(crate) mod resolution;
pub(crate) mod sides;
pub(crate) mod state;

use std::collections::BTreeMap;

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};
use serde::{Deserialize, Serialize};

use crate::{
    git::engine::answer::MergeAnswer, git::failure::StoreError, git::path::TreePath,
    git::store::Store,
};

/// The maximum size, in bytes, of a file whose hunks are read.
/// More than a person reads in a report.
const MAX_FILE: u64 = 8 << 20;
/// The maximum size, in bytes, of each side of a hunk.
const MAX_SIDE: usize = 4 << 10;
/// The maximum number of hunks of a file.
const MAX_HUNKS: usize = 50;

/// A file in conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conflict {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: TreePath,
    /// Git's name for it, such as `CONFLICT (contents)` or `CONFLICT (modify/delete)`.
    pub kind: String,
    /// The versions of the file: 1 is the common ancestor, 2 is ours, 3 is theirs.
    pub stages: Vec<ConflictStage>,
    /// The conflicting lines, if the file is text and both sides changed the same ones.
    pub hunks: Vec<Hunk>,
}

/// A version of a file in a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConflictStage {
    /// 1, 2 or 3.
    pub number: u8,
    /// The file mode in git.
    pub mode: u32,
    #[serde(with = "pdca_journal::object_id")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: ObjectId,
}

/// Lines that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hunk {
    /// The first line in our version of the file as merged so far, counted from 1.
    pub line: usize,
    /// Our lines, possibly shortened.
    pub ours: String,
    /// Their lines, possibly shortened.
    pub theirs: String,
}

/// Builds the conflicts from git's answer to a merge.
pub(crate) fn describe(
    store: &Store,
    answer: &MergeAnswer,
    sides: (ObjectId, ObjectId),
) -> Result<Vec<Conflict>, StoreError> {
    // Git labels the markers with the names that it was given to merge.
    let labels = &(BString::from(sides.0.to_string()), BString::from(sides.1.to_string()));
    let mut files: BTreeMap<TreePath, Conflict> = BTreeMap::new();
    let file = |path: &TreePath| Conflict {
        path: path.clone(),
        kind: "CONFLICT".to_owned(),
        stages: Vec::new(),
        hunks: Vec::new(),
    };
    for (path, stage) in &answer.stages {
        files.entry(path.clone()).or_insert_with(|| file(path)).stages.push(*stage);
    }
    let conflicts = answer.messages.iter().filter(|message| message.kind.starts_with(b"CONFLICT"));
    for message in conflicts {
        // The first path is the file in conflict; further ones are its old or new names.
        let Some(path) = message.paths.first() else { continue };
        let kind = message.kind.to_str_lossy().into_owned();
        files.entry(path.clone()).or_insert_with(|| file(path)).kind = kind;
    }
    let repo = store.repo();
    for conflict in files.values_mut() {
        conflict.hunks = match store.leaf(answer.tree, &conflict.path)? {
            Some(leaf) if leaf.mode.is_blob() => hunks_in(&repo, leaf.id, labels)?,
            Some(_) | None => Vec::new(),
        };
    }
    Ok(files.into_values().collect())
}

fn hunks_in(
    repo: &gix::Repository,
    id: ObjectId,
    labels: &(BString, BString),
) -> Result<Vec<Hunk>, StoreError> {
    let failed = |source| StoreError::objects("read the merged tree", source);
    if repo.find_header(id).map_err(failed)?.size() > MAX_FILE {
        return Ok(Vec::new());
    }
    let blob = repo.find_blob(id).map_err(failed)?;
    Ok(hunks(&blob.data, labels))
}

/// Reads the hunks between conflict markers. Markers are recognized by our labels, so that lines which only look like
/// markers do not count.
fn hunks(text: &[u8], (ours, theirs): &(BString, BString)) -> Vec<Hunk> {
    enum At {
        Outside,
        Ours,
        Theirs,
    }
    let mut found = Vec::new();
    let mut at = At::Outside;
    let mut line = 1;
    let (mut hunk, mut width) = (Hunk { line: 0, ours: String::new(), theirs: String::new() }, 0);
    for text in text.lines_with_terminator() {
        let bare = text.trim_end_with(|c| matches!(c, '\n' | '\r'));
        at = match at {
            // Lines of theirs and markers are not counted: `line` is the place in our version, which a person
            // has open.
            At::Outside => {
                if let Some(found) = marker(bare, b'<', ours) {
                    width = found;
                    hunk = Hunk { line, ours: String::new(), theirs: String::new() };
                    At::Ours
                } else {
                    line += 1;
                    At::Outside
                }
            }
            // The separator has no label. Its width is that of the opening marker, which `conflict-marker-size`
            // may change.
            At::Ours if bare.len() == width && bare.iter().all(|byte| *byte == b'=') => At::Theirs,
            At::Ours => {
                line += 1;
                push(&mut hunk.ours, text);
                At::Ours
            }
            At::Theirs if marker(bare, b'>', theirs) == Some(width) => {
                found.push(hunk.clone());
                At::Outside
            }
            At::Theirs => {
                push(&mut hunk.theirs, text);
                At::Theirs
            }
        };
        if found.len() == MAX_HUNKS {
            break;
        }
    }
    found
}

/// Returns the number of `letter`s before the label, if the line is a marker. For a renamed file git adds a `:` and a
/// path to the label.
fn marker(line: &[u8], letter: u8, label: &BString) -> Option<usize> {
    let width = line.iter().take_while(|byte| **byte == letter).count();
    let rest = line.get(width..)?.strip_prefix(b" ")?.strip_prefix(label.as_slice())?;
    (width > 0 && (rest.is_empty() || rest.starts_with(b":"))).then_some(width)
}

fn push(side: &mut String, line: &[u8]) {
    if side.len() < MAX_SIDE {
        side.push_str(&line.to_str_lossy());
        if side.len() >= MAX_SIDE {
            side.push_str("…\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hunks;

    #[test]
    fn markers_are_known_by_their_labels() {
        let text =
            b"a\n<<<<<<< mine\n<<<<<<< not mine\n=======\nb\n>>>>>>> other\n>>>>>>> yours\nc\n";
        let found = hunks(text, &("mine".into(), "yours".into()));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].ours.as_str()), (2, "<<<<<<< not mine\n"));
        assert_eq!(found[0].theirs, "b\n>>>>>>> other\n");
    }
}
