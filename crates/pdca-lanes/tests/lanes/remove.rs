//! Removing lanes, and keeping the work in them.

use std::time::Duration;

use fs_err as fs;
use pdca_lanes::{
    ClaimError, LaneKind, RemovalStep, RemoveError, Removed, Stays, SweepDecision, SweepPolicy,
    SweepReason,
};
use pdca_testkit::Repo;

use crate::scene::{BY, Scene, seen};

fn remove(scene: &Scene) -> Removed {
    scene.lanes().remove(0, &scene.target()).unwrap()
}

/// Fetches a bundle into a fresh clone of the primary, as a person would.
fn fetched(scene: &Scene, removed: &Removed) -> Repo {
    let bundle = &removed.kept.as_ref().unwrap().bundle;
    let clone = scene.beside("fetched");
    scene.primary.git(&["clone", "--quiet", ".", clone.as_str()]);
    let repo = Repo::existing(&clone);
    repo.git(&["fetch", "--quiet", bundle.as_str(), "refs/*:refs/rescued/*"]);
    repo
}

#[test]
fn a_clean_lane_goes_without_a_trace_but_its_lock() {
    let scene = Scene::new(&[(".gitignore", "*.o\n"), ("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("cache.o"), "x").unwrap();
    drop(lane);
    let removed = remove(&scene);
    assert_eq!((removed.kept, removed.moved_aside), (None, None));
    let left: Vec<_> = fs::read_dir(scene.lanes().root().join("lane-0"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lock"]);
    assert_eq!(scene.lanes().list().unwrap(), []);
    scene.lane();
}

#[test]
fn uncommitted_work_is_in_the_bundle() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    fs::write(lane.path().join("new"), "new\n").unwrap();
    drop(lane);
    let removed = remove(&scene);
    let rescued = removed.rescued.clone().unwrap();
    assert!(!scene.checkout().exists());
    let repo = fetched(&scene, &removed);
    assert_eq!(repo.git(&["rev-parse", "refs/rescued/pdca/rescue/lane-0"]).trim(), rescued);
    assert_eq!(repo.git(&["show", &format!("{rescued}:a")]), "changed\n");
    assert_eq!(repo.git(&["show", &format!("{rescued}:new")]), "new\n");
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn commits_branches_earlier_rescues_and_every_stash_are_in_the_bundle() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "rescued\n").unwrap();
    let earlier = lane.rescue("36.g1").unwrap().unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    let repo = seen(&lane);
    let mut stashes = Vec::new();
    for text in ["one\n", "two\n"] {
        fs::write(lane.path().join("a"), text).unwrap();
        repo.git(&["stash"]);
        stashes.push(repo.git(&["rev-parse", "refs/stash"]).trim().to_owned());
    }
    repo.git(&["checkout", "--quiet", "-b", "aside"]);
    fs::write(lane.path().join("a"), "aside\n").unwrap();
    repo.git(&["commit", "--quiet", "-am", "aside"]);
    let aside = repo.head();
    lane.reset(&scene.primary.head()).unwrap();
    fs::write(lane.path().join("a"), "head\n").unwrap();
    let head = lane.commit_all("work", &BY).unwrap().unwrap();
    drop(lane);
    let repo = fetched(&scene, &remove(&scene));
    for commit in [&earlier, &stashes[0], &stashes[1], &aside, &head] {
        let named = repo.git(&["for-each-ref", "--points-at", commit, "refs/rescued"]);
        assert!(!named.is_empty(), "{commit} has no ref");
    }
}

#[test]
fn a_ref_of_the_primary_whose_object_is_missing_keeps_no_lane_from_being_removed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    drop(lane);
    let missing = "1".repeat(scene.primary.head().len());
    scene.primary.write(".git/refs/heads/broken", format!("{missing}\n"));
    let packed = "# pack-refs with: peeled fully-peeled sorted ";
    let packed = format!("{packed}\n{missing} refs/tags/broken\n^{missing}\n");
    scene.primary.write(".git/packed-refs", &packed);
    let removed = remove(&scene);
    assert!(removed.kept.is_some() && !scene.checkout().exists());
}

#[test]
fn what_landed_meanwhile_is_not_kept_a_second_time() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "b\n").unwrap();
    lane.commit_all("work", &BY).unwrap().unwrap();
    scene.primary.git(&["fetch", "--quiet", lane.path().as_str(), "HEAD"]);
    scene.primary.git(&["merge", "--quiet", "--ff-only", "FETCH_HEAD"]);
    drop(lane);
    assert_eq!(remove(&scene).kept, None);
}

