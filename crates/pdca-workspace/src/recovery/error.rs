//! The reasons for a run not to be changed.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_driver::integrate::JournalError;
use pdca_driver::{BeginError, TakeOverError};
use pdca_journal::{BundlePhase, FindError};
use pdca_leaves::BoxError;
use pdca_state::BundleId;

/// A run was not recovered, aborted or unblocked.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The journal of the run cannot be read. Nothing was changed.
    #[error("{source}")]
    Unreadable { dir: Utf8PathBuf, source: FindError },
    /// It is unknown whether the driver of the run is alive. Nothing was changed.
    #[error("whether {driver} lives cannot be told from here")]
    DriverUnknown { dir: Utf8PathBuf, driver: String },
    /// The run ended before its driver read the request.
    #[error("the run ended before it heard of it")]
    EndedBefore,
    /// The driver was asked to abort the run, and has not ended it yet.
    #[error("its driver was asked, and has not ended after {} s", .0.as_secs())]
    NotEndedYet(Duration),
    /// The driver was asked to lift a block, and has not answered yet.
    #[error("its driver was told, and has not answered yet")]
    NotAnsweredYet,
    #[error("{id} is not blocked in the run: it is {phase}")]
    NotBlocked { id: BundleId, phase: BundlePhase },
    #[error("{0} is no part of the active run")]
    NotInRun(BundleId),
    #[error("nothing of the active run is blocked")]
    NothingBlocked,
    #[error(transparent)]
    Begin(BeginError),
    #[error(transparent)]
    TakeOver(TakeOverError),
    /// An integration could not be ended.
    #[error(transparent)]
    EndIntegration(JournalError),
    /// The run could not be read or written.
    #[error(transparent)]
    Run(BoxError),
}

impl RecoveryError {
    pub(crate) fn run(error: impl Into<BoxError>) -> Self {
        Self::Run(error.into())
    }
}
