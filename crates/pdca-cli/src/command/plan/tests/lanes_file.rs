use crate::command::plan::tests::desk;
use crate::exit::Exit;
use crate::testing::Desk;

#[test]
fn without_write_nothing_is_written_and_a_dry_run_only_says_so() {
    let desk = desk();
    let before = desk.all_files();
    for args in
        [&["plan"][..], &["plan", "--check"], &["plan", "--write", "-n"], &["plan", "--simulate"]]
    {
        assert_eq!(desk.run(args).exit, Exit::Done, "{args:?}");
        assert_eq!(desk.all_files(), before, "{args:?}");
    }
    assert!(desk.run(&["plan", "--write", "-n"]).out.ends_with("\nlanes.json would be written\n"));
}

/// The last line and the exit code.
fn last(desk: &Desk, args: &[&str]) -> String {
    let run = desk.run(args);
    format!("{} ({})", run.out.lines().last().unwrap_or_default(), run.exit.code())
}

#[test]
fn the_groups_that_were_kept_are_current_until_a_declaration_changes() {
    let desk = desk();
    insta::assert_snapshot!(last(&desk, &["plan", "--write"]), @"lanes.json written (0)");
    insta::assert_snapshot!(last(&desk, &["plan", "--check"]), @"lanes.json is current (0)");
    let written = desk.workspace.read("lanes.json");
    desk.run(&["plan", "--write"]);
    assert_eq!(desk.workspace.read("lanes.json"), written);
    // Work that is done changes nothing.
    desk.awaiting("30", &[], "pass");
    desk.complete("30");
    insta::assert_snapshot!(last(&desk, &["plan", "--check"]), @"lanes.json is current (0)");
    desk.workspace.brief("31", &[]);
    insta::assert_snapshot!(last(&desk, &["plan", "--check"]), @"lanes.json is out of date: `pdca plan --write` plans again, no group gets another letter (3)");
    assert_eq!(desk.workspace.read("lanes.json"), written);
    desk.run(&["plan", "--write", "--join-dependencies"]);
    insta::assert_snapshot!(last(&desk, &["plan", "--check"]), @"lanes.json is current (0)");
}

#[test]
fn planning_again_without_a_bundle_moves_no_survivor() {
    let groups = |desk: &Desk| {
        let json: serde_json::Value =
            serde_json::from_str(&desk.workspace.read("lanes.json")).unwrap();
        let group = |group: &serde_json::Value| format!("{}: {}", group["id"], group["bundles"]);
        json["groups"].as_array().unwrap().iter().map(group).collect::<Vec<_>>().join("; ")
    };
    let desk = desk();
    desk.run(&["plan", "--write"]);
    insta::assert_snapshot!(groups(&desk), @r#""a": ["12","15","21"]; "b": ["18","20"]; "c": ["30"]"#);
    fs_err::remove_dir_all(desk.workspace.bundle("18")).unwrap();
    fs_err::remove_dir_all(desk.workspace.bundle("12")).unwrap();
    desk.workspace.brief("15", &[("Touches", "src/{ab,c}.py")]);
    desk.workspace.brief("20", &[("Touches", "web")]);
    desk.workspace.brief("11", &[("Touches", "etc")]);
    desk.run(&["plan", "--write"]);
    insta::assert_snapshot!(groups(&desk), @r#""a": ["15","21"]; "b": ["20"]; "c": ["30"]; "d": ["11"]"#);
}

#[test]
fn a_bundle_that_was_begun_never_moves() {
    let desk = Desk::new();
    desk.workspace.brief("1", &[("Touches", "a")]);
    desk.workspace.brief("2", &[("Touches", "b")]);
    desk.run(&["plan", "--write"]);
    for id in ["1", "2"] {
        desk.workspace.brief(id, &[("Touches", "a, b")]);
        desk.workspace.write(format!("results/issue_{id}/patch.diff"), "--- a/a\n+++ b/a\n");
    }
    let out = desk.run(&["plan", "--write"]).out;
    insta::assert_snapshot!(out.split_once("groups").unwrap().1.split_once("\n\n").unwrap().0, @"
    what may not run side by side; 1 deep, 2 wide
    a     1
    b     2
    note: 1 and 2 should share a group, but both were begun: `a` meets `a`
    ");
}

#[test]
fn a_damaged_lanes_json_is_an_error_with_its_line_and_not_the_same_as_none() {
    let desk = desk();
    desk.run(&["plan", "--write"]);
    let good = desk.workspace.read("lanes.json");
    let told = |text: &str, args: &[&str]| {
        desk.workspace.write("lanes.json", text);
        let before = desk.all_files();
        let run = desk.run(args);
        assert_eq!(desk.all_files(), before);
        run
    };
    insta::assert_snapshot!(told(&good[..good.len() / 2], &["plan", "--write"]), @"
    --- stderr
    error: lanes.json cannot be used: it is damaged
      --> lanes.json:48
      because: EOF while parsing a string at line 48 column 18
    hint: restore it from version control, or remove the file to have groups made anew
    --- exit 2
    ");
    insta::assert_snapshot!(told(&good.replace("\"schema\": 1", "\"schema\": 2"), &["plan"]), @"
    --- stderr
    error: lanes.json cannot be used: its schema is 2, this program knows 1
      --> lanes.json:2
    hint: another version of pdca wrote it: use that one, or remove the file to have groups made anew
    --- exit 2
    ");
    insta::assert_snapshot!(told(&good.replace("\"21\"", "\"30\""), &["plan", "--check"]), @"
    --- stderr
    error: lanes.json cannot be used: bundle 30 is in group a and in group c
      --> lanes.json:29
    hint: restore it from version control, or remove the file to have groups made anew
    --- exit 2
    ");
    insta::assert_snapshot!(told("", &["plan"]), @"
    --- stderr
    error: lanes.json cannot be used: it is damaged
      --> lanes.json:1
      because: EOF while parsing a value at line 1 column 0
    hint: restore it from version control, or remove the file to have groups made anew
    --- exit 2
    ");
    desk.workspace.brief("12", &[("Depends on", "12")]);
    let both = told("{", &["plan"]).err;
    assert!(both.contains("12 depends on itself") && both.contains("lanes.json:1"), "{both}");
}

#[test]
fn a_bundle_that_has_a_group_is_not_left_out_of_the_file() {
    let desk = desk();
    desk.run(&["plan", "--write"]);
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["plan", "12", "15", "--write"]), @"
    --- stderr
    error: lanes.json has a group for 18, 20, 21, 30, which would lose it
      --> lanes.json
    hint: name all bundles that are not finished, or none: `pdca plan --write`
    --- exit 2
    ");
    assert_eq!(desk.all_files(), before);
}
