//! `pdca lanes remove`: removes lanes, and rescues their work.

use pdca_workspace::lanes::remove_lanes;

use super::TargetArg;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Remove lanes; work that the target does not have is kept in a git bundle
///
/// Uncommitted work, commits, branches and stashes that the target does not have are written to a file under
/// `rescued/` beside the lanes, which `git fetch` reads. A lane in use is not removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pdca lanes remove 2 3
  pdca lanes remove --all -n     # say what would go, and what would be kept")]
pub(crate) struct Args {
    /// The lanes
    #[arg(value_name = "SLOT", required_unless_present = "all", conflicts_with = "all")]
    slots: Vec<u32>,

    /// Remove every lane
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    target: TargetArg,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let slots = (!args.all).then_some(args.slots.as_slice());
    Ok(render::lanes::removed(remove_lanes(&cx.open()?, slots, args.target.name())?))
}
