//! Repositories inside a lane, which no commit of the lane can hold.

use camino::Utf8PathBuf;
use fs_err as fs;
use pdca_lanes::Lane;
use pdca_testkit::Repo;

use crate::scene::{BY, Scene, seen};

fn nested(lane: &Lane) -> Vec<Utf8PathBuf> {
    lane.nested().unwrap()
}

/// A repository with one commit.
fn init(lane: &Lane, path: &str) {
    let repo = Repo::at(&lane.path().join(path));
    repo.write("x", "x\n");
    repo.commit("inner");
}

#[test]
fn a_lane_without_repositories_inside_has_none() {
    let scene = Scene::new(&[("a", "a\n"), ("src/b", "b\n")]);
    let lane = scene.lane();
    fs::create_dir(lane.path().join("new")).unwrap();
    fs::write(lane.path().join("new/c"), "c\n").unwrap();
    assert_eq!(nested(&lane), [""; 0]);
}

#[test]
fn repositories_inside_are_named_wherever_they_are() {
    let scene = Scene::new(&[("a", "a\n"), ("src/b", "b\n"), ("file", "f\n"), ("other", "o\n")]);
    let lane = scene.lane();
    init(&lane, "lib");
    init(&lane, "lib/inner");
    init(&lane, "deep/er");
    init(&lane, "src/sub");
    // In directories with tracked files, or formerly tracked ones.
    Repo::at(&lane.path().join("src"));
    for file in ["file", "other"] {
        fs::remove_file(lane.path().join(file)).unwrap();
    }
    init(&lane, "file");
    init(&lane, "other/inner");
    // A file `.git` is enough; its content does not matter.
    fs::create_dir(lane.path().join("linked")).unwrap();
    fs::write(lane.path().join("linked/.git"), "gitdir: /nowhere\n").unwrap();
    let expected = ["deep/er", "file", "lib", "linked", "other/inner", "src", "src/sub"];
    assert_eq!(nested(&lane), expected);
}

#[test]
fn a_repository_that_was_added_to_the_index_is_named_too() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    init(&lane, "lib");
    seen(&lane).git(&["-c", "advice.addEmbeddedRepo=false", "add", "lib"]);
    assert_eq!(nested(&lane), ["lib"]);
}

#[test]
fn what_a_commit_leaves_out_is_what_is_named() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    init(&lane, "lib");
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["ls-tree", "-r", "--name-only", &commit]), "a\n");
    assert_eq!(nested(&lane), ["lib"]);
}

#[test]
fn ignored_repositories_and_submodules_are_not_named() {
    let scene = Scene::new(&[(".gitignore", "vendor/\n"), ("a", "a\n")]);
    let sub = Scene::new(&[("x", "x\n")]);
    scene.primary.git(&["submodule", "--quiet", "add", sub.primary.path().as_str(), "lib/sub"]);
    scene.primary.commit("with a submodule");
    let lane = scene.lane();
    init(&lane, "vendor/dep");
    init(&lane, "lib/sub");
    assert_eq!(nested(&lane), [""; 0]);
    init(&lane, "lib/other");
    assert_eq!(nested(&lane), ["lib/other"]);
}
