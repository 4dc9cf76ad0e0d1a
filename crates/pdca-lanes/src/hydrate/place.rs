//! Copying files of the primary into a lane.
//!
//! Both trees are traversed by directory handles, never through a symbolic link. A file is cloned where the filesystem
//! supports it (both files then share blocks until one is written), and copied byte for byte elsewhere. Hard links are
//! never used: a build that rewrites a file in place would write the primary's.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use camino::Utf8Path;
use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps},
    io::Errno,
};

use pdca_state::patch::path;

use crate::dir::{list, open_dir, open_only, open_root, remove_entry};

/// The files that a hydration put into a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The number of files.
    pub files: usize,
    /// The sum of their sizes, in bytes.
    pub bytes: u64,
    /// The number of files that share their blocks with the original.
    pub cloned: usize,
    /// Paths that were skipped: links that lead out of the checkout, pipes, sockets, devices, names that are not UTF-8,
    /// and files that the lane would not ignore.
    pub passed_over: Vec<String>,
}

/// Copies files from one tree into another.
pub(crate) struct Placer {
    from: OwnedFd,
    to: OwnedFd,
    /// Cleared after the first clone that the filesystem refused.
    clones: bool,
    pub(crate) placed: Placed,
}

impl Placer {
    pub(crate) fn new(primary: &Utf8Path, lane: &Utf8Path) -> io::Result<Self> {
        // `open_root` changes modes, which is not allowed in the primary.
        let (from, to) = (open_only(primary)?, open_root(lane)?);
        Ok(Self { from, to, clones: true, placed: Placed::default() })
    }

    /// Copies a file or a tree, replacing what is there.
    pub(crate) fn copy(&mut self, path: &str) -> io::Result<()> {
        let (parents, name) = split(path)?;
        let Some(from) = descend(&self.from, &parents, false)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let to = descend(&self.to, &parents, true)?.expect("what is missing is made");
        let kind = kind_of(from.as_fd(), &name)?.ok_or(io::ErrorKind::NotFound)?;
        if let Some(there) = kind_of(to.as_fd(), &name)? {
            remove_entry(to.as_fd(), &name, there)?;
        }
        self.put(from.as_fd(), to.as_fd(), &name, kind, path.as_bytes())
    }

    /// Copies a tree unless the lane already has the path. Returns true if it copied.
    pub(crate) fn seed(&mut self, path: &str) -> io::Result<bool> {
        let (parents, name) = split(path)?;
        let there = match descend(&self.to, &parents, false)? {
            Some(dir) => kind_of(dir.as_fd(), &name)?,
            None => None,
        };
        if there.is_none() {
            self.copy(path)?;
        }
        Ok(there.is_none())
    }

    /// Creates a symbolic link to `target`, replacing what is there.
    pub(crate) fn link(&self, path: &str, target: &Utf8Path) -> io::Result<()> {
        let (parents, name) = split(path)?;
        let to = descend(&self.to, &parents, true)?.expect("what is missing is made");
        if let Some(there) = kind_of(to.as_fd(), &name)? {
            remove_entry(to.as_fd(), &name, there)?;
        }
        Ok(sys::symlinkat(target.as_std_path(), &to, &name)?)
    }

    /// Removes a path that an earlier hydration created, if it still exists.
    pub(crate) fn take_back(&self, path: &str) -> io::Result<()> {
        let (parents, name) = split(path)?;
        let Some(to) = descend(&self.to, &parents, false)? else {
            return Ok(());
        };
        match kind_of(to.as_fd(), &name)? {
            Some(there) => remove_entry(to.as_fd(), &name, there),
            None => Ok(()),
        }
    }

    /// Removes and passes over what could not be copied because a program in the primary was writing it.
    pub(crate) fn leave_changing(&mut self, path: &str, copied: io::Result<()>) -> io::Result<()> {
        match copied {
            Err(error) if was_changing(&error) => {
                self.take_back(path)?;
                self.pass_over(format!("{path} ({error})").as_bytes());
                Ok(())
            }
            copied => copied,
        }
    }

    fn put(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: &[u8],
    ) -> io::Result<()> {
        match kind {
            FileType::RegularFile => self.put_file(from, to, name),
            FileType::Directory => self.put_dir(from, to, name, path),
            FileType::Symlink => {
                let target = sys::readlinkat(from, name, Vec::new())?;
                if path::leaves(path, target.to_bytes()) {
                    self.pass_over(path);
                    return Ok(());
                }
                Ok(sys::symlinkat(&target, to, name)?)
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                self.pass_over(path);
                Ok(())
            }
        }
    }

