//! Directories that two lanes would write at the same time.

use std::{io, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use rustix::fs::StatVfsMountFlags;

/// The first directory at or below `path` in which something can be made or removed; none where
/// `path` is a file.
///
/// Nothing can where the filesystem is mounted read-only, and in a directory that gives nobody the
/// permission. Who asks does not matter: what runs as root could, and must not get the chance by
/// accident either. Links are not followed.
pub(crate) fn writable_directory(path: &Utf8Path) -> io::Result<Option<Utf8PathBuf>> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Ok(None);
    }
    let mounted = rustix::fs::statvfs(path.as_std_path())?;
    if mounted.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(None);
    }
    if found.permissions().mode() & 0o222 != 0 {
        return Ok(Some(path.to_owned()));
    }
    for entry in path.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Some(writable) = writable_directory(entry.path())?
        {
            return Ok(Some(writable));
        }
    }
    Ok(None)
}
