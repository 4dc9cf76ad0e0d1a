//! Removing a lane without losing work that is neither landed nor rescued.
//!
//! A lane is a repository of its own, so its rescue refs would go with it. Everything in it that the primary does not
//! have is therefore first written into a bundle under `<root>/rescued/`, a file from which `git fetch` can read. Every
//! step may be the last one before a crash, and the next call continues from there:
//!
//! 1. Claim the slot and commit uncommitted work to a rescue ref.
//! 2. Write and sync the bundle, then rename it into place: it is complete before anything is deleted.
//! 3. Rename the checkout to `<target>.removed`: from now on the lane has no checkout, and a claim would create one.
//! 4. Delete the renamed checkout, then the other files of the lane, and the marker last: as long as it exists, the
//!    next call knows that something may be left.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_state::files;
use thiserror::Error;

use crate::{
    claim::{ClaimError, Lanes, MARKER, OWNER, RESCUED},
    dir,
    failure::LaneError,
    history,
    hydrate::HYDRATION,
    idle::RELEASED,
    inspect::{LaneReport, LaneState},
    lane::{Lane, Saved},
    marker::{LaneRecord, Marker},
    names::TMP,
    provision::LaneKind,
    room::{LENT, REPOSITORY},
    stage::{ATTRIBUTES, INDEX, NEW_INDEX},
    target::{Target, open_repository},
    worktree,
};

/// The suffix of a checkout that is being removed.
pub(crate) const REMOVED: &str = ".removed";

/// The result of removing a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The former path of the checkout.
    pub path: Utf8PathBuf,
    /// The commit with uncommitted or unlanded work, if there was any. It is in the bundle; for a linked worktree it is
    /// in the primary itself, under a rescue ref.
    pub rescued: Option<String>,
    /// The work that the primary does not have.
    pub kept: Option<RescuedWork>,
    /// The path to which the claim moved a broken checkout unchanged.
    pub moved_aside: Option<Utf8PathBuf>,
}

/// A completed step of a removal. A crash may happen between any two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalStep {
    /// Uncommitted work is in a commit.
    Rescued,
    /// Work that the primary does not have is in a bundle.
    Kept,
    /// The checkout was renamed.
    Renamed,
    /// The checkout was deleted.
    Cleared,
    /// One of the files beside it was deleted.
    Left,
}

/// Work that was kept when its lane was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RescuedWork {
    /// The path of the bundle.
    pub bundle: Utf8PathBuf,
    /// The refs in the bundle.
    pub refs: Vec<String>,
}

/// Failure to remove a lane. No work is lost; a second call continues.
#[derive(Debug, Error)]
pub enum RemoveError {
    /// There is no such lane.
    #[error("there is no lane {slot} of {target}")]
    NoSuchLane {
        /// The slot number.
        slot: u32,
        /// The name of the target.
        target: String,
    },
    /// The lane could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The work in it could not be kept.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// An operation of the system failed.
    #[error("cannot {doing} {path}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path it was applied to.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl Lanes {
    /// Removes the lane of a target in a slot. Work that the primary does not have is kept in a bundle.
    ///
    /// Files that were [rescued](Lane::rescue) beside the checkout stay where they are.
    pub fn remove(&self, slot: u32, target: &Target) -> Result<Removed, RemoveError> {
        self.remove_told(slot, target, &|_| ())
    }

