//! Files are replaced, never truncated; and read with a bound.

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

/// Puts a file in place whole: temporary beside it, sync, rename, sync the directory.
///
/// Whoever reads the path meanwhile, or after a crash, sees the old bytes or the new ones.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    write_and_rename(path, bytes, true)?;
    sync_dir(parent(path))
}

/// As [`replace`], for what can be made again: whole to every reader, but a loss of power may
/// lose it.
pub fn replace_unsynced(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    write_and_rename(path.as_ref(), bytes, false)
}

/// As [`replace`], where nothing may be replaced: false where something has the name already, which
/// stays as it is, whoever made it and however shortly before.
pub fn create(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<bool> {
    let path = path.as_ref();
    match write_and_put(path, bytes, true, rename_onto_nothing) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
        Ok(()) => sync_dir(parent(path)).map(|()| true),
    }
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Something else has its name.
    #[error("{path} is {kind}, not a file")]
    NotAFile {
        /// The path.
        path: Utf8PathBuf,
        /// What is there instead: `a directory`, `a named pipe`.
        kind: &'static str,
    },
    /// A symbolic link leads out of the directory it is confined to.
    #[error("{path} leads out of {root}, to {target}")]
    LeadsOut {
        /// The path.
        path: Utf8PathBuf,
        /// The directory it had to stay in.
        root: Utf8PathBuf,
        /// Where it leads.
        target: String,
    },
    /// It is larger than the reader takes.
    #[error("{path} has {size} bytes or more, the limit is {max}")]
    TooLarge {
        /// The path.
        path: Utf8PathBuf,
        /// Its size, as far as it is known.
        size: u64,
        /// The largest size taken.
        max: u64,
    },
    /// The system would not.
    #[error("cannot read {path}")]
    Io {
        /// The path.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ReadError {
    /// The file it is about.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::NotAFile { path, .. }
            | Self::LeadsOut { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Io { path, .. } => path,
        }
    }
}

/// Reads a regular file of at most `max` bytes; `None` where there is none.
///
/// Never waits: a named pipe or a device is refused, not opened and hung upon. A symbolic link
/// is followed as long as it stays in the file's directory.
pub fn read_bounded(path: impl AsRef<Utf8Path>, max: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let path = path.as_ref();
    let root =
        path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let Some(name) = path.file_name() else {
        return Err(ReadError::NotAFile { path: path.into(), kind: "a directory" });
    };
    read_within(root, Utf8Path::new(name), max)
}

/// As [`read_bounded`], confined to `root`, below which `relative` names the file.
pub fn read_within(
    root: &Utf8Path,
    relative: &Utf8Path,
    max: u64,
) -> Result<Option<Vec<u8>>, ReadError> {
    let path = root.join(relative);
    let Some((fd, size)) = open_within(root, relative)? else {
        return Ok(None);
    };
    if size > max {
        return Err(ReadError::TooLarge { path, size, max });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size + 1).unwrap_or(0));
    drain(fd, &mut bytes, max).map_err(|source| io_error(&path, source))?;
    let size = bytes.len() as u64;
    if size > max { Err(ReadError::TooLarge { path, size, max }) } else { Ok(Some(bytes)) }
}

/// Opens the regular file that `relative` names below `root`, and tells its size.
pub(crate) fn open_within(
    root: &Utf8Path,
    relative: &Utf8Path,
) -> Result<Option<(OwnedFd, u64)>, ReadError> {
    let path = root.join(relative);
    let single =
        matches!(relative.components().collect::<Vec<_>>()[..], [Utf8Component::Normal(_)]);
    let opened = if single { open_here(path.as_std_path()) } else { Err(rustix::io::Errno::LOOP) };
    let fd = match opened {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        // A link, or a path whose directories may be links: find out where it leads, then insist
        // that what is opened is no link any more.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::MLINK) => match resolve(root, &path)? {
            None => return Ok(None),
            Some(resolved) => {
                open_here(&resolved).map_err(|errno| io_error(&path, errno.into()))?
            }
        },
        Err(rustix::io::Errno::NXIO) => {
            return Err(ReadError::NotAFile { path, kind: "a socket" });
        }
        Err(errno) => return Err(io_error(&path, errno.into())),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|errno| io_error(&path, errno.into()))?;
    if let Some(kind) = not_a_file(FileType::from_raw_mode(stat.st_mode)) {
        return Err(ReadError::NotAFile { path, kind });
    }
    Ok(Some((fd, u64::try_from(stat.st_size).unwrap_or(0))))
}

/// Opens what lies at the path itself: no link is followed, nothing is waited for.
fn open_here(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, READ_ONLY, Mode::empty())
}

