//! The parts of a run's work, and where a bundle stands in it.

use std::fmt;

/// The part of its work that a run is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunPhase {
    /// Checkouts are made.
    Preparing,
    /// Bundles are claimed and driven.
    Running,
    /// Sealed changes are applied, judged together and landed.
    Integrating,
    /// `blocked_conflict`: it waits for a person, because changes do not fit together.
    BlockedConflict,
    /// `blocked_validation`: because a combination is red and nobody can be blamed.
    BlockedValidation,
    /// `blocked_recovery`: because the facts are not what the record says.
    BlockedRecovery,
    /// Nothing new is begun; what is left is cleared up.
    Draining,
    /// Over: all is clean.
    Completed,
    /// Over: given up.
    Aborted,
    /// Over: it could not go on.
    Failed,
}

/// Where a bundle stands in its run, without the facts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundlePhase {
    /// It can be claimed.
    Ready,
    /// It is claimed.
    Running,
    /// Its attempt was cut short.
    Interrupted,
    /// It is accepted.
    Sealed,
    /// It is in the target.
    Landed,
    /// It waits for a person.
    Blocked,
    /// The run does nothing more with it.
    Abandoned,
    /// Nothing of it is left.
    Cleaned,
}

impl RunPhase {
    /// All of them.
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

    /// Not over: a run in this phase bars another one.
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

    /// Waiting for a person.
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

    /// Its name, as it is told.
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
    /// All of them.
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

    /// Its name, as it is told.
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
