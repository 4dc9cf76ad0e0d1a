//! The directory of one bundle: creating it, and reading and writing its files.

mod dir;

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, RenameFlags};

use crate::archive;
use crate::artifact::Artifact;
use crate::attempts::Attempts;
use crate::calls::BundleCalls;
use crate::contents::{Contents, LoadError, SET_ASIDE};
use crate::files;
use crate::id::{BundleId, IdError};
use crate::root::BundleRoot;

pub(crate) use dir::BundleDir;

/// A handle to the directory of one issue, which need not exist. Only the driver writes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    id: BundleId,
    dir: BundleDir,
}

/// The error of writing into a bundle.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path leads out of the bundle, or the bundle itself leads out of its root.
    #[error("{relative:?} is not a path inside the bundle {dir}")]
    Outside {
        /// The directory of the bundle.
        dir: Utf8PathBuf,
        /// The path that was to be written, relative to the bundle.
        relative: String,
    },
    /// The operating system reported an error.
    #[error("cannot write {path}")]
    Io {
        /// The path that was to be written.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl WriteError {
    pub(crate) fn io(path: &Utf8Path, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }
}

/// The error of creating a bundle. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The name is taken, by a bundle or by something else.
    #[error("{dir} exists already")]
    Exists {
        /// The directory that exists.
        dir: Utf8PathBuf,
    },
    /// The directory or its brief could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Bundle {
    pub(crate) fn new(root: &Utf8Path, id: BundleId) -> Self {
        Self { dir: BundleDir::unchecked(root.join(id.dir_name())), id }
    }

    pub(crate) fn listed(root: &Utf8Path, id: BundleId, is_link: bool) -> Self {
        let dir = root.join(id.dir_name());
        let dir = if is_link { BundleDir::unchecked(dir) } else { BundleDir::listed(dir) };
        Self { id, dir }
    }

    /// A handle to the bundle in `dir`, whose name must be `issue_<id>`.
    pub fn at(dir: impl Into<Utf8PathBuf>) -> Result<Bundle, IdError> {
        let dir = dir.into();
        let id = BundleId::parse_dir_name(dir.file_name().unwrap_or_default())?;
        Ok(Self { id, dir: BundleDir::unchecked(dir) })
    }

    /// The id of the bundle.
    pub fn id(&self) -> &BundleId {
        &self.id
    }

    /// The directory of the bundle.
    pub fn dir(&self) -> &Utf8Path {
        self.dir.path()
    }

    /// The directory as a place to read and write in.
    pub(crate) fn place(&self) -> &BundleDir {
        &self.dir
    }

    /// The archived attempts.
    pub fn attempts(&self) -> Attempts<'_> {
        Attempts::of(self)
    }

    /// Returns the calls of its leaves.
    pub fn calls(&self) -> BundleCalls<'_> {
        BundleCalls::of(self)
    }

    /// The path of an artifact, which need not exist.
    pub fn path(&self, artifact: Artifact) -> Utf8PathBuf {
        self.dir().join(artifact.file_name())
    }

    /// Returns true if the directory exists.
    pub fn exists(&self) -> bool {
        self.dir().is_dir()
    }

    /// Reads an artifact; `None` if it is absent.
    ///
    /// Refuses more than [`Artifact::max_len`] bytes, directories, pipes and links out of the bundle.
    pub fn read(&self, artifact: Artifact) -> Result<Option<Vec<u8>>, LoadError> {
        self.dir.require_inside()?;
        let name = Utf8Path::new(artifact.file_name());
        Ok(files::read_within(self.dir(), name, artifact.max_len())?)
    }

    /// Writes an artifact atomically and durably: a crash leaves the old version or the new one.
    pub fn publish(&self, artifact: Artifact, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.dir.writable(artifact)?;
        files::sweep(self.dir(), |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::replace(&path, bytes))
            .map_err(|source| WriteError::io(&path, source))
    }

    /// Like [`Bundle::publish`], but never replaces: returns false if the artifact exists already.
    pub fn publish_new(&self, artifact: Artifact, bytes: &[u8]) -> Result<bool, WriteError> {
        let path = self.dir.writable(artifact)?;
        files::sweep(self.dir(), |name| files::is_temp_name_of(name, artifact.file_name()))
            // Between deriving the state and this call a person may have written the artifact; that
            // text wins.
            .and_then(|()| files::create(&path, bytes))
            .map_err(|source| WriteError::io(&path, source))
    }

    /// Like [`Bundle::publish`], but not synced: for artifacts that can be derived again from others.
    pub fn publish_derived(&self, artifact: Artifact, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.dir.writable(artifact)?;
        files::sweep(self.dir(), |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::replace_unsynced(&path, bytes))
            .map_err(|source| WriteError::io(&path, source))
    }

    /// Like [`Bundle::publish`], for any path below the bundle, such as a test that ships with the
    /// change. Creates missing directories; refuses a path that leaves the bundle.
    pub fn publish_file(&self, relative: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.dir.make_way(relative)?;
        files::replace(&path, bytes).map_err(|source| WriteError::io(&path, source))
    }

    /// Like [`Bundle::publish_file`], but not synced: for logs and the like.
    pub fn publish_derived_file(
        &self,
        relative: &Utf8Path,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let path = self.dir.make_way(relative)?;
        files::replace_unsynced(&path, bytes).map_err(|source| WriteError::io(&path, source))
    }

    /// Removes the logs of the last integration; the logs of Check stay.
    pub fn remove_integration_logs(&self) -> Result<(), WriteError> {
        let path = self.dir().join(Artifact::integration_logs());
        // Never remove through a link: it could lead anywhere.
        if !path.is_dir() || path.is_symlink() || self.dir.require_inside().is_err() {
            return Ok(());
        }
        fs_err::remove_dir_all(&path).map_err(|source| WriteError::io(&path, source))
    }

    /// Renames an unusable artifact to a free name beside it, so that it counts as absent and
    /// nothing is lost. Returns the new path, or `None` if there was no such artifact.
    pub fn set_aside(&self, artifact: Artifact) -> Result<Option<Utf8PathBuf>, WriteError> {
        self.set_aside_file(Utf8Path::new(artifact.file_name()))
    }

    /// Like [`Bundle::set_aside`], for any file directly in the bundle except archived attempts.
    ///
    /// The new name is `<name>.aside-<n>`, under which the file is archived with the attempt.
    pub fn set_aside_file(&self, relative: &Utf8Path) -> Result<Option<Utf8PathBuf>, WriteError> {
        let name = inside(self.dir(), relative)
            .filter(|name| name.iter().count() == 1)
            // An archived attempt is history and never moves.
            .filter(|name| !name.as_str().starts_with(archive::DIR_PREFIX))
            .filter(|_| self.dir.require_inside().is_ok())
            .ok_or_else(|| self.dir.outside(relative.as_str()))?;
        let from = self.dir().join(&name);
        for number in 1_u32.. {
            let to = self.dir().join(format!("{name}{SET_ASIDE}{number}"));
            match rename_new(&from, &to) {
                Ok(()) => return Ok(Some(to)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(WriteError::io(&from, error)),
            }
        }
        Ok(None)
    }

    /// Removes temporary files that a crashed writer left in the bundle.
    pub fn sweep_temps(&self) -> Result<(), WriteError> {
        files::sweep(self.dir(), files::is_temp_name)
            .map_err(|source| WriteError::io(self.dir(), source))
    }

    /// Lists the bundle, after checking that it is inside its root.
    pub(crate) fn contents(&self) -> Result<Contents<'_>, LoadError> {
        self.dir.require_inside()?;
        Contents::list(self.dir())
    }
}

