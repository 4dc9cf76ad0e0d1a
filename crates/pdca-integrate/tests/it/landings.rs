//! Gated candidates land, and nothing else does.

use pdca_integrate::{
    BaseDrift, Certificate, Disproof, Drivers, Fence, Gated, LandError, Light, MergeEngine,
    NotGated, Onto, RefError, Sealed, StepEffect, Store, Strategy, Verdict, base_drift, holders,
    land, testing::land_another, verify,
};
use pdca_testkit::Repo;

use crate::scene::{LOG, Scene, oracle, passed};

const MAIN: Onto<'static> = Onto::Target("main");

/// One change, folded and gated.
fn one_change() -> (Scene, Gated) {
    let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
    let sealed = scene.change("1", 1, &[("f", Some("one\n2\n3\n"))]);
    let gated = gate(&scene, &[&sealed]);
    (scene, gated)
}

fn gate(scene: &Scene, sealed: &[&Sealed]) -> Gated {
    passed(&scene.fold(&scene.plan(sealed, Strategy::RebaseFf)))
}

#[test]
fn only_a_green_verdict_about_exactly_the_tree_makes_a_candidate_gated() {
    let (scene, gated) = one_change();
    let candidate = gated.candidate().clone();
    let verdict = |light| Verdict::new(oracle().key(&candidate), light);
    let red = Gated::new(candidate.clone(), &oracle(), verdict(Light::Red));
    assert!(matches!(red, Err(NotGated::Red { .. })), "{red:?}");
    let mut other = verdict(Light::Green);
    other.key.tree = scene.base;
    let other = Gated::new(candidate.clone(), &oracle(), other);
    assert_eq!(other, Err(NotGated::AboutAnother { what: "tree" }));
    // The gates changed after the verdict.
    let mut now = oracle();
    now.gate_digest = "gates2".to_owned();
    let stale = Gated::new(candidate.clone(), &now, verdict(Light::Green));
    assert_eq!(stale, Err(NotGated::AboutAnother { what: "set of gates" }));
}

#[test]
fn a22_a_lock_that_a_killed_landing_left_is_known_as_ours_and_removed() {
    let (scene, gated) = one_change();
    let lock = scene.repo.path().join(".git/refs/heads/main.lock");
    // The state on disk when a driver dies with its transaction prepared.
    std::fs::write(&lock, format!("{}\n", gated.candidate().commit())).unwrap();
    let landed = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
    assert_eq!((scene.main(), landed.effect()), (gated.candidate().commit(), StepEffect::Made));
    assert!(!lock.exists());
}

#[test]
fn a_lock_of_somebody_else_stays_and_is_named() {
    for text in ["", "0000000000000000000000000000000000000000\n"] {
        let (scene, gated) = one_change();
        let lock = scene.repo.path().join(".git/refs/heads/main.lock");
        std::fs::write(&lock, text).unwrap();
        let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
        let LandError::Ref(RefError::Locked { path }) = error else { panic!("{error:?}") };
        assert_eq!(path, lock);
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), text);
        assert_eq!(scene.main(), scene.base);
    }
}

#[test]
fn a23_a_target_that_moved_before_the_outcome_was_known_is_recognised() {
    let (scene, gated) = one_change();
    land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
    let again = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
    assert_eq!(again.effect(), StepEffect::Recognised);
    assert_eq!(scene.main(), gated.candidate().commit());
}

#[test]
fn c7_a_commit_of_the_user_during_the_gate_is_not_overwritten() {
    let (scene, gated) = one_change();
    let theirs = scene.commit(scene.base, "the user's own", |lane| lane.write("g", "G\n"));
    scene.repo.git(&["update-ref", "refs/heads/main", &theirs.to_string()]);
    let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
    let LandError::BaseMoved { actual, base, .. } = error else { panic!("{error:?}") };
    assert_eq!((actual, base), (Some(theirs), scene.base));
    assert_eq!(scene.main(), theirs);
    let drift = base_drift(&scene.store, base, actual, 50).unwrap();
    assert_eq!(drift, BaseDrift::Forward { commits: 1 });
}

