//! Files that changed in a lane while no process held it.
//!
//! A reset removes them, so they are kept before it, wherever they come from:
//!
//! 1. *Release*: the holder of a lane writes a stamp beside the checkout. A holder that is killed writes none.
//! 2. *Claim*: the next holder takes the stamp away and compares it with the change time of each file. Both times are the
//!    kernel's and of one file system, and no program can set them. So files that a gate left before the release differ
//!    from files that were written after it.
//! 3. *Keep*: files that git does not ignore, and commits, go under a rescue ref. All files that the next reset would
//!    remove are moved beside the checkout.
//!
//! Without a stamp, everything that differs from the commit of the last job is kept, except for ignored files: nothing
//! distinguishes them from the products of the job that was killed. Files with several hard links are not moved, because
//! another name changes their time.
//!
//! A dirty lane is not refused, because a person would have to clean up before a batch continues at night. It is not reset
//! at its release either, so that a person can look at the files that a red gate left.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd as _, BorrowedFd},
};

use camino::Utf8PathBuf;
use gix::bstr::{BString, ByteSlice as _};
use pdca_dag::Pattern;
use pdca_state::files;
use rustix::fs::{self as sys, AtFlags, FileType};

use crate::{
    checkout, dir,
    failure::LaneError,
    history,
    lane::{Lane, Reset},
    marker::LaneRecord,
};

/// The suffix of the stamp of a target.
pub(crate) const RELEASED: &str = ".released";

/// The time at which a lane was released, and the process that did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReleaseStamp {
    changed: (i64, i64),
    pid: Option<u32>,
}

/// The files of a checkout that changed after its release.
#[derive(Debug, Default)]
pub(crate) struct IdleChanges {
    /// Those that git does not ignore.
    pub(crate) visible: Vec<BString>,
    /// Ignored files that the next reset would remove.
    pub(crate) ignored: Vec<BString>,
}

impl ReleaseStamp {
    /// Returns true if this process released the lane.
    pub(crate) fn is_own(self) -> bool {
        self.pid == Some(std::process::id())
    }

    /// Writes the stamp of a lane that exists. A failure only makes the next holder keep more than necessary.
    pub(crate) fn write(record: &LaneRecord) {
        if record.marker_path().exists() {
            let text = format!("{}\n", std::process::id());
            let _unwritten = files::replace_unsynced(record.beside(RELEASED), text.as_bytes());
        }
    }
}

impl Lane {
    /// Returns the stamp of the last release and removes it; `None` if the last holder was killed.
    pub(crate) fn take_release_stamp(&self) -> io::Result<Option<ReleaseStamp>> {
        let path = self.record.beside(RELEASED);
        let found = match sys::lstat(path.as_std_path()) {
            Ok(found) => found,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let pid = fs_err::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        dir::remove_at(&path)?;
        let is_file = FileType::from_raw_mode(found.st_mode).is_file();
        Ok(is_file.then(|| ReleaseStamp { changed: change_time(&found), pid }))
    }

    /// Finds the files that changed after a release.
    pub(crate) fn changed_since(
        &self,
        stamp: ReleaseStamp,
        reset: Reset,
    ) -> Result<IdleChanges, LaneError> {
        let caches = match reset {
            Reset::Pristine => &[],
            Reset::Clean | Reset::Tracked => self.cache.as_slice(),
        };
        let mut search = Search { stamp, caches, found: Vec::new() };
        let root = dir::open_root(self.path()).map_err(LaneError::walking)?;
        search.directory(root.as_fd(), &mut BString::default())?;
        let mut changes = IdleChanges::default();
        if search.found.is_empty() {
            return Ok(changes);
        }
        let (index, seen) = self.compare_with_head()?;
        let different: Vec<BString> =
            seen.different.iter().map(|at| index.entries()[*at].path(&index).to_owned()).collect();
        let is_nested = |path: &BString| seen.nested.iter().any(|top| path.starts_with(top));
        for (path, is_linked) in search.found {
            let is_tracked = index.entry_by_path(path.as_bstr()).is_some();
            if different.contains(&path) || seen.untracked.contains(&path) || is_nested(&path) {
                changes.visible.push(path);
            } else if !is_tracked && !is_linked && reset != Reset::Tracked {
                changes.ignored.push(path);
            }
        }
        Ok(changes)
    }

    /// Finds the files that differ from the commit that is checked out.
    pub(crate) fn differences(&self) -> Result<IdleChanges, LaneError> {
        let (index, seen) = self.compare_with_head()?;
        let different =
            seen.different.iter().map(|at| index.entries()[*at].path(&index).to_owned());
        Ok(IdleChanges { visible: different.chain(seen.untracked).collect(), ignored: Vec::new() })
    }

    /// Moves files beside the checkout. Returns the directory that has them.
    pub(crate) fn move_idle_files(
        &self,
        name: &str,
        paths: &[BString],
    ) -> Result<Utf8PathBuf, LaneError> {
        let aside = self.aside.join(history::ref_component(name));
        checkout::move_aside(&self.room, &aside, paths)?;
        Ok(aside)
    }
}

/// A walk over all files of a checkout.
struct Search<'a> {
    stamp: ReleaseStamp,
    caches: &'a [Pattern],
    /// The files, and whether another name leads to the same file: then its change time may be that of the other name.
    found: Vec<(BString, bool)>,
}

impl Search<'_> {
    fn directory(&mut self, dir: BorrowedFd<'_>, prefix: &mut BString) -> Result<(), LaneError> {
        dir::require_shallow(prefix)?;
        for (name, kind) in dir::list(dir).map_err(LaneError::walking)? {
            if prefix.is_empty() && name.to_bytes() == b".git" {
                continue;
            }
            let length = prefix.len();
            prefix.extend_from_slice(name.to_bytes());
            self.entry(dir, &name, kind, prefix)?;
            prefix.truncate(length);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: &mut BString,
    ) -> Result<(), LaneError> {
        let text = path.to_str_lossy();
        if kind != FileType::Symlink && self.caches.iter().any(|cache| cache.covers(&text)) {
            return Ok(());
        }
        if kind == FileType::Directory {
            let below = dir::open_dir(dir, name, true).map_err(LaneError::walking)?;
            path.push(b'/');
            return self.directory(below.as_fd(), path);
        }
        let found = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| LaneError::walking(errno.into()))?;
        if change_time(&found) > self.stamp.changed {
            self.found.push((path.clone(), found.st_nlink > 1));
        }
        Ok(())
    }
}

/// Returns seconds and nanoseconds of the last change of a file or its attributes.
fn change_time(found: &sys::Stat) -> (i64, i64) {
    (found.st_ctime, i64::try_from(found.st_ctime_nsec).unwrap_or(0))
}
