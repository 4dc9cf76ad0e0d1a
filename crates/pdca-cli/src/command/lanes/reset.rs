//! `pdca lanes reset`: resets a lane to its base, and rescues its work.

use pdca_workspace::lanes::reset_lane;

use super::TargetArg;
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Reset a lane to the base commit; its work is rescued first
///
/// Ignored files, such as build caches, stay unless `--pristine` or `[lanes] reset` says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pdca lanes reset 0
  pdca lanes reset 0 --pristine   # ignored files go too
  pdca lanes reset 0 -n")]
pub(crate) struct Args {
    /// The lane
    #[arg(value_name = "SLOT")]
    slot: u32,

    /// Remove ignored files as well: build caches, dependencies
    #[arg(long)]
    pristine: bool,

    #[command(flatten)]
    target: TargetArg,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(Response::done(reset_lane(&cx.open()?, args.slot, args.pristine, args.target.name())?))
}
