//! The next attempt: what it starts from, what it sees, and when it needs no person.

use pdca_e2e::Scene;

/// The review of a change that has nothing wrong with it.
const PASSES: &str = r#"printf '%s\n' '| Item | Verdict | Basis |' '|---|---|---|' '| C3 Change | PASS | read |' \
  '| C5 Causal adequacy | PASS | read |' '| Validation — fitness-to-purpose | NEEDS-HUMAN | try it |' > "$PDCA_OUTPUT""#;

/// A gate that wants the greeting to end in `ok`.
const GATE: &str =
    "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"grep -q ok greeting.txt\"\n\n";

fn scene(builder: &str, reviewer: &str, driver: &str) -> Scene {
    let scene = Scene::with_leaves(
        builder,
        reviewer,
        &format!("[driver]\ngate_base = \"off\"\n{driver}\n{GATE}"),
    );
    scene.brief("7", &[]);
    scene
}

fn builds(scene: &Scene) -> usize {
    scene.calls().iter().filter(|call| call.starts_with("builder")).count()
}

#[test]
fn a_red_gate_goes_back_to_the_builder_which_sees_the_last_attempt_and_goes_on_from_it() {
    // The second attempt fails unless it finds the first one, in its view and in its checkout.
    let builder = r#"
        last="$PDCA_BUNDLE/iteration-v1"
        if [ -d "$last" ]; then
            grep -q 'first try' greeting.txt
            grep -q '+first try' "$last/patch.diff"
            grep -q 'T3-tests' "$last/check-gates.json"
            ls "$last"/gate-logs/* > /dev/null
            grep -q 'C5 Causal' "$last/check-review.md"
            grep -q 'Sent back to Do by `pdca`' "$PDCA_BUNDLE/brief.md"
            echo ok >> greeting.txt
        else
            echo 'first try' >> greeting.txt
        fi"#;
    let scene = scene(builder, PASSES, "max_auto_iters = 2\n");
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!((builds(&scene), scene.state("7").as_str()), (2, "AWAITING_SIGNOFF"));
    let read = |file: &str| scene.workspace.read(format!("results/issue_7/{file}"));
    assert!(read("patch.diff").contains("+first try\n+ok\n"), "{}", read("patch.diff"));
    assert!(read("iteration-v1/auto-iterate.json").contains("T3-tests failed"));
    assert!(!scene.workspace.path().join("results/issue_7/iteration-v2").exists());
    scene.accept("7");
}

#[test]
fn a_builder_that_never_mends_it_stops_after_max_auto_iters_and_a_person_decides() {
    let builder = "echo \"try\" >> greeting.txt";
    let scene = scene(builder, PASSES, "max_auto_iters = 2\n");
    scene.pdca(&["run", "7"]);
    assert_eq!((builds(&scene), scene.state("7").as_str()), (3, "AWAITING_SIGNOFF"));
    // Whoever drives it again does not begin anew.
    scene.pdca(&["run", "7"]);
    assert_eq!(builds(&scene), 3);
    // A person's decision starts the count again.
    scene.pdca(&["signoff", "7", "iterate-do", "--note", "another way"]).expect(0);
    scene.pdca(&["run", "7"]);
    assert_eq!(builds(&scene), 6);
}

#[test]
fn a_builder_that_repeats_itself_is_not_asked_a_third_time() {
    let scene = scene("echo same > greeting.txt", PASSES, "max_auto_iters = 5\n");
    let ran = scene.pdca(&["run", "7"]);
    assert_eq!((builds(&scene), scene.state("7").as_str()), (2, "AWAITING_SIGNOFF"));
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("left the patch of the attempt before as it was"), "{said}");
}

#[test]
fn a_question_for_a_person_is_never_sent_back_and_without_the_setting_nothing_is() {
    let asks =
        PASSES.replace("| C5 Causal adequacy | PASS |", "| C5 Causal adequacy | NEEDS-HUMAN |");
    for (reviewer, driver) in [(asks.as_str(), "max_auto_iters = 2\n"), (PASSES, "")] {
        let scene = scene("echo x >> greeting.txt", reviewer, driver);
        scene.pdca(&["run", "7"]);
        assert_eq!((builds(&scene), scene.state("7").as_str()), (1, "AWAITING_SIGNOFF"));
    }
}

#[test]
fn a_fail_of_the_reviewer_goes_back_although_every_gate_is_green() {
    let reviewer = format!(
        "{PASSES}\nif ! grep -q better \"$PDCA_BUNDLE/patch.diff\"; then\n\
         sed -i 's/C5 Causal adequacy | PASS/C5 Causal adequacy | FAIL/' \"$PDCA_OUTPUT\"\nfi"
    );
    let builder = "if [ -d \"$PDCA_BUNDLE/iteration-v1\" ]; then echo better >> greeting.txt; \
                   else echo ok >> greeting.txt; fi";
    let scene = scene(builder, &reviewer, "max_auto_iters = 1\n");
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(builds(&scene), 2);
    let record = scene.workspace.read("results/issue_7/iteration-v1/auto-iterate.json");
    assert!(record.contains("C5 Causal adequacy FAIL — read"), "{record}");
}

#[test]
fn a_person_who_sends_it_back_chooses_what_the_builder_starts_from() {
    for (driver, expected) in
        [("", "hello\none\none\n"), ("iterate_from = \"base\"\n", "hello\none\n")]
    {
        let scene = scene("echo one >> greeting.txt", PASSES, driver);
        scene.pdca(&["run", "7"]);
        scene.pdca(&["signoff", "7", "iterate-do", "--note", "more"]).expect(0);
        scene.pdca(&["run", "7"]);
        let patch = scene.workspace.read("results/issue_7/patch.diff");
        let added = patch.lines().filter(|line| *line == "+one").count();
        assert_eq!(added, expected.matches("one").count(), "{driver}: {patch}");
    }
}

#[test]
fn a_last_patch_that_no_longer_applies_is_said_and_the_builder_starts_from_the_base() {
    let scene = scene("echo one > greeting.txt", PASSES, "");
    scene.pdca(&["run", "7"]);
    scene.pdca(&["signoff", "7", "iterate-do", "--note", "more"]).expect(0);
    scene.repo.write("greeting.txt", "something else\n");
    scene.repo.commit("the branch moved");
    let ran = scene.pdca(&["run", "7"]);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("the builder starts from the base"), "{said}");
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(patch.contains("-something else\n+one\n"), "{patch}");
}

#[test]
fn a_driver_that_is_killed_between_attempts_sends_nothing_back_twice() {
    let builder = "if [ -d \"$PDCA_BUNDLE/iteration-v1\" ]; then echo ok >> greeting.txt; \
                   else echo no >> greeting.txt; fi";
    let undisturbed = scene(builder, PASSES, "max_auto_iters = 2\n");
    undisturbed.pdca(&["run", "7"]).expect(0);
    for point in [
        "archive-begin",
        "archive-fold",
        "archive-move",
        "archive-move:3",
        "archive-finish",
        "attempt:3",
        "apply-last",
        "builder:2",
        "patch.diff:2",
    ] {
        let scene = scene(builder, PASSES, "max_auto_iters = 2\n");
        scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["run", "7"]).expect(137);
        scene.pdca(&["run", "7"]).expect(0);
        assert_eq!(scene.results(), undisturbed.results(), "{point}");
        assert_eq!(scene.ended().iter().filter(|call| call.starts_with("builder")).count(), 2);
    }
}
