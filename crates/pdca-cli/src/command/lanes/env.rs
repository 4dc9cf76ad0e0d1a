//! `pdca lanes env`: prints the private names of a lane.

use std::io::Write;

use crate::upkeep::lanes::env::{self, Shell};

use super::TargetArg;
use crate::context::Context;
use crate::failure::Failure;
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
    shell: ShellArg,

    #[command(flatten)]
    target: TargetArg,
}

/// The syntax of the variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum ShellArg {
    /// `export NAME='value'`, for sh, bash and zsh
    #[default]
    Sh,
    /// `set -gx NAME 'value'`
    Fish,
    /// An object
    Json,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let syntax = match args.shell {
        ShellArg::Sh => Shell::Sh,
        ShellArg::Fish => Shell::Fish,
        ShellArg::Json => Shell::Json,
    };
    env::env(args.slot, args.target.name(), syntax, cx, err)
}
