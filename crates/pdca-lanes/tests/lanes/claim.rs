//! Creating, reusing, holding and refusing lanes.

use fs_err as fs;
use pdca_lanes::{ClaimError, Lanes, Target};

use crate::scene::{Scene, assert_sound, dirt, seen};

fn marker(scene: &Scene) -> camino::Utf8PathBuf {
    scene.lanes().root().join("lane-0/app.lane.json")
}

fn refusal(scene: &Scene) -> ClaimError {
    scene.lanes().claim(0, &scene.target()).expect_err("the claim is refused")
}

#[test]
fn a_lane_is_a_checkout_that_git_finds_in_order() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("src/b.txt", "b\n")]);
    let lane = scene.lane();
    assert_eq!(lane.path(), scene.checkout());
    assert_eq!(lane.head().unwrap(), Some(scene.primary.head()));
    assert_eq!(dirt(&lane), "");
    assert_eq!(seen(&lane).read("src/b.txt"), b"b\n");
    assert_sound(lane.path());
}

#[test]
fn a_lane_has_no_objects_and_no_remote_of_its_own() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.lane();
    let repo = seen(&lane);
    assert!(repo.git(&["count-objects"]).starts_with("0 objects"));
    let borrowed = repo.read(".git/objects/info/alternates");
    let primary = scene.primary.path().join(".git/objects");
    let own = lane.repository().join("objects");
    assert_eq!(String::from_utf8_lossy(&borrowed), format!("{own}\n{primary}\n"));
    assert_eq!(repo.git(&["remote"]), "");
    assert_eq!(repo.git(&["config", "core.hooksPath"]).trim(), "/dev/null");
    assert_eq!(repo.git(&["config", "gc.auto"]).trim(), "0");
}

#[test]
fn the_primary_is_not_changed_by_a_single_byte() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    scene.primary.write("a.txt", "dirty\n");
    scene.primary.write("new.txt", "new\n");
    scene.primary.git(&["add", "new.txt"]);
    let digest = || {
        let mut bytes = Vec::new();
        for file in [".git/index", ".git/HEAD", ".git/config", "a.txt", "new.txt"] {
            bytes.push(scene.primary.read(file));
        }
        (bytes, scene.primary.status(), scene.primary.git(&["for-each-ref"]))
    };
    let before = digest();
    let lane = scene.lane();
    fs::write(lane.path().join("b.txt"), "changed\n").unwrap();
    lane.commit_all("change", &crate::scene::BY).unwrap();
    lane.rescue("x").unwrap();
    lane.tree().unwrap();
    assert_eq!(digest(), before);
    assert!(
        scene.primary.git(&["count-objects"]).starts_with("5 objects"),
        "{}",
        scene.primary.git(&["count-objects"])
    );
}

#[test]
fn a_slot_is_lent_once_and_says_to_whom() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let held = scene.claim();
    match refusal(&scene) {
        ClaimError::Held { slot: 0, holder } => assert_eq!(holder, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    drop(held);
    drop(scene.claim());
}

#[test]
fn two_slots_are_independent() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (zero, one) = (scene.lane(), scene.lanes().claim(1, &scene.target()).unwrap());
    one.reset(&scene.primary.head()).unwrap();
    fs::write(zero.path().join("a.txt"), "zero\n").unwrap();
    assert_eq!(dirt(&one), "");
}

#[test]
fn a_lane_keeps_what_is_in_it_until_it_is_reset() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let path = scene.lane().path().to_owned();
    fs::write(path.join("left.txt"), "left\n").unwrap();
    let lane = scene.claim();
    assert_eq!(dirt(&lane), "?? left.txt\n");
}

#[test]
fn a_note_about_the_occupant_outlives_the_claim_and_not_the_checkout() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.lane();
    assert_eq!(lane.owner().unwrap(), None);
    lane.set_owner(b"first").unwrap();
    lane.set_owner(b"7-builder\n\xff\0").unwrap();
    drop(lane);
    assert!(scene.lanes().root().join("lane-0/app.occupant").is_file());
    assert_eq!(scene.lane().owner().unwrap().unwrap(), b"7-builder\n\xff\0");
    assert_eq!(scene.lanes().claim(1, &scene.target()).unwrap().owner().unwrap(), None);
    fs::remove_dir_all(scene.checkout()).unwrap();
    assert_eq!(scene.claim().owner().unwrap(), None);
}

