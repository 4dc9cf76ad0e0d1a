//! The text of the page.

use std::fmt::Write as _;

use super::rows::{RequirementRow, RequirementStanding};
use super::{Coverage, RequirementGroup};

const INTRODUCTION: &str = "# Coverage of the requirements

What the process asks for, and the test that holds it. Where the project is deliberately otherwise, the decision that says why is
named, with the tests that show what holds instead. A row counts as held only by a test that goes through the built program; rows about how
the project is written are the exception. This page is made by `cargo xtask coverage --write` from `xtask/src/coverage/requirements.toml`;
`cargo xtask tidy` fails where it is not current, and where a test is not there or starts no program.

";

pub(super) fn text(coverage: &Coverage<'_>) -> String {
    let mut page = String::from(INTRODUCTION);
    let _ = writeln!(page, "{}.", sum(coverage));
    for group in &coverage.groups {
        section(&mut page, group, coverage);
    }
    page
}

/// Returns the number of rows of each standing.
pub(super) fn sum(coverage: &Coverage<'_>) -> String {
    let count = |of: fn(&RequirementStanding) -> bool| {
        coverage.rows().filter(|(_, row)| of(&row.standing)).count()
    };
    let otherwise = count(|standing| matches!(standing, RequirementStanding::Otherwise { .. }));
    let open = count(|standing| matches!(standing, RequirementStanding::Open { .. }));
    let held = coverage
        .rows()
        .filter(|(_, row)| row.standing == RequirementStanding::Required && !row.tests.is_empty())
        .count();
    let all = coverage.rows().count();
    let missing = all - held - otherwise - open;
    let missing = if missing == 0 { String::new() } else { format!(", {missing} missing") };
    let tests = tests(coverage);
    format!(
        "{all} requirements: {held} held by {tests} tests, {otherwise} otherwise by decision, {open} open{missing}"
    )
}

/// Returns the number of tests that hold a row.
fn tests(coverage: &Coverage<'_>) -> usize {
    let names = coverage.rows().flat_map(|(_, row)| &row.tests).map(ToString::to_string);
    names.collect::<std::collections::BTreeSet<_>>().len()
}

fn section(page: &mut String, group: &RequirementGroup, coverage: &Coverage<'_>) {
    let _ =
        write!(page, "\n## {}\n\n| row | requirement | held by |\n|---|---|---|\n", group.title);
    for (id, row) in &group.rows {
        let text = cell(&row.text);
        let _ = writeln!(page, "| {id} | {text} | {} |", held_by(row, coverage));
    }
}

fn held_by(row: &RequirementRow, coverage: &Coverage<'_>) -> String {
    let tests = row.tests.iter();
    let tests = tests.map(|test| format!("[`{}`](../../{})", test.function, test.path));
    let stated = match &row.standing {
        RequirementStanding::Required => None,
        RequirementStanding::Otherwise { decision, how } => {
            let file = coverage.decisions.get(decision).and_then(|path| path.file_name());
            let file = file.unwrap_or_default();
            Some(format!("otherwise: {} ([{decision:03}](../decisions/{file}))", cell(how)))
        }
        RequirementStanding::Open { note } => Some(format!("**open**: {}", cell(note))),
    };
    let cells: Vec<String> = stated.into_iter().chain(tests).collect();
    if cells.is_empty() { "**missing**".to_owned() } else { cells.join("<br>") }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
