//! Results of an earlier driver are reused.

use pdca_gates::{GateEvent, GatesError};
use pdca_state::{GateReport, GateResult};

use crate::stage::{Checkout, Stage, found, said};

const COUNTED: &str =
    "checks = [{ id = 'gate', tier = 'T1', cmd = 'echo ran >> ran; echo PDCA-EVIDENCE: counted' }]";

fn reused(stage: &Stage) -> Vec<bool> {
    let ended = stage.events.iter().filter_map(|event| match event {
        GateEvent::RowEnded { reused, .. } => Some(*reused),
        GateEvent::RowStarted { .. }
        | GateEvent::RowSkipped { .. }
        | GateEvent::Alive { .. }
        | GateEvent::RowAgain { .. }
        | GateEvent::Denied { .. }
        | GateEvent::Fixed { .. } => None,
    });
    ended.collect()
}

#[test]
fn a11_a_verdict_that_stands_is_used_and_nothing_runs() {
    let mut stage = Stage::new();
    let first = stage.run(COUNTED).report;
    let second = stage.run(COUNTED).report;
    assert_eq!(stage.count("ran"), 1);
    assert_eq!(first, second, "the report is the same to the last byte");
    assert_eq!(reused(&stage), [false, true]);
    assert_eq!(said(&found(&second, "gate")), "pass: counted");
}

#[test]
fn another_tree_is_another_verdict() {
    let mut stage = Stage::new();
    stage.run(COUNTED);
    stage.checkout.write("a.txt", "changed\n");
    stage.checkout.commit("another change");
    stage.run(COUNTED);
    assert_eq!(stage.count("ran"), 2);
    assert_eq!(reused(&stage), [false, false]);
}

#[test]
fn lesson_02_a_verdict_from_before_the_patch_does_not_count_for_the_patch() {
    let mut stage = Stage::new();
    let run = |stage: &mut Stage, digest| {
        stage.run_with(COUNTED, None, |scene| scene.patch_digest = digest).unwrap()
    };
    assert_eq!(run(&mut stage, None).report.patch_digest, None);
    let report = run(&mut stage, Some("digest")).report;
    assert_eq!(report.patch_digest.as_deref(), Some("digest"));
    assert_eq!(stage.count("ran"), 2);
}

#[test]
fn an_edited_test_of_the_bundle_is_another_verdict_for_rows_about_the_bundle() {
    for (scope, runs) in [("bundle", 3), ("repo", 1)] {
        let mut stage = Stage::new();
        stage.workspace.brief("7", &[("Test file", "`./tests/new.rs`")]);
        let rows = format!(
            "checks = [{{ id = 'gate', tier = 'T1', scope = '{scope}', cmd = 'echo ran >> ran' }}]"
        );
        stage.run(&rows);
        stage.workspace.write("results/issue_7/tests/new.rs", "one");
        stage.run(&rows);
        stage.run(&rows);
        stage.workspace.write("results/issue_7/tests/new.rs", "two");
        stage.run(&rows);
        assert_eq!(stage.count("ran"), runs, "{scope}");
    }
}

#[test]
fn a_log_that_cannot_be_read_back_is_said_to_be_lost() {
    let mut stage = Stage::new();
    assert_eq!(found(&stage.run(COUNTED).report, "gate").note, None);
    let jobs = fs_err::read_dir(stage.jobs()).unwrap();
    let mut logs = jobs.map(|job| job.unwrap().path().join("log"));
    let log = logs.find(|path| path.exists()).unwrap();
    fs_err::remove_file(&log).unwrap();
    let note = |stage: &mut Stage| found(&stage.run(COUNTED).report, "gate").note.unwrap();
    assert_eq!(note(&mut stage), "log not whole: nothing is left of it");
    fs_err::create_dir(&log).unwrap();
    let said = note(&mut stage);
    assert!(said.starts_with("log not whole: cannot read "), "{said}");
    assert_eq!(stage.count("ran"), 1);
}

