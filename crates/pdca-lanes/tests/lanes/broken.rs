//! Lanes that a process in them broke: moved aside and created anew.

use std::os::unix::fs::{PermissionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_lanes::ClaimError;

use crate::scene::{Inventory, Scene, assert_sound, dirt, inventory_except};

fn rescued(scene: &Scene, name: &str) -> Utf8PathBuf {
    scene.lanes().root().join("lane-0/rescued").join(name)
}

/// Claims the lane, and checks that it is as new and the broken one was moved to the reported path.
fn assert_made_anew(scene: &Scene, to: &str) {
    let lane = scene.claim();
    assert_eq!(lane.moved_aside(), Some(&*rescued(scene, to)));
    assert_eq!(lane.owner().unwrap(), None);
    assert_eq!(lane.head().unwrap(), None);
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(dirt(&lane), "");
    assert_sound(lane.path());
    drop(lane);
    assert_eq!(scene.claim().moved_aside(), None);
}

/// Everything below a directory.
fn inventory(dir: &Utf8Path) -> Inventory {
    inventory_except(dir, &[])
}

#[test]
fn a_sound_lane_is_not_moved() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    assert_eq!(scene.claim().moved_aside(), None);
    drop(scene.lane());
    assert_eq!(scene.claim().moved_aside(), None);
    assert!(!rescued(&scene, "").exists());
}

#[test]
fn a_lane_whose_repository_was_removed_is_moved_aside_with_what_is_in_it() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    for (count, text) in [(1, "first"), (2, "second")] {
        let lane = scene.lane();
        lane.set_owner(b"someone").unwrap();
        fs::remove_dir_all(lane.path().join(".git")).unwrap();
        fs::write(lane.path().join("work.txt"), text).unwrap();
        drop(lane);
        assert_made_anew(&scene, &format!("app-{count}"));
    }
    let kept = |name: &str| fs::read_to_string(rescued(&scene, name).join("work.txt")).unwrap();
    assert_eq!((kept("app-1"), kept("app-2")), ("first".to_owned(), "second".to_owned()));
}

#[test]
fn a_lane_whose_repository_leads_elsewhere_is_moved_aside_and_elsewhere_is_untouched() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let elsewhere = scene.primary.path().join(".git");
    let before = inventory(&elsewhere);
    let git_dir = scene.checkout().join(".git");
    for count in [1, 2, 3] {
        drop(scene.lane());
        fs::remove_dir_all(&git_dir).unwrap();
        match count {
            1 => symlink(&elsewhere, &git_dir).unwrap(),
            2 => symlink("nowhere", &git_dir).unwrap(),
            _ => fs::write(&git_dir, format!("gitdir: {elsewhere}\n")).unwrap(),
        }
        assert_made_anew(&scene, &format!("app-{count}"));
    }
    assert_eq!(rescued(&scene, "app-1/.git").read_link_utf8().unwrap(), elsewhere);
    assert_eq!(inventory(&elsewhere), before);
}

#[test]
fn a_lane_replaced_by_a_link_is_moved_aside_and_the_other_directory_is_untouched() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    // One that still looks like a lane, and one that does not.
    for (count, other) in [(1, scene.primary.path().to_owned()), (2, scene.beside("plain"))] {
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("precious"), "x").unwrap();
        let before = inventory(&other);
        drop(scene.lane());
        fs::remove_dir_all(scene.checkout()).unwrap();
        symlink(&other, scene.checkout()).unwrap();
        assert_made_anew(&scene, &format!("app-{count}"));
        assert_eq!(rescued(&scene, &format!("app-{count}")).read_link_utf8().unwrap(), other);
        assert_eq!(inventory(&other), before);
    }
}

#[test]
fn a_lane_whose_repository_is_not_whole_is_moved_aside() {
    let breaks: [fn(&Utf8Path); 5] = [
        |git_dir| fs::remove_file(git_dir.join("HEAD")).unwrap(),
        |git_dir| fs::write(git_dir.join("HEAD"), "garbage\n").unwrap(),
        |git_dir| fs::remove_dir_all(git_dir.join("refs")).unwrap(),
        |git_dir| fs::remove_dir_all(git_dir.join("objects")).unwrap(),
        |git_dir| symlink("..", git_dir.join("refs/heads/out")).unwrap(),
    ];
    let scene = Scene::new(&[("a.txt", "a\n")]);
    for (at, breaks) in breaks.into_iter().enumerate() {
        drop(scene.lane());
        breaks(&scene.checkout().join(".git"));
        assert_made_anew(&scene, &format!("app-{}", at + 1));
    }
}

