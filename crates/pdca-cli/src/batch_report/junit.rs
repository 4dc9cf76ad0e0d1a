//! A `JUnit` file: a suite for each bundle with its gates as cases, and one for what was integrated.

use pdca_gates::junit_suite;
use pdca_journal::events::IntegrationStep;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use pdca_workspace::batch_report::Text;
use pdca_workspace::batch_report::WorkspaceReport;

/// Renders the gates of every bundle in the report, and the landings of its integrations.
pub(crate) fn junit(report: &WorkspaceReport) -> String {
    let mut file = quick_junit::Report::new(report.project.as_str());
    for bundle in &report.bundles {
        let Some(gates) = &bundle.report else { continue };
        let mut suite = junit_suite(gates);
        if !bundle.title.is_empty() {
            suite.add_property(("title", bundle.title.as_str()));
        }
        file.add_test_suite(suite);
    }
    file.add_test_suites(together(report));
    xml(&file)
}

fn xml(file: &quick_junit::Report) -> String {
    file.to_string().expect("because quick-junit drops what XML cannot carry")
}

/// A suite with a case for each change that an integration landed or held.
fn together(report: &WorkspaceReport) -> Option<TestSuite> {
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
