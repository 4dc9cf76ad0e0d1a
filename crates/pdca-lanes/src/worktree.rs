//! A lane as a linked worktree: how the primary knows of it.
//!
//! The registration is a directory of the primary's repository, `worktrees/<name>`, that names
//! the checkout, and the `.git` of the checkout is a file that names the registration. A copy of
//! the checkout would name it too, so only the registration is believed about whose it is.

use std::{
    fs::TryLockError,
    io,
    time::{Duration, Instant},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use pdca_state::files;

use crate::{failure::LaneError, history};

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
/// 1. The turn: the primary's common directory is locked, so that two of us, from whichever root,
///    do not choose the same name. Nothing is written for it.
/// 2. A directory of a free name is made. Registrations of others are not read, so one that somebody
///    left half made, or is making just now, is no obstacle.
/// 3. Its files are written, `gitdir` after what git needs to work there: only by that file is a
///    registration found again, and without it git may prune what a crash left.
pub(crate) fn register(common: &Utf8Path, checkout: &Utf8Path) -> Result<Utf8PathBuf, LaneError> {
    let registered = || -> io::Result<Utf8PathBuf> {
        let _turn = take_turn(common)?;
        let git_dir = free_name(&common.join("worktrees"), checkout)?;
        fs::write(git_dir.join("HEAD"), NOTHING)?;
        fs::write(git_dir.join("commondir"), b"../..\n")?;
        files::replace_unsynced(git_dir.join("gitdir"), &back(checkout))?;
        fs::write(git_dir.join("locked"), format!("{REASON}\n"))?;
        fs::create_dir_all(checkout)?;
        files::replace_unsynced(checkout.join(".git"), &forth(&git_dir))?;
        Ok(git_dir)
    };
    registered().map_err(|source| LaneError::Io { doing: "register a worktree", source })
}

/// Makes a directory for a registration, named for the checkout as git does it.
fn free_name(all: &Utf8Path, checkout: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let name = history::ref_component(checkout.file_name().unwrap_or_default());
    for number in 0_u32.. {
        let name = if number == 0 { name.clone() } else { format!("{name}{number}") };
        let path = all.join(name);
        // git removes the directory above with the last registration in it.
        fs::create_dir_all(all)?;
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Waits until none of us registers a worktree of this repository, which takes a moment, and not for
/// ever.
fn take_turn(common: &Utf8Path) -> io::Result<std::fs::File> {
    let turn = fs::File::open(common)?.into_parts().0;
    let since = Instant::now();
    loop {
        match turn.try_lock() {
            Ok(()) => return Ok(turn),
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
    // As git does with the last one. Somebody may register another at this moment.
    let Some(all) = git_dir.parent() else { return Ok(()) };
    match fs::remove_dir(all) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty
                    | io::ErrorKind::NotFound
                    | io::ErrorKind::AlreadyExists
            ) =>
        {
            Err(error)
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
