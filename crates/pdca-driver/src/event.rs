//! What happened, told once: the human renderer, `--events` and later the journal read the same.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_state::{BundleId, State};
use serde::Serialize;

use crate::step::{Halt, Step};

/// Who is told. Called from the thread in which it happened.
pub type Report<'a> = &'a (dyn Fn(Event) + Sync);

/// One thing that happened to one bundle.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The bundle it happened to.
    pub id: BundleId,
    /// The lane it happened in, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A driver before this one died while it had the bundle, and this was decided about it.
    Recovered {
        /// Where that driver's record had it.
        was: String,
        /// What was decided.
        action: pdca_journal::RecoveryAction,
    },
    /// The pool starts it.
    Dispatched {
        /// How many bundles with work left are on the longest chain of dependants that starts with
        /// it, itself included: the longest goes first.
        chain: u64,
        /// Whether it goes on in the lane in which its work lies.
        resumed: bool,
    },
    /// It was its turn, and it waits because rivals are in flight.
    Held {
        /// The rivals and why they are some.
        by: Vec<Hold>,
    },
    /// What it waited for is complete: it may start.
    Freed {
        /// The prerequisite that was the last to become complete.
        by: BundleId,
    },
    /// A person sent it back to Do while the pool ran: it goes again.
    Reopened,
    /// What the change writes, as far as that is not what the brief declared.
    Drifted {
        /// The paths that no `Touches` stands for.
        outside: Vec<String>,
    },
    /// A step begins.
    Began {
        /// The step.
        step: Step,
        /// The state the bundle is in.
        from: State,
    },
    /// A step is done.
    Finished {
        /// The step.
        step: Step,
        /// The state the bundle is in now.
        to: State,
        /// How long it took.
        #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
        duration: Duration,
    },
    /// The private checkout is at the base.
    Checkout {
        /// Where it lies.
        path: Utf8PathBuf,
        /// The commit it stands at.
        base: String,
    },
    /// The private checkout got what it needs beyond what git tracks.
    Hydrated {
        /// How many files were copied or linked.
        files: usize,
    },
    /// Work of an unfinished attempt was kept before the checkout was reset.
    Rescued {
        /// The commit that holds it now.
        commit: String,
        /// The checkout whose repository has the commit.
        checkout: Utf8PathBuf,
    },
    /// A gate row begins.
    GateBegan {
        /// The row's id.
        rule_id: String,
        /// Its place among the rows of this run, from 1.
        k: usize,
        /// How many rows this run has.
        n: usize,
    },
    /// A gate row has its result.
    GateEnded {
        /// The row's id.
        rule_id: String,
        /// The result as it stands in the report.
        result: String,
        /// One line of evidence.
        evidence: String,
        /// What failed, and where to look.
        #[serde(flatten)]
        proof: Proof,
        /// Whether a red row blocks.
        gating: bool,
        /// Whether a verdict that an earlier driver paid for was used.
        reused: bool,
        /// How long it took.
        #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
        duration: Duration,
    },
    /// A leaf begins.
    LeafBegan {
        /// Which one.
        role: String,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// A leaf was told to come back later; that is no attempt.
    LeafThrottled {
        /// Which one.
        role: String,
        /// How long the driver waits.
        #[serde(rename = "wait_ms", serialize_with = "milliseconds")]
        wait: Duration,
    },
    /// A leaf has ended.
    LeafEnded {
        /// Which one.
        role: String,
        /// How it ended, in words.
        ending: String,
        /// What kept it to its inputs.
        guard: String,
        /// Whether an ending that an earlier driver paid for was used.
        reused: bool,
    },
    /// The last sign of life of whatever runs now.
    Alive {
        /// What runs.
        what: String,
        /// Its last line of output, made printable.
        line: String,
    },
    /// Something a person should know of that does not stop the bundle.
    Warning {
        /// The whole sentence.
        text: String,
    },
    /// A step of an integration, which is no single bundle's, or of resolving the conflict of one.
    Integration {
        /// The whole sentence.
        text: String,
    },
    /// As a warning, but about the workspace: said of every bundle, and worth reading once.
    Notice {
        /// The whole sentence.
        text: String,
    },
    /// The driver leaves the bundle alone.
    Halted {
        /// Why.
        halt: Halt,
    },
    /// The bundle could not go on.
    Failed {
        /// The error with its causes.
        error: String,
    },
}

/// A rival in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    /// The rival.
    pub id: BundleId,
    /// Why the two are never in flight together, in words.
    pub why: String,
}

/// What a red row left for whoever looks into it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The tests that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// How many more failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failing_more: usize,
    /// The log, relative to the bundle where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The command that runs the row again on the same tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

fn milliseconds<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
