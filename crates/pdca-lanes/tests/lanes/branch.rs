//! Branches of attempts, and additional checkouts of a lane.

use fs_err as fs;
use pdca_lanes::{LaneError, LaneKind, Reset, Tripwire, attempt_branch};

use crate::scene::{BY, Scene, own, seen};

#[test]
fn the_name_of_an_attempt_has_run_and_generation() {
    let id = "36".parse().unwrap();
    let name = attempt_branch("01ARZ3NDEKTSV4RRFFQ69G5FAV", &id, 2).unwrap();
    assert_eq!(name, "pdca/Q69G5FAV/36.g2");
    for run in ["", "short", "01ARZ3NDEKTSV4RRFFQ69G5F/V", "ééééééééé"] {
        assert!(matches!(attempt_branch(run, &id, 1), Err(LaneError::Name { .. })), "{run:?}");
    }
}

#[test]
fn commits_go_to_the_branch_until_a_reset_leaves_it() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let branch = attempt_branch("01ARZ3NDEKTSV4RRFFQ69G5FAV", &"7".parse().unwrap(), 1).unwrap();
    lane.start_branch(&branch).unwrap();
    lane.start_branch(&branch).unwrap();
    assert_eq!(seen(&lane).git(&["branch", "--show-current"]).trim(), branch);
    fs::write(lane.path().join("a"), "b\n").unwrap();
    let commit = lane.commit_all("change", &BY).unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["rev-parse", &branch]).trim(), commit);
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(seen(&lane).git(&["branch", "--show-current"]), "");
    assert_eq!(own(&lane).git(&["rev-parse", &branch]).trim(), commit);
    match lane.start_branch(&branch) {
        Err(LaneError::BranchTaken { branch: taken }) => assert_eq!(taken, branch),
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.primary.git(&["branch", "--list", "pdca/*"]), "");
}

#[test]
fn a_branch_that_another_worktree_has_is_refused_by_name() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lanes = scene.lanes().of_kind(LaneKind::Worktree);
    let [one, two] = [0, 1].map(|slot| {
        let lane = lanes.claim(slot, &scene.target()).unwrap();
        lane.reset(&scene.primary.head()).unwrap();
        lane
    });
    one.start_branch("shared").unwrap();
    for taken in ["shared", "main"] {
        let err = two.start_branch(taken).unwrap_err();
        assert!(matches!(&err, LaneError::BranchTaken { branch } if branch == taken), "{err:?}");
    }
    assert_eq!(seen(&two).git(&["branch", "--show-current"]), "");
}

#[test]
fn a_name_that_is_no_branch_is_refused() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    for name in ["", "a..b", "-x", "a b", "x.lock", "a\nb"] {
        let err = lane.start_branch(name).unwrap_err();
        assert!(matches!(err, LaneError::Name { .. }), "{name:?}: {err:?}");
    }
}

const RUN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

#[test]
fn work_is_done_on_a_branch_of_the_lane_that_the_next_reset_removes() {
    for kind in [LaneKind::Reference, LaneKind::Worktree] {
        let scene = Scene::new(&[("a", "a\n")]);
        let lane = scene.lanes().of_kind(kind).claim(0, &scene.target()).unwrap();
        let (base, id) = (scene.primary.head(), "7".parse().unwrap());
        let [first, second] = [1, 2].map(|number| attempt_branch(RUN, &id, number).unwrap());
        lane.reset_on(&base, &first, Reset::Tracked).unwrap();
        let at = seen(&lane);
        assert_eq!(at.git(&["branch", "--show-current"]).trim(), first);
        assert_eq!(at.git(&["status", "--porcelain", "--branch"]), format!("## {first}\n"));
        // A commit of an agent is not a breach of the primary.
        let wire = Tripwire::arm(&scene.target(), &[]).unwrap();
        fs::write(lane.path().join("a"), "b\n").unwrap();
        let commit = at.commit("by an agent");
        assert_eq!(at.git(&["rev-parse", &first]).trim(), commit);
        assert_eq!(wire.breaches(), Vec::<String>::new(), "{kind:?}");
        assert_eq!(lane.head().unwrap().unwrap(), commit);
        // The same branch again, as after a crash: it is the lane's own.
        assert_eq!(lane.rescue("left").unwrap().unwrap(), commit);
        lane.reset_on(&base, &first, Reset::Tracked).unwrap();
        assert_eq!(at.git(&["rev-parse", &first]).trim(), base);
        lane.reset_on(&base, &second, Reset::Tracked).unwrap();
        assert_eq!(
            at.git(&["branch", "--list", "pdca/*", "--format=%(refname:short)"]).trim(),
            second
        );
        lane.reset(&base).unwrap();
        assert_eq!(at.git(&["branch", "--list", "pdca/*"]), "");
        assert_eq!(at.git(&["branch", "--show-current"]), "", "HEAD is on no branch");
    }
}

#[test]
fn a_branch_that_is_not_the_lanes_is_neither_taken_over_nor_removed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lanes().of_kind(LaneKind::Worktree).claim(0, &scene.target()).unwrap();
    let base = scene.primary.head();
    let branch = attempt_branch(RUN, &"7".parse().unwrap(), 1).unwrap();
    scene.primary.git(&["branch", &branch]);
    let err = lane.reset_on(&base, &branch, Reset::Tracked).unwrap_err();
    assert!(
        matches!(&err, LaneError::BranchTaken { branch: taken } if *taken == branch),
        "{err:?}"
    );
    lane.reset(&base).unwrap();
    assert_eq!(scene.primary.git(&["rev-parse", &branch]).trim(), base);
}

#[test]
fn the_branch_of_a_worktree_goes_with_it_and_its_work_stays() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lanes = scene.lanes().of_kind(LaneKind::Worktree);
    let lane = lanes.claim(0, &scene.target()).unwrap();
    let branch = attempt_branch(RUN, &"7".parse().unwrap(), 1).unwrap();
    lane.reset_on(&scene.primary.head(), &branch, Reset::Tracked).unwrap();
    fs::write(lane.path().join("a"), "b\n").unwrap();
    let commit = seen(&lane).commit("by an agent");
    drop(lane);
    lanes.remove(0, &scene.target()).unwrap();
    assert_eq!(scene.primary.git(&["branch", "--list", "pdca/*"]), "");
    let kept = scene.primary.git(&["for-each-ref", "--format=%(objectname)", "refs/pdca/rescue/"]);
    assert_eq!(kept.trim(), commit);
}
