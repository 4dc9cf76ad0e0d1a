//! A claimed lane: resetting its checkout, and rescuing the work in it.

use std::{io, ops::Deref};

use camino::{Utf8Path, Utf8PathBuf};
use gix::{ObjectId, refs::transaction::PreviousValue};
use pdca_dag::Pattern;
use pdca_process::FileLock;
use serde::{Deserialize, Serialize};
use tracing::{debug, debug_span};

use crate::{
    checkout, claim::ClaimError, failure::LaneError, history, hydrate::HydrationRecord,
    idle::ReleaseStamp, marker::LaneRecord, owner::OwnerFile, walk::Spare, work_tree::WorkTree,
};

/// A claimed private checkout of one target.
///
/// It is a guard: it dereferences to the [`WorkTree`] that it holds exclusively, and dropping it frees the slot. Every
/// process in the checkout must have ended before any of these operations.
#[derive(Debug)]
pub struct Lane {
    pub(crate) work: WorkTree,
    pub(crate) record: LaneRecord,
    pub(crate) aside: Utf8PathBuf,
    pub(crate) owner: OwnerFile,
    pub(crate) moved_aside: Option<Utf8PathBuf>,
    pub(crate) cache: Vec<Pattern>,
    /// False while the claim can still be refused.
    pub(crate) is_claimed: bool,
    pub(crate) _lock: FileLock,
}

/// The extent of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Reset {
    /// Removes everything that the commit does not have, except declared caches, so that the files of one tree cannot
    /// influence another.
    #[default]
    Clean,
    /// Keeps all ignored files.
    Tracked,
    /// Removes everything that the commit does not have, as in a new lane.
    Pristine,
}

/// The outcome of [`Lane::save`].
#[derive(Debug)]
pub enum Saved {
    /// Every change was already in a commit.
    Nothing,
    /// This commit of the lane holds the work.
    Commit(String),
    /// The work could not be committed, so the checkout was moved aside unchanged and created anew.
    Aside {
        /// The new path of the old checkout; `None` if nothing was left to move.
        path: Option<Utf8PathBuf>,
        /// The failure in the old checkout.
        why: LaneError,
    },
}

/// The author and time of a commit, given as values so that the same change has the same id everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitSignature<'a> {
    /// The name of author and committer.
    pub name: &'a str,
    /// The address of author and committer.
    pub email: &'a str,
    /// The time in seconds since 1970, UTC.
    pub seconds: i64,
}

impl Lane {
    /// Returns the last note about the work in the checkout; `None` in a new one.
    ///
    /// The note lies beside the checkout, out of reach of the processes in it. A note that exists but cannot be read is
    /// an error, because then the owner of the work is unknown.
    pub fn owner(&self) -> io::Result<Option<Vec<u8>>> {
        self.owner.load()
    }

    /// Records the owner of the work in the checkout, in at most 4 KiB.
    pub fn set_owner(&self, note: &[u8]) -> io::Result<()> {
        self.owner.store(note)
    }

    /// Returns the path to which the claim moved a checkout that was no working repository any more, if it found one.
    ///
    /// Its content is unchanged, symbolic links included. The present checkout was created anew.
    pub fn moved_aside(&self) -> Option<&Utf8Path> {
        self.moved_aside.as_deref()
    }

    /// Returns the commit of the last reset; `None` in a lane that was never reset.
    pub fn base(&self) -> Result<Option<String>, LaneError> {
        let marker = self
            .record
            .marker()
            .map_err(|source| LaneError::Io { doing: "read the marker", source })?;
        Ok(marker.and_then(|marker| marker.base))
    }

    /// Makes tracked files equal to the commit and removes files that are neither tracked nor ignored.
    ///
    /// Files that the commit's own rules ignore stay, so build caches survive. Work in the checkout is lost unless it
    /// was [rescued](Self::rescue) before.
    pub fn reset(&self, base: &str) -> Result<(), LaneError> {
        self.reset_with(base, Reset::Tracked)
    }

