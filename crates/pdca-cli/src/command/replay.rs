//! `pdca replay`: prints the lines of a run again, from its recorded events.

use std::io::Write;

use crate::transcript::ReplayRequest;

use crate::context::Context;
use crate::failure::Failure;
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
    let asked = ReplayRequest { run: &args.run, raw: args.raw, follow: args.follow };
    crate::transcript::replay(asked, cx, out, err)
}