#[test]
fn a_broken_lane_that_may_not_be_written_is_moved_aside() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    fs::remove_dir_all(scene.checkout().join(".git")).unwrap();
    fs::set_permissions(scene.checkout(), PermissionsExt::from_mode(0o555)).unwrap();
    assert_made_anew(&scene, "app-1");
    assert!(rescued(&scene, "app-1/a.txt").exists());
}

#[test]
fn nothing_is_moved_through_a_link_in_the_place_of_what_was_rescued() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    fs::remove_dir_all(scene.checkout().join(".git")).unwrap();
    let outside = scene.beside("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, rescued(&scene, "").as_str().trim_end_matches('/')).unwrap();
    let err = scene.lanes().claim(0, &scene.target()).unwrap_err();
    assert!(matches!(err, ClaimError::Foreign { .. }), "{err:?}");
    assert!(scene.checkout().join("a.txt").exists());
    assert_eq!(inventory(&outside), []);
}

#[test]
fn a_broken_directory_that_is_not_ours_is_refused_and_kept() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    drop(scene.lane());
    fs::remove_dir_all(scene.checkout().join(".git")).unwrap();
    let other = Scene::new(&[("a.txt", "other\n")]);
    let err = scene.lanes().claim(0, &other.target()).unwrap_err();
    assert!(matches!(err, ClaimError::OtherPrimary { .. }), "{err:?}");
    fs::remove_file(scene.lanes().root().join("lane-0/app.lane.json")).unwrap();
    let err = scene.lanes().claim(0, &scene.target()).unwrap_err();
    assert!(matches!(err, ClaimError::Foreign { .. }), "{err:?}");
    assert!(scene.checkout().join("a.txt").exists());
    assert!(!rescued(&scene, "").exists());
}

#[test]
fn what_git_would_not_take_or_would_take_for_ever_is_refused_and_the_lane_renewed_without_git() {
    type Spoil = fn(&Utf8Path);
    let scene = Scene::new(&[("a.txt", "a\n"), (".gitignore", "*.ign\n")]);
    let spoils: [(&str, Spoil); 5] = [
        ("a path that git refuses", |dir| {
            fs::create_dir(dir.join(".GIT")).unwrap();
            fs::write(dir.join(".GIT/config"), "x").unwrap();
        }),
        ("a file that is too large", |dir| {
            fs::File::create(dir.join("big")).unwrap().set_len(20 << 30).unwrap();
        }),
        ("a tracked file that is too large", |dir| {
            fs::File::create(dir.join("a.txt")).unwrap().set_len(20 << 30).unwrap();
        }),
        ("ignore rules that never end", |dir| {
            fs::remove_file(dir.join(".gitignore")).unwrap();
            symlink("/dev/zero", dir.join(".gitignore")).unwrap();
            fs::write(dir.join("new.txt"), "x").unwrap();
        }),
        ("no repository", |dir| fs::remove_dir_all(dir.join(".git")).unwrap()),
    ];
    for (what, spoil) in spoils {
        let lane = scene.lane();
        spoil(lane.path());
        let by = pdca_lanes::CommitSignature { name: "a", email: "a@b", seconds: 1 };
        let refused = lane.commit_all("x", &by).unwrap_err();
        assert!(refused.is_of_the_lane(), "{what}: {refused}");
        let saved = lane.save("work").unwrap();
        if let pdca_lanes::Saved::Aside { path: Some(path), .. } = &saved {
            assert!(path.is_dir(), "{what}: it is kept");
        }
        if lane.reset(&scene.primary.head()).is_err() {
            lane.renew().unwrap();
            lane.reset(&scene.primary.head()).unwrap();
        }
        assert_eq!(dirt(&lane), "", "{what}");
        assert_sound(lane.path());
    }
}

#[test]
fn an_index_that_is_a_directory_is_of_no_consequence() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let lane = scene.lane();
    fs::remove_file(lane.path().join(".git/index")).unwrap();
    fs::create_dir(lane.path().join(".git/index")).unwrap();
    fs::write(lane.path().join("new.txt"), "x").unwrap();
    let by = pdca_lanes::CommitSignature { name: "a", email: "a@b", seconds: 1 };
    let commit = lane.commit_all("x", &by).unwrap().unwrap();
    assert_eq!(lane.head().unwrap(), Some(commit));
    assert_eq!(dirt(&lane), "");
    assert_sound(lane.path());
}

#[test]
fn an_end_that_is_asked_for_is_no_fault_of_the_lane() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let cancel = pdca_process::Cancel::new();
    drop(scene.lane());
    let lane = scene.lanes().ended_by(&cancel).claim(0, &scene.target()).unwrap();
    fs::write(lane.path().join("new.txt"), "x").unwrap();
    cancel.cancel();
    let stopped = lane.tree().unwrap_err();
    assert!(!stopped.is_of_the_lane(), "{stopped:?}");
}
