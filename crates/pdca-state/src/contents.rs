//! One listing of a bundle's directory, without a `stat` per file.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use crate::archive::{self, Pending};
use crate::artifact::{ADVISORY, Artifact, Artifacts, ERROR_LOG, PLAN_ADVISORY};
use crate::files::{self, FileReadError};
use crate::state::{BriefFact, StateFacts};

/// The error of reading a bundle. In a survey it makes one bad row, never a failed listing.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bundle's directory does not exist.
    #[error("there is no bundle {dir}")]
    Missing {
        /// The directory that was expected.
        dir: Utf8PathBuf,
    },
    /// The bundle's directory is a symbolic link that leads out of the bundle root.
    #[error("the bundle {dir} leads out of the bundle root, to {target}")]
    LeadsOut {
        /// The symbolic link.
        dir: Utf8PathBuf,
        /// The resolved path outside the bundle root.
        target: String,
    },
    /// A directory of the bundle cannot be listed.
    #[error("cannot list {dir}")]
    List {
        /// The directory: the bundle's own, or one below it.
        dir: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file of the bundle cannot be read.
    #[error(transparent)]
    File(#[from] FileReadError),
    /// A file that must be text is not UTF-8.
    #[error("{path}:{line}: byte {byte:#04x} is not UTF-8")]
    NotUtf8 {
        /// The path of the file.
        path: Utf8PathBuf,
        /// The line of the first bad byte, from 1.
        line: usize,
        /// The first bad byte.
        byte: u8,
    },
    /// The record of an unfinished archive is damaged.
    #[error("{path}:{line}: the record of a half-done archive is damaged")]
    Pending {
        /// The path of `archive-pending.json`.
        path: Utf8PathBuf,
        /// The line at which parsing failed, from 1.
        line: usize,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
}

impl LoadError {
    /// The file or directory that the error is about.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::Missing { dir } | Self::LeadsOut { dir, .. } | Self::List { dir, .. } => dir,
            Self::File(error) => error.path(),
            Self::NotUtf8 { path, .. } | Self::Pending { path, .. } => path,
        }
    }

    /// The line in that file, from 1, if the error has one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::NotUtf8 { line, .. } | Self::Pending { line, .. } => Some(*line),
            Self::Missing { .. } | Self::LeadsOut { .. } | Self::List { .. } | Self::File(_) => {
                None
            }
        }
    }
}

/// The result of listing a bundle's directory once, with the directory kept open for reads.
pub(crate) struct Contents<'a> {
    dir: &'a Utf8Path,
    handle: Dir,
    pub(crate) artifacts: Artifacts,
    /// Artifacts whose directory entry is not a regular file: links, directories, pipes, and
    /// everything on file systems that do not report the type.
    irregular: Artifacts,
    /// Names of advisers' reviews, sorted.
    pub(crate) advisories: Vec<String>,
    /// Names of reviews of the brief, sorted.
    pub(crate) plan_advisories: Vec<String>,
    /// Names of failed leaves' logs and of files that were set aside, sorted.
    pub(crate) leftovers: Vec<String>,
    /// Numbers of the archived attempts, sorted.
    pub(crate) iterations: Vec<u32>,
    /// True if any name starts with `iteration-v`, with a number or not.
    archived: bool,
}

impl<'a> Contents<'a> {
    /// Lists a directory. The caller has checked that it is not a link out of the bundle root.
    pub(crate) fn list(dir: &'a Utf8Path) -> Result<Self, LoadError> {
        let failed = |errno: rustix::io::Errno| match errno {
            rustix::io::Errno::NOENT => LoadError::Missing { dir: dir.into() },
            errno => LoadError::List { dir: dir.into(), source: errno.into() },
        };
        // Without NOFOLLOW: a bundle may be a link to another directory of the root, which the
        // caller has checked.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            rustix::fs::openat(CWD, dir.as_std_path(), flags, Mode::empty()).map_err(failed)?;
        let mut contents = Contents {
            dir,
            handle: Dir::new(fd).map_err(failed)?,
            artifacts: Artifacts::default(),
            irregular: Artifacts::default(),
            advisories: Vec::new(),
            plan_advisories: Vec::new(),
            leftovers: Vec::new(),
            iterations: Vec::new(),
            archived: false,
        };
        while let Some(entry) = contents.handle.read() {
            let entry = entry.map_err(failed)?;
            // Every name this crate gives a meaning to is ASCII, so others are skipped.
            if let Ok(name) = entry.file_name().to_str() {
                contents.note(name, entry.file_type());
            }
        }
        contents.advisories.sort_unstable();
        contents.plan_advisories.sort_unstable();
        contents.leftovers.sort_unstable();
        contents.iterations.sort_unstable();
        Ok(contents)
    }

    pub(crate) fn dir(&self) -> &Utf8Path {
        self.dir
    }

