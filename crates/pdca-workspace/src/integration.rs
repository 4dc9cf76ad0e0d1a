//! Lands accepted changes: gates them together, resolves and predicts conflicts, and re-verifies certificates.
//!
//! `pdca-integrate` is the merge queue; this module asks it about a workspace, holds the locks meanwhile, and returns the
//! fate of each change with the command that goes on with it. Drivers and terminals are for the caller, an
//! [`IntegrationHost`].
//!
//! # Invariants
//! - Nothing is sent back while it lands: the landings are held before the changes are read.
//! - A branch that fails keeps no other from landing, and its failure is returned.
//! - The checkout and the index of the person are not written.

mod document;
mod error;
mod forecast;
mod host;
mod integrate;
mod order;
mod report;
mod resolve;
mod stats;
mod verify;

pub use document::flake_rate;
pub use error::IntegrationError;
pub use forecast::{ForecastReport, forecast};
pub use host::{IntegrationHost, IntegrationProgress};
pub use integrate::{IntegrateRequest, IntegrationEnd, integrate};
pub use report::{
    BranchIntegration, BranchOutcome, ConflictKind, Integration, ResolveReport, ResolvedConflict,
    ReturnedChange,
};
pub use resolve::resolve;
pub use stats::{StatsReport, integration_stats};
pub use verify::{Verification, newest_certificate, verify, verify_in};
