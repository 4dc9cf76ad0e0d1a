//! The refs that a landing moves, and those that it does not.

use pdca_testkit::Repo;

use crate::meeting::Meeting;

#[test]
fn by_default_a_branch_is_left_for_a_person_and_landing_it_is_seen_in_git() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    let main = scene.at("main");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!(scene.at("main"), main, "the branch stays");
    let reference = done["references"][0].as_str().unwrap();
    assert_eq!(reference, "refs/heads/pdca/staging/main");
    assert_eq!(scene.log(reference)[0], "a slug|1");
    // Asked again, it says that the branch waits, and makes no second one.
    let again = scene.integrate(&[]).expect(3);
    let next = again.out.lines().find_map(|line| line.strip_prefix("next: ")).unwrap().to_owned();
    assert!(next.contains("pdca/staging/main") && next.ends_with(":main"), "{next}");
    scene.scene.paste(&next).expect(0);
    assert_eq!(scene.at("main"), scene.at(reference));
    scene.integrate(&[]).expect(4);
}

#[test]
fn asked_again_with_something_held_no_second_branch_is_left() {
    let scene = Meeting::new("! { test -e a.txt && test -e b.txt; }");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.accepted("3", "c.txt", "c\n");
    let first = scene.integrate(&["--json"]).expect(101).json();
    let second = scene.integrate(&["--json"]).expect(101).json();
    assert_eq!((&second["references"], &second["tip"]), (&first["references"], &first["tip"]));
    // Another change goes on from there, in a branch that has all of them.
    scene.accepted("4", "d.txt", "d\n");
    let third = scene.integrate(&["--json"]).expect(101).json();
    let branch = third["references"].as_array().unwrap().last().unwrap().as_str().unwrap();
    let there = scene.log(branch);
    assert_eq!(there, ["a slug|4", "a slug|3", "a slug|1", "first|"]);
}

#[test]
fn a_branch_that_somebody_has_checked_out_does_not_move() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    let elsewhere = scene.scene.workspace.around().join("second");
    scene.scene.repo.git(&["worktree", "add", "--quiet", elsewhere.as_str(), "main"]);
    let main = scene.at("main");
    let refused = scene.integrate(&["--land", "target"]).expect(3);
    assert!(refused.err.contains("main is checked out in"), "{}", refused.err);
    assert!(refused.err.contains("--land branch"), "{}", refused.err);
    assert_eq!(scene.at("main"), main);
    scene.scene.repo.git(&["worktree", "remove", elsewhere.as_str()]);
    let done = scene.integrate(&["--fresh", "--land", "target", "--json"]).expect(0).json();
    assert_eq!(done["gate_runs"], 2, "nothing was gated before it was refused");
}

#[test]
fn a24_what_landed_here_and_was_not_pushed_is_pushed_and_nothing_else_here_moves() {
    let scene = Meeting::new("! { test -e a.txt && test -e b.txt; }");
    let remote = scene.scene.workspace.around().join("remote.git");
    scene.scene.repo.git(&["clone", "--quiet", "--bare", ".", remote.as_str()]);
    let remote_url = remote.as_str().to_owned();
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.accepted("3", "c.txt", "c\n");
    let main = scene.at("main");
    let config = scene.scene.workspace.read("pdca.toml");
    scene.scene.workspace.config(&format!("{config}\n[integrate]\nremote = \"{remote_url}\"\n"));
    // Killed twice before the remote has anything.
    for _ in 0..2 {
        let killed =
            scene.scene.pdca_with(&[("PDCA_CRASH_AT", "push")], &["integrate", "--land", "push"]);
        assert_eq!(killed.code, 128 + 9, "{}", killed.err);
    }
    let done = scene.integrate(&["--land", "push", "--json"]).expect(101).json();
    let there = Repo::existing(&remote);
    assert_eq!(there.git(&["log", "--format=%s", "main"]), "a slug\na slug\nfirst\n");
    assert_eq!(there.git(&["rev-parse", "main"]).trim(), done["tip"].as_str().unwrap());
    assert_eq!(scene.at("main"), main);
}

#[test]
fn with_merge_commits_the_sealed_commits_land_as_they_are() {
    let scene =
        Meeting::with("true", "[integrate]\nstrategy = \"merge-commit\"\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let seal = scene.seal("2");
    scene.integrate(&[]).expect(0);
    let head = seal["head"].as_str().unwrap();
    scene.scene.repo.git(&["merge-base", "--is-ancestor", head, "main"]);
    scene.pdca(&["verify"]).expect(0);
    scene.integrate(&[]).expect(4);
}

#[test]
fn a_certificate_holds_in_a_clone_and_any_changed_byte_is_found() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(0).json();
    let certificate = done["certificates"][0].as_str().unwrap();
    let clone = scene.scene.workspace.around().join("clone.git");
    scene.scene.repo.git(&["clone", "--quiet", "--mirror", ".", clone.as_str()]);
    let said = scene.pdca(&["verify", certificate, "--repo", clone.as_str(), "--json"]).expect(0);
    assert_eq!(said.json()["commit"], done["tip"]);
    let whole = fs_err::read(certificate).unwrap();
    let copy = scene.scene.workspace.path().join("copy.json");
    for place in (0..whole.len()).step_by(whole.len() / 7) {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs_err::write(&copy, damaged).unwrap();
        let refused = scene.pdca(&["verify", copy.as_str()]).expect(1);
        assert!(refused.err.contains("copy.json"), "byte {place}: {}", refused.err);
    }
}

#[test]
fn a_certificate_of_a_project_with_merge_drivers_holds_in_a_named_repository() {
    let scene = Meeting::with("true", "[integrate.merge_drivers]\nown = \"true\"\n");
    scene.accepted("1", "a.txt", "a\n");
    let done = scene.integrate(&["--land", "target", "--json"]).expect(0).json();
    let certificate = done["certificates"][0].as_str().unwrap();
    let repo = scene.scene.repo.path();
    scene.pdca(&["verify", certificate, "--repo", repo.as_str()]).expect(0);
}

#[test]
fn nothing_lands_without_a_gate_over_the_repository() {
    let scene = Meeting::with("true", "");
    let config = scene.scene.workspace.read("pdca.toml");
    scene.accepted("1", "a.txt", "a\n");
    scene
        .scene
        .workspace
        .config(&config.replace("tier = \"T3\"", "tier = \"T3\"\nscope = \"bundle\""));
    let refused = scene.integrate(&["--land", "target"]).expect(2);
    assert!(refused.err.contains("no gating check applies to the repository"), "{}", refused.err);
}
