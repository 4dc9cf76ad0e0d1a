//! `cargo xtask schemas`: the JSON Schemas of the formats, made from the types.

use camino::Utf8Path;

use crate::{Outcome, Stopped, page};

/// Compare the JSON Schemas with the types they are made from, or write them
///
/// Fails where one is not what the types say.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {
    #[command(flatten)]
    page: page::Args,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let schema = schemars::schema_for!(pdca_events::Event);
    let text = serde_json::to_string_pretty(&schema)? + "\n";
    let made = page::Page {
        path: "docs/reference/schemas/event.json",
        source: "pdca_events::Event",
        command: "schemas",
        text,
        sum: format!("version {}", pdca_events::SCHEMA),
    };
    made.settle(&args.page, root)
}
