//! Refs that keep the commits of unaccepted attempts.
//!
//! A builder commits in a lane. Its commits are copied into the target's object store, and a ref below
//! `refs/pdca/attempts/` keeps them, so that they outlive the lane, can be the base of other attempts, and are
//! the very commits that acceptance seals.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use gix::{ObjectId, bstr::ByteSlice as _, objs::tree::EntryKind};
use pdca_state::BundleId;

use crate::{
    git::durable::LooseObjects,
    git::failure::{RefError, StoreError},
    git::fence::{Fence, Move, ReflogEntry, StepEffect, ref_at},
    git::name::ATTEMPTS,
    git::rebuild::Ingredients,
    git::seal::MAX_COMMITS,
    git::store::{Store, open_repository},
};

/// Returns the ref for the work of a bundle. `workspace` distinguishes workspaces with the same target.
pub fn work_ref(workspace: &str, id: &BundleId) -> String {
    format!("{}{id}", work_prefix(workspace))
}

/// Returns the prefix of all such refs of a workspace.
pub fn work_prefix(workspace: &str) -> String {
    format!("{ATTEMPTS}{workspace}/")
}

/// Points a ref to the commits after `base` up to `head`, replacing what it kept before.
pub fn keep_work(
    store: &Store,
    fence: &Fence,
    name: &str,
    (base, head): (ObjectId, ObjectId),
    log: ReflogEntry<'_>,
) -> Result<StepEffect, RefError> {
    let from = ref_at(store, name)?;
    if from == Some(head) {
        return Ok(StepEffect::Recognised);
    }
    LooseObjects::of(store).sync_commits(base, head)?;
    fence.move_refs(store, &[Move { name: name.to_owned(), from, to: Some(head) }], log)?;
    Ok(StepEffect::Made)
}

/// Points a ref of a workspace's own to a commit that another ref has already.
pub fn claim(
    store: &Store,
    fence: &Fence,
    name: &str,
    at: ObjectId,
    log: ReflogEntry<'_>,
) -> Result<StepEffect, RefError> {
    let from = ref_at(store, name)?;
    if from == Some(at) {
        return Ok(StepEffect::Recognised);
    }
    fence.move_refs(store, &[Move { name: name.to_owned(), from, to: Some(at) }], log)?;
    Ok(StepEffect::Made)
}

/// The objects of a lane, which a builder wrote, on their way into the repository of the target.
///
/// Every object is hashed again on the way, and an object is copied after those that it names, so that a crash leaves
/// nothing incomplete.
#[derive(Debug)]
pub struct LaneObjects<'s> {
    store: &'s Store,
    lane: gix::Repository,
}

impl<'s> LaneObjects<'s> {
    /// Opens the repository of the lane at `from`.
    pub fn open(store: &'s Store, from: &Utf8Path) -> Result<Self, StoreError> {
        Ok(Self { store, lane: open_repository(from)?.to_thread_local() })
    }

    /// Copies the commits after `base` up to `head`, with all new objects. A tree with an entry that no checkout can
    /// have is refused.
    ///
    /// Returns the commits, oldest first, or `None` if they are not one line from the base. No ref names them yet.
    pub fn take_in(
        &self,
        base: ObjectId,
        head: ObjectId,
    ) -> Result<Option<Vec<ObjectId>>, StoreError> {
        let Self { store, lane } = self;
        store.require_commit(base)?;
        let failed = |source| StoreError::objects("read a lane's commits", source);
        let mut commits = Vec::new();
        let mut at = head;
        while at != base {
            let commit = lane.find_commit(at).map_err(failed)?;
            let parents: Vec<ObjectId> = commit.parent_ids().map(gix::Id::detach).collect();
            let [parent] = parents[..] else { return Ok(None) };
            commits.push(at);
            if commits.len() > MAX_COMMITS {
                return Ok(None);
            }
            at = parent;
        }
        commits.reverse();
        let own = store.repo();
        let mut before = store.tree_of(base)?;
        let mut seen = BTreeSet::new();
        for id in &commits {
            let commit = lane.find_commit(*id).map_err(failed)?;
            let tree = commit.tree_id().map_err(failed)?.detach();
            copy_tree(lane, &own, Some(before), tree, &mut seen)?;
            copy(lane, &own, *id)?;
            before = tree;
        }
        // A commit that cannot be recreated exactly could not be sealed, so the caller squashes the work
        // instead.
        for id in &commits {
            if store.require_sound(*id).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(commits))
    }

