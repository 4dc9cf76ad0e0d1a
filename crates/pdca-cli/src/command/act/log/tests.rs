use crate::exit::Exit;
use crate::testing::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.complete("36");
    desk.complete("41");
    desk
}

#[test]
fn the_entry_is_printed_and_nothing_is_written() {
    let desk = desk();
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["act", "log"]), @"
    # Act review — 2026-11-16 — cycles considered: 36, 41

    ## What the cycles' records exposed

    - 2 cycles: 2 complete, 0 discontinued; 0 attempts sent back

    ## Process deltas

    - Spec template: <what changes, or none> (`templates/brief.md.tpl`)
    - Ruleset: <what changes, or none> (`<path>`)
    - Gates: <what changes, or none> (`pdca.toml`)
    - Agent files: <what changes, or none> (`pdca.toml`)
    - Orchestration: <what changes, or none> (`pdca.toml`)

    ## How effectiveness will be judged

    - Signal: <what should no longer be seen>
    ");
    assert_eq!(desk.run(&["act", "log", "--record", "--dry-run"]).exit, Exit::Done);
    assert_eq!(desk.all_files(), before);
}

#[test]
fn recorded_it_is_appended_and_its_cycles_are_not_considered_again() {
    let desk = desk();
    desk.workspace.write("process/act-log.md", "# Act log\n");
    insta::assert_snapshot!(desk.run(&["act-log", "--record"]), @"
    recorded: 2 cycles in process/act-log.md: 36, 41
    next: write its process deltas, then pdca act diff
    ");
    let log = desk.workspace.read("process/act-log.md");
    assert!(
        log.starts_with("# Act log\n\n# Act review — 2026-11-16 — cycles considered: 36, 41\n"),
        "{log}"
    );
    assert_eq!(desk.workspace.read("process/.act-reviewed"), "issue_36\nissue_41\n");
    insta::assert_snapshot!(desk.run(&["act", "log", "--record"]), @"
    --- stderr
    no cycle ended since the last review
    --- exit 4
    ");
    assert_eq!(desk.workspace.read("process/act-log.md"), log);
}

#[test]
fn a_record_cut_short_after_any_file_is_finished_by_the_next_one() {
    for lost in [&["act-ledger.json", ".act-reviewed"][..], &[".act-reviewed"]] {
        let desk = desk();
        assert_eq!(desk.run(&["act", "log", "--record"]).exit, Exit::Done);
        let log = desk.workspace.read("process/act-log.md");
        for file in lost {
            fs_err::remove_file(desk.workspace.path().join("process").join(file)).unwrap();
        }
        let run = desk.run(&["act", "log", "--record"]);
        assert_eq!(run.exit, Exit::NothingToDo);
        assert!(run.err.contains("finished the interrupted record of 2026-11-16"), "{run}");
        assert_eq!(desk.workspace.read("process/act-log.md"), log);
        assert_eq!(desk.workspace.read("process/.act-reviewed"), "issue_36\nissue_41\n");
        assert_eq!(
            desk.workspace.read("process/act-ledger.json").matches("\"review\":").count(),
            1
        );
    }
}

#[test]
fn what_cannot_be_recorded_without_loss_is_refused_and_nothing_changes() {
    let desk = desk();
    desk.workspace.write("process/act-ledger.json", "{\"mine\": 1}\n");
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["act", "log", "--record"]), @"
    --- stderr
    error: process/act-ledger.json is not a ledger
      --> process/act-ledger.json
      because: not a list
    hint: mend the file, or move it away: then a new one is begun
    --- exit 2
    ");
    assert_eq!(desk.run(&["act", "log", "--record", "--date", "yesterday"]).exit, Exit::Usage);
    assert_eq!(desk.all_files(), before);
}

#[test]
fn two_cannot_record_at_once() {
    let desk = desk();
    desk.workspace.write("process/act-log.md", "");
    let lock = desk.workspace.path().join("process/.pdca.lock");
    let _held = pdca_process::FileLock::take(&lock, "").unwrap();
    let run = desk.run(&["act", "log", "--record"]);
    assert_eq!(run.exit, Exit::Usage);
    assert!(run.err.contains("another process is recording"), "{run}");
}

#[test]
fn scripts_get_the_entry() {
    let run = desk().run(&["act", "log", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["cycles"], serde_json::json!(["36", "41"]));
    assert_eq!((json["kind"].as_str(), json["recorded"].as_bool()), (Some("act-log"), Some(false)));
    assert!(json["entry"].as_str().unwrap().starts_with("# Act review — 2026-11-16"));
}

#[test]
fn a_bundle_in_flight_is_neither_considered_nor_touched() {
    let desk = desk();
    desk.awaiting("50", &["a question"], "pass");
    desk.workspace.brief("51", &[]);
    let files = || -> Vec<_> {
        let all = desk.all_files().into_iter();
        all.filter(|(name, _)| name.contains("results/")).collect()
    };
    let before = files();
    let run = desk.run(&["act", "log", "--record"]);
    assert_eq!(run.exit, Exit::Done, "{run}");
    assert!(desk.workspace.read("process/act-log.md").contains("cycles considered: 36, 41\n"));
    assert_eq!(files(), before);
}
