//! The base of a landing.

use crate::{ObjectId, descends_from};

use super::IntegrateError;
use super::landing_mode::BaseSearch;

/// The commit that changes are folded onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingBase {
    /// The local ref that holds it: a branch, or the last known tip of a remote's branch.
    pub reference: String,
    pub at: ObjectId,
    /// The staging branch that it is the tip of, if it is one.
    pub staged: Option<StagedBase>,
    /// What is known of the branch at its remote, if it has one and this mode asks.
    pub remote: Option<RemoteStanding>,
}

/// The staging branch that changes are folded onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StagedBase {
    /// That of this workspace, which goes on.
    Own,
    /// That of another workspace, which stays as it is.
    Other {
        /// The branch name without `refs/heads/`.
        branch: String,
    },
}

/// A branch compared with the branch of its remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteStanding {
    /// The remote's branch, as `origin/main`.
    pub name: String,
    /// The tip of the remote's branch, as far as it is known.
    pub at: Option<ObjectId>,
    pub drift: RemoteDrift,
    /// The message of a remote that did not answer; what is known of it is from the last fetch.
    pub silent: Option<String>,
}

/// The position of a branch relative to that of its remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RemoteDrift {
    /// Both are at the same commit, or the remote has nothing that the branch lacks.
    Current,
    /// The branch lacks commits, and was brought up to date.
    FastForwarded,
    /// The branch lacks commits and has others that the remote lacks, so it stays as it is.
    Diverged,
    /// The remote did not answer, and nothing is known of its branch.
    Unknown,
}

impl RemoteDrift {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::FastForwarded => "fast-forwarded",
            Self::Diverged => "diverged",
            Self::Unknown => "unknown",
        }
    }
}

impl RemoteStanding {
    /// Describes what a person should know, or returns `None` if all is as it should be.
    pub fn remark(&self, branch: &str) -> Option<String> {
        let name = &self.name;
        let silent = self.silent.as_deref().map(|said| {
            let said = said.lines().next().unwrap_or_default();
            format!("{name} does not answer ({said}); ")
        });
        let told = match self.drift {
            RemoteDrift::Current => {
                silent.as_ref().map(|_| format!("{branch} is as {name} was last seen"))
            }
            RemoteDrift::FastForwarded => {
                Some(format!("{branch} is behind {name}: the changes go on top of what {name} has"))
            }
            RemoteDrift::Diverged => Some(format!(
                "{branch} and {name} have diverged: the changes go on top of {branch} as it is here"
            )),
            RemoteDrift::Unknown => {
                Some(format!("the changes go on top of {branch} as it is here"))
            }
        }?;
        Some(format!("{}{told}", silent.unwrap_or_default()))
    }
}

impl LandingBase {
    pub(crate) fn of(reference: String, at: ObjectId) -> Self {
        Self { reference, at, staged: None, remote: None }
    }

    /// Finds the base for new changes: the branch, or the staging branch if it is ahead of it.
    pub(crate) fn to_land_on(search: &BaseSearch<'_>) -> Result<Self, IntegrateError> {
        let mode = search.settings.land.mode();
        let found = mode.find(search)?;
        let Some((at, staged)) = mode.staged(search.branch) else { return Ok(found) };
        // What is staged below commits that the remote has meanwhile could not be merged with `--ff-only`.
        if !descends_from(&search.branch.store, at, found.at)? {
            return Ok(found);
        }
        Ok(Self { at, staged: Some(staged), ..found })
    }

    /// Returns whether the changes go on with the staging branch of this workspace.
    pub(crate) fn goes_on(&self) -> bool {
        self.staged == Some(StagedBase::Own)
    }
}
