//! How much a tree takes on disk.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd},
};

use camino::Utf8Path;
use rustix::{
    fs::{self as sys, AtFlags, FileType},
    io::Errno,
};

use crate::dir::{list, open_dir, open_only};

/// The unit in which the kernel counts blocks, whatever the filesystem's own.
const BLOCK: u64 = 512;

/// The bytes that a file or a tree takes on disk; nothing where it is not. No link is followed, and
/// what goes away meanwhile is not counted. Blocks shared with another file count as its own.
pub(crate) fn disk_usage(path: &Utf8Path) -> io::Result<u64> {
    let found = match sys::lstat(path.as_std_path()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(0),
        Err(errno) => return Err(errno.into()),
    };
    // No directory, or one that cannot be opened: then it itself is what there is to count.
    let below = open_only(path).map_or(0, |dir| below(dir.as_fd()));
    Ok(blocks(&found) + below)
}

fn below(dir: BorrowedFd<'_>) -> u64 {
    let mut sum = 0;
    // A directory that cannot be listed holds what it holds; the rest is still worth knowing.
    for (name, kind) in list(dir).unwrap_or_default() {
        if let Ok(found) = sys::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            sum += blocks(&found);
        }
        if kind == FileType::Directory
            && let Ok(inner) = open_dir(dir, &name, false)
        {
            sum += below(inner.as_fd());
        }
    }
    sum
}

fn blocks(found: &sys::Stat) -> u64 {
    u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK
}
