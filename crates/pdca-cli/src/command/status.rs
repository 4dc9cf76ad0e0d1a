//! `pdca status`: the state of every bundle, or all about one.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use pdca_workspace::issue::Issue;

use crate::context::{Context, IdArg};
use crate::failure::Failure;
use crate::render::status::StatusReport;
use crate::report::{Format, Response, render};

/// Show the state of every bundle, or everything about one
///
/// The state is derived from the files of a bundle. Bundles that need you come first, then what runs, what waits, and what
/// is done. `[blocked-by: …]` names
/// dependencies that are not COMPLETE; while a driver is running, `[lane 2, 3 min]` tells where a bundle is in
/// flight and for how long, and `[held-by: …]` names bundles in flight that it may not run beside, with a path both can
/// write. An unreadable bundle is one bad row; the exit code is 0 whenever the bundles could be listed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca status
  pdca status 36              # brief, gates, open decisions, problems
  pdca status --watch
  pdca status --json | jq -r '.bundles[] | select(.state == \"PLANNED\") | .id'")]
pub(crate) struct Args {
    /// The bundle to show in full
    #[arg(value_name = "ID")]
    id: Option<IdArg>,

    /// Show again whenever something changes, until interrupted
    #[arg(long)]
    watch: bool,
}

impl Args {
    /// Shows every bundle again and again.
    pub(super) fn watching() -> Self {
        Self { id: None, watch: true }
    }
}

/// The polling interval of `--watch`.
const PERIOD: Duration = Duration::from_secs(1);

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if !args.watch {
        return look(args, cx);
    }
    if cx.globals.format() == Format::Json {
        return Err(Failure::usage("`--watch` shows again and again, and `--json` prints one document")
            .hint("`pdca replay --follow --raw` prints what happens as lines of JSON, and so does `--events FILE` of the command that works"));
    }
    cx.note(err, "watching; Ctrl-C ends it")?;
    let mut last = Vec::new();
    loop {
        let mut now = Vec::new();
        render(&look(args, cx)?, cx, &mut now)?;
        if now != last {
            if cx.env.terminal.stdout {
                write!(out, "\x1b[H\x1b[2J")?;
            }
            out.write_all(&now)?;
            out.flush()?;
            last = now;
        }
        std::thread::sleep(PERIOD);
    }
}

fn look(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let Some(id) = &args.id else { return Ok(Response::done(StatusReport::load(cx, false)?)) };
    let mut issue = Issue::load(&cx.open()?, &cx.require_bundle(id)?)?;
    issue.row.next = issue.row.next.map(|next| cx.typed(&next));
    Ok(Response::done(issue))
}
