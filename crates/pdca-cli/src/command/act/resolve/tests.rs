use crate::exit::Exit;
use crate::testing::Desk;

const LOG: &str = "# Act log\n\n# Act review — 2026-11-01 — cycles considered: 1\n\n\
    ## How effectiveness will be judged\n\n- Signal: the network was out of reach (seen in 1)\n\
    - Signal: nobody read the brief (seen in 1)\n";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.workspace.write("process/act-log.md", LOG);
    desk
}

#[test]
fn signals_are_listed_with_numbers_and_closed_by_them() {
    let desk = desk();
    insta::assert_snapshot!(desk.run(&["act", "resolve"]), @r#"
      1  no cycle ended since  the network was out of reach
      2  no cycle ended since  nobody read the brief
    next: pdca act resolve N --note "…"
    "#);
    insta::assert_snapshot!(desk.run(&["act", "resolve", "2", "--by", "Ada", "--note", "it is one page now"]), @"
      2  closed  nobody read the brief
    ");
    let ledger = desk.workspace.read("process/act-ledger.json");
    assert!(ledger.contains("it is one page now") && ledger.contains("\"Ada\""), "{ledger}");
    insta::assert_snapshot!(desk.run(&["act", "resolve"]), @r#"
      1  no cycle ended since  the network was out of reach
      2  closed 2026-11-16, no cycle ended since  nobody read the brief
    next: pdca act resolve N --note "…"
    "#);
}

#[test]
fn a_number_that_is_none_is_refused_and_nothing_changes() {
    let desk = desk();
    let before = desk.all_files();
    let run = desk.run(&["act", "resolve", "1", "7", "--by", "Ada"]);
    assert_eq!(run.exit, Exit::Usage);
    assert!(run.err.contains("there is no signal 7"), "{run}");
    assert_eq!(desk.run(&["act", "resolve", "1", "--by", "Ada", "--dry-run"]).exit, Exit::Done);
    assert_eq!(desk.all_files(), before);
}

#[test]
fn without_a_signal_there_is_nothing_to_close() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["act", "resolve"]).exit, Exit::NothingToDo);
    assert_eq!(desk.run(&["act", "resolve", "1", "--by", "Ada"]).exit, Exit::Usage);
}
