//! `kill -9` of the driver at every effect, then the same command again.

use std::collections::BTreeMap;

use pdca_e2e::Scene;

/// Leaves take their time before they do anything, so one that is cut off is cut off before its end.
const BUILDER: &str = r#"
sleep 0.2
echo "bonjour $1" > greeting.txt
echo "new" > "file-$1.txt"
echo "what I thought" > "$PDCA_BUNDLE/build-notes.md"
"#;

const REVIEWER: &str = r"
sleep 0.2
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n| Validation — fitness-to-purpose | NEEDS-HUMAN | is it? |\n'
";

const GATES: &str = r#"
[driver]
gate_base = "off"

[[gates.checks]]
id = "T1-first"
tier = "T1"
cmd = 'echo "gate T1" >> "$PDCA_WORKSPACE/calls/log"; test -f greeting.txt; echo "gate T1" >> "$PDCA_WORKSPACE/calls/ended"'

[[gates.checks]]
id = "C4-second"
tier = "C4"
scope = "bundle"
cmd = 'echo "gate C4" >> "$PDCA_WORKSPACE/calls/log"; grep -q bonjour greeting.txt && echo "gate C4" >> "$PDCA_WORKSPACE/calls/ended"'
"#;

/// The state that must not depend on how often the driver died.
#[derive(Debug, PartialEq)]
struct End {
    files: BTreeMap<String, String>,
    primary: String,
    state: String,
}

fn scene() -> Scene {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATES);
    scene.brief("7", &[]);
    scene
}

/// Compares file by file, so that a difference is readable.
#[track_caller]
fn assert_same(found: &End, expected: &End, at: u64) {
    let names = |end: &End| end.files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "killed at point {at}");
    for (name, text) in &expected.files {
        assert_eq!(&found.files[name], text, "{name}, killed at point {at}");
    }
    assert_eq!(found, expected, "killed at point {at}");
}

fn end(scene: &Scene) -> End {
    let primary = format!("{}{}", scene.repo.status(), scene.repo.head());
    End { files: scene.results(), primary, state: scene.state("7") }
}

/// Kills the driver at point `k`, `k + 1`, … until one run comes through, each in a scene of its own,
/// and hands each scene to `check` after the resuming run. Gives the number of points visited.
fn at_every_effect(
    make: impl Fn() -> Scene,
    args: &[&str],
    code: i32,
    check: impl Fn(&Scene, u64),
) -> u64 {
    for k in 1.. {
        let scene = make();
        let ran = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{k}"))], args);
        if ran.code == code {
            return k - 1;
        }
        assert_eq!(ran.code, 128 + 9, "at point {k}: {}", ran.err);
        // Killed after the last effect, there is nothing left to do but to sign off.
        let resumed = scene.pdca(args);
        assert!(resumed.code == code || resumed.code == 3, "after point {k}: {resumed:?}");
        check(&scene, k);
    }
    unreachable!("the loop has no end but the return")
}

#[test]
fn killed_at_every_effect_of_a_run_it_ends_in_the_same_files_and_nothing_runs_twice() {
    let undisturbed = scene();
    undisturbed.pdca(&["run", "7"]).expect(0);
    let expected = end(&undisturbed);
    assert_eq!(expected.state, "AWAITING_SIGNOFF");
    assert_eq!(undisturbed.calls(), ["builder 7", "gate T1", "gate C4", "reviewer 7"]);

    let points = at_every_effect(scene, &["run", "7"], 0, |scene, k| {
        assert_same(&end(scene), &expected, k);
        // One that was cut off may be called again; one that came to its end may not.
        assert_eq!(scene.ended(), undisturbed.calls(), "killed at point {k}: {:?}", scene.calls());
        assert!(!scene.workspace.has(".pdca/jobs/issue_7"), "a job is left after point {k}");
    });
    assert!(points > 25, "only {points} points were visited");
}

#[test]
fn a8_a9_a12_a13_a_leaf_or_gate_that_ended_before_the_kill_is_never_started_again() {
    for (point, calls) in [
        ("commit", &["builder 7", "gate T1", "gate C4", "reviewer 7"][..]),
        ("patch.diff", &["builder 7", "gate T1", "gate C4", "reviewer 7"]),
        ("check-gates.json", &["builder 7", "gate T1", "gate C4", "reviewer 7"]),
        ("check-review.md", &["builder 7", "gate T1", "gate C4", "reviewer 7"]),
        ("SUMMARY.md", &["builder 7", "gate T1", "gate C4", "reviewer 7"]),
    ] {
        let scene = scene();
        scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["run", "7"]).expect(137);
        scene.pdca(&["run", "7"]).expect(0);
        assert_eq!(scene.calls(), calls, "killed before {point}");
    }
}

#[test]
fn a14_killed_at_every_effect_of_an_iteration_nothing_of_the_attempt_is_lost() {
    let sent_back = || {
        let scene = scene();
        scene.pdca(&["run", "7"]).expect(0);
        // The decision is on record and the archive has not begun.
        let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
        let decided = summary.replace("\n- Outcome:", "\n- Outcome: iterated-to-Do");
        assert_ne!(decided, summary);
        scene.workspace.write("results/issue_7/SUMMARY.md", decided);
        scene
    };
    let undisturbed = sent_back();
    undisturbed.pdca(&["run", "7"]).expect(0);
    let expected = end(&undisturbed);
    assert!(expected.files.contains_key("issue_7/iteration-v1/patch.diff"));

    let points = at_every_effect(sent_back, &["run", "7"], 0, |scene, k| {
        assert_same(&end(scene), &expected, k);
    });
    assert!(points > 40, "only {points} points were visited");
}

#[test]
fn killed_at_every_effect_of_a_close_it_ends_in_the_same_files() {
    let make = || {
        let scene = Scene::with_leaves(BUILDER, REVIEWER, GATES);
        scene.brief("7", &[("Disposition hint", "wontfix, says everybody")]);
        scene
    };
    let undisturbed = make();
    undisturbed.pdca(&["run", "7"]).expect(0);
    let expected = end(&undisturbed);
    assert_eq!(undisturbed.calls(), Vec::<String>::new());
    let points = at_every_effect(make, &["run", "7"], 0, |scene, k| {
        assert_same(&end(scene), &expected, k);
    });
    assert!(points >= 6, "only {points} points were visited");
}
