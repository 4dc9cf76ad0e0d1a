//! JUnit files: a suite for each bundle with its gates as cases, and one for what was integrated.

use std::time::Duration;

use pdca_events::IntegrationStep;
use pdca_state::GateResult;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::model::{BundlePage, GateView, Report};
use crate::text::Text;

/// Renders the gates of every bundle in the report, and the landings of its integrations.
pub fn junit(report: &Report) -> String {
    let suites = report
        .bundles
        .iter()
        .filter(|bundle| !bundle.gates.is_empty())
        .map(|bundle| suite(&bundle.id.dir_name(), &bundle.gates).title(bundle))
        .map(|suite| suite.0);
    write(report.project.as_str(), suites.chain(together(report)))
}

/// Renders gates that ran outside a bundle, such as those over a working tree.
pub fn junit_of_gates(name: &str, gates: &[GateView]) -> String {
    write(name, [suite(name, gates).0])
}

fn write(name: &str, suites: impl IntoIterator<Item = TestSuite>) -> String {
    let mut file = quick_junit::Report::new(name);
    file.add_test_suites(suites);
    file.to_string().expect("because text without control characters is XML")
}

struct Suite(TestSuite);

impl Suite {
    fn title(mut self, bundle: &BundlePage) -> Self {
        if !bundle.title.is_empty() {
            self.0.add_property(("title", bundle.title.as_str()));
        }
        self
    }
}

fn suite(name: &str, gates: &[GateView]) -> Suite {
    let mut suite = TestSuite::new(name);
    suite.add_test_cases(gates.iter().map(|gate| case(name, gate)));
    Suite(suite)
}

fn case(class: &str, gate: &GateView) -> TestCase {
    let name = if gate.rule_id.is_empty() { &gate.check } else { &gate.rule_id };
    let mut case = TestCase::new(name.as_str(), status(gate));
    case.set_classname(class);
    if let Some(took) = gate.duration_ms {
        case.set_time(Duration::from_millis(took));
    }
    case
}

/// An advisory row that is red does not fail a build, so it is skipped with its reason.
fn status(gate: &GateView) -> TestCaseStatus {
    match (gate.result, gate.gating) {
        (GateResult::Pass, _) => TestCaseStatus::success(),
        (GateResult::Fail, true) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("gate").set_message(gate.evidence.as_str());
            status.set_description(detail(gate));
            status
        }
        (GateResult::Fail, false) => skipped(&format!("red and advisory: {}", gate.evidence)),
        (GateResult::Unverifiable | GateResult::Deferred | GateResult::None, _) => {
            skipped(&format!("{}: {}", gate.result, gate.evidence))
        }
    }
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(why);
    status
}

fn detail(gate: &GateView) -> String {
    let mut lines: Vec<String> =
        gate.failing.iter().map(|test| format!("failed: {test}")).collect();
    if gate.failing_more > 0 {
        lines.push(format!("and {} more", gate.failing_more));
    }
    lines.extend(gate.reproduce.as_ref().map(|how| format!("again: {how}")));
    lines.extend(gate.log.as_ref().map(|log| format!("\n{log}")));
    lines.join("\n")
}

/// A suite with a case for each change that an integration landed or held.
fn together(report: &Report) -> Option<TestSuite> {
    let mut suite = TestSuite::new("together");
    for (said, step) in report.runs.iter().flat_map(|run| &run.steps) {
        match step {
            IntegrationStep::Landed { bundle, .. } => {
                suite.add_test_case(TestCase::new(bundle.as_str(), TestCaseStatus::success()));
            }
            IntegrationStep::Held { bundle, rows, failing, .. } => {
                let status = held(said, rows, failing);
                suite.add_test_case(TestCase::new(bundle.as_str(), status));
            }
            IntegrationStep::BaseMoved { .. }
            | IntegrationStep::Gating { .. }
            | IntegrationStep::Green { .. }
            | IntegrationStep::Red { .. }
            | IntegrationStep::NoVerdict { .. }
            | IntegrationStep::Flaky { .. }
            | IntegrationStep::Mended { .. } => {}
        }
    }
    (!suite.test_cases.is_empty()).then_some(suite)
}

fn held(said: &Text, rows: &[String], failing: &[String]) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let lines = rows.iter().map(|row| format!("red: {row}"));
    let lines = lines.chain(failing.iter().map(|test| format!("failed: {test}")));
    let lines: Vec<String> = lines.map(|line| Text::line(&line, 300).to_string()).collect();
    status.set_type("held").set_message(said.as_str()).set_description(lines.join("\n"));
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(rule: &str, result: GateResult, gating: bool, evidence: &str) -> GateView {
        GateView {
            rule_id: Text::line(rule, 60),
            check: Text::line("a check", 60),
            result,
            gating,
            evidence: Text::line(evidence, 300),
            failing: vec![Text::line("tests/a.sh <&> ]]>", 300)],
            failing_more: 2,
            duration_ms: Some(1500),
            flaky: false,
            note: None,
            reproduce: None,
            log: Some(Text::new("\u{1b}[31mred\u{1b}[0m \u{0} ]]> end")),
        }
    }

    #[test]
    fn another_parser_reads_the_same_cases() {
        let gates = [
            gate("T1", GateResult::Pass, true, ""),
            gate("T3", GateResult::Fail, true, "1 failed: <script> \u{1b}[1m\u{fffe}"),
            gate("T4", GateResult::Fail, false, "advice"),
            gate("C2", GateResult::Unverifiable, true, "no test"),
        ];
        let text = junit_of_gates("issue_7", &gates);
        let read = junit_parser::from_reader(text.as_bytes()).unwrap();
        assert_eq!((read.tests, read.failures, read.suites.len()), (4, 1, 1), "{text}");
        let cases = &read.suites[0].cases;
        let names: Vec<&str> = cases.iter().map(|case| case.original_name.as_str()).collect();
        assert_eq!(names, ["T1", "T3", "T4", "C2"]);
        assert!(cases[0].status.is_success());
        assert!(cases[2].status.is_skipped() && cases[3].status.is_skipped());
        let failure = cases[1].status.failure_as_ref();
        assert_eq!(failure.message, "1 failed: <script> \\u{fffe}");
        // That parser drops entities of a text, so only the rest of it is compared.
        assert!(failure.text.starts_with("failed: tests/a.sh"), "{failure:?}");
        assert!(failure.text.contains("and 2 more"), "{failure:?}");
        assert!(failure.text.contains("red \\u{0}"), "{failure:?}");
        assert!((cases[1].time - 1.5).abs() < 1e-9);
    }
}