    fn note(&mut self, name: &str, kind: FileType) {
        if let Some(artifact) = Artifact::from_file_name(name) {
            self.artifacts.insert(artifact);
            // The listing tells the type without a `stat`. On file systems where it says "unknown" every
            // artifact takes the slower way of `read_within`.
            if kind != FileType::RegularFile && !artifact.is_directory() {
                self.irregular.insert(artifact);
            }
        } else if name.starts_with(archive::DIR_PREFIX) {
            self.archived = true;
            self.iterations.extend(archive::number_of(name));
        } else if name.starts_with(ADVISORY.0) && name.ends_with(ADVISORY.1) {
            self.advisories.push(name.into());
        } else if name.starts_with(PLAN_ADVISORY.0) && name.ends_with(PLAN_ADVISORY.1) {
            self.plan_advisories.push(name.into());
        } else if is_leftover(name) {
            self.leftovers.push(name.into());
        }
    }

    /// Reads an artifact into `bytes`, replacing what is there; returns false if it is absent.
    /// The caller reuses one buffer over many bundles.
    pub(crate) fn read(
        &self,
        artifact: Artifact,
        bytes: &mut Vec<u8>,
    ) -> Result<bool, FileReadError> {
        bytes.clear();
        if !self.artifacts.contains(artifact) {
            return Ok(false);
        }
        let (name, max) = (artifact.file_name(), artifact.max_len());
        if self.irregular.contains(artifact) {
            // A link or a special file. `read_within` resolves links and names the kind of the rest.
            let read = files::read_within(self.dir, Utf8Path::new(name), max)?;
            bytes.extend(read.iter().flatten());
            return Ok(read.is_some());
        }
        let path = || self.dir.join(name);
        let failed =
            |errno: rustix::io::Errno| FileReadError::Io { path: path(), source: errno.into() };
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
        files::drain(&fd, bytes, max)
            .map_err(|source| FileReadError::Io { path: path(), source })?;
        let size = bytes.len() as u64;
        if size > max { Err(FileReadError::TooLarge { path: path(), size, max }) } else { Ok(true) }
    }

    /// Returns an error if a patch or close disposition is not a readable file: a directory, say, or
    /// a link out of the bundle. Their presence alone decides the state, so nothing else reads them.
    pub(crate) fn require_change_is_a_file(&self) -> Result<(), FileReadError> {
        for artifact in [Artifact::Patch, Artifact::CloseDisposition] {
            if self.irregular.contains(artifact) {
                files::open_within(self.dir, Utf8Path::new(artifact.file_name()))?;
            }
        }
        Ok(())
    }

    /// Reads the record of an unfinished archive, if there is one. Does no I/O if there are no
    /// archived attempts.
    pub(crate) fn pending(&self) -> Result<Option<Pending>, LoadError> {
        for number in self.iterations.iter().rev() {
            let manifest = archive::manifest_path(*number);
            let found = self.handle.fd().and_then(|fd| {
                rustix::fs::statat(fd, manifest.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            });
            // A record that cannot be looked at or read is an error and not "none": the state would
            // be derived from files of which some have moved.
            match found {
                Ok(_) => return archive::read_pending(self.dir, *number).map(Some),
                // Not a directory: the name is that of an archive, and it is a file.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(errno) => {
                    let path = self.dir.join(manifest);
                    return Err(FileReadError::Io { path, source: errno.into() }.into());
                }
            }
        }
        Ok(None)
    }

    /// Returns true if the newest archived attempt was a close that a person sent back to Do.
    /// An attempt sent back to Plan is told apart by its archived brief.
    pub(crate) fn was_reopened(&self) -> bool {
        let has = |dir: &Utf8Path, artifact: Artifact| dir.join(artifact.file_name()).is_file();
        self.iterations.last().is_some_and(|newest| {
            let dir = self.dir.join(archive::dir_of(*newest));
            has(&dir, Artifact::CloseDisposition) && !has(&dir, Artifact::Brief)
        })
    }

    /// The facts that follow from the listing alone. The caller fills in those that need a read.
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

/// Infix between the name and the number of a file that was set aside.
pub(crate) const SET_ASIDE: &str = ".aside-";
/// The infix in bundles written by older versions, which set aside only artifacts.
const SET_ASIDE_BEFORE: &str = ".torn-";

fn is_leftover(name: &str) -> bool {
    let numbered = |mark| {
        name.rsplit_once(mark).filter(|(_, number)| number.parse::<u32>().is_ok()).map(|(of, _)| of)
    };
    name.ends_with(ERROR_LOG)
        || numbered(SET_ASIDE).is_some_and(|of| !of.is_empty())
        || numbered(SET_ASIDE_BEFORE).is_some_and(|of| Artifact::from_file_name(of).is_some())
}

/// Checks that `bytes` are UTF-8; the error names the artifact and the line of the first bad byte.
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

/// The line number, from 1, of the byte after `bytes`.
pub(crate) fn line_after(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count()
}
