use crate::exit::Exit;
use crate::testing::Desk;

fn section_9(desk: &Desk, id: &str) -> String {
    let text = desk.workspace.read(format!("results/issue_{id}/SUMMARY.md"));
    text.split("## 9. Check sign-off")
        .nth(1)
        .and_then(|rest| rest.split("## 10").next())
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn accept_records_who_and_when_and_freezes() {
    let desk = Desk::new();
    desk.awaiting("36", &[], "pass");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "accept"]), @"36 is COMPLETE");
    insta::assert_snapshot!(section_9(&desk, "36"), @"
    - Disposition confirmed / overridden:
    - Outcome: merged-wider
    - Iteration delta (if iterating):
    - By / date: ada / 2026-11-16
    ");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "accept"]), @r#"
    --- stderr
    error: 36 is COMPLETE, so there is nothing to sign
      --> results/issue_36
    hint: `pdca why 36` shows where it stands; `pdca reopen 36 --note "…"` takes it back until it has landed
    --- exit 2
    "#);
}

#[test]
fn accept_is_refused_while_something_is_open_or_red() {
    let desk = Desk::new();
    desk.awaiting("36", &["C5 — cause", "T5 — names"], "pass");
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["signoff", "36", "accept"]), @"
    --- stderr
    error: 36 cannot be accepted yet
      --> results/issue_36/SUMMARY.md
      open in §6: 1 C5 — cause
      open in §6: 2 T5 — names
    hint: decide each, then `pdca signoff 36 clear <n>…`, then accept again
    --- exit 2
    ");
    desk.awaiting("37", &[], "fail");
    insta::assert_snapshot!(desk.run(&["sign-off", "37", "--accept"]), @r#"
    --- stderr
    error: 37 cannot be accepted yet
      --> results/issue_37/SUMMARY.md
      gate red: C4 verified
    hint: `pdca signoff 37 iterate-do --note "…"`; a red row is accepted only on the record: `pdca signoff 37 accept --override ROW --reason "…"`
    --- exit 2
    "#);
    fs_err::remove_dir_all(desk.workspace.bundle("37")).unwrap();
    assert_eq!(desk.all_files(), before);
}

#[test]
fn accept_is_refused_when_the_patch_was_edited_after_check() {
    let desk = Desk::new();
    desk.awaiting("36", &[], "pass");
    desk.workspace.write("results/issue_36/patch.diff", "edited\n");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "accept"]), @r#"
    --- stderr
    error: patch edited after Check: what was gated is not what is there
      --> results/issue_36/patch.diff
      gated: 922dd52a81ff1c3d456cb861de7ad959496295c809971e848d414d3cdfe3fb23
      now:   68f01b289aedcf28e96fce1f9444365e83b9bfc7e1bf32df20f1f15966835316
    hint: put the gated patch back, or `pdca signoff 36 iterate-do --note "…"` to build and check again
    --- exit 2
    "#);
    let refused = desk.run(&["signoff", "36", "iterate-do"]);
    assert_eq!(refused.exit, Exit::Usage);
    assert!(refused.err.contains("`pdca signoff 36 iterate-do --note \"why\"`"), "{}", refused.err);
    assert_eq!(desk.run(&["signoff", "36", "iterate-do", "--note", "again"]).exit, Exit::Done);
}

