//! The records of a journal.
//!
//! A record is a *fact* ("bundle 12 is claimed"), an *intent* ("about to move this ref") or the
//! *outcome* of an intent. An intent is on disk before its effect begins, its outcome after the effect
//! ended. So an intent without an outcome is exactly what recovery has to look at after a crash.

mod effect;

use std::fmt;

use camino::Utf8PathBuf;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::claim::{Epoch, Generation};
use crate::object_id::ObjectId;
use crate::process::ProcessIdentity;
use crate::reconcile::RecoveryAction;
use crate::timestamp::Moment;

pub use effect::{Effect, EffectOutcome, Landing, Seal};

/// The number of a record in its journal, from 1. It defines the order; clocks do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub(crate) u64);

impl Seq {
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    pub seq: Seq,
    /// The driver that wrote it.
    pub epoch: Epoch,
    pub at: Moment,
    pub record: Record,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// A field that this version does not know could change the meaning of the record, so the journal is
// refused as one of a newer version.
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// The run exists. Always the first record.
    Admitted(Admitted),
    /// A new driver has the run, because the previous one died or by force. Always the first record
    /// of its epoch.
    TakenUp {
        driver: ProcessIdentity,
        /// True if the previous driver may still live.
        forced: bool,
    },
    /// The run enters another phase.
    Entered { activity: Activity },
    /// A bundle has a lane from here on, and may be started there.
    Claimed {
        bundle: BundleId,
        /// One more than that of its last claim.
        generation: Generation,
        /// The lane here, or the slot of the host.
        slot: u32,
        /// The host that the attempt runs on; absent for this machine.
        // Journals from before there were hosts do not have the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// The commit that the attempt starts from.
        #[serde(with = "crate::object_id")]
        base: ObjectId,
    },
    /// A process of an attempt was started.
    Started { bundle: BundleId, generation: Generation, process: ProcessIdentity },
    /// An attempt is over; no process of it runs any more.
    Ended { bundle: BundleId, generation: Generation, ending: BeatEnding },
    /// A step of an attempt has a verdict.
    Judged {
        bundle: BundleId,
        generation: Generation,
        /// The name of the step, such as the id of a gate.
        step: String,
        verdict: GateVerdict,
    },
    /// A leaf was called. Counted, because calls cost money.
    LeafCalled { bundle: BundleId, role: String },
    /// A failed phase is retried. Counts only against its phase and cause.
    Recovery {
        /// `None` for a phase of the run itself.
        bundle: Option<BundleId>,
        phase: Phase,
        cause: Cause,
    },
    /// The resolution of a conflict is attempted.
    Conflict {
        bundle: BundleId,
        /// The bundles that it conflicts with.
        with: Vec<BundleId>,
    },
    /// An effect is about to be carried out.
    Intent { effect: Effect },
    /// The outcome of an intent.
    Outcome {
        /// The number of the intent.
        intent: Seq,
        outcome: EffectOutcome,
    },
    /// Sealed changes are to be applied in this order. Replaces an earlier plan for the target.
    Planned {
        target: String,
        /// The commit that the first of them is applied to.
        #[serde(with = "crate::object_id")]
        base: ObjectId,
        order: Vec<BundleId>,
    },
    /// The gates ran over a combination of changes.
    Combined {
        target: String,
        /// The tree of the combination.
        #[serde(with = "crate::object_id")]
        tree: ObjectId,
        /// The identity of the gates.
        gate_digest: String,
        verdict: GateVerdict,
        members: Vec<BundleId>,
    },
    /// The record was compared with the facts, and an action was carried out.
    Reconciled {
        /// `None` for the run itself.
        bundle: Option<BundleId>,
        action: RecoveryAction,
    },
    /// The run, or one bundle, waits for a person.
    Blocked {
        /// `None` for the run itself.
        bundle: Option<BundleId>,
        reason: Reason,
        /// The facts that the person needs to decide.
        evidence: String,
    },
    /// The run, or one bundle, continues from the phase in which it was blocked.
    Unblocked {
        /// `None` for the run itself.
        bundle: Option<BundleId>,
    },
    /// A request was found in the inbox.
    Requested { id: String, request: InboxRequest },
    /// A request was carried out or refused.
    Answered {
        id: String,
        /// The reason of a refusal; `None` if it was carried out.
        refusal: Option<String>,
    },
    /// The run gives up a bundle that it did not land.
    Abandoned { bundle: BundleId, why: String },
    /// The run is done with a bundle. Its checkout may outlive the run; `cleanup` removes it.
    Cleaned { bundle: BundleId },
    /// The run is over and every bundle is clean.
    Completed,
    /// A person gave up the run.
    Aborted { why: String },
    /// The run cannot go on.
    Failed { why: String },
}

