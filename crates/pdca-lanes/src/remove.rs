//! A lane removed, with nothing lost that is not landed or rescued.
//!
//! A lane is a repository of its own, so its rescue refs go with it. Everything in it that the
//! primary does not have is therefore written into a bundle under `<root>/rescued/` first: a file
//! that `git fetch` reads like a remote. The steps, each of which may be the last one before a
//! crash and is found by whoever comes next:
//!
//! 1. the slot is taken, and what is uncommitted is committed to a rescue ref;
//! 2. the bundle appears, whole and synced;
//! 3. the checkout is renamed to `<target>.removed`: from now on the lane has none;
//! 4. what was renamed goes, then what else belongs to the lane, and the marker last.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use pdca_state::files;
use thiserror::Error;

use crate::{
    claim::{ClaimError, Lanes, MARKER, OWNER, RESCUED},
    dir,
    extra::EXTRA,
    failure::LaneError,
    history,
    hydrate::HYDRATION,
    inspect::{LaneReport, LaneState},
    lane::{Lane, Saved},
    marker::Marker,
    names::TMP,
    provision::LaneKind,
    stage::{ATTRIBUTES, INDEX, NEW_INDEX},
    target::{Target, open_repository},
    worktree,
};

/// What follows the name of the target in the name of a checkout that is being removed.
pub(crate) const REMOVED: &str = ".removed";
/// The longest list of stashes that is read; what runs in a lane can write it.
const LARGEST_LOG: u64 = 16 << 20;

/// A lane that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Where the checkout was.
    pub path: Utf8PathBuf,
    /// The commit that holds what was uncommitted or unlanded, if there was any. It is in the
    /// bundle; of a linked worktree it is in the primary itself, as a rescue ref.
    pub rescued: Option<String>,
    /// What was in it that the primary does not have.
    pub kept: Option<RescuedWork>,
    /// Where the claim moved a checkout that was broken; it is there as it was.
    pub moved_aside: Option<Utf8PathBuf>,
}

/// A step of a removal that is done. Between any two of them it may be cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalStep {
    /// What was uncommitted is a commit.
    Rescued,
    /// What the primary does not have is in a bundle.
    Kept,
    /// The checkout has the name of one that goes.
    Renamed,
    /// The checkout is gone.
    Cleared,
    /// One of the files beside it is gone.
    Left,
}

/// Work that outlives its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RescuedWork {
    /// The bundle.
    pub bundle: Utf8PathBuf,
    /// The refs in the bundle.
    pub refs: Vec<String>,
}

/// Why a lane was not removed. It is there as it was, and nothing in it is lost.
#[derive(Debug, Error)]
pub enum RemoveError {
    /// There is no such lane.
    #[error("there is no lane {slot} of {target}")]
    NoSuchLane {
        /// The slot.
        slot: u32,
        /// The target.
        target: String,
    },
    /// Further checkouts were made in the lane, which may have work in them.
    #[error("lane {slot} has further checkouts in {path}")]
    Extra {
        /// The slot.
        slot: u32,
        /// Where they are.
        path: Utf8PathBuf,
    },
    /// The lane could not be taken.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// What is in it could not be kept.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The system would not.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Lanes {
    /// Removes the lane of a target in a slot; what is not in the primary is kept in a bundle.
    ///
    /// What was [rescued](Lane::rescue) beside the checkout stays where it is.
    pub fn remove(&self, slot: u32, target: &Target) -> Result<Removed, RemoveError> {
        self.remove_told(slot, target, &|_| ())
    }

    /// The same, and says each step when it is done; a test's listener may not return.
    pub fn remove_told(
        &self,
        slot: u32,
        target: &Target,
        tell: &dyn Fn(RemovalStep),
    ) -> Result<Removed, RemoveError> {
        let path = self.checkout_path(slot, target);
        let left = Utf8PathBuf::from(format!("{path}{REMOVED}"));
        let marker = self.marker_path(slot, target);
        let known = Marker::load(&marker).map_err(failed("read", &marker))?;
        let Some(known) = known else {
            let finished = self.finish_removal(slot, target, path, &left)?;
            tell(RemovalStep::Cleared);
            return Ok(finished);
        };
        let lane = self.clone().of_kind(known.kind).claim(slot, target)?;
        let extra = self.slot_path(slot).join(format!("{}{EXTRA}", target.name()));
        if fs::read_dir(&extra).is_ok_and(|mut all| all.next().is_some()) {
            return Err(RemoveError::Extra { slot, path: extra });
        }
        let (rescued, aside) = match lane.save(&format!("lane-{slot}"))? {
            Saved::Nothing => (None, None),
            Saved::Commit(commit) => (Some(commit), None),
            Saved::Aside { path, why: _ } => (None, path),
        };
        tell(RemovalStep::Rescued);
        let kept = lane.keep(slot, self.root(), target)?;
        tell(RemovalStep::Kept);
        let moved_aside = aside.or_else(|| lane.moved_aside().map(Utf8Path::to_owned));
        dir::remove_at(&left).map_err(failed("remove", &left))?;
        lane.leave(&left, tell)?;
        Ok(Removed { path, rescued, kept, moved_aside })
    }

