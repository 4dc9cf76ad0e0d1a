//! Folds that take single files from another tree, to explain a red.
//!
//! A change may fold only together with others, because they edit neighbouring lines of one file. To gate it without
//! the others, each file in conflict is taken as it is in a tree that has all of them; the rest of the others is left
//! out. Such a fold is gated and never lands.

use std::collections::BTreeSet;

use gix::{
    ObjectId,
    bstr::{BStr, ByteSlice},
    objs::tree::Entry,
};

use crate::{
    conflict::Conflict,
    git::engine::MergeEngine,
    git::failure::StoreError,
    git::footprint::{Leaf, entries, read},
    git::path::TreePath,
    git::store::Store,
    queue::plan::{FoldPlan, Strategy},
};

use super::{FoldError, Folded, Folding, Recorded};

/// The conflicts in which a file is taken from the other tree. In any other one, such as that of a rename, git has also
/// written files under names of its own.
const SIMPLE: [&str; 3] = ["CONFLICT (contents)", "CONFLICT (binary)", "CONFLICT (modify/delete)"];

/// The tree that files are taken from, and the paths that were.
#[derive(Debug, Clone)]
pub(super) struct Lender {
    tree: ObjectId,
    pub(super) lent: BTreeSet<TreePath>,
}

/// Folds a whole plan, and takes each file in conflict from `lender`. Returns the fold and the paths that were taken.
pub(crate) fn fold_lending(
    engine: &mut MergeEngine<'_>,
    plan: &FoldPlan,
    lender: ObjectId,
) -> Result<(Folded, BTreeSet<TreePath>), FoldError> {
    let all: BTreeSet<usize> = (0..plan.entries().len()).collect();
    let (nothing, record) = (Recorded::default(), &mut |_: &_| Ok(()));
    let mut folding = Folding::new(engine, plan, &all, &nothing, record)?;
    // A merge of commits also brings the history below the change, and with it what is to be left out.
    if plan.strategy() == Strategy::RebaseFf {
        folding.lender = Some(Lender { tree: lender, lent: BTreeSet::new() });
    }
    folding.take_all()?;
    let lent = folding.lender.take().map(|lender| lender.lent).unwrap_or_default();
    Ok((folding.finish(), lent))
}

impl Lender {
    /// Returns a merged tree with its files in conflict replaced, or `None` if they cannot be.
    pub(super) fn settle(
        &mut self,
        store: &Store,
        merged: ObjectId,
        conflicts: &[Conflict],
    ) -> Result<Option<ObjectId>, StoreError> {
        if !conflicts.iter().all(|conflict| SIMPLE.contains(&conflict.kind.as_str())) {
            return Ok(None);
        }
        let mut tree = merged;
        for conflict in conflicts {
            let leaf = store.leaf(self.tree, &conflict.path)?;
            tree = with_leaf(store, tree, &conflict.path, leaf)?;
            self.lent.insert(conflict.path.clone());
        }
        Ok(Some(tree))
    }
}

/// Writes a tree that has another file at a path, or none.
fn with_leaf(
    store: &Store,
    tree: ObjectId,
    path: &TreePath,
    leaf: Option<Leaf>,
) -> Result<ObjectId, StoreError> {
    let names: Vec<&BStr> = path.as_bytes().split_str("/").map(ByteSlice::as_bstr).collect();
    let new = written(store, Some(tree), &names, leaf)?;
    match new {
        Some(tree) => Ok(tree),
        // The root is the only tree that may be empty.
        None => write(store, Vec::new()),
    }
}

/// Writes a directory; `None` if nothing is left in it.
fn written(
    store: &Store,
    tree: Option<ObjectId>,
    names: &[&BStr],
    leaf: Option<Leaf>,
) -> Result<Option<ObjectId>, StoreError> {
    let Some((name, below)) = names.split_first() else { return Ok(None) };
    let repo = store.repo();
    let data = read(&repo, tree)?;
    let mut found = entries(&data, repo.object_hash())?;
    let here = found.iter().find(|(other, _)| other == name).map(|(_, leaf)| *leaf);
    let new = if below.is_empty() {
        leaf
    } else {
        let dir = here.filter(|leaf| leaf.mode.is_tree()).map(|leaf| leaf.id);
        let mode = gix::objs::tree::EntryKind::Tree.into();
        written(store, dir, below, leaf)?.map(|id| Leaf { mode, id })
    };
    found.retain(|(other, _)| other != name);
    found.extend(new.map(|leaf| (*name, leaf)));
    if found.is_empty() {
        return Ok(None);
    }
    let entry = |(name, leaf): &(&BStr, Leaf)| {
        let filename = (*name).to_owned();
        Entry { mode: leaf.mode, filename, oid: leaf.id }
    };
    write(store, found.iter().map(entry).collect()).map(Some)
}

fn write(store: &Store, mut entries: Vec<Entry>) -> Result<ObjectId, StoreError> {
    // Git sorts a directory as if its name ended in a slash.
    entries.sort_unstable();
    let written = store.repo().write_object(gix::objs::Tree { entries }).map(gix::Id::detach);
    written.map_err(|source| StoreError::objects("write a tree", source))
}
