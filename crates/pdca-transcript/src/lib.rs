//! Shows what happened again: what leaves and gates printed, and the lines of a run.
//!
//! # Invariants
//! - Nothing is changed, and nothing is decided from what is shown.
//! - A log that grows is read after it was asked whether its writer has ended, so that its last lines are shown.

mod log;
mod replay;

pub use log::{LogReport, LogRequest, show};
pub use replay::{ReplayReport, ReplayRequest, recorded, replay};

use pdca_front::{
    context, cost, exit, failure, flow_record, progress, report, session, style, workspace,
};
