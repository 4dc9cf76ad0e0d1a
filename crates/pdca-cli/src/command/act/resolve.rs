//! `pdca act resolve`: closes signals that earlier reviews watch.

#[cfg(test)]
mod tests;

use pdca_workspace::act::{ResolveRequest, resolve_signals};

use crate::command::signoff::signer;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Close a watched signal, or list them
///
/// An entry of the Act log names signals that should no longer be seen. Once you are content, close one: the index
/// leaves it alone from then on, and says so if a cycle that ends on a later day shows it again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act resolve                                 # the signals with their numbers
  pdca act resolve 2 3 --note \"the gate has a retry now\"

Numbers do not change when reviews are added.")]
pub(crate) struct Args {
    /// The numbers of the signals
    #[arg(value_name = "N")]
    numbers: Vec<usize>,

    /// The reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Name of the person who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// The date to record, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let by = signer(args.by.as_deref(), cx).ok();
    let request = ResolveRequest {
        numbers: &args.numbers,
        note: args.note.as_deref(),
        date: args.date.as_deref(),
        by: by.as_deref(),
    };
    Ok(render::act::signals(resolve_signals(&cx.open()?, request)?))
}
