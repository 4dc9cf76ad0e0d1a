//! Programs that manipulate the `.git` of their lane.

use std::os::unix::fs::symlink;

use fs_err as fs;
use pdca_lanes::LaneError;

use crate::scene::{BY, Scene, dirt, seen};

#[test]
fn a_link_in_the_repository_of_a_lane_stops_everything() {
    for part in ["refs", "refs/heads", "objects", "HEAD", "index", "logs", "info"] {
        let scene = Scene::new(&[("a", "a\n")]);
        let lane = scene.lane();
        let path = lane.path().join(".git").join(part);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        symlink(scene.primary.path().join(".git").join(part), &path).unwrap();
        let before = scene.primary.git(&["for-each-ref"]);
        assert!(
            matches!(lane.reset(&scene.primary.head()), Err(LaneError::Damaged { .. })),
            "{part}"
        );
        assert!(matches!(lane.rescue("x"), Err(LaneError::Damaged { .. })), "{part}");
        assert_eq!(scene.primary.git(&["for-each-ref"]), before);
    }
}

#[test]
fn a_pipe_in_the_repository_of_a_lane_is_not_waited_for() {
    for part in ["index", "config", "HEAD", "refs/heads/x", "info/exclude"] {
        let scene = Scene::new(&[("a", "a\n")]);
        let lane = scene.lane();
        let path = lane.path().join(".git").join(part);
        drop(fs::remove_file(&path));
        let made = pdca_process::Tool::new("mkfifo").args([path.as_str()]).run().unwrap();
        assert_eq!(made.code, 0);
        let err = lane.reset(&scene.primary.head()).unwrap_err();
        assert!(matches!(err, LaneError::Damaged { .. }), "{part}: {err:?}");
        drop(lane);
        assert!(scene.claim().moved_aside().is_some(), "{part}");
    }
}

#[test]
fn a_lane_that_points_to_the_primary_is_refused() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::remove_dir_all(lane.path().join(".git")).unwrap();
    fs::write(lane.path().join(".git"), format!("gitdir: {}/.git\n", scene.primary.path()))
        .unwrap();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    let before = (scene.primary.status(), scene.primary.head());
    assert!(matches!(lane.commit_all("x", &BY), Err(LaneError::Damaged { .. })));
    assert!(matches!(lane.reset(&scene.primary.head()), Err(LaneError::Damaged { .. })));
    assert_eq!((scene.primary.status(), scene.primary.head()), before);
}

#[test]
fn d16_programs_named_in_the_lane_are_never_run() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let ran = scene.beside("ran");
    let evil = format!("touch {ran}; cat");
    let repo = seen(&lane);
    for key in [
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.command",
        "diff.external",
        "core.pager",
    ] {
        repo.git(&["config", key, &evil]);
    }
    fs::write(lane.path().join(".git/info/attributes"), "* filter=evil diff=evil\n").unwrap();
    fs::create_dir_all(lane.path().join(".git/hooks")).unwrap();
    for hook in ["post-checkout", "pre-commit", "post-index-change", "reference-transaction"] {
        let hook = lane.path().join(".git/hooks").join(hook);
        fs::write(&hook, format!("#!/bin/sh\ntouch {ran}\n")).unwrap();
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::write(lane.path().join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    let patch = lane.diff(&scene.primary.head(), &commit).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    lane.apply(&patch).unwrap();
    lane.tree().unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!ran.exists());
}

#[test]
fn replaced_and_grafted_history_is_not_believed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let repo = seen(&lane);
    fs::write(lane.path().join("a"), "other\n").unwrap();
    let other = lane.commit_all("other", &BY).unwrap().unwrap();
    repo.git(&["replace", &scene.primary.head(), &other]);
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(repo.read("a"), b"a\n");
}

#[test]
fn an_index_of_garbage_is_replaced() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join(".git/index"), "garbage").unwrap();
    let tree = lane.tree().unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(dirt(&lane), "");
    assert_eq!(lane.tree().unwrap(), tree);
}
