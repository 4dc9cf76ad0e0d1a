//! Lands accepted changes for a person: gates them together, resolves and forecasts conflicts, re-verifies certificates.
//!
//! `pdca-integrate` is the merge queue; this crate asks it about a workspace, holds the locks meanwhile, and says what came
//! of each change and with which command it goes on.
//!
//! # Invariants
//! - Nothing is sent back while it lands: the landings are held before the changes are read.
//! - A branch that fails keeps no other from landing, and its failure is told.
//! - The checkout and the index of the person are not written.

mod forecast;
mod integrate;
mod resolve;
mod verify;

pub use forecast::{ForecastReport, forecast};
pub use integrate::output::{IntegrateReport, evidence};
pub use integrate::stats::{StatsReport, stats};
pub use integrate::{IntegrateRequest, integrate};
pub use resolve::output::ResolveReport;
pub use resolve::resolve;
pub use verify::{Verification, verify};

use pdca_front::{context, exit, explain, failure, faults, process_env, report, session, style};
