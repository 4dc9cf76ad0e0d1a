//! One look at a bundle's directory: what is there, by one listing and no `stat` per file.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use crate::archive::{self, Pending};
use crate::artifact::{ADVISORY, Artifact, Artifacts, ERROR_LOG};
use crate::files::{self, ReadError};
use crate::state::{BriefFact, StateFacts};

/// Why a bundle cannot be read. It makes one bad row, never a failed listing.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such bundle.
    #[error("there is no bundle {dir}")]
    Missing {
        /// Where it would be.
        dir: Utf8PathBuf,
    },
    /// Its directory is a symbolic link that leads out of the bundle root.
    #[error("the bundle {dir} leads out of the bundle root, to {target}")]
    LeadsOut {
        /// The link.
        dir: Utf8PathBuf,
        /// Where it leads.
        target: String,
    },
    /// Its directory, or one in it, cannot be listed.
    #[error("cannot list {dir}")]
    List {
        /// The directory.
        dir: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
    /// One of its files cannot be read.
    #[error(transparent)]
    File(#[from] ReadError),
    /// One of its files is no text.
    #[error("{path}:{line}: byte {byte:#04x} is not UTF-8")]
    NotUtf8 {
        /// The file.
        path: Utf8PathBuf,
        /// The line of the first bad byte, from 1.
        line: usize,
        /// That byte.
        byte: u8,
    },
    /// The record of a half-done archive is damaged.
    #[error("{path}:{line}: the record of a half-done archive is damaged")]
    Pending {
        /// The record.
        path: Utf8PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl LoadError {
    /// The file or directory it is about.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::Missing { dir } | Self::LeadsOut { dir, .. } | Self::List { dir, .. } => dir,
            Self::File(error) => error.path(),
            Self::NotUtf8 { path, .. } | Self::Pending { path, .. } => path,
        }
    }

    /// The line in that file, where one can be named.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::NotUtf8 { line, .. } | Self::Pending { line, .. } => Some(*line),
            Self::Missing { .. } | Self::LeadsOut { .. } | Self::List { .. } | Self::File(_) => {
                None
            }
        }
    }
}

/// What one listing of a bundle's directory shows.
pub(crate) struct Contents<'a> {
    dir: &'a Utf8Path,
    handle: Dir,
    pub(crate) artifacts: Artifacts,
    /// Artifacts that the listing does not show to be regular files.
    irregular: Artifacts,
    /// Advisers' reviews, sorted.
    pub(crate) advisories: Vec<String>,
    /// Logs of failed leaves and files set aside, sorted.
    pub(crate) leftovers: Vec<String>,
    /// Numbers of the archived attempts, sorted.
    pub(crate) iterations: Vec<u32>,
    /// Something is named like an archived attempt, with a number or not.
    archived: bool,
}

