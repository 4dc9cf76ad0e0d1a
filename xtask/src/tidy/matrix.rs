//! Tests that carry a row of the fault matrix carry its number: `b8_ends_at_exit_…`.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::{Finding, SourceFile};

/// The groups of the fault matrix and the number of rows in each.
const GROUPS: &[(char, u32)] =
    &[('a', 32), ('b', 24), ('c', 21), ('d', 22), ('e', 15), ('f', 16), ('g', 10)];

/// Rows that are held today. A row is added here with the code that holds it.
const HELD: &[&str] = &[
    "a1", "a15", "a16", "a17", "a18", "a19", "a20", "a21", "a22", "a23", "a24", "a25", "a32", "b1",
    "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b16", "b18", "b19", "b20",
    "b21", "b22", "b24", "c1", "c2", "c4", "c7", "c8", "c9", "c14", "c15", "c21", "d10", "d11",
    "d12", "d13", "d15", "d17", "d18", "e1", "e4", "e6", "e7", "e8", "e9", "e10", "e13", "e14",
    "e15", "f1", "f2", "f4", "f5", "f8", "f9", "f15", "g1", "g2", "g3", "g4", "g5", "g6", "g7",
    "g8", "g9", "g10",
];

/// A test named after a row.
#[derive(Debug, Clone)]
struct RowTest<'a> {
    row: &'a str,
    name: &'a str,
    path: &'a Utf8Path,
    line: usize,
}

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let tests: Vec<RowTest<'_>> = files
        .iter()
        .filter(|file| file.path.extension() == Some("rs"))
        .flat_map(row_tests)
        .collect();
    let mut findings = unknown(&tests);
    findings.extend(repeated(&tests));
    findings.extend(missing(&tests, HELD));
    findings
}

fn row_tests(file: &SourceFile) -> Vec<RowTest<'_>> {
    let mut tests = Vec::new();
    let mut in_test = false;
    for (line, text) in (1..).zip(file.text.lines()) {
        let text = text.trim();
        if text == "#[test]" {
            in_test = true;
        } else if let Some(rest) = text.strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            if in_test && let Some(row) = row(name) {
                tests.push(RowTest { row, name, path: &file.path, line });
            }
            in_test = false;
        }
    }
    tests
}

/// The row in front of the first underscore: one letter, then digits.
fn row(name: &str) -> Option<&str> {
    let (row, _) = name.split_once('_')?;
    let mut chars = row.chars();
    let letter = chars.next()?;
    let digits = chars.as_str();
    let is_row = GROUPS.iter().any(|(group, _)| *group == letter)
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_digit());
    is_row.then_some(row)
}

fn unknown(tests: &[RowTest<'_>]) -> Vec<Finding> {
    let exists = |row: &str| {
        GROUPS.iter().any(|(group, rows)| {
            row.strip_prefix(*group)
                .and_then(|digits| digits.parse::<u32>().ok())
                .is_some_and(|number| (1..=*rows).contains(&number))
        })
    };
    tests
        .iter()
        .filter(|test| !exists(test.row))
        .map(|test| {
            let what = format!("{} is not a row of the fault matrix", test.row);
            Finding::error(test.path, test.line, what)
        })
        .collect()
}

fn repeated(tests: &[RowTest<'_>]) -> Vec<Finding> {
    let mut first: BTreeMap<&str, &RowTest<'_>> = BTreeMap::new();
    let mut findings = Vec::new();
    for test in tests {
        if let Some(other) = first.get(test.name) {
            let what = format!("`{}` is also a test at {}:{}", test.name, other.path, other.line);
            findings.push(Finding::error(test.path, test.line, what));
        } else {
            first.insert(test.name, test);
        }
    }
    findings
}

fn missing(tests: &[RowTest<'_>], held: &[&str]) -> Vec<Finding> {
    let carried: BTreeSet<&str> = tests.iter().map(|test| test.row).collect();
    held.iter()
        .filter(|row| !carried.contains(*row))
        .map(|row| {
            let what = format!("no test carries row {row} of the fault matrix");
            Finding::error(Utf8Path::new("crates"), None, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, names: &[&str]) -> SourceFile {
        let tests: Vec<_> = names.iter().map(|name| format!("#[test]\nfn {name}() {{}}")).collect();
        SourceFile { path: path.into(), text: tests.join("\n") }
    }

    fn whats(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn a_row_is_read_from_the_front_of_a_test_name() {
        assert_eq!(row("b8_the_verdict_is_taken_at_exit"), Some("b8"));
        assert_eq!(row("b10_driver_killed"), Some("b10"));
        assert_eq!(row("both_sides"), None);
        assert_eq!(row("x1_is_no_group"), None);
        assert_eq!(row("b8"), None);
    }

    #[test]
    fn a_function_that_is_no_test_carries_nothing() {
        let helper = SourceFile { path: "a.rs".into(), text: "fn b1_helper() {}\n".to_owned() };
        assert!(row_tests(&helper).is_empty());
    }

    #[test]
    fn the_same_name_in_two_files_is_found() {
        let files =
            [file("one.rs", &["b1_hangs", "b1_hangs_twice"]), file("two.rs", &["b1_hangs"])];
        let tests: Vec<_> = files.iter().flat_map(row_tests).collect();
        assert_eq!(whats(repeated(&tests)), ["`b1_hangs` is also a test at one.rs:2"]);
    }

    #[test]
    fn a_number_past_the_end_of_its_group_is_found() {
        let file = file("a.rs", &["b24_fine", "b25_beyond", "g0_before"]);
        assert_eq!(
            whats(unknown(&row_tests(&file))),
            ["b25 is not a row of the fault matrix", "g0 is not a row of the fault matrix"]
        );
    }

    #[test]
    fn a_held_row_without_a_test_is_found() {
        let file = file("a.rs", &["b1_hangs"]);
        assert_eq!(
            whats(missing(&row_tests(&file), &["b1", "b2"])),
            ["no test carries row b2 of the fault matrix"]
        );
    }
}
