//! The history as Chrome trace events, which Perfetto and `chrome://tracing` open.
//!
//! A run is a process and a row of the timeline is a thread, so that lanes lie side by side. Times are microseconds since
//! the first span of the oldest run.

use std::collections::BTreeMap;

use serde::Serialize;

use pdca_workspace::batch_report::WorkspaceReport;
use pdca_workspace::batch_report::{RunHistory, Span, TimelineRow};

/// The file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceFile<'a> {
    display_time_unit: &'static str,
    trace_events: Vec<TraceEvent<'a>>,
}

/// A complete event, or a name for a process or thread.
#[derive(Debug, Serialize)]
struct TraceEvent<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    /// The phase: `X` has a duration, `M` names something.
    ph: char,
    ts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<i64>,
    pid: usize,
    tid: usize,
    args: BTreeMap<&'static str, String>,
}

/// Renders the trace of every run in the report.
pub(crate) fn trace(report: &WorkspaceReport) -> String {
    let starts = report.runs.iter().flat_map(|run| &run.spans).map(|span| span.from);
    let zero = starts.min().unwrap_or(report.made).as_microsecond();
    let mut trace_events = Vec::new();
    // The oldest run comes first in the viewer.
    for (pid, run) in report.runs.iter().rev().enumerate() {
        add(&mut trace_events, pid + 1, run, zero);
    }
    json(&TraceFile { display_time_unit: "ms", trace_events })
}

fn json(file: &TraceFile<'_>) -> String {
    serde_json::to_string(file).expect("because every key is a string")
}

fn add<'a>(events: &mut Vec<TraceEvent<'a>>, pid: usize, run: &'a RunHistory, zero: i64) {
    let host = run.host.as_deref().map_or_else(String::new, |host| format!(" on {host}"));
    events.push(named("process_name", format!("{} {}{host}", run.kind.as_str(), run.id), pid, 0));
    let rows: BTreeMap<TimelineRow, usize> = run.spans.iter().map(|span| (span.row, 0)).collect();
    let rows: BTreeMap<TimelineRow, usize> = rows.into_keys().zip(1..).collect();
    for (row, tid) in &rows {
        events.push(named("thread_name", row.to_string(), pid, *tid));
    }
    for span in &run.spans {
        events.push(complete(span, pid, rows.get(&span.row).copied().unwrap_or(0), zero));
    }
}

fn named(name: &'static str, value: String, pid: usize, tid: usize) -> TraceEvent<'static> {
    let args = BTreeMap::from([("name", value)]);
    TraceEvent { name, cat: None, ph: 'M', ts: 0, dur: None, pid, tid, args }
}

fn complete(span: &Span, pid: usize, tid: usize, zero: i64) -> TraceEvent<'_> {
    let mut args = BTreeMap::from([("end", span.end.as_str().to_owned())]);
    args.extend(span.bundle.as_ref().map(|id| ("bundle", id.to_string())));
    TraceEvent {
        name: span.name.as_str(),
        cat: Some(span.kind.as_str()),
        ph: 'X',
        ts: span.from.as_microsecond() - zero,
        dur: Some(span.to.as_microsecond() - span.from.as_microsecond()),
        pid,
        tid,
        args,
    }
}
