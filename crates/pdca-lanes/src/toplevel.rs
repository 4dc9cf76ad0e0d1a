//! The working tree around a directory, and whose it is.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::target::{Identity, open_repository};

/// A working tree, known by its top and by the repository it belongs to.
///
/// Linked worktrees of one repository are different working trees of the same repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toplevel {
    root: Option<Utf8PathBuf>,
    identity: Identity,
}

impl Toplevel {
    /// The working tree that a directory is in; none where it is in no repository.
    pub fn around(dir: &Utf8Path) -> Option<Self> {
        let dir = dir.canonicalize_utf8().ok()?;
        dir.ancestors().find(|dir| dir.join(".git").exists()).and_then(Self::at)
    }

    /// The repository at this path and not above it; none where there is none.
    pub fn at(path: &Utf8Path) -> Option<Self> {
        let repo = open_repository(path).ok()?.to_thread_local();
        let identity = Identity::of(&fs::metadata(repo.common_dir()).ok()?);
        let root = repo.workdir().and_then(|root| root.canonicalize().ok());
        Some(Self { root: root.and_then(|root| Utf8PathBuf::from_path_buf(root).ok()), identity })
    }

    /// The top of the working tree; none where the repository is bare.
    pub fn root(&self) -> Option<&Utf8Path> {
        self.root.as_deref()
    }

    /// Whether both belong to the same repository.
    pub fn is_of_repository_of(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}