#[test]
fn a_verdict_without_proof_that_the_tree_was_left_alone_is_not_used() {
    let mut stage = Stage::new();
    stage.run(COUNTED);
    stage.doubt();
    stage.run(COUNTED);
    assert_eq!(stage.count("ran"), 2);
}

#[test]
fn a11_a_verdict_in_doubt_is_settled_while_the_checkout_is_as_the_gate_left_it() {
    let mut stage = Stage::new();
    let first = stage.run(COUNTED).report;
    stage.doubt();
    assert_eq!(stage.resume(COUNTED).report, first);
    assert_eq!(stage.count("ran"), 1);
    assert_eq!(reused(&stage), [false, true]);
}

#[test]
fn a11_a_gate_that_changed_tracked_files_is_void_after_a_crash_too() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cwd = 'worktree', \
        cmd = 'echo ran >> $PDCA_WORKSPACE/ran; echo x > a.txt' }]";
    let first = stage.run(rows).report;
    assert!(found(&first, "gate").path_line.starts_with("void: "), "{first:?}");
    stage.doubt();
    assert_eq!(stage.resume(rows).report, first);
    // A settled result stays valid, whatever happens to the checkout.
    assert_eq!(stage.run(rows).report, first);
    assert_eq!(stage.count("ran"), 1);
}

#[test]
fn a_verdict_in_doubt_is_not_settled_by_what_a_later_row_left() {
    let mut stage = Stage::new();
    let rows = "cwd = 'worktree'\n\
        [[checks]]\nid = 'sly'\ntier = 'T1'\ncmd = 'echo ran >> $PDCA_WORKSPACE/sly; echo x > a.txt'\n\
        [[checks]]\nid = 'good'\ntier = 'T2'\ncmd = 'echo ran >> $PDCA_WORKSPACE/good'";
    let first = stage.run(rows).report;
    stage.doubt();
    assert_eq!(without_times(&stage.resume(rows).report), without_times(&first));
    assert_eq!((stage.count("sly"), stage.count("good")), (2, 2));
}

fn without_times(report: &GateReport) -> GateReport {
    let mut report = report.clone();
    for row in &mut report.rows {
        row.duration_ms = None;
    }
    report
}

#[test]
fn rows_that_shared_a_checkout_are_settled_only_if_it_is_intact() {
    for (deed, runs) in [("true", 1), ("echo x > a.txt", 2)] {
        let mut stage = Stage::new();
        let rows = format!(
            "cwd = 'worktree'\nparallel = true\n\
             [[checks]]\nid = 'one'\ntier = 'T1'\nshares = true\ncmd = 'echo ran >> $PDCA_WORKSPACE/one; {deed}'\n\
             [[checks]]\nid = 'two'\ntier = 'T2'\nshares = true\ncmd = 'echo ran >> $PDCA_WORKSPACE/two'"
        );
        stage.run(&rows);
        stage.doubt();
        stage.resume(&rows);
        assert_eq!((stage.count("one"), stage.count("two")), (runs, runs), "{deed}");
    }
}

#[test]
fn without_a_checkout_a_plain_verdict_needs_no_proof() {
    let mut stage = Stage::new();
    stage.run_with(COUNTED, None, |_| {}).unwrap();
    stage.doubt();
    stage.run_with(COUNTED, None, |_| {}).unwrap();
    assert_eq!(stage.count("ran"), 1);
}

#[test]
fn a_verdict_that_is_the_hosts_fault_is_not_kept() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = './gate.sh 2>/dev/null' }]";
    let row = found(&stage.run(rows).report, "gate");
    assert_eq!(row.result, GateResult::Unverifiable);
    stage.script("gate.sh", "echo here now");
    let row = found(&stage.run(rows).report, "gate");
    assert_eq!(said(&row), "pass: here now");
}

