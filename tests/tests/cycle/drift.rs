//! Declared against actual, end to end: a change that leaves its `Touches`, and what a widening makes of it.

use pdca_e2e::Scene;

/// Changes what it should, and something else.
const BUILDER: &str = r#"
echo right > greeting.txt
mkdir -p docs && echo more > docs/extra.md
echo notes > "$PDCA_BUNDLE/build-notes.md"
"#;

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

const GATE: &str = "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = \"grep -q right greeting.txt\"\n";

fn scene(schedule: &str) -> Scene {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &format!("{GATE}\n[schedule]\n{schedule}\n"));
    scene.brief("7", &[("Touches", "greeting.txt")]);
    scene
}

/// The row about the declaration: result, whether it blocks, evidence.
fn row(scene: &Scene) -> Option<(String, bool, String)> {
    let report = scene.workspace.read("results/issue_7/check-gates.json");
    let report: serde_json::Value = serde_json::from_str(&report).expect("a report is JSON");
    let rows = report["rows"].as_array().expect("a report has rows").clone();
    let row = rows.into_iter().find(|row| row["rule_id"] == "touches-drift")?;
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("element"), "T1");
    Some((text("result"), row["gating"] == true, text("path_line")))
}

const OUTSIDE: &str = "1 outside `Touches`: docs/extra.md";

#[test]
fn a_change_outside_of_its_declaration_warns_and_is_told_as_soon_as_it_is_built() {
    let scene = scene("");
    let run = scene.pdca(&["run", "7", "--events", "events.jsonl"]).expect(0);
    assert!(run.err.contains("docs/extra.md"), "{}", run.err);
    assert_eq!(row(&scene), Some(("fail".to_owned(), false, OUTSIDE.to_owned())));
    let events = scene.workspace.read("events.jsonl");
    let at = |event: &str| events.lines().position(|line| line.contains(event));
    let drifted = at(r#""event":"drifted","outside":["docs/extra.md"]"#).expect("it is told");
    assert_eq!(events.matches("\"drifted\"").count(), 1, "{events}");
    assert!(Some(drifted) < at("\"gate_began\""), "{events}");
    scene.accept("7");
}

#[test]
fn a_red_declaration_blocks_until_it_is_widened_and_judged_again() {
    let scene = scene("drift = \"fail\"");
    scene.pdca(&["run", "7"]).expect(100);
    assert_eq!(row(&scene), Some(("fail".to_owned(), true, OUTSIDE.to_owned())));
    scene.pdca(&["signoff", "7", "accept"]).expect(2);
    // One that does not help leaves the verdict alone.
    scene.pdca(&["widen", "7", "src", "--reason", "a guess"]).expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    let widened = scene.pdca(&["widen", "7", "docs/*.md", "--reason", "it is explained there"]);
    assert!(widened.expect(0).out.contains("judge it again"));
    assert_eq!(scene.state("7"), "CHECKED");
    assert!(scene.workspace.has("results/issue_7/SUMMARY.md.aside-1"));
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(row(&scene), None);
    assert_eq!(scene.workspace.read("results/issue_7/patch.diff"), patch);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7", "reviewer 7"], "nothing is built again");
    scene.accept("7");
    scene.pdca(&["widen", "7", "x", "--reason", "too late"]).expect(2);
}

#[test]
fn what_declares_nothing_or_asks_for_no_comparison_has_no_row() {
    let off = scene("drift = \"off\"");
    off.pdca(&["run", "7"]).expect(0);
    assert_eq!(row(&off), None);
    let silent = scene("drift = \"fail\"");
    silent.brief("7", &[]);
    silent.pdca(&["run", "7"]).expect(0);
    assert_eq!(row(&silent), None);
}

#[test]
fn a_driver_that_finds_the_patch_built_tells_it_all_the_same() {
    let scene = scene("");
    scene.pdca_with(&[("PDCA_CRASH_AT", "gate")], &["run", "7"]).expect(137);
    scene.pdca(&["run", "7", "--events", "events.jsonl"]).expect(0);
    assert_eq!(scene.workspace.read("events.jsonl").matches("\"drifted\"").count(), 1);
}

#[test]
fn an_attempt_that_is_archived_first_does_not_hide_what_the_next_one_touches() {
    let scene = scene("");
    scene.pdca(&["run", "7"]).expect(0);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    let sent_back = summary.replace("- Outcome:", "- Outcome: iterated-to-Do");
    assert_ne!(summary, sent_back);
    scene.workspace.write("results/issue_7/SUMMARY.md", sent_back);
    assert_eq!(scene.state("7"), "ITERATE_DO");
    scene.pdca(&["run", "7", "--events", "events.jsonl"]).expect(0);
    assert_eq!(scene.workspace.read("events.jsonl").matches("\"drifted\"").count(), 1);
}
