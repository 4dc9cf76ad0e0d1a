//! The reasons for lanes not to be made or hydrated.

use pdca_lanes::{HydrateError, PrivateError, ProvisionError};

/// Lanes were not made or hydrated, or their names are unknown.
#[derive(Debug, thiserror::Error)]
pub enum LanesError {
    /// A driver is running, which makes and claims lanes itself.
    #[error("{holder} is at work here")]
    DriverAtWork { holder: String },
    /// The request names no target, and there are several.
    #[error("several targets are configured")]
    SeveralTargets { configured: Vec<String> },
    #[error(transparent)]
    Provision(ProvisionError),
    #[error(transparent)]
    Names(PrivateError),
    #[error(transparent)]
    Hydrate(HydrateError),
    #[error("the thread that makes the lanes panicked")]
    Panicked,
}
