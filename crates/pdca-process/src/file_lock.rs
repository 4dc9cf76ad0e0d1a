//! Locks that a process which can only read the workspace can neither take nor hold back.
//!
//! Leaves and gates can open most files of a workspace for reading. That is enough for `flock`, exclusively too, so such
//! a lock would keep drivers out for as long as a leaf wants. A lock of an open file description is of another kind: a
//! *write* lock needs a descriptor that is open for writing. A reader still gets a *read* lock, which refuses a write lock
//! on the same file. Therefore nothing is ever locked that another process could have opened before:
//!
//! 1. A taker creates a new file under a name that means nothing yet, `<path>.tmp-…`, and locks it for writing. One that
//!    is not locked may be of a dead process: whoever passes by removes it, and a live taker starts again.
//! 2. It renames the file to that of a candidate, `<path>.new-…`. From now on other takers see it. A candidate was locked
//!    before it had this name, so one that is not locked for writing is of a dead process, and is removed.
//! 3. It looks at all other live candidates. If one sorts before its own, the taker withdraws; one that sorts after
//!    withdraws by itself and is waited for. Of two takers at the same time at least one sees the other, because each
//!    is a candidate before it looks.
//! 4. It looks at the path itself, and withdraws if that file is locked for writing. This comes after step 3: a candidate
//!    that is gone by then has become the file at the path.
//! 5. It renames its file to the path.
//!
//! Whether a file is locked for writing is asked with the question whether a *read* lock would be refused: read locks of
//! others do not count, and asking takes no lock. The kernel releases a lock when its holder dies, however it dies. The
//! text in a file is for people.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::OFlags;

/// Between the path and the rest of a candidate's name.
const CANDIDATE: &str = ".new-";
/// Between the path and the rest of the name of one of many holders.
const SHARED: &str = ".held-";
/// Between the path and the rest of the name of a file that is not locked yet.
const UNLOCKED: &str = ".tmp-";
/// The number of new files that are tried while others lock each of them first.
const TRIES: u32 = 1000;
/// The longest wait for a candidate that has to withdraw.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval at which such a candidate is looked at.
const LOOK: Duration = Duration::from_millis(1);
/// The most bytes that are read from a lock.
const MAX_TEXT: u64 = 4096;

/// An exclusive lock, released on drop.
#[derive(Debug)]
pub struct FileLock {
    path: Utf8PathBuf,
    file: File,
    found: String,
    is_transient: bool,
}

