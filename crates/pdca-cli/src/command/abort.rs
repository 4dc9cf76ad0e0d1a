//! `pdca abort`: aborts a run, and rescues its unfinished work.

use std::io::Write;
use std::time::Duration;

use pdca_workspace::recovery::{AbortRequest, abort_run};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{self, with_progress};
use crate::report::Response;

/// Abort the active run: stop its lanes, rescue unfinished work, land nothing
///
/// A running driver is asked to do it, and waited for; without one it is done here. The bundles keep their
/// files, and a later `pdca run` continues from those.
///
/// Exit codes: 0 aborted, 3 the driver was asked and has not ended yet, 4 no run is active, 104 the driver of the run
/// cannot be determined.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca abort -n
  pdca abort --why \"the plan was wrong\"")]
pub(crate) struct Args {
    /// The reason, for the record
    #[arg(long, value_name = "TEXT", default_value = "a person gave it up")]
    why: String,

    /// Wait this many seconds for a running driver
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let open = cx.open()?;
    let request = AbortRequest { why: &args.why, patience: Duration::from_secs(args.wait) };
    let show = |progress| render::recovery::show(progress, cx, err);
    let done = with_progress(show, |progress| abort_run(&open, request, progress))?;
    render::recovery::aborted(done, err)
}
