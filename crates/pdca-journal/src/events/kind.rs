//! The facts, one variant each.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_state::{BundleId, CallRecord, Reentry, State};
use serde::{Deserialize, Serialize};

use crate::events::flow::FlowTask;
use crate::events::warning::WarningCode;

/// A fact. What a person reads is rendered from the fields; `text` is there where the words are the fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventKind {
    /// A driver before this one ended while it had the bundle, and this was decided about it.
    Recovered {
        /// The phase in that driver's journal.
        was: String,
        /// The action of the recovery table, in kebab case.
        action: String,
    },
    /// The pool starts the bundle.
    Dispatched {
        /// The number of bundles with work left on the longest chain of dependants that starts with
        /// it, itself included: the longest goes first.
        chain: u64,
        /// Set if it goes on in the lane that has its work.
        resumed: bool,
    },
    /// A job for it runs on a host.
    OnHost {
        /// The name of the host.
        host: String,
        /// The name of the job there.
        job: String,
        /// Set if it was found running there.
        resumed: bool,
    },
    /// It is its turn, and it waits because rivals are in flight.
    Held {
        /// The rivals.
        by: Vec<Hold>,
    },
    /// Its last prerequisite is complete: it may start.
    Freed {
        /// The prerequisite.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        by: BundleId,
    },
    /// A person sent it back to Do while the pool ran: it goes again.
    Reopened,
    /// The change writes paths that the brief does not declare.
    Drifted {
        /// The paths that no `Touches` covers.
        outside: Vec<String>,
    },
    /// A step begins.
    Began {
        /// The step.
        step: Step,
        /// The state before it.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        from: State,
    },
    /// A step is done.
    Finished {
        /// The step.
        step: Step,
        /// The state after it.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        to: State,
        /// The time it took, in milliseconds.
        duration_ms: u64,
    },
    /// The private checkout is at the base.
    Checkout {
        /// The checkout.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        path: Utf8PathBuf,
        /// The commit it is at.
        base: String,
    },
    /// The private checkout has what it needs beyond what git tracks.
    Hydrated {
        /// The number of files that were copied or linked.
        files: usize,
    },
    /// Work of an unfinished attempt was kept before the checkout was reset.
    Rescued {
        /// The commit that holds it.
        commit: String,
        /// The repository that has the commit.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        checkout: Utf8PathBuf,
    },
    /// A gate row begins.
    GateBegan {
        /// The row.
        rule_id: String,
        /// Its place among the rows, from 1.
        k: usize,
        /// The number of rows.
        n: usize,
    },
    /// A gate row has its result.
    GateEnded {
        /// The row.
        rule_id: String,
        /// The result as in the report.
        result: String,
        /// One line of evidence.
        evidence: String,
        /// The failing tests and where to look.
        #[serde(flatten)]
        proof: RedEvidence,
        /// Set if a red row blocks.
        gating: bool,
        /// Set if the verdict is that of an earlier driver.
        reused: bool,
        /// The time it took, in milliseconds.
        duration_ms: u64,
    },
    /// A leaf begins.
    LeafBegan {
        /// The role.
        role: String,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// A leaf was told to come back later. That is no attempt.
    LeafThrottled {
        /// The role.
        role: String,
        /// The time until it is called again, in milliseconds.
        wait_ms: u64,
    },
    /// A leaf has ended.
    LeafEnded {
        /// The role.
        role: String,
        /// The ending, in words.
        ending: String,
        /// What kept it to its inputs.
        guard: String,
        /// Set if the ending is that of an earlier driver.
        reused: bool,
    },
    /// A call of a leaf is on record in the bundle. A driver that resumes may tell one again, under the same `call`.
    LeafRecorded {
        /// The record, without its run: the event has it.
        #[serde(flatten)]
        facts: Box<CallRecord>,
    },
    /// The last sign of life of a child. Not stored in the log of a run.
    Alive {
        /// The row, role or phase.
        what: String,
        /// Its last line of output, made printable.
        line: String,
    },
    /// A finding that does not stop the bundle.
    Warning {
        /// The kind of finding.
        #[serde(default)]
        code: WarningCode,
        /// The sentence.
        text: String,
    },
    /// A step of an integration, or of resolving the conflict of one bundle.
    Integration {
        /// The sentence.
        text: String,
        /// The facts; absent for what is only said, and where a newer version wrote it.
        #[serde(flatten)]
        step: Option<IntegrationStep>,
    },
    /// A step of a flow begins. Runs and integrations have events of their own.
    FlowBegan {
        /// The step.
        task: FlowTask,
        /// The bundles that it is about; none where it is about all that are due.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
    },
    /// A step of a flow has ended.
    FlowEnded {
        /// The step.
        task: FlowTask,
        /// The bundles that it is about, as at its beginning.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
        /// The failure, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The time it took, in milliseconds.
        duration_ms: u64,
    },
    /// As a warning, but about the workspace: emitted for every bundle that meets it.
    Notice {
        /// The kind of finding.
        #[serde(default)]
        code: WarningCode,
        /// The sentence.
        text: String,
        /// Set if this process has said it before. A renderer shows it once.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repeated: bool,
    },
    /// The driver leaves the bundle alone.
    Halted {
        /// The reason.
        halt: Halt,
    },
    /// The bundle could not go on.
    Failed {
        /// The error with its causes.
        error: String,
    },
}

