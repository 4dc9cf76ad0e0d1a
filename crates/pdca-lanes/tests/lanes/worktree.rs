//! Lanes that are linked worktrees of the primary.

use fs_err as fs;
use pdca_lanes::{
    ClaimError, Lane, LaneError, LaneKind, Lanes, Provision, ProvisionError, Reset, Tripwire,
};

use crate::scene::{BY, Scene, assert_sound, dirt, provision, seen};

fn claim(scene: &Scene, slot: u32) -> Lane {
    let lanes = scene.lanes().of_kind(LaneKind::Worktree);
    lanes.claim(slot, &scene.target()).expect("the lane is free")
}

/// A worktree lane reset to the primary's HEAD.
fn lane(scene: &Scene) -> Lane {
    let lane = claim(scene, 0);
    lane.reset(&scene.primary.head()).unwrap();
    lane
}

fn listed(scene: &Scene) -> Vec<String> {
    let said = scene.primary.git(&["worktree", "list", "--porcelain"]);
    said.lines().map(str::to_owned).collect()
}

#[test]
fn c10_git_lists_it_as_a_locked_worktree_of_the_primary() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("src/b.txt", "b\n")]);
    let lane = lane(&scene);
    assert_eq!(lane.kind(), LaneKind::Worktree);
    assert_eq!(dirt(&lane), "");
    assert_eq!(lane.head().unwrap(), Some(scene.primary.head()));
    assert_eq!(seen(&lane).read("src/b.txt"), b"b\n");
    assert_sound(lane.path());
    let listed = listed(&scene);
    assert!(listed.contains(&format!("worktree {}", lane.path())), "{listed:?}");
    assert!(listed.iter().any(|line| line.starts_with("locked a lane of pdca")), "{listed:?}");
    // It survives the pruning of worktrees that are not locked.
    fs::rename(lane.path(), scene.beside("away")).unwrap();
    scene.primary.git(&["worktree", "prune", "--expire=now"]);
    fs::rename(scene.beside("away"), lane.path()).unwrap();
    assert_eq!(dirt(&lane), "");
}

#[test]
fn every_operation_works_as_in_a_lane_of_the_other_kind() {
    let scene = Scene::new(&[(".gitignore", "*.o\n"), ("a", "a\n"), ("dir/b", "b\n")]);
    let base = scene.primary.head();
    let run = |lane: &Lane| {
        lane.reset(&base).unwrap();
        fs::write(lane.path().join("a"), "changed\n").unwrap();
        fs::write(lane.path().join("new"), "new\n").unwrap();
        fs::write(lane.path().join("x.o"), "cache").unwrap();
        let changed = lane.changed_tracked().unwrap();
        let tree = lane.tree().unwrap();
        let rescued = lane.rescue("left").unwrap();
        let commit = lane.commit_all("change", &BY).unwrap().unwrap();
        let patch = lane.diff(&base, &commit).unwrap();
        lane.reset(&base).unwrap();
        let kept = lane.path().join("x.o").exists();
        lane.apply(&patch).unwrap();
        let again = lane.tree().unwrap();
        lane.reset_with(&base, Reset::Pristine).unwrap();
        let gone = !lane.path().join("x.o").exists();
        (changed, tree, rescued, commit, patch, kept, again, gone, dirt(lane))
    };
    let reference = scene.lanes().claim(1, &scene.target()).unwrap();
    let (ours, theirs) = (run(&claim(&scene, 0)), run(&reference));
    assert_eq!(ours, theirs);
    assert!(ours.5 && ours.7);
}

#[test]
fn a_copy_of_it_is_a_repository_of_its_own() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = lane(&scene);
    let copy = scene.beside("copy");
    lane.copy_to(&copy).unwrap();
    assert!(copy.join(".git/objects").is_dir());
    assert_sound(&copy);
}

#[test]
fn a_new_one_has_nothing_to_rescue() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = claim(&scene, 0);
    assert_eq!(lane.head().unwrap(), None);
    assert_eq!(lane.rescue("nothing").unwrap(), None);
    assert_eq!(scene.primary.git(&["for-each-ref", "refs/pdca"]), "");
}

