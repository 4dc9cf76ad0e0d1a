//! `pdca act review`: an entry of the Act log, filled in by the act leaf and recorded by a person.

use std::io::Write;

use crate::act_log::ActReviewRequest;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Have the act leaf fill in an entry of the Act log
///
/// Calls the program of `[leaves.act]` with the index of the cycles since the last review. Its entry is kept as a draft
/// that you can edit, and is appended to the log once you agree: on the terminal, or with `--record`. The draft is
/// used again as long as it is about the same cycles; `--fresh` asks anew.
///
/// Exit codes: 0 recorded, 3 the draft waits for you, 4 no cycle ended since the last review.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act review
  pdca act review --record     # append the draft to process/act-log.md")]
pub(crate) struct Args {
    /// Append the entry to the log without asking (so does the global `--yes`)
    #[arg(long)]
    record: bool,

    /// Call the leaf even if a draft waits
    #[arg(long)]
    fresh: bool,

    /// The date of the entry, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let asked =
        ActReviewRequest { record: args.record, fresh: args.fresh, date: args.date.as_deref() };
    crate::act_log::review(asked, cx, err)
}