#[test]
fn what_was_fetched_from_a_remote_is_not_work() {
    let scene = Scene::new(&[("a", "a\n")]);
    let elsewhere = scene.beside("elsewhere");
    scene.primary.git(&["clone", "--quiet", ".", elsewhere.as_str()]);
    let theirs = Repo::existing(&elsewhere);
    theirs.write("b", "theirs\n");
    theirs.commit("theirs");
    let lane = scene.lane();
    seen(&lane).git(&["fetch", "--quiet", elsewhere.as_str(), "main:refs/remotes/elsewhere/main"]);
    let lanes = scene.lanes();
    assert_eq!(lanes.has_work(&lanes.list().unwrap()[0], &scene.target()), Some(false));
    drop(lane);
    assert_eq!(remove(&scene).kept, None);
}

#[test]
fn what_a_killed_removal_left_of_a_bundle_is_in_nobody_s_way() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "work\n").unwrap();
    drop(lane);
    let rescued = scene.lanes().root().join("rescued");
    fs::create_dir(&rescued).unwrap();
    for end in ["", ".lock"] {
        fs::write(rescued.join(format!(".app-lane-0.bundle.new{end}")), "half").unwrap();
    }
    assert!(remove(&scene).kept.is_some());
    assert_eq!(fs::read_dir(&rescued).unwrap().count(), 1);
}

#[test]
fn a_lane_in_use_is_not_removed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let _lane = scene.lane();
    let refused = scene.lanes().remove(0, &scene.target()).unwrap_err();
    assert!(
        matches!(refused, RemoveError::Claim(ClaimError::Held { holder: Some(_), .. })),
        "{refused}"
    );
    assert!(scene.checkout().join("a").exists());
}

#[test]
fn there_must_be_a_lane_to_remove() {
    let scene = Scene::new(&[("a", "a\n")]);
    let refused = scene.lanes().remove(4, &scene.target()).unwrap_err();
    assert_eq!(refused.to_string(), "there is no lane 4 of app");
    assert!(!scene.lanes().root().exists());
}

#[test]
fn repositories_that_were_moved_aside_stay() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let inner = Repo::at(&lane.path().join("inner"));
    inner.write("x", "x");
    let commit = inner.commit("inner");
    drop(lane);
    remove(&scene);
    let kept = scene.lanes().root().join("lane-0/rescued/lane-0/inner");
    assert_eq!(Repo::existing(&kept).head(), commit);
}

#[test]
fn a28_a_removal_that_was_interrupted_is_completed() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let slot = scene.lanes().root().join("lane-0");
    // Once after the rename, and once after the marker was deleted.
    for marker_gone in [false, true] {
        drop(scene.lane());
        fs::rename(slot.join("app"), slot.join("app.removed")).unwrap();
        if marker_gone {
            fs::remove_file(slot.join("app.lane.json")).unwrap();
        }
        remove(&scene);
        assert!(!slot.join("app.removed").exists());
        assert!(!slot.join("app").exists());
    }
}

#[test]
fn a_read_only_directory_that_a_build_left_is_removed_too() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new(&[(".gitignore", "/out\n"), ("a", "a\n")]);
    let lane = scene.lane();
    let out = lane.path().join("out/deep");
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("x"), "x").unwrap();
    fs::set_permissions(&out, std::fs::Permissions::from_mode(0o555)).unwrap();
    drop(lane);
    remove(&scene);
    assert!(!scene.checkout().exists());
}

#[test]
fn a_linked_worktree_is_unregistered_and_its_work_is_a_ref_of_the_primary() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lanes = scene.lanes().of_kind(LaneKind::Worktree);
    let lane = lanes.claim(0, &scene.target()).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    drop(lane);
    let listed = lanes.list().unwrap();
    assert_eq!((listed[0].kind, listed[0].dirty), (LaneKind::Worktree, Some(true)));
    assert_eq!(lanes.doctor(&[scene.target()]).unwrap(), []);
    let removed = lanes.remove(0, &scene.target()).unwrap();
    let rescued = removed.rescued.unwrap();
    assert_eq!(removed.kept, None);
    assert_eq!(scene.primary.git(&["show", &format!("{rescued}:a")]), "changed\n");
    assert!(scene.primary.git(&["for-each-ref", "--points-at", &rescued]).contains("refs/pdca/"));
    assert_eq!(
        scene.primary.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(),
        1
    );
    assert!(!scene.checkout().exists());
    scene.primary.git(&["update-ref", "-d", "refs/pdca/rescue/lane-0"]);
    let lane = lanes.claim(0, &scene.target()).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    drop(lane);
    lanes.remove(0, &scene.target()).unwrap();
    assert_eq!(scene.primary.git(&["for-each-ref", "refs/pdca"]), "", "nothing was there to keep");
}

