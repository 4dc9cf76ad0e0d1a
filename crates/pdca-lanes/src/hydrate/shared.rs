//! Detecting directories that two lanes would write at the same time.

use std::{io, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use rustix::fs::StatVfsMountFlags;

/// Returns the first directory at or below `path` in which entries could be created or removed; `None` if `path` is a
/// file.
///
/// That is every directory with a write permission bit on a filesystem that is not mounted read-only. The permissions
/// of the current user do not matter: root could write anyway, and must not do so by accident either. Links are not
/// followed.
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
