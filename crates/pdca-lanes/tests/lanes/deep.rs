//! Directories inside each other, deeper than anything can be walked with one open file for each.

use camino::Utf8Path;
use fs_err as fs;
use pdca_lanes::{CommitSignature, Lane, LaneError, Reset, Saved};
use rustix::fs::{Mode, OFlags, mkdirat, open, openat};

use crate::scene::{BY, Scene, assert_sound, dirt};

const LEVELS: usize = 3_000;

/// Makes directories inside each other below `dir`, with a file in the innermost.
fn nest(dir: &Utf8Path, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = open(dir.as_std_path(), flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
}

/// Removes everything that was moved beside the checkout. This is also what a host does with its leftovers.
fn discard_rescued(scene: &Scene) {
    let rescued = scene.lanes().root().join("lane-0/rescued");
    pdca_lanes::discard(&rescued, &scene.beside("aside")).unwrap();
    assert!(!rescued.exists());
}

/// Does the work of another bundle in the lane.
fn assert_usable(scene: &Scene, lane: &Lane) {
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(dirt(lane), "");
    fs::write(lane.path().join("innocent.txt"), "x").unwrap();
    assert!(lane.commit_all("work", &BY).unwrap().is_some());
    assert_sound(lane.path());
}

#[test]
fn d23_a_tree_that_is_too_deep_is_refused_as_the_fault_of_the_lane_and_the_next_job_gets_a_usable_one()
 {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.lane();
    nest(lane.path(), LEVELS);
    let refused = lane.commit_all("deep", &BY).unwrap_err();
    assert!(matches!(refused, LaneError::Damaged { .. }), "{refused:?}");
    assert!(refused.to_string().contains("directories inside each other"), "{refused}");
    assert!(refused.is_of_the_lane());
    let refused = lane.reset(&scene.primary.head()).unwrap_err();
    assert!(refused.is_of_the_lane(), "{refused:?}");
    let saved = lane.save("deep").unwrap();
    assert!(matches!(&saved, Saved::Aside { path: Some(path), .. } if path.join("d").is_dir()));
    assert_usable(&scene, &lane);
    drop(lane);
    discard_rescued(&scene);
}

#[test]
fn a_tree_as_deep_as_the_limit_is_committed() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.lane();
    nest(lane.path(), 128);
    let by = CommitSignature { name: "a", email: "a@b", seconds: 1 };
    let commit = lane.commit_all("deep", &by).unwrap().unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!lane.path().join("d").exists());
    lane.reset(&commit).unwrap();
    assert_eq!(dirt(&lane), "");
}

#[test]
fn d23_an_ignored_tree_of_any_depth_is_removed_by_a_reset() {
    let scene = Scene::new(&[(".gitignore", "/d/\n"), ("a.txt", "a\n")]);
    let lane = scene.lane();
    nest(lane.path(), LEVELS);
    assert_eq!(lane.commit_all("nothing", &BY).unwrap(), None);
    assert_eq!(scene.lanes().list().unwrap().len(), 1);
    lane.reset_with(&scene.primary.head(), Reset::Pristine).unwrap();
    assert!(!lane.path().join("d").exists());
    assert_usable(&scene, &lane);
}

#[test]
fn d23_refs_of_a_lane_that_are_too_deep_have_it_made_anew() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.lane();
    nest(&lane.path().join(".git/refs"), 1_500);
    drop(lane);
    let lane = scene.claim();
    assert!(lane.moved_aside().is_some());
    assert_usable(&scene, &lane);
    drop(lane);
    discard_rescued(&scene);
}

#[test]
fn d23_a_lane_with_a_deep_tree_can_be_listed_and_removed() {
    let scene = Scene::new(&[("a.txt", "a\n"), (".gitignore", "/deep/\n")]);
    for place in ["", "deep"] {
        let lane = scene.lane();
        fs::create_dir_all(lane.path().join(place)).unwrap();
        nest(&lane.path().join(place), LEVELS);
        drop(lane);
        assert_eq!(scene.lanes().list().unwrap().len(), 1);
        scene.lanes().remove(0, &scene.target()).unwrap();
        assert!(!scene.checkout().exists());
        if place.is_empty() {
            discard_rescued(&scene);
        }
    }
}
