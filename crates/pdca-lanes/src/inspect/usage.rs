//! The disk usage of a tree.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd},
};

use camino::Utf8Path;
use rustix::{
    fs::{self as sys, AtFlags, FileType},
    io::Errno,
};

use crate::dir::{DEEPEST, list, open_dir, open_only};

/// The unit of `st_blocks`, whatever the block size of the filesystem.
const BLOCK: u64 = 512;

/// Returns the bytes that a file or a tree takes on disk; 0 if it does not exist. Follows no link, and ignores entries
/// that vanish meanwhile, and directories that are too deep for a lane. Blocks shared with another file count fully.
pub(crate) fn disk_usage(path: &Utf8Path) -> io::Result<u64> {
    let found = match sys::lstat(path.as_std_path()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(0),
        Err(errno) => return Err(errno.into()),
    };
    // A file, or a directory that cannot be opened, counts by itself alone.
    let below = open_only(path).map_or(0, |dir| below(dir.as_fd(), DEEPEST));
    Ok(blocks(&found) + below)
}

fn below(dir: BorrowedFd<'_>, depth: usize) -> u64 {
    let mut sum = 0;
    // The content of an unreadable directory is unknown; the sum of the rest is still useful.
    for (name, kind) in list(dir).unwrap_or_default() {
        if let Ok(found) = sys::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            sum += blocks(&found);
        }
        if kind == FileType::Directory
            && depth > 0
            && let Ok(inner) = open_dir(dir, &name, false)
        {
            sum += below(inner.as_fd(), depth - 1);
        }
    }
    sum
}

fn blocks(found: &sys::Stat) -> u64 {
    u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK
}