#[test]
fn it_is_claimed_again_as_what_it_is() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(lane(&scene));
    let again = scene.claim();
    assert_eq!((again.kind(), again.moved_aside()), (LaneKind::Worktree, None));
    assert_eq!(listed(&scene).iter().filter(|line| line.starts_with("worktree ")).count(), 2);
}

#[test]
fn provisioning_does_not_turn_one_kind_into_the_other() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(lane(&scene));
    let (target, base) = (scene.target(), scene.primary.head());
    let request = |kind| Provision::new(0..1, &target, &base).with_kind(kind);
    let provision = |kind| scene.lanes().provision(&request(kind), &|_| {});
    match provision(LaneKind::Reference) {
        Err(ProvisionError::Claim { source: ClaimError::OtherKind { kind, .. }, .. }) => {
            assert_eq!(kind, LaneKind::Worktree);
        }
        other => panic!("{other:?}"),
    }
    assert!(!provision(LaneKind::Worktree).unwrap()[0].made);
}

#[test]
fn many_are_registered_at_once() {
    let scene = Scene::new(&[("a", "a\n"), ("b/c", "c\n")]);
    std::thread::scope(|scope| {
        for slot in 0..6 {
            let scene = &scene;
            scope.spawn(move || claim(scene, slot).reset(&scene.primary.head()).unwrap());
        }
    });
    assert_eq!(listed(&scene).iter().filter(|line| line.starts_with("locked ")).count(), 6);
}

#[test]
fn a_copied_worktree_is_refused_by_name() {
    let scene = Scene::new(&[("a", "a\n")]);
    let original = lane(&scene);
    let copy = scene.lanes().root().join("lane-1");
    scene.primary.git(&["worktree", "list"]);
    let copied = |from: &str, to: &str| {
        let files = scene.lanes().root().join("lane-0").join(from);
        let args = ["-a", files.as_str(), to];
        assert_eq!(pdca_process::Tool::new("cp").args(args).run().unwrap().code, 0);
    };
    fs::create_dir(&copy).unwrap();
    copied("app", copy.as_str());
    let before = scene.primary.status();
    match scene.lanes().claim(1, &scene.target()) {
        Err(ClaimError::Foreign { why, .. }) => assert!(why.contains("another checkout"), "{why}"),
        other => panic!("{other:?}"),
    }
    // The copy has a marker too, which names the original.
    copied("app.lane.json", copy.as_str());
    let err = scene.lanes().claim(1, &scene.target()).unwrap_err();
    assert!(matches!(err, ClaimError::Copied { slot: 0, .. }), "{err:?}");
    assert_eq!(scene.primary.status(), before);
    assert_eq!(dirt(&original), "");
}

#[test]
fn one_whose_directory_is_gone_is_made_again_under_one_registration() {
    let scene = Scene::new(&[("a", "a\n")]);
    let gone = lane(&scene);
    fs::write(gone.path().join("a"), "work\n").unwrap();
    let commit = gone.commit_all("work", &BY).unwrap().unwrap();
    fs::remove_dir_all(gone.path()).unwrap();
    drop(gone);
    let again = lane(&scene);
    assert_eq!(dirt(&again), "");
    assert_eq!(listed(&scene).iter().filter(|line| line.starts_with("locked ")).count(), 1);
    // A commit that exists nowhere else is kept.
    let kept = scene.primary.git(&["for-each-ref", "--format=%(objectname)", "refs/pdca/rescue"]);
    assert_eq!(kept.trim(), commit);
}

#[test]
fn one_that_points_elsewhere_is_put_back_and_nothing_is_written_there() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = lane(&scene);
    let elsewhere = scene.beside("elsewhere");
    scene.primary.git(&["clone", "-q", ".", elsewhere.as_str()]);
    let before = pdca_testkit::Repo::existing(&elsewhere).status();
    fs::write(lane.path().join(".git"), format!("gitdir: {elsewhere}/.git\n")).unwrap();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    lane.commit_all("change", &BY).unwrap().unwrap();
    assert_eq!(pdca_testkit::Repo::existing(&elsewhere).status(), before);
    // A `.git` that is not a file cannot be restored.
    fs::remove_file(lane.path().join(".git")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join(".git"), lane.path().join(".git")).unwrap();
    assert!(matches!(lane.tree(), Err(LaneError::Damaged { .. })));
}

