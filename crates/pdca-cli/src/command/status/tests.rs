use std::io::{self, Write};

use crate::exit::Exit;
use crate::testing::Desk;

/// One bundle of most kinds.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.complete("1");
    desk.awaiting("2", &["C5 — is the cause the cause?"], "fail");
    desk.workspace
        .brief("3", &[("Depends on", "1, 2, 99"), ("Conflicts with", "4"), ("Slug", "third")]);
    desk.workspace.brief("4", &[("Depends on", "1"), ("Touches", "src/a.rs")]);
    desk.workspace.write("results/issue_5/brief.md", "- **Slug:** <name>\n");
    desk.workspace.write("results/issue_6/brief.md", b"- **Slug:** caf\xe9\n");
    desk.workspace.write("results/issue_a b/brief.md", "");
    desk
}

#[test]
fn every_bundle_is_one_row_and_a_bad_one_is_a_bad_row() {
    insta::assert_snapshot!(desk().run(&["status"]), @"
    needs you
    UNREADABLE        6  results/issue_6/brief.md:1: byte 0xe9 is not UTF-8
    AWAITING_SIGNOFF  2  a-small-thing  [1 to decide] [gates: fail]
    PLANNED           3  third          [blocked-by: 2, 99] [not beside: 4]
    UNPLANNED         5  -
    waiting
    PLANNED           4  a-small-thing
    done
    COMPLETE          1  a-small-thing
    ignored  issue_a b is not a bundle: `issue_a b` is not an id: the character ' ' is not allowed
    6 bundles: 1 UNREADABLE, 1 AWAITING_SIGNOFF, 2 PLANNED, 1 UNPLANNED, 1 COMPLETE
    Act: 1 cycle waits for a review of the process, due after 10   # pdca act index
    ");
}

#[test]
fn runs_that_cannot_be_read_are_said_and_the_bundles_are_shown() {
    let desk = Desk::new();
    desk.complete("1");
    desk.workspace.write(".pdca/runs", "no directory");
    let run = desk.run(&["status"]);
    assert_eq!(run.exit, Exit::Done);
    assert!(
        run.out.contains("runs cannot be read:") && run.out.contains("COMPLETE"),
        "{}",
        run.out
    );
    let run = desk.run(&["status", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["unread"].as_array().unwrap().len(), 1, "{json}");
}

#[test]
fn scripts_get_the_documented_fields() {
    let run = desk().run(&["status", "--json"]);
    assert_eq!(run.exit, Exit::Done);
    let mut json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    for bundle in json["bundles"].as_array_mut().unwrap() {
        assert!(bundle["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{bundle}");
        bundle["since"] = "…".into();
    }
    let bundles = json["bundles"].as_array().unwrap();
    let blocked = bundles.iter().find(|bundle| bundle["id"] == "3").unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(blocked).unwrap(), @r#"
    {
      "blocked": null,
      "blocked_by": [
        "2",
        "99"
      ],
      "brief_changed": false,
      "conflicts_with": [
        "4"
      ],
      "cost": null,
      "dir": "[TMP]/ws/results/issue_3",
      "disposition": "fix",
      "doing": null,
      "error": null,
      "failed": null,
      "forecast_conflicts": [],
      "held_by": [],
      "holder": null,
      "id": "3",
      "integration": null,
      "integration_detail": null,
      "iterations": 0,
      "lane": null,
      "missing": [],
      "next": "pdca show 2",
      "open_items": 0,
      "overall": null,
      "patch_changed": false,
      "proposed": null,
      "since": "…",
      "slug": "third",
      "stale": null,
      "state": "PLANNED",
      "touches": []
    }
    "#);
    let bad = bundles.iter().find(|bundle| bundle["id"] == "6").unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(bad).unwrap(), @r#"
    {
      "blocked": null,
      "blocked_by": [],
      "brief_changed": false,
      "conflicts_with": [],
      "cost": null,
      "dir": "[TMP]/ws/results/issue_6",
      "disposition": null,
      "doing": null,
      "error": {
        "file": "[TMP]/ws/results/issue_6/brief.md",
        "line": 1,
        "message": "[TMP]/ws/results/issue_6/brief.md:1: byte 0xe9 is not UTF-8"
      },
      "failed": null,
      "forecast_conflicts": [],
      "held_by": [],
      "holder": null,
      "id": "6",
      "integration": null,
      "integration_detail": null,
      "iterations": 0,
      "lane": null,
      "missing": [],
      "next": "pdca status 6",
      "open_items": 0,
      "overall": null,
      "patch_changed": false,
      "proposed": null,
      "since": "…",
      "slug": null,
      "stale": null,
      "state": "UNREADABLE",
      "touches": []
    }
    "#);
    let frame = (&json["schema"], &json["kind"], &json["strangers"], &json["next"]);
    insta::assert_snapshot!(format!("{frame:?}"), @r#"(Number(1), String("status"), Array [Object {"name": String("issue_a b"), "why": String("`issue_a b` is not an id: the character ' ' is not allowed")}], Object {"command": String("pdca run 4"), "why": String("4 can go on")})"#);
}

#[test]
fn one_bundle_is_shown_in_full() {
    insta::assert_snapshot!(desk().run(&["status", "#2"]), @r#"
    issue_2  AWAITING_SIGNOFF
      directory  results/issue_2
    Brief
      Slug                    a-small-thing
      Defect (Goal)           the thing is wrong
      Success criterion       the thing is right
      Falsifiability          the test fails without the change
      Invariant to restore    things are right
      Scope                   one file
      Disposition hint        fix
    Gates fail
      fail          C4 verified "green after the change"  1 test
    §6 NEEDS-HUMAN 1 open, 0 cleared
       1 [ ] C5 — is the cause the cause?
    next: read results/issue_2/SUMMARY.md, then
      pdca signoff 2 clear <n>… --note "why"
      pdca signoff 2 accept | iterate-do | iterate-plan | discontinue --note "why"
    "#);
}

#[test]
fn one_bundle_as_json_has_fields_gates_and_open_items() {
    let run = desk().run(&["status", "issue_2", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["kind"], "bundle");
    assert_eq!(json["state"], "AWAITING_SIGNOFF");
    assert_eq!(json["fields"][0]["label"], "Slug");
    assert_eq!(json["gates"]["rows"][0]["element"], "C4");
    assert_eq!(json["needs_human"]["open"][0], "C5 — is the cause the cause?");
}

#[test]
fn a_patch_edited_after_check_is_told() {
    let desk = Desk::new();
    desk.awaiting("2", &[], "pass");
    desk.workspace.write("results/issue_2/patch.diff", "something else\n");
    assert!(desk.run(&["status"]).out.contains("[patch edited after Check]"));
    assert!(desk.run(&["status", "2"]).out.contains("patch.diff was edited after Check"));
}

#[test]
fn the_address_of_the_issue_is_shown_where_it_is_known() {
    let desk = Desk::new();
    desk.workspace.config("[tracker]\nissue_url_pattern = \"https://example.org/i/{id}\"\n");
    desk.workspace.brief("36", &[]);
    assert!(desk.run(&["status", "36"]).out.contains("https://example.org/i/36"));
}

#[test]
fn a_dependency_that_was_put_away_complete_does_not_block() {
    let desk = Desk::new();
    desk.complete("1");
    let results = desk.workspace.path().join("results");
    fs_err::create_dir(results.join("completed")).unwrap();
    fs_err::rename(results.join("issue_1"), results.join("completed/issue_1")).unwrap();
    desk.workspace.brief("2", &[("Depends on", "1")]);
    assert!(!desk.run(&["status"]).out.contains("blocked-by"));
}

#[test]
fn an_unknown_id_names_the_one_that_was_probably_meant() {
    let desk = Desk::new();
    desk.workspace.brief("1234", &[]);
    insta::assert_snapshot!(desk.run(&["status", "1243"]), @"
    --- stderr
    error: there is no bundle issue_1243
      --> results
    hint: did you mean `1234`? `pdca status` lists all
    --- exit 2
    ");
    insta::assert_snapshot!(desk.run(&["status", "77"]), @"
    --- stderr
    error: there is no bundle issue_77
      --> results
    hint: `pdca new 77` makes one, `pdca status` lists all
    --- exit 2
    ");
}

#[test]
fn watching_shows_once_and_ends_when_nobody_reads() {
    struct Closes(usize);
    impl Write for Closes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            if self.0 > 1 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let desk = desk();
    let args = ["pdca", "status", "--watch"].into_iter().map(Into::into);
    let (mut out, mut err) = (Closes(0), Vec::new());
    assert_eq!(crate::run(args, &desk.env, &mut out, &mut err), Exit::Done);
    assert_eq!(out.0, 1);
}

#[test]
fn a_workspace_without_bundles_is_no_error() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["status"]).to_string(), "no bundles in results\n");
    fs_err::remove_dir(desk.workspace.path().join("results")).unwrap();
    assert_eq!(desk.run(&["status"]).to_string(), "no bundles in results\n");
}

#[test]
fn while_a_driver_is_at_work_each_bundle_says_where_it_is_and_whom_it_holds() {
    let desk = Desk::new();
    desk.workspace.brief("1", &[("Touches", "src/*.py")]);
    desk.workspace.brief("2", &[("Touches", "src/{ab,c}.py")]);
    desk.workspace.brief("3", &[("Conflicts with", "1"), ("Touches", "web")]);
    desk.workspace.brief("4", &[("Depends on", "1"), ("Touches", "src")]);
    desk.workspace.brief("5", &[("Touches", "docs")]);
    let work = desk.at_work(&[("1", 2, 3), ("5", 0, 125)]);
    insta::assert_snapshot!(desk.run(&[]), @"
    running
    PLANNED           1  a-small-thing  [lane 2, 3 min]
    PLANNED           5  a-small-thing  [lane 0, 2 h 5 min]
    waiting
    PLANNED           2  a-small-thing  [held-by: 1 (src/ab.py)]
    PLANNED           3  a-small-thing  [held-by: 1]
    PLANNED           4  a-small-thing  [blocked-by: 1]
    5 bundles: 5 PLANNED

    next: pdca status --watch   # process 7 is at work
    ");
    let json = desk.run(&["status", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fields = ["lane", "since", "holder", "held_by"];
    assert_eq!(
        fields.map(|field| json["bundles"][0][field].to_string()),
        ["2", "\"2026-11-16T11:57:00Z\"", "\"process 7, lane 2\"", "[]"]
    );
    assert_eq!(json["bundles"][1]["held_by"].to_string(), "[\"1\"]");
    insta::assert_snapshot!(desk.run(&["status", "2"]).out.lines().take(4).collect::<Vec<_>>().join("\n"), @"
    issue_2  PLANNED
      directory  results/issue_2
      held-by    1 (src/ab.py)
    Brief
    ");
    insta::assert_snapshot!(desk.run(&["status", "1"]).out.lines().take(4).collect::<Vec<_>>().join("\n"), @"
    issue_1  PLANNED
      directory  results/issue_1
      in work    process 7, lane 2 for 3 min
    Brief
    ");
    drop(work);
    let idle = desk.run(&[]).out;
    assert!(!idle.contains("lane") && !idle.contains("held-by"), "{idle}");
}

#[test]
fn paths_of_different_repositories_hold_nobody() {
    let desk = Desk::new();
    desk.workspace.config(
        "[[targets]]\nname = \"a\"\npath = \"../a\"\n\n[[targets]]\nname = \"b\"\npath = \"../b\"\n",
    );
    for (id, repo) in [("1", "a"), ("2", "b"), ("3", "a")] {
        desk.workspace.brief(id, &[("Touches", "x"), ("Repo + branch target", repo)]);
    }
    let _work = desk.at_work(&[("1", 0, 1)]);
    let shown = desk.run(&["status"]).out;
    assert_eq!(shown.matches("[held-by: 1 (x)]").count(), 1, "{shown}");
}

#[test]
fn at_eighty_columns_nothing_is_wider_whatever_the_names_are() {
    let long =
        "a-title-that-somebody-wrote-without-a-thought-for-narrow-terminals-and-their-people";
    let mut desk = desk();
    desk.env.terminal.width = Some(80);
    desk.workspace.brief(&"x".repeat(100), &[("Slug", long), ("Depends on", "2, 3, 4, 5, 6")]);
    desk.workspace.brief(
        "PROJ-with-a-long-name-1",
        &[("Slug", long), ("Conflicts with", "1, 2, 3, 4"), ("Depends on", "2, 3, 4, 5, 98, 99")],
    );
    desk.awaiting("7", &["a", "b"], "fail");
    desk.workspace.write("results/issue_7/patch.diff", "edited\n");
    let _work = desk.at_work(&[("4", 0, 125)]);
    for args in [&["status"][..], &[], &["queue"], &["show", "7"], &["status", "--format", "table"]]
    {
        let run = desk.run(args);
        for line in run.out.lines() {
            assert!(line.chars().count() <= 80, "{args:?} {}: {line}", line.chars().count());
        }
    }
    let groups: Vec<String> = desk
        .run(&["status"])
        .out
        .lines()
        .filter(|line| ["needs you", "running", "waiting", "done"].contains(line))
        .map(str::to_owned)
        .collect();
    assert_eq!(groups, ["needs you", "running", "done"]);
}
