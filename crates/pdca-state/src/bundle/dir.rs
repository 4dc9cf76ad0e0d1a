//! The directory of a bundle as a place to read and write in, and nowhere else.

use camino::{Utf8Path, Utf8PathBuf};

use super::{WriteError, inside};
use crate::artifact::Artifact;
use crate::contents::LoadError;
use crate::files::{self, FileReadError};

/// A directory that may be a symbolic link. Nothing is read or written through it before it was checked that it
/// does not lead out of the bundle root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleDir {
    path: Utf8PathBuf,
    link: LinkCheck,
}

/// Records if the directory may be a symbolic link, which costs a check before each access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkCheck {
    /// A listing of the root showed a directory.
    Done,
    /// A link, or not checked yet.
    Needed,
}

impl BundleDir {
    pub(super) fn unchecked(path: Utf8PathBuf) -> Self {
        Self { path, link: LinkCheck::Needed }
    }

    /// A directory that a listing of the root has shown to be one.
    pub(super) fn listed(path: Utf8PathBuf) -> Self {
        Self { path, link: LinkCheck::Done }
    }

    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Returns an error if the directory is a link that leads out of the root.
    pub(crate) fn require_inside(&self) -> Result<(), LoadError> {
        // The first test saves a system call for each access to a bundle that a listing has shown.
        if self.link == LinkCheck::Done || !self.path.is_symlink() {
            return Ok(());
        }
        let root = self
            .path
            .parent()
            .filter(|root| !root.as_str().is_empty())
            .unwrap_or(Utf8Path::new("."));
        match files::resolve(root, &self.path) {
            Ok(_) => Ok(()),
            Err(FileReadError::LeadsOut { target, .. }) => {
                Err(LoadError::LeadsOut { dir: self.path.clone(), target })
            }
            Err(FileReadError::Io { source, .. }) => {
                Err(LoadError::List { dir: self.path.clone(), source })
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn writable(&self, artifact: Artifact) -> Result<Utf8PathBuf, WriteError> {
        match self.require_inside() {
            Ok(()) => Ok(self.path.join(artifact.file_name())),
            Err(_) => Err(self.outside(artifact.file_name())),
        }
    }

    /// Returns the path of a file below the bundle, after creating the directories above it.
    pub(crate) fn make_way(&self, relative: &Utf8Path) -> Result<Utf8PathBuf, WriteError> {
        let inside = inside(&self.path, relative).filter(|_| self.require_inside().is_ok());
        let path = self.path.join(inside.ok_or_else(|| self.outside(relative.as_str()))?);
        let dir = path.parent().unwrap_or(&self.path);
        let name = path.file_name().unwrap_or_default();
        fs_err::create_dir_all(dir)
            .and_then(|()| files::sweep(dir, |found| files::is_temp_name_of(found, name)))
            .map_err(|source| WriteError::io(&path, source))?;
        Ok(path)
    }

    pub(crate) fn outside(&self, relative: &str) -> WriteError {
        WriteError::Outside { dir: self.path.clone(), relative: relative.to_owned() }
    }
}
