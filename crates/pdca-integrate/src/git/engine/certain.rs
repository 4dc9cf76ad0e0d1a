//! Merges whose result is certain without git.
//!
//! Three trees are compared entry by entry. If only one side changed an entry, its version is taken; if both
//! made the same change, that one. Any other entry needs git, because its content must be merged or the sides
//! conflict. Attributes and merge drivers therefore never matter here.
//!
//! What remains is rename detection: git may take a file that a side removed and one that the same side added for a
//! rename, and apply a change of the other side to the new name. That is impossible if
//!
//! - neither side both removed and added files, or
//! - one side only edited files, all of which the other side left unchanged: such a file has the same name on
//!   both sides, and nothing was added to a directory that could be renamed.

use std::collections::{BTreeSet, HashMap, VecDeque};

use gix::{
    ObjectId,
    bstr::BStr,
    objs::tree::{Entry, EntryKind, EntryMode},
};

use crate::{
    git::failure::StoreError,
    git::footprint::{Entries, Leaf, MAX_DEPTH, entries, join, read},
    git::store::Store,
};

/// The number of commits to search for an ancestor.
/// Any number is correct: where the search gives up, git is asked.
const FAR_BACK: usize = 64;

/// Merges without git, and remembers the comparisons.
#[derive(Debug)]
pub(super) struct Certain<'a> {
    store: &'a Store,
    hash: gix::hash::Kind,
    /// The changes below a directory, by the trees before and after; `None` if git must decide. During a fold
    /// one side only grows, so most of it was compared before.
    known: HashMap<(ObjectId, ObjectId), Option<Changes>>,
}

/// The kinds of changes of one side.
#[derive(Debug, Default, Clone, Copy)]
struct Changes {
    adds: bool,
    removes: bool,
}

impl Changes {
    fn are_no_rename(self) -> bool {
        !(self.adds && self.removes)
    }

    fn are_edits(self) -> bool {
        !self.adds && !self.removes
    }

    fn and(self, other: Self) -> Self {
        Self { adds: self.adds || other.adds, removes: self.removes || other.removes }
    }
}

/// A merged directory, `None` if it is empty and thereby gone, and the changes of both sides in it.
struct Merged {
    tree: Option<ObjectId>,
    ours: Changes,
    theirs: Changes,
}

