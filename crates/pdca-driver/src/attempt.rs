//! The base an attempt started from, remembered from Do to Check.
//!
//! The target's tip may move while a bundle is built and checked. Gates must judge the patch on the
//! commit it was made for, so the first step of an attempt writes that commit down, and every later
//! step of the same attempt reads it. Losing the record loses nothing but that: the tip is resolved
//! again, and a patch that no longer applies is said so.

use std::io;

use camino::Utf8PathBuf;
use pdca_state::{BundleId, files};
use serde::{Deserialize, Serialize};

use crate::site::{Site, owner};

/// What one attempt at one bundle starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// How many attempts of this bundle are archived.
    pub(crate) iterations: u32,
    /// The sha256 of the brief that Do was given.
    pub(crate) brief: String,
    /// The target's name.
    pub(crate) target: String,
    /// The branch the base was resolved from.
    pub(crate) branch: String,
    /// The base commit.
    pub(crate) base: String,
}

/// The records of all attempts under way in one workspace.
#[derive(Clone, Debug)]
pub(crate) struct Attempts {
    root: Utf8PathBuf,
}

impl Attempts {
    /// Records below `root`.
    pub(crate) fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, id: &BundleId) -> Utf8PathBuf {
        self.root.join(format!("{}.json", id.dir_name()))
    }

    /// The record of the attempt under way, if there is one.
    ///
    /// One that is garbled is as good as none: all it holds can be resolved again. One that cannot
    /// be read is an error, because then it is not known.
    pub(crate) fn load(&self, id: &BundleId) -> io::Result<Option<Attempt>> {
        match fs_err::read(self.path(id)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an attempt has begun and its record is still there.
    pub(crate) fn is_under_way(&self, id: &BundleId) -> bool {
        self.path(id).exists()
    }

    /// Forgets an attempt that came to nothing, so that the next one starts from the branch's tip.
    pub(crate) fn remove(&self, id: &BundleId) -> io::Result<()> {
        match fs_err::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes the record down.
    pub(crate) fn store(&self, id: &BundleId, attempt: &Attempt) -> io::Result<()> {
        fs_err::create_dir_all(&self.root)?;
        let bytes = serde_json::to_vec_pretty(attempt).map_err(io::Error::other)?;
        files::replace(self.path(id), &bytes)
    }
}

/// Work that lies in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenancy {
    /// The job that did it, or the change that it is.
    pub(crate) job: String,
    /// The commit that holds all of it. Without one the work is unfinished, and exists nowhere else.
    pub(crate) head: Option<String>,
}

impl Tenancy {
    /// Unfinished work of `job`.
    pub(crate) fn unfinished(job: &str) -> Self {
        Self { job: job.to_owned(), head: None }
    }

    /// The note that is kept beside the checkout.
    pub(crate) fn to_note(&self) -> Vec<u8> {
        format!("{}\n{}\n", self.job, self.head.as_deref().unwrap_or_default()).into_bytes()
    }

    /// Reads the note. One that says nothing is nobody's.
    pub(crate) fn from_note(note: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(note);
        let mut lines = text.lines();
        let job = lines.next().filter(|job| !job.is_empty())?.to_owned();
        let head = lines.next().filter(|head| !head.is_empty()).map(str::to_owned);
        Some(Self { job, head })
    }
}

impl Site {
    /// Forgets that a bundle's work lay in a checkout that is gone, so that it can begin in another.
    /// Whoever calls this is admitted to the workspace.
    pub fn forget_lost_checkout(&self, id: &BundleId) -> io::Result<()> {
        let (lanes, workspace) = (self.lent(), self.mark());
        for note in lanes.notes()? {
            let job = Tenancy::from_note(&note.text).map(|tenancy| tenancy.job);
            if job.and_then(|job| owner(&job, &workspace)).as_ref() == Some(id) {
                lanes.forget_lost(&note)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_work_it_is_is_read_as_it_was_written() {
        for head in [None, Some("abc".to_owned())] {
            let tenancy = Tenancy { job: "7-builder-00ff".to_owned(), head };
            assert_eq!(Tenancy::from_note(&tenancy.to_note()), Some(tenancy));
        }
    }

    #[test]
    fn a_note_that_says_nothing_is_nobodys() {
        assert_eq!(Tenancy::from_note(b""), None);
        assert_eq!(Tenancy::from_note(b"\nabc\n"), None);
    }

    #[test]
    fn a_record_that_is_gone_is_none_and_one_that_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().join("attempts")).unwrap();
        let attempts = Attempts::new(root.clone());
        let id: BundleId = "7".parse().unwrap();
        assert_eq!(attempts.load(&id).unwrap(), None);
        let attempt = Attempt {
            iterations: 1,
            brief: "b".into(),
            target: "t".into(),
            branch: "main".into(),
            base: "c".into(),
        };
        attempts.store(&id, &attempt).unwrap();
        assert_eq!(attempts.load(&id).unwrap(), Some(attempt));
        attempts.remove(&id).unwrap();
        attempts.remove(&id).unwrap();
        assert_eq!(attempts.load(&id).unwrap(), None);
        fs_err::create_dir(root.join("issue_7.json")).unwrap();
        attempts.load(&id).unwrap_err();
    }
}
