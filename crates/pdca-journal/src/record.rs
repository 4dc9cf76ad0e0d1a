//! What a journal records.
//!
//! A record is either a *fact* ("bundle 12 is claimed"), an *intent* ("about to move this ref") or
//! the *outcome* of an intent. An intent is on disk before its effect begins, an outcome after it
//! ended; so an intent without an outcome is exactly what has to be looked at after a crash.

mod effect;

use std::fmt;

use camino::Utf8PathBuf;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::claim::{Epoch, Generation};
use crate::oid::ObjectId;
use crate::process::Process;
use crate::reconcile::RecoveryAction;
use crate::timestamp::Moment;

pub use effect::{Effect, EffectOutcome, Landing, Seal};

/// The place of a record in its journal, from 1. Order is decided by this and never by a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub(crate) u64);

impl Seq {
    /// Its number.
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
pub struct Entry {
    /// Its place.
    pub seq: Seq,
    /// Who wrote it.
    pub epoch: Epoch,
    /// When.
    pub at: Moment,
    /// What.
    pub record: Record,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// The run exists. Always the first record.
    Admitted(Admitted),
    /// Another driver has taken the run up, by force or because the one before is dead. Always the
    /// first record of its epoch.
    TakenUp {
        /// Who.
        driver: Process,
        /// Whether the one before may still live.
        forced: bool,
    },
    /// The run has come to another part of its work.
    Entered {
        /// Which.
        activity: Activity,
    },
    /// A bundle has a lane from here on, and may be started there.
    Claimed {
        /// The bundle.
        bundle: BundleId,
        /// One more than its last one.
        generation: Generation,
        /// The lane.
        slot: u32,
        /// The commit the attempt starts from.
        base: ObjectId,
    },
    /// Something of an attempt runs.
    Started {
        /// The bundle.
        bundle: BundleId,
        /// The attempt.
        generation: Generation,
        /// What runs.
        process: Process,
    },
    /// An attempt is over; nothing of it runs any more.
    Ended {
        /// The bundle.
        bundle: BundleId,
        /// The attempt.
        generation: Generation,
        /// How.
        ending: BeatEnding,
    },
    /// A step of an attempt was judged.
    Judged {
        /// The bundle.
        bundle: BundleId,
        /// The attempt.
        generation: Generation,
        /// The step, such as the id of a gate.
        step: String,
        /// The verdict.
        verdict: GateVerdict,
    },
    /// A leaf was called, which costs.
    LeafCalled {
        /// For which bundle.
        bundle: BundleId,
        /// Which leaf.
        role: String,
    },
    /// Something is tried again. Counts against its phase and cause, and nothing else.
    Recovery {
        /// The bundle, where it is not the run's.
        bundle: Option<BundleId>,
        /// What failed.
        phase: Phase,
        /// Why.
        cause: Cause,
    },
    /// A conflict is tried to be resolved.
    Conflict {
        /// The bundle that does not fit.
        bundle: BundleId,
        /// Those it does not fit with.
        with: Vec<BundleId>,
    },
    /// Something is about to be done.
    Intent {
        /// What.
        effect: Effect,
    },
    /// What came of an intent.
    Outcome {
        /// The place of the intent.
        intent: Seq,
        /// What came of it.
        outcome: EffectOutcome,
    },
    /// Sealed changes are to be applied in this order. Replaces an earlier plan for the target.
    Planned {
        /// The target.
        target: String,
        /// The commit they are applied to.
        base: ObjectId,
        /// The order.
        order: Vec<BundleId>,
    },
    /// A combination was judged.
    Combined {
        /// The target.
        target: String,
        /// The tree that was judged.
        tree: ObjectId,
        /// What it was judged with.
        gate_digest: String,
        /// The verdict.
        verdict: GateVerdict,
        /// The changes in it.
        members: Vec<BundleId>,
    },
    /// The record was compared with the facts, and this was done.
    Reconciled {
        /// The bundle, where it is not the run's.
        bundle: Option<BundleId>,
        /// What was done.
        action: RecoveryAction,
    },
    /// The run, or one bundle, waits for a person.
    Blocked {
        /// The bundle, where it is not the run.
        bundle: Option<BundleId>,
        /// Why.
        reason: Reason,
        /// What that person should see.
        evidence: String,
    },
    /// The run, or one bundle, goes on where it was blocked.
    Unblocked {
        /// The bundle, where it is not the run.
        bundle: Option<BundleId>,
    },
    /// A request was found in the inbox.
    Requested {
        /// Its name there.
        id: String,
        /// What is asked for.
        request: Request,
    },
    /// A request was carried out or turned down.
    Answered {
        /// Its name in the inbox.
        id: String,
        /// Why it was turned down; none where it was carried out.
        refusal: Option<String>,
    },
    /// The run does nothing more with a bundle that it did not land.
    Abandoned {
        /// The bundle.
        bundle: BundleId,
        /// Why.
        why: String,
    },
    /// Nothing of a bundle is left in lanes and branches.
    Cleaned {
        /// The bundle.
        bundle: BundleId,
    },
    /// The run is over: all is clean.
    Completed,
    /// The run was given up.
    Aborted {
        /// Why.
        why: String,
    },
    /// The run cannot go on.
    Failed {
        /// Why.
        why: String,
    },
}

/// What a run is admitted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admitted {
    /// The driver.
    pub driver: Process,
    /// The repositories.
    pub targets: Vec<Target>,
    /// The bundles.
    pub batch: Vec<BundleId>,
    /// A digest of the configuration.
    pub config_digest: String,
    /// How many lanes there are.
    pub lanes: u32,
}

