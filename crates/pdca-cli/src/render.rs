//! How the values of `pdca-workspace` are said: one file per operation, a value in and text out.

pub(crate) mod act;
pub(crate) mod card;
pub(crate) mod change;
pub(crate) mod cleanup;
pub(crate) mod config;
pub(crate) mod doctor;
mod forecast;
pub(crate) mod hosts;
pub(crate) mod init;
pub(crate) mod integrate;
pub(crate) mod integrate_stats;
pub(crate) mod issue;
pub(crate) mod lanes;
pub(crate) mod log;
pub(crate) mod new_bundle;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod queue;
pub(crate) mod recovery;
pub(crate) mod replay;
pub(crate) mod resolve;
pub(crate) mod runs;
pub(crate) mod select;
pub(crate) mod signoff;
mod split;
pub(crate) mod status;
mod verify;
mod widen;

use pdca_state::State;
use pdca_workspace::OperationError;
use pdca_workspace::review::Tone;

use crate::failure::Failure;
use crate::style::{Painted, Palette};

/// Colours a state by who has to act.
pub(crate) fn paint<T: std::fmt::Display>(
    palette: Palette,
    state: Option<State>,
    text: T,
) -> Painted<T> {
    match state {
        None => palette.bad(text),
        Some(State::AwaitingSignoff | State::Unplanned) => palette.warn(text),
        Some(State::Planned | State::Built | State::Checked | State::Iterate(_)) => {
            palette.accent(text)
        }
        Some(State::Complete) => palette.good(text),
        Some(State::Discontinued | State::Resolved) => palette.faint(text),
    }
}

/// Colours a text by its tone.
pub(crate) fn toned(palette: Palette, tone: Tone, text: impl std::fmt::Display) -> String {
    match tone {
        Tone::Plain => text.to_string(),
        Tone::Good => palette.good(text).to_string(),
        Tone::Bad => palette.bad(text).to_string(),
        Tone::Warn => palette.warn(text).to_string(),
        Tone::Faint => palette.faint(text).to_string(),
    }
}

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
