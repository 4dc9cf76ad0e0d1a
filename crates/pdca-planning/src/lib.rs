//! Plans a batch for a person: the order, the groups of `lanes.json`, and what a brief declares.
//!
//! `pdca-dag` decides what may start; this crate asks it about a workspace, keeps the groups on disk, and says why a batch
//! cannot be carried out.
//!
//! # Invariants
//! - Nothing is built. Only [`plan`] with `write` replaces `lanes.json`, and only [`widen`] changes a brief.
//! - A batch that cannot be carried out is told with all its problems at once.
//! - A damaged or stale `lanes.json` is never ignored: started work would change its lane.

mod document;
mod lanes_file;
mod plan;
mod simulation;
mod view;
mod widen;

pub use lanes_file::{Currency, Kept};
pub use plan::{PlanReport, PlanRequest, plan};
pub use widen::{Widened, widen};

use pdca_front::{context, exit, explain, failure, report, session, style, words};
