//! A note beside a checkout about what lies in it, written by whoever put it there.

use std::io::{self, Read as _};

use camino::Utf8PathBuf;
use fs_err as fs;
use pdca_state::files;
use rustix::fs::{FileType, Mode, OFlags};

/// The longest note, in bytes.
const LONGEST: u64 = 4 << 10;

/// Where the note is kept.
#[derive(Debug)]
pub(crate) struct OwnerFile {
    path: Utf8PathBuf,
}

impl OwnerFile {
    pub(crate) fn at(path: Utf8PathBuf) -> Self {
        Self { path }
    }

    /// Reads the note, if there is one. No link is followed, and nothing is waited for.
    pub(crate) fn load(&self) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(self.path.as_std_path(), flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.told(&io::Error::from(errno))),
        };
        if !FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode).is_file() {
            return Err(self.unfit("is not a file"));
        }
        let mut note = Vec::new();
        std::fs::File::from(fd)
            .take(LONGEST + 1)
            .read_to_end(&mut note)
            .map_err(|source| self.told(&source))?;
        if note.len() as u64 > LONGEST {
            return Err(self.unfit("is longer than any note"));
        }
        Ok(Some(note))
    }

    /// Replaces the note.
    pub(crate) fn store(&self, note: &[u8]) -> io::Result<()> {
        if note.len() as u64 > LONGEST {
            let why = format!("a note of {} bytes, the limit is {LONGEST}", note.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        files::replace_unsynced(&self.path, note).map_err(|source| self.told(&source))
    }

    /// Removes the note, if there is one.
    pub(crate) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn unfit(&self, why: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", self.path))
    }

    fn told(&self, source: &io::Error) -> io::Error {
        io::Error::new(source.kind(), format!("{}: {source}", self.path))
    }
}
