//! The errors of a hydration.

use std::{fmt, io};

use camino::Utf8PathBuf;
use pdca_process::{Ending, RunError};
use thiserror::Error;

use crate::{failure::LaneError, hydrate::HydrateProblem};

/// The tree that a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSide {
    /// The user's checkout.
    Primary,
    /// The private checkout.
    Lane,
}

/// The other party that would write to a shared directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharer {
    /// The lane of this slot.
    Lane(u32),
    /// The user's checkout.
    Primary,
}

/// The command of a hydration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HydratePhase {
    /// The command `install`.
    Install,
    /// The command `verify`.
    Verify,
}

/// Failure to hydrate a lane, which must not be used then. The next attempt starts from a clean tree.
#[derive(Debug, Error)]
pub enum HydrateError {
    /// The configuration is invalid. Nothing was changed.
    #[error(transparent)]
    Config(#[from] HydrateProblem),
    /// Files are to be copied but the target is bare. Nothing was changed.
    #[error("{primary} is bare, so there is nothing to copy from it")]
    Bare {
        /// The repository.
        primary: Utf8PathBuf,
    },
    /// A configured path does not exist. Nothing was changed.
    #[error("`{key}` names {path}, which cannot be found")]
    Missing {
        /// The configuration key.
        key: &'static str,
        /// The configured path.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A configured path is tracked, so the lane has it anyway. Nothing was changed.
    #[error("`{key}` names {path}, which is tracked in the {place}")]
    Tracked {
        /// The configuration key.
        key: &'static str,
        /// The configured path.
        path: Utf8PathBuf,
        /// The tree in which it is tracked.
        place: TreeSide,
    },
    /// A configured path is not ignored and would become part of a patch. Nothing was changed.
    #[error("`{key}` names {path}, which is not ignored in the {place}")]
    NotIgnored {
        /// The configuration key.
        key: &'static str,
        /// The configured path.
        path: Utf8PathBuf,
        /// The tree in which it is not ignored.
        place: TreeSide,
    },
    /// Two checkouts would write to one directory. Nothing was changed.
    #[error("lane {lane} and {with} would share {directory}, which both can write")]
    SharedMutable {
        /// The writable directory.
        directory: Utf8PathBuf,
        /// The slot of this lane.
        lane: u32,
        /// The other party.
        with: Sharer,
    },
    /// The tree has changes that the hydration could lose. Nothing was changed.
    #[error("the lane has changes before it is hydrated: {}", some(paths))]
    Unclean {
        /// The changed files.
        paths: Vec<String>,
    },
    /// A command failed.
    #[error("{phase} ended with {ending}")]
    Command {
        /// The command.
        phase: HydratePhase,
        /// The ending of the command.
        ending: Ending,
        /// The path of its log.
        log: Utf8PathBuf,
        /// The last lines of its log.
        last_lines: Vec<String>,
    },
    /// The run was cancelled.
    #[error("the hydration was cancelled")]
    Cancelled,
    /// A command changed files that are not ignored, which would become part of a patch.
    #[error("install or verify changed files that are not ignored: {}", some(paths))]
    Dirtied {
        /// The changed files.
        paths: Vec<String>,
    },
    /// A command could not be run at all.
    #[error("cannot run {phase}")]
    Run {
        /// The command.
        phase: HydratePhase,
        /// The error of the run.
        #[source]
        source: RunError,
    },
    /// An operation of the system failed.
    #[error("cannot {doing} {path}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path it was applied to.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// An operation in the lane failed.
    #[error(transparent)]
    Lane(#[from] LaneError),
}

impl fmt::Display for TreeSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary",
            Self::Lane => "lane",
        })
    }
}

impl fmt::Display for Sharer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lane(slot) => write!(f, "lane {slot}"),
            Self::Primary => f.write_str("the primary"),
        }
    }
}

impl fmt::Display for HydratePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Install => "install",
            Self::Verify => "verify",
        })
    }
}

/// Lists the first few of many paths.
fn some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let text = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
