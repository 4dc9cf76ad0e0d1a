//! Lands accepted changes: predicts conflicts, gates changes together, and re-verifies certificates.
//!
//! `pdca-integrate` is the merge queue; this module asks it about a workspace.

mod error;
mod forecast;
mod stats;
mod verify;

pub use error::IntegrationError;
pub use forecast::{ForecastReport, forecast};
pub use stats::{StatsReport, integration_stats};
pub use verify::{Verification, newest_certificate, verify, verify_in};
