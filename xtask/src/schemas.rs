//! `cargo xtask schemas`: the JSON Schemas of the formats, made from the types.

use std::collections::BTreeSet;

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

/// Where the schemas are, from the root.
const DIR: &str = "docs/generated/schemas";

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let event = schemars::schema_for!(pdca_journal::events::Event);
    let mut outcome = settle(
        "event",
        &event,
        "pdca_journal::events::Event",
        pdca_journal::events::SCHEMA,
        args,
        root,
    )?;
    let mut kinds = BTreeSet::from(["event"]);
    for (kind, schema) in pdca_cli::schemas() {
        let settled =
            settle(kind, &schema, "its report in pdca-cli", pdca_cli::SCHEMA, args, root)?;
        if settled == Outcome::Failed {
            outcome = Outcome::Failed;
        }
        kinds.insert(kind);
    }
    for entry in root.join(DIR).read_dir_utf8()? {
        let entry = entry?;
        if !entry.path().file_stem().is_some_and(|kind| kinds.contains(kind)) {
            println!("error: no document is of the kind of {}", entry.path());
            outcome = Outcome::Failed;
        }
    }
    Ok(outcome)
}

fn settle(
    name: &str,
    schema: &schemars::Schema,
    source: &str,
    version: u32,
    args: &Args,
    root: &Utf8Path,
) -> Result<Outcome, Stopped> {
    let text = serde_json::to_string_pretty(schema)? + "\n";
    let path = format!("{DIR}/{name}.json");
    let sum = format!("version {version}");
    page::Page { path: &path, source, command: "schemas", text, sum }.settle(&args.page, root)
}
