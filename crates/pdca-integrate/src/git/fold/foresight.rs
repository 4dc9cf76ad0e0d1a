//! Foresight: guesses the results of merges, so that one git process can make many of them.
//!
//! Each merge starts from the result of the one before, so git would have to be started for each. Most changes,
//! however, edit files that nothing else touched, and their result can be computed. The guesses only choose the
//! questions: every merge is made by git, and a wrong guess merely makes the following answers useless.

use gix::{ObjectId, objs::tree::EntryKind};

use super::{Folding, Tip, commit};
use crate::{
    git::engine::{Question, is_attributes},
    git::failure::StoreError,
    git::footprint::{Leaf, TreeDifference},
    git::store::Store,
    queue::plan::{PlanEntry, Strategy},
};

/// The number of merges to look ahead.
const FAR: usize = 128;

impl Folding<'_, '_> {
    /// Returns the questions for a commit and for those that follow it, as far as results can be guessed.
    pub(super) fn foresee(
        &self,
        entry: &PlanEntry,
        commit: ObjectId,
    ) -> Result<Vec<Question>, StoreError> {
        let store = self.store();
        let mut tip = self.tip;
        let mut questions = Vec::new();
        for (entry, commit) in self.from(entry, commit).take(FAR) {
            let (base, theirs) = self.change(entry, commit)?;
            if base == theirs {
                continue;
            }
            questions.push(match self.plan.strategy() {
                Strategy::RebaseFf => Question::Trees { base, ours: tip.tree, theirs },
                Strategy::MergeCommit => Question::Commits { ours: tip.commit, theirs: commit },
            });
            let Some(tree) = guess(store, base, tip.tree, theirs)? else { break };
            if tree != tip.tree {
                tip = self.guessed(tip, tree, commit, entry)?;
            }
        }
        Ok(questions)
    }

    /// Returns this commit and all that follow it.
    fn from<'p>(
        &'p self,
        entry: &PlanEntry,
        commit: ObjectId,
    ) -> impl Iterator<Item = (&'p PlanEntry, ObjectId)> {
        let all = self.chosen.iter().filter_map(|place| self.plan.entries().get(*place));
        let all = all.flat_map(|entry| self.commits_of(entry).into_iter().map(move |c| (entry, c)));
        let id = entry.sealed().id().clone();
        all.skip_while(move |(entry, other)| *entry.sealed().id() != id || *other != commit)
    }

    /// Returns the trees before and after a change, according to the strategy.
    fn change(
        &self,
        entry: &PlanEntry,
        commit: ObjectId,
    ) -> Result<(ObjectId, ObjectId), StoreError> {
        let store = self.store();
        let before = match self.plan.strategy() {
            Strategy::RebaseFf => store.parents_of(commit)?.first().copied(),
            // The merge base may be another commit. A wrong guess costs only useless questions.
            Strategy::MergeCommit => Some(entry.sealed().record().base),
        };
        let before = before.ok_or(StoreError::NoSuchCommit { commit })?;
        Ok((store.tree_of(before)?, store.tree_of(commit)?))
    }

    /// Returns the tip after a merge with this tree. With merge commits the next question needs the commit itself.
    fn guessed(
        &self,
        tip: Tip,
        tree: ObjectId,
        head: ObjectId,
        entry: &PlanEntry,
    ) -> Result<Tip, StoreError> {
        let (sealed, form) = (entry.sealed(), self.plan.form());
        let commit = match self.plan.strategy() {
            Strategy::RebaseFf => tip.commit,
            Strategy::MergeCommit => {
                commit::merge(self.store(), form, sealed, head, tree, tip.commit)?
            }
        };
        Ok(Tip { commit, tree, ..tip })
    }
}

/// Returns the tree after a change that only edits files which are still as it found them, or `None` for any other
/// change.
fn guess(
    store: &Store,
    base: ObjectId,
    ours: ObjectId,
    theirs: ObjectId,
) -> Result<Option<ObjectId>, StoreError> {
    let changed = TreeDifference::between(store, Some(base), theirs)?;
    let failed = |source| StoreError::objects("foresee a merge", source);
    let repo = store.repo();
    let mut editor = repo.edit_tree(ours).map_err(failed)?;
    for path in &changed.paths {
        let leaf = |tree| store.leaf(tree, path);
        let (Some(old), Some(here), Some(new)) = (leaf(base)?, leaf(ours)?, leaf(theirs)?) else {
            return Ok(None);
        };
        let is_plain = |leaf: Leaf| leaf.mode.is_blob() && !leaf.mode.is_link();
        // Another attributes file would change the attributes that the following questions are asked with.
        if old != here || !is_plain(old) || !is_plain(new) || is_attributes(path) {
            return Ok(None);
        }
        let kind =
            if new.mode.is_executable() { EntryKind::BlobExecutable } else { EntryKind::Blob };
        editor.upsert(path.as_bytes(), kind, new.id).map_err(failed)?;
    }
    Ok(Some(editor.write().map_err(failed)?.detach()))
}
