//! `pdca cleanup`: removes leftovers of runs that are no longer needed.

use pdca_workspace::cleanup::clean_up;

use crate::context::Context;
use crate::failure::Failure;
use crate::faults;
use crate::render;
use crate::report::Response;

/// Remove leftovers of finished work: private checkouts, and records of old runs
///
/// A run or an integration in which nothing is left to do is ended first. A checkout is removed if it is not in use and its
/// bundle is complete, resolved or discontinued; commits and files that the target does not have are kept in a git bundle that
/// `git fetch` reads. Records of runs and integrations that are over are removed after `--keep-days`; the newest of each stays.
/// Refs of gated combinations are removed when a branch contains their commit, or with the record of their integration if the
/// seals can make it again. Logs of red combinations are removed when neither a held change nor an open brief refers to them.
/// The command can be interrupted at any point and repeated. `-n` shows exactly what it would do.
///
/// Exit codes: 0 done, 1 something could not be removed, 4 nothing to clean up.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca cleanup -n
  pdca cleanup --keep-days 7
  pdca cleanup -v --json        # also what stays, and why")]
pub(crate) struct Args {
    /// Keep the records of runs that ended less than this many days ago
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    keep_days: u64,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let effects = faults::effects(cx)?;
    let done = clean_up(&cx.open()?, args.keep_days, effects.as_ref())?;
    Ok(render::cleanup::cleaned_up(done, cx))
}
