//! The lock that tells whether any child is alive.

use std::fs::File;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_process::{Cancel, Ending, LivenessLockError, Sign, Spec, load_verdict, wait_until_free};

use crate::support::{Scene, eventually, exists};

/// A script whose supervisor holds the scene's lock.
fn held(scene: &Scene, script: &str) -> Spec {
    let mut spec = scene.script(script);
    spec.hold = Some(lock(scene));
    spec
}

fn lock(scene: &Scene) -> Utf8PathBuf {
    scene.path().join("hold")
}

fn is_free(scene: &Scene) -> bool {
    match wait_until_free(&lock(scene), Duration::ZERO) {
        Ok(()) => true,
        Err(LivenessLockError::StillHeld { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_lock_is_held_while_the_child_runs_and_free_afterwards() {
    let scene = Scene::new();
    let spec = held(&scene, "until test -e seen; do sleep 0.01; done; exit 4");
    let mut free = None;
    let verdict = scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if let Sign::Started { .. } = sign {
            free = Some(is_free(&scene));
            std::fs::write(scene.path().join("seen"), "").unwrap();
        }
    });
    assert_eq!((verdict.ending, free), (Ending::Exited(4), Some(false)));
    assert!(is_free(&scene));
    let left = std::fs::read_dir(scene.path()).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("hold"));
    assert_eq!(left.count(), 0, "a holder that is gone leaves no file");
}

#[test]
fn children_that_run_side_by_side_share_the_lock() {
    let scene = Scene::new();
    let outer = held(&scene, "until test -e seen; do sleep 0.01; done");
    let verdict = scene.run_watched(&outer, &Cancel::new(), &mut |sign| {
        if let Sign::Started { .. } = sign {
            let mut inner = held(&scene, "touch seen");
            inner.job = scene.path().join("inner");
            let verdict = pdca_process::run(&inner, &Cancel::new(), &mut |_| {}).unwrap();
            assert_eq!(verdict.ending, Ending::Exited(0));
        }
    });
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert!(is_free(&scene));
}

#[test]
fn a_child_does_not_inherit_the_lock() {
    let scene = Scene::new();
    scene.run(&held(&scene, "for fd in /proc/$$/fd/*; do readlink $fd; done; echo listed"));
    let output = scene.output();
    assert!(output.contains("listed"), "{output}");
    assert!(!output.contains(lock(&scene).as_str()), "{output}");
}

#[test]
fn a10_the_lock_outlives_the_driver_exactly_as_long_as_its_children_do() {
    let scene = Scene::new();
    let stubborn = "trap '' TERM; while :; do sleep 1000; done";
    let script = format!("setsid sh -c \"{stubborn}\" & touch up; {stubborn}");
    let driver = scene.driver(&held(&scene, &script));
    eventually("the child is up", || exists(scene.path().join("up")));
    assert!(!is_free(&scene));
    driver.signal(9);
    let own = driver.0.id().cast_signed();
    eventually("the lock is free", || {
        // In this order: a process that is alive after the lock was free was alive while it was.
        let free = is_free(&scene);
        let alive: Vec<i32> = scene.alive().into_iter().filter(|pid| *pid != own).collect();
        assert!(!free || alive.is_empty(), "free while {alive:?} live");
        free
    });
    let verdict = load_verdict(&scene.job()).unwrap();
    assert_eq!(verdict.map(|verdict| verdict.ending), Some(Ending::Cancelled));
}

#[test]
fn without_the_lock_nothing_is_started() {
    let scene = Scene::new();
    let mut spec = held(&scene, "touch started");
    std::fs::write(scene.path().join("file"), "").unwrap();
    for bad in ["missing/hold", "file/hold"] {
        spec.hold = Some(scene.path().join(bad));
        let Ending::Infra { why } = scene.run(&spec).ending else {
            panic!("it ran without {bad:?}");
        };
        assert!(why.starts_with("cannot use ") && why.contains(" as a lock"), "{why}");
    }
    assert!(!exists(scene.path().join("started")));
}

#[test]
fn a_process_that_can_only_read_keeps_no_child_from_starting_and_is_not_taken_for_one() {
    let scene = Scene::new();
    std::fs::write(lock(&scene), "").unwrap();
    let reader = File::open(lock(&scene)).unwrap();
    reader.lock().unwrap();
    assert!(is_free(&scene));
    let verdict = scene.run(&held(&scene, "echo ran"));
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert_eq!(scene.output(), "ran\n");
}