#[test]
fn a_note_about_the_occupant_that_cannot_be_read_is_an_error() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.claim();
    let note = scene.lanes().root().join("lane-0/app.occupant");
    let outside = scene.beside("outside");
    fs::write(&outside, "outside").unwrap();
    for target in [outside.as_str(), "lock", "nowhere"] {
        std::os::unix::fs::symlink(target, &note).unwrap();
        assert!(lane.owner().is_err(), "{target}");
        fs::remove_file(&note).unwrap();
    }
    fs::create_dir(&note).unwrap();
    assert!(lane.owner().is_err());
    fs::remove_dir(&note).unwrap();
    fs::write(&note, [b'x'; 4097]).unwrap();
    assert!(lane.owner().is_err());
    // Whatever is at its path is replaced, and not written through.
    fs::remove_file(&note).unwrap();
    std::os::unix::fs::symlink(&outside, &note).unwrap();
    lane.set_owner(&[b'y'; 4096]).unwrap();
    assert_eq!(lane.owner().unwrap().unwrap(), [b'y'; 4096]);
    assert_eq!(fs::read(&outside).unwrap(), b"outside");
    assert!(lane.set_owner(&[b'z'; 4097]).is_err());
    assert_eq!(lane.owner().unwrap().unwrap(), [b'y'; 4096]);
}

#[test]
fn a_making_that_was_interrupted_is_done_again() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.claim());
    let ready = fs::read_to_string(marker(&scene)).unwrap();
    let preparing = ready.replace("\"ready\"", "\"preparing\"");
    assert_ne!(preparing, ready);
    // The states after each step of the creation: nothing, a part of the repository, all but HEAD, all.
    for keep in [
        &[][..],
        &["objects"],
        &["objects", "refs", "config"],
        &["objects", "refs", "config", "HEAD"],
    ] {
        let git_dir = scene.checkout().join(".git");
        for part in ["objects", "refs", "config", "HEAD", "info"] {
            let path = git_dir.join(part);
            if !keep.contains(&part) && path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else if !keep.contains(&part) && path.exists() {
                fs::remove_file(path).unwrap();
            }
        }
        fs::write(marker(&scene), &preparing).unwrap();
        let lane = scene.lane();
        assert_eq!(dirt(&lane), "", "{keep:?}");
        assert_sound(lane.path());
        assert!(fs::read_to_string(marker(&scene)).unwrap().contains("\"ready\""));
        fs::remove_file(lane.path().join("a.txt")).unwrap();
    }
}

#[test]
fn a_marker_without_a_directory_makes_a_new_one() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    fs::remove_dir_all(scene.checkout()).unwrap();
    assert_eq!(dirt(&scene.lane()), "");
}

#[test]
fn files_in_an_interrupted_lane_that_are_not_ours_are_left_alone() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    let text = fs::read_to_string(marker(&scene)).unwrap();
    fs::write(marker(&scene), text.replace("\"ready\"", "\"preparing\"")).unwrap();
    assert!(matches!(refusal(&scene), ClaimError::Foreign { .. }));
    assert!(scene.checkout().join("a.txt").exists());
}

#[test]
fn a_directory_without_a_marker_is_refused_and_kept() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    fs::create_dir_all(scene.checkout()).unwrap();
    fs::write(scene.checkout().join("precious"), "x").unwrap();
    assert!(matches!(refusal(&scene), ClaimError::Foreign { .. }));
    assert!(scene.checkout().join("precious").exists());
}

#[test]
fn a_lane_of_another_repository_is_refused() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    let other = Scene::new(&[("a.txt", "other\n")]);
    let err = scene.lanes().claim(0, &other.target()).unwrap_err();
    assert!(matches!(err, ClaimError::OtherPrimary { .. }), "{err:?}");
}

#[test]
fn a_lane_of_a_newer_version_is_refused() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    let text = fs::read_to_string(marker(&scene)).unwrap();
    fs::write(marker(&scene), text.replace("\"format\": 1", "\"format\": 9")).unwrap();
    assert!(matches!(refusal(&scene), ClaimError::Newer { format: 9, .. }));
}

#[test]
fn c16_a_primary_that_moved_is_found_again() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let head = scene.primary.head();
    drop(scene.lane());
    let moved = scene.beside("moved");
    fs::rename(scene.primary.path(), &moved).unwrap();
    let target = Target::open("app", &moved).unwrap();
    let lane = scene.lanes().claim(0, &target).unwrap();
    lane.reset(&head).unwrap();
    assert_eq!(dirt(&lane), "");
}

#[test]
fn lanes_inside_a_repository_are_refused() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    for inside in ["lanes", "deep/er/lanes", ".git/lanes"] {
        let lanes = Lanes::new(scene.primary.path().join(inside));
        let err = lanes.claim(0, &scene.target()).unwrap_err();
        assert!(matches!(err, ClaimError::InsideRepository { .. }), "{inside}: {err:?}");
        assert!(!lanes.root().exists());
    }
}

#[test]
fn the_primary_may_be_a_linked_worktree_or_bare() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (linked, bare) = (scene.beside("linked"), scene.beside("bare.git"));
    scene.primary.git(&["worktree", "add", "-q", "-b", "side", linked.as_str()]);
    scene.primary.git(&["clone", "-q", "--bare", ".", bare.as_str()]);
    for (slot, path) in [(1, linked), (2, bare)] {
        let target = Target::open("app", &path).unwrap();
        let lane = scene.lanes().claim(slot, &target).unwrap();
        lane.reset(&target.resolve(Some("main")).unwrap().commit).unwrap();
        assert_eq!(dirt(&lane), "");
    }
}
