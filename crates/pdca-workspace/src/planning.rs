//! Plans a batch: the order, the groups of `lanes.json`, and the declarations of a brief.
//!
//! `pdca-dag` decides which bundles may start; this module asks it about a workspace.
//!
//! # Invariants
//! - Nothing is built. Only [`plan`] with `write` replaces `lanes.json`, and only [`widen`] and [`split`] change a brief.
//! - A batch that cannot be carried out is one error with all its problems.
//! - A damaged or stale `lanes.json` is never ignored: started work would change its lane.

mod error;
mod lanes_file;
mod plan;
mod split;
#[cfg(test)]
mod tests;
mod widen;

pub use error::PlanningError;
pub use lanes_file::{LanesFileState, load_lanes_file};
pub use plan::{
    LanesFileReport, PlanRemark, PlanRemarkKind, PlanRequest, PlanView, PlannedBatch, plan,
    plan_with_groups,
};
pub use split::{SplitReport, SplitRequest, split};
pub use widen::{NewRival, WidenRequest, Widened, widen};
