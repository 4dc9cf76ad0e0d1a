//! Merge queue: seal, fold, gate together, bisect, land, certify.
//!
//! An accepted change becomes a [`Sealed`]: an immutable record, kept by a ref. A [`Plan`] puts
//! sealed changes in order, and [`fold`] puts them onto a base in the object store, one after the
//! other, with git's own merge. The resulting [`Candidate`] is gated as a whole; a green verdict
//! about exactly its tree makes it [`Gated`], and only that can [`land`]. What landed is looked at
//! again, and a [`Certificate`] lets anybody with the objects find it out once more.
//!
//! ```text
//! Acceptance ─ seal ─► Sealed ─ Plan ─ fold ─► Candidate ─ gates ─► Gated ─ land ─► Landed
//!                                                                               └► Certificate
//! ```
//!
//! ```
//! use pdca_integrate::{Plan, Strategy, ObjectId};
//! let base = ObjectId::from_hex(b"4b825dc642cb6eb9a060e54bf8d69288fbee4904")?;
//! let plan = Plan::new(base, Strategy::RebaseFf, [])?;
//! assert!(plan.entries().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - There is no [`Sealed`] but through [`seal`] and [`Sealed::load`], which look at the objects.
//! - No working tree and no index is read or written, and no branch moves that a checkout has.
//! - The same plan gives the same commits, on every machine and however often.
//! - Nothing lands that was not gated green as exactly that tree, by exactly the gates that count.
//! - Every change of refs is made under the fence, from exactly the value that was expected.
//! - Nothing is printed, and neither the environment nor the clock is read.

mod conflict;
mod git;
mod queue;
pub mod testing;

pub use conflict::branch_side::BranchSide;
pub use conflict::{Conflict, Hunk, Stage};
pub use conflict::{
    attempts::{
        ConflictDir, ConflictEnd, ConflictRecord, Due, FailedAttempt, MOST_ATTEMPTS, Stamp,
        blocked_conflicts, conflict_record, unblock_conflicts,
    },
    sides::Sides,
    state::{
        ConflictError, ConflictOutcome, ConflictReport, ConflictState, ResolveRequest,
        dry_run_resolution, find_base, find_sealed, is_as_it_was, is_put_away, report,
    },
};
pub use git::attempt_refs::{drop_work, keep_work, work_prefix, work_ref};
pub use git::engine::{Driver, Drivers, Engine, EngineError, Merged};
pub use git::failure::{RefError, StoreError};
pub use git::fence::{Effect, Fence, Log};
pub use git::fold::{
    Changed, Fate, FoldError, Folded, FoldedBundle, Record, Recorded, Skip, Step, StepState, fold,
};
pub use git::land::{
    BaseDrift, Disproof, Holder, LandError, Landed, Onto, base_drift, holders, land,
    offer::{Offer, OfferError, OfferOutcome, offer},
    push::{PushError, PushOutcome, push, push_seals},
    remote::{Destination, RemoteTip, bring, remote_tip, sight, sightings},
};
pub use git::name::{Run, RunError, staged_for, staging_branch};
pub use git::path::TreePath;
pub use git::presence::{Presence, contains, foreign_commits, present_in, refs_below, seals_named};
pub use git::rebuild::{Ingredients, RebuildError};
pub use git::seal::{Acceptance, Drift, SealError, SealRecord, Sealed, Signer, Support, seal};
pub use git::store::Store;
pub use gix::ObjectId;
pub use queue::below::{Landing, landed_below};
pub use queue::candidate::{AppliedCommit, Candidate, drop_own_ref};
pub use queue::certificate::{Certificate, Input, Outcome, Verified, VerifyError, verify};
pub use queue::combination::{Built, Combination};
pub use queue::forecast::{Cluster, Forecast, Grouping, Level, Outlook, Pair};
pub use queue::plan::{Entry, Plan, PlanError, Strategy};
pub use queue::search::{
    Answer, Costs, Culprit, Decision, Fault, FlakeLedger, FlakePolicy, FlakeRules, Known, Memory,
    Pace, Purpose, RowHistory, Search, Setup, Test, TestId, UnknownTest, Why,
};
pub use queue::verdict::{
    GateSetId, Gated, Light, Lookup, NotGated, Origin, Trust, Verdict, VerdictCache, VerdictKey,
};
pub use queue::{
    context::{
        CombinationGate, CombinationGates, FIRST_SLOT, GateJob, GateRunError, Notice, QueueContext,
        Ruling,
    },
    dry_run::{DryRun, dry_run},
    error::IntegrateError,
    evidence::{Evidence, RedRow, failing},
    flakes::{Quarantined, counts, excuse, pardon},
    held::{Held, HeldBack, HeldReason, place},
    integrate,
    integration::{Integrated, IntegrationRequest},
    journal::{JournalError, LOCK},
    landing::{finish_certificates, has_pending_certificate},
    landing_base::LandingBase,
    landing_mode::Land,
    max_age::{MaxAge, MaxAgeError},
    settings::{GateSteps, QueueSettings, ReturnCulprits},
    stats::{Blocked, BlockedPair, Stats, Tally},
    target_branch::{
        Accepted, ChangeState, Staging, TargetBranch, TargetBranchError, TargetBranches,
        Unplaceable,
    },
    unfinished::{NextAction, end_integration},
    workspace::{QueueWorkspace, TargetChoiceError, TargetSpec, WorkspaceDirs},
};