#[test]
fn boxes_are_shown_and_ticked_by_number() {
    let desk = Desk::new();
    desk.awaiting(
        "36",
        &["C5 — cause", "Validation — fitness-to-purpose — serves?", "T5 — names"],
        "pass",
    );
    insta::assert_snapshot!(desk.run(&["signoff", "36", "show"]), @"
    1 [ ] C5 — cause
    2 [ ] (asked every time) Validation — fitness-to-purpose — serves?
    3 [ ] T5 — names
    ");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "clear", "3", "1", "--note", r"seen \1 on  staging"]), @"
    cleared: C5 — cause
    cleared: T5 — names
    1 still open in §6
    ");
    let summary = desk.workspace.read("results/issue_36/SUMMARY.md");
    assert!(
        summary.contains("- [x] C5 — cause — seen \\1 on staging\n- [ ] Validation"),
        "{summary}"
    );
    insta::assert_snapshot!(desk.run(&["signoff", "36", "clear", "all"]), @"
    cleared: Validation — fitness-to-purpose — serves?
    next: pdca signoff 36 accept
    ");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "clear", "1"]), @"
    --- stderr
    error: nothing is open in §6
      --> results/issue_36/SUMMARY.md
    hint: `pdca signoff 36 accept`
    --- exit 4
    ");
    assert_eq!(desk.run(&["signoff", "36", "accept"]).exit, Exit::Done);
}

#[test]
fn the_number_of_an_item_does_not_move_when_another_is_cleared() {
    let desk = Desk::new();
    desk.awaiting("36", &["a", "b", "c"], "pass");
    desk.run(&["signoff", "36", "clear", "2"]);
    insta::assert_snapshot!(desk.run(&["signoff", "36", "show"]), @"
    1 [ ] a
    2 [x] b
    3 [ ] c
    ");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "clear", "2"]), @"
    --- stderr
    error: item 2 of §6 is ticked already
      --> results/issue_36/SUMMARY.md
    hint: `pdca signoff 36 show` lists the items with their numbers
    --- exit 2
    ");
    assert_eq!(desk.run(&["signoff", "36", "clear", "3"]).exit, Exit::Done);
}

#[test]
fn several_bundles_are_decided_together_or_none_of_them_is() {
    let desk = Desk::new();
    desk.awaiting("2", &["a"], "pass");
    desk.awaiting("11", &[], "pass");
    desk.awaiting("12", &[], "fail");
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["signoff", "2", "11", "12", "accept", "--clear"]), @r#"
    --- stderr
    nothing was recorded
    error: 12 cannot be accepted yet
      --> results/issue_12/SUMMARY.md
      gate red: C4 verified
    hint: `pdca signoff 12 iterate-do --note "…"`; a red row is accepted only on the record: `pdca signoff 12 accept --override ROW --reason "…"`
    --- exit 2
    "#);
    assert_eq!(desk.all_files(), before);
    insta::assert_snapshot!(desk.run(&["signoff", "2", "11", "accept", "--clear", "--note", "read"]), @"
    2 is COMPLETE
    11 is COMPLETE
    ");
    assert!(desk.workspace.read("results/issue_2/SUMMARY.md").contains("- [x] a — read\n"));
}

#[test]
fn the_words_are_ids_then_an_action_then_numbers() {
    let desk = Desk::new();
    desk.awaiting("36", &["a"], "pass");
    for (args, hint) in [
        (&["signoff", "36"][..], "one of: accept"),
        (&["signoff", "36", "acept"], "did you mean `accept`?"),
        (&["signoff", "36", "accept", "--accept"], "error: two actions"),
        (&["signoff", "36", "iterate-do", "--clear"], "`--clear` goes with `accept`"),
        (&["signoff", "36", "clear", "x"], "`x` is not the number of an item"),
        (&["signoff", "36", "37", "show"], "pdca new 37"),
    ] {
        let run = desk.run(args);
        assert_eq!(run.exit, Exit::Usage, "{run}");
        assert!(run.err.contains(hint), "{run}");
    }
}

#[test]
fn a_box_that_is_not_there_is_refused() {
    let desk = Desk::new();
    desk.awaiting("36", &["a"], "pass");
    for args in [
        &["signoff", "36", "clear"][..],
        &["signoff", "36", "clear", "2"],
        &["signoff", "36", "clear", "0"],
    ] {
        let run = desk.run(args);
        assert_eq!(run.exit, Exit::Usage, "{run}");
        assert!(run.err.contains("hint:"), "{run}");
    }
    assert_eq!(desk.run(&["signoff", "36", "accept", "1"]).exit, Exit::Usage);
}

#[test]
fn iterate_do_archives_at_once_and_hands_the_note_on() {
    let desk = Desk::new();
    desk.awaiting("36", &["a"], "fail");
    let run = desk.run(&[
        "signoff",
        "36",
        "iterate-do",
        "--note",
        "the test\npasses without it",
        "--by",
        "Grace",
    ]);
    insta::assert_snapshot!(run, @"
    36 is PLANNED
    --- stderr
    the attempt is in results/issue_36/iteration-v1
    ");
    assert!(desk.workspace.has("results/issue_36/iteration-v1/SUMMARY.md"));
    assert!(!desk.workspace.has("results/issue_36/patch.diff"));
    let brief = desk.workspace.read("results/issue_36/brief.md");
    assert!(brief.contains("> the test passes without it"), "{brief}");
}

#[test]
fn iterate_plan_archives_the_brief_too_and_leaves_it_as_a_draft() {
    let desk = Desk::new();
    desk.awaiting("36", &[], "pass");
    let run = desk.run(&["signoff", "36", "--iterate-plan", "--delta", "wrong cause", "--json"]);
    insta::assert_snapshot!(run, @r#"
    {
      "schema": 1,
      "kind": "signoff",
      "dry_run": false,
      "id": "36",
      "action": "iterate-plan",
      "outcome": "iterated-to-Plan",
      "by": "ada",
      "date": "2026-11-16",
      "state": "UNPLANNED",
      "archived": "iteration-v1",
      "cleared": [],
      "command": "pdca signoff 36 iterate-plan --note 'wrong cause'",
      "remarks": []
    }
    --- stderr
    the attempt is in results/issue_36/iteration-v1
    "#);
    assert!(desk.workspace.has("results/issue_36/iteration-v1/brief.md"));
    let draft = desk.workspace.read("results/issue_36/brief.md");
    assert!(draft.contains("- **Slug:** <a-small-thing>"), "{draft}");
    assert!(draft.contains("> wrong cause"), "{draft}");
    insta::assert_snapshot!(desk.run(&["new", "36"]), @"
    results/issue_36/brief.md is there: the brief of the attempt before it, and what that handed on
    next: edit it, take its slug out of `<…>`, then pdca run 36
    ");
    assert_eq!(desk.workspace.read("results/issue_36/brief.md"), draft);
}

#[test]
fn discontinue_needs_a_note_and_moves_nothing() {
    let desk = Desk::new();
    desk.awaiting("36", &["a"], "fail");
    insta::assert_snapshot!(desk.run(&["signoff", "36", "discontinue"]), @r#"
    --- stderr
    error: discontinue needs a note
      --> results/issue_36/SUMMARY.md
    hint: `pdca signoff 36 discontinue --note "why"`
    --- exit 2
    "#);
    assert_eq!(
        desk.run(&["signoff", "36", "discontinue", "--note", "superseded"]).exit,
        Exit::Done
    );
    assert!(desk.workspace.has("results/issue_36/patch.diff"));
    insta::assert_snapshot!(desk.run(&["why", "36"]), @"
    36 is DISCONTINUED
      discontinued by ada, 2026-11-16
      note: superseded
    ");
}

#[test]
fn what_does_not_wait_for_sign_off_cannot_be_signed() {
    let desk = Desk::new();
    desk.workspace.brief("36", &[]);
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["signoff", "36", "accept"]), @"
    --- stderr
    error: 36 is PLANNED, so there is nothing to sign
      --> results/issue_36
    hint: `pdca run 36` carries it to sign-off
    --- exit 2
    ");
    assert_eq!(desk.run(&["signoff", "36", "iterate-do"]).exit, Exit::Usage);
    assert_eq!(desk.all_files(), before);
}

#[test]
fn somebody_must_sign() {
    let mut desk = Desk::new();
    desk.env.vars.clear();
    desk.awaiting("36", &[], "pass");
    assert_eq!(desk.run(&["signoff", "36", "accept"]).exit, Exit::Usage);
    desk.workspace.config("[project]\nauthor = \"Config Person\"\n");
    assert_eq!(desk.run(&["signoff", "36", "accept", "--date", "2026-02-03"]).exit, Exit::Done);
    assert!(section_9(&desk, "36").contains("- By / date: Config Person / 2026-02-03"));
}

#[test]
fn a_date_that_is_none_is_refused() {
    let desk = Desk::new();
    desk.awaiting("36", &[], "pass");
    assert_eq!(desk.run(&["signoff", "36", "accept", "--date", "yesterday"]).exit, Exit::Usage);
}

#[test]
fn a_dry_run_records_nothing() {
    let desk = Desk::new();
    desk.awaiting("36", &["a"], "pass");
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["signoff", "36", "iterate-do", "--note", "x", "-n"]), @"would record iterated-to-Do by ada / 2026-11-16 for 36");
    assert_eq!(desk.run(&["signoff", "36", "clear", "1", "-n"]).exit, Exit::Done);
    assert_eq!(desk.all_files(), before);
}
