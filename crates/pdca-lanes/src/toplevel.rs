//! The working tree around a directory, and the repository it belongs to.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::target::{Identity, open_repository};

/// A working tree, identified by its root and its repository.
///
/// Linked worktrees of one repository are different working trees of the same repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toplevel {
    root: Option<Utf8PathBuf>,
    identity: Identity,
}

impl Toplevel {
    /// Finds the working tree that contains a directory; `None` outside of any repository.
    pub fn around(dir: &Utf8Path) -> Option<Self> {
        let dir = dir.canonicalize_utf8().ok()?;
        dir.ancestors().find(|dir| dir.join(".git").exists()).and_then(Self::at)
    }

    /// Opens the repository at this path, without searching above it.
    pub fn at(path: &Utf8Path) -> Option<Self> {
        let repo = open_repository(path).ok()?.to_thread_local();
        let identity = Identity::of(&fs::metadata(repo.common_dir()).ok()?);
        let root = repo.workdir().and_then(|root| root.canonicalize().ok());
        Some(Self { root: root.and_then(|root| Utf8PathBuf::from_path_buf(root).ok()), identity })
    }

    /// Returns the root of the working tree; `None` in a bare repository.
    pub fn root(&self) -> Option<&Utf8Path> {
        self.root.as_deref()
    }

    /// Returns true if both belong to the same repository.
    pub fn is_of_repository_of(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}
