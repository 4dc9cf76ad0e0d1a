//! Merge queue: seal, fold, gate together, bisect, land, certify.
//!
//! An accepted change becomes a [`Sealed`]: an immutable record that a ref keeps alive. A [`FoldPlan`] orders sealed
//! changes, and [`fold`] applies them to a base one after the other in the object store, with git's own merge. The
//! resulting [`Candidate`] is gated as a whole. A green verdict about exactly its tree turns it into [`Gated`], and
//! only that type can [`land`]. Each landing is read back from git, and its [`Certificate`] allows anyone with the
//! objects to verify it again.
//!
//! ```text
//! Acceptance ─ seal ─► Sealed ─ Plan ─ fold ─► Candidate ─ gates ─► Gated ─ land ─► Landed
//!                                                                               └► Certificate
//! ```
//!
//! ```
//! use pdca_integrate::{FoldPlan, ObjectId, Strategy};
//! let base = ObjectId::from_hex(b"4b825dc642cb6eb9a060e54bf8d69288fbee4904")?;
//! let plan = FoldPlan::new(base, Strategy::RebaseFf, [])?;
//! assert!(plan.entries().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - A [`Sealed`] comes only from [`seal`] and [`Sealed::load`], which read and check the objects.
//! - No working tree and no index is read or written, and no checked-out branch moves.
//! - The same plan yields the same commits on every machine, however often it is folded.
//! - Nothing lands that was not gated green as exactly that tree, by the configured gates.
//! - Every ref update is made under the fence and compares with the expected old value.
//! - This crate prints nothing and reads neither the environment nor the clock.

mod conflict;
mod git;
mod queue;
pub mod testing;

pub use conflict::branch_side::BranchSide;
pub use conflict::{Conflict, ConflictStage, Hunk};
pub use conflict::{
    attempts::{
        BootMoment, ConflictDir, ConflictEnd, ConflictRecord, Due, FailedAttempt, MOST_ATTEMPTS,
        blocked_conflicts, conflict_record, unblock_conflicts,
    },
    resolution::{
        ResolverOutcome, conclude_attempt, keep_conflict, pending_resolutions, report_of,
        resolution_for, resolution_sentence,
    },
    sides::Sides,
    state::{
        ConflictError, ConflictOutcome, ConflictReport, ConflictState, ResolveRequest,
        dry_run_resolution, find_base, find_sealed, is_as_it_was, is_put_away, report,
    },
};
pub use git::attempt_refs::{LaneObjects, claim, keep_work, work_prefix, work_ref};
pub use git::engine::{Drivers, EngineError, MergeDriver, MergeEngine, Merged};
pub use git::failure::{RefError, StoreError};
pub use git::fence::{Fence, ReflogEntry, StepEffect};
pub use git::fold::{
    ChangedCommit, FoldError, FoldFate, FoldStep, Folded, FoldedBundle, Record, Recorded, Skip,
    StepState, fold,
};
pub use git::land::{
    BaseDrift, Disproof, Holder, LandError, Landed, Onto, base_drift, holders, land,
    offer::{OfferError, OfferOutcome, SealedOffer, offer},
    push::{PushError, PushOutcome, push, push_seals},
    remote::{
        Destination, RemoteTip, bring, bring_to_read, remote_tip, sight, sightings, upstream,
    },
};
pub use git::link::{OutwardLink, outward_links};
pub use git::name::{
    RefNamespace, RefNamespaceError, staged_by, staged_for, stager, staging_branch, workspace_of,
    workspace_ref,
};
pub use git::path::TreePath;
pub use git::presence::{
    CommitBeyond, Presence, commits_beyond, contains, descends_from, foreign_commits, present_in,
    refs_below, seals_named,
};
pub use git::rebuild::{Ingredients, RebuildError};
pub use git::seal::{Acceptance, SealDrift, SealError, SealRecord, Sealed, Signer, Support, seal};
pub use git::seal_name::{free_seal_name, seal_under_present_fence};
pub use git::store::Store;
pub use gix::ObjectId;
pub use queue::below::{LandedChange, landed_below};
pub use queue::candidate::{AppliedCommit, Candidate, drop_own_ref};
pub use queue::certificate::{
    Certificate, CertifiedChange, CertifiedInput, Verified, VerifyError, verify,
};
pub use queue::combination::{Built, Combination};
pub use queue::forecast::{Cluster, Grouping, Level, PairOutlook};
pub use queue::plan::{FoldPlan, PlanEntry, PlanError, Strategy};
pub use queue::search::{
    BatchPace, Costs, Culprit, CulpritEffect, CulpritMemory, FlakeLedger, FlakeOccurrence,
    FlakePolicy, FlakeRules, HoldReason, Known, RowHistory, Search, SearchDecision, SearchSetup,
    Test, TestAnswer, TestId, TestPurpose, TestRemarks, UnknownTest,
};
pub use queue::verdict::{
    GateSetId, Gated, Light, Lookup, NotGated, Verdict, VerdictCache, VerdictKey, VerdictOrigin,
    VerdictTrust,
};
pub use queue::{
    branch_forecast::{
        BranchForecast, BuiltAttempt, ConflictCluster, ForecastBundle, Forecasting, PairForecast,
        forecast, forecast_of, known_forecast,
    },
    context::{
        CombinationGate, CombinationGates, FIRST_SLOT, GateJob, GateRuling, GateRunError,
        IntegrationNotice, QueueContext,
    },
    dry_run::{DryRun, dry_run},
    error::IntegrateError,
    evidence::{Evidence, RedRow, failing},
    flakes::{Quarantined, counts, excuse, pardon},
    gc_refs::{GcRef, GcRefError, KeepReason, drop_gc_ref, gc_refs},
    held::{HeldBack, HeldChange, HeldReason, place},
    integrate,
    integration::{Integrated, IntegrationRequest},
    journal::{JournalError, LOCK},
    landed::{landed_among, landed_of},
    landing::{finish_certificates, has_pending_certificate},
    landing_base::{LandingBase, RemoteDrift, RemoteStanding, StagedBase},
    landing_mode::Land,
    max_age::{MaxAge, MaxAgeError},
    reproduce::reproduction,
    returns::{
        MOST_AUTOMATIC_RETURNS, Return, ReturnError, Withdrawal, may_return_by_itself, send_back,
        withdrawal,
    },
    settings::{GateSteps, QueueSettings, ReturnCulprits},
    staging::{StagedElsewhere, Staging},
    stats::{Blocked, BlockedPair, IntegrationTally, Stats},
    target_branch::{
        AcceptedChange, ChangeState, TargetBranch, TargetBranchError, TargetBranches, Unplaceable,
    },
    unfinished::{NextAction, end_integration},
    workspace::{QueueWorkspace, TargetChoiceError, TargetSpec, WorkspaceDirs},
};
