//! Directories that a child may have written: of any depth and with any modes. Opened relative to their parent, never
//! through a symbolic link.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use rustix::{
    fs::{self as sys, AtFlags, FileType, OFlags},
    io::Errno,
};

const DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The most directories that are open at once while a tree is removed. Several threads remove trees, and a process may
/// usually have 1024 files open.
const OPEN: usize = 32;

/// Opens a directory, never through a link. With `takes`, gives its owner full permission.
pub fn open_dir(above: BorrowedFd<'_>, name: &CStr, takes: bool) -> io::Result<OwnedFd> {
    let dir = match sys::openat(above, name, DIR, sys::Mode::empty()) {
        Err(Errno::ACCESS) if takes => {
            // Linux has no `fchmodat` that does not follow links before 6.6. The open failed with
            // `EACCES`, so this is a directory, and no process that wrote the tree is alive to replace it.
            sys::chmodat(above, name, sys::Mode::RWXU, AtFlags::empty())?;
            sys::openat(above, name, DIR, sys::Mode::empty())?
        }
        opened => opened?,
    };
    if takes {
        permit(dir.as_fd())?;
    }
    Ok(dir)
}

/// Gives the owner of a directory full permission. Builds leave read-only directories behind, and git does not track
/// their modes.
pub fn permit(dir: BorrowedFd<'_>) -> io::Result<()> {
    let mode = sys::Mode::from_raw_mode(sys::fstat(dir)?.st_mode);
    if !mode.contains(sys::Mode::RWXU) {
        sys::fchmod(dir, mode | sys::Mode::RWXU)?;
    }
    Ok(())
}

/// Lists a directory that was opened just now.
pub fn list_dir(dir: BorrowedFd<'_>) -> io::Result<Vec<(CString, FileType)>> {
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(16 << 10);
    let mut entries = sys::RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let mut kind = entry.file_type();
        // Some filesystems do not store the kind in the directory.
        if kind == FileType::Unknown {
            let found = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            kind = FileType::from_raw_mode(found.st_mode);
        }
        names.push((name.to_owned(), kind));
    }
    Ok(names)
}

/// Removes a directory that a child may have written, whatever its depth and the modes of what is below it. Follows no
/// link; a missing path is not an error.
pub fn remove_tree(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let removed = || -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = CString::new(name.as_bytes())?;
        let above = match sys::open(super::parent(path), DIR - OFlags::NOFOLLOW, sys::Mode::empty())
        {
            Err(Errno::NOENT) => return Ok(()),
            above => above?,
        };
        let kind = match sys::statat(&above, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            found => FileType::from_raw_mode(found?.st_mode),
        };
        match kind {
            FileType::Directory | FileType::Symlink => remove_entry(above.as_fd(), &name, kind),
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(Errno::NOTDIR.into()),
        }
    };
    removed().map_err(|error| {
        // The number of the error stays at the end of the text, where callers look for it.
        io::Error::new(error.kind(), format!("failed to remove `{}`: {error}", path.display()))
    })
}

/// A directory whose entries are being removed.
struct Level {
    dir: OwnedFd,
    name: CString,
    entries: Vec<(CString, FileType)>,
}

impl Level {
    /// Opens a directory; `None` if it is gone.
    fn open(above: BorrowedFd<'_>, name: CString) -> io::Result<Option<Self>> {
        let Some(dir) = unless_missing(open_dir(above, &name, true))? else { return Ok(None) };
        let entries = list_dir(dir.as_fd())?;
        Ok(Some(Self { dir, name, entries }))
    }
}

/// Removes an entry of a directory, with everything below it. Follows no link, and gives the owner permission where it
/// is missing.
///
/// However deep a tree is, only a bounded number of its directories is open: what lies deeper is first moved up into the
/// directory that is being removed.
pub fn remove_entry(above: BorrowedFd<'_>, name: &CStr, kind: FileType) -> io::Result<()> {
    if kind != FileType::Directory {
        return Ok(sys::unlinkat(above, name, AtFlags::empty())?);
    }
    let mut levels: Vec<Level> = Level::open(above, name.to_owned())?.into_iter().collect();
    let mut moved = 0_u32;
    while let Some(mut level) = levels.pop() {
        let Some((name, kind)) = level.entries.pop() else {
            let above = levels.last().map_or(above, |above| above.dir.as_fd());
            let removed = sys::unlinkat(above, &level.name, AtFlags::REMOVEDIR);
            unless_missing(removed.map_err(io::Error::from))?;
            continue;
        };
        let mut below = None;
        if kind != FileType::Directory {
            let removed = sys::unlinkat(&level.dir, &name, AtFlags::empty());
            unless_missing(removed.map_err(io::Error::from))?;
        } else if levels.len() + 1 < OPEN {
            below = Level::open(level.dir.as_fd(), name)?;
        } else if let Some(top) = levels.first_mut() {
            let raised = raise(level.dir.as_fd(), &name, top.dir.as_fd(), &mut moved);
            if let Some(raised) = unless_missing(raised)? {
                top.entries.push((raised, FileType::Directory));
            }
        }
        levels.push(level);
        levels.extend(below);
    }
    Ok(())
}

/// Moves a directory into the one at the top under a free name, which it returns.
fn raise(
    from: BorrowedFd<'_>,
    name: &CStr,
    top: BorrowedFd<'_>,
    count: &mut u32,
) -> io::Result<CString> {
    // Moving a directory changes its `..`, which takes write permission in it.
    drop(open_dir(from, name, true)?);
    loop {
        let raised = CString::new(format!(".raised-{count}"))?;
        *count += 1;
        match sys::renameat(from, name, top, &raised) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            moved => return Ok(moved.map(|()| raised)?),
        }
    }
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
