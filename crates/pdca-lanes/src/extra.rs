//! Additional checkouts beside that of a lane: worktrees of the lane's own repository.

use std::{io, sync::atomic::AtomicBool};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{bstr::BStr, worktree::add::Head};

use crate::{
    checkout, dir,
    failure::LaneError,
    history,
    lane::Lane,
    marker::LaneRecord,
    room::CheckoutRepository,
    worktree::{self, REASON},
};

/// The suffix of the directory of additional checkouts of a target.
pub(crate) const EXTRA: &str = ".trees";

impl Lane {
    /// Creates an additional checkout of a commit, detached, in `<target>.trees/<name>` of the slot.
    ///
    /// It is a worktree of the lane's own repository: its commits are in the lane, and nothing of it is in the primary
    /// unless the lane itself is a worktree of the primary.
    pub fn add_worktree(&self, name: &str, commit: &str) -> Result<Utf8PathBuf, LaneError> {
        let place = extra_path(&self.record, name)?;
        let repo = self.room.enter()?;
        let commit = history::find_commit(&repo, commit)?;
        checkout::refuse_attributes(&repo, history::tree_of(&repo, commit)?)?;
        if fs::symlink_metadata(&place).is_ok() {
            return Err(LaneError::NotEmpty { path: place });
        }
        forget_extra(&self.room, &place)?;
        let failed = |source| LaneError::objects("add a worktree", source);
        let running = AtomicBool::new(false);
        let (made, outcome) = repo
            .add_worktree(
                place.as_std_path(),
                Head::Detached(commit),
                gix::progress::Discard,
                &running,
            )
            .map_err(failed)?;
        if let Some(lost) = outcome.collisions.first() {
            return Err(LaneError::NotWritten { path: lost.path.to_string() });
        }
        let id = made.git_dir().file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        if let Some(proxy) = repo.worktree_proxy_by_id(BStr::new(id)).map_err(failed)? {
            proxy.set_lock(Some(BStr::new(REASON))).map_err(failed)?;
        }
        Ok(place)
    }

    /// Removes an additional checkout. Returns true if it existed. Work in it is lost.
    pub fn remove_worktree(&self, name: &str) -> Result<bool, LaneError> {
        let place = extra_path(&self.record, name)?;
        let there = dir::remove_at(&place)
            .map_err(|source| LaneError::Io { doing: "remove a worktree", source })?;
        forget_extra(&self.room, &place)?;
        Ok(there)
    }
}

fn extra_path(record: &LaneRecord, name: &str) -> Result<Utf8PathBuf, LaneError> {
    let bad = || LaneError::Name { name: name.to_owned() };
    if history::ref_component(name) != name || name.starts_with('-') {
        return Err(bad());
    }
    let failed = |source| LaneError::Io { doing: "make a directory", source };
    // git registers worktrees by their real path.
    let all = record.slot_dir().canonicalize_utf8().map_err(failed)?;
    let all = all.join(format!("{}{EXTRA}", record.target()));
    match fs::create_dir(&all) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed(source));
        }
        Ok(()) | Err(_) => {}
    }
    if !fs::symlink_metadata(&all).map_err(failed)?.is_dir() {
        return Err(LaneError::Damaged { path: all, why: "is not a directory" });
    }
    Ok(all.join(name))
}

/// Removes the registration of a checkout that is gone.
fn forget_extra(room: &CheckoutRepository, place: &Utf8Path) -> Result<(), LaneError> {
    let forgotten = || -> io::Result<()> {
        match worktree::find(&room.common_dir(), place)? {
            Some(git_dir) => worktree::forget(&git_dir),
            None => Ok(()),
        }
    };
    forgotten().map_err(|source| LaneError::Io { doing: "forget a worktree", source })
}
