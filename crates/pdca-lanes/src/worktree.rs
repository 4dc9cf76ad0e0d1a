//! Registering a lane as a linked worktree of the primary.
//!
//! The registration is the directory `worktrees/<name>` of the primary's repository, which names the checkout. The
//! `.git` of the checkout is a file that names the registration. A copy of the checkout would name it too, so only the
//! registration is trusted.

use std::{
    io,
    time::{Duration, Instant},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use pdca_process::{FileLock, FileLockError};
use pdca_state::files;

use crate::{failure::LaneError, history};

/// The lock reason that keeps git from pruning a lane whose directory is temporarily missing.
pub(crate) const REASON: &str = "a lane of pdca; remove it with pdca";

/// The longest wait for other processes that register a worktree. A registration is a few files, so
/// a longer wait means that one of them hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The content of HEAD before the first reset: a branch that never exists.
pub(crate) const NOTHING: &[u8] = b"ref: refs/heads/pdca/nothing-checked-out\n";

/// Finds the registration of a checkout in the primary with this common directory.
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
            // Another worktree, an incomplete registration, or some other directory.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Returns the content of `gitdir` in a registration, which names the checkout.
pub(crate) fn back(checkout: &Utf8Path) -> Vec<u8> {
    format!("{checkout}/.git\n").into_bytes()
}

/// Returns the content of `.git` in a checkout, which names the registration.
pub(crate) fn forth(git_dir: &Utf8Path) -> Vec<u8> {
    format!("gitdir: {git_dir}\n").into_bytes()
}

/// Registers a checkout, with nothing checked out, and locks it against pruning.
///
/// 1. Take the turn in the primary's common directory, so that two lanes never choose the same name. Nothing is left of
///    it.
/// 2. Create a directory of a free name. Other registrations are not read, so an incomplete one is no obstacle.
/// 3. Write its files, `gitdir` after those that git needs to work there: a registration is found only by that file,
///    and git may prune one without it after a crash.
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

/// Creates a directory for a registration, named after the checkout as git does it.
fn free_name(all: &Utf8Path, checkout: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let name = history::ref_component(checkout.file_name().unwrap_or_default());
    for number in 0_u32.. {
        let name = if number == 0 { name.clone() } else { format!("{name}{number}") };
        let path = all.join(name);
        // git removes the parent directory together with the last registration in it, possibly at this moment.
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

/// Waits, with a limit, until no other lane is being registered in this repository.
fn take_turn(common: &Utf8Path) -> io::Result<FileLock> {
    // Not a lock on the directory itself, which a process that can only read it could hold.
    let turn = common.join("pdca-worktrees.lock");
    let since = Instant::now();
    loop {
        match FileLock::take(&turn, "") {
            // No file of ours stays in the user's repository for it.
            Ok(taken) => return Ok(taken.transient()),
            Err(FileLockError::Held { .. }) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(FileLockError::Held { .. }) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes a registration. The commit of its HEAD must be kept by a ref before.
pub(crate) fn forget(git_dir: &Utf8Path) -> io::Result<()> {
    fs::remove_dir_all(git_dir)?;
    // As git does with the last one. It fails if another worktree was registered meanwhile.
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
