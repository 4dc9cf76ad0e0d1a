//! The effect of a change on the lines of files: whether a tree has it, and whether another change takes it back.
//!
//! A message may say that a commit brings or reverts a change. Anyone can write that, so the words only tell where to look
//! and the trees decide. Compared are the numbers of equal lines per file, not hunks: a change keeps them when it is
//! applied to a file that others edited, and no diff has to be made. What is no text (binary files, links, submodules,
//! modes) is compared as a whole. Since a person may have resolved a conflict or reverted by hand, more than half of a
//! change is enough.

use std::collections::BTreeMap;

use gix::ObjectId;

use crate::{
    git::failure::StoreError,
    git::footprint::{Leaf, TreeDifference},
    git::path::TreePath,
    git::store::Store,
};

/// The largest file that is compared by its lines, in bytes.
const LARGEST: u64 = 4 << 20;
/// The number of bytes at the start of a file in which git looks for a zero byte, to tell binary files from text.
const START: usize = 8000;

/// How often each line occurs in a file.
type Lines = BTreeMap<Vec<u8>, i64>;

/// The difference of two trees.
#[derive(Debug, Default)]
pub(super) struct Effect {
    files: BTreeMap<TreePath, FileEffect>,
}

#[derive(Debug)]
struct FileEffect {
    old: Option<Leaf>,
    new: Option<Leaf>,
    /// The lines whose number changes, and by how much; empty if the file is compared as a whole.
    lines: Lines,
}

/// How much of a change was found, in lines or whole files.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    found: u64,
    whole: u64,
}

impl Share {
    fn is_most(self) -> bool {
        2 * self.found > self.whole
    }
}

impl Effect {
    /// Returns the effect of a commit on its first parent.
    pub(super) fn of_commit(store: &Store, commit: ObjectId) -> Result<Self, StoreError> {
        let parent = store.parents_of(commit)?.first().copied();
        let old = parent.map(|parent| store.tree_of(parent)).transpose()?;
        Self::between(store, old, store.tree_of(commit)?)
    }

    pub(super) fn between(
        store: &Store,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<Self, StoreError> {
        let mut files = BTreeMap::new();
        for path in TreeDifference::between(store, old, new)?.paths {
            let leaf = |tree: Option<ObjectId>| {
                tree.map(|tree| store.leaf(tree, &path)).transpose().map(Option::flatten)
            };
            let file = FileEffect::new(store, leaf(old)?, leaf(Some(new))?)?;
            files.insert(path, file);
        }
        Ok(Self { files })
    }

    /// Returns the effect of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (path, file) in other.files {
            match self.files.entry(path) {
                std::collections::btree_map::Entry::Vacant(free) => {
                    free.insert(file);
                }
                std::collections::btree_map::Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    for (line, by) in file.lines {
                        *known.lines.entry(line).or_default() += by;
                    }
                    known.lines.retain(|_, by| *by != 0);
                    known.new = file.new;
                }
            }
        }
        self
    }

    /// Returns true if every path of this change is one of `paths`.
    pub(super) fn is_within(&self, paths: &[TreePath]) -> bool {
        self.files.keys().all(|path| paths.contains(path))
    }

    /// Returns true if most of this change is in a tree. `beside` is the change that made the tree: a file that the
    /// tree does not have may have been renamed, and is then looked for there.
    pub(super) fn is_in(
        &self,
        store: &Store,
        tree: ObjectId,
        beside: &Self,
    ) -> Result<bool, StoreError> {
        let mut share = Share::default();
        for (path, file) in &self.files {
            let weight = file.weight();
            share.whole += weight;
            let mut there = store.leaf(tree, path)?;
            if there == file.new {
                share.found += weight;
                continue;
            }
            if there.is_none() {
                let renamed = beside.files.iter().find(|(path, renamed)| {
                    !self.files.contains_key(*path) && renamed.has_some_of(file)
                });
                there = renamed.and_then(|(_, renamed)| renamed.new);
            }
            if let Some(there) = there {
                share.found += file.found_in(store, there)?;
            }
        }
        Ok(share.is_most())
    }

    /// Returns true if a later change takes most of this one back.
    pub(super) fn is_undone_by(&self, later: &Self) -> bool {
        let mut share = Share::default();
        for (path, file) in &self.files {
            let weight = file.weight();
            share.whole += weight;
            let renamed = || {
                let mut others = later.files.iter();
                others.find(|(path, it)| !self.files.contains_key(*path) && it.takes_back(file) > 0)
            };
            let undoing = later.files.get(path).or_else(|| renamed().map(|(_, it)| it));
            share.found += match undoing {
                Some(undoing) if undoing.new == file.old => weight,
                Some(undoing) => undoing.takes_back(file),
                None => 0,
            };
        }
        share.is_most()
    }
}

