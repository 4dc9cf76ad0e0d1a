//! Reports: each command returns one value, and this module renders it.
//!
//! A format is a variant of [`Format`] and an arm of `render`.

use std::io::{self, Write};

use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Fault};
use crate::json::write_json;
use crate::style::one_line;

/// The output format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// Aligned columns that fit the terminal, where a report has rows; lines where it has none.
    Table,
    /// One document for programs.
    Json,
}

/// The result of a command.
pub(crate) trait Report: Serialize {
    /// The `kind` of the JSON document.
    const KIND: &'static str;

    /// Writes the lines for people.
    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure>;

    /// Returns the rows, for reports that are a list.
    fn table(&self, _cx: &Context<'_>) -> Option<Table> {
        None
    }
}

/// [`Report`] without its type, so that the dispatcher can hold any.
trait AnyReport {
    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure>;
    fn table(&self, cx: &Context<'_>) -> Option<Table>;
    fn json(&self, fault: Option<&Fault>, out: &mut dyn Write) -> io::Result<()>;
}

impl<T: Report> AnyReport for T {
    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        Report::text(self, cx, out)
    }

    fn table(&self, cx: &Context<'_>) -> Option<Table> {
        Report::table(self, cx)
    }

    fn json(&self, fault: Option<&Fault>, out: &mut dyn Write) -> io::Result<()> {
        write_json(out, T::KIND, self, fault)
    }
}

/// A report with its exit code, and the failure that ended the command after it, if any.
pub(crate) struct Response {
    report: Box<dyn AnyReport>,
    pub(crate) exit: Exit,
    pub(crate) failure: Option<Failure>,
}

impl Response {
    pub(crate) fn new(report: impl Report + 'static, exit: Exit) -> Self {
        Self { report: Box::new(report), exit, failure: None }
    }

    pub(crate) fn done(report: impl Report + 'static) -> Self {
        Self::new(report, Exit::Done)
    }

    /// Adds a failure that ended the command after the report was complete.
    #[must_use]
    pub(crate) fn failed(self, failure: impl Into<Option<Failure>>) -> Self {
        Self { failure: failure.into(), ..self }
    }
}

/// Renders a response in the requested format.
pub(crate) fn render(
    response: &Response,
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let report = &response.report;
    match cx.globals.format() {
        Format::Json => {
            Ok(report.json(response.failure.as_ref().map(Failure::fault).as_ref(), out)?)
        }
        Format::Table => match report.table(cx) {
            Some(table) => table.write(cx.width(), out),
            None => report.text(cx, out),
        },
        Format::Text => report.text(cx, out),
    }
}

/// A report that is one text: a page of help, a script.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TextPage {
    pub(crate) text: String,
}

impl TextPage {
    /// Collects the output of `write`.
    pub(crate) fn of(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Self, Failure> {
        let mut text = Vec::new();
        write(&mut text)?;
        Ok(Self { text: String::from_utf8_lossy(&text).into_owned() })
    }
}

impl Report for TextPage {
    const KIND: &'static str = "page";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        Ok(out.write_all(self.text.as_bytes())?)
    }
}

/// A report that there was nothing to do; people read it on standard error.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Nothing {
    pub(crate) message: String,
}

impl Nothing {
    /// Makes the response, with exit code 4.
    pub(crate) fn to_do(message: &str, err: &mut dyn Write) -> Result<Response, Failure> {
        writeln!(err, "{message}")?;
        Ok(Response::new(Self { message: message.to_owned() }, Exit::NothingToDo))
    }
}

impl Report for Nothing {
    const KIND: &'static str = "nothing";

    fn text(&self, _: &Context<'_>, _: &mut dyn Write) -> Result<(), Failure> {
        Ok(())
    }
}

/// Rows under a heading.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The space between two columns.
const GAP: usize = 2;

/// The minimum width of a column.
const NARROWEST: usize = 6;

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|name| name.to_uppercase()).collect(), rows: Vec::new() }
    }

    /// Adds a row of one cell per column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.head.len());
        self.rows.push(cells.into());
    }

    /// Writes the columns, cutting the widest so that a row fits into `width` if possible.
    fn write(&self, width: usize, out: &mut dyn Write) -> Result<(), Failure> {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let length = |line: &Vec<String>, at: usize| line.get(at).map_or(0, |c| c.chars().count());
        let mut widths: Vec<usize> = (0..self.head.len())
            .map(|at| lines().map(|line| length(line, at)).max().unwrap_or(0))
            .collect();
        let room = width.saturating_sub(GAP * widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max().filter(|widest| **widest > NARROWEST);
            let Some(widest) = widest else { break };
            *widest -= 1;
        }
        for line in lines() {
            let cells = line.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!("{:<width$}", one_line(cell, *width)));
            let text = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(width: usize) -> String {
        let mut table = Table::new(&["id", "what"]);
        table.row(["36".to_owned(), "the list crashes when it is empty".to_owned()]);
        table.row(["PROJ-12".to_owned(), String::new()]);
        let mut out = Vec::new();
        table.write(width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        insta::assert_snapshot!(written(80), @r"
        ID       WHAT
        36       the list crashes when it is empty
        PROJ-12
        ");
    }

    #[test]
    fn the_widest_column_is_cut_where_the_terminal_is_narrow() {
        insta::assert_snapshot!(written(30), @r"
        ID       WHAT
        36       the list crashes whe…
        PROJ-12
        ");
    }
}
