//! `pdca lanes doctor`: checks the lanes, with the remedy for each problem.

use pdca_workspace::lanes::check_lanes;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Check every lane, with a remedy for each problem
///
/// Changes nothing. Exit codes: 0 no lane is broken, 2 one is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pdca lanes doctor
  pdca lanes doctor --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(render::lanes::checked(&check_lanes(&cx.open()?)?))
}