#[test]
fn c8_a_target_that_went_back_is_not_followed() {
    let repo = Repo::with_first_commit();
    let before = crate::scene::id(&repo.head());
    repo.write("f", "1\n");
    repo.commit("second");
    let scene = Scene::of(repo);
    let sealed = scene.change("1", 1, &[("f", Some("one\n"))]);
    let gated = gate(&scene, &[&sealed]);
    scene.repo.git(&["update-ref", "refs/heads/main", &before.to_string()]);
    let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
    assert!(matches!(error, LandError::BaseMoved { .. }), "{error:?}");
    assert_eq!(scene.main(), before);
    let drift = |now| base_drift(&scene.store, scene.base, now, 50).unwrap();
    assert_eq!(drift(Some(before)), BaseDrift::Rewritten);
    assert_eq!(drift(Some(scene.base)), BaseDrift::None);
    assert_eq!(drift(None), BaseDrift::Gone);
}

#[test]
fn d18_a_base_that_went_on_too_far_is_told() {
    let scene = Scene::new(&[("f", "1\n")]);
    let mut tip = scene.base;
    for number in 0..3 {
        tip = scene.commit(tip, "on", |lane| lane.write("g", number.to_string()));
    }
    let drift = |limit| base_drift(&scene.store, scene.base, Some(tip), limit).unwrap();
    assert_eq!(drift(3), BaseDrift::Forward { commits: 3 });
    assert_eq!(drift(2), BaseDrift::Beyond { commits: 3, limit: 2 });
}

#[test]
fn g8_another_tree_than_the_gated_is_caught_the_target_restored_and_the_evidence_kept() {
    let (scene, gated) = one_change();
    let wrong = scene.commit(scene.base, "wrong", |lane| lane.write("f", "wrong\n"));
    let error = land_another(&scene.store, &scene.fence, &gated, MAIN, LOG, wrong).unwrap_err();
    let LandError::Disproved { disproof, evidence, restored, .. } = error else {
        panic!("{error:?}")
    };
    assert!(matches!(*disproof, Disproof::Tree { .. }), "{disproof:?}");
    assert!(restored.is_none(), "{restored:?}");
    assert_eq!(scene.main(), scene.base);
    assert_eq!(scene.store.commit_at(&evidence).unwrap(), Some(wrong));
}

#[test]
fn a_wrong_commit_that_was_caught_before_is_caught_and_put_back_again() {
    let (scene, gated) = one_change();
    let wrong = scene.commit(scene.base, "wrong", |lane| lane.write("f", "wrong\n"));
    for _ in 0..2 {
        let error = land_another(&scene.store, &scene.fence, &gated, MAIN, LOG, wrong).unwrap_err();
        assert!(matches!(error, LandError::Disproved { restored: None, .. }), "{error:?}");
        assert_eq!(scene.main(), scene.base);
    }
}

#[test]
fn g9_a_path_that_nobody_sealed_is_caught_and_named() {
    let (scene, gated) = one_change();
    let wrong = scene.commit(scene.base, "wrong", |lane| {
        lane.write("f", "one\n2\n3\n");
        lane.write("extra", "x\n");
    });
    let error = land_another(&scene.store, &scene.fence, &gated, MAIN, LOG, wrong).unwrap_err();
    let LandError::Disproved { disproof, .. } = error else { panic!("{error:?}") };
    let Disproof::Paths { paths } = *disproof else { panic!("{disproof:?}") };
    assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), ["extra"]);
    assert_eq!(scene.main(), scene.base);
}

#[test]
fn the_same_tree_on_another_history_is_caught() {
    let (scene, gated) = one_change();
    let tree = gated.candidate().tree().to_string();
    let orphan = crate::scene::id(&scene.repo.git(&["commit-tree", "-m", "x", &tree]));
    let error = land_another(&scene.store, &scene.fence, &gated, MAIN, LOG, orphan).unwrap_err();
    let LandError::Disproved { disproof, .. } = error else { panic!("{error:?}") };
    assert!(matches!(*disproof, Disproof::Base { .. }), "{disproof:?}");
    assert_eq!(scene.main(), scene.base);
}

