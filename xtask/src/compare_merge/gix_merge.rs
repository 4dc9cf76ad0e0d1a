//! The same merges by gix.

use camino::Utf8Path;
use gix::bstr::ByteSlice as _;
use gix::merge::blob::builtin_driver::text::Labels;
use gix::merge::tree::TreatAsUnresolved;

use super::{MergeCase, Verdict};
use crate::Stopped;

pub(super) struct Gix {
    repo: gix::Repository,
}

impl Gix {
    /// Keeps written objects in memory.
    pub(super) fn open(path: &Utf8Path) -> Result<Self, Stopped> {
        let options = gix::open::Options::isolated();
        let mut repo = gix::open_opts(path.as_std_path(), options)?.with_object_memory();
        repo.object_cache_size_if_unset(32 << 20);
        Ok(Self { repo })
    }

    pub(super) fn merge(&mut self, case: MergeCase) -> Result<Verdict, Stopped> {
        let how = TreatAsUnresolved::git();
        let options = self.repo.tree_merge_options()?;
        let (ours, theirs) = match case {
            MergeCase::Pick { commit, onto } => (onto, commit),
            MergeCase::Merge { ours, theirs } => (ours, theirs),
        };
        let (current, other) = (ours.to_string(), theirs.to_string());
        let labels = Labels {
            ancestor: None,
            current: Some(current.as_bytes().as_bstr()),
            other: Some(other.as_bytes().as_bstr()),
        };
        let mut outcome = match case {
            MergeCase::Pick { commit, onto } => {
                let parent = self.repo.find_commit(commit)?.parent_ids().next();
                let base = parent.ok_or("the commit has no parent")?.detach();
                let tree = |commit: gix::ObjectId| -> Result<gix::ObjectId, Stopped> {
                    Ok(self.repo.find_commit(commit)?.tree_id()?.detach())
                };
                self.repo.merge_trees(tree(base)?, tree(onto)?, tree(commit)?, labels, options)?
            }
            MergeCase::Merge { ours, theirs } => {
                self.repo.merge_commits(ours, theirs, labels, options.into())?.tree_merge
            }
        };
        if outcome.has_unresolved_conflicts(how) {
            return Ok(None);
        }
        Ok(Some(outcome.tree.write()?.detach()))
    }
}
