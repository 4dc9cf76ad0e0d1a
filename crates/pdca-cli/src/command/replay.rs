//! `pdca replay`: prints the lines of a run again, from its recorded events.

use std::io::Write;
use std::ops::ControlFlow;

use pdca_workspace::logs::{ReplayRequest, replay_run};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::replay::ReplayLines;
use crate::report::Response;

/// Print the output of a run, an integration or a flow again
///
/// Renders the recorded events as they were shown, on standard output. `-q` and `-v` choose the amount; live
/// output of children is not recorded. A flow has the beginning and the end of its steps; its runs and integrations have
/// records of their own.
///
/// Exit codes: 0 printed, 4 nothing is recorded.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca replay                  # the last run or integration
  pdca replay --follow         # the same, and what is still to come
  pdca replay latest --raw | jq 'select(.event == \"gate_ended\")'")]
pub(crate) struct Args {
    /// The run, integration or flow, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,

    /// Print the events as they were recorded, one JSON object per line
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Continue as long as a driver works on it
    #[arg(long, short, conflicts_with = "json")]
    follow: bool,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let request = ReplayRequest { run: &args.run, follow: args.follow };
    let mut lines = ReplayLines::new(cx, args.raw);
    let mut shown = Ok(());
    let done = replay_run(&cx.open()?, request, &mut |progress| {
        shown = lines.show(&progress, out, err);
        if shown.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    shown?;
    lines.response(done?, err)
}
