//! The ways in which a child can end, and the sandboxes that can hold it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The way in which a child ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The child exited with this code.
    Exited(i32),
    /// The child was ended by this signal, which this crate did not send. See [`Ending::is_host_fault`] for `SIGKILL`.
    Signaled(i32),
    /// The child was still running at its timeout.
    TimedOut,
    /// The child showed no sign of life for longer than [`Stall::after`](crate::Stall::after).
    Stalled,
    /// The child's tree used more memory than its cap.
    OverMemory {
        /// The cap, in bytes.
        cap: u64,
    },
    /// The driver cancelled it, or the driver died.
    Cancelled,
    /// The program could not be started.
    NotStarted {
        /// The kind of obstacle.
        kind: Obstacle,
        /// The obstacle in words.
        why: String,
    },
    /// The host failed around the child; the child's own result is unknown.
    Infra {
        /// The failure in words.
        why: String,
    },
}

/// The number of `SIGKILL`, as [`Ending::Signaled`] carries it.
const SIGKILL: i32 = 9;

impl Ending {
    /// Returns true if the child ended by itself or at one of its limits, so that a second run would probably end
    /// the same way.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Exited(_)
            | Self::Signaled(_)
            | Self::TimedOut
            | Self::Stalled
            | Self::OverMemory { .. } => !self.is_host_fault(),
            Self::Cancelled | Self::NotStarted { .. } | Self::Infra { .. } => false,
        }
    }

    /// Returns true if the host is to blame rather than the program: the program could not be started or
    /// supervised, or was killed from outside (as the kernel does when memory is short).
    pub fn is_host_fault(&self) -> bool {
        match self {
            Self::NotStarted { .. } | Self::Infra { .. } | Self::Signaled(SIGKILL) => true,
            Self::Exited(_)
            | Self::Signaled(_)
            | Self::TimedOut
            | Self::Stalled
            | Self::OverMemory { .. }
            | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit status {code}"),
            Self::Signaled(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timeout"),
            Self::Stalled => f.write_str("stalled"),
            Self::OverMemory { cap } => {
                write!(f, "more memory than its cap of {} MiB", cap >> 20)
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::NotStarted { why, kind: _ } => write!(f, "not started: {why}"),
            Self::Infra { why } => f.write_str(why),
        }
    }
}

/// The kind of obstacle that kept a program from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// The program, or the interpreter named in its first line, does not exist.
    NotFound,
    /// The file exists but cannot be executed: no permission, or not a program.
    NotExecutable,
    /// The host could not start it: missing working directory, too many processes, no memory.
    Other,
}

/// The sandbox that held a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxKind {
    /// Landlock, with this version of its interface.
    Landlock {
        /// The highest version that both the kernel and this program support.
        abi: u32,
    },
    /// Private namespaces, created by `bwrap`.
    Bwrap {
        /// True if Landlock also keeps signals and abstract sockets inside.
        scoped: bool,
    },
    /// A sandbox was requested but the host has none.
    NotAvailable {
        /// The missing feature, in words.
        why: String,
    },
    /// No sandbox was requested.
    Off,
}

impl fmt::Display for SandboxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landlock { abi } => write!(f, "Landlock (interface version {abi})"),
            Self::Bwrap { scoped: true } => {
                f.write_str("bwrap (private namespaces, scoped sockets)")
            }
            Self::Bwrap { scoped: false } => f.write_str("bwrap (private namespaces)"),
            Self::NotAvailable { why } => write!(f, "no sandbox: {why}"),
            Self::Off => f.write_str("no sandbox"),
        }
    }
}
