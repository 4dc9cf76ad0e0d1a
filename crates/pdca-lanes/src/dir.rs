//! File operations by directory handles, which never follow a symbolic link.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use camino::Utf8Path;
use pdca_process::Tool;
use pdca_state::files::{self, permit};
pub(crate) use pdca_state::files::{list_dir as list, open_dir, remove_entry};
use rustix::fs::{self as sys, AtFlags, FileType, OFlags};

use crate::failure::LaneError;

/// The most directories inside each other that a checkout may have. A walk has one file open and some stack in use for
/// each, in each lane, and a process may usually have 1024 files open. Trees that people work on have less than 40.
pub(crate) const DEEPEST: usize = 128;

/// Makes room for a file below `root`: creates its parents and removes whatever has its name.
///
/// A link or a file in place of a parent is removed, never followed. Only for trees in which no process runs: the path
/// is checked and used in two steps.
pub(crate) fn make_room(root: &Path, path: &Path) -> io::Result<()> {
    let mut place = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        place.push(part);
        match fs_err::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => fs_err::remove_file(&place)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs_err::create_dir(&place)?;
    }
    let place = root.join(path);
    match fs_err::symlink_metadata(&place) {
        Ok(found) if found.is_dir() => files::remove_tree(&place),
        Ok(_) => fs_err::remove_file(&place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a file of a working tree that was tracked, and the directories that become empty.
///
/// A missing file, or a directory in its place, is left alone.
pub(crate) fn remove_tracked(root: &Utf8Path, path: &[u8]) -> io::Result<()> {
    // One that deep was tracked by nothing but an index that a program wrote, and a walk refuses it.
    if require_shallow(path).is_err() {
        return Ok(());
    }
    let mut above = vec![open_root(root)?];
    let mut names = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        // The path may come from an index that a program in the lane wrote.
        if matches!(name, b"" | b"." | b".." | b".git") {
            return Ok(());
        }
        names.push(CString::new(name).map_err(io::Error::other)?);
    }
    let last = names.pop().expect("a split has at least one part");
    for name in &names {
        match open_dir(above.last().expect("the root is there").as_fd(), name, true) {
            Ok(dir) => above.push(dir),
            // A parent that is missing, or is a link or a file by now, has no tracked file below
            // it.
            Err(_) => return Ok(()),
        }
    }
    match sys::unlinkat(above.last().expect("the root is there"), &last, AtFlags::empty()) {
        Ok(()) => {}
        // Linux reports a directory with `EISDIR`, POSIX asks for `EPERM`.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::ISDIR | rustix::io::Errno::PERM) => {
            return Ok(());
        }
        Err(err) => return Err(err.into()),
    }
    for (dir, name) in above.iter().zip(&names).rev() {
        if sys::unlinkat(dir, name, AtFlags::REMOVEDIR).is_err() {
            break;
        }
    }
    Ok(())
}

const DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(crate) fn open_root(root: &Utf8Path) -> io::Result<OwnedFd> {
    let dir = sys::open(root.as_std_path(), DIR, sys::Mode::empty())?;
    permit(dir.as_fd())?;
    Ok(dir)
}

/// Opens a directory for reading, without changing its mode.
pub(crate) fn open_only(path: &Utf8Path) -> io::Result<OwnedFd> {
    Ok(sys::open(path.as_std_path(), DIR, sys::Mode::empty())?)
}

/// Fails for a path with more than [`DEEPEST`] directories, as the fault of the lane.
pub(crate) fn require_shallow(path: &[u8]) -> Result<(), LaneError> {
    let mut names = path.split(|byte| *byte == b'/');
    let top = names.next().unwrap_or_default();
    if names.nth(DEEPEST).is_none() {
        return Ok(());
    }
    let path = String::from_utf8_lossy(top).into_owned().into();
    Err(LaneError::Damaged { path, why: "has more than 128 directories inside each other" })
}

/// Removes a directory with its content, or whatever has its name, without following a link.
///
/// Returns true if it existed. The parent directory must exist.
pub(crate) fn remove_at(path: &Utf8Path) -> io::Result<bool> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = sys::open(above.as_std_path(), DIR, sys::Mode::empty())?;
    let name = CString::new(name).map_err(io::Error::other)?;
    match sys::statat(&above, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => remove_entry(above.as_fd(), &name, FileType::from_raw_mode(found.st_mode))
            .map(|()| true),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes a path that a child could have modified in any way, whatever its modes. If that fails, moves it below
/// `aside` under a free name. Follows no link; a missing path is not an error.
pub fn discard(path: &Utf8Path, aside: &Utf8Path) -> io::Result<()> {
    if path.parent().is_none_or(|above| !above.is_dir()) {
        return Ok(());
    }
    let Err(error) = remove_at(path) else { return Ok(()) };
    unfasten(path);
    let moved = || -> io::Result<()> {
        fs_err::create_dir_all(aside)?;
        let name = path.file_name().unwrap_or("discarded");
        let mut names = (1_u32..).map(|count| aside.join(format!("{name}-{count}")));
        let free = names.find(|name| fs_err::symlink_metadata(name).is_err());
        fs_err::rename(path, free.unwrap_or_else(|| aside.join(name)))
    };
    moved().map_err(|_| error)
}

/// Clears everything that keeps the owner of a directory from moving it: the immutable and append-only flags, and any
/// mount on it. Errors are ignored, because the move that follows reports the cause.
pub(crate) fn unfasten(path: &Utf8Path) {
    #[cfg(target_os = "linux")]
    {
        use sys::IFlags;
        // Lazily, because a process may still have a file open in it.
        let _unmounted = Tool::new("umount").args(["--lazy", path.as_str()]).run();
        let Ok(dir) = open_only(path) else { return };
        if let Ok(flags) = sys::ioctl_getflags(&dir) {
            let _set = sys::ioctl_setflags(&dir, flags - IFlags::IMMUTABLE - IFlags::APPEND);
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _path = path;
    }
}

/// Replaces whatever is at `path` with an empty directory, without following a link.
pub(crate) fn empty(path: &Utf8Path) -> io::Result<()> {
    remove_at(path)?;
    Ok(sys::mkdir(path.as_std_path(), sys::Mode::RWXU)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_inside_whatever_links_and_directories_are_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        for path in [&root, &outside, &outside.join("kept"), &root.join("dir/file/deep")] {
            fs_err::create_dir_all(path).unwrap();
        }
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        fs_err::write(root.join("plain"), "x").unwrap();
        for path in ["link/kept", "plain/a/b", "dir/file", "new/one"] {
            make_room(&root, Path::new(path)).unwrap();
            fs_err::write(root.join(path), path).unwrap();
        }
        assert!(outside.join("kept").is_dir());
        assert_eq!(fs_err::read_to_string(root.join("link/kept")).unwrap(), "link/kept");
    }
}