/// Failure to take a lock. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FileLockError {
    /// Another process holds the lock.
    #[error("{path} is held by another process")]
    Held {
        /// The lock.
        path: Utf8PathBuf,
        /// The text that the holder wrote, as one line without control characters.
        text: String,
    },
    /// The file system does not support locks, so other processes could not be kept out.
    #[error("the filesystem of {path} cannot lock")]
    CannotLock {
        /// The lock.
        path: Utf8PathBuf,
        /// `None` if the file system granted the lock and does not know of it.
        source: Option<io::Error>,
    },
    /// The path cannot be used, for instance because a symbolic link is there.
    #[error("cannot use {path} as a lock")]
    Unusable {
        /// The lock.
        path: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl From<FileLockError> for io::Error {
    fn from(error: FileLockError) -> Self {
        match error {
            FileLockError::Held { .. } => Self::new(io::ErrorKind::WouldBlock, error),
            FileLockError::Unusable { source, .. }
            | FileLockError::CannotLock { source: Some(source), .. } => source,
            FileLockError::CannotLock { source: None, .. } => Self::other(error),
        }
    }
}

/// The calls of the kernel, which tests replace.
#[derive(Debug, Clone, Copy)]
struct LockCalls {
    /// Locks a file for writing. Returns false if another lock refuses it.
    lock: fn(&File) -> io::Result<bool>,
    /// Returns true if a file is locked for writing through another descriptor.
    is_locked: fn(&File) -> io::Result<bool>,
}

const KERNEL: LockCalls = LockCalls { lock: lock_for_writing, is_locked: is_locked_for_writing };

impl FileLock {
    /// Takes the lock at `path`, whose directory must exist, and writes `text` into it. Waits for no holder.
    pub fn take(path: &Utf8Path, text: &str) -> Result<Self, FileLockError> {
        Self::take_with(path, text, KERNEL)
    }

    fn take_with(path: &Utf8Path, text: &str, calls: LockCalls) -> Result<Self, FileLockError> {
        let unusable = |source| FileLockError::Unusable { path: path.to_owned(), source };
        let held = |text| FileLockError::Held { path: path.to_owned(), text };
        // Before anything is created: a lock that is held is asked for often.
        if let Some(text) = at(path, calls).map_err(unusable)?.holder {
            return Err(held(text));
        }
        let own = NewFile::create(path, CANDIDATE, text, calls)?;
        let since = Instant::now();
        loop {
            let rivals = rivals(path, CANDIDATE, calls).map_err(unusable)?;
            let (before, after): (Vec<_>, Vec<_>) = rivals
                .into_iter()
                .filter(|rival| *rival != own.path)
                .partition(|it| *it < own.path);
            if after.is_empty() && before.is_empty() {
                break;
            }
            if let Some(first) =
                before.first().or(after.first().filter(|_| since.elapsed() > PATIENCE))
            {
                return Err(held(text_at(first)));
            }
            std::thread::sleep(LOOK);
        }
        let there = at(path, calls).map_err(unusable)?;
        if let Some(text) = there.holder {
            return Err(held(text));
        }
        own.become_lock(path, there.text).map_err(unusable)
    }

    /// Takes the lock, and waits for as long as other processes hold it.
    pub fn wait(path: &Utf8Path, text: &str) -> Result<Self, FileLockError> {
        loop {
            match Self::take(path, text) {
                Err(FileLockError::Held { .. }) => std::thread::sleep(LOOK),
                done => return done,
            }
        }
    }

    /// Takes the lock even from a live holder, which notices that by [`is_current`](Self::is_current).
    pub fn take_over(path: &Utf8Path) -> Result<Self, FileLockError> {
        let unusable = |source| FileLockError::Unusable { path: path.to_owned(), source };
        let there = at(path, KERNEL).map_err(unusable)?;
        let own = NewFile::create(path, CANDIDATE, "", KERNEL)?;
        own.become_lock(path, there.holder.unwrap_or(there.text)).map_err(unusable)
    }

    /// Returns the text of the holder of the lock at `path`, or `None` if it is free. Creates nothing and takes no lock.
    pub fn holder(path: &Utf8Path) -> io::Result<Option<String>> {
        Ok(at(path, KERNEL)?.holder)
    }

    /// Returns the text that the last holder left.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Returns the path of the lock.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Returns true while the path names the locked file; false after a takeover.
    pub fn is_current(&self) -> io::Result<bool> {
        self.is_at(&self.path)
    }

    /// Returns true if another path names the locked file.
    pub fn is_at(&self, path: &Utf8Path) -> io::Result<bool> {
        names(path, &self.file)
    }

    /// Replaces the text.
    pub fn write(&self, text: &str) -> io::Result<()> {
        // In place: another file at the path would not be locked. A reader of half a text only shows it.
        self.file.set_len(0)?;
        self.file.write_all_at(text.as_bytes(), 0)
    }

    /// Removes the file together with the lock, for a directory that is not ours alone.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.is_transient = true;
        self
    }

    /// Returns another descriptor of the locked file, as a child has one while it is being started.
    pub fn try_clone(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.is_transient && self.is_current().unwrap_or(false) {
            // While it is locked, so the path names no other taker's file. One that stays is free all the same.
            drop(std::fs::remove_file(&self.path));
        }
        unlock(&self.file);
    }
}

/// One of many holders of a lock, for as long as this lives.
#[derive(Debug)]
pub(crate) struct SharedHold {
    _own: NewFile,
}

impl SharedHold {
    /// Joins the holders of the lock at `path`. Never waits.
    pub(crate) fn join(path: &Utf8Path) -> Result<Self, FileLockError> {
        let own = NewFile::create(path, SHARED, "", KERNEL)?;
        Ok(Self { _own: own })
    }
}

/// Returns true if the lock at `path` has a live [`SharedHold`]. Removes those of dead processes.
pub(crate) fn is_shared(path: &Utf8Path) -> io::Result<bool> {
    Ok(!rivals(path, SHARED, KERNEL)?.is_empty())
}

/// A locked file under a name of its own, removed on drop.
#[derive(Debug)]
struct NewFile {
    /// `None` once the file is the lock itself.
    file: Option<File>,
    path: Utf8PathBuf,
}

impl NewFile {
    fn create(
        lock: &Utf8Path,
        kind: &str,
        text: &str,
        calls: LockCalls,
    ) -> Result<Self, FileLockError> {
        let unusable = |source| FileLockError::Unusable { path: lock.to_owned(), source };
        let cannot = |source| FileLockError::CannotLock { path: lock.to_owned(), source };
        for _ in 0..TRIES {
            let name = unique();
            let unlocked = Utf8PathBuf::from(format!("{lock}{UNLOCKED}{name}"));
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).open(&unlocked);
            let file = file.map_err(unusable)?;
            let mut new = Self { file: Some(file), path: unlocked };
            let file = new.file.as_ref().expect("because it was just put there");
            match (calls.lock)(file) {
                Ok(true) => {}
                // A reader was faster. It has no time to do that to every file.
                Ok(false) => continue,
                Err(source) => return Err(cannot(Some(source))),
            }
            // Some file systems grant every lock. Check that another descriptor finds it.
            let again = match File::open(&new.path) {
                // Another taker removed it before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                again => again.map_err(unusable)?,
            };
            match (calls.is_locked)(&again) {
                Ok(true) => {}
                Ok(false) => return Err(cannot(None)),
                Err(source) => return Err(cannot(Some(source))),
            }
            file.write_all_at(text.as_bytes(), 0).map_err(unusable)?;
            let named = Utf8PathBuf::from(format!("{lock}{kind}{name}"));
            match std::fs::rename(&new.path, &named) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                renamed => renamed.map_err(unusable)?,
            }
            new.path = named;
            return Ok(new);
        }
        Err(unusable(io::Error::other("another process locks or removes every new file")))
    }

    fn become_lock(mut self, path: &Utf8Path, found: String) -> io::Result<FileLock> {
        std::fs::rename(&self.path, path)?;
        let file = self.file.take().expect("because only this takes it out");
        Ok(FileLock { path: path.to_owned(), file, found, is_transient: false })
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // One that cannot be removed is of a dead process for everyone else, who removes it.
            drop(std::fs::remove_file(&self.path));
            unlock(&file);
        }
    }
}

