//! What changed since the attempt before, and whether its note was answered.

use std::collections::BTreeMap;

use pdca_state::{
    Artifact, Bundle, GateReport, GateResult, LoadError, Snapshot, Summary, patch_files,
};
use serde::Serialize;

/// The difference between the present attempt and the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptDelta {
    /// The number of the attempt before.
    pub before: u32,
    /// The note with which it was sent back.
    pub note: Option<String>,
    pub answer: NoteAnswer,
    /// The builder's own words about the note, from its notes.
    pub builder_says: Option<String>,
    /// Files whose change differs, or that only one of the two attempts changes.
    pub files: Vec<String>,
    /// Rows that were red and are green now.
    pub mended: Vec<String>,
    /// Rows that are red again.
    pub still_red: Vec<String>,
    /// Rows that were not red before.
    pub newly_red: Vec<String>,
}

/// What can be said about the answer to a note, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NoteAnswer {
    /// The change is byte for byte the same as before.
    Unchanged,
    /// The change differs, and what was red before is still red.
    StillRed,
    /// The change differs.
    Changed,
}

impl NoteAnswer {
    /// Returns the answer in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unchanged => "not answered: the change is the same as before",
            Self::StillRed => "changed, and what was red is still red",
            Self::Changed => "changed since",
        }
    }
}

impl AttemptDelta {
    /// Compares with the newest archived attempt; `None` if there is none.
    pub(super) fn load(
        bundle: &Bundle,
        snapshot: &Snapshot,
        patch: &[u8],
    ) -> Result<Option<Self>, LoadError> {
        let Some(last) = bundle.attempts().last()? else { return Ok(None) };
        let read = |artifact| bundle.attempts().read(last.number, artifact);
        let summary = read(Artifact::Summary)?;
        let summary = summary.map(|bytes| Summary::parse(&String::from_utf8_lossy(&bytes)));
        let returned = bundle.attempts().returns()?.pop().and_then(|returned| returned.note);
        let note = summary.as_ref().map(|summary| summary.iteration_delta().trim().to_owned());
        let note = note.filter(|note| !note.is_empty());
        // The summary of an accepted attempt says why it was accepted; why it came back is in its return.
        let note = if last.was_accepted { returned.or(note) } else { note };
        let gates = read(Artifact::GatesJson)?.and_then(|json| GateReport::parse(&json).ok());
        let (was_red, is_red) = (red(gates.as_ref()), red(snapshot.gates.as_ref()));
        let both = |in_now: bool| -> Vec<String> {
            was_red.iter().filter(|row| is_red.contains(row) == in_now).cloned().collect()
        };
        let (still_red, mended) = (both(true), both(false));
        let old_patch = last.patch().unwrap_or_default();
        let files = differing(old_patch, patch);
        let answer = match (files.is_empty() && old_patch == patch, still_red.is_empty()) {
            (true, _) => NoteAnswer::Unchanged,
            (false, false) => NoteAnswer::StillRed,
            (false, true) => NoteAnswer::Changed,
        };
        let notes = bundle.read(Artifact::BuildNotes)?;
        let notes = notes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Some(Self {
            before: last.number,
            note,
            answer,
            builder_says: notes.as_deref().and_then(answer_in),
            files,
            newly_red: is_red.iter().filter(|row| !was_red.contains(row)).cloned().collect(),
            mended,
            still_red,
        }))
    }
}

/// Returns the names of the failed rows.
fn red(gates: Option<&GateReport>) -> Vec<String> {
    let rows = gates.into_iter().flat_map(|gates| &gates.rows);
    rows.filter(|row| row.result == GateResult::Fail).map(super::row_name).collect()
}

/// Returns the files whose part of the two patches differs, sorted.
fn differing(before: &[u8], now: &[u8]) -> Vec<String> {
    let by_path = |patch| -> BTreeMap<String, &[u8]> {
        patch_files(patch).into_iter().map(|file| (file.path, file.text)).collect()
    };
    let (before, now) = (by_path(before), by_path(now));
    let mut paths: Vec<String> = before.keys().chain(now.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| before.get(path) != now.get(path));
    paths
}

/// Returns the first lines below a heading of the builder's notes that is about the note or the iteration.
fn answer_in(notes: &str) -> Option<String> {
    const LINES: usize = 3;
    let is_about = |line: &&str| {
        let heading = line.trim_start_matches('#').to_lowercase();
        line.starts_with('#')
            && ["carry", "iteration", "feedback", "answer", "the note"]
                .iter()
                .any(|word| heading.contains(word))
    };
    let mut lines = notes.lines();
    lines.find(is_about)?;
    let said: Vec<&str> = lines
        .take_while(|line| !line.starts_with('#'))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(LINES)
        .collect();
    (!said.is_empty()).then(|| said.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_the_builder_is_below_its_heading() {
        let notes =
            "# Build notes\n\nbody\n\n## Answer to the note\n\nThe test\nnow fails\n\n## Rest\nx\n";
        assert_eq!(answer_in(notes).as_deref(), Some("The test now fails"));
        assert_eq!(answer_in("# What I did\nx\n"), None);
    }

    #[test]
    fn files_that_only_one_attempt_changes_differ() {
        let file = |name: &str, line: &str| {
            format!(
                "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-o\n+{line}\n"
            )
        };
        let (before, now) = (
            format!("{}{}", file("a", "1"), file("b", "1")),
            format!("{}{}", file("a", "1"), file("c", "1")),
        );
        assert_eq!(differing(before.as_bytes(), now.as_bytes()), ["b", "c"]);
    }
}