    /// Whether removing a lane would keep anything; none where looking cannot tell. Nothing is
    /// changed.
    pub fn has_work(&self, lane: &LaneReport, target: &Target) -> Option<bool> {
        if lane.dirty == Some(true) {
            return Some(true);
        }
        if lane.head.is_none() {
            let untouched = lane.base.is_none() && lane.state == LaneState::Ready;
            return untouched.then_some(false);
        }
        match lane.kind {
            LaneKind::Reference if has_unlanded(&lane.path, target).ok()? => Some(true),
            LaneKind::Reference | LaneKind::Worktree => lane.dirty,
        }
    }

    /// Removes what an interrupted removal left; without any there was no lane.
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
    /// Writes what the primary does not have into a bundle, if there is anything.
    fn keep(
        &self,
        slot: u32,
        root: &Utf8Path,
        target: &Target,
    ) -> Result<Option<RescuedWork>, RemoveError> {
        match self.kind() {
            LaneKind::Reference => {}
            // Its refs are the primary's, and stay.
            LaneKind::Worktree => return Ok(None),
        }
        let repo = self.room.enter()?;
        if history::head(&repo)?.is_none() {
            return Ok(None);
        }
        self.keep_stashes(&repo)?;
        let have = tips(target)?;
        let rescued = root.join(RESCUED);
        fs::create_dir_all(&rescued).map_err(failed("make", &rescued))?;
        let scratch = rescued.join(format!(".{}-lane-{slot}.bundle.new", self.target_name()));
        for stale in [scratch.clone(), Utf8PathBuf::from(format!("{scratch}.lock"))] {
            dir::remove_at(&stale).map_err(failed("remove", &stale))?;
        }
        let Some(refs) = self.git().bundle(&scratch, &have)? else {
            return Ok(None);
        };
        // Its name says what is in it, so that the same work is kept once.
        let digest = pdca_state::sha256_hex(refs.join("\n").as_bytes());
        let name = format!("{}-lane-{slot}-{}.bundle", self.target_name(), &digest[..12]);
        let bundle = rescued.join(name);
        let put = || -> io::Result<()> {
            fs::File::open(&scratch)?.sync_all()?;
            fs::rename(&scratch, &bundle)?;
            fs::File::open(&rescued)?.sync_all()
        };
        put().map_err(failed("keep", &bundle))?;
        Ok(Some(RescuedWork { bundle, refs }))
    }

    /// Gives every stash a ref, because a bundle has refs and a stash below the first has none.
    fn keep_stashes(&self, repo: &gix::Repository) -> Result<(), RemoveError> {
        let path = self.room.git_dir().join("logs/refs/stash");
        let log = files::read_bounded(&path, LARGEST_LOG)
            .map_err(|source| failed("read", &path)(io::Error::other(source)))?
            .unwrap_or_default();
        for line in log.lines() {
            let id = line.fields().nth(1).unwrap_or_default();
            // One that cannot be read any more can be kept by nobody.
            if let Ok(id) = history::find_commit(repo, &id.to_str_lossy()) {
                history::keep_rescue(repo, "stash", id)?;
            }
        }
        Ok(())
    }

    /// Removes the checkout and all that belongs to it; the lock stays, and is given back.
    fn leave(self, left: &Utf8Path, tell: &dyn Fn(RemovalStep)) -> Result<(), RemoveError> {
        if self.kind() == LaneKind::Worktree {
            // What was on it is rescued; in the primary it would be in everybody's way.
            self.drop_branch(&self.room.enter()?)?;
        }
        fs::rename(self.path(), left).map_err(failed("rename", self.path()))?;
        tell(RemovalStep::Renamed);
        if self.kind() == LaneKind::Worktree {
            let registered = self.room.git_dir();
            worktree::forget(&registered).map_err(failed("remove", &registered))?;
        }
        dir::remove_at(left).map_err(failed("remove", left))?;
        tell(RemovalStep::Cleared);
        let slot = self.slot_dir();
        files::clear_abandoned(slot).map_err(failed("clear", slot))?;
        // The marker last: while it is there, whoever comes next knows that something may be left.
        for end in [OWNER, INDEX, NEW_INDEX, ATTRIBUTES, HYDRATION, TMP, EXTRA, MARKER] {
            let path = self.slot_dir().join(format!("{}{end}", self.target_name()));
            dir::remove_at(&path).map_err(failed("remove", &path))?;
            tell(RemovalStep::Left);
        }
        Ok(())
    }
}

/// Whether a ref of the lane, or its HEAD, has history that the primary's refs do not.
fn has_unlanded(checkout: &Utf8Path, target: &Target) -> Result<bool, LaneError> {
    let unreadable = |source| LaneError::objects("read the refs of the lane", source);
    let repo = open_repository(checkout).map_err(unreadable)?.to_thread_local();
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

/// The commits that the primary's refs name.
fn tips(target: &Target) -> Result<Vec<String>, LaneError> {
    let repo = target.repository();
    let unreadable = |source| LaneError::objects("read the refs of the primary", source);
    let refs = repo.references().map_err(unreadable)?;
    let mut tips = Vec::new();
    for found in refs.all().map_err(unreadable)? {
        let Ok(mut found) = found else { continue };
        // A tag is an object of its own, and is there as well.
        tips.extend(found.try_id().map(|id| id.to_string()));
        // A ref that leads nowhere holds nothing.
        if let Ok(id) = found.peel_to_id() {
            tips.push(id.to_string());
        }
    }
    tips.extend(repo.head_id().ok().map(|id| id.to_string()));
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
