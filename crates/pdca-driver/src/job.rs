//! Job directories, in which a child's verdict waits until its artifact is published.
//!
//! A job's directory is named by a digest over everything that determines the job's result. The
//! supervisor writes the child's verdict there, so a driver that was killed after the child ended
//! finds the verdict under the same name and runs nothing twice; a job with other inputs has
//! another name and finds nothing. The directory goes when the artifact is published.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::BundleId;
use sha2::{Digest as _, Sha256};

/// The job directories of one workspace.
#[derive(Clone, Debug)]
pub struct Jobs {
    root: Utf8PathBuf,
}

impl Jobs {
    /// Creates no directory before it is needed.
    pub fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The directory of all jobs of one bundle.
    pub fn of(&self, id: &BundleId) -> Utf8PathBuf {
        self.root.join(id.dir_name())
    }

    /// Returns the directory of the job `name` with the given key.
    pub(crate) fn path(&self, id: &BundleId, name: &str, key: &JobKey) -> Utf8PathBuf {
        self.of(id).join(format!("{name}-{key}"))
    }

    /// Removes a job whose artifact is published. A missing directory is fine: a crash may have come between.
    pub fn remove(&self, job: &Utf8Path) -> io::Result<()> {
        // A child may have left directories without permissions or files that cannot be removed.
        pdca_lanes::discard(job, &self.root.with_file_name("discarded"))
    }

    /// Removes all jobs of a bundle, in a state where none of them can be resumed.
    pub fn remove_all(&self, id: &BundleId) -> io::Result<()> {
        self.remove(&self.of(id))
    }
}

/// The digest that names a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobKey(String);

impl JobKey {
    /// Hashes named parts. Lengths are included, so that parts cannot run into each other.
    pub(crate) fn over<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut hash = Sha256::new();
        for (name, bytes) in parts {
            for piece in [name.as_bytes(), bytes] {
                hash.update((piece.len() as u64).to_le_bytes());
                hash.update(piece);
            }
        }
        // Sixty-four bits are enough to tell the few jobs of one bundle apart.
        Self(hex(&hash.finalize()[..8]))
    }
}

impl std::fmt::Display for JobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("because writing to a string cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[(&str, &str)]) -> JobKey {
        JobKey::over(parts.iter().map(|(name, text)| (*name, text.as_bytes())))
    }

    #[test]
    fn the_same_parts_give_the_same_key() {
        assert_eq!(key(&[("base", "a"), ("patch", "b")]), key(&[("base", "a"), ("patch", "b")]));
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        assert_ne!(key(&[("a", "bc")]), key(&[("ab", "c")]));
        assert_ne!(key(&[("a", "b"), ("c", "d")]), key(&[("a", "bcd")]));
        assert_ne!(key(&[("a", "")]), key(&[]));
    }

    #[test]
    fn removing_a_job_twice_is_fine() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().join("jobs")).unwrap();
        let jobs = Jobs::new(root);
        let id: BundleId = "7".parse().unwrap();
        let job = jobs.path(&id, "gate", &key(&[("x", "y")]));
        fs_err::create_dir_all(&job).unwrap();
        jobs.remove(&job).unwrap();
        jobs.remove(&job).unwrap();
        assert!(!job.exists());
    }
}
