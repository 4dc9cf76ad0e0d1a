//! `pdca show`: the card of a bundle.

use pdca_workspace::review::{Card, CardSource};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::report::Response;
use crate::session;

/// Show what a person needs to decide about a bundle
///
/// The claim, the proof that a check is red before the change and green after it, open items with their numbers, gates with failing tests, the
/// review by row, the size of the change and the paths outside `Touches`, what changed since the last attempt, known conflicts, cost; and
/// the commands that decide. `pdca review` shows the same, one after the other.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca show 36
  pdca show 36 --json | jq '.offers[].command'")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: IdArg,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(&args.id)?;
    let snapshot = session::snapshot_at_work(cx)?;
    let config = session::driver_config(cx).ok();
    let source = CardSource { snapshot: &snapshot, config: config.as_ref() };
    Ok(Response::done(Card::load(source, &bundle)?))
}
