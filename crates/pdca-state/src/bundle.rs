//! One bundle: where its files are, and how they get there.

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, RenameFlags};

use crate::archive;
use crate::artifact::{ADVISORY, Artifact, ERROR_LOG};
use crate::contents::{Contents, LoadError, SET_ASIDE};
use crate::files::{self, ReadError};
use crate::id::{BundleId, IdError};
use crate::root::BundleRoot;

/// The directory of one issue, there or not. Only the driver writes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    id: BundleId,
    dir: Utf8PathBuf,
    link: Link,
}

/// What is known about the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Just listed as a directory: no link.
    No,
    /// A link, or not looked at yet.
    Perhaps,
}

/// Why something was not written into a bundle.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path leads out of the bundle, or is none.
    #[error("{relative:?} is not a path inside the bundle {dir}")]
    Outside {
        /// The bundle.
        dir: Utf8PathBuf,
        /// What was given.
        relative: String,
    },
    /// The system would not.
    #[error("cannot write {path}")]
    Io {
        /// The path.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why a bundle was not created. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one already, or something else of its name.
    #[error("{dir} exists already")]
    Exists {
        /// Its directory.
        dir: Utf8PathBuf,
    },
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Bundle {
    pub(crate) fn new(root: &Utf8Path, id: BundleId) -> Self {
        Self { dir: root.join(id.dir_name()), id, link: Link::Perhaps }
    }

    pub(crate) fn listed(root: &Utf8Path, id: BundleId, is_link: bool) -> Self {
        let link = if is_link { Link::Perhaps } else { Link::No };
        Self { link, ..Self::new(root, id) }
    }

    /// The bundle in this directory, which must be named `issue_<id>`.
    pub fn at(dir: impl Into<Utf8PathBuf>) -> Result<Bundle, IdError> {
        let dir = dir.into();
        let id = BundleId::parse_dir_name(dir.file_name().unwrap_or_default())?;
        Ok(Self { id, dir, link: Link::Perhaps })
    }

    /// Makes a bundle that holds a brief: whole, or not at all.
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

    /// Its id.
    pub fn id(&self) -> &BundleId {
        &self.id
    }

    /// Its directory.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Where this artifact is or would be.
    pub fn path(&self, artifact: Artifact) -> Utf8PathBuf {
        self.dir.join(artifact.file_name())
    }

    /// Whether its directory is there.
    pub fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Reads one artifact; `None` where it is absent.
    ///
    /// Bounded by [`Artifact::max_len`]; refuses directories, pipes and links out of the bundle.
    pub fn read(&self, artifact: Artifact) -> Result<Option<Vec<u8>>, LoadError> {
        self.require_inside()?;
        let name = Utf8Path::new(artifact.file_name());
        Ok(files::read_within(&self.dir, name, artifact.max_len())?)
    }

    /// Reads an artifact of an archived attempt; `None` where it is absent.
    pub fn read_archived(
        &self,
        number: u32,
        artifact: Artifact,
    ) -> Result<Option<Vec<u8>>, LoadError> {
        self.require_inside()?;
        let path = crate::archive::dir_of(number).join(artifact.file_name());
        Ok(files::read_within(&self.dir, &path, artifact.max_len())?)
    }

    /// Puts an artifact in place, durably: absent or whole, whatever happens.
    pub fn publish(&self, artifact: Artifact, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.writable(artifact)?;
        files::sweep(&self.dir, |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::replace(&path, bytes))
            .map_err(|source| Self::write_error(&path, source))
    }

    /// As [`Bundle::publish`], where nobody else may have put anything: false where somebody has, and
    /// then that stays.
    pub fn publish_new(&self, artifact: Artifact, bytes: &[u8]) -> Result<bool, WriteError> {
        let path = self.writable(artifact)?;
        files::sweep(&self.dir, |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::create(&path, bytes))
            .map_err(|source| Self::write_error(&path, source))
    }

    /// As [`Bundle::publish`], for what can be made again from other artifacts: not synced.
    pub fn publish_derived(&self, artifact: Artifact, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.writable(artifact)?;
        files::sweep(&self.dir, |name| files::is_temp_name_of(name, artifact.file_name()))
            .and_then(|()| files::replace_unsynced(&path, bytes))
            .map_err(|source| Self::write_error(&path, source))
    }

    /// Puts a file at a path below the bundle, as the shipped test at the place its brief names.
    /// Directories on the way are made; the path may not leave the bundle.
    pub fn publish_file(&self, relative: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.make_way(relative)?;
        files::replace(&path, bytes).map_err(|source| Self::write_error(&path, source))
    }

    /// As [`Bundle::publish_file`], for what can be made again, as a log: not synced.
    pub fn publish_derived_file(
        &self,
        relative: &Utf8Path,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let path = self.make_way(relative)?;
        files::replace_unsynced(&path, bytes).map_err(|source| Self::write_error(&path, source))
    }

    /// Where the log of a gate lies, relative to the bundle: what the row's `log` says.
    pub fn gate_log(rule_id: &str) -> Utf8PathBuf {
        Utf8Path::new(Artifact::GateLogs.file_name()).join(format!("{}.log", tame(rule_id)))
    }

    /// Where the log of a row lies that was red when the bundle was gated together with others,
    /// relative to the bundle.
    pub fn integration_log(rule_id: &str) -> Utf8PathBuf {
        Self::integration_logs().join(format!("{}.log", tame(rule_id)))
    }

    /// Removes the logs of the last integration; those of Check stay.
    pub fn remove_integration_logs(&self) -> Result<(), WriteError> {
        let path = self.dir.join(Self::integration_logs());
        // A link could lead anywhere.
        if !path.is_dir() || path.is_symlink() || self.require_inside().is_err() {
            return Ok(());
        }
        fs_err::remove_dir_all(&path).map_err(|source| Self::write_error(&path, source))
    }

    /// No row's own log has this name: those end in `.log`.
    fn integration_logs() -> Utf8PathBuf {
        Utf8Path::new(Artifact::GateLogs.file_name()).join("integration")
    }

    /// Where an adviser's review lies, relative to the bundle.
    pub fn advisory(adviser: &str) -> Utf8PathBuf {
        format!("{}{}{}", ADVISORY.0, tame(adviser), ADVISORY.1).into()
    }

    /// Where the log of a leaf that failed lies, relative to the bundle.
    pub fn error_log(leaf: &str) -> Utf8PathBuf {
        format!("{}{ERROR_LOG}", tame(leaf)).into()
    }

    /// Renames an artifact that cannot be used to a free name beside it, so that it counts as
    /// absent and nothing is lost. Gives the new path; `None` where there was nothing to move.
    pub fn set_aside(&self, artifact: Artifact) -> Result<Option<Utf8PathBuf>, WriteError> {
        self.set_aside_file(Utf8Path::new(artifact.file_name()))
    }

    /// As [`Bundle::set_aside`], for any file that lies directly in the bundle.
    ///
    /// It becomes `<name>.aside-<n>`, and is archived with the attempt under that name. Archived
    /// attempts are not set aside.
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

    /// Removes what a crash left of files that were being replaced.
    pub fn sweep_temps(&self) -> Result<(), WriteError> {
        files::sweep(&self.dir, files::is_temp_name)
            .map_err(|source| Self::write_error(&self.dir, source))
    }

    /// The bundle's contents, after making sure that they are this root's.
    pub(crate) fn contents(&self) -> Result<Contents<'_>, LoadError> {
        self.require_inside()?;
        Contents::list(&self.dir)
    }

    pub(crate) fn write_error(path: &Utf8Path, source: io::Error) -> WriteError {
        WriteError::Io { path: path.into(), source }
    }

    /// Refuses a bundle whose directory is a link that leads out of the root.
    pub(crate) fn require_inside(&self) -> Result<(), LoadError> {
        if self.link == Link::No || !self.dir.is_symlink() {
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

    /// Where to write an artifact, unless the whole bundle lies elsewhere.
    fn writable(&self, artifact: Artifact) -> Result<Utf8PathBuf, WriteError> {
        match self.require_inside() {
            Ok(()) => Ok(self.path(artifact)),
            Err(_) => Err(self.outside(artifact.file_name())),
        }
    }

    /// Where to write a file below the bundle, with the directories above it made.
    fn make_way(&self, relative: &Utf8Path) -> Result<Utf8PathBuf, WriteError> {
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

/// The path as one that stays inside `dir`: normal components only, no directory on the way a link
/// or a file. `None` for everything else.
pub(crate) fn inside(dir: &Utf8Path, relative: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut clean = Utf8PathBuf::new();
    for component in relative.components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::Normal(name) if !name.chars().any(char::is_control) => {
                // What is on the way so far must be a real directory, or nothing yet.
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

/// Renames, and fails where the new name is taken.
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
        // The file system does not know how: look first, then.
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

/// Puts a new directory in place with its first files in it: whole, or not at all.
pub(crate) fn publish_dir(dir: &Utf8Path, with: &[(&str, &[u8])]) -> io::Result<()> {
    // Open until it is in place, or another process would sweep it as left by a crash.
    let (temp, _claim) = files::create_temp_dir(dir.as_std_path())?;
    let temp = Utf8PathBuf::from_path_buf(temp)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let placed = with
        .iter()
        .try_for_each(|(name, bytes)| files::replace(temp.join(name), bytes))
        .and_then(|()| rename_new(&temp, dir))
        .and_then(|()| files::sync_dir(dir.parent().unwrap_or(dir).as_std_path()));
    if placed.is_err() {
        // The first error is the one to report; what stays is swept later.
        drop(std::fs::remove_dir_all(&temp));
    }
    placed
}

/// A name given by config or a model as a part of a file name.
fn tame(name: &str) -> String {
    const LONGEST: usize = 100;
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let tamed: String =
        name.chars().take(LONGEST).map(|c| if legal(c) { c } else { '_' }).collect();
    if tamed.is_empty() || tamed.starts_with('.') { format!("_{tamed}") } else { tamed }
}

#[cfg(test)]
mod tests;
