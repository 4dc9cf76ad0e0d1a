use crate::testing::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.workspace.brief("12", &[("Touches", "src/a.py")]);
    desk.workspace.brief("15", &[("Touches", "docs/**")]);
    desk.workspace.brief("18", &[("Touches", "web")]);
    desk
}

const WHY: [&str; 2] = ["--reason", "the guide explains it"];

fn widen(desk: &Desk, args: &[&str]) -> crate::testing::Run {
    desk.run(&[&["widen"], args, &WHY].concat())
}

#[test]
fn a_widening_is_recorded_and_says_whom_it_meets() {
    let desk = desk();
    insta::assert_snapshot!(widen(&desk, &["12", "docs/*.md", "src/b.py"]), @"
    issue_12 also touches `docs/*.md`, `src/b.py`
      no longer side by side: 12 and 15 both can write `docs/.md`
    ");
    let brief = desk.workspace.read("results/issue_12/brief.md");
    insta::assert_snapshot!(brief, @"
    # Brief: issue 12

    - **Slug:** a-small-thing
    - **Defect (Goal):** the thing is wrong
    - **Success criterion:** the thing is right
    - **Falsifiability:** the test fails without the change
    - **Invariant to restore:** things are right
    - **Scope:** one file
    - **Disposition hint:** fix
    - **Touches:** src/a.py, `docs/*.md`, `src/b.py`

    ## Widened

    - 2026-11-16, ada: `docs/*.md`, `src/b.py` — the guide explains it
    ");
    insta::assert_snapshot!(widen(&desk, &["12", "src/b.py"]), @"issue_12 declares that already; nothing changed");
    assert_eq!(desk.workspace.read("results/issue_12/brief.md"), brief);
    insta::assert_snapshot!(widen(&desk, &["18", "docs/x", "--by", "Bo", "--json"]), @r#"
    {
      "schema": 1,
      "kind": "widen",
      "id": "18",
      "file": "[TMP]/ws/results/issue_18/brief.md",
      "added": [
        "docs/x"
      ],
      "by": "Bo",
      "date": "2026-11-16",
      "reason": "the guide explains it",
      "new_rivals": [
        {
          "id": "15",
          "rule": "overlap",
          "witness": "docs/x",
          "at_work": false
        }
      ],
      "judged_again": false,
      "lanes_file": "absent",
      "dry_run": false
    }
    "#);
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let desk = desk();
    let before = desk.all_files();
    insta::assert_snapshot!(widen(&desk, &["12", "docs/*.md", "-n"]), @"
    issue_12 would also touch `docs/*.md`
      no longer side by side: 12 and 15 both can write `docs/.md`
    ");
    assert_eq!(desk.all_files(), before);
}

#[test]
fn what_cannot_be_declared_is_refused_and_nothing_is_written() {
    let desk = desk();
    desk.complete("1");
    desk.workspace.write("results/issue_2/notes.json", "{}");
    let before = desk.all_files();
    insta::assert_snapshot!(widen(&desk, &["12", "../x", "", "/etc", "a[", "ok"]), @r"
    --- stderr
    error: `../x`: column 1: it leaves the tree
    hint: paths are relative to the root of the repository
    error: ``: column 1: it is empty
    hint: name a file, a directory or a glob such as `src/net/**`
    error: `/etc`: column 1: it leaves the tree
    hint: paths are relative to the root of the repository
    error: `a[`: column 2: the `[` is not closed
    hint: globs know `*`, `**`, `?`, `[a-z]`, `{a,b}`; a `\` takes the meaning of the next character
    --- exit 2
    ");
    insta::assert_snapshot!(widen(&desk, &["12", "with space"]), @"
    --- stderr
    error: `with space` cannot be written into a list of globs
    hint: write `?` for the character that stands in the way
    --- exit 2
    ");
    insta::assert_snapshot!(widen(&desk, &["1", "x"]), @"
    --- stderr
    error: issue_1 is COMPLETE: what it touched is settled
      --> results/issue_1/brief.md
    hint: a frozen record is not changed; plan what is left as a bundle of its own
    --- exit 2
    ");
    insta::assert_snapshot!(widen(&desk, &["2", "x"]), @"
    --- stderr
    error: issue_2 has no brief
      --> results/issue_2
    hint: `pdca new 2` makes one
    --- exit 2
    ");
    insta::assert_snapshot!(desk.run(&["widen", "12", "x", "--reason", " "]), @"
    --- stderr
    error: the reason is empty
    hint: say in a few words why the work reaches further than planned
    --- exit 2
    ");
    assert_eq!(desk.all_files(), before);
}

#[test]
fn a_bundle_in_work_is_refused_with_who_has_it() {
    let desk = desk();
    let _held = desk.held("locks/issue_12.lock", "process 7, lane 2", 3);
    let before = desk.all_files();
    insta::assert_snapshot!(widen(&desk, &["12", "x"]), @"
    --- stderr
    error: issue_12 is held by process 7, lane 2
      --> .pdca/locks/issue_12.lock
    hint: wait until it is done, or stop it; `pdca status` shows how far the bundles are
    --- exit 2
    ");
    assert_eq!(desk.all_files(), before);
}

#[test]
fn lanes_json_is_said_to_be_out_of_date() {
    let desk = desk();
    desk.run(&["plan", "--write"]);
    assert!(widen(&desk, &["12", "x"]).out.contains("lanes.json is out of date"));
}

#[test]
fn a_batch_without_a_plan_does_not_keep_the_record_from_being_made() {
    let desk = desk();
    desk.workspace.brief("15", &[("Depends on", "15")]);
    let said = widen(&desk, &["12", "x"]);
    insta::assert_snapshot!(said, @"
    issue_12 also touches `x`
      note: whom that meets is not known: the batch has no plan, `pdca plan` says why
    ");
}
