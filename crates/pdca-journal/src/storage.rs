//! The file of a journal, behind a narrow trait.
//!
//! Tests implement the trait over a real file to simulate a failing sync or a loss of power.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};

use camino::Utf8PathBuf;
use rustix::fs::OFlags;

use crate::read::MAX_BYTES;

pub(crate) trait Storage: std::fmt::Debug + Send {
    /// Writes all of `bytes` at offset `at`. A failure may leave any part of them written.
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates to this length.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Checks if the path still names this file.
    fn look(&self) -> io::Result<PathState>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathState {
    /// The path still names the file; holds its length.
    There(u64),
    /// The path names nothing or another file.
    Gone,
}

#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    path: Utf8PathBuf,
}

impl Disk {
    /// Opens a regular file; a link is not followed.
    pub(crate) fn open(path: Utf8PathBuf) -> io::Result<Self> {
        // Opening a pipe or a terminal in its place must neither block nor make it ours; it is refused below.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = File::options();
        // Not in append mode: Linux then ignores the offset of a write, and the writer could no
        // longer say where its bytes are.
        let options = options.read(true).write(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(&path)?;
        if file.metadata()?.is_file() {
            Ok(Self { file, path })
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }

    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        let len = self.file.metadata()?.len();
        if len > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl Storage for Disk {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        // The length is part of the data that `fdatasync` writes; times are not needed.
        self.file.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn look(&self) -> io::Result<PathState> {
        let ours = self.file.metadata()?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                Ok(PathState::There(ours.len()))
            }
            Ok(_) => Ok(PathState::Gone),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(PathState::Gone),
            Err(error) => Err(error),
        }
    }
}
