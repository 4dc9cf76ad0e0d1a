//! Reports on lanes, which change nothing.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_lanes::{HydrateConfig, HydrationState, LaneFinding, LaneState, Remedy, Target};

use crate::{
    hydrate::{hydrate, list},
    scene::{BY, Scene},
};

/// Records every file below a directory, with everything that shows a change.
fn everything(root: &Utf8Path) -> Vec<(Utf8PathBuf, u64, i64, i64)> {
    let mut found = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in dir.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            let seen = fs::symlink_metadata(&path).unwrap();
            if seen.is_dir() {
                todo.push(path.clone());
            }
            found.push((path, seen.ino(), seen.ctime(), seen.ctime_nsec()));
        }
    }
    found.sort();
    found
}

fn findings(scene: &Scene) -> Vec<LaneFinding> {
    let before = everything(scene.lanes().root());
    let found = scene.lanes().doctor(&[scene.target()]).unwrap();
    assert_eq!(everything(scene.lanes().root()), before, "looking changes nothing");
    found
}

#[test]
fn without_lanes_there_is_nothing_to_say() {
    let scene = Scene::new(&[("a", "a\n")]);
    assert_eq!(scene.lanes().list().unwrap(), []);
    assert_eq!(scene.lanes().doctor(&[scene.target()]).unwrap(), []);
    assert!(!scene.lanes().root().exists());
}

#[test]
fn a_lane_is_listed_as_it_stands() {
    let scene = Scene::new(&[(".gitignore", "*.o\n"), ("a", "a\n")]);
    let base = scene.primary.head();
    let lane = scene.lane();
    let look = || {
        let before = everything(scene.lanes().root());
        let mut lanes = scene.lanes().list().unwrap();
        assert_eq!(everything(scene.lanes().root()), before, "looking changes nothing");
        assert_eq!(lanes.len(), 1);
        lanes.remove(0)
    };
    let fresh = look();
    assert_eq!((fresh.slot, fresh.target.as_str()), (0, "app"));
    assert_eq!(fresh.path, scene.checkout());
    assert_eq!(fresh.state, LaneState::Ready);
    assert_eq!(fresh.base.as_ref(), Some(&base));
    assert_eq!(fresh.head.as_ref(), Some(&base));
    assert_eq!(fresh.dirty, Some(false));
    assert_eq!(fresh.holder.unwrap().pid, Some(std::process::id()));
    assert_eq!(fresh.hydration, HydrationState::None);
    assert!(fresh.size > 0 && fresh.used.is_some());
    fs::write(lane.path().join("x.o"), "ignored").unwrap();
    assert_eq!(look().dirty, Some(false));
    fs::write(lane.path().join("new"), "untracked").unwrap();
    assert_eq!(look().dirty, Some(true));
    let head = lane.commit_all("work", &BY).unwrap().unwrap();
    assert_eq!((look().head, look().dirty), (Some(head), Some(false)));
    fs::write(lane.path().join("a"), "b\n").unwrap();
    assert_eq!(look().dirty, Some(true));
    drop(lane);
    assert_eq!(look().holder, None);
}

#[test]
fn lanes_come_in_the_order_of_their_numbers() {
    let scene = Scene::new(&[("a", "a\n")]);
    for slot in [10, 2, 0] {
        scene.lanes().claim(slot, &scene.target()).unwrap();
    }
    fs::create_dir(scene.lanes().root().join("lane-007")).unwrap();
    let slots: Vec<u32> = scene.lanes().list().unwrap().iter().map(|lane| lane.slot).collect();
    assert_eq!(slots, [0, 2, 10]);
}

#[test]
fn c18_who_looks_all_the_time_keeps_nobody_from_claiming() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let (lanes, target) = (scene.lanes(), scene.target());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                lanes.holder(0).unwrap();
            }
        });
        let claims: Vec<bool> = (0..300).map(|_| lanes.claim(0, &target).is_ok()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(claims.iter().all(|claimed| *claimed));
    });
}

#[test]
fn a_sound_lane_is_nothing_to_speak_of() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), ("a", "a\n")]);
    scene.primary.write("x.env", "x");
    let config = HydrateConfig { copy: list(&["x.env"]), ..HydrateConfig::default() };
    let lane = scene.lane();
    hydrate(&lane, &scene.target(), &config).unwrap();
    assert_eq!(scene.lanes().list().unwrap()[0].hydration, HydrationState::Passed);
    assert_eq!(findings(&scene), []);
    drop(lane);
    assert_eq!(findings(&scene), []);
}

