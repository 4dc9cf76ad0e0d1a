//! Atomic file replacement, and bounded reads of files that may be hostile.
//!
//! A replacement is crash-safe and tolerates other processes:
//!
//! 1. A temporary file is created beside the target, so that the rename stays on one file system.
//! 2. The writer locks it. Sweepers skip locked temporaries, so a concurrent driver does not remove
//!    a file that is being written; a crash drops the lock.
//! 3. The bytes are written and synced, so that the rename cannot expose an empty file after a loss
//!    of power.
//! 4. The temporary is renamed over the target: a reader sees the old bytes or the new ones.
//! 5. The directory is synced, so that the rename itself survives a loss of power.
//!
//! Two artifacts never share a sync of their directory, although it would be cheaper. A file system that does not order the
//! updates of a directory, such as ext4 without a journal, could keep a patch, which changes the state of its bundle, and lose
//! the notes, which no later step writes again. `sync_file_range` is no replacement: it promises nothing about the size.

mod tree;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

pub use tree::{list_dir, open_dir, permit, remove_entry, remove_tree};

/// Replaces a file atomically and durably.
///
/// A reader of the path, concurrent or after a crash, sees the old bytes or the new ones.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    write_and_rename(path, bytes, true)?;
    sync_dir(parent(path))
}

/// Like [`replace`], for a file that belongs to a person: a symbolic link stays and its target is replaced, and the mode
/// stays as it was.
pub fn rewrite(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    match fs_err::canonicalize(path) {
        Ok(real) => replace_like(&real, bytes, &real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, bytes),
        Err(error) => Err(error),
    }
}

/// Like [`replace`], with the mode of the file `model`.
pub fn replace_like(
    path: impl AsRef<Path>,
    bytes: &[u8],
    model: impl AsRef<Path>,
) -> io::Result<()> {
    let path = path.as_ref();
    let mode = fs_err::metadata(model.as_ref())?.permissions();
    write_and_put(path, bytes, true, Some(mode), |temp, path| fs_err::rename(temp, path))?;
    sync_dir(parent(path))
}

/// Like [`replace`], but not synced: atomic for every reader, and a loss of power may lose it.
pub fn replace_unsynced(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    write_and_rename(path.as_ref(), bytes, false)
}

/// Like [`replace`], but never replaces: returns false if the name is taken, even by a file that
/// another process created a moment before.
pub fn create(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<bool> {
    let path = path.as_ref();
    match write_and_put(path, bytes, true, None, rename_onto_nothing) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
        Ok(()) => sync_dir(parent(path)).map(|()| true),
    }
}