impl<'a> Certain<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        let hash = store.repo().object_hash();
        Self { store, hash, known: HashMap::new() }
    }

    /// Returns the tree of a clean merge, or `None` if git must be asked.
    pub(super) fn merge(
        &mut self,
        base: ObjectId,
        ours: ObjectId,
        theirs: ObjectId,
    ) -> Result<Option<ObjectId>, StoreError> {
        let Some(merged) = self.trees([Some(base), Some(ours), Some(theirs)], 0)? else {
            return Ok(None);
        };
        let (ours, theirs) = (merged.ours, merged.theirs);
        let is_certain = ours.are_no_rename() && theirs.are_no_rename()
            || ours.are_edits()
            || theirs.are_edits();
        if !is_certain {
            return Ok(None);
        }
        match merged.tree {
            Some(tree) => Ok(Some(tree)),
            // The root is the only tree that may be empty.
            None => self.write(Vec::new()).map(Some),
        }
    }

    /// Returns the commit that has the other as a near ancestor. Their merge base is then the other.
    pub(super) fn newer(
        &self,
        one: ObjectId,
        other: ObjectId,
    ) -> Result<Option<ObjectId>, StoreError> {
        for (newer, older) in [(one, other), (other, one)] {
            if self.reaches(newer, older)? {
                return Ok(Some(newer));
            }
        }
        Ok(None)
    }

    fn reaches(&self, from: ObjectId, to: ObjectId) -> Result<bool, StoreError> {
        let (mut seen, mut next) = (BTreeSet::from([from]), VecDeque::from([from]));
        while let Some(at) = next.pop_front() {
            if at == to {
                return Ok(true);
            }
            // The commits that are queued already are still compared.
            if seen.len() > FAR_BACK {
                continue;
            }
            let parents = self.store.parents_of(at)?;
            next.extend(parents.into_iter().filter(|id| seen.insert(*id)));
        }
        Ok(false)
    }

    /// Merges a directory, which any of base, ours and theirs may lack.
    fn trees(
        &mut self,
        ids: [Option<ObjectId>; 3],
        depth: usize,
    ) -> Result<Option<Merged>, StoreError> {
        if depth > MAX_DEPTH {
            return Ok(None);
        }
        let data = [self.read(ids[0])?, self.read(ids[1])?, self.read(ids[2])?];
        let [Some(old), Some(here), Some(there)] = [
            canonical(&data[0], self.hash)?,
            canonical(&data[1], self.hash)?,
            canonical(&data[2], self.hash)?,
        ] else {
            return Ok(None);
        };
        let (mut ours, mut theirs) = (Changes::default(), Changes::default());
        let mut merged: Entries<'_> = Vec::with_capacity(here.len());
        for (name, entry) in join([&old, &here, &there]) {
            let Some((leaf, here, there)) = self.entry(entry, depth)? else { return Ok(None) };
            (ours, theirs) = (ours.and(here), theirs.and(there));
            merged.extend(leaf.map(|leaf| (name, leaf)));
        }
        // Most directories are those of one side; their objects exist and need not be written.
        let known = [(&here, ids[1]), (&there, ids[2]), (&old, ids[0])];
        let same = known.into_iter().find(|(known, id)| **known == merged && id.is_some());
        let tree = match same {
            Some((_, id)) => id,
            None if merged.is_empty() => None,
            None => {
                let entry = |(name, Leaf { mode, id }): (&BStr, Leaf)| Entry {
                    mode,
                    filename: name.to_owned(),
                    oid: id,
                };
                Some(self.write(merged.into_iter().map(entry).collect())?)
            }
        };
        Ok(Some(Merged { tree, ours, theirs }))
    }

    /// Merges one entry of a directory, and returns the changes of each side to files at its place.
    fn entry(
        &mut self,
        [old, here, there]: [Option<Leaf>; 3],
        depth: usize,
    ) -> Result<Option<(Option<Leaf>, Changes, Changes)>, StoreError> {
        let none = Changes::default();
        if old == here && old == there {
            return Ok(Some((here, none, none)));
        }
        // Only one side changed it, or both made the same change.
        if old == here || old == there || here == there {
            let taken = if old == here { there } else { here };
            let Some(changes) = self.changes(old, taken, depth)? else { return Ok(None) };
            let ours = if old == here { none } else { changes };
            let theirs = if old == there { none } else { changes };
            return Ok(Some((taken, ours, theirs)));
        }
        let is_tree = |entry: Option<Leaf>| entry.is_none_or(|entry| entry.mode.is_tree());
        // Both sides changed a file in different ways, or a file meets a directory.
        if !(is_tree(old) && is_tree(here) && is_tree(there)) {
            return Ok(None);
        }
        let ids = [old, here, there].map(|entry| entry.map(|entry| entry.id));
        let merged = self.trees(ids, depth + 1)?;
        Ok(merged.map(|merged| {
            let tree = merged.tree.map(|id| Leaf { mode: EntryKind::Tree.into(), id });
            (tree, merged.ours, merged.theirs)
        }))
    }

    /// Returns the changes to files from one entry to another, or `None` if git must decide.
    fn changes(
        &mut self,
        old: Option<Leaf>,
        new: Option<Leaf>,
        depth: usize,
    ) -> Result<Option<Changes>, StoreError> {
        if old == new {
            return Ok(Some(Changes::default()));
        }
        let is_tree = |entry: Option<Leaf>| entry.is_some_and(|entry| entry.mode.is_tree());
        if !is_tree(old) && !is_tree(new) {
            return Ok(Some(Changes { adds: old.is_none(), removes: new.is_none() }));
        }
        let tree = |entry: Option<Leaf>| entry.filter(|entry| entry.mode.is_tree()).map(|e| e.id);
        if [old, new].iter().any(|entry| entry.is_some() && !is_tree(*entry)) {
            // A directory replaced a file, or a file a directory.
            return Ok(None);
        }
        self.changes_below(tree(old), tree(new), depth + 1)
    }

    fn changes_below(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        depth: usize,
    ) -> Result<Option<Changes>, StoreError> {
        let null = ObjectId::null(self.hash);
        let key = (old.unwrap_or(null), new.unwrap_or(null));
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let found = self.look_below(old, new, depth)?;
        self.known.insert(key, found);
        Ok(found)
    }

    fn look_below(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        depth: usize,
    ) -> Result<Option<Changes>, StoreError> {
        if depth > MAX_DEPTH {
            return Ok(None);
        }
        let data = [self.read(old)?, self.read(new)?];
        let [Some(before), Some(after)] =
            [canonical(&data[0], self.hash)?, canonical(&data[1], self.hash)?]
        else {
            return Ok(None);
        };
        let mut all = Changes::default();
        for (_, [old, new]) in join([&before, &after]) {
            let Some(changes) = self.changes(old, new, depth)? else { return Ok(None) };
            all = all.and(changes);
        }
        Ok(Some(all))
    }

    fn read(&self, tree: Option<ObjectId>) -> Result<Vec<u8>, StoreError> {
        read(&self.store.repo(), tree)
    }

    fn write(&self, mut entries: Vec<Entry>) -> Result<ObjectId, StoreError> {
        // Git sorts a directory as if its name ended in a slash.
        entries.sort_unstable();
        let repo = self.store.repo();
        let written = repo.write_object(gix::objs::Tree { entries });
        Ok(written.map_err(|source| StoreError::objects("write a tree", source))?.detach())
    }
}

/// Returns the entries of a tree, or `None` if it is not in the form that git writes: git would then yield
/// another tree than one composed of these entries.
fn canonical(data: &[u8], hash: gix::hash::Kind) -> Result<Option<Entries<'_>>, StoreError> {
    let found = entries(data, hash)?;
    let is_empty = |leaf: &Leaf| leaf.mode.is_tree() && leaf.id.is_empty_tree();
    let is_odd = |(_, leaf): &(&BStr, Leaf)| is_empty(leaf) || !is_canonical(leaf.mode);
    let is_twice = found.windows(2).any(|two| two[0].0 == two[1].0);
    Ok((!is_twice && !found.iter().any(is_odd)).then_some(found))
}

fn is_canonical(mode: EntryMode) -> bool {
    EntryMode::from(mode.kind()) == mode
}