    /// Commits the tree of a lane's commit directly on the base, for work that is not one line of commits.
    pub fn squash(&self, head: ObjectId, change: &Ingredients<'_>) -> Result<ObjectId, StoreError> {
        let Self { store, lane } = self;
        let failed = |source| StoreError::objects("read a lane's commits", source);
        let tree = lane.find_commit(head).map_err(failed)?.tree_id().map_err(failed)?.detach();
        let before = store.tree_of(change.base)?;
        copy_tree(lane, &store.repo(), Some(before), tree, &mut BTreeSet::new())?;
        store.commit_tree(change, tree)
    }
}

/// Copies a tree and its contents, except for what `before` has at the same place.
fn copy_tree(
    from: &gix::Repository,
    to: &gix::Repository,
    before: Option<ObjectId>,
    tree: ObjectId,
    seen: &mut BTreeSet<ObjectId>,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::objects("read a lane's tree", source);
    // Trees are written after their contents, so that a crash leaves no incomplete tree.
    let mut trees = Vec::new();
    let mut open = vec![(before, tree)];
    while let Some((before, tree)) = open.pop() {
        // `before` is in the store already, with all of its contents.
        if before == Some(tree) || !seen.insert(tree) {
            continue;
        }
        trees.push(tree);
        let mut known = BTreeMap::new();
        if let Some(before) = before {
            let old = from.find_tree(before).map_err(failed)?;
            for entry in old.iter() {
                let entry = entry.map_err(failed)?;
                known.insert(entry.filename().to_owned(), (entry.mode(), entry.object_id()));
            }
        }
        let new = from.find_tree(tree).map_err(failed)?;
        for entry in new.iter() {
            let entry = entry.map_err(failed)?;
            let (name, id) = (entry.filename(), entry.object_id());
            if !is_sound_name(name) {
                return Err(StoreError::Form { what: format!("a tree with an entry {name:?}") });
            }
            let known = known.get(name).copied();
            if known.is_some_and(|(_, known)| known == id) {
                continue;
            }
            match entry.mode().kind() {
                EntryKind::Tree => {
                    let before = known.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
                    open.push((before, id));
                }
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                    copy(from, to, id)?;
                }
                // The commit of a submodule is in another repository.
                EntryKind::Commit => {}
            }
        }
    }
    trees.iter().rev().try_for_each(|tree| copy(from, to, *tree))
}

fn is_sound_name(name: &[u8]) -> bool {
    !name.is_empty()
        && !name.contains_str("/")
        && !matches!(name, b"." | b"..")
        // A checkout would write such an entry into its own repository, for example as a hook.
        && !name.eq_ignore_ascii_case(b".git")
}

fn copy(from: &gix::Repository, to: &gix::Repository, id: ObjectId) -> Result<(), StoreError> {
    use gix::objs::Write as _;
    let failed = |source| StoreError::objects("bring an object from a lane", source);
    if to.has_object(id) {
        return Ok(());
    }
    let object = from.find_object(id).map_err(failed)?;
    let written = to
        .objects
        .write_buf(object.kind, &object.data)
        .map_err(|source| StoreError::objects("write an object", source))?;
    // The lane is writable by the builder, so the content may not be that of the id.
    if written == id {
        return Ok(());
    }
    Err(StoreError::Form { what: format!("object {id} of a lane") })
}
