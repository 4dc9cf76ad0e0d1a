//! The directory of one bundle: creating it, and reading and writing its files.

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, RenameFlags};

use crate::archive;
use crate::artifact::{ADVISORY, Artifact, ERROR_LOG};
use crate::contents::{Contents, LoadError, SET_ASIDE};
use crate::files::{self, ReadError};
use crate::id::{BundleId, IdError};
use crate::root::BundleRoot;

/// A handle to the directory of one issue, which need not exist. Only the driver writes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    id: BundleId,
    dir: Utf8PathBuf,
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
        Self { dir: root.join(id.dir_name()), id, link: LinkCheck::Needed }
    }

    pub(crate) fn listed(root: &Utf8Path, id: BundleId, is_link: bool) -> Self {
        let link = if is_link { LinkCheck::Needed } else { LinkCheck::Done };
        Self { link, ..Self::new(root, id) }
    }

    /// A handle to the bundle in `dir`, whose name must be `issue_<id>`.
    pub fn at(dir: impl Into<Utf8PathBuf>) -> Result<Bundle, IdError> {
        let dir = dir.into();
        let id = BundleId::parse_dir_name(dir.file_name().unwrap_or_default())?;
        Ok(Self { id, dir, link: LinkCheck::Needed })
    }

    /// Creates a bundle with a brief, atomically: a crash leaves all of it or nothing.
    pub fn create(root: &BundleRoot, id: &BundleId, brief: &str) -> Result<Bundle, CreateError> {
        let bundle = root.bundle(id);
        let exists = || CreateError::Exists { dir: bundle.dir.clone() };
        if bundle.dir.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let brief = [(Artifact::Brief.file_name(), brief.as_bytes())];
        let name = id.dir_name();
        match fs_err::create_dir_all(root.path())
            .and_then(|()| files::sweep(root.path(), |temp| files::is_temp_name_of(temp, &name)))
            .and_then(|()| publish_dir(&bundle.dir, &brief))
        {
            Ok(()) => Ok(bundle),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
            Err(error) => Err(Self::write_error(&bundle.dir, error).into()),
        }
    }

    /// The id of the bundle.
    pub fn id(&self) -> &BundleId {
        &self.id
    }

    /// The directory of the bundle.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// The path of an artifact, which need not exist.
    pub fn path(&self, artifact: Artifact) -> Utf8PathBuf {
        self.dir.join(artifact.file_name())
    }

    /// Returns true if the directory exists.
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Reads an artifact; `None` if it is absent.
    ///
    /// Refuses more than [`Artifact::max_len`] bytes, directories, pipes and links out of the bundle.
    pub fn read(&self, artifact: Artifact) -> Result<Option<Vec<u8>>, LoadError> {
        self.require_inside()?;
        let name = Utf8Path::new(artifact.file_name());
        Ok(files::read_within(&self.dir, name, artifact.max_len())?)
    }

    /// Reads an artifact of the archived attempt `number`; `None` if it is absent.
    pub fn read_archived(
        &self,
        number: u32,
        artifact: Artifact,
    ) -> Result<Option<Vec<u8>>, LoadError> {
        self.require_inside()?;
        let path = crate::archive::dir_of(number).join(artifact.file_name());
        Ok(files::read_within(&self.dir, &path, artifact.max_len())?)
    }

    /// Writes an artifact atomically and durably: a crash leaves the old version or the new one.
    pub fn publish(&self, artifact: Artifact, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.writable(artifact)?;
        files::sweep(&self.dir, |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::replace(&path, bytes))
            .map_err(|source| Self::write_error(&path, source))
    }

    /// Like [`Bundle::publish`], but never replaces: returns false if the artifact exists already.
    pub fn publish_new(&self, artifact: Artifact, bytes: &[u8]) -> Result<bool, WriteError> {
        let path = self.writable(artifact)?;
        files::sweep(&self.dir, |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::create(&path, bytes))
            .map_err(|source| Self::write_error(&path, source))
    }

    /// Like [`Bundle::publish`], but not synced: for artifacts that can be derived again from others.
    pub fn publish_derived(&self, artifact: Artifact, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.writable(artifact)?;
        files::sweep(&self.dir, |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::replace_unsynced(&path, bytes))
            .map_err(|source| Self::write_error(&path, source))
    }

    /// Like [`Bundle::publish`], for any path below the bundle, such as a test that ships with the
    /// change. Creates missing directories; refuses a path that leaves the bundle.
    pub fn publish_file(&self, relative: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.make_way(relative)?;
        files::replace(&path, bytes).map_err(|source| Self::write_error(&path, source))
    }

    /// Like [`Bundle::publish_file`], but not synced: for logs and the like.
    pub fn publish_derived_file(
        &self,
        relative: &Utf8Path,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let path = self.make_way(relative)?;
        files::replace_unsynced(&path, bytes).map_err(|source| Self::write_error(&path, source))
    }

    /// The path of a gate's log, relative to the bundle, as [`GateRow::log`](crate::GateRow::log) has it.
    pub fn gate_log(rule_id: &str) -> Utf8PathBuf {
        Utf8Path::new(Artifact::GateLogs.file_name()).join(format!("{}.log", tame(rule_id)))
    }

    /// The path, relative to the bundle, of the log of a row that failed when the bundle was gated
    /// together with others.
    pub fn integration_log(rule_id: &str) -> Utf8PathBuf {
        Self::integration_logs().join(format!("{}.log", tame(rule_id)))
    }

    /// Removes the logs of the last integration; the logs of Check stay.
    pub fn remove_integration_logs(&self) -> Result<(), WriteError> {
        let path = self.dir.join(Self::integration_logs());
        // Never remove through a link: it could lead anywhere.
        if !path.is_dir() || path.is_symlink() || self.require_inside().is_err() {
            return Ok(());
        }
        fs_err::remove_dir_all(&path).map_err(|source| Self::write_error(&path, source))
    }

    /// Cannot collide with a [`Bundle::gate_log`]: those end in `.log`.
    fn integration_logs() -> Utf8PathBuf {
        Utf8Path::new(Artifact::GateLogs.file_name()).join("integration")
    }

    /// The path of an adviser's review, relative to the bundle.
    pub fn advisory(adviser: &str) -> Utf8PathBuf {
        format!("{}{}{}", ADVISORY.0, tame(adviser), ADVISORY.1).into()
    }

    /// The path of the log of a failed leaf, relative to the bundle.
    pub fn error_log(leaf: &str) -> Utf8PathBuf {
        format!("{}{ERROR_LOG}", tame(leaf)).into()
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
        let name = inside(&self.dir, relative)
            .filter(|name| name.iter().count() == 1)
            .filter(|name| !name.as_str().starts_with(archive::DIR_PREFIX))
            .filter(|_| self.require_inside().is_ok())
            .ok_or_else(|| self.outside(relative.as_str()))?;
        let from = self.dir.join(&name);
        for number in 1_u32.. {
            let to = self.dir.join(format!("{name}{SET_ASIDE}{number}"));
            match rename_new(&from, &to) {
                Ok(()) => return Ok(Some(to)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Self::write_error(&from, error)),
            }
        }
        Ok(None)
    }

    /// Removes temporary files that a crashed writer left in the bundle.
    pub fn sweep_temps(&self) -> Result<(), WriteError> {
        files::sweep(&self.dir, files::is_temp_name)
            .map_err(|source| Self::write_error(&self.dir, source))
    }

    /// Lists the bundle, after checking that it is inside its root.
    pub(crate) fn contents(&self) -> Result<Contents<'_>, LoadError> {
        self.require_inside()?;
        Contents::list(&self.dir)
    }

    pub(crate) fn write_error(path: &Utf8Path, source: io::Error) -> WriteError {
        WriteError::Io { path: path.into(), source }
    }

    /// Returns an error if the bundle's directory is a link that leads out of the root.
    pub(crate) fn require_inside(&self) -> Result<(), LoadError> {
        if self.link == LinkCheck::Done || !self.dir.is_symlink() {
            return Ok(());
        }
        let root = self
            .dir
            .parent()
            .filter(|root| !root.as_str().is_empty())
            .unwrap_or(Utf8Path::new("."));
        match files::resolve(root, &self.dir) {
            Ok(_) => Ok(()),
            Err(ReadError::LeadsOut { target, .. }) => {
                Err(LoadError::LeadsOut { dir: self.dir.clone(), target })
            }
            Err(ReadError::Io { source, .. }) => {
                Err(LoadError::List { dir: self.dir.clone(), source })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn writable(&self, artifact: Artifact) -> Result<Utf8PathBuf, WriteError> {
        match self.require_inside() {
            Ok(()) => Ok(self.path(artifact)),
            Err(_) => Err(self.outside(artifact.file_name())),
        }
    }

    /// Returns the path of a file below the bundle, after creating the directories above it.
    pub(crate) fn make_way(&self, relative: &Utf8Path) -> Result<Utf8PathBuf, WriteError> {
        let inside = inside(&self.dir, relative).filter(|_| self.require_inside().is_ok());
        let path = self.dir.join(inside.ok_or_else(|| self.outside(relative.as_str()))?);
        let dir = path.parent().unwrap_or(&self.dir);
        let name = path.file_name().unwrap_or_default();
        fs_err::create_dir_all(dir)
            .and_then(|()| files::sweep(dir, |found| files::is_temp_name_of(found, name)))
            .map_err(|source| Self::write_error(&path, source))?;
        Ok(path)
    }

    pub(crate) fn outside(&self, relative: &str) -> WriteError {
        WriteError::Outside { dir: self.dir.clone(), relative: relative.to_owned() }
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
        .and_then(|()| files::sync_dir(dir.parent().unwrap_or(dir).as_std_path()));
    if placed.is_err() {
        // Report the first error; a directory that cannot be removed is swept later.
        drop(std::fs::remove_dir_all(&temp));
    }
    placed
}

/// Makes a file name component of a name that comes from configuration or from a model.
pub(crate) fn tame(name: &str) -> String {
    const LONGEST: usize = 100;
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let tamed: String =
        name.chars().take(LONGEST).map(|c| if legal(c) { c } else { '_' }).collect();
    if tamed.is_empty() || tamed.starts_with('.') { format!("_{tamed}") } else { tamed }
}

#[cfg(test)]
mod tests;
