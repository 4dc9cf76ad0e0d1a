//! `pdca act index`: the cycles since the last review, one by one and together.

#[cfg(test)]
mod tests;

use pdca_act::IndexScope;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Show the patterns in the cycles since the last review
///
/// Of each bundle that was frozen or discontinued: §6, §7, §9 and §10, how often it was sent back, what its gates
/// cost, and which files changed against those its brief declared. Of all together: texts that recur, NEEDS-HUMAN by
/// class, fields of the brief that were blamed, and whether a signal came back that an earlier review was to end.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act index
  pdca act index --all         # those of earlier reviews too
  pdca act index -v            # long texts whole
  pdca act index --json | jq -r '.patterns[] | .text'")]
pub(crate) struct Args {
    /// Include cycles of earlier reviews
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let scope = if args.all { IndexScope::All } else { IndexScope::SinceLastReview };
    Ok(Response::done(pdca_workspace::act::index(&cx.open()?, scope)?))
}
