//! In what two trees differ.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, bstr::BString, objs::tree::EntryMode};

use crate::{failure::StoreError, path::TreePath, store::Store};

/// What git takes for a tree that is too deep.
const MAX_DEPTH: usize = 2048;

/// The difference of two trees.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Every path that was added, removed or changed; a renamed file has two.
    pub(crate) paths: BTreeSet<TreePath>,
    /// Every tree and file that only the newer side has. A submodule's commit is not ours.
    pub(crate) new_objects: BTreeSet<ObjectId>,
}

impl Difference {
    pub(crate) fn between(
        store: &Store,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<Self, StoreError> {
        let repo = store.repo();
        let mut difference = Self::default();
        let mut open = vec![Dir { path: BString::default(), depth: 0, old, new: Some(new) }];
        while let Some(dir) = open.pop() {
            if dir.old != dir.new {
                open.extend(difference.look_into(&repo, &dir)?);
            }
        }
        Ok(difference)
    }

    /// Compares the entries of one directory, and gives the directories in it.
    fn look_into(&mut self, repo: &gix::Repository, dir: &Dir) -> Result<Vec<Dir>, StoreError> {
        if dir.depth > MAX_DEPTH {
            let what = format!("a tree of more than {MAX_DEPTH} directories in each other");
            return Err(StoreError::Form { what });
        }
        self.new_objects.extend(dir.new);
        let (before, after) = (entries(repo, dir.old)?, entries(repo, dir.new)?);
        let names: BTreeSet<&BString> = before.keys().chain(after.keys()).collect();
        let mut inside = Vec::new();
        for name in names {
            let (old, new) = (before.get(name).copied(), after.get(name).copied());
            if old == new {
                continue;
            }
            let mut path = dir.path.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            let leaf = |entry: Option<Leaf>| entry.filter(|entry| !entry.mode.is_tree());
            if let Some(new) = leaf(new).filter(|new| !new.mode.is_commit()) {
                self.new_objects.insert(new.id);
            }
            if leaf(old) != leaf(new) {
                self.paths.insert(TreePath::new(path.clone()));
            }
            let tree = |entry: Option<Leaf>| entry.filter(|e| e.mode.is_tree()).map(|e| e.id);
            inside.push(Dir { path, depth: dir.depth + 1, old: tree(old), new: tree(new) });
        }
        Ok(inside)
    }
}

/// A directory of which one side or both have something.
struct Dir {
    path: BString,
    depth: usize,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
}

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) mode: EntryMode,
    pub(crate) id: ObjectId,
}

fn entries(
    repo: &gix::Repository,
    tree: Option<ObjectId>,
) -> Result<BTreeMap<BString, Leaf>, StoreError> {
    let failed = |source| StoreError::objects("read a tree", source);
    let Some(tree) = tree else {
        return Ok(BTreeMap::new());
    };
    let tree = repo.find_tree(tree).map_err(failed)?;
    let mut found = BTreeMap::new();
    for entry in tree.iter() {
        let entry = entry.map_err(failed)?;
        let at = Leaf { mode: entry.mode(), id: entry.object_id() };
        found.insert(entry.filename().to_owned(), at);
    }
    Ok(found)
}
