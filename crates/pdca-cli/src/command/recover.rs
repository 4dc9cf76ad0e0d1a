//! `pdca recover`: repairs interrupted runs, or shows them.

use std::io::Write;

use pdca_workspace::recovery::recover_runs;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{self, with_progress};
use crate::report::Response;

/// Repair interrupted runs and list what needs a decision
///
/// Shows for every active run its phase and since when, whether its driver is alive, and for
/// each bundle the journal's record, the facts found, and the action. Then the run of a dead driver is
/// repaired; `pdca batch` continues it. A live driver is left alone, unless `--take-over` takes the run
/// from it: its journal is closed to it first, then it is killed. An interrupted integration is shown with the next step of
/// `pdca integrate`, and ended if nothing of it is left to do.
///
/// Exit codes: 0 everything can continue, 4 nothing to recover, 104 a person must decide first.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca recover -n            # look, change nothing
  pdca recover
  pdca recover --take-over   # from a driver that hangs or was stopped")]
pub(crate) struct Args {
    /// Take the run from a live driver, and kill that driver
    #[arg(long)]
    take_over: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let show = |progress| render::recovery::show(progress, cx, err);
    let done = with_progress(show, |progress| recover_runs(&open, args.take_over, progress))?;
    Ok(render::recovery::recovered(done))
}
