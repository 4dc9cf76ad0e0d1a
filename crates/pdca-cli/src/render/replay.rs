//! Recorded events as the lines of their run.

use std::io::Write;

use pdca_journal::events::LogLine;
use pdca_workspace::logs::{Recording, Replay, ReplayProgress};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::progress::ProgressRenderer;
use crate::report::{Nothing, Report, Response};
use crate::session;

/// Collects the lines of a run, and writes them while a driver works on it.
pub(crate) struct ReplayLines<'a> {
    cx: &'a Context<'a>,
    /// The events as they were recorded.
    raw: bool,
    renderer: ProgressRenderer,
    lines: Vec<String>,
}

impl<'a> ReplayLines<'a> {
    pub(crate) fn new(cx: &'a Context<'a>, raw: bool) -> Self {
        let renderer = ProgressRenderer::new(cx.out, session::detail(cx), false, cx.width());
        Self { cx, raw, renderer, lines: Vec::new() }
    }

    pub(crate) fn show(
        &mut self,
        progress: &ReplayProgress<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        match progress {
            ReplayProgress::Line(LogLine::Event(event, text)) => {
                let line = if self.raw { Some(text.clone()) } else { self.renderer.line(event) };
                self.lines.extend(line);
            }
            ReplayProgress::Line(LogLine::Unreadable { number, why }) => {
                let text = format!("line {number} of the events cannot be read: {why}");
                self.cx.note(err, &format!("{} {text}", self.cx.err.warn("warning:")))?;
            }
            ReplayProgress::Waiting => {
                for line in self.lines.drain(..) {
                    writeln!(out, "{line}")?;
                }
                out.flush()?;
            }
        }
        Ok(())
    }

    /// Returns the response to a replay, with the lines that were not written yet.
    pub(crate) fn response(self, replay: Replay, err: &mut dyn Write) -> Result<Response, Failure> {
        match replay {
            Replay::NoRun => Nothing::to_do("no run is recorded", err),
            Replay::NoEvents(id) => Nothing::to_do(&format!("no events of {id} are recorded"), err),
            Replay::Replayed(recording) => {
                Ok(Response::done(ReplayReport { recording, lines: self.lines }))
            }
        }
    }
}

/// A recording, with the lines that were not written yet.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReplayReport {
    #[serde(flatten)]
    recording: Recording,
    #[serde(skip)]
    lines: Vec<String>,
}

impl Report for ReplayReport {
    const KIND: &'static str = "replay";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for line in &self.lines {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}