/// The error of reading a file.
#[derive(Debug, thiserror::Error)]
pub enum FileReadError {
    /// The path is not a regular file.
    #[error("{path} is {kind}, not a file")]
    NotAFile {
        /// The path that was to be read.
        path: Utf8PathBuf,
        /// The kind of the entry with an article: `a directory`, `a named pipe`.
        kind: &'static str,
    },
    /// A symbolic link leads out of the directory that the read is confined to.
    #[error("{path} leads out of {root}, to {target}")]
    LeadsOut {
        /// The path that was to be read.
        path: Utf8PathBuf,
        /// The directory that the read is confined to.
        root: Utf8PathBuf,
        /// The resolved path outside `root`.
        target: String,
    },
    /// The file is larger than the limit.
    #[error("{path} has {size} bytes or more, the limit is {max}")]
    TooLarge {
        /// The path that was to be read.
        path: Utf8PathBuf,
        /// A lower bound of the size in bytes: reading stops at the limit.
        size: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The operating system reported an error.
    #[error("cannot read {path}")]
    Io {
        /// The path that was to be read.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl FileReadError {
    /// The path that was to be read.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::NotAFile { path, .. }
            | Self::LeadsOut { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

/// Reads a regular file of at most `max` bytes; `None` if there is none.
///
/// Never blocks: named pipes and devices are refused. A symbolic link is followed if it stays in the
/// file's directory.
pub fn read_bounded(
    path: impl AsRef<Utf8Path>,
    max: u64,
) -> Result<Option<Vec<u8>>, FileReadError> {
    let path = path.as_ref();
    let root =
        path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let Some(name) = path.file_name() else {
        return Err(FileReadError::NotAFile { path: path.into(), kind: "a directory" });
    };
    read_within(root, Utf8Path::new(name), max)
}

/// Like [`read_bounded`], for a path relative to `root`, which links may not leave.
pub fn read_within(
    root: &Utf8Path,
    relative: &Utf8Path,
    max: u64,
) -> Result<Option<Vec<u8>>, FileReadError> {
    let path = root.join(relative);
    let Some((fd, size)) = open_within(root, relative)? else {
        return Ok(None);
    };
    if size > max {
        return Err(FileReadError::TooLarge { path, size, max });
    }
    // One more byte than the size, so that the read that finds the end of the file needs no second
    // allocation.
    let mut bytes = Vec::with_capacity(usize::try_from(size + 1).unwrap_or(0));
    drain(fd, &mut bytes, max).map_err(|source| io_error(&path, source))?;
    let size = bytes.len() as u64;
    // The file may have grown since it was opened.
    if size > max { Err(FileReadError::TooLarge { path, size, max }) } else { Ok(Some(bytes)) }
}

/// Opens a regular file below `root` and returns its size.
pub(crate) fn open_within(
    root: &Utf8Path,
    relative: &Utf8Path,
) -> Result<Option<(OwnedFd, u64)>, FileReadError> {
    let path = root.join(relative);
    let single =
        matches!(relative.components().collect::<Vec<_>>()[..], [Utf8Component::Normal(_)]);
    // The usual case, a plain file directly in the directory, needs one system call. NOFOLLOW is
    // only about the last component, so every longer path takes the way of a link.
    let opened = if single { open_here(path.as_std_path()) } else { Err(rustix::io::Errno::LOOP) };
    let fd = match opened {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        // A link, or a path whose directories may be links: resolve it, then open the resolved path
        // with NOFOLLOW, so that a link put there in between is not followed.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::MLINK) => match resolve(root, &path)? {
            None => return Ok(None),
            Some(resolved) => {
                open_here(&resolved).map_err(|errno| io_error(&path, errno.into()))?
            }
        },
        // The error of opening a socket.
        Err(rustix::io::Errno::NXIO) => {
            return Err(FileReadError::NotAFile { path, kind: "a socket" });
        }
        Err(errno) => return Err(io_error(&path, errno.into())),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|errno| io_error(&path, errno.into()))?;
    if let Some(kind) = not_a_file(FileType::from_raw_mode(stat.st_mode)) {
        return Err(FileReadError::NotAFile { path, kind });
    }
    Ok(Some((fd, u64::try_from(stat.st_size).unwrap_or(0))))
}

fn open_here(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, READ_ONLY, Mode::empty())
}

/// Flags for opening a file that may be hostile: no link is followed, a pipe does not block, and a
/// terminal does not become the controlling one.
pub(crate) const READ_ONLY: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Reads to the end, or until there are more than `max` bytes; the caller compares the length.
pub(crate) fn drain(fd: impl AsFd, bytes: &mut Vec<u8>, max: u64) -> io::Result<()> {
    // One byte past the limit is read, so that the caller can tell "at the limit" from "more".
    while bytes.len() as u64 <= max {
        if bytes.len() == bytes.capacity() {
            bytes.reserve(8 << 10);
        }
        if rustix::io::retry_on_intr(|| rustix::io::read(&fd, spare_capacity(bytes)))? == 0 {
            break;
        }
    }
    Ok(())
}

/// Names the kind of an entry that is not a regular file.
pub(crate) fn not_a_file(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a named pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Unknown => Some("of an unknown kind"),
    }
}

/// Resolves all links of `path`; an error if the result is outside `root`, `None` if there is nothing.
pub(crate) fn resolve(root: &Utf8Path, path: &Utf8Path) -> Result<Option<PathBuf>, FileReadError> {
    let target = match path.as_std_path().canonicalize() {
        Ok(target) => target,
        // A dangling link is an error and not an absent file: the name is taken.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return Ok(None);
        }
        Err(source) => return Err(io_error(path, source)),
    };
    let home = root.as_std_path().canonicalize().map_err(|source| io_error(root, source))?;
    if target.starts_with(&home) {
        Ok(Some(target))
    } else {
        let target = target.to_string_lossy().into_owned();
        Err(FileReadError::LeadsOut { path: path.into(), root: root.into(), target })
    }
}

fn io_error(path: &Utf8Path, source: io::Error) -> FileReadError {
    FileReadError::Io { path: path.into(), source }
}

const TEMP_INFIX: &str = ".pdca-tmp-";

/// Returns true for the name of a temporary file of any replacement.
pub(crate) fn is_temp_name(name: &[u8]) -> bool {
    name.starts_with(b".")
        && name.windows(TEMP_INFIX.len()).any(|part| part == TEMP_INFIX.as_bytes())
}

