//! Private git checkouts for work that runs in parallel.
//!
//! A [`Target`] is the user's repository; its checkout, the *primary*, is only ever read. A [`Lane`] is a private
//! checkout of it: a repository of its own that borrows the primary's objects and has its own refs, index and
//! configuration. Holding the `Lane` is the permit to work there; dropping it frees the slot and leaves the directory
//! for the next holder.
//!
//! ```no_run
//! use camino::Utf8Path;
//! use pdca_lanes::{CommitSignature, Lanes, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::open("app", Utf8Path::new("/srv/app"))?;
//! let base = target.resolve(Some("main"))?;
//!
//! let lane = Lanes::new("/srv/work.lanes").claim(0, &target)?;
//! lane.rescue("left-over")?;
//! lane.reset(&base.commit)?;
//! lane.apply(&std::fs::read("patch.diff")?)?;
//! let by = CommitSignature { name: "pdca", email: "pdca@localhost", seconds: 0 };
//! let change = lane.commit_all("a change", &by)?.expect("the patch changes something");
//! let patch = lane.diff(&base.commit, &change)?;
//! # Ok(()) }
//! ```
//!
//! # Invariants
//! - Only directories below the root given to [`Lanes`], and the destination of [`WorkTree::copy_to`], are written. The
//!   primary is never written: no ref, no config, no index refresh. A lane of [`LaneKind::Worktree`] is the opt-in
//!   exception: its registration, its objects, its rescue refs and its branches are in the primary's repository.
//! - Processes in a lane may write anything in it, its `.git` included, and are not trusted. The driver works in a
//!   repository of its own beside the checkout. Commits come in through one import that hashes every object again, and
//!   each reset writes the lane's `.git` from nothing.
//! - Nothing is deleted unless a marker, written before it was created, says that it belongs to a lane.
//! - The same tree, message and signature give the same commit on every machine.

#![warn(missing_docs)]

mod alternates;
mod branch;
mod checkout;
mod claim;
mod copy;
mod dir;
mod failure;
mod fanout;
mod feature;
mod git;
mod history;
mod hydrate;
mod idle;
mod import;
mod inherited;
mod inspect;
mod lane;
mod lane_count;
mod marker;
mod names;
mod owner;
mod ports;
mod private;
mod products;
mod provision;
mod remove;
mod room;
mod settings;
mod stage;
mod sweep;
mod target;
mod toplevel;
mod tripwire;
mod walk;
mod work_tree;
mod workbench;
mod worktree;

pub use branch::attempt_branch;
pub use claim::{ClaimError, Lanes, Note};
pub use copy::Selected;
pub use dir::discard;
pub use failure::{ApplyError, LaneError};
pub use feature::Feature;
pub use git::patch_between;
pub use hydrate::{
    Hydrate, HydrateConfig, HydrateError, HydrateFault, HydratePhase, HydrateProblem,
    HydrateProgram, Hydrated, HydrationState, Placed, Sharer, TreeSide,
};
pub use inspect::{
    InspectError, LaneFinding, LaneHolder, LaneReport, LaneState, Remedy, repository_in,
    slot_around,
};
pub use lane::{CommitSignature, Lane, Reset, Saved};
pub use lane_count::{LaneCount, LaneCountError};
pub use names::{PrivateNames, WorkspaceId};
pub use owner::OwnerNote;
pub use ports::{
    MOST_PORT_BLOCKS, PORTS_PER_LANE, PortBlock, PortError, PortRange, PortRangeError,
};
pub use private::{Private, PrivateError};
// Part of [`ApplyError`].
pub use pdca_state::{PatchError, PatchFault};
pub use products::{FoundProducts, Products, ProductsError};
pub use provision::{LaneKind, Provision, ProvisionError, ProvisionEvent, Provisioned};
pub use remove::{RemovalStep, RemoveError, Removed, RescuedWork};
pub use sweep::{Stays, SweepDecision, SweepItem, SweepPlan, SweepPolicy, SweepReason, free_space};
pub use target::{
    Base, RepositoryPlaces, ResolveBaseError, Target, TargetError, repository_places,
    repository_trees,
};
pub use toplevel::Toplevel;
pub use tripwire::{ArmError, Tripwire};
pub use work_tree::WorkTree;
pub use workbench::{Observer, Setup, Workbench, WorkbenchError, WorkbenchEvent};
