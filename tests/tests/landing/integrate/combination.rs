//! Combinations of changes, and the culprits that are named.

use crate::meeting::Meeting;

/// Red where all of these files are there.
fn never_together(files: &[&str]) -> String {
    let tests: Vec<String> = files.iter().map(|file| format!("test -e {file}")).collect();
    format!("! {{ {}; }}", tests.join(" && "))
}

#[test]
fn accepted_changes_are_sealed_gated_together_landed_and_verified() {
    let scene = Meeting::new("test ! -e red");
    scene.accepted("12", "a.txt", "one\n");
    scene.accepted("15", "b.txt", "two\n");
    let done = scene.integrate(&["--land", "target"]).expect(0);
    assert!(done.out.contains("landed  12"), "{}\n{}", done.out, done.err);
    assert_eq!(scene.subjects(), ["a slug|15", "a slug|12", "first|"]);
    let verified = scene.pdca(&["verify"]).expect(0);
    assert!(verified.out.starts_with("holds"), "{}", verified.out);
    scene.integrate(&[]).expect(4);
}

#[test]
fn a_pair_that_is_green_alone_and_red_together_is_named_and_the_rest_lands() {
    let scene = Meeting::new(&never_together(&["a.txt", "b.txt"]));
    scene.accepted("11", "c.txt", "c\n");
    scene.accepted("12", "a.txt", "a\n");
    scene.accepted("13", "d.txt", "d\n");
    scene.accepted("15", "b.txt", "b\n");
    scene.accepted("16", "e.txt", "e\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    let landed: Vec<&str> = done["landed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(landed, ["11", "12", "13", "16"]);
    assert_eq!(done["held"][0]["id"], "15");
    assert_eq!(done["held"][0]["text"], "15 breaks T3-tests only together with 12");
    assert_eq!(done["held"][0]["partners"], serde_json::json!(["12"]));
    assert_eq!(scene.subjects().len(), 5);
    assert!(!scene.log("main").iter().any(|line| line.ends_with("|15")));
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_pair_stays_a_pair_however_often_one_integrates_and_costs_nothing_the_second_time() {
    let scene = Meeting::new(&never_together(&["a.txt", "b.txt"]));
    scene.accepted("11", "c.txt", "c\n");
    scene.accepted("12", "a.txt", "a\n");
    scene.accepted("13", "d.txt", "d\n");
    scene.accepted("15", "b.txt", "b\n");
    // The partner lands by itself, in an integration of its own.
    scene.integrate(&["--land", "target", "12"]).expect(0);
    let first = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    let text = "15 breaks T3-tests only together with 12";
    assert_eq!(first["held"][0]["text"], text);
    assert_eq!(first["landed"].as_array().unwrap().len(), 2);
    let second = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert_eq!((&second["held"][0]["text"], &second["gate_runs"]), (&text.into(), &0.into()));
    // Where nothing is remembered it is found out again.
    let private = scene.scene.workspace.path().join(".pdca");
    std::fs::remove_file(private.join("culprits.json")).unwrap();
    std::fs::remove_dir_all(private.join("verdicts")).unwrap();
    let third = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert_eq!(third["held"][0]["text"], text);
    assert_ne!(third["gate_runs"], 0);
}

#[test]
fn a_change_with_which_a_row_comes_to_no_verdict_is_held_and_the_rest_lands() {
    let scene = Meeting::new("test ! -e a.txt || test ! -e b.txt || exit 77");
    scene.accepted("1", "c.txt", "c\n");
    scene.accepted("2", "a.txt", "a\n");
    scene.accepted("3", "b.txt", "b\n");
    scene.accepted("4", "d.txt", "d\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert_eq!(done["held"][0]["reason"], "undecidable", "{done:#}");
    assert_eq!(
        (&done["held"][0]["id"], &done["held"][0]["partners"][0]),
        (&"3".into(), &"2".into())
    );
    assert_eq!(done["landed"].as_array().unwrap().len(), 3);
    let again = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert_eq!(
        (&again["held"][0]["reason"], &again["gate_runs"]),
        (&"undecidable".into(), &0.into())
    );
}

#[test]
fn three_that_are_red_only_together_are_all_named() {
    let scene = Meeting::new(&never_together(&["a.txt", "b.txt", "c.txt"]));
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "x.txt", "x\n");
    scene.accepted("3", "b.txt", "b\n");
    scene.accepted("4", "c.txt", "c\n");
    let done = scene.integrate(&["--land", "target", "--lanes", "2", "--json"]).expect(101).json();
    assert_eq!(done["held"][0]["text"], "4 breaks T3-tests only together with 1 and 3");
    assert_eq!(done["landed"].as_array().unwrap().len(), 3);
}

#[test]
fn a_change_that_is_red_on_a_branch_that_went_on_is_held_and_the_rest_lands() {
    let scene = Meeting::new(&never_together(&["a.txt", "new.txt"]));
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.commit_to_main("new.txt", "new\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert_eq!(done["held"][0]["text"], "1 breaks T3-tests by itself");
    assert_eq!(scene.subjects(), ["a slug|2", "somebody else|", "first|"]);
}

#[test]
fn a_branch_that_is_red_by_itself_blames_nobody() {
    let scene = Meeting::new("test ! -e bad.txt");
    scene.accepted("1", "a.txt", "a\n");
    scene.commit_to_main("bad.txt", "bad\n");
    let main = scene.at("main");
    let refused = scene.integrate(&["--land", "target"]).expect(100);
    assert!(refused.err.contains("main is red by itself"), "{}", refused.err);
    assert!(refused.err.contains("T3-tests"), "{}", refused.err);
    assert_eq!(scene.at("main"), main);
    let runs = scene.scene.runs();
    assert_eq!(runs[0]["phase"], "blocked_validation", "{runs:?}");
    scene.commit_to_main("other.txt", "still red\n");
    scene.integrate(&["--land", "target"]).expect(100);
    scene.scene.repo.git(&["update-ref", "refs/heads/main", &format!("{main}~1")]);
    let done = scene.integrate(&["--land", "target"]).expect(0);
    assert!(done.out.contains("landed  1"), "{}", done.out);
}

#[test]
fn a_red_that_is_green_when_it_is_asked_again_holds_nobody() {
    let flaky = r#"
if [ -e a.txt ] && [ -e b.txt ] && [ ! -e "$PDCA_WORKSPACE/calls/once" ]; then
  touch "$PDCA_WORKSPACE/calls/once"; exit 1
fi"#;
    let scene = Meeting::new(flaky);
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(0).json();
    assert_eq!(
        (done["landed"].as_array().unwrap().len(), &done["held"]),
        (2, &serde_json::json!([]))
    );
}

#[test]
fn what_depends_on_a_held_change_is_held_and_not_blamed() {
    let scene = Meeting::new(&never_together(&["a.txt", "new.txt"]));
    scene.accepted("1", "a.txt", "a\n");
    scene.waiting("2", &[("Depends on", "1")], &[("b.txt", "b\n")]);
    scene.scene.accept("2");
    scene.accepted("3", "c.txt", "c\n");
    scene.commit_to_main("new.txt", "new\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    let held: Vec<&str> = done["held"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap())
        .collect();
    assert_eq!(held, ["1 breaks T3-tests by itself", "2 needs 1, which has not landed"]);
    assert_eq!(scene.subjects()[0], "a slug|3");
}

#[test]
fn changes_that_disagree_are_told_with_file_and_line_and_the_rest_lands() {
    let scene = Meeting::new("true");
    scene.accepted("1", "greeting.txt", "hello, one\n");
    scene.accepted("2", "greeting.txt", "hello, two\n");
    scene.accepted("3", "c.txt", "c\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(102).json();
    assert_eq!(done["held"][0]["text"], "2 conflicts with 1 in greeting.txt:1");
    assert_eq!(done["held"][0]["files"], serde_json::json!(["greeting.txt"]));
    assert_eq!(done["landed"].as_array().unwrap().len(), 2);
    // Nothing changed since, so the same is found again, and nothing lands twice.
    let main = scene.at("main");
    scene.integrate(&["--land", "target"]).expect(102);
    assert_eq!(scene.at("main"), main);
}

#[test]
fn the_same_change_twice_lands_once() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "the same\n");
    scene.accepted("2", "a.txt", "the same\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(0).json();
    assert_eq!(done["present"], serde_json::json!(["2"]));
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
}

#[test]
fn a_dry_run_says_what_the_real_run_then_does() {
    let scene = Meeting::new("true");
    scene.accepted("1", "greeting.txt", "hello, one\n");
    scene.accepted("2", "greeting.txt", "hello, two\n");
    scene.waiting("4", &[("Depends on", "1")], &[("d.txt", "d\n")]);
    scene.scene.accept("4");
    let refs = scene.scene.repo.git(&["for-each-ref"]);
    let said = scene.integrate(&["--land", "target", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(scene.scene.repo.git(&["for-each-ref"]), refs);
    assert!(!scene.scene.workspace.has(".pdca/held.json"));
    let done = scene.integrate(&["--land", "target", "--json"]).expect(102).json();
    for field in ["order", "tip", "tree", "base"] {
        assert_eq!(said[field], done[field], "{field}");
    }
    assert_eq!(said["would_land"], done["landed"]);
    assert_eq!(said["would_hold"][0]["text"], done["held"][0]["text"]);
}
