//! In what two trees differ.

use std::collections::{BTreeMap, BTreeSet};

use gix::{ObjectId, bstr::BString, objs::tree::EntryMode};

use crate::{failure::StoreError, path::TreePath, store::Store};

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
        let mut difference = Self::default();
        difference.walk(&store.repo(), &BString::default(), old, Some(new))?;
        Ok(difference)
    }

    fn walk(
        &mut self,
        repo: &gix::Repository,
        dir: &BString,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
    ) -> Result<(), StoreError> {
        if old == new {
            return Ok(());
        }
        self.new_objects.extend(new);
        let (before, after) = (entries(repo, old)?, entries(repo, new)?);
        let names: BTreeSet<&BString> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old == new {
                continue;
            }
            let mut path = dir.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            let tree = |entry: Option<&Leaf>| entry.filter(|e| e.mode.is_tree()).map(|e| e.id);
            self.walk(repo, &path, tree(old), tree(new))?;
            let leaf = |entry: Option<&Leaf>| entry.filter(|e| !e.mode.is_tree()).copied();
            if let Some(new) = leaf(new).filter(|new| !new.mode.is_commit()) {
                self.new_objects.insert(new.id);
            }
            if leaf(old) != leaf(new) {
                self.paths.insert(TreePath::new(path));
            }
        }
        Ok(())
    }
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
