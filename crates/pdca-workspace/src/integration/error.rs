//! The reasons for a forecast, a verification or an integration not to be carried out.

use camino::Utf8PathBuf;
use pdca_driver::integrate::{
    ConflictResolveError, IntegrateError, JournalError, SealingError, TargetBranchError,
};
use pdca_integrate::{EngineError, StoreError, VerifyError};
use pdca_process::GitError;
use pdca_state::files::FileReadError;
use pdca_state::{Bundle, BundleId};

use crate::config::FilePosition;
use crate::review::DecideError;

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
    /// There is no usable git.
    #[error(transparent)]
    Git(GitError),
    /// The request names a target that is not configured.
    #[error("no target is called `{name}`")]
    UnknownTarget { name: String, configured: Vec<String> },
    /// The integration of a branch did not complete.
    #[error("the integration of {branch} did not complete")]
    Integrate { branch: String, source: Box<IntegrateError> },
    /// A change that was accepted without a seal cannot be sealed.
    #[error("{} cannot be sealed", bundle.id())]
    Seal { bundle: Box<Bundle>, source: SealingError },
    /// An interrupted integration cannot be ended.
    #[error(transparent)]
    End(JournalError),
    /// A culprit cannot be sent back.
    #[error("{} cannot be sent back", .0.0.id())]
    Return(Box<(Bundle, DecideError)>),
    /// An attempt at a conflict ended early.
    #[error(transparent)]
    Resolve(ConflictResolveError),
    /// The program of the resolver is missing.
    #[error("resolver program `{program}` not found on PATH")]
    NoResolver { program: String, place: Option<FilePosition> },
    /// A bundle without an accepted change was named.
    #[error("{id} is not accepted, so it conflicts with nothing")]
    NotAccepted { id: BundleId },
    /// A certificate does not hold.
    #[error("the certificate does not hold")]
    Broken { path: Utf8PathBuf, source: VerifyError },
}
