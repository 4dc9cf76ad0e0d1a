//! The configuration that makes an agent call `pdca guard builder` before each tool call.
//!
//! It is written to the workspace, not to the user's own settings, so that only a builder that is started with it
//! calls the hook. Codex takes its hook on the command line and needs no file.

use std::collections::BTreeSet;

use camino::Utf8Path;
use pdca_leaves::{CLAUDE_GUARD as CLAUDE, GEMINI_GUARD as GEMINI, OPENCODE_GUARD as OPENCODE};
use serde_json::Value;

use super::NewFile;

/// Returns the file of an agent below the workspace, with its contents.
fn file(agent: &str) -> Option<(&'static str, &'static str)> {
    match agent {
        "claude" => Some(("process/guard/claude.json", CLAUDE)),
        "gemini" => Some(("process/guard/gemini.json", GEMINI)),
        "opencode" => Some(("process/guard/opencode/plugin/pdca-guard.js", OPENCODE)),
        _ => None,
    }
}

/// Returns the files to write for these agents. An existing one keeps its contents and gets the hook in addition; if that
/// is impossible, `notes` say what to add.
pub(super) fn items(
    dir: &Utf8Path,
    agents: &BTreeSet<&str>,
    notes: &mut Vec<String>,
) -> std::io::Result<Vec<NewFile>> {
    let mut items = Vec::new();
    for (path, text) in agents.iter().filter_map(|agent| file(agent)) {
        let full = dir.join(path);
        if !super::exists(&full) {
            items.push(NewFile { path: full, text: text.to_owned(), appends: false });
            continue;
        }
        let present = String::from_utf8_lossy(&fs_err::read(&full)?).into_owned();
        if present.contains("pdca guard builder") || present.contains("\"guard\", \"builder\"") {
            continue;
        }
        match merged(&present, text) {
            Some(text) => items.push(NewFile { path: full, text, appends: true }),
            None => notes.push(format!("{path} has no guard; add:\n{text}")),
        }
    }
    Ok(items)
}

/// Adds the hook to existing settings.
fn merged(present: &str, wanted: &str) -> Option<String> {
    let mut present: Value = serde_json::from_str(present).ok()?;
    let wanted: Value = serde_json::from_str(wanted).ok()?;
    let hooks = present
        .as_object_mut()?
        .entry("hooks")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    for (event, entries) in wanted.get("hooks")?.as_object()? {
        let all = hooks.as_object_mut()?.entry(event).or_insert_with(|| Value::Array(Vec::new()));
        all.as_array_mut()?.extend(entries.as_array()?.iter().cloned());
    }
    serde_json::to_string_pretty(&present).ok().map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_there_keep_what_they_have() {
        let present = r#"{"model": "x", "hooks": {"PreToolUse": [{"matcher": "Read", "hooks": []}], "Stop": []}}"#;
        let text = merged(present, CLAUDE).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["model"], "x");
        assert_eq!(value["hooks"]["PreToolUse"].as_array().unwrap().len(), 2);
        assert!(value["hooks"]["Stop"].is_array());
        assert_eq!(merged("not json", CLAUDE), None);
        assert_eq!(merged(r#"{"hooks": 7}"#, CLAUDE), None);
    }
}