/// How a file that may be hostile is opened.
pub(crate) const READ_ONLY: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Reads to the end, or until there is more than `max`: the caller compares the length.
pub(crate) fn drain(fd: impl AsFd, bytes: &mut Vec<u8>, max: u64) -> io::Result<()> {
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

/// What stands there in place of a regular file.
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

/// The real path behind `path`, refused where it lies outside `root`; `None` where nothing does.
pub(crate) fn resolve(root: &Utf8Path, path: &Utf8Path) -> Result<Option<PathBuf>, ReadError> {
    let target = match path.as_std_path().canonicalize() {
        Ok(target) => target,
        // A link that leads nowhere is not "no file": someone put it there.
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
        Err(ReadError::LeadsOut { path: path.into(), root: root.into(), target })
    }
}

fn io_error(path: &Utf8Path, source: io::Error) -> ReadError {
    ReadError::Io { path: path.into(), source }
}

const TEMP_INFIX: &str = ".pdca-tmp-";

/// Whether a file of this name is what a crash left of a replacement.
pub(crate) fn is_temp_name(name: &[u8]) -> bool {
    name.starts_with(b".")
        && name.windows(TEMP_INFIX.len()).any(|part| part == TEMP_INFIX.as_bytes())
}

/// Whether it is left of a replacement of the file `of`.
pub(crate) fn is_temp_name_of(name: &[u8], of: &str) -> bool {
    name.strip_prefix(b".")
        .and_then(|rest| rest.strip_prefix(of.as_bytes()))
        .is_some_and(|rest| rest.starts_with(TEMP_INFIX.as_bytes()))
}

/// A name beside `path` that no artifact has and no other writer uses.
fn temp_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or(OsStr::new("file")));
    name.push(format!(
        "{TEMP_INFIX}{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    path.with_file_name(name)
}

/// Removes from a directory what a crash left of replacements. One whose writer lives stays.
pub fn clear_abandoned(dir: impl AsRef<Utf8Path>) -> io::Result<()> {
    sweep(dir.as_ref(), is_temp_name)
}

/// Removes from a directory what a crash left of the replacements that `is_stale` picks by name.
pub(crate) fn sweep(dir: &Utf8Path, is_stale: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        if is_stale(entry.file_name().as_bytes()) {
            sweep_temp(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes what a crash left of a replacement, unless its writer lives: it holds a lock on it.
/// What is gone already is no error: its writer or another sweeper was faster.
fn sweep_temp(path: &Path) -> io::Result<()> {
    match remove_abandoned(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn remove_abandoned(path: &Path) -> io::Result<()> {
    let kind = fs_err::symlink_metadata(path)?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        return fs_err::remove_file(path);
    }
    // Held until the end: a writer that has not locked yet finds out that it lost this one.
    let file = fs_err::File::open(path)?;
    match file.file().try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => Ok(()),
        // Where locks do not work nobody can tell; a directory holds more than one file's work.
        Err(std::fs::TryLockError::Error(_)) if kind.is_dir() => Ok(()),
        Ok(()) if kind.is_dir() => fs_err::remove_dir_all(path),
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => fs_err::remove_file(path),
    }
}

/// Tells sweepers that the writer of a temporary lives, as long as `file` is open. False where a
/// sweeper came first, between making it and this.
fn claim(temp: &Path, file: &std::fs::File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    // Where locks do not work it goes without.
    if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
        return Ok(false);
    }
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(temp) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    fs_err::File::open(dir)?.sync_all()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_and_rename(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    write_and_put(path, bytes, sync, |temp, path| fs_err::rename(temp, path))
}

fn rename_onto_nothing(temp: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, temp, CWD, path, RenameFlags::NOREPLACE) {
        // A filesystem that cannot do it in one step knows links.
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
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let (temp, mut file) = create_temp(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| if sync { file.sync_all() } else { Ok(()) })
        .and_then(|()| put(&temp, path));
    if written.is_err() {
        // The first error is the one to report; what stays is swept later.
        drop(std::fs::remove_file(&temp));
    }
    written
}

fn create_temp(path: &Path) -> io::Result<(PathBuf, fs_err::File)> {
    loop {
        let temp = temp_name(path);
        match fs_err::File::options().write(true).create_new(true).open(&temp) {
            Ok(file) if claim(&temp, file.file())? => return Ok((temp, file)),
            // Swept before it was claimed; the counter goes on.
            Ok(_) => {}
            // Left by a dead process that had our number; the counter goes on.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes a directory beside `path` that no sweeper takes while the file returned with it is open.
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
