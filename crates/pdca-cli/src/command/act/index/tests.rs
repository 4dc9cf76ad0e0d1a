use crate::exit::Exit;
use crate::testing::Desk;

/// What an earlier review promised.
const LOG: &str = "# Act log\n\n# Act review — 2026-11-01 — cycles considered: 1\n\n\
    ## How effectiveness will be judged\n\n- Signal: the network was out of reach (seen in 1)\n\
    - Signal: the moon is green\n- Watch the next cycles.\n";

/// Two cycles that ended with the same complaint, one of them put away since, and one that goes on.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.workspace.write("process/act-log.md", LOG);
    for id in ["36", "41"] {
        desk.complete(id);
        let file = format!("results/issue_{id}/SUMMARY.md");
        let item = format!("- [x] T5 Judgment — the network was out of reach of run {id}\n\n## 9.");
        let text = desk.workspace.read(&file).replace("## 9.", &item);
        desk.workspace.write(&file, format!("{text}\n- give the reviewer `gh`\n"));
    }
    desk.workspace.brief("36", &[("Touches", "docs, src/**")]);
    let patch = "--- a/src/a.rs\n+++ b/src/a.rs\n--- a/x\n+++ b/x\n";
    desk.workspace.write("results/issue_36/patch.diff", patch);
    let put_away = desk.workspace.path().join("results/completed/issue_41");
    fs_err::create_dir_all(put_away.parent().unwrap()).unwrap();
    fs_err::rename(desk.workspace.bundle("41"), put_away).unwrap();
    desk.awaiting("50", &[], "pass");
    desk
}

#[test]
fn each_cycle_is_shown_and_then_what_they_share() {
    insta::assert_snapshot!(desk().run(&["act", "index"]), @"
    2 cycles since the review of 2026-11-01

    36  COMPLETE  a-small-thing
      one attempt, 1 gate row, not timed
      touches  2 declared, 2 files changed, undeclared: x, not touched: docs
      §6  [x] T5 Judgment — the network was out of reach of run 36
      §9  merged-wider by Ada on 2026-11-15
      §10 give the reviewer `gh`

    41  COMPLETE  a-small-thing
      one attempt, 1 gate row, not timed
      touches  nothing declared, 1 file changed
      §6  [x] T5 Judgment — the network was out of reach of run 41
      §9  merged-wider by Ada on 2026-11-15
      §10 give the reviewer `gh`

    recurring
      2× (36, 41)  give the reviewer `gh`
      2× (36, 41)  T5 Judgment — the network was out of reach of run 36

    needs-human by class
      2× T5 Judgment in 2 cycles

    signals of earlier reviews
      BACK in 36, 41 (2 of 2 cycles): the network was out of reach (2026-11-01)
      not seen in 2 cycles: the moon is green (2026-11-01)
      judge it yourself: Watch the next cycles. (2026-11-01)

    next: pdca act log
    ");
}

#[test]
fn the_older_spelling_prints_the_same() {
    let desk = desk();
    assert_eq!(desk.run(&["act-index"]).to_string(), desk.run(&["act", "index"]).to_string());
}

#[test]
fn what_was_reviewed_is_left_out_unless_all_is_asked_for() {
    let desk = desk();
    desk.workspace.write("process/.act-reviewed", "issue_36\n");
    assert!(
        desk.run(&["act", "index"]).out.starts_with("1 cycle since the review of 2026-11-01\n")
    );
    assert!(desk.run(&["act", "index", "--all"]).out.starts_with("2 cycles in all\n"));
}

#[test]
fn scripts_get_everything() {
    let run = desk().run(&["act", "index", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["kind"], "act-index");
    let cycle = &json["cycles"][0];
    assert_eq!((&cycle["id"], &cycle["state"]), (&"36".into(), &"COMPLETE".into()));
    assert_eq!(cycle["touches"]["undeclared"], serde_json::json!(["x"]));
    insta::assert_snapshot!(serde_json::to_string_pretty(&json["patterns"][1]).unwrap(), @r#"
    {
      "cycles": [
        "36",
        "41"
      ],
      "example": "T5 Judgment — the network was out of reach of run 36",
      "sources": [
        "§6"
      ],
      "text": "t5 judgment the network was out of reach of run n"
    }
    "#);
    insta::assert_snapshot!(serde_json::to_string(&json["signals"]).unwrap(), @r#"[{"considered":2,"cycles":["36","41"],"fate":"back","number":1,"since":"2026-11-01","text":"the network was out of reach"},{"considered":2,"fate":"not-seen","number":2,"since":"2026-11-01","text":"the moon is green"},{"considered":2,"fate":"unclear","number":3,"since":"2026-11-01","text":"Watch the next cycles."}]"#);
}

#[test]
fn a_bundle_that_cannot_be_read_is_one_bad_row() {
    let desk = desk();
    desk.workspace.write("results/issue_7/brief.md", b"caf\xe9");
    let run = desk.run(&["act", "index"]);
    assert_eq!(run.exit, Exit::Done);
    assert!(run.out.contains("UNREADABLE 7\n") && run.out.starts_with("2 cycles"), "{run}");
}

#[test]
fn with_nothing_to_look_at_it_says_so() {
    insta::assert_snapshot!(Desk::new().run(&["act", "index"]), @"0 cycles ended, none was reviewed before");
}
