//! `pdca lanes env`: prints the private names of a lane.

use std::io::Write;

use pdca_workspace::lanes::lane_env;

use super::TargetArg;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::lanes::{EnvSyntax, LaneEnvReport};
use crate::report::Response;

/// Print the private names of a lane: ports, database, temporary directory, compose project
///
/// The variables that builders and gates get in that lane. They are derived from the workspace, the target and
/// the slot; the ports are those that the lane had last.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  eval \"$(pdca lanes env 0)\"
  pdca lanes env 0 --shell fish | source
  pdca lanes env 0 --json | jq -r .env.PDCA_PORT_BASE")]
pub(crate) struct Args {
    /// The lane
    #[arg(value_name = "SLOT")]
    slot: u32,

    /// The shell to print for, or `json`
    #[arg(long, value_name = "SHELL", value_enum, default_value_t)]
    shell: EnvSyntax,

    #[command(flatten)]
    target: TargetArg,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let lane = lane_env(&cx.open()?, args.slot, args.target.name())?;
    if !lane.exists {
        let note = format!("lane {} of {} is not there yet", lane.slot, lane.target);
        cx.note(err, &format!("{} {note}", cx.err.accent("note:")))?;
    }
    Ok(Response::done(LaneEnvReport { lane, syntax: args.shell }))
}