/// The state of the file at the path of a lock.
#[derive(Debug, Default)]
struct LockFile {
    /// The text of the holder, if there is one.
    holder: Option<String>,
    /// The text of the last holder.
    text: String,
}

fn at(path: &Utf8Path, calls: LockCalls) -> io::Result<LockFile> {
    let file = match open(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(LockFile::default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockFile::default()),
        Err(error) => return Err(error),
    };
    let text = text_of(&file);
    if !(calls.is_locked)(&file)? {
        return Ok(LockFile { holder: None, text });
    }
    Ok(LockFile { holder: Some(text), text: String::new() })
}

/// Returns the live files of a kind beside `lock`, in order, and removes those of dead processes.
fn rivals(lock: &Utf8Path, kind: &str, calls: LockCalls) -> io::Result<Vec<Utf8PathBuf>> {
    let name = lock.file_name().unwrap_or_default();
    let (prefix, unlocked) = (format!("{name}{kind}"), format!("{name}{UNLOCKED}"));
    let mut live = Vec::new();
    let dir = lock.parent().unwrap_or(lock);
    let entries = match dir.read_dir_utf8() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(live),
        entries => entries?,
    };
    for entry in entries {
        let Ok(entry) = entry else { continue };
        let is_of_kind = entry.file_name().starts_with(&prefix);
        if !is_of_kind && !entry.file_name().starts_with(&unlocked) {
            continue;
        }
        let is_live = match open(entry.path()) {
            Ok(Some(file)) => (calls.is_locked)(&file)?,
            Ok(None) => false,
            // It withdrew, or has become the lock.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if is_live {
            // A locked file without a name of a kind is about to get one.
            live.extend(is_of_kind.then(|| entry.into_path()));
            continue;
        }
        match std::fs::remove_file(entry.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    live.sort_unstable();
    Ok(live)
}

/// Opens a regular file; follows no link and does not wait. Returns `None` for a file that no process has open for
/// writing, and that therefore is not locked.
fn open(path: &Utf8Path) -> io::Result<Option<File>> {
    // Anything may lie at the path. A link would make a file elsewhere the lock, and opening a pipe would wait for its
    // other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    let file = match options.read(true).custom_flags(flags.bits().cast_signed()).open(path) {
        // A reader holds a lease on it, which the kernel grants to the only process that has it open.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        file => file?,
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Returns true if the path names this file, by device and inode.
fn names(path: &Utf8Path, file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn text_at(path: &Utf8Path) -> String {
    open(path).ok().flatten().map(|file| text_of(&file)).unwrap_or_default()
}

/// Returns the text of a lock as one line without control characters.
fn text_of(file: &File) -> String {
    let mut bytes = Vec::new();
    // The text is only for people, so a failed read is not an error.
    if file.take(MAX_TEXT).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

/// Returns a name that no other process uses.
fn unique() -> String {
    // The hasher's keys are random. Process ids alone repeat in containers that share a directory.
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("{random:016x}-{}", std::process::id())
}

fn whole(kind: libc::c_int) -> libc::flock {
    let narrow = |value: libc::c_int| libc::c_short::try_from(value).unwrap_or_default();
    libc::flock {
        l_type: narrow(kind),
        l_whence: narrow(libc::SEEK_SET),
        l_start: 0,
        // To the end of the file, wherever that is.
        l_len: 0,
        l_pid: 0,
    }
}

fn lock_for_writing(file: &File) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_WRLCK))) {
        Ok(_) => Ok(true),
        Err(nix::Error::EAGAIN | nix::Error::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_locked_for_writing(file: &File) -> io::Result<bool> {
    // Only a write lock refuses a read lock.
    let mut found = whole(libc::F_RDLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(libc::c_int::from(found.l_type) != libc::F_UNLCK)
}

/// Unlocks explicitly. Closing the file is not enough: a child that is being started has a copy of the descriptor for a
/// moment. Unlocking an open file cannot fail.
fn unlock(file: &File) {
    let unlocked = fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK)));
    debug_assert!(unlocked.is_ok(), "{unlocked:?}");
}

#[cfg(test)]
mod tests;