/// The content of the first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admitted {
    pub driver: ProcessIdentity,
    pub targets: Vec<RunTarget>,
    pub batch: Vec<BundleId>,
    pub config_digest: String,
    /// The bound of the slots here: every claimed one is below it.
    pub lanes: u32,
}

/// A repository under change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunTarget {
    pub name: String,
    /// The git common directory, for people. The lock in it is what excludes other drivers.
    pub common_dir: Utf8PathBuf,
}

/// A phase that a run can enter without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Checkouts are made.
    Preparing,
    /// Bundles are claimed and built.
    Running,
    /// Sealed changes are applied, gated together and landed; lanes may still be at work.
    Integrating,
    /// Nothing new is started; checkouts and branches are cleaned up.
    Draining,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BeatEnding {
    /// The bundle waits for its sign-off.
    Finished,
    /// The builder changed nothing: no success, and no reason to retry.
    NoChange,
    /// Failed in a way that a retry would not fix.
    Failed { what: String },
    /// Interrupted through no fault of the bundle; it may be retried.
    Interrupted { cause: Cause },
}

/// The result of a gate or another check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    Pass,
    Fail,
    /// Failed because it took too long.
    Timeout,
    /// The check could not be decided.
    Unverifiable,
    /// Does not count, because the gate changed the tree that it checked.
    Void,
}

/// The kind of work that a failure is counted against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Making a checkout.
    Prepare,
    /// An attempt in a lane.
    Attempt,
    Seal,
    /// Applying sealed changes.
    Integrate,
    /// Gating a combination.
    Validate,
    /// Moving the target branch.
    Land,
    /// Telling the forge or the tracker.
    Publish,
    /// Removing checkouts and branches.
    Cleanup,
}

/// The cause of a failure, as far as it matters for retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The driver or a child of it died.
    Crash,
    /// A child could not be started.
    Spawn,
    /// A service asked for fewer calls.
    Throttled,
    /// The disk is full.
    Disk,
    /// A git operation failed.
    Git,
    /// A change does not merge.
    Conflict,
    /// Another process changed the ref first.
    Race,
    /// Another fault of the host.
    Host,
}

/// The reason a run or a bundle waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The sign-off of the bundle is due. Only for a bundle.
    SignOff,
    /// The attempt changed nothing. Only for a bundle.
    NoChange,
    /// The attempt failed. Only for a bundle.
    Failed,
    /// `blocked_conflict`: changes conflict.
    Conflict,
    /// `blocked_validation`: a combination fails and no single change is to blame.
    Validation,
    /// `blocked_recovery`: the facts contradict the record, or the retries are used up.
    Recovery,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SignOff => "sign-off",
            Self::NoChange => "no-change",
            Self::Failed => "failed",
            Self::Conflict => "conflict",
            Self::Validation => "validation",
            Self::Recovery => "recovery",
        }
    }
}

/// A request of a person to the driver of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum InboxRequest {
    /// Continue from the phase in which it was blocked.
    Unblock {
        /// `None` for the run itself.
        bundle: Option<BundleId>,
        note: Option<String>,
    },
    /// Give up the run.
    Abort { why: String },
}
