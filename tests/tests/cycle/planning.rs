//! Planning: advisers on briefs, what a session costs, what one that failed leaves.

use pdca_e2e::{Scene, leaf};
use rustix::process::Signal;

const BUILDER: &str = "echo \"$1\" > \"file-$1.txt\"";
const REVIEWER: &str = "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 | PASS | seen |\\n' > \"$PDCA_OUTPUT\"";
const PLANNER: &str = "printf -- '- **Slug:** fix\\n- **Repo + branch target:** team/app @ main\\n' > \"$PDCA_OUTPUT\"";
const ADVISER: &str = "grep -q 'Slug:.. fix' brief.md; printf -- '- NEEDS-HUMAN — is %s one change?\\n' \"$1\" > \"$PDCA_OUTPUT\"";
const CONFIG: &str = "[driver]\ngate_base = \"off\"\n\n\
    [[gates.checks]]\nid = \"T1-there\"\ntier = \"T1\"\ncmd = \"test -f greeting.txt\"\n\n";

/// A workspace with a planner and an adviser on briefs, neither of which talks with a person.
fn scene(planner: &str, adviser: &str) -> Scene {
    let advisory =
        leaf("adviser").replace("[leaves.adviser]", "[[leaves.plan_advisory]]\nid = \"thin\"");
    let config = format!("{}{advisory}{CONFIG}", leaf("planner"));
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &config);
    scene.script("planner", planner);
    scene.script("adviser", adviser);
    scene
}

fn advised(scene: &Scene) -> usize {
    scene.calls().iter().filter(|call| call.starts_with("adviser ")).count()
}

/// The records of the calls of one role for a bundle.
fn records(scene: &Scene, id: &str, role: &str) -> Vec<serde_json::Value> {
    let text = scene.workspace.read(format!("results/issue_{id}/logs/calls.jsonl"));
    let records = text.lines().map(|line| serde_json::from_str(line).expect("it is a record"));
    records.filter(|record: &serde_json::Value| record["role"] == role).collect()
}

#[test]
fn an_adviser_reads_each_brief_once_and_what_it_asks_is_an_item_of_the_sign_off() {
    let scene = scene(PLANNER, ADVISER);
    scene.pdca(&["new", "5", "--plan"]).expect(0);
    let advice = scene.workspace.read("results/issue_5/plan-advisory-thin.md");
    assert!(advice.starts_with("- NEEDS-HUMAN — is 5 one change?\n"), "{advice}");
    assert_eq!(records(&scene, "5", "plan_adviser").len(), 1);
    let shown = scene.pdca(&["show", "5"]).expect(0).out;
    assert!(shown.contains("Advice on the brief"), "{shown}");
    assert!(shown.contains("is 5 one change?"), "{shown}");
    scene.pdca(&["run", "5"]).expect(0);
    let summary = scene.workspace.read("results/issue_5/SUMMARY.md");
    assert!(summary.contains("- [ ] is 5 one change?"), "{summary}");
    assert_eq!(advised(&scene), 1);
    // A brief that a person wrote is advised on, too; an unfilled one is not.
    let brief = "- **Slug:** fix\n- **Repo + branch target:** team/app @ main\n";
    scene.workspace.write("drafts/6.md", brief);
    scene.pdca(&["new", "6", "--from-brief", "drafts/6.md"]).expect(0);
    assert!(scene.workspace.has("results/issue_6/plan-advisory-thin.md"));
    scene.pdca(&["new", "7"]).expect(0);
    assert!(!scene.workspace.has("results/issue_7/plan-advisory-thin.md"));
    assert_eq!(advised(&scene), 2);
}

#[test]
fn an_adviser_that_fails_is_a_warning_and_holds_nothing() {
    let scene = scene(PLANNER, "echo no idea >&2; exit 9");
    let ran = scene.pdca(&["new", "5", "--plan"]).expect(0);
    assert!(ran.err.contains("the adviser thin has no advice on the brief"), "{}", ran.err);
    assert_eq!(scene.state("5"), "PLANNED");
    let log = scene.workspace.read("results/issue_5/plan-advisory-thin.error.log");
    assert!(log.contains("no idea"), "{log}");
    scene.pdca(&["run", "5"]).expect(0);
}

#[test]
fn a_session_is_paid_for_by_its_issues_and_one_that_failed_leaves_the_files_it_names() {
    let planner = "for issue in $PDCA_ISSUES; do\n\
         printf -- '- **Slug:** fix\\n- **Triage verdict:** fix\\n' > issue_$issue/brief.md\ndone\necho oops >&2\nexit 3";
    let scene = scene(planner, ADVISER);
    let config = scene.workspace.read("pdca.toml");
    let session = leaf("planner").replace("{id}", "session");
    let session = session.replace("prompt_via", "cost_per_call = 1.01\nprompt_via");
    scene.workspace.write("pdca.toml", config.replace(&leaf("planner"), &session));
    scene.workspace.write("export.csv", "id,title,status\n1,a,new\n2,b,new\n3,c,new\n");
    let line = "exec $PDCA flow --from-csv export.csv --character hygiene";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for(".pdca/plan");
    let _killed = rustix::process::kill_process(pty.pid(), Signal::KILL);
    pty.wait();
    scene.wait_until("nobody is left", |scene| scene.processes().is_empty());
    assert!(scene.workspace.has(".pdca/plan/session.json"), "{}", pty.shown());
    let mut micros = 0;
    for id in ["1", "2", "3"] {
        let [record] = &records(&scene, id, "planner")[..] else { panic!("one call for {id}") };
        assert_eq!(record["shared_by"], 3);
        micros += record["cost_usd_micros"].as_u64().expect("it has a cost");
        assert!(scene.workspace.has(format!("results/issue_{id}/plan-advisory-thin.md")));
    }
    assert_eq!(micros, 1_010_000);
    assert_eq!(advised(&scene), 3);
}
