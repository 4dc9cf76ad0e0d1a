//! Merges of trees with a git whose `merge-tree` accepts only two commits.
//!
//! Before 2.45 a base could not be given as a tree, and before 2.40 not at all. For each question three commits
//! are made: one of the base's tree, and on it one of each side's. The merge base of the sides is then the
//! base, so the merge is the same. Only the names of the sides in git's answer differ, and they are replaced:
//!
//! 1. The commits are written to a directory of their own, which git reads beside the target's objects, so that
//!    none of them stays in the target.
//! 2. Git merges, and writes the name of a stand-in where it would write that of a side: beside the markers in files,
//!    and at the end of the names of files that had to be moved aside.
//! 3. The names of the sides are put in these places, so that the tree is the one that a newer git yields.

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    objs::Write as _,
};

use super::{Question, answer::MergeAnswer};
use crate::{
    git::command::Scratch, git::failure::StoreError, git::footprint::TreeDifference,
    git::path::TreePath, git::store::Store,
};

/// The stand-in commits for a batch of questions. Dropping it removes them.
#[derive(Debug)]
pub(super) struct StandIns {
    objects: Scratch,
    /// For each question its stand-ins, or `None` if it needs none.
    pairs: Vec<Option<Pair>>,
}

/// The two sides of a question and their stand-ins.
#[derive(Debug)]
struct Pair {
    sides: [ObjectId; 2],
    stand_ins: [ObjectId; 2],
    /// The tree of the first side.
    ours: ObjectId,
}

impl StandIns {
    /// Writes the stand-ins for these questions.
    pub(super) fn write(store: &Store, questions: &[Question]) -> Result<Self, StoreError> {
        let objects = Scratch::new(&store.git()?.room().join("stand-ins"))?;
        let hash = store.repo().object_hash();
        let loose = gix::odb::loose::Store::at(objects.path().as_std_path(), hash);
        let mut pairs = Vec::with_capacity(questions.len());
        for question in questions {
            let pair = match *question {
                Question::Trees { base, ours, theirs } => {
                    let sides = [ours, theirs];
                    let base = commit(&loose, "base", store.tree_at(base)?, None)?;
                    let ours = store.tree_at(ours)?;
                    let theirs = store.tree_at(theirs)?;
                    let stand_ins = [
                        commit(&loose, "ours", ours, Some(base))?,
                        commit(&loose, "theirs", theirs, Some(base))?,
                    ];
                    Some(Pair { sides, stand_ins, ours })
                }
                Question::Commits { .. } => None,
            };
            pairs.push(pair);
        }
        Ok(Self { objects, pairs })
    }

    /// Returns the value of `GIT_ALTERNATE_OBJECT_DIRECTORIES` with which git finds them.
    pub(super) fn alternates(&self) -> String {
        quoted(self.objects.path().as_str())
    }

    /// Returns the input line for the question at a place.
    pub(super) fn line(&self, at: usize, question: &Question) -> String {
        match &self.pairs[at] {
            Some(Pair { stand_ins: [ours, theirs], .. }) => format!("{ours} {theirs}\n"),
            None => question.line(),
        }
    }

    /// Replaces the stand-ins by the sides in the answer to the question at a place.
    pub(super) fn relabel(
        &self,
        store: &Store,
        at: usize,
        answer: MergeAnswer,
    ) -> Result<MergeAnswer, StoreError> {
        match &self.pairs[at] {
            Some(pair) if !answer.clean => pair.relabel(store, answer),
            Some(_) | None => Ok(answer),
        }
    }
}

