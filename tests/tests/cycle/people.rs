//! The leaves that work beside a person: the planner, and the one at sign-off.

use pdca_e2e::{Scene, leaf};

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

/// A scene with one more leaf, which is a script.
fn with(role: &str, script: &str) -> Scene {
    // Act looks at many bundles, so its call has no id.
    let leaf = leaf(role).replace(", \"{id}\"", if role == "act" { "" } else { ", \"{id}\"" });
    let scene = Scene::with_leaves("echo done > greeting.txt", REVIEWER, &leaf);
    scene.workspace.write(format!("leaves/{role}.sh"), script);
    scene
}

#[test]
fn the_planner_fills_the_brief_from_what_it_is_shown_and_nothing_else() {
    let scene = with(
        "planner",
        r#"
grep -q '<' "$PDCA_BUNDLE/brief.md" || exit 3
grep -q thread "$PDCA_BUNDLE/notes.json" || exit 4
test "$(ls "$PDCA_BUNDLE" | tr '\n' ' ')" = "brief.md notes.json " || exit 5
printf -- '- **Slug:** planned\n- **Repo + branch target:** team/app @ main\n' > "$PDCA_OUTPUT"
"#,
    );
    scene.workspace.write("results/issue_7/notes.json", r#"{"body": "a thread"}"#);
    scene.pdca(&["new", "7", "--plan"]).expect(0);
    assert_eq!(scene.state("7"), "PLANNED");
    assert!(scene.workspace.read("results/issue_7/brief.md").contains("planned"));
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn a_planner_that_fails_leaves_the_template_and_says_so() {
    let scene = with("planner", "echo cannot >&2; exit 3");
    let ran = scene.pdca(&["new", "7", "--plan"]).expect(1);
    assert!(ran.err.contains("the planner failed"), "{}", ran.err);
    assert_eq!(scene.state("7"), "UNPLANNED");
}

#[test]
fn what_was_decided_with_the_sign_off_leaf_is_recorded_under_the_same_rules() {
    let scene = with(
        "signoff",
        r#"printf '%s' '{"action": "accept", "note": "seen \\1 working"}' > "$PDCA_OUTPUT""#,
    );
    scene.brief("7", &[("External dependencies", "none")]);
    scene.pdca(&["run", "7"]).expect(0);
    scene.pdca(&["signoff", "7", "ask"]).expect(2);
    scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    scene.pdca(&["signoff", "7", "ask"]).expect(3);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF", "nobody has decided");
    scene.pdca(&["-y", "signoff", "7", "ask"]).expect(0);
    assert_eq!(scene.state("7"), "COMPLETE");
    let calls = scene.workspace.read("results/issue_7/logs/calls.jsonl");
    assert_eq!(calls.matches("\"role\":\"signoff\"").count(), 1, "{calls}");
    assert!(scene.workspace.read("results/issue_7/SUMMARY.md").contains(r"seen \1 working"));
}

#[test]
fn a_sign_off_leaf_cannot_accept_what_a_person_could_not() {
    let scene = with("signoff", r#"echo '{"action": "accept"}' > "$PDCA_OUTPUT""#);
    let config = scene.workspace.read("pdca.toml")
        + "\n[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = \"false\"\n";
    scene.workspace.config(&config);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(100);
    scene.pdca(&["signoff", "7", "ask"]).expect(2);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn without_a_decision_or_with_an_unreadable_one_nothing_is_recorded() {
    for (script, code) in [("true", 3), (r#"echo 'I accept!' > "$PDCA_OUTPUT""#, 2)] {
        let scene = with("signoff", script);
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        let before = scene.results();
        scene.pdca(&["signoff", "7", "ask"]).expect(code);
        assert_eq!(scene.results(), before);
    }
}

#[test]
fn a_leaf_that_is_not_configured_is_named_before_anything_is_made() {
    let scene = Scene::new("");
    let ran = scene.pdca(&["new", "7", "--plan"]).expect(2);
    assert!(ran.err.contains("[leaves.planner]"), "{}", ran.err);
    assert!(!scene.workspace.has("results/issue_7"));
}

/// An entry with one finding, as an act leaf writes it.
const ENTRY: &str = r#"
test "$(ls "$PDCA_BUNDLE" 2>/dev/null | tr '\n' ' ')" = "act-log.md entry-started.md index.json " || exit 5
grep -q '"id": "7"' "$PDCA_BUNDLE/index.json" || exit 6
cat > "$PDCA_OUTPUT" <<'END'
# Act review — 1999-01-01 — cycles considered: 99

## What the cycles' records exposed

- 7 was built once

## Process deltas

- none

## How effectiveness will be judged

- Signal: the greeting was never read
END
"#;

#[test]
fn an_entry_of_the_act_leaf_waits_as_a_draft_and_is_recorded_under_our_heading() {
    let scene = with("act", ENTRY);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    scene.pdca(&["signoff", "7", "accept"]).expect(0);
    let ran = scene.pdca(&["act", "review"]).expect(3);
    assert!(
        ran.out.contains("next: edit it if need be, then pdca act review --record"),
        "{}",
        ran.out
    );
    assert!(!scene.workspace.has("process/act-log.md"));
    let calls = scene.workspace.read("results/issue_7/logs/calls.jsonl");
    let of_act = calls.lines().filter(|line| line.contains("\"role\":\"act\""));
    assert_eq!(of_act.count(), 1, "what a review costs is on record in its cycles:\n{calls}");
    // The draft is the person's to edit; the leaf is not called again.
    scene.workspace.write("leaves/act.sh", "exit 9");
    let draft = scene.workspace.read(".pdca/act-entry.md").replace("built once", "built twice");
    scene.workspace.write(".pdca/act-entry.md", draft);
    scene.pdca(&["act", "review", "--record"]).expect(0);
    let log = scene.workspace.read("process/act-log.md");
    assert!(
        log.contains(
            "cycles considered: 7\n\n## What the cycles' records exposed\n\n- 7 was built twice"
        ),
        "{log}"
    );
    assert!(!log.contains("1999"), "{log}");
    assert!(!scene.workspace.has(".pdca/act-entry.md"));
    scene.pdca(&["act", "review"]).expect(4);
    let listed = scene.pdca(&["act", "resolve"]).expect(0);
    assert!(
        listed.out.contains("1  no cycle ended since  the greeting was never read"),
        "{}",
        listed.out
    );
}

#[test]
fn an_entry_without_its_sections_is_kept_and_its_fault_is_named() {
    let scene = with("act", r#"echo 'All is well.' > "$PDCA_OUTPUT""#);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    scene.pdca(&["signoff", "7", "discontinue", "--note", "no"]).expect(0);
    let ran = scene.pdca(&["act", "review", "--record"]).expect(2);
    assert!(ran.err.contains("no section `## What the cycles' records exposed`"), "{}", ran.err);
    assert!(scene.workspace.read(".pdca/act-entry.md").contains("All is well."));
    assert!(!scene.workspace.has("process/act-log.md"));
}
