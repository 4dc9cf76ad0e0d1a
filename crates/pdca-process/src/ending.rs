//! How a child ended, and what held it while it ran.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a child ended: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The child exited with this code.
    Exited(i32),
    /// The child was ended by this signal, and it was not us who sent it. See
    /// [`Ending::is_host_fault`] for the one case that is nobody's fault but the host's.
    Signaled(i32),
    /// The child was still running when its time was over.
    TimedOut,
    /// The child showed no sign of life for too long.
    Stalled,
    /// The child's tree had more memory than its cap.
    OverMemory {
        /// The cap, in bytes.
        cap: u64,
    },
    /// The driver cancelled it, or the driver died.
    Cancelled,
    /// The program was never started.
    NotStarted {
        /// Which kind of obstacle it was.
        kind: Obstacle,
        /// The obstacle in words.
        why: String,
    },
    /// Something of the host went wrong around the child; the child's own result is unknown.
    Infra {
        /// What went wrong.
        why: String,
    },
}

/// `SIGKILL`, in numbers, because that is what an [`Ending`] carries.
const SIGKILL: i32 = 9;

impl Ending {
    /// Whether the child came to an end by itself or by a limit it was given, so that running the same
    /// thing again would only say the same.
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

    /// Whether the host is to blame rather than the program: it could not be started, could not be
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

/// Why a program could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// There is no such program, or its interpreter is missing.
    NotFound,
    /// It is there but cannot be executed: no permission, or not a program.
    NotExecutable,
    /// The host could not start it: no such working directory, too many processes, no memory.
    Other,
}

/// Which sandbox held a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxKind {
    /// Landlock, with the given version of its interface.
    Landlock {
        /// The highest version that both the kernel and this program know.
        abi: u32,
    },
    /// Namespaces of its own, made by `bwrap`.
    Bwrap {
        /// Whether abstract sockets and signals are kept inside by Landlock as well.
        scoped: bool,
    },
    /// A sandbox was wanted but the host has none.
    NotAvailable {
        /// What is missing.
        why: String,
    },
    /// No sandbox was wanted.
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