impl Pair {
    fn relabel(&self, store: &Store, mut answer: MergeAnswer) -> Result<MergeAnswer, StoreError> {
        let failed = |source| StoreError::objects("name the sides of a conflict", source);
        let repo = store.repo();
        let mut editor = repo.edit_tree(answer.tree).map_err(failed)?;
        // Only paths that differ from our side can have been written by the merge.
        let changed = TreeDifference::between(store, Some(self.ours), answer.tree)?;
        for path in &changed.paths {
            let Some(leaf) = store.leaf(answer.tree, path)? else { continue };
            // Git writes no markers into a link, and a rewritten target would be another link.
            let is_file = leaf.mode.is_blob() && !leaf.mode.is_link();
            let id = if is_file { self.renamed_in(&repo, leaf.id)? } else { leaf.id };
            let name = self.renamed(path.as_bytes(), "~");
            if name.is_some() {
                editor.remove(path.as_bytes()).map_err(failed)?;
            }
            if name.is_some() || id != leaf.id {
                let name = name.as_deref().unwrap_or(path.as_bytes());
                editor.upsert(name.as_bstr(), leaf.mode.kind(), id).map_err(failed)?;
            }
        }
        answer.tree = editor.write().map_err(failed)?.detach();
        let rename = |path: &mut TreePath| {
            if let Some(name) = self.renamed(path.as_bytes(), "~") {
                *path = TreePath::new(name);
            }
        };
        for (path, stage) in &mut answer.stages {
            rename(path);
            // A version may itself be the result of a merge, of two files that were renamed to the same name.
            if stage.mode & 0o170_000 == 0o100_000 {
                stage.id = self.renamed_in(&repo, stage.id)?;
            }
        }
        for message in &mut answer.messages {
            message.paths.iter_mut().for_each(rename);
            if let Some(text) = self.renamed(&message.text, "") {
                message.text = text.into();
            }
        }
        Ok(answer)
    }

    /// Rewrites a blob with the sides instead of their stand-ins.
    fn renamed_in(&self, repo: &gix::Repository, id: ObjectId) -> Result<ObjectId, StoreError> {
        let failed = |source| StoreError::objects("name the sides of a conflict", source);
        let blob = repo.find_blob(id).map_err(failed)?;
        match self.renamed(&blob.data, "") {
            Some(text) => Ok(repo.write_blob(text).map_err(failed)?.detach()),
            None => Ok(id),
        }
    }

    /// Returns the bytes with the sides instead of their stand-ins wherever these follow `before`, or `None` if
    /// there is nothing to replace.
    ///
    /// The name of a stand-in is a hash made for this merge, so every occurrence was written by git.
    fn renamed(&self, bytes: &[u8], before: &str) -> Option<Vec<u8>> {
        let mut found: Option<Vec<u8>> = None;
        for (stand_in, side) in self.stand_ins.iter().zip(&self.sides) {
            let (from, to) = (format!("{before}{stand_in}"), format!("{before}{side}"));
            let text = found.as_deref().unwrap_or(bytes);
            if text.contains_str(&from) {
                found = Some(text.replace(from, to));
            }
        }
        found
    }
}

/// Writes a commit that is the same on every machine and at every time.
fn commit(
    to: &gix::odb::loose::Store,
    message: &str,
    tree: ObjectId,
    parent: Option<ObjectId>,
) -> Result<ObjectId, StoreError> {
    // Not older than its parent, because git uses dates to find a merge base.
    let seconds = 1 + i64::from(parent.is_some());
    let by = gix::actor::Signature {
        name: BString::from("pdca"),
        email: BString::from("pdca@localhost"),
        time: gix::date::Time { seconds, offset: 0 },
    };
    let commit = gix::objs::Commit {
        tree,
        parents: parent.into_iter().collect(),
        author: by.clone(),
        committer: by,
        encoding: None,
        message: BString::from(message),
        extra_headers: Vec::new(),
    };
    to.write(&commit).map_err(|source| StoreError::objects("write a commit", source))
}

/// Quotes a path for a list that is separated by colons.
fn quoted(path: &str) -> String {
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_directory_is_quoted_for_git() {
        assert_eq!(quoted("/no/where:a"), "\"/no/where:a\"");
        assert_eq!(quoted("/no/wh\"er\\e"), "\"/no/wh\\\"er\\\\e\"");
    }
}
