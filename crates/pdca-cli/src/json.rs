//! The envelope of everything `--json` prints.

use std::io::{self, Write};

use serde::Serialize;

/// The version of the JSON that scripts rely on. A field may be added under the same number; none is renamed or removed.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    schema: u32,
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

/// Writes `{"schema": 1, "kind": kind, …body}` and a newline.
pub fn write_json<T: Serialize>(out: &mut dyn Write, kind: &str, body: &T) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Envelope { schema: SCHEMA, kind, body })?;
    writeln!(out)
}
