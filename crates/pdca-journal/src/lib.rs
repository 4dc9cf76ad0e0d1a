//! The durable record of a run.
//!
//! A run is many effects on a repository that others use too, and it can end between any two of
//! them. Its [`Journal`] says what was about to be done and what came of it; [`RunState`] is a pure
//! fold over that; [`decide`] says what to do when record and facts are laid side by side. An
//! [`Admission`] is the right to write any of it.
//!
//! ```
//! use pdca_journal::{
//!     Activity, Admission, Admitted, Effect, Epoch, HostScope, Journal, Moment, Process, Record, RunId,
//!     Runs, Target,
//! };
//! # use std::time::Duration;
//! # let dir = tempfile::tempdir()?;
//! # let path = camino::Utf8Path::from_path(dir.path()).ok_or("not UTF-8")?;
//! # let (git, workspace) = (path, path);
//! let at = Moment { wall: "2026-11-16T08:00:00Z".parse()?, uptime: Duration::from_secs(90) };
//! let driver = Process::of(&HostScope::here()?, std::process::id()).ok_or("no such process")?;
//!
//! let admission = Admission::take([pdca_journal::lock_path(git)])?;
//! let runs = Runs::new(workspace.join("runs"));
//! let run = RunId::generate(at.wall)?;
//! let admitted = Admitted {
//!     driver: driver.clone(),
//!     targets: vec![Target { name: "app".into(), common_dir: git.into() }],
//!     batch: vec!["12".parse()?],
//!     config_digest: "…".into(),
//!     lanes: 2,
//! };
//! let mut journal = Journal::create(&runs, &admission, &run, Epoch::FIRST, at, admitted)?;
//!
//! let intent = journal.intent(at, Effect::Prepare { bundle: "12".parse()?, slot: 0 })?;
//! // … make the checkout, look whether it is there …
//! intent.done(&mut journal, at)?;
//! journal.append(at, vec![Record::Entered { activity: Activity::Running }])?;
//!
//! // The process dies. The next driver has the next epoch, and goes on.
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
//! - What was synced and is not what it was is noticed, and nothing of it is cut.
//! - A journal holds no record that cannot follow those before it, and none of a driver that a later
//!   one has taken the run from.
//! - The reconcile decision is a total pure function; what it decides always comes to rest.
//! - No wall clock decides anything: locks say who lives, sequence numbers what came first, and the
//!   machine's uptime how long ago it was.
//! - Nothing is printed, nobody is signalled, and neither environment nor clock is read.

mod claim;
mod oid;
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

#[cfg(test)]
mod testing;

pub use admission::{
    Admission, AdmissionError, AdmissionRefusal, LockFact, LockHolder, Ruling, RunFact, holder,
    lock_path, rule,
};
pub use claim::{Epoch, Generation, attempt_ref, lane_branch, next_epoch};
pub use effects::{Effects, Point, Unwatched, When};
pub use inbox::{Inbox, InboxError, Taken};
pub use journal::{AppendError, CreateError, Intent, Journal, OpenError, Opened, Torn};
pub use oid::{ObjectId, ObjectIdError};
pub use process::{HostScope, LaneLock, Liveness, Process, Seen};
pub use read::{ReadError, Reading, Tail, read};
pub use reconcile::{
    BranchFact, BundlePhase, CheckoutFact, Lease, RecoveryAction, RecoveryFacts, RunPhase, decide,
};
pub use record::{
    Activity, Admitted, BeatEnding, Cause, Effect, EffectOutcome, Entry, GateVerdict, Landing,
    Phase, Reason, Record, Request, Seal, Seq, Target,
};
pub use retry::{Allowance, Count, Limits, Now, Tally};
pub use run_id::{RunId, RunIdError};
pub use runs::{FindError, FoundRun, RunEntry, Runs};
pub use state::{
    Applied, Block, Claim, Integration, IntegrationProgress, InvalidRecord, Reconciled,
    RejectedRecord, Resting, RunState, SealRecord, Since, Workstream, WorkstreamStatus,
};
pub use status_files::{StatusFilesError, write_bundle_status, write_status_files};
pub use timestamp::{Clock, Moment};
