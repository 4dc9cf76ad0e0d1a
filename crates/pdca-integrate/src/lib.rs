//! Accepted results meet.
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

mod below;
mod candidate;
mod certificate;
mod combination;
mod conflict;
mod durable;
mod engine;
mod failure;
mod fence;
mod fold;
mod footprint;
mod forecast;
mod git;
mod hex;
mod land;
mod name;
mod other_side;
mod path;
mod plan;
mod presence;
mod rebuild;
mod seal;
mod search;
mod store;
pub mod testing;
mod verdict;
mod work;

pub use below::{Landing, landed_below};
pub use candidate::{AppliedCommit, Candidate, drop_own_ref};
pub use certificate::{Certificate, Input, Outcome, Verified, VerifyError, verify};
pub use combination::{Built, Combination};
pub use conflict::{Conflict, Hunk, Stage};
pub use engine::{Driver, Drivers, Engine, EngineError, Merged};
pub use failure::{RefError, StoreError};
pub use fence::{Effect, Fence, Log};
pub use fold::{
    Changed, Fate, FoldError, Folded, FoldedBundle, Record, Recorded, Skip, Step, StepState, fold,
};
pub use forecast::{Cluster, Forecast, Grouping, Level, Outlook, Pair};
pub use gix::ObjectId;
pub use land::{
    BaseDrift, Disproof, Holder, LandError, Landed, Onto, base_drift, holders, land,
    offer::{Offer, OfferError, OfferOutcome, offer},
    push::{PushError, PushOutcome, push, push_seals},
    remote::{Destination, RemoteTip, bring, remote_tip, sight, sightings},
};
pub use name::{Run, RunError, staged_for, staging_branch};
pub use other_side::BranchSide;
pub use path::TreePath;
pub use plan::{Entry, Plan, PlanError, Strategy};
pub use presence::{Presence, contains, foreign_commits, present_in, refs_below, seals_named};
pub use rebuild::{Ingredients, RebuildError};
pub use seal::{Acceptance, Drift, SealError, SealRecord, Sealed, Signer, Support, seal};
pub use search::{
    Answer, Costs, Culprit, Decision, Fault, FlakeLedger, FlakePolicy, FlakeRules, Known, Memory,
    Pace, Purpose, RowHistory, Search, Setup, Test, TestId, UnknownTest, Why,
};
pub use store::Store;
pub use verdict::{
    GateSetId, Gated, Light, Lookup, NotGated, Origin, Trust, Verdict, VerdictCache, VerdictKey,
};
pub use work::{drop_work, keep_work, work_prefix, work_ref};
