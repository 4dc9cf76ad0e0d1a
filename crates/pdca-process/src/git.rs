//! The program git: the installed one, the oldest version that is supported, and a call of it.

mod call;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fs_err as fs;

use crate::programs::{ProgramError, find_program};
use crate::tool::{Tool, ToolError};

pub use call::{GitCall, GitCallError, GitOutput};

/// The oldest supported git: the first whose `merge-tree` answers several merges in one process.
pub const OLDEST_GIT: GitVersion = GitVersion { major: 2, minor: 39 };

/// The first two numbers of a git version; no decision depends on the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GitVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl GitVersion {
    /// Parses the output of `git --version`, such as `git version 2.39.5 (Apple Git-154)`.
    pub fn parse(said: &str) -> Option<Self> {
        let mut numbers = said.trim().strip_prefix("git version ")?.split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?;
        // A release candidate may be `2.46-rc1`.
        let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        Some(Self { major, minor: minor[..digits].parse().ok()? })
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A `git` program and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledGit {
    /// The path of the program.
    pub program: OsString,
    /// The output of `git --version`.
    pub said: String,
    /// The parsed version; `None` if the output has an unknown form.
    pub version: Option<GitVersion>,
}

/// Failure to find a usable git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program does not exist or cannot be started.
    #[error("git not found on PATH")]
    NotFound {
        /// The error of the start.
        #[source]
        source: ToolError,
    },
    /// `git --version` exited with an error.
    #[error("`{} --version` failed: {said}", program.display())]
    Failed {
        /// The program.
        program: OsString,
        /// The standard error of the program.
        said: String,
    },
    /// git is only in a directory in which this process uses no program.
    #[error("no usable git on PATH")]
    Untrusted {
        /// Where it was found, and the remedy.
        #[source]
        source: ProgramError,
    },
    /// `git --version` did not end.
    #[error("cannot ask {} for its version", program.display())]
    Tool {
        /// The program.
        program: OsString,
        /// The error of the run.
        #[source]
        source: ToolError,
    },
    /// The version is older than [`OLDEST_GIT`].
    #[error("{} is too old: {found}, and {needed} or newer is needed", program.display())]
    TooOld {
        /// The program.
        program: OsString,
        /// The output of `git --version`.
        found: String,
        /// The oldest supported version.
        needed: GitVersion,
    },
}

impl InstalledGit {
    /// Finds the `git` that [`find_program`] leads to and returns its version. Each file is started once per process.
    pub fn find() -> Result<Self, GitError> {
        let program = find_program("git").map_err(|source| match source {
            ProgramError::Untrusted { .. } => GitError::Untrusted { source },
            ProgramError::NotFound { .. } => GitError::NotFound { source: source.into() },
        });
        Self::at(&program?)
    }

    /// Like [`find`](Self::find), but fails for a version older than [`OLDEST_GIT`].
    pub fn require() -> Result<Self, GitError> {
        Self::find()?.new_enough()
    }

    /// Returns the version of the program at a path. Each file is started once per process.
    pub fn at(program: &Path) -> Result<Self, GitError> {
        static KNOWN: Mutex<BTreeMap<FileKey, InstalledGit>> = Mutex::new(BTreeMap::new());
        let Some(key) = FileKey::of(program) else {
            return Self::ask(program.into());
        };
        let known = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Ok(found.clone());
        }
        // Not under the lock: a git that hangs must not block the others.
        let found = Self::ask(program.into())?;
        known().insert(key, found.clone());
        Ok(found)
    }

    /// Fails for a version older than [`OLDEST_GIT`]. An unknown version is accepted.
    pub fn new_enough(self) -> Result<Self, GitError> {
        match self.version {
            Some(version) if version < OLDEST_GIT => Err(GitError::TooOld {
                program: self.program,
                found: self.said,
                needed: OLDEST_GIT,
            }),
            Some(_) | None => Ok(self),
        }
    }

    /// Returns true if the version is at least this one. An unknown version counts as new.
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        self.version.is_none_or(|version| version >= GitVersion { major, minor })
    }

    fn ask(program: OsString) -> Result<Self, GitError> {
        let output = match Tool::new(&program).args(["--version"]).run() {
            Ok(output) => output,
            Err(source @ (ToolError::Program(_) | ToolError::Start { .. })) => {
                return Err(GitError::NotFound { source });
            }
            Err(source) => return Err(GitError::Tool { program, source }),
        };
        if !output.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(GitError::Failed { program, said });
        }
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let version = GitVersion::parse(&said);
        Ok(Self { program, said, version })
    }
}

/// The identity of a file; a replaced or changed file has another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileKey {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileKey {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        let (device, inode, size) = (found.dev(), found.ino(), found.len());
        Some(Self { path: path.to_owned(), device, inode, size, modified })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_first_two_numbers_count() {
        let version = |major, minor| Some(GitVersion { major, minor });
        for (said, expected) in [
            ("git version 2.39.5\n", version(2, 39)),
            ("git version 2.39.5 (Apple Git-154)", version(2, 39)),
            ("git version 2.46-rc1", version(2, 46)),
            ("git version 3.0.0.rc1", version(3, 0)),
            ("git version 2", None),
            ("something else", None),
        ] {
            assert_eq!(GitVersion::parse(said), expected, "{said}");
        }
    }

    #[test]
    fn a_git_before_the_oldest_is_refused_with_both_versions() {
        let git = |said: &str| InstalledGit {
            program: "/opt/git".into(),
            said: said.to_owned(),
            version: GitVersion::parse(said),
        };
        for said in ["git version 2.39.0", "git version 2.47.3", "git version 3.0.0", "unknown"] {
            assert!(git(said).new_enough().is_ok(), "{said}");
        }
        for said in ["git version 2.38.4", "git version 1.9.1"] {
            let refused = git(said).new_enough().unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("/opt/git is too old: {said}, and 2.39 or newer is needed")
            );
        }
    }

    #[test]
    fn a_program_is_asked_again_only_when_its_file_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (program, log) = (dir.path().join("git"), dir.path().join("log"));
        let write = |minor: u32| {
            // Renamed into place: a program that is being written cannot be started.
            let text = format!(
                "#!/bin/sh\necho asked >> {}\necho git version 2.{minor}.0\n",
                log.display()
            );
            let new = dir.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::rename(new, &program).unwrap();
        };
        let asked = || std::fs::read_to_string(&log).unwrap().lines().count();
        write(40);
        for _ in 0..3 {
            assert_eq!(InstalledGit::at(&program).unwrap().version.unwrap().minor, 40);
        }
        assert_eq!(asked(), 1);
        write(41);
        assert_eq!(InstalledGit::at(&program).unwrap().version.unwrap().minor, 41);
        assert_eq!(asked(), 2);
    }

    #[test]
    fn a_missing_program_is_not_found() {
        let missing = InstalledGit::at(Path::new("/nowhere/git")).unwrap_err();
        assert!(matches!(missing, GitError::NotFound { .. }), "{missing:?}");
    }
}
