//! Plans a batch for a person: the order, the groups of `lanes.json`, and what a brief declares.
//!
//! `pdca-dag` decides what may start; this module asks it about a workspace, keeps the groups on disk, and says why a batch
//! cannot be carried out.
//!
//! # Invariants
//! - Nothing is built. Only [`plan`] with `write` replaces `lanes.json`, and only [`widen`] changes a brief.
//! - A batch that cannot be carried out is told with all its problems at once.
//! - A damaged or stale `lanes.json` is never ignored: started work would change its lane.

mod document;
mod lanes_file;
pub(crate) mod plan;
mod simulation;
mod view;
pub(crate) mod widen;

pub(crate) use lanes_file::Kept;
pub(crate) use plan::{PlanRequest, plan};
pub(crate) use widen::widen;