    fn put_dir(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
        path: &[u8],
    ) -> io::Result<()> {
        let from = open_dir(from, name, false)?;
        let mode = sys::fstat(&from)?.st_mode;
        sys::mkdirat(to, name, Mode::RWXU)?;
        let to = open_dir(to, name, true)?;
        for (inner, kind) in list(from.as_fd())? {
            let path = [path, b"/", inner.to_bytes()].concat();
            self.put(from.as_fd(), to.as_fd(), &inner, kind, &path)?;
        }
        // Set last, because the mode may forbid creating entries.
        Ok(sys::fchmod(&to, Mode::from_raw_mode(mode & 0o777) | Mode::RWXU)?)
    }

    fn put_file(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<()> {
        // `NONBLOCK`: the user may have put a FIFO in the place of the file since it was listed.
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = File::from(sys::openat(from, name, read, Mode::empty())?);
        let before = sys::fstat(&source)?;
        let make =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dest = File::from(sys::openat(to, name, make, Mode::RUSR | Mode::WUSR)?);
        let cloned = self.clones && clone(&dest, &source)?;
        // One refusal is enough: the filesystem would refuse each of the many files that follow.
        self.clones = cloned;
        if !cloned {
            io::copy(&mut &source, &mut &dest)?;
        }
        // Builds compare times: a cache with new times would be built again.
        let mtime = Timespec { tv_sec: before.st_mtime, tv_nsec: nanoseconds(&before) };
        sys::futimens(&dest, &Timestamps { last_access: mtime, last_modification: mtime })?;
        sys::fchmod(&dest, Mode::from_raw_mode(before.st_mode & 0o777))?;
        // A file that changed meanwhile may be half old and half new.
        let after = sys::fstat(&source)?;
        if (before.st_size, before.st_mtime, nanoseconds(&before))
            != (after.st_size, after.st_mtime, nanoseconds(&after))
        {
            let why = "it was changed while it was copied";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        self.placed.files += 1;
        self.placed.cloned += usize::from(cloned);
        self.placed.bytes += u64::try_from(before.st_size).unwrap_or(0);
        Ok(())
    }

    pub(crate) fn pass_over(&mut self, path: &[u8]) {
        self.placed.passed_over.push(String::from_utf8_lossy(path).into_owned());
    }
}

/// Splits a path into the directories above it and its own name.
fn split(path: &str) -> io::Result<(Vec<CString>, CString)> {
    let mut parts = path
        .split('/')
        .map(CString::new)
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let name = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((parts, name))
}

/// Opens the directory at the end of `parents`; with `makes`, creates missing ones.
fn descend(root: &OwnedFd, parents: &[CString], makes: bool) -> io::Result<Option<OwnedFd>> {
    let mut dir = root.try_clone()?;
    for name in parents {
        let opened = open_dir(dir.as_fd(), name, makes);
        dir = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound && makes => {
                sys::mkdirat(
                    &dir,
                    name,
                    Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH,
                )?;
                open_dir(dir.as_fd(), name, makes)?
            }
            // Something else than a directory is in the way, so the path cannot exist.
            Err(error) if is_no_directory(&error) && !makes => return Ok(None),
            opened => opened?,
        };
    }
    Ok(Some(dir))
}

fn is_no_directory(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// Returns true if a copy failed because the source was being written.
fn was_changing(error: &io::Error) -> bool {
    // A build also removes files between their listing and their copy.
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::NotFound)
}

fn kind_of(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<FileType>> {
    match sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[expect(clippy::cast_possible_wrap, reason = "it is less than a billion")]
fn nanoseconds(found: &sys::Stat) -> i64 {
    found.st_mtime_nsec as i64
}

/// Makes `dest` share the blocks of `source`; false if the filesystem cannot.
#[cfg(target_os = "linux")]
fn clone(dest: &File, source: &File) -> io::Result<bool> {
    match sys::ioctl_ficlone(dest, source) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => {
            Ok(false)
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn clone(_: &File, _: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_vanishes_before_its_copy_is_passed_over_and_another_error_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let (primary, lane) = (dir.join("primary"), dir.join("lane"));
        for path in [primary.join("cache"), lane.join("cache/old")] {
            fs_err::create_dir_all(path).unwrap();
        }
        let mut placer = Placer::new(&primary, &lane).unwrap();
        for path in ["cache/old", "cache/gone.tmp", "nowhere/gone.tmp"] {
            let copied = placer.copy(path);
            assert!(copied.is_err(), "{path}");
            placer.leave_changing(path, copied).unwrap();
        }
        assert!(!lane.join("cache/old").exists());
        let passed_over = &placer.placed.passed_over;
        assert!(passed_over[1].starts_with("cache/gone.tmp ("), "{passed_over:?}");
        assert_eq!(passed_over.len(), 3);
        let refused = Err(io::ErrorKind::PermissionDenied.into());
        assert!(placer.leave_changing("cache/x", refused).is_err());
    }
}
