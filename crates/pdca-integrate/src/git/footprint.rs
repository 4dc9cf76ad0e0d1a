//! Differences of trees.

use std::collections::BTreeSet;

use gix::{
    ObjectId,
    bstr::{BStr, BString},
    objs::tree::EntryMode,
};

use crate::{git::failure::StoreError, git::path::TreePath, git::store::Store};

/// The depth from which git rejects a tree.
pub(super) const MAX_DEPTH: usize = 2048;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct TreeDifference {
    /// Every path that was added, removed or changed; a renamed file has two.
    pub(crate) paths: BTreeSet<TreePath>,
    /// Every tree and blob that only the newer side has. Commits of submodules are not included.
    pub(crate) new_objects: BTreeSet<ObjectId>,
}

impl TreeDifference {
    pub(crate) fn between(
        store: &Store,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<Self, StoreError> {
        let repo = store.repo();
        let mut difference = Self::default();
        let mut open = vec![Dir { path: BString::default(), depth: 0, old, new: Some(new) }];
        while let Some(dir) = open.pop() {
            // Equal ids are equal contents, so an unchanged directory is never read.
            if dir.old != dir.new {
                open.extend(difference.look_into(&repo, &dir)?);
            }
        }
        Ok(difference)
    }

    /// Compares the entries of one directory, and returns its subdirectories.
    fn look_into(&mut self, repo: &gix::Repository, dir: &Dir) -> Result<Vec<Dir>, StoreError> {
        if dir.depth > MAX_DEPTH {
            let what = format!("a tree of more than {MAX_DEPTH} directories in each other");
            return Err(StoreError::Form { what });
        }
        // The directory itself is a new object, which must be synced before a commit names it.
        self.new_objects.extend(dir.new);
        let data = [read(repo, dir.old)?, read(repo, dir.new)?];
        let hash = repo.object_hash();
        let (before, after) = (entries(&data[0], hash)?, entries(&data[1], hash)?);
        let mut inside = Vec::new();
        for (name, [old, new]) in join([&before, &after]) {
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

/// A directory on one side or both.
struct Dir {
    path: BString,
    depth: usize,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) mode: EntryMode,
    pub(crate) id: ObjectId,
}

/// The entries of a tree, sorted by name.
pub(crate) type Entries<'a> = Vec<(&'a BStr, Leaf)>;

/// Reads a tree; an absent one is empty.
pub(crate) fn read(repo: &gix::Repository, tree: Option<ObjectId>) -> Result<Vec<u8>, StoreError> {
    let failed = |source| StoreError::objects("read a tree", source);
    match tree {
        Some(id) => Ok(repo.find_tree(id).map_err(failed)?.detach().data),
        None => Ok(Vec::new()),
    }
}

/// Parses the entries of a tree.
pub(crate) fn entries(data: &[u8], hash: gix::hash::Kind) -> Result<Entries<'_>, StoreError> {
    let failed = |source| StoreError::objects("read a tree", source);
    let mut found = Entries::new();
    for entry in gix::objs::TreeRefIter::from_bytes(data, hash) {
        let entry = entry.map_err(failed)?;
        found.push((entry.filename, Leaf { mode: entry.mode, id: entry.oid.to_owned() }));
    }
    // Git sorts a directory as if its name ended in a slash; `join` needs plain order.
    found.sort_by_key(|(name, _)| *name);
    Ok(found)
}

/// Returns each name in any of the lists, with the entry of each list under it.
pub(crate) fn join<'a, const N: usize>(
    lists: [&Entries<'a>; N],
) -> impl Iterator<Item = (&'a BStr, [Option<Leaf>; N])> {
    let mut at = [0; N];
    std::iter::from_fn(move || {
        let heads = (0..N).filter_map(|list| lists[list].get(at[list]));
        let first = heads.map(|(name, _)| *name).min()?;
        let found = std::array::from_fn(|list| {
            let (_, leaf) = lists[list].get(at[list]).filter(|(name, _)| *name == first)?;
            at[list] += 1;
            Some(*leaf)
        });
        Some((first, found))
    })
}