impl FileEffect {
    fn new(store: &Store, old: Option<Leaf>, new: Option<Leaf>) -> Result<Self, StoreError> {
        let mut lines = Lines::new();
        if let (Some(before), Some(after)) = (lines_of(store, old)?, lines_of(store, new)?) {
            lines = after;
            for (line, count) in before {
                *lines.entry(line).or_default() -= count;
            }
            lines.retain(|_, by| *by != 0);
        }
        Ok(Self { old, new, lines })
    }

    fn weight(&self) -> u64 {
        self.lines.values().map(|by| by.unsigned_abs()).sum::<u64>().max(1)
    }

    /// Returns how many of the changed lines are as this change left them.
    fn found_in(&self, store: &Store, there: Leaf) -> Result<u64, StoreError> {
        let Some(lines) = lines_of(store, Some(there))? else { return Ok(0) };
        let old = lines_of(store, self.old)?.unwrap_or_default();
        let count = |lines: &Lines, line: &[u8]| lines.get(line).copied().unwrap_or(0);
        let found = self.lines.iter().map(|(line, by)| {
            let moved =
                if *by > 0 { count(&lines, line) } else { count(&old, line) - count(&lines, line) };
            moved.clamp(0, by.abs()).unsigned_abs()
        });
        Ok(found.sum())
    }

    /// Returns how many of the lines that another change added or removed this one removes or adds.
    fn takes_back(&self, other: &Self) -> u64 {
        let taken = other.lines.iter().map(|(line, by)| {
            let here = self.lines.get(line).copied().unwrap_or(0);
            if here.signum() == -by.signum() {
                here.unsigned_abs().min(by.unsigned_abs())
            } else {
                0
            }
        });
        taken.sum()
    }

    fn has_some_of(&self, other: &Self) -> bool {
        other
            .lines
            .iter()
            .any(|(line, by)| self.lines.get(line).is_some_and(|here| here.signum() == by.signum()))
    }
}

/// Counts the lines of a text file; `None` for anything else. A file that does not exist has none.
fn lines_of(store: &Store, leaf: Option<Leaf>) -> Result<Option<Lines>, StoreError> {
    let Some(leaf) = leaf else { return Ok(Some(Lines::new())) };
    if !leaf.mode.is_blob() {
        return Ok(None);
    }
    let failed = |source| StoreError::objects("read a file of a tree", source);
    let repo = store.repo();
    // Another process may have pruned it; what cannot be read is compared as a whole.
    let Some(header) = repo.try_find_header(leaf.id).map_err(failed)? else { return Ok(None) };
    if header.size() > LARGEST {
        return Ok(None);
    }
    let blob = repo.find_blob(leaf.id).map_err(failed)?;
    if blob.data.iter().take(START).any(|byte| *byte == 0) {
        return Ok(None);
    }
    let mut lines = Lines::new();
    for line in blob.data.split_inclusive(|byte| *byte == b'\n') {
        // A file whose last line has no end says the same.
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        *lines.entry(line.strip_suffix(b"\r").unwrap_or(line).to_vec()).or_default() += 1;
    }
    Ok(Some(lines))
}
