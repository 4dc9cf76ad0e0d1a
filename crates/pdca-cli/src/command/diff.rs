//! `pdca diff`: the change of a bundle.

use pdca_workspace::review::{BundleChange, ChangeRequest};

use crate::context::{Context, IdArg};
use crate::explain;
use crate::failure::Failure;
use crate::render::change::ChangeReport;
use crate::report::Response;

/// Show the change of a bundle
///
/// On a terminal it is shown in `delta` where that is installed, else in `$PAGER`.
///
/// Exit codes: 0 shown, 2 there is no such attempt, 4 the attempt has no change.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca diff 36
  pdca diff 36 --stat            # files and lines
  pdca diff 36 --attempt 1       # an earlier attempt
  pdca diff 36 --since           # what changed since the attempt before")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,

    /// The attempt, from 1; the newest if unset
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,

    /// Show the files and the number of lines only
    #[arg(long, conflicts_with = "since")]
    stat: bool,

    /// Show what changed since the attempt before
    #[arg(long)]
    since: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let Args { id, attempt, stat, since } = args;
    let bundle = cx.require_bundle(id)?;
    let request = ChangeRequest { attempt: *attempt, stat: *stat, since: *since };
    let change =
        BundleChange::load(&bundle, request).map_err(|error| explain::change(error, cx))?;
    Ok(Response::done(ChangeReport::of(change, cx)))
}