#[test]
fn a_file_that_the_target_renamed_since_may_change_under_its_new_name() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n".to_owned();
    let mut scene = Scene::new(&[("old", &lines)]);
    let sealed = scene.change("1", 1, &[("old", Some(&lines.replace("7\n", "seven\n")))]);
    let moved = scene.commit(scene.base, "rename", |lane| drop(lane.git(&["mv", "old", "new"])));
    scene.repo.git(&["update-ref", "refs/heads/main", &moved.to_string()]);
    scene.base = moved;
    let gated = gate(&scene, &[&sealed]);
    land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
    assert!(scene.file(scene.main(), "new").contains("seven"));
}

#[test]
fn a_branch_that_is_checked_out_stays_where_it_is() {
    let (scene, gated) = one_change();
    let place = scene.room("elsewhere");
    scene.repo.git(&["worktree", "add", "--quiet", place.as_str(), "main"]);
    let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
    let LandError::CheckedOut { holder, branch } = error else { panic!("{error:?}") };
    assert_eq!((holder.path, branch.as_str()), (place.clone(), "main"));
    assert_eq!(scene.main(), scene.base);
    assert_eq!(Repo::existing(&place).git(&["status", "--porcelain"]), "");
    scene.repo.git(&["worktree", "remove", "--force", place.as_str()]);
    land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
}

#[test]
fn a_branch_that_is_being_rebased_stays_where_it_is() {
    let (scene, gated) = one_change();
    let place = scene.room("elsewhere");
    scene.repo.git(&["worktree", "add", "--quiet", "--detach", place.as_str(), "main"]);
    let state = scene.repo.path().join(".git/worktrees/elsewhere/rebase-merge");
    std::fs::create_dir_all(&state).unwrap();
    let base = scene.base;
    for (file, text) in [
        ("head-name", "refs/heads/main\n".to_owned()),
        // Git writes this one with `--update-refs`.
        (
            "update-refs",
            format!("refs/heads/one\n{base}\n{base}\nrefs/heads/main\n{base}\n{base}\n"),
        ),
    ] {
        std::fs::write(state.join(file), text).unwrap();
        let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
        let LandError::CheckedOut { holder, .. } = error else { panic!("{error:?}") };
        assert_eq!(holder.doing, "is rebasing it", "{file}");
        std::fs::remove_file(state.join(file)).unwrap();
    }
    scene.repo.git(&["worktree", "remove", "--force", place.as_str()]);
}

