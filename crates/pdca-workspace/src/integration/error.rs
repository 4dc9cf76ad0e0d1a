//! The reasons for a forecast, a verification or an integration not to be carried out.

use camino::Utf8PathBuf;
use pdca_driver::integrate::TargetBranchError;
use pdca_integrate::{EngineError, StoreError, VerifyError};
use pdca_state::files::FileReadError;

/// Accepted changes could not be looked at or landed.
#[derive(Debug, thiserror::Error)]
pub enum IntegrationError {
    /// The branches that changes are meant for cannot be read.
    #[error(transparent)]
    Branches(#[from] TargetBranchError),
    #[error("{path} not found")]
    NoCertificate { path: Utf8PathBuf },
    /// No change has landed with a certificate.
    #[error("there is no certificate yet")]
    NoCertificates { dir: Utf8PathBuf },
    #[error(transparent)]
    ReadCertificate(FileReadError),
    /// The repository to verify against cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Drivers(#[from] EngineError),
    /// There is no repository to verify against.
    #[error("no target is configured")]
    NoTarget,
    #[error("the temporary directory is not UTF-8")]
    TemporaryDirectory,
    /// A certificate does not hold.
    #[error("the certificate does not hold")]
    Broken { path: Utf8PathBuf, source: VerifyError },
}
