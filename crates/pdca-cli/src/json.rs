//! The envelope of all `--json` documents.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Fault;

/// The version of the JSON contract. A field may be added under the same number; none is renamed or removed.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    schema: u32,
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

/// Writes `{"schema": 1, "kind": kind, …body}` and a newline, with `error` if the command failed.
pub fn write_json<T: Serialize>(
    out: &mut dyn Write,
    kind: &str,
    body: &T,
    error: Option<&Fault>,
) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Envelope { schema: SCHEMA, kind, body, error })?;
    writeln!(out)
}

/// Writes the document of a command that failed before it had a report.
pub fn write_error(out: &mut dyn Write, error: &Fault) -> io::Result<()> {
    #[derive(Serialize)]
    struct Empty {}
    write_json(out, "error", &Empty {}, Some(error))
}
