//! `pdca act log`: the dated entry of a review, printed or recorded.

#[cfg(test)]
mod tests;

use std::io::Write;

use pdca_workspace::act::act_entry;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Start a dated entry of the Act log, filled with the findings of the index
///
/// Prints the entry. With `--record` it is appended to `process/act-log.md`, its cycles count as reviewed, and the
/// process as it is now becomes the baseline of `pdca act diff`; the deltas are then yours to write into it. A record
/// that was interrupted is finished first, so no entry is lost or written twice.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act log                         # read it
  pdca act log --record                # append it to process/act-log.md
  pdca act log --record --dry-run      # say what would be written

With nothing to review the exit code is 4.")]
pub(crate) struct Args {
    /// Append the entry to the log (so does the global `--yes`)
    #[arg(long, visible_alias = "append")]
    record: bool,

    /// The date of the entry, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let record = args.record || cx.globals.yes;
    render::act::entry(act_entry(&cx.open()?, record, args.date.as_deref())?, cx, err)
}
