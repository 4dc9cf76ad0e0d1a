//! `pdca act diff`: changes in the process since the last review.

#[cfg(test)]
mod tests;

use pdca_workspace::act::baseline_diff;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Show the changes in the process since the last review, and at each one before
///
/// Compares the templates, the process directory, prompts and agent files, and the tables [driver], [gates] and [leaves]
/// of `pdca.toml` with their digests at the last recorded review. How a part changed is shown as a diff against its
/// text of that time, which is looked up in git; edits that are not committed yet are included and marked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act diff
  pdca act diff --names        # which parts, not how
  pdca act diff --json | jq -r '.since_last_review.changed[].file'")]
pub(crate) struct Args {
    /// Show only which parts changed
    #[arg(long)]
    names: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(Response::done(baseline_diff(&cx.open()?, args.names)?))
}
