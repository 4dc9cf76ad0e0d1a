//! Killed with -9 anywhere in a resolution, the next one comes to the same.

use rustix::process::Signal;

use super::{UNION, case, first, meeting, patient, resolve, rivals, show};
use pdca_e2e::copy_tree;

use crate::meeting::Meeting;

/// Puts everything back to before anything was resolved.
fn back(scene: &Meeting) {
    let workspace = scene.scene.workspace.path();
    for name in ["conflicts", "runs", "attempts", "jobs", "guards"] {
        drop(fs_err::remove_dir_all(workspace.join(".pdca").join(name)));
    }
    let bundle = workspace.join("results/issue_2");
    drop(fs_err::remove_dir_all(&bundle));
    copy_tree(&workspace.join("kept"), &bundle);
}

#[test]
fn killed_at_any_effect_of_a_resolution_the_next_comes_to_the_same_files() {
    let scene = meeting(UNION);
    rivals(&scene);
    scene.integrate(&["--no-resolve"]).expect(102);
    let workspace = scene.scene.workspace.path();
    copy_tree(&workspace.join("results/issue_2"), &workspace.join("kept"));
    resolve(&scene, "2").expect(3);
    let whole = scene.scene.results();
    assert!(whole.contains_key("issue_2/iteration-v1/seal.json"));
    let mut killed = 0;
    for point in 1..400 {
        back(&scene);
        let point = format!("@{point}");
        let ran = scene.scene.pdca_with(&[("PDCA_CRASH_AT", &point)], &["resolve", "2"]);
        if ran.code == 3 {
            break;
        }
        assert_eq!(ran.code, 128 + 9, "point {point}: {} {}", ran.out, ran.err);
        killed += 1;
        let told = first(&resolve(&scene, "2").expect(3));
        assert_eq!(told["state"], "AWAITING_SIGNOFF", "point {point}");
        assert_eq!(scene.scene.results(), whole, "point {point}");
        let case = case(&scene);
        assert_eq!(case["attempts"], 1, "point {point}: {case}");
    }
    assert!(killed > 60, "only {killed} points");
    scene.scene.accept("2");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "greeting.txt"), "one\ntwo\n");
    assert_eq!(scene.scene.processes(), Vec::<String>::new());
}

#[test]
fn killed_at_any_effect_of_a_failed_attempt_it_is_counted_once() {
    let scene = meeting("exit 3");
    rivals(&scene);
    scene.integrate(&["--no-resolve"]).expect(102);
    let before = scene.scene.results();
    let mut killed = 0;
    for point in 1..400 {
        drop(fs_err::remove_dir_all(scene.scene.workspace.path().join(".pdca/conflicts")));
        let at = format!("@{point}");
        let ran = scene.scene.pdca_with(&[("PDCA_CRASH_AT", &at)], &["resolve", "2"]);
        if ran.code == 102 {
            break;
        }
        assert_eq!(ran.code, 128 + 9, "point {point}: {} {}", ran.out, ran.err);
        killed += 1;
        let was_over = scene.scene.workspace.has(".pdca/conflicts")
            && case(&scene)["failures"].as_array().unwrap().len() == 1;
        resolve(&scene, "2").expect(102);
        let case = case(&scene);
        let failures = case["failures"].as_array().unwrap().len();
        let expected = if was_over { 2 } else { 1 };
        assert_eq!((failures, &case["attempts"]), (expected, &expected.into()), "{point}: {case}");
        assert_eq!(scene.scene.results(), before, "point {point}");
    }
    assert!(killed > 20, "only {killed} points");
}

#[test]
fn a_resolver_whose_driver_dies_or_is_stopped_goes_on_under_its_number() {
    for (signal, code) in [(Signal::KILL, 128 + 9), (Signal::INT, 130)] {
        let scene = meeting(&patient());
        rivals(&scene);
        scene.integrate(&["--no-resolve"]).expect(102);
        let started = scene.scene.start(&["resolve", "2"]);
        scene.scene.wait_until("the resolver works", |scene| scene.workspace.says("calls/at-2"));
        started.signal(signal);
        assert_eq!(started.wait(), code);
        scene.scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
        assert_eq!(scene.scene.state("2"), "COMPLETE");
        scene.scene.workspace.write("go", "");
        resolve(&scene, "2").expect(3);
        assert_eq!(case(&scene)["attempts"], 1);
        assert_eq!(scene.scene.ended().iter().filter(|line| *line == "resolver 2").count(), 1);
    }
}