impl<'a> Contents<'a> {
    /// Lists a directory that is known to be no link out of its root.
    pub(crate) fn list(dir: &'a Utf8Path) -> Result<Self, LoadError> {
        let failed = |errno: rustix::io::Errno| match errno {
            rustix::io::Errno::NOENT => LoadError::Missing { dir: dir.into() },
            errno => LoadError::List { dir: dir.into(), source: errno.into() },
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            rustix::fs::openat(CWD, dir.as_std_path(), flags, Mode::empty()).map_err(failed)?;
        let mut contents = Contents {
            dir,
            handle: Dir::new(fd).map_err(failed)?,
            artifacts: Artifacts::default(),
            irregular: Artifacts::default(),
            advisories: Vec::new(),
            leftovers: Vec::new(),
            iterations: Vec::new(),
            archived: false,
        };
        while let Some(entry) = contents.handle.read() {
            let entry = entry.map_err(failed)?;
            // No name of ours is outside UTF-8.
            if let Ok(name) = entry.file_name().to_str() {
                contents.note(name, entry.file_type());
            }
        }
        contents.advisories.sort_unstable();
        contents.leftovers.sort_unstable();
        contents.iterations.sort_unstable();
        Ok(contents)
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Utf8Path {
        self.dir
    }

    fn note(&mut self, name: &str, kind: FileType) {
        if let Some(artifact) = Artifact::from_file_name(name) {
            self.artifacts.insert(artifact);
            if kind != FileType::RegularFile && artifact != Artifact::GateLogs {
                self.irregular.insert(artifact);
            }
        } else if name.starts_with(archive::DIR_PREFIX) {
            self.archived = true;
            self.iterations.extend(archive::number_of(name));
        } else if name.starts_with(ADVISORY.0) && name.ends_with(ADVISORY.1) {
            self.advisories.push(name.into());
        } else if is_leftover(name) {
            self.leftovers.push(name.into());
        }
    }

    /// Reads one artifact into `bytes`, which it clears first; `false` where it is absent.
    pub(crate) fn read(&self, artifact: Artifact, bytes: &mut Vec<u8>) -> Result<bool, ReadError> {
        bytes.clear();
        if !self.artifacts.contains(artifact) {
            return Ok(false);
        }
        let (name, max) = (artifact.file_name(), artifact.max_len());
        if self.irregular.contains(artifact) {
            // Rare: a link, or what has no business here. The slow way tells which.
            let read = files::read_within(self.dir, Utf8Path::new(name), max)?;
            bytes.extend(read.iter().flatten());
            return Ok(read.is_some());
        }
        let path = || self.dir.join(name);
        let failed =
            |errno: rustix::io::Errno| ReadError::Io { path: path(), source: errno.into() };
        let fd = match rustix::fs::openat(
            self.handle.fd().map_err(failed)?,
            name,
            files::READ_ONLY,
            Mode::empty(),
        ) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(failed(errno)),
        };
        files::drain(&fd, bytes, max).map_err(|source| ReadError::Io { path: path(), source })?;
        let size = bytes.len() as u64;
        if size > max { Err(ReadError::TooLarge { path: path(), size, max }) } else { Ok(true) }
    }

    /// Refuses what has the name of a change and is none: a directory, a link out of the bundle.
    pub(crate) fn require_change_is_a_file(&self) -> Result<(), ReadError> {
        for artifact in [Artifact::Patch, Artifact::CloseDisposition] {
            if self.irregular.contains(artifact) {
                files::open_within(self.dir, Utf8Path::new(artifact.file_name()))?;
            }
        }
        Ok(())
    }

    /// The archive that was begun and not finished. Costs nothing where nothing was archived.
    pub(crate) fn pending(&self) -> Result<Option<Pending>, LoadError> {
        for number in self.iterations.iter().rev() {
            let manifest = archive::manifest_path(*number);
            let there = self.handle.fd().is_ok_and(|fd| {
                rustix::fs::statat(fd, manifest.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
            });
            if there {
                return archive::read_pending(self.dir, *number).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether the newest archived attempt was a close that a person sent back to Do.
    pub(crate) fn was_reopened(&self) -> bool {
        let has = |dir: &Utf8Path, artifact: Artifact| dir.join(artifact.file_name()).is_file();
        self.iterations.last().is_some_and(|newest| {
            let dir = self.dir.join(archive::dir_of(*newest));
            has(&dir, Artifact::CloseDisposition) && !has(&dir, Artifact::Brief)
        })
    }

    /// The facts that presence alone decides; the caller adds what only reading tells.
    pub(crate) fn facts(&self, brief: BriefFact) -> StateFacts {
        let has = |artifact| self.artifacts.contains(artifact);
        StateFacts {
            brief,
            change: has(Artifact::Patch) || has(Artifact::CloseDisposition),
            cycle_ran: brief == BriefFact::Authored
                || self.artifacts.iter().any(Artifact::shows_a_cycle)
                || self.archived
                || !(self.advisories.is_empty() && self.leftovers.is_empty()),
            ..StateFacts::default()
        }
    }
}

/// What stands between a file's name and the number, when it is set aside.
pub(crate) const SET_ASIDE: &str = ".aside-";
/// What stood there in bundles of before; only artifacts were set aside then.
const SET_ASIDE_BEFORE: &str = ".torn-";

fn is_leftover(name: &str) -> bool {
    let numbered = |mark| {
        name.rsplit_once(mark).filter(|(_, number)| number.parse::<u32>().is_ok()).map(|(of, _)| of)
    };
    name.ends_with(ERROR_LOG)
        || numbered(SET_ASIDE).is_some_and(|of| !of.is_empty())
        || numbered(SET_ASIDE_BEFORE).is_some_and(|of| Artifact::from_file_name(of).is_some())
}

/// The text in `bytes`, or where it stops being one.
pub(crate) fn text<'a>(
    dir: &Utf8Path,
    artifact: Artifact,
    bytes: &'a [u8],
) -> Result<&'a str, LoadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let (good, bad) = bytes.split_at(error.valid_up_to());
        LoadError::NotUtf8 {
            path: dir.join(artifact.file_name()),
            line: line_after(good),
            byte: bad[0],
        }
    })
}

/// The line, from 1, on which whatever follows these bytes stands.
pub(crate) fn line_after(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count()
}