    /// Like [`reset`](Self::reset), with the given treatment of ignored files.
    pub fn reset_with(&self, base: &str, what: Reset) -> Result<(), LaneError> {
        self.reset_files(base, what)?;
        self.stage.lend_memory(&self.room)
    }

    /// Resets the files and the driver's repository; the caller lends the checkout a new repository.
    fn reset_files(&self, base: &str, what: Reset) -> Result<(), LaneError> {
        let hydration = |source| LaneError::Io { doing: "note that the hydration is gone", source };
        let record = HydrationRecord::of(&self.record);
        // Hydrated files are removed too, so the stamp must say so before the first of them is gone.
        let clears_all = what != Reset::Tracked;
        if clears_all {
            record.doubt().map_err(hydration)?;
        }
        let spares = match what {
            Reset::Tracked => Spare::Ignored,
            Reset::Clean => Spare::Caches(&self.cache),
            Reset::Pristine => Spare::Nothing,
        };
        let _span = debug_span!("reset", lane = %self.path(), base).entered();
        debug!(spares = ?what, "begins");
        // Branches and stashes that a job made beside HEAD are work as well, and go with its repository.
        self.room.keep_tips()?;
        let repo = self.room.enter()?;
        let commit = history::find_commit(&repo, base)?;
        let tree = history::tree_of(&repo, commit)?;
        let before = history::head(&repo)?;
        let left = before
            .filter(|before| *before != commit)
            .map(|before| history::tree_of(&repo, before))
            .transpose()?;
        // Without a commit and a file nothing has to be compared or removed.
        if before.is_none() && self.place().is_fresh()? {
            checkout::fill(&repo, tree, &[self.place()], &|_, _| {})?;
        } else {
            checkout::reset(&repo, &self.room, &self.stage, tree, left, spares)?;
        }
        self.room
            // A `MERGE_HEAD` that a job left would make the next commit in the lane a merge.
            .forget_unfinished()
            .map_err(|source| LaneError::Io { doing: "forget unfinished work", source })?;
        if clears_all {
            record.forget().map_err(hydration)?;
        }
        // HEAD moves after the files. After a crash in between, the files differ from HEAD; a
        // `Workbench` does not take them for work, because the owner note says `clearing`.
        self.settle(&repo, commit, before)?;
        // After HEAD was detached from it. A branch that is left by a crash is in the marker, and
        // the next reset deletes it.
        self.drop_branch(&repo)?;
        debug!("done");
        Ok(())
    }

    /// Like [`reset_with`](Self::reset_with), with HEAD on a branch of the lane's own, so that tools find an ordinary
    /// checkout.
    ///
    /// The next reset and the removal of the lane delete the branch: in the lane's own repository, or in the primary's
    /// for a lane of [`LaneKind::Worktree`](crate::LaneKind::Worktree). Commits on it that are to stay must be kept
    /// before, as by [`rescue`](Self::rescue). An existing branch of this name that is not the lane's is never taken
    /// over.
    pub fn reset_on(&self, base: &str, branch: &str, what: Reset) -> Result<(), LaneError> {
        self.reset_files(base, what)?;
        if self.has_branch(branch)? {
            return Err(LaneError::BranchTaken { branch: branch.to_owned() });
        }
        // Recorded before the branch is created, so that a branch left by a crash is known as the lane's.
        self.record.update("note the branch", |marker| marker.branch = Some(branch.to_owned()))?;
        self.start_branch(branch)
    }

    /// Puts HEAD on a commit that is checked out, and records it as the base.
    pub(crate) fn settle(
        &self,
        repo: &gix::Repository,
        commit: ObjectId,
        before: Option<ObjectId>,
    ) -> Result<(), LaneError> {
        // Detached even if its commit is right: the branch of the lane is deleted next, and HEAD
        // must have left it.
        let attached =
            repo.head_name().map_err(|source| LaneError::objects("read HEAD", source))?.is_some();
        if attached || before != Some(commit) {
            history::move_ref(repo, "HEAD", commit, PreviousValue::Any, false)?;
        }
        // Not synced: if a power failure loses this, the only effect is an unnecessary rescue.
        self.record.update("note the base", |marker| marker.base = Some(commit.to_string()))
    }

