//! Several targets, and bundles that nobody can read.

use pdca_testkit::Repo;

use crate::meeting::Meeting;

/// A second target whose name comes first, with a change that needs one of the first target.
fn two_targets() -> (Meeting, Repo) {
    let scene = Meeting::with(
        "true",
        "[[targets]]\nname = \"aaa\"\npath = \"../aaa\"\nrepo = \"team/aaa\"\nbranch = \"main\"\n\
         [integrate]\nland = \"target\"\n",
    );
    let other = scene.scene.workspace.target("aaa");
    other.write("greeting.txt", "hello\n");
    other.commit("first");
    scene.accepted("1", "a.txt", "a\n");
    scene.scene.workspace.write("todo/2/b.txt", "b\n");
    let fields = [("Slug", "b"), ("Repo + branch target", "team/aaa @ main"), ("Depends on", "1")];
    scene.scene.workspace.brief("2", &fields);
    scene.pdca(&["run", "2"]).expect(0);
    scene.scene.accept("2");
    other.git(&["switch", "--quiet", "-c", "own-work"]);
    (scene, other)
}

#[test]
fn what_another_target_needs_lands_first() {
    let (scene, other) = two_targets();
    let done = scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "b\nfirst\n");
    let (first, second) = (done.out.find("  1  ").unwrap(), done.out.find("  2  ").unwrap());
    assert!(first < second, "{}", done.out);
}

#[test]
fn what_needs_a_change_of_another_target_that_did_not_land_is_held() {
    let (scene, other) = two_targets();
    scene.commit_to_main("a.txt", "theirs\n");
    let said = scene.integrate(&["--dry-run"]).expect(0);
    assert!(said.out.contains("2 needs 1"), "{}", said.out);
    let done = scene.integrate(&[]).expect(102);
    assert!(done.out.contains("2 needs 1, which has not landed"), "{}", done.out);
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "first\n");
    // Alone it is no better off.
    scene.integrate(&["2"]).expect(3);
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "first\n");
}

#[test]
fn a_bundle_that_cannot_be_read_stops_nobody_who_does_not_need_it() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.waiting("3", &[("Depends on", "2")], &[("c.txt", "c\n")]);
    scene.scene.accept("3");
    let brief = scene.scene.workspace.path().join("results/issue_2/brief.md");
    fs_err::rename(&brief, brief.with_extension("away")).unwrap();
    fs_err::create_dir(&brief).unwrap();
    let done = scene.integrate(&[]).expect(3);
    assert!(done.err.contains("2: left out:"), "{}", done.err);
    assert!(done.out.contains("3 needs 2"), "{}", done.out);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    assert_ne!(scene.integrate(&["2"]).code, 0, "asked for by name it is an error");
    fs_err::remove_dir(&brief).unwrap();
    fs_err::rename(brief.with_extension("away"), &brief).unwrap();
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|3", "a slug|2", "a slug|1", "first|"]);
}

#[test]
fn each_target_branch_has_its_own_line_and_a_command_that_lands_it_alone() {
    let (scene, other) = two_targets();
    let status = scene.pdca(&["status"]).expect(0).out;
    let line = |target: &str| {
        let begins = format!("{target} main  ");
        let found = status.lines().find(|line| line.starts_with(&begins));
        found.unwrap_or_else(|| panic!("{target}: {status}")).to_owned()
    };
    let next = |target: &str| line(target).split_once("  next: ").unwrap().1.to_owned();
    assert_eq!(line("app"), "app main  1 sealed  next: pdca integrate --target app");
    assert_eq!(next("aaa"), "pdca integrate --target aaa");
    let json = scene.pdca(&["status", "--json"]).expect(0).json();
    let targets = json["targets"].as_array().unwrap();
    let named: Vec<(&str, &str)> = targets
        .iter()
        .map(|row| (row["target"].as_str().unwrap(), row["next"].as_str().unwrap()))
        .collect();
    let expected = [("aaa", next("aaa")), ("app", next("app"))];
    assert_eq!(named, expected.each_ref().map(|(target, next)| (*target, next.as_str())));
    // What another target needs is not landed by asking for that alone.
    scene.scene.paste(&next("aaa")).expect(3);
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "first\n");
    scene.scene.paste(&next("app")).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    // One is left: then no target need be named.
    let last = scene.pdca(&[]).expect(0).out.lines().last().unwrap().to_owned();
    let next = last.split_once("next: ").unwrap().1.split("   #").next().unwrap().to_owned();
    scene.scene.paste(&next).expect(0);
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "b\nfirst\n");
    let refused = scene.integrate(&["--target", "bbb"]).expect(2);
    assert!(refused.err.contains("configured: ") && refused.err.contains("aaa"), "{}", refused.err);
}

#[test]
fn two_branches_of_one_target_are_told_apart() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.scene.repo.git(&["branch", "stable", "main"]);
    let scene = scene.looked_at_anew();
    scene.accepted("1", "a.txt", "a\n");
    scene.scene.workspace.write("todo/2/b.txt", "b\n");
    let fields = [("Slug", "b"), ("Repo + branch target", "team/app @ stable")];
    scene.scene.workspace.brief("2", &fields);
    scene.pdca(&["run", "2"]).expect(0);
    scene.scene.accept("2");
    let status = scene.pdca(&["status"]).expect(0).out;
    let stable = status.lines().find(|line| line.starts_with("app stable")).unwrap();
    assert!(stable.ends_with("next: pdca integrate --target app@stable"), "{status}");
    scene.integrate(&["--target", "app@main"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    assert_eq!(scene.log("stable"), ["first|"]);
}

#[test]
fn several_targets_are_told_in_one_document_also_where_one_of_them_fails() {
    let (scene, other) = two_targets();
    let dry = scene.integrate(&["--dry-run", "--json"]).expect(0).json();
    assert_eq!(dry["targets"].as_array().map(Vec::len), Some(2), "{dry}");
    // The branch of the first is checked out, so it does not move; the other needs it.
    let elsewhere = scene.scene.workspace.around().join("second");
    scene.scene.repo.git(&["worktree", "add", "--quiet", elsewhere.as_str(), "main"]);
    let done = scene.integrate(&["--json"]).expect(3).json();
    let targets = done["targets"].as_array().unwrap();
    let of = |name: &str| targets.iter().find(|row| row["target"] == name).unwrap();
    assert!(of("app")["error"].as_str().unwrap().contains("checked out"), "{done}");
    let held = &done["held"][0];
    assert_eq!((&held["target"], &held["reason"]), (&"aaa".into(), &"needs".into()), "{done}");
    scene.scene.repo.git(&["worktree", "remove", elsewhere.as_str()]);
    let done = scene.integrate(&["--json"]).expect(0).json();
    let landed: Vec<&str> =
        done["landed"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(landed, ["1", "2"], "{done}");
    assert_eq!(done["landed"][1]["target"], "aaa", "each with the target it landed in");
    assert_eq!(done["targets"][1]["reference"], "refs/heads/main", "{done}");
    assert_eq!(done["targets"].as_array().map(Vec::len), Some(2));
    assert_eq!(done["tip"], serde_json::Value::Null, "only one branch alone has one tip");
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "b\nfirst\n");
    let nothing = scene.integrate(&["--json"]).expect(4).json();
    assert_eq!(nothing["landed"], serde_json::Value::Array(Vec::new()));
}