/// Returns true for the name of a temporary file of a replacement of `of`.
pub(crate) fn is_temp_name_of(name: &[u8], of: &str) -> bool {
    name.strip_prefix(b".")
        .and_then(|rest| rest.strip_prefix(of.as_bytes()))
        .is_some_and(|rest| rest.starts_with(TEMP_INFIX.as_bytes()))
}

/// A name beside `path` that is unique among the threads and live processes that write there.
fn temp_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Hidden and with an infix of its own, so that neither a listing of a bundle nor a person takes
    // a temporary for an artifact.
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or(OsStr::new("file")));
    name.push(format!(
        "{TEMP_INFIX}{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    path.with_file_name(name)
}

/// Removes temporary files whose writer crashed. Those of a live writer stay.
pub fn clear_abandoned(dir: impl AsRef<Utf8Path>) -> io::Result<()> {
    sweep(dir.as_ref(), is_temp_name)
}

/// Like [`clear_abandoned`], for the names that `is_stale` picks.
pub(crate) fn sweep(dir: &Utf8Path, is_stale: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        if is_stale(entry.file_name().as_bytes()) {
            sweep_temp(&entry.path())?;
        }
    }
    Ok(())
}

fn sweep_temp(path: &Path) -> io::Result<()> {
    match remove_abandoned(path) {
        // Its writer renamed it, or another sweeper removed it, since the directory was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn remove_abandoned(path: &Path) -> io::Result<()> {
    let kind = fs_err::symlink_metadata(path)?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        // A link or a pipe of that name is no work of any writer, and opening it could block or
        // lead away.
        return fs_err::remove_file(path);
    }
    // The lock is held until after the removal. A writer that created this file and has not locked
    // it yet then fails in `claim` and takes another name.
    let file = fs_err::File::open(path)?;
    match file.file().try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => Ok(()),
        // Without working locks a live writer cannot be told from a dead one. A file is removed all
        // the same; a directory may hold more than one file's work, so it stays.
        Err(std::fs::TryLockError::Error(_)) if kind.is_dir() => Ok(()),
        Ok(()) if kind.is_dir() => fs_err::remove_dir_all(path),
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => fs_err::remove_file(path),
    }
}

/// Locks a temporary, which protects it from sweepers while `file` is open. Returns false if a
/// sweeper removed it between its creation and the lock.
fn claim(temp: &Path, file: &std::fs::File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    // On a file system without locks, go on without one.
    if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
        return Ok(false);
    }
    // A sweeper that held the lock first has removed the name by now; the lock would then be on a
    // file that no path leads to.
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(temp) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Syncs a directory, so that names that were put there or removed survive a power loss.
pub fn sync_dir(dir: impl AsRef<Path>) -> io::Result<()> {
    fs_err::File::open(dir.as_ref())?.sync_all()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_and_rename(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    write_and_put(path, bytes, sync, None, |temp, path| fs_err::rename(temp, path))
}

fn rename_onto_nothing(temp: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, temp, CWD, path, RenameFlags::NOREPLACE) {
        // The file system has no atomic no-replace; a hard link fails if the name is taken.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs_err::hard_link(temp, path)?;
            fs_err::remove_file(temp)
        }
        renamed => Ok(renamed?),
    }
}

fn write_and_put(
    path: &Path,
    bytes: &[u8],
    sync: bool,
    mode: Option<std::fs::Permissions>,
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let (temp, mut file) = create_temp(path)?;
    // Before the first byte: nobody else may read it meanwhile.
    let written = mode
        .map_or(Ok(()), |mode| file.set_permissions(mode))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| if sync { file.sync_all() } else { Ok(()) })
        .and_then(|()| put(&temp, path));
    if written.is_err() {
        // Report the first error; a file that cannot be removed is swept later.
        drop(std::fs::remove_file(&temp));
    }
    written
}

fn create_temp(path: &Path) -> io::Result<(PathBuf, fs_err::File)> {
    loop {
        let temp = temp_name(path);
        match fs_err::File::options().write(true).create_new(true).open(&temp) {
            Ok(file) if claim(&temp, file.file())? => return Ok((temp, file)),
            // A sweeper removed it before the lock: try the next name.
            Ok(_) => {}
            // Left by a crashed process with the same process id: try the next name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Creates a directory beside `path` that sweepers skip while the returned file is open.
pub(crate) fn create_temp_dir(path: &Path) -> io::Result<(PathBuf, fs_err::File)> {
    loop {
        let temp = temp_name(path);
        match fs_err::create_dir(&temp) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        match fs_err::File::open(&temp) {
            Ok(file) if claim(&temp, file.file())? => return Ok((temp, file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
