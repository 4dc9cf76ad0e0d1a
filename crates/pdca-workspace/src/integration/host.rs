//! The part of an integration that its caller does.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use pdca_dag::Plan;
use pdca_driver::integrate::{SealingError, TargetBranchError};
use pdca_driver::place::Places;
use pdca_driver::{Batch, Driver, WorkspaceConfig};
use pdca_state::{Bundle, BundleId};

use crate::OperationError;

/// Runs drivers for an integration, and is told about its progress.
pub trait IntegrationHost {
    type Error: From<OperationError>;

    /// Runs a job with a driver, and shows its events meanwhile.
    fn drive<T: Send>(
        &mut self,
        config: &WorkspaceConfig,
        job: impl FnOnce(&Driver<'_>) -> T + Send,
    ) -> Result<T, Self::Error>;

    /// Returns the number of combinations that are gated at once, and the hosts that do it beside the local lanes. A dry
    /// run asks no host.
    fn places(
        &mut self,
        config: &WorkspaceConfig,
    ) -> Result<(NonZeroU32, Option<Places>), Self::Error>;

    /// Runs a batch, and returns the reason why a bundle is not at its sign-off, if there is one.
    fn run_batch(
        &mut self,
        config: &WorkspaceConfig,
        batch: &Batch,
        plan: &Plan,
    ) -> Result<Option<Self::Error>, Self::Error>;

    /// Takes note of a step.
    fn tell(&mut self, step: IntegrationProgress<'_>) -> Result<(), Self::Error>;
}

/// A step of an integration that is worth a message.
#[derive(Debug)]
pub enum IntegrationProgress<'a> {
    /// The certificate of an interrupted landing was missing, and is written now.
    CertificateWritten { path: Utf8PathBuf },
    /// The branch of these changes is unknown, so they are left out.
    LeftOut { ids: &'a [BundleId], error: &'a TargetBranchError },
    /// A change that was accepted without a seal has one now.
    Sealed { id: &'a BundleId },
    /// The gate report of an older version lacks something that a seal needs.
    NotSealable { id: &'a BundleId, what: &'a str },
    /// Acceptance would refuse a change that was accepted without a seal.
    SealRefused { bundle: &'a Bundle, error: &'a SealingError },
    /// An interrupted integration had nothing left to do.
    Ended { integration: &'a str },
    /// The program of the resolver is missing, so conflicts stay open.
    NoResolver,
    /// Another driver is at work, so resolutions are not checked yet.
    NotChecked { holder: &'a str },
    /// A culprit is held by another command.
    InUse { id: &'a BundleId },
    /// A culprit was sent back too often without a person.
    ReturnedTooOften { id: &'a BundleId, times: usize },
}
