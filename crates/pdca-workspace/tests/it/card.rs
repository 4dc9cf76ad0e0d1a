//! Cards of real bundles on disk.

use pdca_state::{Awaits, Bundle, BundleRoot, sha256_hex};
use pdca_testkit::TestWorkspace;
use pdca_workspace::review::{Card, CardSource, waiting};
use pdca_workspace::snapshot::{SnapshotSource, WorkspaceSnapshot};

const PATCH: &str =
    "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1,2 @@\n-x\n+y\n+z\n";

fn awaiting(workspace: &TestWorkspace, id: &str, open: &[&str], result: &str) {
    workspace.brief(id, &[("Touches", "docs/**")]);
    let file = |name: &str| format!("results/issue_{id}/{name}");
    workspace.write(file("patch.diff"), PATCH);
    let digest = sha256_hex(PATCH.as_bytes());
    workspace.write(
        file("check-gates.json"),
        format!(
            r#"{{"issue_dir": "issue_{id}", "overall": "{result}", "patch_digest": "{digest}", "rows": [
            {{"check": "C2 red before", "result": "pass", "rule_id": "C2-red", "path_line": "1 failed", "gating": true, "element": "C2"}},
            {{"check": "T3 tests", "result": "{result}", "rule_id": "T3-tests", "path_line": "2 tests", "gating": true, "element": "T3", "failing": ["t::one"], "reproduce": "make test"}}]}}"#
        ),
    );
    workspace.write(
        file("check-review.md"),
        "| Item | Verdict | Basis |\n|---|---|---|\n| T1 Structure | PASS | fine |\n| C5 Causal adequacy | NEEDS-HUMAN | is it the cause? |\n",
    );
    let boxes: String = open.iter().map(|item| ["- [ ] ", item, "\n"].concat()).collect();
    workspace.write(
        file("SUMMARY.md"),
        format!("# Result\n\n## 6. NEEDS-HUMAN\n\n- [x] done\n{boxes}\n## 9. Check sign-off\n\n- Outcome:\n"),
    );
}

fn snapshot(workspace: &TestWorkspace) -> WorkspaceSnapshot {
    let bundles = BundleRoot::new(workspace.path().join("results"));
    let source = SnapshotSource { bundles: &bundles, awaits: Awaits::Accepted, config: None };
    WorkspaceSnapshot::load(source).expect("the bundles can be read")
}

fn card(workspace: &TestWorkspace, id: &str) -> Card {
    let snapshot = snapshot(workspace);
    let bundle = Bundle::at(workspace.bundle(id)).expect("the bundles can be read");
    Card::load(CardSource { snapshot: &snapshot, config: None }, &bundle)
        .expect("the bundles can be read")
}

fn text(card: &Card) -> String {
    let mut text = String::new();
    for section in card.sections() {
        text.push_str(section.title);
        text.push('\n');
        for line in section.lines {
            text = format!("{text}  {:?} {}\n", line.tone, line.text);
        }
    }
    for offer in &card.offers {
        let refused = offer.refused.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        text = format!("{text}{} {}{refused}\n", offer.key, offer.command);
    }
    text
}

#[test]
fn a_card_has_the_evidence_and_the_commands() {
    let workspace = TestWorkspace::new();
    let standing = "Validation — fitness-to-purpose — serves?";
    awaiting(&workspace, "36", &["C5 — is it the cause?", standing], "pass");
    let text = text(&card(&workspace, "36"));
    for line in [
        "Good red before: shown by C2-red (1 failed)",
        "Faint green after: no gate shows it",
        "Faint 1 [x] done",
        "Warn 2 [ ] C5 — is it the cause?",
        "Plain 3 [ ] Validation — fitness-to-purpose — serves? (asked every time)",
        "Good pass T3-tests \"all tests\": 2 tests",
        "Warn NEEDS-HUMAN C5 Causal adequacy: is it the cause?",
        "Plain 1 file, +2 -1: src/a.rs",
        "Warn outside `Touches`: src/a.rs",
        "a pdca signoff 36 accept --clear",
        "i pdca signoff 36 iterate-do --note '…'",
        "x pdca signoff 36 discontinue --note '…'",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line}\n{text}");
    }
}

#[test]
fn a_red_gate_is_said_first_and_refuses_an_acceptance() {
    let workspace = TestWorkspace::new();
    awaiting(&workspace, "36", &[], "fail");
    let card = card(&workspace, "36");
    assert_eq!(card.offer('a').unwrap().refused.as_deref(), Some("gate red: T3 tests"));
    assert_eq!(card.gates[0].rule, "T3-tests");
    assert_eq!(card.gates[0].failing, ["t::one"]);
}

#[test]
fn a_patch_that_was_edited_after_check_cannot_be_accepted() {
    let workspace = TestWorkspace::new();
    awaiting(&workspace, "36", &[], "pass");
    assert_eq!(card(&workspace, "36").offer('a').unwrap().refused, None);
    workspace.write("results/issue_36/patch.diff", "edited\n");
    let card = card(&workspace, "36");
    assert!(card.change.edited_after_check && card.offer('a').unwrap().refused.is_some());
}

#[test]
fn the_next_attempt_says_whether_the_note_was_answered() {
    let workspace = TestWorkspace::new();
    awaiting(&workspace, "36", &[], "pass");
    let summary = workspace.read("results/issue_36/SUMMARY.md");
    let signed = summary.replace(
        "- Outcome:",
        "- Outcome: iterated-to-Do\n- Iteration delta (if iterating): mind the gap",
    );
    workspace.write("results/issue_36/SUMMARY.md", signed);
    let bundle = Bundle::at(workspace.bundle("36")).unwrap();
    pdca_state::archive_plan(&bundle, pdca_state::Reentry::Do).unwrap().apply().unwrap();
    awaiting(&workspace, "36", &[], "pass");
    let answer = |workspace: &TestWorkspace| {
        let card = card(workspace, "36");
        let delta = card.since_last.unwrap();
        (delta.note.unwrap(), delta.answer.words(), delta.files)
    };
    let (note, words, files) = answer(&workspace);
    assert_eq!((note.as_str(), files.len()), ("mind the gap", 0));
    assert_eq!(words, "not answered: the change is the same as before");
    workspace.write("results/issue_36/patch.diff", PATCH.replace("+z", "+w"));
    assert_eq!(answer(&workspace).1, "changed since");
    assert_eq!(answer(&workspace).2, ["src/a.rs"]);
}

#[test]
fn the_cheapest_waits_first() {
    let workspace = TestWorkspace::new();
    awaiting(&workspace, "1", &["a", "b"], "pass");
    awaiting(&workspace, "2", &[], "pass");
    awaiting(&workspace, "3", &["a"], "pass");
    workspace.brief("4", &[]);
    let snapshot = snapshot(&workspace);
    let ids: Vec<&str> = waiting(&snapshot).iter().map(|entry| entry.id.as_ref()).collect();
    assert_eq!(ids, ["2", "3", "1"]);
}
