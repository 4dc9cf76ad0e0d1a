//! Adds position and remedy to the errors of recovering, aborting and unblocking runs.

use pdca_workspace::recovery::RecoveryError;

use super::{driver, integrate};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

pub(crate) fn explain(error: &RecoveryError) -> Failure {
    let failure = |exit| Failure::from_error(exit, error);
    match error {
        RecoveryError::Unreadable { dir, source } => {
            Failure::from_error(Exit::RecoveryBlocked, source).at(FilePosition::file(&**dir)).hint(
                "nothing was cut or changed; restore the journal, or move the run's directory away",
            )
        }
        RecoveryError::DriverUnknown { dir, .. } => failure(Exit::RecoveryBlocked)
            .at(FilePosition::file(&**dir))
            .hint("nothing was touched; repeat the command where that process runs"),
        RecoveryError::EndedBefore => failure(Exit::NothingToDo),
        RecoveryError::NotEndedYet(_) => failure(Exit::Waiting)
            .hint("it ends when its lanes have stopped; `pdca status` shows it"),
        RecoveryError::NotAnsweredYet => {
            failure(Exit::Waiting).hint("it takes it when it looks next; `pdca status` shows it")
        }
        RecoveryError::NotBlocked { .. } => {
            failure(Exit::Usage).hint("`pdca status` shows what waits for a person, and for what")
        }
        RecoveryError::NotInRun(_) => {
            failure(Exit::Usage).hint("`pdca recover -n` shows its bundles")
        }
        RecoveryError::NothingBlocked => {
            failure(Exit::Usage).hint("`pdca queue` shows what waits for a sign-off")
        }
        RecoveryError::Begin(error) => driver::no_run(error),
        RecoveryError::TakeOver(error) => driver::not_taken_over(error),
        RecoveryError::EndIntegration(error) => integrate::ending(error),
        RecoveryError::Run(_) => {
            failure(Exit::Unexpected).hint("`pdca recover` shows where the run stands")
        }
    }
}