    /// Keeps everything that a reset would lose, under `refs/pdca/rescue/<name>` of the lane: uncommitted files that
    /// are not ignored, and commits that the base does not have. Returns the commit that holds it; `None` if there was
    /// nothing.
    ///
    /// A number is appended to a name that is taken, and characters that a ref cannot have become `_`. Repositories
    /// inside the checkout cannot be committed; they are moved beside it, to `rescued/<name>/`.
    pub fn rescue(&self, name: &str) -> Result<Option<String>, LaneError> {
        let name = &history::ref_component(name);
        let repo = self.room.import()?;
        // After HEAD: what it names is known by now, and is kept under the name that was asked for.
        self.room.keep_tips()?;
        let Some(head) = self.head_or_base(&repo)? else {
            return Ok(None);
        };
        let (tree, nested) = self.snapshot(&repo)?;
        // After the snapshot, which leaves them out, and before a reset, which would remove them.
        checkout::move_aside(&self.room, &self.aside.join(name), &nested)?;
        let dirty = tree != history::tree_of(&repo, head)?;
        if !dirty && self.base_has(&repo, head)? {
            return Ok(None);
        }
        let commit = if dirty {
            // The time of the parent commit, so that rescuing the same files again gives the same commit.
            let by = CommitSignature {
                name: "pdca",
                email: "rescue@pdca.invalid",
                seconds: history::seconds_of(&repo, head),
            };
            history::write_commit(&repo, &format!("rescued: {name}\n"), tree, head, &by)?
        } else {
            head
        };
        history::keep_rescue(&repo, name, commit)?;
        Ok(Some(commit.to_string()))
    }

    /// Like [`rescue`](Self::rescue), but a lane whose own state makes that impossible is [renewed](Self::renew).
    pub fn save(&self, name: &str) -> Result<Saved, ClaimError> {
        match self.rescue(name) {
            Ok(None) => Ok(Saved::Nothing),
            Ok(Some(commit)) => Ok(Saved::Commit(commit)),
            Err(why) if why.is_of_the_lane() => Ok(Saved::Aside { path: self.renew()?, why }),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the commit that is checked out; `None` before the first reset. If HEAD was left on a branch without a
    /// commit, puts it back on the base, so that the files count as changes.
    fn head_or_base(&self, repo: &gix::Repository) -> Result<Option<ObjectId>, LaneError> {
        if let Some(head) = history::head(repo)? {
            return Ok(Some(head));
        }
        let Some(base) = self.base()? else { return Ok(None) };
        let base = history::find_commit(repo, &base)?;
        history::move_ref(repo, "HEAD", base, PreviousValue::Any, false)?;
        Ok(Some(base))
    }

    /// Returns true if the base has `commit` in its history.
    fn base_has(&self, repo: &gix::Repository, commit: ObjectId) -> Result<bool, LaneError> {
        let Some(base) = self.base()? else {
            return Ok(false);
        };
        let base = history::find_commit(repo, &base)?;
        // An error counts as no: an unnecessary rescue costs a ref, and a missing one costs the
        // commits.
        Ok(base == commit
            || repo
                .merge_base(base, commit)
                .is_ok_and(|common| common.is_some_and(|common| common == commit)))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // A lane that was refused is left as it is: a new stamp would hide what somebody changed there before.
        if self.is_claimed {
            // While the lock is held: fields are dropped after this.
            ReleaseStamp::write(&self.record);
        }
    }
}

impl Deref for Lane {
    type Target = WorkTree;

    fn deref(&self) -> &WorkTree {
        &self.work
    }
}