    /// Like [`remove`](Self::remove), and calls `tell` after each step. In a test `tell` may not return.
    pub fn remove_told(
        &self,
        slot: u32,
        target: &Target,
        tell: &dyn Fn(RemovalStep),
    ) -> Result<Removed, RemoveError> {
        let record = LaneRecord::new(&self.slot_dir(slot), target.name());
        let path = record.checkout_path();
        let left = Utf8PathBuf::from(format!("{path}{REMOVED}"));
        let marker = record.marker_path();
        let known = Marker::load(&marker).map_err(failed("read", &marker))?;
        // Without a marker only a leftover of a removal may be deleted: nothing else says that it
        // is ours.
        let Some(known) = known else {
            let finished = self.finish_removal(slot, target, path, &left)?;
            tell(RemovalStep::Cleared);
            return Ok(finished);
        };
        // Also after a crash behind the rename. The claim then creates an empty checkout, so that
        // the rest of the removal is always the same.
        let lane = self.clone().of_kind(known.kind).claim(slot, target)?;
        let (rescued, aside) = match lane.save(&format!("lane-{slot}"))? {
            Saved::Nothing => (None, None),
            Saved::Commit(commit) => (Some(commit), None),
            Saved::Aside { path, why: _ } => (None, path),
        };
        tell(RemovalStep::Rescued);
        let kept = lane.keep(slot, self.root(), target)?;
        tell(RemovalStep::Kept);
        let moved_aside = aside.or_else(|| lane.moved_aside().map(Utf8Path::to_owned));
        // What an earlier removal left; the rename needs the name.
        dir::remove_at(&left).map_err(failed("remove", &left))?;
        lane.leave(&left, tell)?;
        Ok(Removed { path, rescued, kept, moved_aside })
    }

    /// Returns true if removing a lane would have to keep work; `None` if that cannot be determined. Changes nothing.
    pub fn has_work(&self, lane: &LaneReport, target: &Target) -> Option<bool> {
        if lane.dirty == Some(true) {
            return Some(true);
        }
        if lane.head.is_none() {
            let untouched = lane.base.is_none() && lane.state == LaneState::Ready;
            return untouched.then_some(false);
        }
        match lane.kind {
            LaneKind::Reference if has_unlanded(&lane.repository(), target).ok()? => Some(true),
            LaneKind::Reference | LaneKind::Worktree => lane.dirty,
        }
    }

    /// Completes an interrupted removal; fails if there is none.
    fn finish_removal(
        &self,
        slot: u32,
        target: &Target,
        path: Utf8PathBuf,
        left: &Utf8Path,
    ) -> Result<Removed, RemoveError> {
        if fs::symlink_metadata(left).is_err() {
            return Err(RemoveError::NoSuchLane { slot, target: target.name().to_owned() });
        }
        let _lock = self.take_slot(slot)?;
        dir::remove_at(left).map_err(failed("remove", left))?;
        Ok(Removed { path, rescued: None, kept: None, moved_aside: None })
    }
}

impl Lane {
    /// Writes everything that the primary does not have into a bundle, if there is anything.
    fn keep(
        &self,
        slot: u32,
        root: &Utf8Path,
        target: &Target,
    ) -> Result<Option<RescuedWork>, RemoveError> {
        match self.kind() {
            LaneKind::Reference => {}
            // Its refs are in the primary and stay there.
            LaneKind::Worktree => return Ok(None),
        }
        let repo = self.room.enter()?;
        if history::head(&repo)?.is_none() {
            return Ok(None);
        }
        let have = tips(target)?;
        let rescued = root.join(RESCUED);
        fs::create_dir_all(&rescued).map_err(failed("make", &rescued))?;
        let scratch = rescued.join(format!(".{}-lane-{slot}.bundle.new", self.record.target()));
        // Left by a crash; git refuses to write a bundle whose lock file exists.
        for stale in [scratch.clone(), Utf8PathBuf::from(format!("{scratch}.lock"))] {
            dir::remove_at(&stale).map_err(failed("remove", &stale))?;
        }
        let Some(refs) = self.git().bundle(&scratch, &have)? else {
            return Ok(None);
        };
        // Named after its content, so that the same work is kept once.
        let digest = pdca_state::sha256_hex(refs.join("\n").as_bytes());
        let name = format!("{}-lane-{slot}-{}.bundle", self.record.target(), &digest[..12]);
        let bundle = rescued.join(name);
        let put = || -> io::Result<()> {
            // On disk before the caller deletes the only other copy of the work, the name as well.
            fs::File::open(&scratch)?.sync_all()?;
            fs::rename(&scratch, &bundle)?;
            pdca_state::files::sync_dir(&rescued)
        };
        put().map_err(failed("keep", &bundle))?;
        Ok(Some(RescuedWork { bundle, refs }))
    }

