//! The content of the report, whichever checks take part.

use pdca_gates::{
    GateContext, GateEvent, GatesConfig, LaneNames, Purpose, Warning, close_report, preflight,
};
use pdca_state::{GateReport, GateResult, Overall};

use crate::stage::{Checkout, Stage, found, said};

#[test]
fn all_eleven_elements_appear_in_order_with_the_rows_of_each() {
    let mut stage = Stage::new();
    let outcome = stage.run(
        "[[checks]]\nid = 'T3-suite'\ntier = 'T3'\nlabel = 'suite'\ncmd = 'true'\n\
         [[checks]]\nid = 'C4-verify'\ntier = 'C4'\nlabel = 'red to green'\nscope = 'bundle'\ncmd = 'echo both'\n\
         [[checks]]\nid = 'T3-lint'\ntier = 'T3'\ngating = false\nargv = ['false']",
    );
    let report = outcome.report;
    let shown: Vec<String> = report
        .rows
        .iter()
        .map(|row| format!("{} {} {} {}", row.element, row.rule_id, row.result, row.gating))
        .collect();
    assert_eq!(
        shown,
        [
            "C1  none false",
            "C2  none false",
            "C3  none false",
            "C4 C4-verify pass true",
            "C5  none false",
            "T1  none false",
            "T2  none false",
            "T3 T3-suite pass true",
            "T3 T3-lint fail false",
            "T4  none false",
            "T5  none false",
            "V  none false",
        ]
    );
    assert_eq!(report.overall, Overall::Pass, "the red row does not gate");
    assert_eq!(report.issue_dir, "issue_7");
    assert_eq!(report.base.as_deref(), Some("0123abcd"));
    let row = found(&report, "C4-verify");
    assert_eq!((row.check.as_str(), row.oracle.as_str()), ("C4 red to green", "echo both"));
    assert_eq!(row.log.as_deref(), Some("gate-logs/C4-verify.log"));
    assert!(row.duration_ms.is_some());
    let read = GateReport::parse(report.to_json().as_bytes()).unwrap();
    assert_eq!(read, report);
}

#[test]
fn a_gating_failure_fails_the_report() {
    let mut stage = Stage::new();
    let report = stage.run("checks = [{ id = 'a', tier = 'T1', cmd = 'exit 1' }]").report;
    assert_eq!(report.overall, Overall::Fail);
    let report = stage.run("checks = [{ id = 'a', tier = 'T1', cmd = 'exit 77' }]").report;
    assert_eq!(report.overall, Overall::Pass, "it counts neither way");
}

#[test]
fn with_nothing_configured_the_report_says_that_it_is_a_stub() {
    let mut stage = Stage::new();
    let outcome = stage.run("");
    assert_eq!(outcome.warnings, [Warning::NothingConfigured]);
    assert!(Warning::NothingConfigured.to_string().contains("nothing real was checked"));
    let stubs = outcome.report.rows.iter().filter(|row| row.check.contains("(stub)"));
    assert_eq!(stubs.count(), 6);
}

#[test]
fn a_closed_bundle_has_nothing_to_verify() {
    let report = close_report(&Stage::new().bundle);
    assert_eq!((report.issue_dir.as_str(), report.overall), ("issue_7", Overall::Pass));
    let gates = report.rows.iter().filter(|row| row.path_line.starts_with("N/A"));
    assert_eq!(gates.count(), 6);
}

#[test]
fn a_working_tree_is_checked_by_the_rows_about_the_repository() {
    let mut stage = Stage::new();
    let rows = "[[checks]]\nid = 'repo'\ntier = 'T1'\nwhen = 'Surfaces: gui'\n\
                cmd = 'test -z \"$PDCA_BUNDLE\" && echo tree'\n\
                [[checks]]\nid = 'bundle'\ntier = 'C4'\nscope = 'bundle'\ncmd = 'false'";
    let set = |scene: &mut GateContext<'_>| {
        scene.purpose = Purpose::WorkingTree;
        (scene.bundle, scene.brief) = (None, None);
    };
    let report = stage.run_with(rows, None, set).unwrap().report;
    assert_eq!(report.issue_dir, "working-tree");
    assert_eq!(said(&found(&report, "repo")), "pass: tree");
    assert!(report.rows.iter().all(|row| row.rule_id != "bundle"));
    assert!(!stage.workspace.has("results/issue_7/gate-logs"));
}

#[test]
fn a_run_in_which_no_row_takes_part_says_so() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'bundle', tier = 'C4', scope = 'bundle', cmd = 'false' }]";
    let outcome = stage.run_with(rows, None, |scene| scene.purpose = Purpose::Combined).unwrap();
    assert_eq!(outcome.warnings, [Warning::NothingApplies]);
    assert_eq!(outcome.report.overall, Overall::Pass);
}

#[test]
fn a_row_that_is_not_for_this_brief_is_shown_and_not_run() {
    let mut stage = Stage::new();
    let row =
        stage.row("when = { field = 'Surfaces', substring = 'gui' }\ncmd = 'touch ran; false'");
    assert_eq!(said(&row), "none: not for this brief, unless `Surfaces` has `gui`");
    assert!(!row.gating);
    assert!(!stage.workspace.has("ran"));
    assert!(matches!(&stage.events[..], [GateEvent::RowSkipped { .. }]), "{:?}", stage.events);
    let row = stage.row("when = 'Surfaces CLI'\ncmd = 'false'");
    assert_eq!(row.result, GateResult::Fail);
}

