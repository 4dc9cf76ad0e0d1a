//! What can go wrong while a lane is hydrated.

use std::{fmt, io};

use camino::Utf8PathBuf;
use pdca_process::{Ending, RunError};
use thiserror::Error;

use crate::{failure::LaneError, hydrate::HydrateProblem};

/// Which of two trees a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSide {
    /// The user's checkout.
    Primary,
    /// The private one.
    Lane,
}

/// Who else would write to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharer {
    /// Another lane.
    Lane(u32),
    /// The user's checkout.
    Primary,
}

/// Which command it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HydratePhase {
    /// `install`
    Install,
    /// `verify`
    Verify,
}

/// Why a lane is not hydrated. It must not be used; the next attempt begins from a clean tree.
#[derive(Debug, Error)]
pub enum HydrateError {
    /// The configuration is wrong. Nothing was changed.
    #[error(transparent)]
    Config(#[from] HydrateProblem),
    /// Something is to be copied and the target has no checkout. Nothing was changed.
    #[error("{primary} is bare, so there is nothing to copy from it")]
    Bare {
        /// The repository.
        primary: Utf8PathBuf,
    },
    /// What is named is not there. Nothing was changed.
    #[error("`{key}` names {path}, which cannot be found")]
    Missing {
        /// The key.
        key: &'static str,
        /// The path.
        path: Utf8PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What is named is tracked: it is in the lane by itself. Nothing was changed.
    #[error("`{key}` names {path}, which is tracked in the {place}")]
    Tracked {
        /// The key.
        key: &'static str,
        /// The path.
        path: Utf8PathBuf,
        /// Where.
        place: TreeSide,
    },
    /// What is named is not ignored: it would become part of a patch. Nothing was changed.
    #[error("`{key}` names {path}, which is not ignored in the {place}")]
    NotIgnored {
        /// The key.
        key: &'static str,
        /// The path.
        path: Utf8PathBuf,
        /// Where.
        place: TreeSide,
    },
    /// Two would write to one directory. Nothing was changed.
    #[error("lane {lane} and {with} would share {directory}, which both can write")]
    SharedMutable {
        /// The directory that can be written.
        directory: Utf8PathBuf,
        /// The lane.
        lane: u32,
        /// Who else.
        with: Sharer,
    },
    /// The tree has changes, which hydration could lose. Nothing was changed.
    #[error("the lane has changes before it is hydrated: {}", some(paths))]
    Unclean {
        /// The files.
        paths: Vec<String>,
    },
    /// A command did not succeed.
    #[error("{phase} ended with {ending}")]
    Command {
        /// Which.
        phase: HydratePhase,
        /// How it ended.
        ending: Ending,
        /// All that it said.
        log: Utf8PathBuf,
        /// The end of that.
        last_lines: Vec<String>,
    },
    /// It was cancelled.
    #[error("the hydration was cancelled")]
    Cancelled,
    /// The commands left the tree changed, which would become part of a patch.
    #[error("install or verify changed files that are not ignored: {}", some(paths))]
    Dirtied {
        /// The files.
        paths: Vec<String>,
    },
    /// A command could not be run at all.
    #[error("cannot run {phase}")]
    Run {
        /// Which.
        phase: HydratePhase,
        /// Why not.
        #[source]
        source: RunError,
    },
    /// The system would not.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The lane itself is at fault.
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

/// The first few of many paths.
fn some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let text = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
