//! The recorded events of a run, an integration or a flow.

use std::ops::ControlFlow;
use std::time::Duration;

use pdca_driver::{WorkspaceConfig, integrations, run_statuses};
use pdca_journal::events::{Event, LogLine, LogReader};
use pdca_journal::{Liveness, RunId, Runs};
use serde::Serialize;

use super::LogError;
use crate::config::Workspace;
use crate::{OpenWorkspace, OperationError};

/// The interval at which a growing log is read.
const PERIOD: Duration = Duration::from_millis(100);

/// A request for the events of a run.
#[derive(Debug, Clone, Copy)]
pub struct ReplayRequest<'a> {
    /// The run, integration or flow, or `latest`.
    pub run: &'a str,
    /// Continues as long as a driver works on it.
    pub follow: bool,
}

/// The result of a replay.
#[derive(Debug)]
pub enum Replay {
    /// Nothing is recorded.
    NoRun,
    /// The run has no events.
    NoEvents(RunId),
    Replayed(Recording),
}

/// The recorded events of a run, an integration or a flow.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recording {
    pub run: String,
    pub events: Vec<Event>,
    /// The numbers of unreadable lines.
    pub unreadable: Vec<u64>,
}

/// What a caller can show while events are read.
#[derive(Debug)]
pub enum ReplayProgress<'a> {
    /// The next line of the record.
    Line(&'a LogLine),
    /// All lines were read, and a driver may write more.
    Waiting,
}

/// Reads the events of a run, an integration or a flow. `observe` gets each line, and can end a replay that follows.
pub fn replay_run(
    open: &OpenWorkspace<'_>,
    request: ReplayRequest<'_>,
    observe: &mut dyn FnMut(ReplayProgress<'_>) -> ControlFlow<()>,
) -> Result<Replay, OperationError> {
    let config = open.driver_config()?;
    let Some((runs, id)) = find(request.run, &config)? else { return Ok(Replay::NoRun) };
    let Some(mut reader) = LogReader::open(&runs.dir(&id))? else {
        return Ok(Replay::NoEvents(id));
    };
    let mut recording =
        Recording { run: id.to_string(), events: Vec::new(), unreadable: Vec::new() };
    loop {
        // Asked before the log is read, so that the last read comes after the driver's last write.
        let is_alive = request.follow && is_driven(&id, &config)?;
        for line in reader.read()? {
            if observe(ReplayProgress::Line(&line)).is_break() {
                return Ok(Replay::Replayed(recording));
            }
            recording.take(line);
        }
        if !is_alive {
            break;
        }
        if observe(ReplayProgress::Waiting).is_break() {
            return Ok(Replay::Replayed(recording));
        }
        std::thread::park_timeout(PERIOD);
    }
    // A line without an end is torn only if its writer is gone; a driver that lives is still writing it.
    if let Some(torn) = reader.torn()
        && !is_driven(&id, &config)?
        && observe(ReplayProgress::Line(&torn)).is_continue()
    {
        recording.take(torn);
    }
    Ok(Replay::Replayed(recording))
}

impl Recording {
    fn take(&mut self, line: LogLine) {
        match line {
            LogLine::Event(event, _) => self.events.push(*event),
            LogLine::Unreadable { number, .. } => self.unreadable.push(number),
        }
    }
}

/// Finds the requested record; `None` if there are no records.
fn find(wanted: &str, config: &WorkspaceConfig) -> Result<Option<(Runs, RunId)>, OperationError> {
    let mut found = Vec::new();
    for runs in [config.dirs.runs(), config.dirs.integrations(), flow_runs(config)] {
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
        None => Err(LogError::NoRun(wanted.to_owned()).into()),
    }
}

/// Returns the records of flows.
pub fn flow_runs(config: &WorkspaceConfig) -> Runs {
    Runs::new(config.dirs.private().join("flows"))
}

/// Returns whether a driver works on the run.
fn is_driven(id: &RunId, config: &WorkspaceConfig) -> Result<bool, OperationError> {
    let active = run_statuses(config)?.into_iter().chain(integrations(config)?);
    Ok(active.into_iter().any(|run| run.id == *id && run.driver == Liveness::Alive))
}

/// Returns the runs, integrations and flows with a record.
pub fn recorded_runs(workspace: &Workspace) -> Vec<RunId> {
    let below =
        |name: &str| Runs::new(workspace.root.join(".pdca").join(name)).list().unwrap_or_default();
    ["runs", "integrations", "flows"].into_iter().flat_map(below).collect()
}
