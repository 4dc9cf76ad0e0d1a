//! Compares the programs and sandboxes of a workspace with those of the previous run.
//!
//! `pdca.toml` may change with a pull. Other programs or weaker
//! sandboxes are no reason to refuse, but the user has to hear about them.

use std::collections::BTreeMap;
use std::io::Write;

use pdca_journal::events::WarningCode;
use pdca_state::files;

use crate::context::Context;
use crate::failure::{Failure, FilePosition};
use crate::style::printable;

/// The tables that decide which programs run, and their sandboxes.
const TABLES: [&str; 3] = ["gates.", "leaves.", "lanes."];
/// The most changes that are listed one by one.
const TOLD: usize = 10;

/// Reports changes since the last run, and stores the present values. The caller holds the workspace.
pub(crate) fn tell_changes(cx: &Context<'_>, err: &mut dyn Write) -> Result<(), Failure> {
    let workspace = cx.workspace()?;
    let flat = workspace.config.flat().unwrap_or_default();
    let now: BTreeMap<String, String> = flat
        .into_iter()
        .filter(|(key, _)| TABLES.iter().any(|table| key.starts_with(table)))
        .map(|(key, value)| (key, value.to_string()))
        .collect();
    let file = workspace.root.join(".pdca").join("programs.json");
    let known = fs_err::read(&file).ok();
    let known: Option<BTreeMap<String, String>> =
        known.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if known.as_ref() == Some(&now) {
        return Ok(());
    }
    if let Some(known) = &known {
        let changed: Vec<&String> = now
            .keys()
            .chain(known.keys().filter(|key| !now.contains_key(*key)))
            .filter(|key| now.get(*key) != known.get(*key))
            .collect();
        for key in changed.iter().take(TOLD) {
            let place = workspace.sources.place(key).map_or_else(String::new, |place| {
                format!("{}: ", FilePosition { column: None, ..place }.show(&cx.env.cwd))
            });
            let of = |map: &BTreeMap<String, String>| {
                map.get(*key).map_or_else(|| "nothing".to_owned(), |text| printable(text).into())
            };
            let text =
                format!("{place}`{key}` was {} in the run before, and is {}", of(known), of(&now));
            cx.warn(err, WarningCode::ProgramChanged, text)?;
        }
        if let Some(more) = changed.len().checked_sub(TOLD).filter(|more| *more > 0) {
            let text = format!("{more} more of what runs changed since; `pdca config show` has it");
            cx.warn(err, WarningCode::ProgramChanged, text)?;
        }
    }
    fs_err::create_dir_all(file.parent().unwrap_or(&workspace.root))?;
    files::replace(&file, &serde_json::to_vec_pretty(&now)?)?;
    Ok(())
}
