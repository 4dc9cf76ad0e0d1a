//! The owner of the work in a checkout, recorded in a note beside it.

use std::io::{self, Read as _};

use camino::Utf8PathBuf;
use fs_err as fs;
use pdca_state::files;
use rustix::fs::{FileType, Mode, OFlags};

/// The longest note, in bytes: a job and a commit need a few hundred. A longer file was not written
/// by this crate.
const LONGEST: u64 = 4 << 10;

/// The file that holds the note.
#[derive(Debug)]
pub(crate) struct OwnerFile {
    path: Utf8PathBuf,
}

impl OwnerFile {
    pub(crate) fn at(path: Utf8PathBuf) -> Self {
        Self { path }
    }

    /// Reads the note; `None` if there is none. Follows no link and does not block on a FIFO.
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
            return Err(self.unfit("is too long for an owner note"));
        }
        Ok(Some(note))
    }

    pub(crate) fn store(&self, note: &[u8]) -> io::Result<()> {
        if note.len() as u64 > LONGEST {
            let why = format!("a note of {} bytes, the limit is {LONGEST}", note.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        files::replace_unsynced(&self.path, note).map_err(|source| self.told(&source))
    }

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

/// The owner of the work in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerNote {
    /// The job that did the work, or the change that the work is.
    pub job: String,
    /// The commit that holds all of the work. Without one the work is unfinished and exists only in the checkout.
    pub head: Option<String>,
}

impl OwnerNote {
    /// The owner of a checkout that is being cleared: its work is already saved.
    pub(crate) const CLEARING: &str = "clearing";

    /// Names `job` as the owner of unfinished work.
    pub fn unfinished(job: &str) -> Self {
        Self { job: job.to_owned(), head: None }
    }

    /// Returns true if the checkout is being cleared, or was when its driver died.
    pub fn is_clearing(&self) -> bool {
        self.job == Self::CLEARING
    }

    /// Returns true if nothing in the checkout has to be saved.
    pub fn is_settled(&self) -> bool {
        self.head.is_some() || self.is_clearing()
    }

    /// Serializes the owner as the text of the note.
    pub fn to_note(&self) -> Vec<u8> {
        format!("{}\n{}\n", self.job, self.head.as_deref().unwrap_or_default()).into_bytes()
    }

    /// Parses the text of a note; `None` if it is empty.
    pub fn from_note(note: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(note);
        let mut lines = text.lines();
        let job = lines.next().filter(|job| !job.is_empty())?.to_owned();
        let head = lines.next().filter(|head| !head.is_empty()).map(str::to_owned);
        Some(Self { job, head })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_it_was_written() {
        for head in [None, Some("abc".to_owned())] {
            let owner = OwnerNote { job: "7-builder-00ff".to_owned(), head };
            assert_eq!(OwnerNote::from_note(&owner.to_note()), Some(owner));
        }
    }

    #[test]
    fn a_note_without_a_job_names_no_owner() {
        assert_eq!(OwnerNote::from_note(b""), None);
        assert_eq!(OwnerNote::from_note(b"\nabc\n"), None);
    }

    #[test]
    fn only_unfinished_work_has_to_be_saved() {
        assert!(!OwnerNote::unfinished("7-builder-00ff").is_settled());
        assert!(OwnerNote::unfinished(OwnerNote::CLEARING).is_settled());
        let committed = OwnerNote { job: "7-builder-00ff".into(), head: Some("abc".into()) };
        assert!(committed.is_settled());
    }
}
