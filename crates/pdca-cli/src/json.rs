//! The envelope of all `--json` documents.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Fault;

/// The version of the JSON contract. A field may be added under the same number; none is renamed or removed.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Envelope<'a, T> {
    schema: u32,
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

/// Writes `{"schema": 1, "kind": kind, …body}` and a newline, with `error` if the command failed.
pub(crate) fn write_json<T: Serialize>(
    out: &mut dyn Write,
    kind: &str,
    body: &T,
    error: Option<&Fault>,
) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Envelope { schema: SCHEMA, kind, body, error })?;
    writeln!(out)
}

/// The body of a document that has `error` alone.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Empty {}

/// Writes the document of a command that failed before it had a report.
pub(crate) fn write_error(out: &mut dyn Write, error: &Fault) -> io::Result<()> {
    write_json(out, "error", &Empty {}, Some(error))
}

/// Returns the schema of the documents of a kind.
#[cfg(feature = "schema")]
pub(crate) fn schema_of<T: schemars::JsonSchema + 'static>(kind: &str) -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Envelope<'static, T>>();
    schema.insert("title".to_owned(), kind.into());
    for (field, value) in [("schema", serde_json::json!(SCHEMA)), ("kind", kind.into())] {
        if let Some(rule) = schema.pointer_mut(&format!("/properties/{field}")) {
            *rule = serde_json::json!({ "const": value });
        }
    }
    schema
}