impl EventKind {
    /// A step of an integration that is only said.
    pub fn integration(text: impl Into<String>) -> Self {
        Self::Integration { text: text.into(), step: None }
    }

    /// A call that is on record.
    pub fn recorded(record: CallRecord) -> Self {
        // The event has a `run` of its own, and one line has no field twice.
        Self::LeafRecorded { facts: Box::new(CallRecord { run: None, ..record }) }
    }

    /// A finding that does not stop the bundle.
    pub fn warning(code: WarningCode, text: impl Into<String>) -> Self {
        Self::Warning { code, text: text.into() }
    }

    /// A finding about the workspace.
    pub fn notice(code: WarningCode, text: impl Into<String>) -> Self {
        Self::Notice { code, text: text.into(), repeated: false }
    }
}

/// The facts of a step of an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IntegrationStep {
    /// The branch went on while the integration worked.
    BaseMoved {
        /// The number of new commits.
        commits: u64,
    },
    /// The gates begin over a combination.
    Gating {
        /// The changes in it; none for the branch by itself.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
        /// The tree.
        tree: String,
        /// The question it answers.
        purpose: GatePurpose,
    },
    /// The gates passed.
    Green {
        /// The changes.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
        /// The tree, which is that of a commit on the way where every commit is gated.
        tree: String,
    },
    /// A gate failed.
    Red {
        /// The changes.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
        /// The tree.
        tree: String,
        /// The rows that failed.
        rows: Vec<String>,
        /// The tests that failed, as far as the rows name them.
        failing: Vec<String>,
    },
    /// The gates came to no verdict.
    NoVerdict {
        /// The changes.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
        /// The tree.
        tree: String,
        /// The rows, with the reason.
        rows: Vec<String>,
    },
    /// A red was not confirmed.
    Flaky {
        /// The changes it was seen over.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        bundles: Vec<BundleId>,
        /// The rows.
        rows: Vec<String>,
    },
    /// A combination is red, and a larger one is green.
    Mended {
        /// The red one.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        red: Vec<BundleId>,
        /// The changes that mend it.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        green: Vec<BundleId>,
    },
    /// A change does not land.
    Held {
        /// The change.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        bundle: BundleId,
        /// The reason, as in `integrate --json`.
        reason: String,
        /// The changes that it does not go together with.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        partners: Vec<BundleId>,
        /// The changes that could not be left out and are not to blame.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        context: Vec<BundleId>,
        /// The rows that failed.
        rows: Vec<String>,
        /// The tests that failed.
        failing: Vec<String>,
        /// The files that conflict.
        paths: Vec<String>,
    },
    /// A change is in the branch, or on the staging branch.
    Landed {
        /// The change.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        bundle: BundleId,
        /// The branch that has it.
        onto: String,
        /// Its commit there.
        commit: String,
    },
}

/// The question that gating a combination answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GatePurpose {
    /// Is it green?
    Decide,
    /// Is it red again?
    Confirm,
    /// Which changes are red only together?
    Explain,
}

/// The next thing the driver does with a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Step {
    /// Nothing: the bundle waits for a person, or is finished.
    Halt(Halt),
    /// Record that Plan closed the issue without a fix.
    Close,
    /// Do: have the builder change the code.
    Build,
    /// Check: run the gates over the change.
    Gate,
    /// Check: have the change reviewed.
    Review,
    /// Check: write the result document.
    Assemble,
    /// Put an attempt with findings of its builder's own into the archive; Do comes next.
    SendBack,
    /// Put an attempt that a person sent back into the archive.
    Archive(#[cfg_attr(feature = "schema", schemars(with = "String"))] Reentry),
}

impl Step {
    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Halt(_) => "halt",
            Self::Close => "close",
            Self::Build => "build",
            Self::Gate => "gates",
            Self::Review => "review",
            Self::Assemble => "assemble",
            Self::SendBack => "send back",
            Self::Archive(_) => "archive",
        }
    }
}

/// Why the driver leaves a bundle alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Halt {
    /// It has no brief yet: Plan is a person's beat.
    Unplanned,
    /// The tracker resolved it before any cycle ran.
    Resolved,
    /// It waits for a person's sign-off.
    AwaitingSignoff,
    /// It is accepted and frozen.
    Complete,
    /// A person stopped it for good.
    Discontinued,
}

/// A rival in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hold {
    /// The rival.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: BundleId,
    /// Why the two are never in flight together, in words.
    pub why: String,
}

/// The evidence of a red row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedEvidence {
    /// The tests that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// The number of further tests that failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failing_more: usize,
    /// The log, relative to the bundle where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The command that runs the row again on the same tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// Converts a duration to the milliseconds of events. Rounded before it is shown, so that a replay
/// shows the same text.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
