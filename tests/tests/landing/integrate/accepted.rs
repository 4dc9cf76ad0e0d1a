//! No way past a person: what is sealed and landed was accepted, as it is, by somebody who is named.

use pdca_e2e::Scene;

use crate::meeting::Meeting;

/// The word for where an accepted change stands.
fn standing(scene: &Scene, id: &str) -> String {
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().expect("status lists bundles");
    let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
    row["integration"].as_str().unwrap_or_default().to_owned()
}

fn next(scene: &Scene, id: &str) -> String {
    scene.pdca(&["why", id, "--json"]).expect(0).json()["next"]
        .as_str()
        .expect("something goes on")
        .to_owned()
}

#[test]
fn an_outcome_written_by_hand_is_not_sealed_and_keeps_nobody_from_landing() {
    for spoiled in ["an open box", "nobody signed", "no report"] {
        let scene = Meeting::new("true");
        scene.accepted("1", "a.txt", "a\n");
        scene.waiting("2", &[], &[("b.txt", "b\n")]);
        let workspace = &scene.scene.workspace;
        let file = "results/issue_2/SUMMARY.md";
        let mut text = workspace.read(file).replace("- Outcome:", "- Outcome: merged-wider");
        if spoiled != "an open box" {
            text = text.replace("- [ ]", "- [x]");
        }
        if spoiled != "nobody signed" {
            text = text.replace("- By / date:", "- By / date: Eve / 2026-11-16");
        }
        workspace.write(file, text);
        if spoiled == "no report" {
            let report = workspace.read("results/issue_2/check-gates.json");
            let red = report.replacen("\"pass\"", "\"fail\"", 1);
            workspace.write("results/issue_2/check-gates.json", red);
        }
        let ran = scene.integrate(&["--land", "target", "--seal"]);
        assert_ne!(ran.code, 0, "{spoiled}: {}", ran.err);
        assert_eq!(scene.subjects(), ["a slug|1", "first|"], "{spoiled}: {}", ran.err);
        let seals = scene.scene.repo.git(&["for-each-ref", "refs/pdca/*/seal/2"]);
        assert_eq!(seals, "", "{spoiled}");
        scene.integrate(&["--seal", "2"]).expect(2);
        let next = next(&scene.scene, "2");
        assert_eq!(next, "pdca reopen 2", "{spoiled}");
        scene.scene.paste(&next).expect(0);
        assert_eq!(scene.scene.state("2"), "PLANNED");
    }
}

#[test]
fn a_brief_edited_after_acceptance_is_drift_until_it_is_put_back() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let workspace = &scene.scene.workspace;
    let brief = workspace.read("results/issue_1/brief.md");
    workspace.write("results/issue_1/brief.md", format!("{brief}\nand something else\n"));
    assert_eq!(standing(&scene.scene, "1"), "drifted");
    let why = scene.pdca(&["why", "1"]).expect(0);
    assert!(why.out.contains("brief.md is"), "{}", why.out);
    assert_eq!(next(&scene.scene, "1"), "pdca reopen 1");
    let ran = scene.integrate(&["--land", "target"]).expect(104);
    assert!(ran.out.contains("brief.md is"), "{}", ran.out);
    assert_eq!(scene.subjects(), ["a slug|2", "first|"]);
    workspace.write("results/issue_1/brief.md", brief.clone());
    scene.integrate(&["--land", "target"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "a slug|2", "first|"]);
    // What landed is beyond an edit.
    workspace.write("results/issue_1/brief.md", format!("{brief}\nnotes for later\n"));
    assert_eq!(standing(&scene.scene, "1"), "landed");
}

#[test]
fn a_row_that_was_overridden_is_named_in_the_summary_the_seal_and_the_certificate() {
    let scene = Meeting::with("true", "[schedule]\ndrift = \"fail\"\n");
    scene.scene.workspace.write("todo/1/a.txt", "a\n");
    scene.scene.brief("1", &[("Touches", "b.txt")]);
    scene.pdca(&["run", "1"]).expect(100);
    scene.pdca(&["signoff", "1", "clear", "all"]).expect(0);
    let refused = scene.pdca(&["signoff", "1", "accept"]).expect(2);
    assert!(refused.err.contains("--override"), "{}", refused.err);
    scene.pdca(&["signoff", "1", "accept", "--override", "nothing", "--reason", "x"]).expect(2);
    let row = "touches-drift";
    scene
        .pdca(&["signoff", "1", "accept", "--override", row, "--reason", "a.txt is right"])
        .expect(0);
    let summary = scene.scene.workspace.read("results/issue_1/SUMMARY.md");
    assert!(summary.contains("- Gate overridden: "), "{summary}");
    assert_eq!(scene.seal("1")["overrides"][0]["reason"], "a.txt is right");
    scene.integrate(&["--land", "target"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    let certificates = scene.scene.workspace.path().join("process/certificates");
    let found = certificates.read_dir_utf8().unwrap().flatten().next().unwrap();
    let text = fs_err::read_to_string(found.path()).unwrap();
    assert!(text.contains("\"reason\": \"a.txt is right\""), "{text}");
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_change_to_what_judges_changes_is_an_item_that_a_person_must_settle() {
    let scene = Meeting::new("sh check.sh || true");
    scene.waiting("1", &[], &[("check.sh", "true\n"), (".github/workflows/ci.yml", "x\n")]);
    let summary = scene.scene.workspace.read("results/issue_1/SUMMARY.md");
    for path in ["check.sh", ".github/workflows/ci.yml"] {
        assert!(summary.contains(&format!("- [ ] protected path: `{path}`")), "{summary}");
    }
    // Without the item nobody can have settled it.
    let file = "results/issue_1/SUMMARY.md";
    let without: Vec<&str> =
        summary.lines().filter(|line| !line.contains("protected path")).collect();
    scene.scene.workspace.write(file, without.join("\n") + "\n");
    scene.pdca(&["signoff", "1", "clear", "all"]).expect(0);
    let refused = scene.pdca(&["signoff", "1", "accept"]).expect(2);
    assert!(refused.err.contains("protected path"), "{}", refused.err);
    scene.scene.workspace.write(file, summary);
    scene.scene.accept("1");
    scene.integrate(&["--land", "target"]).expect(0);
}

#[test]
fn the_seal_of_an_acceptance_that_was_taken_back_lands_nothing_written_by_hand() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    scene.pdca(&["reopen", "1", "--note", "look again"]).expect(0);
    // The builder does the same again, and somebody writes the outcome by hand.
    scene.pdca(&["run", "1"]).expect(0);
    let workspace = &scene.scene.workspace;
    let text = workspace.read("results/issue_1/SUMMARY.md");
    workspace
        .write("results/issue_1/SUMMARY.md", text.replace("- Outcome:", "- Outcome: accepted"));
    assert_eq!(next(&scene.scene, "1"), "pdca reopen 1");
    scene.integrate(&["--land", "target"]).expect(4);
    scene.integrate(&["--land", "target", "--seal"]).expect(3);
    assert_eq!(scene.subjects(), ["first|"]);
}