#[test]
fn the_branch_of_the_run_is_made_and_goes_on_with_each_landing() {
    let scene = Scene::new(&[("f", "f\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("F\n"))]);
    let two = scene.change("2", 2, &[("g", Some("G\n"))]);
    let onto = Onto::Staging { branch: "pdca/staging/main", replaces: None };
    let first = gate(&scene, &[&one]);
    land(&scene.store, &scene.fence, &first, onto, LOG).unwrap();
    let both = scene.fold(&scene.plan(&[&one, &two], Strategy::RebaseFf));
    let rest = both.candidate().after(first.candidate().commit()).unwrap();
    assert_eq!(rest.bundles().map(AsRef::as_ref).collect::<Vec<&str>>(), ["2"]);
    let verdict = Verdict::new(oracle().key(&rest), Light::Green);
    let rest = Gated::new(rest, &oracle(), verdict).unwrap();
    let landed = land(&scene.store, &scene.fence, &rest, onto, LOG).unwrap();
    assert_eq!(landed.reference(), "refs/heads/pdca/staging/main");
    assert_eq!(scene.store.commit_at(landed.reference()).unwrap(), Some(landed.commit()));
    assert_eq!(scene.main(), scene.base);
}

#[test]
fn nothing_applied_is_never_success() {
    let (scene, _) = one_change();
    let gated = gate(&scene, &[]);
    let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
    assert!(matches!(error, LandError::Nothing), "{error:?}");
}

#[test]
fn c4_a_driver_that_was_taken_over_lands_nothing() {
    let (scene, gated) = one_change();
    Fence::take(&scene.store, &"run2".parse().unwrap(), 0).unwrap();
    let error = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap_err();
    assert!(matches!(error, LandError::Ref(RefError::Fenced { .. })), "{error:?}");
    assert_eq!(scene.main(), scene.base);
}

#[test]
fn a23_a_landing_upon_which_somebody_built_is_recognised() {
    let (scene, gated) = one_change();
    let landed = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
    let more = scene.commit(landed.commit(), "upon it", |lane| lane.write("g", "G\n"));
    scene.repo.git(&["update-ref", "refs/heads/main", &more.to_string()]);
    let again = land(&scene.store, &scene.fence, &gated, MAIN, LOG).unwrap();
    assert_eq!((again.effect(), again.commit()), (StepEffect::Recognised, landed.commit()));
    assert_eq!(scene.main(), more);
}

#[test]
fn the_rest_after_a_first_landing_has_a_certificate_that_holds() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let mut scene = Scene::new(&[("old", lines), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("old", Some(&lines.replace('7', "seven")))]);
    let two = scene.change("2", 2, &[("g", Some("G\n"))]);
    let moved = scene.commit(scene.base, "rename", |lane| drop(lane.git(&["mv", "old", "new"])));
    scene.repo.git(&["update-ref", "refs/heads/main", &moved.to_string()]);
    scene.base = moved;
    let first = gate(&scene, &[&one]);
    land(&scene.store, &scene.fence, &first, MAIN, LOG).unwrap();
    let both = scene.fold(&scene.plan(&[&one, &two], Strategy::RebaseFf));
    let rest = both.candidate().after(first.candidate().commit()).unwrap();
    let verdict = Verdict::new(oracle().key(&rest), Light::Green);
    let rest = Gated::new(rest, &oracle(), verdict).unwrap();
    let landed = land(&scene.store, &scene.fence, &rest, MAIN, LOG).unwrap();
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let certificate = Certificate::new(&landed, &rest).to_json();
    let verified = verify(&mut engine, &certificate).unwrap();
    let paths: Vec<String> =
        verified.certificate.footprint.iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["g"]);
}

#[test]
fn g8_a_branch_that_was_made_for_a_wrong_commit_is_removed_again() {
    let (scene, gated) = one_change();
    let wrong = scene.commit(scene.base, "wrong", |lane| lane.write("f", "wrong\n"));
    let onto = Onto::Staging { branch: "pdca/staging/main", replaces: None };
    let error = land_another(&scene.store, &scene.fence, &gated, onto, LOG, wrong).unwrap_err();
    assert!(matches!(error, LandError::Disproved { restored: None, .. }), "{error:?}");
    assert_eq!(scene.store.commit_at(&onto.reference()).unwrap(), None);
}

#[test]
fn a_bare_repository_has_nobody_on_its_branch_but_its_worktrees_do() {
    let (scene, _) = one_change();
    let bare = scene.room("bare.git");
    scene.repo.git(&["clone", "--quiet", "--bare", "--branch", "main", ".", bare.as_str()]);
    let store = Store::open(&bare, &scene.room("bare-room")).unwrap();
    assert_eq!(holders(&store, "refs/heads/main").unwrap(), []);
    let place = scene.room("tree");
    Repo::existing(&bare).git(&["worktree", "add", "--quiet", place.as_str(), "main"]);
    let found = holders(&store, "refs/heads/main").unwrap();
    assert_eq!(found.iter().map(|holder| &holder.path).collect::<Vec<_>>(), [&place]);
    // From the worktree it is the same repository.
    let store = Store::open(&place, &scene.room("tree-room")).unwrap();
    assert_eq!(holders(&store, "refs/heads/main").unwrap(), found);
}
