//! What comes of a call: artifacts, or the reason why there are none.

use std::{fmt, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::{Ending, SandboxKind};
use serde::Serialize;

use crate::class::FailureClass;
use crate::role::{Output, Role};

/// A leaf that did its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafOutcome {
    /// Who did.
    pub role: Role,
    /// What it left, as bytes; nothing of it is in the bundle yet. Empty where the role may leave
    /// nothing: a builder that only changed its checkout, a stub that proposes nothing.
    pub produced: Vec<Produced>,
    /// What kept it to its inputs.
    pub guard: Guard,
    /// How many attempts it took, this one included; none for a stub.
    pub attempts: u32,
    /// How often it was told to come back later.
    pub throttled: u32,
    /// How long the last attempt ran.
    pub duration: Duration,
    /// Whether the ending of an earlier driver's leaf was used and nothing was started.
    pub reused: bool,
    /// Files of the bundle that changed while it ran; `.` where a later driver found that it differs
    /// but not where. Always empty for an independent role: there a change voids the result. For
    /// the others it is the driver's to judge, as a person may have edited the brief meanwhile.
    pub bundle_changed: Vec<Utf8PathBuf>,
    /// The agent's last message, where its protocol is read.
    pub said: Option<String>,
    /// The name of the agent's session, to go on in it later; see [`Call::session`](crate::Call::session).
    pub session: Option<String>,
    /// What went wrong before it went right, in the words of an error log.
    pub earlier_failures: Option<String>,
}

impl LeafOutcome {
    /// What was left under this name.
    pub fn get(&self, output: Output) -> Option<&[u8]> {
        self.produced.iter().find(|one| one.output == output).map(|one| one.bytes.as_slice())
    }
}

/// One thing that a leaf left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// What it is.
    pub output: Output,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where they were found.
    pub found: FoundIn,
}

/// Where an artifact was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundIn {
    /// In its file in the staged view.
    File,
    /// In what the leaf printed.
    Printed,
    /// Made by the stub.
    Stub,
}

/// What kept a leaf to its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Nothing was started.
    Stub,
    /// The kernel, or the digests alone.
    Sandbox(SandboxKind),
}

impl Guard {
    /// Whether the kernel itself denied what the role may not touch.
    pub fn is_enforced(&self) -> bool {
        match self {
            Self::Stub
            | Self::Sandbox(SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. }) => true,
            Self::Sandbox(SandboxKind::NotAvailable { .. } | SandboxKind::Off) => false,
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stub => f.write_str("stub, nothing was started"),
            Self::Sandbox(held @ (SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. })) => {
                write!(f, "{held}, and digests")
            }
            Self::Sandbox(held @ (SandboxKind::NotAvailable { .. } | SandboxKind::Off)) => {
                write!(f, "{held}; digests alone")
            }
        }
    }
}

/// Something that happens in a call, told while it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafEvent {
    /// An attempt is about to be made.
    Attempt {
        /// Which one, from 1. One that was throttled is announced again under its number.
        n: u32,
        /// How many there may be.
        of: u32,
    },
    /// The leaf runs.
    Started {
        /// Its process id.
        pid: i32,
    },
    /// It printed something.
    Output {
        /// How many bytes so far.
        bytes: u64,
        /// Its last line, printable.
        last_line: String,
    },
    /// It was told to come back later.
    Throttled {
        /// How long the call waits now.
        wait: Duration,
    },
    /// The agent said what keeps it from its work.
    Diagnosed {
        /// Of which kind that is.
        class: FailureClass,
        /// Its words.
        evidence: String,
    },
    /// The session of an earlier call could not be gone on in, and a new one begins.
    NotResumed {
        /// Its name.
        session: String,
    },
    /// An attempt came to an end.
    Ended {
        /// Which one, from 1.
        attempt: u32,
        /// How.
        ending: Ending,
        /// What held it.
        held: SandboxKind,
        /// Whether that happened under an earlier driver.
        reused: bool,
    },
}

/// The text of an `*.error.log`, attempt by attempt. It holds no times, so a run that was
/// interrupted writes the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorLog(String);

impl ErrorLog {
    /// How many lines of an attempt's output are quoted.
    const LINES: usize = 20;
    /// How much of a line is.
    const LINE: usize = 400;

    /// Notes one attempt with the last lines of its output.
    pub(crate) fn note(&mut self, title: &str, job: &Utf8Path) {
        self.0.push_str(title);
        self.0.push('\n');
        // A log that cannot be read must not hide the failure that it would have illustrated.
        let Ok(log) = pdca_process::read_log(job) else {
            return;
        };
        let lines: Vec<String> = log.lines(Self::LINE).collect();
        let skipped = lines.len().saturating_sub(Self::LINES);
        if skipped > 0 {
            self.0.push_str("  | …\n");
        }
        for line in &lines[skipped..] {
            self.0.push_str(format!("  | {line}").trim_end());
            self.0.push('\n');
        }
    }

    /// Adds a line of our own.
    pub(crate) fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    pub(crate) fn into_option(self) -> Option<String> {
        (!self.0.is_empty()).then_some(self.0)
    }
}
