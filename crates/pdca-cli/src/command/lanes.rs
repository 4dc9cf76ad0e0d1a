//! `pdca lanes`: provisions, lists, resets and removes private checkouts.

mod doctor;
mod env;
mod list;
mod provision;
mod remove;
mod reset;
#[cfg(test)]
mod tests;

use std::io::Write;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Response;

/// Provision, list, reset and remove private checkouts
///
/// A lane is a slot with a private checkout of each target, and private names: ports, a database, a temporary
/// directory. Bundles are built in lanes; your own checkout is only read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca lanes provision --lanes 4   # make what is not there yet
  pdca lanes list                  # -v: base, size, path
  eval \"$(pdca lanes env 0)\"       # the private names of lane 0, in this shell
  pdca lanes reset 0 --pristine    # what was in it is rescued first
  pdca lanes doctor
  pdca lanes remove 2 3            # -n: say what would be kept

`pdca sweep` removes lanes by age and for room on the disk.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Provision(provision::Args),
    List(list::Args),
    Env(env::Args),
    Reset(reset::Args),
    Doctor(doctor::Args),
    Remove(remove::Args),
}

/// `--target NAME`, for the commands that concern the lanes of one target or of all.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct TargetArg {
    /// Only the lanes of this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
}

impl TargetArg {
    fn name(&self) -> Option<&str> {
        self.target.as_deref()
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    match &args.action {
        Action::Provision(args) => provision::run(args, cx, err),
        Action::List(args) => list::run(args, cx),
        Action::Env(args) => env::run(args, cx, err),
        Action::Reset(args) => reset::run(args, cx),
        Action::Doctor(args) => doctor::run(args, cx),
        Action::Remove(args) => remove::run(args, cx),
    }
}
