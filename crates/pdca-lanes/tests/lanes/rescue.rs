//! Keeping the work that a reset would lose.

use fs_err as fs;

use crate::scene::{BY, Scene, assert_sound, own, seen};

#[test]
fn a_clean_lane_has_nothing_to_rescue() {
    let scene = Scene::new(&[(".gitignore", "*.o\n"), ("a", "a\n")]);
    let fresh = scene.claim();
    assert_eq!(fresh.rescue("x").unwrap(), None);
    fresh.reset(&scene.primary.head()).unwrap();
    fs::write(fresh.path().join("x.o"), "ignored").unwrap();
    assert_eq!(fresh.rescue("x").unwrap(), None);
    assert_eq!(seen(&fresh).git(&["for-each-ref"]), "");
}

#[test]
fn d5_dirty_and_untracked_files_are_committed_to_a_ref() {
    let scene = Scene::new(&[("a", "a\n"), ("b", "b\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "dirty\n").unwrap();
    fs::remove_file(lane.path().join("b")).unwrap();
    fs::write(lane.path().join("new file"), "new\n").unwrap();
    let id = lane.rescue("36.g1").unwrap().unwrap();
    let repo = own(&lane);
    assert_eq!(repo.git(&["rev-parse", "refs/pdca/rescue/36.g1"]).trim(), id);
    assert_eq!(repo.git(&["ls-tree", "--name-only", &id]), "a\nnew file\n");
    assert_eq!(repo.git(&["rev-parse", &format!("{id}^")]).trim(), scene.primary.head());
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(repo.git(&["show", &format!("{id}:a")]), "dirty\n");
    assert_sound(lane.path());
}

#[test]
fn commits_that_the_base_does_not_have_are_kept() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "b\n").unwrap();
    let commit = lane.commit_all("work", &BY).unwrap().unwrap();
    assert_eq!(lane.rescue("x").unwrap(), Some(commit.clone()));
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(lane.rescue("y").unwrap(), None);
    assert_eq!(
        own(&lane).git(&["for-each-ref", "--format=%(objectname) %(refname)"]),
        format!("{commit} refs/pdca/rescue/x\n")
    );
}

#[test]
fn what_lies_on_a_branch_without_a_commit_is_kept() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    seen(&lane).git(&["checkout", "--quiet", "--orphan", "fresh"]);
    fs::write(lane.path().join("a"), "work\n").unwrap();
    let id = lane.rescue("x").unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["show", &format!("{id}:a")]), "work\n");
}

#[test]
fn a_name_that_is_taken_gets_a_number_and_nothing_is_overwritten() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    for text in ["one\n", "two\n", "one\n"] {
        fs::write(lane.path().join("a"), text).unwrap();
        lane.rescue("x").unwrap().unwrap();
        lane.reset(&scene.primary.head()).unwrap();
    }
    let refs = own(&lane).git(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/pdca/rescue/x\nrefs/pdca/rescue/x.2\n");
}

#[test]
fn a_repository_inside_the_lane_is_moved_aside_whole() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let inner = pdca_testkit::Repo::at(&lane.path().join("tests/inner"));
    inner.write("x", "x");
    let commit = inner.commit("inner");
    lane.rescue("x").unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    let kept =
        pdca_testkit::Repo::existing(&scene.lanes().root().join("lane-0/rescued/x/tests/inner"));
    assert_eq!(kept.head(), commit);
}

#[test]
fn a_name_that_is_no_ref_is_made_one() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let (long, cut) = ("ü".repeat(200), "ü".repeat(75));
    let cases = [
        ("7-builder-00ff.v2", "7-builder-00ff.v2"),
        ("", "unknown"),
        (".x", "_x"),
        ("..", "__"),
        ("a..b", "a._b"),
        ("../../x", "_._.__x"),
        ("x.lock", "x_lock"),
        ("x.lock.lock", "x.lock_lock"),
        ("x.", "x_"),
        ("a b\tc\nd\u{7f}", "a_b_c_d_"),
        ("~^:?*[\\/", "________"),
        ("HEAD@{1}", "HEAD@_1}"),
        ("@", "@"),
        ("-x", "-x"),
        (&long, &cut),
    ];
    for (at, (name, legal)) in cases.into_iter().enumerate() {
        fs::write(lane.path().join("a"), format!("{at}\n")).unwrap();
        let id = lane.rescue(name).unwrap().unwrap();
        let named = own(&lane).git(&["rev-parse", &format!("refs/pdca/rescue/{legal}")]);
        assert_eq!(named.trim(), id, "{name:?}");
    }
    assert_sound(lane.path());
}

#[test]
fn a_repository_that_is_moved_aside_stays_beside_the_lane_and_over_no_other() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let rescued = scene.lanes().root().join("lane-0/rescued");
    for kept in ["_._x", "_._x.2"] {
        let inner = pdca_testkit::Repo::at(&lane.path().join("inner"));
        inner.write("x", kept);
        let commit = inner.commit("inner");
        lane.rescue("../x").unwrap();
        assert_eq!(pdca_testkit::Repo::existing(&rescued.join(kept).join("inner")).head(), commit);
    }
}
