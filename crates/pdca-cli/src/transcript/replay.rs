//! The lines of a run again, from its recorded events.

use std::io::Write;
use std::time::Duration;

use pdca_driver::{WorkspaceConfig, integrations, run_statuses};
use pdca_journal::events::{Event, LogLine, LogReader};
use pdca_journal::{Liveness, RunId, Runs};
use pdca_workspace::config::workspace::Workspace;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::flow_record::flows;
use crate::progress::ProgressRenderer;
use crate::report::{Nothing, Report, Response};
use crate::session;

/// A request for the lines of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayRequest<'a> {
    /// The run, integration or flow, or `latest`.
    pub(crate) run: &'a str,
    /// Prints the events as they were recorded.
    pub(crate) raw: bool,
    /// Continues as long as a driver works on it.
    pub(crate) follow: bool,
}

/// The interval at which a growing log is polled.
const PERIOD: Duration = Duration::from_millis(100);

/// A fully read record.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReplayReport {
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

/// Prints the lines of a run, an integration or a flow again.
pub(crate) fn replay(
    ReplayRequest { run: wanted, raw, follow }: ReplayRequest<'_>,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let config = session::driver_config(cx)?;
    let Some((runs, id)) = find(wanted, &config)? else {
        return Nothing::to_do("no run is recorded", err);
    };
    let Some(mut reader) = LogReader::open(&runs.dir(&id))? else {
        return Nothing::to_do(&format!("no events of {id} are recorded"), err);
    };
    let progress = ProgressRenderer::new(cx.out, session::detail(cx), false, cx.width());
    let mut report = ReplayReport {
        run: id.to_string(),
        events: Vec::new(),
        unreadable: Vec::new(),
        shown: Vec::new(),
    };
    loop {
        // Asked before the log is read, so that the last read comes after the driver's last write.
        let is_alive = follow && is_driven(&id, &config)?;
        for line in reader.read()? {
            report.take(line, raw, &progress, cx, err)?;
        }
        if !is_alive {
            break;
        }
        report.text(cx, out)?;
        out.flush()?;
        report.shown.clear();
        std::thread::park_timeout(PERIOD);
    }
    // A line without an end is torn only if its writer is gone; a driver that lives is still writing it.
    if let Some(torn) = reader.torn()
        && !is_driven(&id, &config)?
    {
        report.take(torn, raw, &progress, cx, err)?;
    }
    Ok(Response::done(report))
}

impl ReplayReport {
    fn take(
        &mut self,
        line: LogLine,
        raw: bool,
        progress: &ProgressRenderer,
        cx: &Context<'_>,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        match line {
            LogLine::Event(event, text) => {
                self.shown.extend(if raw { Some(text) } else { progress.line(&event) });
                self.events.push(*event);
                Ok(())
            }
            LogLine::Unreadable { number, why } => {
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
    for runs in [config.dirs.runs(), config.dirs.integrations(), flows(config)] {
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
        None => Err(Failure::usage(format!("no run, integration or flow is called `{wanted}`"))
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
    let ids = below("runs").into_iter().chain(below("integrations")).chain(below("flows"));
    ids.map(|id| id.to_string()).chain(["latest".to_owned()]).collect()
}