#[test]
fn whether_there_is_work_is_known_before_anything_is_removed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let target = scene.target();
    let has_work = || {
        let lanes = scene.lanes();
        lanes.has_work(&lanes.list().unwrap()[0], &target)
    };
    let lane = scene.lane();
    assert_eq!(has_work(), Some(false));
    fs::write(lane.path().join("a"), "b\n").unwrap();
    assert_eq!(has_work(), Some(true));
    lane.rescue("x").unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(has_work(), Some(true), "an earlier rescue is work too");
    scene.primary.git(&[
        "fetch",
        "--quiet",
        lane.repository().as_str(),
        "refs/pdca/rescue/x:refs/kept/x",
    ]);
    assert_eq!(has_work(), Some(false), "the primary has it by now");
    drop(lane);
    assert_eq!(remove(&scene).kept, None);
}

#[test]
fn a_sweep_does_what_its_plan_says() {
    let scene = Scene::new(&[("a", "a\n")]);
    let (lanes, target) = (scene.lanes(), scene.target());
    for slot in [0, 1] {
        let lane = lanes.claim(slot, &target).unwrap();
        lane.reset(&scene.primary.head()).unwrap();
    }
    let held = lanes.claim(2, &target).unwrap();
    held.reset(&scene.primary.head()).unwrap();
    let hour = Duration::from_secs(3600);
    let later = lanes.list().unwrap()[2].used.unwrap() + 2 * hour;
    let policy = SweepPolicy::new(later).with_max_age(Some(hour));
    let plan = lanes.plan_sweep(std::slice::from_ref(&target), &policy).unwrap();
    assert_eq!(lanes.list().unwrap().len(), 3, "a plan changes nothing");
    let goes: Vec<u32> = plan
        .items
        .iter()
        .filter(|item| item.decision == SweepDecision::Remove(SweepReason::Old))
        .map(|item| item.lane.slot)
        .collect();
    assert_eq!(goes, [0, 1]);
    assert!(matches!(plan.items[2].decision, SweepDecision::Keep(Stays::InUse)));
    assert!(plan.free > 0 && plan.items.iter().all(|item| item.lane.size > 0));
    for item in plan.items.iter().filter(|item| matches!(item.decision, SweepDecision::Remove(_))) {
        lanes.remove(item.lane.slot, &target).unwrap();
    }
    let left: Vec<u32> = lanes.list().unwrap().iter().map(|lane| lane.slot).collect();
    assert_eq!(left, [2]);
    let full = SweepPolicy::new(later).with_min_free(Some(u64::MAX));
    let plan = lanes.plan_sweep(std::slice::from_ref(&target), &full).unwrap();
    assert!(
        matches!(plan.items[..], [ref item] if matches!(item.decision, SweepDecision::Keep(_)))
    );
}

#[test]
fn a_removal_says_its_steps_when_they_are_done() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(scene.lane());
    let said = std::cell::RefCell::new(Vec::new());
    let slot = scene.lanes().root().join("lane-0");
    let tell = |step: RemovalStep| {
        let has = |name: &str| slot.join(name).exists();
        said.borrow_mut().push((step, has("app"), has("app.removed"), has("app.lane.json")));
    };
    scene.lanes().remove_told(0, &scene.target(), &tell).unwrap();
    let said = said.into_inner();
    assert_eq!(
        said[..5],
        [
            (RemovalStep::Rescued, true, false, true),
            (RemovalStep::Kept, true, false, true),
            (RemovalStep::Renamed, false, true, true),
            (RemovalStep::Cleared, false, false, true),
            (RemovalStep::Left, false, false, true),
        ]
    );
    assert_eq!(said.last(), Some(&(RemovalStep::Left, false, false, false)), "the marker last");
}
