//! The base an attempt started from, remembered from Do to Check.
//!
//! The target's tip may move while a bundle is built and checked. Gates must judge the patch on the
//! commit it was made for, so the first step of an attempt writes that commit down, and every later
//! step of the same attempt reads it. Losing the record loses nothing but that: the tip is resolved
//! again, and a patch that no longer applies is said so.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{BundleId, files};
use serde::{Deserialize, Serialize};

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

    /// The record of the attempt under way, if there is a readable one.
    ///
    /// A record that cannot be read is as good as none: all it holds can be resolved again.
    pub(crate) fn load(&self, id: &BundleId) -> Option<Attempt> {
        let bytes = fs_err::read(self.path(id)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes the record down.
    pub(crate) fn store(&self, id: &BundleId, attempt: &Attempt) -> io::Result<()> {
        fs_err::create_dir_all(&self.root)?;
        let bytes = serde_json::to_vec_pretty(attempt).map_err(io::Error::other)?;
        files::replace(self.path(id), &bytes)
    }
}

/// Whose work lies in a checkout, so that nobody takes it for somebody else's.
#[derive(Clone, Debug)]
pub(crate) struct Occupant {
    path: Utf8PathBuf,
}

/// Work that lies in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenancy {
    /// The job that did it, or the change that it is.
    pub(crate) job: String,
    /// The commit that holds all of it. Without one the work is unfinished, and exists nowhere else.
    pub(crate) head: Option<String>,
}

impl Occupant {
    /// The note kept at `path`.
    pub(crate) fn at(path: &Utf8Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whose work lies there, if anybody's does.
    pub(crate) fn load(&self) -> Option<Tenancy> {
        let text = fs_err::read_to_string(&self.path).ok()?;
        let (job, head) = text
            .trim_end()
            .split_once('\n')
            .map_or((text.trim_end(), None), |(job, head)| (job, Some(head)));
        Some(Tenancy { job: job.to_owned(), head: head.map(str::to_owned) })
    }

    /// From now on this work lies there.
    pub(crate) fn store(&self, tenancy: &Tenancy) -> io::Result<()> {
        if let Some(parent) = self.path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let head = tenancy.head.as_deref().unwrap_or_default();
        files::replace_unsynced(
            &self.path,
            format!("{}\n{head}\n", tenancy.job).trim_end().as_bytes(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_work_it_is_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let occupant =
            Occupant::at(&Utf8PathBuf::from_path_buf(dir.path().join("a/lane-0")).unwrap());
        assert_eq!(occupant.load(), None);
        for head in [None, Some("abc".to_owned())] {
            let tenancy = Tenancy { job: "7-builder-00ff".to_owned(), head };
            occupant.store(&tenancy).unwrap();
            assert_eq!(occupant.load(), Some(tenancy));
        }
    }
}
