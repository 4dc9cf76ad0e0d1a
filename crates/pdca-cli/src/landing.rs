//! Lands accepted changes for a person: gates them together and resolves conflicts.
//!
//! `pdca-integrate` is the merge queue; this module asks it about a workspace, holds the locks meanwhile, and says what came
//! of each change and with which command it goes on.
//!
//! # Invariants
//! - Nothing is sent back while it lands: the landings are held before the changes are read.
//! - A branch that fails keeps no other from landing, and its failure is told.
//! - The checkout and the index of the person are not written.

pub(crate) mod integrate;
pub(crate) mod resolve;

pub(crate) use integrate::output::evidence;
pub(crate) use integrate::{IntegrateRequest, integrate};
pub(crate) use resolve::resolve;
