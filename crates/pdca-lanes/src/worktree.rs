//! A lane as a linked worktree: how the primary knows of it.
//!
//! The registration is a directory of the primary's repository, `worktrees/<name>`, that names
//! the checkout, and the `.git` of the checkout is a file that names the registration. A copy of
//! the checkout would name it too, so only the registration is believed about whose it is.

use std::{
    fs::TryLockError,
    io,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{
    bstr::{BStr, ByteSlice as _},
    worktree::add::Head,
};
use pdca_state::files;

use crate::failure::LaneError;

/// Why git may not prune a lane whose directory it does not see at the moment.
pub(crate) const REASON: &str = "a lane of pdca; remove it with pdca";

/// How long others may take to register theirs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What HEAD names before the first reset: a branch that nobody makes.
pub(crate) const NOTHING: &[u8] = b"ref: refs/heads/pdca/nothing-checked-out\n";

/// The registration of a checkout in the primary with this common directory, if there is one.
pub(crate) fn find(common: &Utf8Path, checkout: &Utf8Path) -> io::Result<Option<Utf8PathBuf>> {
    let all = match common.join("worktrees").read_dir_utf8() {
        Ok(all) => all,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err),
    };
    let named = back(checkout);
    for registered in all {
        let path = registered?.into_path();
        match fs::read(path.join("gitdir")) {
            Ok(text) if text.trim() == named.trim() => return Ok(Some(path)),
            // Someone else's, or half made, or no registration at all.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// What a registration says about where its checkout is.
pub(crate) fn back(checkout: &Utf8Path) -> Vec<u8> {
    format!("{checkout}/.git\n").into_bytes()
}

/// What the `.git` of a checkout says about where its registration is.
pub(crate) fn forth(git_dir: &Utf8Path) -> Vec<u8> {
    format!("gitdir: {git_dir}\n").into_bytes()
}

/// Registers a checkout, with nothing checked out, and locks it.
///
/// One at a time for all lanes beside one another: whoever registers reads all registrations,
/// and one that is half made is an error to it.
pub(crate) fn register(
    primary: &gix::Repository,
    checkout: &Utf8Path,
    turn: &Utf8Path,
) -> Result<Utf8PathBuf, LaneError> {
    let failed = |source| LaneError::objects("register a worktree", source);
    let io_failed = |source| LaneError::Io { doing: "register a worktree", source };
    let turn = fs::File::create(turn).map_err(io_failed)?;
    take_turn(turn.file()).map_err(io_failed)?;
    let commit = any_commit(primary).map_err(failed)?;
    let head = Head::Detached(commit);
    let running = AtomicBool::new(false);
    let prepared =
        primary.prepare_add_worktree(checkout.as_std_path(), head, &running).map_err(failed)?;
    let made = prepared.persist().map_err(failed)?;
    let git_dir = Utf8PathBuf::from_path_buf(made.git_dir().to_owned())
        .map_err(|_| LaneError::Path { path: checkout.to_owned() })?;
    let name = git_dir.file_name().unwrap_or_default();
    let proxy = primary.worktree_proxy_by_id(BStr::new(name));
    if let Some(proxy) = proxy.map_err(failed)? {
        proxy.set_lock(Some(BStr::new(REASON))).map_err(failed)?;
    }
    files::replace_unsynced(git_dir.join("HEAD"), NOTHING).map_err(io_failed)?;
    Ok(git_dir)
}

/// Waits until nobody else registers, which takes a moment, and not for ever.
fn take_turn(turn: &std::fs::File) -> io::Result<()> {
    let since = Instant::now();
    loop {
        match turn.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
            Err(TryLockError::Error(err)) => return Err(err),
        }
    }
}

/// Removes a registration. What HEAD was at must be kept by a ref before.
pub(crate) fn forget(git_dir: &Utf8Path) -> io::Result<()> {
    fs::remove_dir_all(git_dir)?;
    match git_dir.parent() {
        // As git does with the last one.
        Some(all) if fs::read_dir(all)?.next().is_none() => fs::remove_dir(all),
        Some(_) | None => Ok(()),
    }
}

/// gix registers no worktree without a commit, so it gets one for a moment.
fn any_commit(primary: &gix::Repository) -> gix::Result<gix::ObjectId> {
    if let Ok(head) = primary.head_commit() {
        return Ok(head.id);
    }
    let refs = primary.references()?;
    for branch in refs.local_branches()?.chain(refs.remote_branches()?) {
        if let Ok(commit) = branch.map_err(gix::Error::from_error)?.peel_to_commit() {
            return Ok(commit.id);
        }
    }
    Ok(primary.head_commit()?.id)
}
