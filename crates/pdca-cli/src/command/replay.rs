//! `pdca replay`: prints the lines of a run again, from its recorded events.

use std::io::Write;
use std::time::Duration;

use pdca_driver::{WorkspaceConfig, integrations, run_statuses};
use pdca_events::{Event, Line, Reader};
use pdca_journal::{Liveness, RunId, Runs};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Nothing, Report, Response};
use crate::session;
use crate::workspace::Workspace;

/// Print the output of a run or an integration again
///
/// Renders the recorded events as they were shown, on standard output. `-q` and `-v` choose the amount; live
/// output of children is not recorded.
///
/// Exit codes: 0 printed, 4 nothing is recorded.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca replay                  # the last run or integration
  pdca replay --follow         # the same, and what is still to come
  pdca replay latest --raw | jq 'select(.event == \"gate_ended\")'")]
pub(crate) struct Args {
    /// The run or integration, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,

    /// Print the events as they were recorded, one JSON object per line
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Continue as long as a driver works on it
    #[arg(long, short, conflicts_with = "json")]
    follow: bool,
}

/// The interval at which a growing log is polled.
const PERIOD: Duration = Duration::from_millis(100);

/// A fully read record.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ReplayReport {
    run: String,
    events: Vec<Event>,
    /// The numbers of unreadable lines.
    unreadable: Vec<u64>,
    #[serde(skip)]
    shown: Vec<String>,
}

impl Report for ReplayReport {
    const KIND: &'static str = "replay";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for line in &self.shown {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let config = session::driver_config(cx)?;
    let Some((runs, id)) = find(&args.run, &config)? else {
        return Nothing::to_do("no run is recorded", err);
    };
    let Some(mut reader) = Reader::open(&runs.dir(&id))? else {
        return Nothing::to_do(&format!("no events of {id} are recorded"), err);
    };
    let progress = Progress::new(cx.out, session::detail(cx), false, cx.width());
    let mut report = ReplayReport {
        run: id.to_string(),
        events: Vec::new(),
        unreadable: Vec::new(),
        shown: Vec::new(),
    };
    loop {
        // Asked before the log is read, so that the last read comes after the driver's last write.
        let is_alive = args.follow && is_driven(&id, &config)?;
        for line in reader.read()? {
            report.take(line, args.raw, &progress, cx, err)?;
        }
        if !is_alive {
            break;
        }
        report.text(cx, out)?;
        out.flush()?;
        report.shown.clear();
        std::thread::park_timeout(PERIOD);
    }
    if let Some(torn) = reader.torn()
        && !is_driven(&id, &config)?
    {
        report.take(torn, args.raw, &progress, cx, err)?;
    }
    Ok(Response::done(report))
}

impl ReplayReport {
    fn take(
        &mut self,
        line: Line,
        raw: bool,
        progress: &Progress,
        cx: &Context<'_>,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        match line {
            Line::Event(event, text) => {
                self.shown.extend(if raw { Some(text) } else { progress.line(&event) });
                self.events.push(*event);
                Ok(())
            }
            Line::Unreadable { number, why } => {
                self.unreadable.push(number);
                let text = format!("line {number} of the events cannot be read: {why}");
                cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))
            }
        }
    }
}

/// Finds the requested record; `None` if there are no records.
fn find(wanted: &str, config: &WorkspaceConfig) -> Result<Option<(Runs, RunId)>, Failure> {
    let mut found = Vec::new();
    for runs in [config.dirs.runs(), config.dirs.integrations()] {
        found.extend(runs.list()?.into_iter().map(|id| (id, runs.clone())));
    }
    if wanted == "latest" {
        // Ids begin with the time.
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        return Ok(found.pop().map(|(id, runs)| (runs, id)));
    }
    let is_it = |(id, _): &(RunId, Runs)| id.as_str().eq_ignore_ascii_case(wanted);
    match found.into_iter().find(is_it) {
        Some((id, runs)) => Ok(Some((runs, id))),
        None => Err(Failure::usage(format!("no run or integration is called `{wanted}`"))
            .hint("`pdca replay` alone takes the last one; Tab completes the others")),
    }
}

/// Returns whether a driver works on the run.
fn is_driven(id: &RunId, config: &WorkspaceConfig) -> Result<bool, Failure> {
    let active = run_statuses(config)?.into_iter().chain(integrations(config)?);
    Ok(active.into_iter().any(|run| run.id == *id && run.driver == Liveness::Alive))
}

/// Returns the ids of all records, for completion.
pub(crate) fn recorded(workspace: &Workspace) -> Vec<String> {
    let below =
        |name: &str| Runs::new(workspace.root.join(".pdca").join(name)).list().unwrap_or_default();
    let ids = below("runs").into_iter().chain(below("integrations"));
    ids.map(|id| id.to_string()).chain(["latest".to_owned()]).collect()
}