#[test]
fn what_is_not_ours_is_named() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let slot = scene.lanes().root().join("lane-0");
    fs::create_dir(slot.join("stranger")).unwrap();
    assert_eq!(findings(&scene), [LaneFinding::NoMarker { path: slot.join("stranger") }]);
    fs::write(slot.join("app.lane.json"), "{").unwrap();
    let found = findings(&scene);
    assert!(
        matches!(&found[0], LaneFinding::BadMarker { path, .. } if path.ends_with("app.lane.json"))
    );
    assert_eq!(found[0].remedy(), Remedy::MoveAway);
}

#[test]
fn a_copied_lane_and_a_copied_worktree_are_told_from_lanes() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let root = scene.lanes().root().to_owned();
    let copy = pdca_process::Tool::new("cp").args(["-a", "lane-0", "lane-1"]).cwd(&root).run();
    assert_eq!(copy.unwrap().code, 0);
    let path = root.join("lane-1/app");
    assert_eq!(findings(&scene), [LaneFinding::Copied { path: path.clone(), slot: 0 }]);
    fs::remove_dir_all(root.join("lane-1")).unwrap();
    let home = scene.beside("linked");
    scene.primary.git(&["worktree", "add", "--quiet", "--detach", home.as_str()]);
    let checkout = scene.checkout();
    fs::remove_dir_all(checkout.join(".git")).unwrap();
    fs::copy(home.join(".git"), checkout.join(".git")).unwrap();
    let found = findings(&scene);
    assert!(
        matches!(&found[..], [LaneFinding::CopiedWorktree { path, home }]
        if *path == checkout && home.contains("worktrees/linked")),
        "{found:?}"
    );
    assert!(found[0].is_broken());
}

#[test]
fn a_primary_that_moved_went_or_is_another_is_told_before_use() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let (was, now) = (scene.primary.path().to_owned(), scene.beside("moved"));
    let path = scene.checkout();
    fs::rename(&was, &now).unwrap();
    let doctor = |targets: &[Target]| scene.lanes().doctor(targets).unwrap();
    assert_eq!(
        doctor(&[]),
        [LaneFinding::PrimaryGone { path: path.clone(), primary: was.join(".git") }]
    );
    let moved = Target::open("app", &now).unwrap();
    assert_eq!(
        doctor(&[moved]),
        [LaneFinding::PrimaryMoved {
            path: path.clone(),
            was: was.join(".git"),
            now: now.join(".git")
        }]
    );
    let other = pdca_testkit::Repo::at(&was);
    other.commit("another repository");
    let other = Target::open("app", &was).unwrap();
    assert_eq!(doctor(&[other]), [LaneFinding::OtherPrimary { path, primary: was.join(".git") }]);
}

#[test]
fn a_lane_of_no_target_is_told() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let found = scene.lanes().doctor(&[]).unwrap();
    assert_eq!(
        found,
        [LaneFinding::UnknownTarget { path: scene.checkout(), target: "app".to_owned() }]
    );
}

#[test]
fn d9_a_base_that_the_primary_pruned_is_told() {
    let scene = Scene::new(&[("a", "a\n")]);
    let keep = scene.primary.head();
    scene.primary.write("a", "b\n");
    let base = scene.primary.commit("to be pruned");
    drop(scene.lane());
    scene.primary.git(&["reset", "--quiet", "--hard", &keep]);
    scene.primary.git(&["reflog", "expire", "--expire=now", "--all"]);
    scene.primary.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(findings(&scene), [LaneFinding::BaseMissing { path: scene.checkout(), base }]);
}

#[test]
fn what_a_crash_left_is_told_and_who_works_is_let_be() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let lock = scene.checkout().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    assert_eq!(findings(&scene), [], "it may be theirs");
    drop(lane);
    let found = findings(&scene);
    assert_eq!(found, [LaneFinding::StaleLock { path: lock.clone() }]);
    assert_eq!(found[0].remedy(), Remedy::NextClaim);
    drop(scene.lane());
    assert!(!lock.exists(), "as the remedy says");
    let slot = scene.lanes().root().join("lane-0");
    fs::rename(slot.join("app/.git"), slot.join("app.removed")).unwrap();
    let found = findings(&scene);
    assert_eq!(
        found,
        [
            LaneFinding::NoRepository { path: scene.checkout() },
            LaneFinding::HalfRemoved { path: slot.join("app.removed") },
        ]
    );
    drop(scene.lane());
    assert!(findings(&scene).contains(&LaneFinding::Rescued { path: slot.join("rescued") }));
}
