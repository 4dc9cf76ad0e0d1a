//! Shows what happened again: what leaves and gates printed, and the lines of a run.
//!
//! # Invariants
//! - Nothing is changed, and nothing is decided from what is shown.
//! - A log that grows is read after it was asked whether its writer has ended, so that its last lines are shown.

pub(crate) mod log;
pub(crate) mod replay;

pub(crate) use log::{LogRequest, show};
pub(crate) use replay::{ReplayRequest, recorded, replay};