#[test]
fn a10_a_gate_that_was_killed_runs_again() {
    let mut stage = Stage::new();
    let rows = "checks = [{ id = 'gate', tier = 'T1', cmd = 'echo ran >> ran; test -e go || kill -TERM $$' }]";
    let row = found(&stage.run(rows).report, "gate");
    assert_eq!(row.result, GateResult::Unverifiable);
    stage.workspace.write("go", "");
    let row = found(&stage.run(rows).report, "gate");
    assert_eq!((row.result, stage.count("ran")), (GateResult::Pass, 2));
}

#[test]
fn e15_a_torn_verdict_is_as_good_as_none() {
    let mut stage = Stage::new();
    stage.run(COUNTED);
    let jobs = fs_err::read_dir(stage.jobs()).unwrap();
    let mut verdicts = jobs.map(|job| job.unwrap().path().join("verdict.json"));
    let verdict = verdicts.find(|path| path.exists()).unwrap();
    fs_err::write(verdict, "{\"ver").unwrap();
    let row = found(&stage.run(COUNTED).report, "gate");
    assert_eq!(said(&row), "pass: counted");
    assert_eq!(stage.count("ran"), 2);
}

#[test]
fn a_stopped_run_has_no_report_and_keeps_what_was_finished() {
    let mut stage = Stage::new();
    let rows = "[[checks]]\nid = 'done'\ntier = 'T1'\ncmd = 'echo ran >> done'\n\
                [[checks]]\nid = 'long'\ntier = 'T2'\n\
                cmd = 'echo ran >> long; test -e go && exit 0; sleep 600'";
    let cancel = stage.cancel.clone();
    let long = stage.workspace.path().join("long");
    let stopper = std::thread::spawn(move || {
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(300);
        // Waits for the content and not for the file, because a shell creates it first and writes then.
        let began = || std::fs::read(&long).is_ok_and(|lines| !lines.is_empty());
        while !began() && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        cancel.cancel();
    });
    let error = stage.try_run(rows).unwrap_err();
    stopper.join().unwrap();
    assert!(matches!(error, GatesError::Cancelled), "{error}");

    stage.cancel = pdca_process::Cancel::new();
    stage.workspace.write("go", "");
    let report = stage.run(rows).report;
    assert_eq!(found(&report, "long").result, GateResult::Pass);
    assert_eq!((stage.count("done"), stage.count("long")), (1, 2));
}

#[test]
fn a_stop_before_the_first_row_runs_nothing() {
    let mut stage = Stage::new();
    stage.cancel.cancel();
    let mut tree = Checkout::of(&stage.checkout);
    let error = stage.run_with(COUNTED, Some(&mut tree), |_| {}).unwrap_err();
    assert!(matches!(error, GatesError::Cancelled), "{error}");
    assert_eq!((stage.count("ran"), tree.prepared), (0, 0));
}

#[test]
fn a_row_whose_files_a_later_row_needs_runs_again_with_it() {
    let mut stage = Stage::new();
    let rows = "cwd = 'worktree'\n\
        [[checks]]\nid = 'build'\ntier = 'T1'\nshares = true\n\
        cmd = 'echo ran >> $PDCA_WORKSPACE/built; mkdir -p target; echo x > target/product'\n\
        [[checks]]\nid = 'test'\ntier = 'T2'\n\
        cmd = 'cat target/product; test -e $PDCA_WORKSPACE/host-works || kill -9 $$'";
    let first = stage.run(rows).report;
    assert_eq!(said(&found(&first, "test")), "unverifiable: killed from outside by SIGKILL");
    // As another bundle that used the checkout in between leaves it.
    fs_err::remove_dir_all(stage.checkout.path().join("target")).unwrap();
    stage.workspace.write("host-works", "");
    let second = stage.run(rows).report;
    assert_eq!(said(&found(&second, "test")), "pass: x");
    assert_eq!(stage.count("built"), 2);
    // Everything is known now.
    stage.run(rows);
    assert_eq!(stage.count("built"), 2);
}
