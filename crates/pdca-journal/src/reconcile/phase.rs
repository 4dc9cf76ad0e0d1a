//! The phases of a run and of a bundle in it.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Checkouts are made.
    Preparing,
    /// Bundles are claimed and built.
    Running,
    /// Sealed changes are applied, gated together and landed.
    Integrating,
    /// Waits for a person because changes conflict.
    BlockedConflict,
    /// Waits for a person because a combination fails and no single change is to blame.
    BlockedValidation,
    /// Waits for a person because the facts contradict the record.
    BlockedRecovery,
    /// Nothing new is started; checkouts and branches are cleaned up.
    Draining,
    /// Over, and every bundle is clean.
    Completed,
    /// Given up by a person.
    Aborted,
    /// Over, because it could not go on.
    Failed,
}

/// [`WorkstreamStatus`](crate::WorkstreamStatus) without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundlePhase {
    Ready,
    Running,
    Interrupted,
    Sealed,
    Landed,
    Blocked,
    Abandoned,
    Cleaned,
}

impl RunPhase {
    pub const ALL: [Self; 10] = [
        Self::Preparing,
        Self::Running,
        Self::Integrating,
        Self::BlockedConflict,
        Self::BlockedValidation,
        Self::BlockedRecovery,
        Self::Draining,
        Self::Completed,
        Self::Aborted,
        Self::Failed,
    ];

    /// Returns true unless the run is over. An active run excludes another one.
    pub fn is_active(self) -> bool {
        match self {
            Self::Preparing
            | Self::Running
            | Self::Integrating
            | Self::BlockedConflict
            | Self::BlockedValidation
            | Self::BlockedRecovery
            | Self::Draining => true,
            Self::Completed | Self::Aborted | Self::Failed => false,
        }
    }

    /// Returns true if the run waits for a person.
    pub fn is_blocked(self) -> bool {
        match self {
            Self::BlockedConflict | Self::BlockedValidation | Self::BlockedRecovery => true,
            Self::Preparing
            | Self::Running
            | Self::Integrating
            | Self::Draining
            | Self::Completed
            | Self::Aborted
            | Self::Failed => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Integrating => "integrating",
            Self::BlockedConflict => "blocked_conflict",
            Self::BlockedValidation => "blocked_validation",
            Self::BlockedRecovery => "blocked_recovery",
            Self::Draining => "draining",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

impl BundlePhase {
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Running,
        Self::Interrupted,
        Self::Sealed,
        Self::Landed,
        Self::Blocked,
        Self::Abandoned,
        Self::Cleaned,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Sealed => "sealed",
            Self::Landed => "landed",
            Self::Blocked => "blocked",
            Self::Abandoned => "abandoned",
            Self::Cleaned => "cleaned",
        }
    }
}

impl fmt::Display for RunPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for BundlePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