/// A repository under change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its common directory, for people: what counts is the lock that was taken in there.
    pub common_dir: Utf8PathBuf,
}

/// A part of a run's work that it can be in without a person's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Checkouts are made.
    Preparing,
    /// Bundles are claimed and driven.
    Running,
    /// Sealed changes are applied, judged together and landed; lanes may still be at work.
    Integrating,
    /// Nothing new is begun; what is left is cleared up.
    Draining,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BeatEnding {
    /// As far as it goes without a person: the bundle waits for its sign-off.
    Finished,
    /// Nothing was changed, which is neither success nor a reason to try again.
    NoChange,
    /// It failed, and trying again would not help.
    Failed {
        /// How.
        what: String,
    },
    /// It was cut short, through no fault of the bundle.
    Interrupted {
        /// By what.
        cause: Cause,
    },
}

/// What a judge said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// Green.
    Pass,
    /// Red.
    Fail,
    /// Red, because it took too long.
    Timeout,
    /// Nothing was established.
    Unverifiable,
    /// It counts for nothing: the judge changed what it judged.
    Void,
}

/// What kind of work a failure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Making a checkout.
    Prepare,
    /// An attempt in a lane.
    Attempt,
    /// Sealing.
    Seal,
    /// Applying sealed changes.
    Integrate,
    /// Judging a combination.
    Validate,
    /// Moving the target.
    Land,
    /// Telling others.
    Publish,
    /// Clearing up.
    Cleanup,
}

/// Why something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The driver, or what it ran, died.
    Crash,
    /// A child could not be started.
    Spawn,
    /// Somebody asked for less.
    Throttled,
    /// No space was left.
    Disk,
    /// Git would not.
    Git,
    /// The change does not fit.
    Conflict,
    /// Somebody else was faster.
    Race,
    /// The host was at fault in another way.
    Host,
}

/// Why something waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The bundle's sign-off is due. Never of a run.
    SignOff,
    /// The attempt changed nothing. Never of a run.
    NoChange,
    /// The attempt failed. Never of a run.
    Failed,
    /// `blocked_conflict`: changes do not fit together.
    Conflict,
    /// `blocked_validation`: nobody can be blamed for a red combination.
    Validation,
    /// `blocked_recovery`: the facts are not what the record says, or trying again was tried enough.
    Recovery,
}

/// What a person asks a run for, from outside its driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// To go on where it was blocked.
    Unblock {
        /// The bundle, where it is not the run.
        bundle: Option<BundleId>,
        /// What the person says about it.
        note: Option<String>,
    },
    /// To give the run up.
    Abort {
        /// Why.
        why: String,
    },
}
