//! `pdca act`: patterns across finished cycles, and the log of what the process learns from them.
//!
//! Also spelled `act-index`, `act-log` and `act-diff`.

pub(super) mod diff;
pub(super) mod index;
pub(super) mod log;
pub(super) mod resolve;
pub(super) mod review;

use std::io::Write;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Review finished cycles, and record what the process learns
///
/// `index` shows recurring patterns, `log` starts a dated entry of the Act log, `review` has the program of
/// `[leaves.act]` fill it in, `resolve` closes a watched signal, `diff` shows the changes in the process since the last
/// entry. Which change follows from them is your decision.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act index               # what the cycles since the last review show
  pdca act log                 # the entry, to read
  pdca act log --record        # append it to process/act-log.md
  pdca act review              # have the act leaf fill it in; --record appends it
  pdca act resolve 2           # close the second watched signal
  pdca act diff                # what changed in templates, gates, leaves and process since

The spellings `act-index`, `act-log` and `act-diff` work too.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Index(index::Args),
    Log(log::Args),
    Review(review::Args),
    Resolve(resolve::Args),
    Diff(diff::Args),
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    match &args.action {
        Action::Index(args) => index::run(args, cx),
        Action::Log(args) => log::run(args, cx, err),
        Action::Review(args) => review::run(args, cx, err),
        Action::Resolve(args) => resolve::run(args, cx),
        Action::Diff(args) => diff::run(args, cx),
    }
}
