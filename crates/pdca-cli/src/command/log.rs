//! `pdca log`: what a leaf or a gate printed.

use std::io::Write;
use std::ops::ControlFlow;

use pdca_workspace::OperationError;
use pdca_workspace::logs::{LogRequest, follow_log, read_log};

use crate::context::{Context, IdArg};
use crate::explain;
use crate::failure::Failure;
use crate::render::log;
use crate::report::Response;

/// Show what a leaf or a gate printed, also while it runs
///
/// Messages are shown whole, tool calls with one line each, and at the end tokens and cost where the agent tells them.
/// Without a name it is the newest call. Transcripts lie in the bundle, in `logs/`, and are archived with their attempt.
///
/// Exit codes: 0 shown, 4 there is nothing to show.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca log 36                  # the newest call of a leaf
  pdca log 36 builder -f       # until it ends
  pdca log 36 review --raw     # as it was printed
  pdca log 36 gate             # every gate of the last Check
  pdca log 36 T3-tests --attempt 1")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,

    /// A leaf (`builder`, `review`, an adviser's id, …), `gate`, or the id of a gate
    #[arg(value_name = "WHAT")]
    what: Option<String>,

    /// Continue until the call ends
    #[arg(long, short, conflicts_with = "json")]
    follow: bool,

    /// Print the lines as they were printed
    #[arg(long)]
    raw: bool,

    /// The attempt, from 1; the newest one that has such a log if unset
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(&args.id)?;
    let open = cx.open()?;
    let request = LogRequest {
        bundle: &bundle,
        what: args.what.as_deref(),
        raw: args.raw,
        attempt: args.attempt,
    };
    let explain = |error: OperationError| {
        if let OperationError::Log(error) = &error {
            return explain::logs::explain(error, |command| cx.typed(command));
        }
        Failure::from(error)
    };
    if !args.follow {
        return log::read(read_log(&open, request).map_err(explain)?, cx);
    }
    let mut shown = Ok(());
    let done = follow_log(&open, request, &mut |entries| {
        shown = log::show(&entries, cx, out);
        if shown.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    shown?;
    log::followed(done.map_err(explain)?, cx, err)
}