    /// Removes the checkout and everything that belongs to it. The lock file stays.
    fn leave(self, left: &Utf8Path, tell: &dyn Fn(RemovalStep)) -> Result<(), RemoveError> {
        if self.kind() == LaneKind::Worktree {
            // Its commits are rescued, and the branch would remain in the user's repository.
            self.drop_branch(&self.room.enter()?)?;
        }
        // One step instead of many: half a deleted checkout under its own name would be taken for a
        // broken lane and moved to `rescued/`.
        fs::rename(self.path(), left).map_err(failed("rename", self.path()))?;
        tell(RemovalStep::Renamed);
        if self.kind() == LaneKind::Worktree {
            let registered = self.room.git_dir();
            worktree::forget(&registered).map_err(failed("remove", &registered))?;
        }
        dir::remove_at(left).map_err(failed("remove", left))?;
        tell(RemovalStep::Cleared);
        let slot = self.record.slot_dir();
        files::clear_abandoned(slot).map_err(failed("clear", slot))?;
        // The marker last: while it exists, the next call knows that something may be left.
        for end in [
            OWNER, RELEASED, INDEX, NEW_INDEX, ATTRIBUTES, HYDRATION, TMP, LENT, REPOSITORY, MARKER,
        ] {
            let path = self.record.beside(end);
            dir::remove_at(&path).map_err(failed("remove", &path))?;
            tell(RemovalStep::Left);
        }
        Ok(())
    }
}

/// Returns true if HEAD or a ref of the lane has history that the primary's refs do not have.
fn has_unlanded(repository: &Utf8Path, target: &Target) -> Result<bool, LaneError> {
    let unreadable = |source| LaneError::objects("read the refs of the lane", source);
    let repo = open_repository(repository).map_err(unreadable)?.to_thread_local();
    let mut ours = Vec::new();
    let refs = repo.references().map_err(unreadable)?;
    for found in refs.all().map_err(unreadable)? {
        let own = found.ok().filter(|found| !found.name().as_bstr().starts_with(b"refs/remotes/"));
        ours.extend(own.and_then(|mut own| own.peel_to_id().ok()).map(gix::Id::detach));
    }
    ours.extend(history::head(&repo)?);
    let have = tips(target)?;
    let have = have.iter().filter_map(|id| gix::ObjectId::from_hex(id.as_bytes()).ok());
    let is_commit = |id: &gix::ObjectId| repo.find_commit(*id).is_ok();
    let have: Vec<_> = have.filter(is_commit).collect();
    let mut walk = repo
        .rev_walk(ours.into_iter().filter(|id| is_commit(id) && !have.contains(id)))
        .with_hidden(have.iter().copied())
        .all()
        .map_err(unreadable)?;
    Ok(walk.next().is_some())
}

/// Returns the commits that the primary's refs name.
fn tips(target: &Target) -> Result<Vec<String>, LaneError> {
    let repo = target.repository();
    let unreadable = |source| LaneError::objects("read the refs of the primary", source);
    let refs = repo.references().map_err(unreadable)?;
    let mut tips = Vec::new();
    for found in refs.all().map_err(unreadable)? {
        let Ok(mut found) = found else { continue };
        // The object of an annotated tag is named by the ref as well.
        let named = found.try_id().map(gix::Id::detach);
        let Ok(peeled) = found.peel_to_id() else { continue };
        let ids = || named.into_iter().chain([peeled.detach()]);
        // A ref to a missing object holds nothing, and git fails for an object that it does not have. Looked at also
        // after peeling: a packed ref says by itself what its tag leads to.
        if ids().all(|id| repo.has_object(id)) {
            tips.extend(ids().map(|id| id.to_string()));
        }
    }
    let head = repo.head_id().ok().map(gix::Id::detach);
    tips.extend(head.filter(|id| repo.has_object(id)).map(|id| id.to_string()));
    tips.sort_unstable();
    tips.dedup();
    Ok(tips)
}

fn failed<'a>(
    doing: &'static str,
    path: &'a Utf8Path,
) -> impl FnOnce(io::Error) -> RemoveError + use<'a> {
    move |source| RemoveError::Io { doing, path: path.to_owned(), source }
}