impl BundleRoot {
    /// Creates a bundle with a brief, atomically: a crash leaves all of it or nothing.
    pub fn create(&self, id: &BundleId, brief: &str) -> Result<Bundle, CreateError> {
        self.create_with(id, &[(Artifact::Brief, brief.as_bytes())])
    }

    /// Like [`BundleRoot::create`], with several files at once.
    pub fn create_with(
        &self,
        id: &BundleId,
        artifacts: &[(Artifact, &[u8])],
    ) -> Result<Bundle, CreateError> {
        let bundle = self.bundle(id);
        let exists = || CreateError::Exists { dir: bundle.dir().to_owned() };
        // This only saves the work. Between two processes, the rename without replacement decides.
        if bundle.dir().symlink_metadata().is_ok() {
            return Err(exists());
        }
        let with: Vec<(&str, &[u8])> =
            artifacts.iter().map(|(artifact, bytes)| (artifact.file_name(), *bytes)).collect();
        let name = id.dir_name();
        match fs_err::create_dir_all(self.path())
            .and_then(|()| files::sweep(self.path(), |temp| files::is_temp_name_of(temp, &name)))
            .and_then(|()| publish_dir(bundle.dir(), &with))
        {
            Ok(()) => Ok(bundle),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
            Err(error) => Err(WriteError::io(bundle.dir(), error).into()),
        }
    }
}

/// Normalizes a path that stays inside `dir`. Returns `None` for a path with `..`, a root or control
/// characters, and for one that passes through a link or a file.
pub(crate) fn inside(dir: &Utf8Path, relative: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut clean = Utf8PathBuf::new();
    for component in relative.components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::Normal(name) if !name.chars().any(char::is_control) => {
                // `symlink_metadata`, so that a link to a directory is refused as well.
                if !clean.as_str().is_empty()
                    && dir.join(&clean).symlink_metadata().is_ok_and(|meta| !meta.is_dir())
                {
                    return None;
                }
                clean.push(name);
            }
            Utf8Component::Normal(_)
            | Utf8Component::ParentDir
            | Utf8Component::RootDir
            | Utf8Component::Prefix(_) => return None,
        }
    }
    (!clean.as_str().is_empty()).then_some(clean)
}

/// Renames a file or directory; fails with `AlreadyExists` if the new name is taken.
pub(crate) fn rename_new(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::renameat_with(
        CWD,
        from.as_std_path(),
        CWD,
        to.as_std_path(),
        RenameFlags::NOREPLACE,
    ) {
        Ok(()) => Ok(()),
        // The file system has no atomic no-replace, and a directory cannot be hard-linked: check first.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => match std::fs::rename(from, to) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    Err(io::ErrorKind::AlreadyExists.into())
                }
                renamed => renamed,
            },
        },
        Err(errno) => Err(errno.into()),
    }
}

/// Creates a directory with its first files atomically: a crash leaves all of them or nothing.
pub(crate) fn publish_dir(dir: &Utf8Path, with: &[(&str, &[u8])]) -> io::Result<()> {
    // Keep the claim until the rename, or another process would sweep the directory as abandoned.
    let (temp, _claim) = files::create_temp_dir(dir.as_std_path())?;
    let temp = Utf8PathBuf::from_path_buf(temp)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let placed = with
        .iter()
        .try_for_each(|(name, bytes)| files::replace(temp.join(name), bytes))
        .and_then(|()| rename_new(&temp, dir))
        .and_then(|()| files::sync_dir(dir.parent().unwrap_or(dir)));
    if placed.is_err() {
        // Report the first error; a directory that cannot be removed is swept later.
        drop(std::fs::remove_dir_all(&temp));
    }
    placed
}

#[cfg(test)]
mod tests;
