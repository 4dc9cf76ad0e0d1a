//! `pdca unblock`: lifts blocks.

use std::io::Write;

use pdca_workspace::recovery::{UnblockRequest, unblock_run};

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::faults;
use crate::render::{self, with_progress};
use crate::report::Response;

/// Lift the block of a run or a bundle
///
/// Use it once the cause is repaired. The next `pdca run` or `pdca batch` continues with the blocked step; finished steps are
/// not repeated. A running driver is told, and takes it once. Without an id: the run
/// itself if it is blocked, otherwise every blocked bundle of it. An accepted bundle that is
/// `blocked_conflict` goes to the resolver again, with its attempts counted from zero.
///
/// Exit codes: 0 unblocked, 2 it is not blocked, 4 no run is active.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca unblock
  pdca unblock 36 --note \"the disk is larger now\"")]
pub(crate) struct Args {
    /// The bundle
    #[arg(value_name = "ID")]
    id: Option<IdArg>,

    /// A note about the repair, for the record
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let bundle = args.id.as_ref().map(IdArg::parse).transpose()?;
    let (open, effects) = (cx.open()?, faults::effects(cx)?);
    let request = UnblockRequest { bundle, note: args.note.as_deref() };
    let show = |progress| render::recovery::show(progress, cx, err);
    let done =
        with_progress(show, |progress| unblock_run(&open, request, effects.as_ref(), progress))?;
    render::recovery::unblocked(done, err)
}
