//! Throwaway copies, from which nothing leads back to the lane.

use fs_err as fs;
use pdca_lanes::LaneError;
use pdca_testkit::Repo;

use crate::scene::{BY, Scene, assert_sound, seen};

#[test]
fn a_copy_has_the_files_and_the_history_of_head() {
    let scene = Scene::new(&[("a", "a\n"), ("src/b c", "b\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    let commit = lane.commit_all("change", &BY).unwrap().unwrap();
    fs::write(lane.path().join("a"), "not committed\n").unwrap();
    let dest = scene.beside("job/review/tree");
    lane.copy_to(&dest).unwrap();
    let copy = Repo::existing(&dest);
    assert_eq!(copy.head(), commit);
    assert_eq!(copy.read("a"), b"changed\n");
    assert_eq!(copy.git(&["status", "--porcelain"]), "");
    let patch = copy.git(&["diff", &scene.primary.head(), "HEAD", "--stat"]);
    assert!(patch.contains("1 file changed"), "{patch}");
    assert_sound(&dest);
}

#[test]
fn what_is_written_in_a_copy_reaches_neither_lane_nor_primary() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let dest = scene.beside("copy");
    lane.copy_to(&dest).unwrap();
    let objects = |repo: &Repo| repo.git(&["count-objects", "-v"]);
    let state = || {
        (
            objects(&scene.primary),
            objects(&seen(&lane)),
            scene.primary.git(&["for-each-ref"]),
            seen(&lane).git(&["for-each-ref"]),
            seen(&lane).status(),
        )
    };
    let before = state();
    let copy = Repo::existing(&dest);
    copy.write("a", "edited by the reviewer\n");
    copy.write("new", "x");
    copy.commit("mine");
    copy.git(&["branch", "mine"]);
    copy.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(state(), before);
    fs::remove_dir_all(&dest).unwrap();
    assert_sound(lane.path());
}

#[test]
fn a_destination_with_something_in_it_is_refused() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let dest = scene.beside("copy");
    fs::create_dir_all(&dest).unwrap();
    fs::write(dest.join("x"), "x").unwrap();
    assert!(matches!(lane.copy_to(&dest), Err(LaneError::NotEmpty { .. })));
    assert_eq!(fs::read_dir(&dest).unwrap().count(), 1);
}
