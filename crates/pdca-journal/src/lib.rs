//! The durable record of a run: an append-only journal, its state, locks and recovery.
//!
//! A run changes a repository that others use too, and it can be killed between any two changes. Its
//! [`Journal`] records each change before it is made and the outcome after it; [`RunState`] is a pure
//! fold over the records; [`decide`] compares the record with the facts and returns what a new driver
//! has to do. An [`Admission`] is the right to write any of it.
//!
//! ```
//! use pdca_journal::{
//!     Activity, Admission, Admitted, Effect, Epoch, HostScope, Journal, Moment, ProcessIdentity,
//!     Record, RunId, RunTarget, Runs,
//! };
//! # use std::time::Duration;
//! # let dir = tempfile::tempdir()?;
//! # let path = camino::Utf8Path::from_path(dir.path()).ok_or("not UTF-8")?;
//! # let (git, workspace) = (path, path);
//! let at = Moment { wall: "2026-11-16T08:00:00Z".parse()?, uptime: Duration::from_secs(90) };
//! let driver = ProcessIdentity::of(&HostScope::here()?, std::process::id()).ok_or("no such process")?;
//!
//! let admission = Admission::take([pdca_journal::lock_path(git)])?;
//! let runs = Runs::new(workspace.join("runs"));
//! let run = RunId::generate(at.wall)?;
//! let admitted = Admitted {
//!     driver: driver.clone(),
//!     targets: vec![RunTarget { name: "app".into(), common_dir: git.into() }],
//!     batch: vec!["12".parse()?],
//!     config_digest: "…".into(),
//!     lanes: 2,
//! };
//! let mut journal = Journal::create(&runs, &admission, &run, Epoch::FIRST, at, admitted)?;
//!
//! let (bundle, reference) = ("12".parse()?, "refs/pdca/rescue/12".into());
//! let intent = journal.intent(at, Effect::Rescue { bundle, reference })?;
//! // … save the work, check that it is there …
//! intent.done(&mut journal, at)?;
//! journal.append(at, vec![Record::Entered { activity: Activity::Running }])?;
//!
//! // The process dies. The next driver resumes the run with the next epoch.
//! drop((journal, admission));
//! let admission = Admission::take([pdca_journal::lock_path(git)])?;
//! let epoch = pdca_journal::next_epoch([Epoch::FIRST]).ok_or("no epoch left")?;
//! let journal = Journal::open(&runs, &admission, &run, epoch, at, driver, false)?.journal;
//! assert_eq!(journal.state().phase.as_str(), "running");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - A crash at any moment leaves a prefix of the records, and reading never changes a file.
//! - Damage to records that were synced is detected; only a torn tail is ever cut.
//! - A journal has no record that cannot follow those before it, and none of a driver that lost the
//!   run to a later one.
//! - The recovery decision is a total pure function, and applying it repeatedly comes to rest.
//! - The wall clock decides nothing: locks show which processes live, sequence numbers give the order,
//!   and the machine's uptime measures durations.
//! - Nothing is printed, no process is signalled, and neither environment nor clock is read.

mod claim;
pub mod object_id;
mod process;
mod run_id;
mod timestamp;

mod record;

mod codec;
mod read;
mod storage;

mod retry;
mod state;

mod journal;
mod runs;

mod admission;
mod reconcile;

mod effects;
mod inbox;
mod status_files;

pub mod events;

#[cfg(test)]
mod testing;

pub use admission::{
    Admission, AdmissionError, AdmissionRefusal, AdmissionRuling, LockHolder, RunFact, holder,
    lock_path, rule,
};
pub use claim::{Epoch, Generation, next_epoch};
pub use effects::{EffectSide, Effects, Point, Unwatched};
pub use inbox::{Inbox, InboxError, TakenRequests};
pub use journal::{AppendError, Intent, Journal, JournalCreateError, OpenError, Opened, Torn};
pub use object_id::{ObjectId, ObjectIdError};
pub use process::{HostScope, LaneLock, Liveness, ProcessIdentity, Seen};
pub use read::{JournalReadError, JournalTail, Reading, read};
pub use reconcile::{
    BranchFact, BundlePhase, CheckoutFact, RecoveryAction, RecoveryFacts, RunPhase, decide,
};
pub use record::{
    Activity, Admitted, BeatEnding, Cause, Effect, EffectOutcome, GateVerdict, InboxRequest,
    JournalEntry, Landing, Phase, Reason, Record, RunTarget, Seal, Seq,
};
pub use retry::{Allowance, Count, Now, RetryLimits, RetryTally};
pub use run_id::{RunId, RunIdError};
pub use runs::{FindError, FoundRun, RunEntry, Runs};
pub use state::{
    Applied, Block, Claim, IntegrationProgress, IntegrationState, InvalidRecord, JournaledSeal,
    Reconciled, RejectedRecord, Resting, RunState, Since, Workstream, WorkstreamStatus,
};
pub use status_files::{StatusFilesError, write_bundle_status, write_status_files};
pub use timestamp::{Clock, Moment};
