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
    assert_eq!(scene.subjects(), ["pdca: issue_1|1", "first|"]);
    assert_eq!(other.git(&["log", "--format=%s", "main"]), "pdca: issue_2\nfirst\n");
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
    assert_eq!(scene.subjects(), ["pdca: issue_1|1", "first|"]);
    assert_ne!(scene.integrate(&["2"]).code, 0, "asked for by name it is an error");
    fs_err::remove_dir(&brief).unwrap();
    fs_err::rename(brief.with_extension("away"), &brief).unwrap();
    scene.integrate(&[]).expect(0);
    assert_eq!(
        scene.subjects(),
        ["pdca: issue_3|3", "pdca: issue_2|2", "pdca: issue_1|1", "first|"]
    );
}
