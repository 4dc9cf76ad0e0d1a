//! The evidence of a failed check: failing tests, a log, and a command that runs it again.

use pdca_gates::{GateEvent, GatesConfig, MOST_NAMES};
use pdca_state::{GateReport, GateResult};

use crate::stage::{Stage, found, said};

const JUNIT: &str =
    "cwd = 'workspace'\n[[checks]]\nid = 'gate'\ntier = 'T3'\njunit = 'out/junit.xml'\n";

#[test]
fn a_red_row_names_its_failing_tests_in_report_event_and_markdown() {
    let mut stage = Stage::new();
    let cmd =
        "cmd = 'echo \"test a::b ... FAILED\"; echo \"test c ... FAILED\"; echo bye; exit 101'";
    let row = stage.row(cmd);
    assert_eq!(said(&row), "fail: 2 failed: a::b, c");
    assert_eq!((row.failing.len(), row.failing_more), (2, 0));
    assert_eq!(row.reproduce.as_deref(), Some("pdca gates 7 --row gate"));
    let told = stage.events.iter().any(|event| match event {
        GateEvent::RowEnded { failing, log, reproduce, .. } => {
            failing == &["a::b", "c"] && log.is_some() && reproduce == &row.reproduce
        }
        GateEvent::RowStarted { .. }
        | GateEvent::RowSkipped { .. }
        | GateEvent::Alive { .. }
        | GateEvent::RowAgain { .. }
        | GateEvent::Denied { .. }
        | GateEvent::Fixed { .. } => false,
    });
    assert!(told, "{:?}", stage.events);
    let report = stage.run(&format!("[[checks]]\nid = 'gate'\ntier = 'T1'\n{cmd}")).report;
    let markdown = report.to_markdown();
    assert!(markdown.contains("\n- T1 gate, failing: a::b, c\n"), "{markdown}");
    assert!(markdown.contains("again: `pdca gates 7 --row gate`"), "{markdown}");
    assert_eq!(GateReport::parse(report.to_json().as_bytes()).unwrap(), report);
}

#[test]
fn what_a_row_gives_as_evidence_counts_instead_of_what_is_found() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'echo FAIL: found; echo PDCA-EVIDENCE: given; exit 1'");
    assert_eq!(said(&row), "fail: given");
    assert_eq!(row.failing, ["given"]);
}

#[test]
fn a_red_row_without_names_says_its_status_and_what_its_last_words_are() {
    let mut stage = Stage::new();
    let quiet = stage.row("cmd = 'echo one; echo two; echo ===; exit 3'");
    assert_eq!(said(&quiet), "fail: exited 3: last output: one / two");
    let error = stage.row("cmd = 'echo error: no such column; echo Done in 2s; exit 1'");
    assert_eq!(said(&error), "fail: exited 1: error: no such column");
    assert!(error.failing.is_empty());
}

#[test]
fn a_green_row_and_an_undecided_one_name_no_failing_test() {
    let mut stage = Stage::new();
    for (exit, result) in [(0, GateResult::Pass), (77, GateResult::Unverifiable)] {
        let row = stage.row(&format!("cmd = 'echo FAIL: not me; exit {exit}'"));
        assert_eq!(row.result, result);
        assert!(row.failing.is_empty() && row.reproduce.is_none(), "{row:?}");
    }
}

#[test]
fn names_come_from_the_junit_report_that_the_run_wrote() {
    let mut stage = Stage::new();
    stage.workspace.write(
        "write.sh",
        "mkdir -p out\n\
         echo '<testcase classname=\"m\" name=\"'$1'\"><failure/></testcase>' > out/junit.xml\n\
         echo FAIL: log; exit 1\n",
    );
    let rows = format!("{JUNIT}cmd = 'sh write.sh one'");
    let first = stage.run(&rows).report;
    assert_eq!(found(&first, "gate").failing, ["m.one"]);
    // The verdict is reused without a run: the names are still those of the first run.
    stage.workspace.write("out/junit.xml", "<testcase name='other'><failure/></testcase>");
    assert_eq!(stage.run(&rows).report, first);
}

#[test]
fn a_junit_report_that_the_run_did_not_write_names_nothing() {
    let mut stage = Stage::new();
    stage.workspace.write("out/junit.xml", "<testcase name='stale'><failure/></testcase>");
    let report = stage.run(&format!("{JUNIT}cmd = 'echo FAIL: log; exit 1'")).report;
    assert_eq!(found(&report, "gate").failing, ["log"]);
    // A path that leads out of the directory is not read, and something that is no file is ignored.
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().join("junit.xml");
    fs_err::write(&outside, "<testcase name='outside'><failure/></testcase>").unwrap();
    let link = format!("ln -sf {} out/junit.xml", outside.display());
    for make in [link.as_str(), "rm out/junit.xml; mkfifo out/junit.xml"] {
        let report = stage.run(&format!("{JUNIT}cmd = '{make}; echo FAIL: log; exit 1'")).report;
        assert_eq!(found(&report, "gate").failing, ["log"], "{make}");
    }
}

#[test]
fn a_junit_path_that_leads_out_of_the_directory_is_refused() {
    for path in ["", "/etc/passwd", "../out.xml", "a/../../b"] {
        let text = format!("[[checks]]\nid = 'a'\ntier = 'T1'\ncmd = 'true'\njunit = '{path}'");
        let problems = toml::from_str::<GatesConfig>(&text).unwrap().validate();
        assert_eq!(problems.len(), 1, "{path}: {problems:?}");
        assert_eq!(problems[0].key, "junit");
    }
}

#[test]
fn of_very_many_failing_tests_a_few_are_named_and_the_rest_is_counted() {
    let mut stage = Stage::new();
    let row = stage.row("cmd = 'seq 1 5000 | sed \"s/.*/FAIL: t&/\"; exit 1'");
    assert_eq!((row.failing.len(), row.failing_more), (MOST_NAMES, 5000 - MOST_NAMES));
    assert!(row.path_line.starts_with("5000 failed: t1, t2"), "{row:?}");
}

#[test]
fn a_command_that_is_typed_on_one_line_does_what_the_row_does() {
    let mut stage = Stage::new();
    for text in [
        "printf '%s' \"it's\" '\\n' \"a\\tb\"",
        "set -e\n# why\nx='a b'\nprintf %s \"$x\" 'c\\d'\n",
        "cat <<'E'\nit's $HOME\n\tand `more` \\\\\nE",
        "echo \"é\u{1}\"",
    ] {
        let mut output = |cmd: &str| {
            let cmd = toml::Value::String(cmd.to_owned());
            stage.row(&format!("cmd = {cmd}"));
            stage.log("gate")
        };
        let direct = output(text);
        let typed = pdca_gates::Command::Shell(text.to_owned()).typed();
        assert!(!typed.contains(char::is_control), "{typed}");
        assert!(!direct.is_empty());
        assert_eq!(output(&typed), direct, "{typed}");
    }
}
