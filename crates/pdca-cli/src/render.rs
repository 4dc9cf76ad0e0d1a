//! How the values of `pdca-workspace` are said: one file per operation, a value in and text out.

pub(crate) mod act;
pub(crate) mod cleanup;
pub(crate) mod hosts;
pub(crate) mod lanes;
pub(crate) mod log;
pub(crate) mod new_bundle;
pub(crate) mod recovery;
pub(crate) mod replay;
pub(crate) mod runs;
pub(crate) mod select;

use pdca_workspace::OperationError;

use crate::failure::Failure;

/// Carries out an operation, and shows its progress. The operation continues if the terminal is gone, which is reported
/// at its end.
pub(crate) fn with_progress<P, T>(
    mut show: impl FnMut(P) -> Result<(), Failure>,
    operation: impl FnOnce(&mut dyn FnMut(P)) -> Result<T, OperationError>,
) -> Result<T, Failure> {
    let mut shown = Ok(());
    let done = operation(&mut |progress| {
        if shown.is_ok() {
            shown = show(progress);
        }
    });
    shown?;
    Ok(done?)
}
