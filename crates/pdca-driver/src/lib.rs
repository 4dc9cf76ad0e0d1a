//! The cycle as code: step, beats, pool, runs and recovery.
//!
//! [`step`] decides what comes next for a bundle, from the files present and nothing else.
//! [`Driver::run_bundle`] carries that out until a person has to decide: the builder in a private checkout, the
//! gates over exactly base + patch, the reviewer with a copy of its own, the result document.
//!
//! ```
//! use pdca_driver::{Halt, Position, ReviewTrace, Step, step};
//! use pdca_state::State;
//!
//! let checked = Position {
//!     state: State::Checked, close: false, closing: false, outdated: false, review: ReviewTrace::No,
//! };
//! assert_eq!(step(checked), Step::Review);
//! let signed = Position { state: State::AwaitingSignoff, ..checked };
//! assert_eq!(step(signed), Step::Halt(Halt::AwaitingSignoff));
//! ```
//!
//! # Invariants
//! - It prints nothing and reads neither environment nor clock; what happens is emitted as [`pdca_journal::events::Event`]s.
//! - It keeps no state that is not on disk: killed anywhere, the next driver continues
//!   from the files, and a child that published its artifact, or that ended, is not run again.
//! - Whatever a later driver reads is changed through [`Effects`], so a test can stop the driver at each change.
//! - It writes a bundle only while it holds the bundle's lock, and derives no state from files
//!   that a child may have written into the bundle.

mod start;
mod step;

mod admission;
mod allowed_refs;
mod attempt;
mod attempt_notes;
mod authorship;
mod auto_iterate;
mod auto_split;
mod base;
mod calls;
mod commits;
mod config;
mod dependencies;
mod job;
mod lane_env;
mod lane_owner;
mod locks;

mod batch;
mod estimate;
mod failures;
mod further_checkouts;
pub mod leg;
pub mod place;
mod protected;
mod schedule;
mod size;
mod terms;

pub mod pool;
mod preflight;
mod run;

mod checkout;
mod gate_lines;
mod gate_places;
mod gate_sealed;
mod guard;
mod instructions;
mod leaf;
mod products;
mod run_bundle;

mod assemble;
mod build;
mod check;
mod citations;
mod drift;
mod interactive;
mod plan_advice;
mod plan_session;
mod refold;
mod review;
mod split;

pub mod integrate;

#[cfg(test)]
mod testing;

pub use admission::{BundleLockError, LockGuard};
pub use attempt::forget_lost_checkout;
pub use authorship::{Author, AuthorError, Dates};
pub use auto_split::{DueSplit, WaitingPart, due_splits, due_splits_in, split_due};
pub use base::{AttemptBase, BaseError, based_on, stands_on, would_all_stand_on, would_stand_on};
pub use batch::{Batch, DeclarationRemark, Exhausted};
pub use calls::{CostCap, CostMeter, CostReached, cost_of_run, cost_since, leaves_without_cost};
pub use check::{gate, gate_again, judge};
pub use checkout::CheckoutError;
pub use config::{
    BranchNaming, BuilderPush, IterateFrom, LaneSettings, PaceLimit, RunLimits, TargetChoiceError,
    TargetSpec, WorkspaceConfig, WorkspaceDirs,
};
pub use dependencies::{
    DependencyCheck, DependencyGuard, DoctorProblem, DoctorSettings, UnmetDependency,
};
pub use drift::{Drifted, is_drift_outdated, undeclared_paths};
pub use failures::{BeatFailure, BeatFailures};
pub use gate_sealed::{SealedCommit, gate_sealed};
pub use guard::require_untouched;
pub use instructions::{FoundInstructions, find_instructions};
pub use interactive::{ask_publisher, plan, propose, review_cycles};
pub use job::Jobs;
pub use lane_env::LaneEnv;
pub use lane_owner::{LaneOwner, LaneOwners};
pub use locks::{AtWork, Errand, WorkspaceLocks};
pub use pdca_journal::{Clock, EffectSide, Effects, Point, Unwatched};
pub use pdca_lanes::{LaneCount, LaneCountError};
pub use plan_advice::advise_on_brief;
pub use plan_session::{
    BriefEnd, PlanSession, PlannedBrief, finish_plan_session, plan_session, refused_session,
};
pub use preflight::{
    Fit, FreeSpace, LaneNeeds, Reckoning, Short, fit_lanes, fit_ports, reckon_lanes, room,
};
pub use protected::protected_paths;
pub use refold::{Staleness, stale_results};
pub use run::{
    AbortError, BeginError, Begun, Observed, Pause, Prune, RecordError, RecordOf, Recovered, Run,
    RunStatus, Salvage, TakeOverError, has_work, integrations, pauses, prune, run_statuses,
    run_statuses_in_lanes, to_prune, unfinished_work, was_cut_short,
};
pub use run_bundle::{BeatError, BundleEnd, Driver};
pub use schedule::{
    BlockedPolicy, Dependants, DriftPolicy, Durations, LanesJson, RivalsPolicy, Schedule,
    SplitPolicy, SurfacesPolicy,
};
pub use size::{CheckSettings, CitationCheck};
pub use split::{
    Split, SplitBundle, SplitBy, SplitError, SplitInto, UnchangedReference, split_bundle,
    split_into, would_split,
};
pub use step::{Halt, Position, ReviewTrace, Step, step};
pub use terms::Terms;
