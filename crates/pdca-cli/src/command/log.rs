//! `pdca log`: what a leaf or a gate printed.

use std::io::Write;

use crate::transcript::LogRequest;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
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
    let asked = LogRequest {
        id: &args.id,
        what: args.what.as_deref(),
        follow: args.follow,
        raw: args.raw,
        attempt: args.attempt,
    };
    crate::transcript::show(asked, cx, out, err)
}
