//! How many cycles wait for a review of the process is said where people look, and what belongs to the process is theirs to name.

use pdca_e2e::Scene;

fn scene(act: &str) -> Scene {
    let review =
        "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | read |\\n'";
    Scene::with_leaves("echo \"$1\" >> greeting.txt", review, act)
}

fn finish(scene: &Scene, id: &str) {
    scene.brief(id, &[]);
    scene.pdca(&["run", id]).expect(0);
    scene.pdca(&["signoff", id, "discontinue", "--note", "not wanted"]).expect(0);
}

#[test]
fn status_and_bare_pdca_count_the_cycles_and_say_when_a_review_is_due() {
    let scene = scene("[act]\nevery = 2\n");
    let act = |scene: &Scene| scene.pdca(&["status", "--json"]).expect(0).json()["act"].clone();
    assert_eq!((&act(&scene)["waiting"], &act(&scene)["due"]), (&0.into(), &false.into()));
    finish(&scene, "1");
    assert_eq!((&act(&scene)["waiting"], &act(&scene)["due"]), (&1.into(), &false.into()));
    let said = scene.pdca(&["status"]).out;
    assert!(said.contains("Act: 1 cycle waits for a review of the process, due after 2"), "{said}");
    finish(&scene, "2");
    assert_eq!((&act(&scene)["waiting"], &act(&scene)["due"]), (&2.into(), &true.into()));
    let bare = scene.pdca::<&str>(&[]).out;
    assert!(
        bare.contains("Act: 2 cycles wait for a review of the process, which is due"),
        "{bare}"
    );
    let next = bare.lines().last().unwrap_or_default();
    assert!(next.starts_with("next: pdca act index"), "{bare}");
    scene.pdca(&["act", "log", "--record", "--yes"]).expect(0);
    assert_eq!((&act(&scene)["waiting"], &act(&scene)["due"]), (&0.into(), &false.into()));
    assert!(!scene.pdca(&["status"]).out.contains("Act:"));
}

#[test]
fn with_weekly_a_waiting_cycle_is_due_after_seven_days() {
    let scene = scene("[act]\nevery = 0\nweekly = true\n");
    finish(&scene, "1");
    let due =
        |scene: &Scene| scene.pdca(&["status", "--json"]).expect(0).json()["act"]["due"].clone();
    assert_eq!(due(&scene), true, "there was no review yet");
    let log = |date: &str| format!("# Act review — {date} — cycles considered: 99\n");
    scene.workspace.write("process/act-log.md", log("2999-01-01"));
    assert_eq!(due(&scene), false);
    scene.workspace.write("process/act-log.md", log("2020-01-01"));
    assert_eq!(due(&scene), true);
}

#[test]
fn rules_outside_of_the_process_directory_are_part_of_its_diff_once_they_are_named() {
    let scene = scene("[act]\nrules = [\"lint/**/*.yml\", \"ruff.toml\"]\n");
    scene.workspace.write("lint/deep/no-sleep.yml", "rule: 1\n");
    scene.workspace.write("ruff.toml", "line-length = 100\n");
    scene.workspace.write("other.toml", "a = 1\n");
    finish(&scene, "1");
    scene.pdca(&["act", "log", "--record", "--yes"]).expect(0);
    scene.workspace.write("lint/deep/no-sleep.yml", "rule: 2\n");
    scene.workspace.write("lint/new.yml", "rule: 3\n");
    scene.workspace.write("other.toml", "a = 2\n");
    let diff = scene.pdca(&["act", "diff", "--json"]).expect(0).json();
    let names = |word: &str| {
        let list = diff["since_last_review"][word].as_array().cloned().unwrap_or_default();
        list.iter()
            .map(|change| change["file"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("changed"), ["lint/deep/no-sleep.yml"]);
    assert_eq!(names("added"), ["lint/new.yml"]);
}

#[test]
fn a_glob_that_is_none_is_refused_with_its_place() {
    let scene = scene("[act]\nrules = [\"../elsewhere/*.yml\"]\n");
    let ran = scene.pdca(&["status"]).expect(2);
    assert!(ran.err.contains("`../elsewhere/*.yml` is no path or glob"), "{}", ran.err);
    assert!(ran.err.contains("pdca.toml:"), "{}", ran.err);
}