#[test]
fn a_row_that_needs_a_lane_is_not_run_without_one() {
    let mut stage = Stage::new();
    let row =
        "checks = [{ id = 'gate', tier = 'T3', needs_lane = true, cmd = 'echo lane $PDCA_LANE' }]";
    let without = found(&stage.run(row).report, "gate");
    assert_eq!(said(&without), "unverifiable: not run: needs a lane, and this run has none");
    let lane = LaneNames { slot: 3, ..LaneNames::default() };
    let mut tree = Checkout::of(&stage.checkout);
    // Leaked, because the context borrows it for longer than this test does.
    let lane: &'static LaneNames = Box::leak(Box::new(lane));
    let with = stage.run_with(row, Some(&mut tree), |scene| scene.lane = Some(lane)).unwrap();
    assert_eq!(said(&found(&with.report, "gate")), "pass: lane 3");
}

#[test]
fn a_row_that_needs_a_checkout_is_not_run_without_one() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cwd = 'worktree', cmd = 'true' }]";
    let outcome = stage.run_with(rows, None, |scene| scene.worktree = None).unwrap();
    let row = found(&outcome.report, "gate");
    assert_eq!(said(&row), "unverifiable: not run: needs a checkout, and there is none");
}

#[test]
fn a_row_that_does_not_say_where_runs_in_the_checkout_if_there_is_one() {
    let mut stage = Stage::new();
    let rows =
        "checks = [{ id = 'gate', tier = 'T1', cwd = 'auto', cmd = 'ls a.txt || ls pdca.toml' }]";
    let row = found(&stage.run(rows).report, "gate");
    assert_eq!(said(&row), "pass: a.txt");
    let outcome = stage.run_with(rows, None, |scene| scene.worktree = None);
    let row = found(&outcome.unwrap().report, "gate");
    assert_eq!(said(&row), "pass: pdca.toml");
}

#[test]
fn a_row_defers_only_to_a_publish_that_runs_it_again() {
    let mut stage = Stage::new();
    let cmd = "cmd = 'echo PDCA-DEFERRED: no draft yet'";
    let row = stage.row(&format!("at_publish = true\n{cmd}"));
    assert_eq!(said(&row), "deferred: no draft yet");
    let row = stage.row(cmd);
    assert_eq!(row.result, GateResult::Pass);
}

#[test]
fn lesson_03_the_record_of_a_frozen_bundle_is_not_touched() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'echo x' }]";
    let mut tree = Checkout::of(&stage.checkout);
    let before = fs_err::read_dir(stage.bundle.dir()).unwrap().count();
    let outcome = stage.run_with(rows, Some(&mut tree), |scene| scene.keep_logs = false).unwrap();
    assert_eq!(found(&outcome.report, "gate").log, None);
    assert_eq!(fs_err::read_dir(stage.bundle.dir()).unwrap().count(), before);
}

#[test]
fn lesson_12_what_cannot_start_is_known_before_anything_runs() {
    let stage = Stage::new();
    stage.script("here.sh", "true");
    let checks: GatesConfig = toml::from_str(
        "[[checks]]\nid = 'here'\ntier = 'T1'\ncmd = './here.sh --all'\n\
         [[checks]]\nid = 'gone'\ntier = 'T2'\nargv = ['no-such-tool']\n\
         [[checks]]\nid = 'builtin'\ntier = 'T3'\ncmd = 'cd x && no-such-tool'",
    )
    .unwrap();
    let mut scene =
        GateContext::new(Purpose::Bundle, stage.workspace.path(), stage.workspace.path());
    scene.search_path = Some("/usr/bin:/bin".as_ref());
    let unready = preflight(&checks.checks().unwrap(), &scene);
    let shown: Vec<String> =
        unready.iter().map(|row| format!("{}: {}", row.rule_id, row.fault)).collect();
    assert_eq!(shown, ["gone: `no-such-tool` not found"]);
}

#[test]
fn rows_are_counted_and_ended_in_order() {
    let mut stage = Stage::new();
    stage.run(
        "[[checks]]\nid = 'a'\ntier = 'T1'\ncmd = 'true'\n\
         [[checks]]\nid = 'b'\ntier = 'T1'\nlabel = 'bee'\ncmd = 'exit 1'",
    );
    let told: Vec<String> = stage
        .events
        .iter()
        .filter_map(|event| match event {
            GateEvent::RowStarted { rule_id, label, k, n } => {
                Some(format!("{k}/{n} {rule_id} {label}"))
            }
            GateEvent::RowEnded { rule_id, result, gating, .. } => {
                Some(format!("{rule_id} {result} {gating}"))
            }
            GateEvent::RowSkipped { .. }
            | GateEvent::Alive { .. }
            | GateEvent::RowAgain { .. }
            | GateEvent::Denied { .. }
            | GateEvent::Fixed { .. } => None,
        })
        .collect();
    assert_eq!(told, ["1/2 a a", "a pass true", "2/2 b bee", "b fail true"]);
}
