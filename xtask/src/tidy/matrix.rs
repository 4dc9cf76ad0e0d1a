//! Checks that tests with rows of the fault matrix carry their numbers: `b8_ends_at_exit_…`.

use std::collections::BTreeMap;

use camino::Utf8Path;

use super::{Finding, SourceFile};
use crate::fault_matrix::{self, FaultRow, ROWS, RowTest};

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let tests = fault_matrix::tests(files);
    let mut findings = unknown(&tests);
    findings.extend(repeated(&tests));
    findings.extend(fault_matrix::missing(&tests).into_iter().map(without));
    findings
}

fn unknown(tests: &[RowTest<'_>]) -> Vec<Finding> {
    let exists = |number: &str| ROWS.iter().any(|row| row.number == number);
    let mut findings = Vec::new();
    for test in tests {
        for number in test.rows.iter().filter(|number| !exists(number)) {
            let what = format!("{number} is not a row of the fault matrix");
            findings.push(Finding::error(test.path, test.line, what));
        }
    }
    findings
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

fn without(row: &FaultRow) -> Finding {
    let what =
        format!("no test carries row {} of the fault matrix, and no reason says why", row.number);
    Finding::error(Utf8Path::new("xtask/src/fault_matrix/rows.rs"), None, what)
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
    fn a_function_that_is_no_test_carries_nothing() {
        let helper = SourceFile { path: "a.rs".into(), text: "fn b1_helper() {}\n".to_owned() };
        assert!(fault_matrix::tests(&[helper]).is_empty());
    }

    #[test]
    fn the_same_name_in_two_files_is_found() {
        let files =
            [file("one.rs", &["b1_hangs", "b1_hangs_twice"]), file("two.rs", &["b1_hangs"])];
        let tests = fault_matrix::tests(&files);
        assert_eq!(whats(repeated(&tests)), ["`b1_hangs` is also a test at one.rs:2"]);
    }

    #[test]
    fn a_number_past_the_end_of_its_group_is_found() {
        let files = [file("a.rs", &["b24_fine", "b25_beyond", "a1_g0_before"])];
        assert_eq!(
            whats(unknown(&fault_matrix::tests(&files))),
            ["b25 is not a row of the fault matrix", "g0 is not a row of the fault matrix"]
        );
    }

    #[test]
    fn a_row_without_a_test_and_without_a_reason_is_found() {
        let files = [file("a.rs", &["b1_hangs"])];
        let found = whats(check(&files));
        assert!(found.iter().any(|what| what.starts_with("no test carries row b2 ")), "{found:?}");
        assert!(!found.iter().any(|what| what.starts_with("no test carries row b1 ")), "{found:?}");
    }
}
