//! A gate report as a `JUnit` file, which CI systems show.

use std::time::Duration;

use pdca_state::{GateReport, GateResult, GateRow};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// Renders a suite with a case for each row that a gate was asked for.
///
/// A red row that does not block, and one without a verdict, is skipped with its reason: a failed case fails a build.
///
/// # Panics
/// Never: the writer drops what XML cannot carry.
pub fn junit_report(report: &GateReport) -> String {
    let mut file = Report::new("pdca gates");
    file.add_test_suite(junit_suite(report));
    file.to_string().expect("because quick-junit drops what XML cannot carry")
}

/// Returns the suite by itself, for files with several.
pub fn junit_suite(report: &GateReport) -> TestSuite {
    let name = report.issue_dir.as_str();
    let rows = report.rows.iter().filter(|row| row.result != GateResult::None);
    let mut suite = TestSuite::new(name);
    suite.add_test_cases(rows.map(|row| case(name, row)));
    suite
}

fn case(class: &str, row: &GateRow) -> TestCase {
    let name = if row.rule_id.is_empty() { &row.check } else { &row.rule_id };
    let mut case = TestCase::new(name.as_str(), status(row));
    case.set_classname(class);
    if let Some(took) = row.duration_ms {
        case.set_time(Duration::from_millis(took));
    }
    case
}

fn status(row: &GateRow) -> TestCaseStatus {
    match (row.result, row.gating) {
        (GateResult::Pass, _) => TestCaseStatus::success(),
        (GateResult::Fail, true) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("gate").set_message(row.reason()).set_description(detail(row));
            status
        }
        (GateResult::Fail, false) => skipped("red and advisory", row),
        (GateResult::Unverifiable | GateResult::Deferred | GateResult::None, _) => {
            skipped(row.result.as_str(), row)
        }
    }
}

fn skipped(why: &str, row: &GateRow) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(format!("{why}: {}", row.reason()));
    status
}

fn detail(row: &GateRow) -> String {
    let failing = row.failing_tests().map(|tests| format!("failing: {tests}"));
    let again = row.reproduce.as_ref().map(|command| format!("again: {command}"));
    [Some(row.check.clone()), failing, again].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use pdca_state::{Element, Provenance};

    use super::*;

    fn row(id: &str, result: GateResult, gating: bool, evidence: &str) -> (Element, GateRow) {
        let row = GateRow {
            check: format!("T3 {id}"),
            result,
            oracle: "cmd".to_owned(),
            rule_id: id.to_owned(),
            path_line: evidence.to_owned(),
            gating,
            duration_ms: Some(1500),
            failing: vec!["a::b <&> ]]>".to_owned()],
            ..GateRow::none(Element::T3)
        };
        (Element::T3, row)
    }

    #[test]
    fn each_row_is_a_case_and_only_a_row_that_blocks_fails() {
        let rows = vec![
            row("green", GateResult::Pass, true, ""),
            row("red", GateResult::Fail, true, "1 < 2 \u{1b}[31m]]>\u{0}"),
            row("advice", GateResult::Fail, false, "so so"),
            row("unknown", GateResult::Unverifiable, true, "no test"),
        ];
        let text = junit_report(&GateReport::assemble("issue_7", rows, Provenance::default()));
        for part in [
            "tests=\"4\"",
            "failures=\"1\"",
            "<testcase name=\"green\" classname=\"issue_7\" time=\"1.500\"/>",
            "message=\"1 &lt; 2 ",
            "failing: a::b &lt;&amp;&gt; ]]&gt;",
            "<skipped message=\"red and advisory: so so\"/>",
            "<skipped message=\"unverifiable: no test\"/>",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains(['\u{1b}', '\u{0}']), "{text:?}");
    }
}
