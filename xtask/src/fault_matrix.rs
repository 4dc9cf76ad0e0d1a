//! `cargo xtask fault-matrix`: all faults that the software must survive, with the tests that show it.
//!
//! A test carries the numbers of its rows at the front of its name: `a8_a9_what_it_shows`. The page
//! is made only from those names and the list of rows, so it cannot claim
//! a row that no test carries.

mod rows;

use std::fmt::Write as _;

use camino::Utf8Path;

use crate::test_functions::TestFunction;
use crate::tidy::{SourceFile, load_sources};
use crate::{Outcome, Stopped, page, test_functions};

pub(crate) use rows::{FaultRow, GROUPS, ROWS};

/// The generated page.
const PAGE: &str = "docs/generated/fault-matrix.md";

/// Compare the page of the fault matrix with the tests, or write it
///
/// Fails where a row has neither a test nor a stated reason, or where the page is not what the tests say.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {
    #[command(flatten)]
    page: page::Args,
}

/// A test that carries rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowTest<'a> {
    pub(crate) rows: Vec<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) path: &'a Utf8Path,
    pub(crate) line: usize,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let files = load_sources(root)?;
    let tests = tests(&files);
    let missing = missing(&tests);
    for row in &missing {
        println!("error: row {} has neither a test nor a reason: {}", row.number, row.title);
    }
    let made = page::Page {
        path: PAGE,
        source: "the list of tests",
        command: "fault-matrix",
        text: text(&tests),
        sum: sum(&tests),
    };
    let settled = made.settle(&args.page, root)?;
    Ok(if missing.is_empty() { settled } else { Outcome::Failed })
}

/// Returns every test that carries a row, in the order of files and lines.
pub(crate) fn tests(files: &[SourceFile]) -> Vec<RowTest<'_>> {
    let carried = test_functions::all(files).map(|test| {
        let TestFunction { name, path, line, .. } = test;
        RowTest { rows: numbers(name), name, path, line }
    });
    carried.filter(|test| !test.rows.is_empty()).collect()
}

/// Returns the numbers at the front of a name: each one letter and digits, followed by an underscore.
fn numbers(name: &str) -> Vec<&str> {
    let is_row = |word: &&str| {
        let mut chars = word.chars();
        let letter = chars.next();
        let digits = chars.as_str();
        letter.is_some_and(|letter| GROUPS.iter().any(|(group, _)| *group == letter))
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_digit())
    };
    let mut words: Vec<&str> = name.split('_').collect();
    // A description has to follow the numbers.
    words.pop();
    words.into_iter().take_while(is_row).collect()
}

/// Returns the rows that no test carries and that have no stated reason.
pub(crate) fn missing(tests: &[RowTest<'_>]) -> Vec<&'static FaultRow> {
    missing_of(ROWS, tests)
}

fn missing_of<'r>(rows: &'r [FaultRow], tests: &[RowTest<'_>]) -> Vec<&'r FaultRow> {
    rows.iter().filter(|row| row.without.is_none() && !is_carried(row, tests)).collect()
}

fn is_carried(row: &FaultRow, tests: &[RowTest<'_>]) -> bool {
    tests.iter().any(|test| test.rows.contains(&row.number))
}

fn sum(tests: &[RowTest<'_>]) -> String {
    let held = ROWS.iter().filter(|row| is_carried(row, tests)).count();
    format!("{held} of {} rows are shown by {} tests", ROWS.len(), tests.len())
}

fn text(tests: &[RowTest<'_>]) -> String {
    let mut page = String::from(
        "# Fault matrix\n\n\
         What the software is held to when something goes wrong, and the test that shows it. This page is made by\n\
         `cargo xtask fault-matrix --write` from the names of the tests, which carry the numbers of their rows;\n\
         `cargo xtask ci` fails where it is not current.\n\n",
    );
    writeln!(page, "{}.", sum(tests)).expect("a string can be written to");
    for (letter, title) in GROUPS {
        let name = letter.to_ascii_uppercase();
        write!(page, "\n## {name}. {title}\n\n| row | fault and what has to happen | shown by |\n|---|---|---|\n")
            .expect("a string can be written to");
        for row in ROWS.iter().filter(|row| row.number.starts_with(*letter)) {
            let shown = shown_by(row, tests);
            let number = row.number.to_ascii_uppercase();
            let note = row.note.map_or_else(String::new, |note| format!(" *{note}*"));
            writeln!(page, "| {number} | {}{note} | {shown} |", row.title)
                .expect("a string can be written to");
        }
    }
    page
}

fn shown_by(row: &FaultRow, tests: &[RowTest<'_>]) -> String {
    let carried: Vec<String> = tests
        .iter()
        .filter(|test| test.rows.contains(&row.number))
        .map(|test| format!("[`{}`](../../{})", test.name, test.path))
        .collect();
    match (carried.is_empty(), row.without) {
        (false, _) => carried.join("<br>"),
        (true, Some(why)) => format!("**no test**: {why}"),
        (true, None) => "**missing**".to_owned(),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn file(names: &[&str]) -> SourceFile {
        let tests: Vec<_> = names.iter().map(|name| format!("#[test]\nfn {name}() {{}}")).collect();
        SourceFile { path: "a.rs".into(), text: tests.join("\n") }
    }

    #[test]
    fn every_number_at_the_front_of_a_name_counts() {
        assert_eq!(numbers("b8_the_verdict_is_taken_at_exit"), ["b8"]);
        assert_eq!(numbers("a8_a9_a12_never_again"), ["a8", "a9", "a12"]);
        assert_eq!(numbers("a_b8_in_the_middle"), [""; 0]);
        assert_eq!(numbers("x1_is_no_group"), [""; 0]);
        assert_eq!(numbers("b8"), [""; 0]);
    }

    #[test]
    fn there_are_177_rows_in_order_and_each_number_once() {
        let groups = [
            ('a', 32),
            ('b', 24),
            ('c', 21),
            ('d', 23),
            ('e', 15),
            ('f', 16),
            ('g', 10),
            ('h', 36),
        ];
        let expected: Vec<String> = groups
            .iter()
            .flat_map(|(group, rows)| (1..=*rows).map(move |row| format!("{group}{row}")))
            .collect();
        assert_eq!(expected.len(), 177);
        assert_eq!(ROWS.iter().map(|row| row.number).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_row_with_a_reason_is_not_missing() {
        let rows =
            [rows::row("b1", "hangs"), rows::row("b2", "ignores").without("nobody can show it")];
        let numbers: Vec<&str> = missing_of(&rows, &[]).iter().map(|row| row.number).collect();
        assert_eq!(numbers, ["b1"]);
    }

    #[test]
    fn a_row_without_test_and_reason_is_missing_and_the_page_says_so() {
        let files = [file(&["a1_shown", "not_a_row"])];
        let tests = tests(&files);
        let missing = missing(&tests);
        assert!(missing.iter().all(|row| row.number != "a1"));
        assert!(missing.iter().any(|row| row.number == "b1"));
        let page = text(&tests);
        assert!(page.contains("[`a1_shown`](../../a.rs)"), "{page}");
        assert!(page.contains("| B1 |") && page.contains("**missing**"), "{page}");
        assert!(page.contains("1 of 177 rows"), "{page}");
    }
}
