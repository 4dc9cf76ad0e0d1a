//! `pdca lanes list`: lists the lanes with their states.

use pdca_workspace::lanes::list_lanes;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// List the lanes with holder, state, age and size
///
/// Changes nothing, and does not disturb work in a lane.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pdca lanes list
  pdca lanes list --json | jq -r '.lanes[] | select(.dirty) | .path'")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(Response::done(list_lanes(&cx.open()?)?))
}
