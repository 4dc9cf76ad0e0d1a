use std::collections::BTreeMap;

use pdca_driver::{SplitBy, SplitInto, Unwatched};
use pdca_state::BundleId;
use pdca_testkit::TestWorkspace;

use super::*;
use crate::config::{Environment, Machine, workspace};
use crate::{OpenWorkspace, OperationError};

/// Runs an operation on a workspace, as a command without a terminal does.
fn opened<T>(
    files: &TestWorkspace,
    dry_run: bool,
    operation: impl FnOnce(&OpenWorkspace<'_>) -> T,
) -> T {
    let variables = BTreeMap::new();
    let environment = Environment { variables: &variables, cwd: files.path() };
    let options = workspace::LoadOptions::default();
    let workspace = workspace::Workspace::load(options, environment).unwrap();
    let machine = Machine {
        pid: 7,
        program: None,
        now: 0,
        clock: || 0,
        moment: || pdca_journal::Moment {
            wall: jiff::Timestamp::UNIX_EPOCH,
            uptime: std::time::Duration::ZERO,
        },
        fixed_date: Some(0),
        utc_offset: || 0,
        has_terminal: false,
    };
    operation(&OpenWorkspace { workspace: &workspace, environment, machine, dry_run })
}

fn id(text: &str) -> BundleId {
    text.parse().unwrap()
}

fn refusal(error: OperationError) -> PlanningError {
    let OperationError::Planning(error) = error else { panic!("{error:?}") };
    error
}

#[test]
fn groups_are_written_only_if_asked_for_and_never_by_a_dry_run() {
    let files = TestWorkspace::new();
    files.brief("1", &[("Touches", "src")]);
    files.brief("2", &[("Touches", "src/a.rs")]);
    let write = PlanRequest { write: true, ..PlanRequest::default() };
    let fate = |dry_run, request: &PlanRequest<'_>| {
        let planned = opened(&files, dry_run, |open| plan(open, request)).unwrap();
        assert_eq!(planned.view.groups.len(), 1);
        let file = planned.view.lanes_file.unwrap();
        (file.was, file.written, file.would_write)
    };
    assert_eq!(fate(false, &PlanRequest::default()), (Some(LanesFileState::Absent), false, false));
    assert_eq!(fate(true, &write), (Some(LanesFileState::Absent), false, true));
    assert!(!files.has("lanes.json"));
    assert_eq!(fate(false, &write), (None, true, false));
    assert_eq!(fate(false, &PlanRequest::default()), (Some(LanesFileState::Current), false, false));
}

#[test]
fn a_rejected_batch_has_the_problems_of_the_briefs_and_of_the_groups_in_one_error() {
    let files = TestWorkspace::new();
    files.brief("1", &[("Depends on", "1")]);
    files.write("lanes.json", "{");
    let error = opened(&files, false, |open| plan(open, &PlanRequest::default())).unwrap_err();
    let PlanningError::Rejected { rejection, lanes_file } = refusal(error) else { panic!() };
    assert_eq!(rejection.problems.len(), 1);
    let of_file = refusal(*lanes_file.unwrap());
    assert!(matches!(of_file, PlanningError::LanesFile { line: Some(1), .. }), "{of_file:?}");
}

#[test]
fn widening_a_brief_returns_the_rivals_that_are_new() {
    let files = TestWorkspace::new();
    files.brief("1", &[("Touches", "src/a.rs")]);
    files.brief("2", &[("Touches", "docs")]);
    let globs = ["docs/a.md".to_owned()];
    let request =
        WidenRequest { id: &id("1"), globs: &globs, reason: "why", by: "ada", date: "2026-11-16" };
    let before = files.read("results/issue_1/brief.md");
    let foreseen = opened(&files, true, |open| widen(open, &request)).unwrap();
    assert_eq!(files.read("results/issue_1/brief.md"), before);
    let done = opened(&files, false, |open| widen(open, &request)).unwrap();
    for widened in [foreseen, done] {
        assert_eq!(widened.added, globs);
        let rivals = widened.new_rivals.unwrap();
        assert_eq!(rivals[0].id, id("2"));
        assert_eq!(rivals[0].witness.as_deref(), Some("docs/a.md"));
    }
    let again = opened(&files, false, |open| widen(open, &request)).unwrap();
    assert!(again.added.is_empty());
}

#[test]
fn a_name_of_a_part_is_refused_before_anything_is_read() {
    let files = TestWorkspace::new();
    files.brief("1", &[]);
    let into = SplitInto::Names(vec!["api".to_owned(), "api".to_owned()]);
    let by = SplitBy { by: "ada", date: "2026-11-16" };
    let request = SplitRequest { id: &id("1"), into: &into, by };
    let error = opened(&files, false, |open| split(open, &request, &Unwatched)).unwrap_err();
    assert!(matches!(refusal(error), PlanningError::PartName { name } if name == "api"));
}