#[test]
fn c16_a_primary_that_moved_takes_it_along() {
    let scene = Scene::new(&[("a", "a\n")]);
    drop(lane(&scene));
    let moved = scene.beside("moved");
    fs::rename(scene.primary.path(), &moved).unwrap();
    let target = pdca_lanes::Target::open("app", &moved).unwrap();
    let lane = scene.lanes().claim(0, &target).unwrap();
    assert_eq!(lane.moved_aside(), None);
    assert_eq!(dirt(&lane), "");
}

#[test]
fn what_we_do_in_it_trips_nothing_and_what_reaches_the_user_does() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = lane(&scene);
    let wire = Tripwire::arm(&scene.target(), &[]).unwrap();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    lane.rescue("left").unwrap();
    lane.commit_all("change", &BY).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(wire.breaches(), [""; 0]);
    // Refs and the stash are shared and not protected in this kind, so the tripwire must report them.
    fs::write(lane.path().join("a"), "stashed\n").unwrap();
    seen(&lane).git(&["stash", "--quiet"]);
    seen(&lane).git(&["branch", "mine"]);
    let breaches = wire.breaches().join("\n");
    assert!(breaches.contains("refs/stash") && breaches.contains("refs/heads/mine"), "{breaches}");
}

#[test]
fn programs_named_in_the_primary_are_not_run() {
    let scene = Scene::new(&[("a", "a\n")]);
    let ran = scene.beside("ran");
    let evil = format!("touch {ran}; cat");
    for key in ["filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "diff.external"] {
        scene.primary.git(&["config", key, &evil]);
    }
    let lane = lane(&scene);
    fs::write(lane.path().join(".gitattributes"), "* filter=evil\n").unwrap();
    fs::write(lane.path().join("a"), "changed\n").unwrap();
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    lane.diff(&scene.primary.head(), &commit).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!ran.exists());
}

#[test]
fn worktrees_are_registered_beside_others_that_are_half_registered_or_come_and_go() {
    let scene = Scene::new(&[("a", "a\n"), ("dir/b", "b\n")]);
    let common = scene.primary.path().join(".git");
    // An incomplete registration of a process that died, which git does not prune.
    fs_err::create_dir_all(common.join("worktrees/app")).unwrap();
    fs_err::write(common.join("worktrees/app/locked"), "not ours\n").unwrap();
    let target = scene.target();
    let base = scene.primary.head();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The user adds and removes worktrees at the same time. git itself fails if a worktree that it has just listed
        // goes away, and then the user tries again.
        let (primary, done, path) = (&scene.primary, &done, scene.beside("users-own"));
        scope.spawn(move || {
            let mut made = 0;
            while made == 0 || !done.load(std::sync::atomic::Ordering::Relaxed) {
                let add = ["worktree", "add", "--force", "--quiet", "--detach", path.as_str()];
                made += u32::from(primary.try_git(&add).status.success());
                primary.try_git(&["worktree", "remove", "--force", path.as_str()]);
            }
            primary.try_git(&["worktree", "remove", "--force", path.as_str()]);
            if path.exists() {
                fs_err::remove_dir_all(&path).unwrap();
            }
        });
        // Two roots, so that the lanes share nothing but the repository.
        let provisioners = ["one.lanes", "two.lanes"].map(|root| {
            let lanes = Lanes::new(scene.beside(root));
            let (target, base) = (&target, &base);
            scope.spawn(move || {
                for _ in 0..6 {
                    let made = provision(&lanes, target, base, 0..8, LaneKind::Worktree)?;
                    assert_eq!(made.len(), 8);
                    drop(made);
                    for slot in 0..8 {
                        lanes.remove(slot, target).unwrap();
                    }
                }
                Ok::<(), ProvisionError>(())
            })
        });
        let ended = provisioners.map(std::thread::ScopedJoinHandle::join);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for ended in ended {
            ended.unwrap().unwrap();
        }
    });
    assert!(common.join("worktrees/app/locked").is_file(), "what is not ours stays");
    let left = fs_err::read_dir(common.join("worktrees")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Registrations that git left of the user's worktrees are not ours to remove.
    let ours: Vec<String> = left.filter(|name| !name.starts_with("users-own")).collect();
    assert_eq!(ours, ["app"]);
}
