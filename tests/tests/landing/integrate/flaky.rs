//! Rows that fail by mistake: what their red means, and what is told of them.

use serde_json::json;

use crate::meeting::Meeting;

const RED: &str =
    r#"echo run >> "$PDCA_WORKSPACE/calls/runs"; ! { test -e a.txt && test -e b.txt; }"#;

/// Red over the two together the first time, and while there is a file `red`.
const RED_ONCE: &str = r#"echo run >> "$PDCA_WORKSPACE/calls/runs"
if test -e a.txt && test -e b.txt; then
  if mkdir "$PDCA_WORKSPACE/calls/first" || test -e "$PDCA_WORKSPACE/red"; then exit 1; fi
fi"#;

/// A workspace in which the row has this policy, and so many of its runs were mistakes.
fn scene(policy: &str, flakes: u32) -> Meeting {
    scene_with(RED, policy, flakes)
}

fn scene_with(gate: &str, policy: &str, flakes: u32) -> Meeting {
    let config = format!("[gates]\nflaky = \"{policy}\"\n[integrate]\nland = \"target\"\n");
    let scene = Meeting::with(gate, &config);
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let history = json!({
        "runs": 40, "flakes": flakes, "last_seen": "2026-01-02T03:04:05Z", "trees": ["0a0a"],
        "seen_with": (0..flakes.min(3))
            .map(|at| json!({ "tree": format!("0a0{at}"), "changes": [format!("old-{at}")] }))
            .collect::<Vec<_>>(),
    });
    let ledger = json!({ "rows": { "T3-tests": history } });
    scene.scene.workspace.write(".pdca/flakes.json", ledger.to_string());
    fs_err::remove_file(scene.scene.workspace.path().join("calls/runs"))
        .expect("Check ran the gate");
    scene
}

fn runs(scene: &Meeting) -> usize {
    scene.scene.workspace.read("calls/runs").lines().count()
}

#[test]
fn a_row_in_quarantine_that_is_known_to_be_flaky_does_not_block_and_that_is_said_everywhere() {
    let scene = scene_with(RED_ONCE, "quarantine", 3);
    let done = scene.integrate(&[]).expect(0);
    assert!(done.out.contains("quarantine  T3-tests was red"), "{}", done.out);
    let line = "flaky   T3-tests failed by mistake in 4 of";
    assert!(done.out.contains(line), "{}", done.out);
    assert!(done.out.contains("on 2 trees"), "{}", done.out);
    assert!(done.err.contains("in quarantine, does not block"), "{}", done.err);
    assert_eq!(scene.subjects().len(), 3);
    let certificates = scene.scene.workspace.path().join("process/certificates");
    let name = certificates.read_dir_utf8().unwrap().next().unwrap().unwrap().path().to_owned();
    let text = fs_err::read_to_string(name).unwrap();
    let certificate: serde_json::Value = serde_json::from_str(&text).unwrap();
    let verdict = &certificate["certificate"]["verdict"];
    assert_eq!(verdict["quarantined"], json!(["T3-tests"]), "{verdict:#}");
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_row_in_quarantine_that_is_red_every_time_blocks_as_any_other() {
    let scene = scene("quarantine", 3);
    let done = scene.integrate(&["--json"]).expect(101).json();
    assert_eq!(done["held"][0]["text"], "2 breaks T3-tests only together with 1");
    assert_eq!(done["quarantined"], json!([]), "{done:#}");
}

#[test]
fn one_flake_and_flakes_with_one_change_quarantine_no_row() {
    for flakes in [
        json!([{ "tree": "a", "changes": ["9"] }]),
        json!([{ "tree": "a", "changes": ["9"] }, { "tree": "b", "changes": ["9", "8"] }, { "tree": "c", "changes": ["7", "9"] }]),
    ] {
        let scene = scene_with(RED_ONCE, "quarantine", 3);
        let history = json!({ "runs": 9, "flakes": 3, "trees": ["a"], "seen_with": flakes });
        let ledger = json!({ "rows": { "T3-tests": history } });
        scene.scene.workspace.write(".pdca/flakes.json", ledger.to_string());
        scene.scene.workspace.write("red", "");
        let done = scene.integrate(&["--json"]).expect(101).json();
        assert_eq!(done["quarantined"], json!([]), "{done:#}");
        assert_eq!(done["held"][0]["id"], "2", "{done:#}");
    }
}

#[test]
fn a_row_in_quarantine_that_never_failed_by_mistake_blocks_as_any_other() {
    let scene = scene("quarantine", 0);
    let done = scene.integrate(&["--json"]).expect(101).json();
    assert_eq!(done["held"][0]["text"], "2 breaks T3-tests only together with 1");
    assert_eq!((&done["flaky"], &done["quarantined"]), (&json!([]), &json!([])));
}

#[test]
fn a_verdict_without_a_row_in_quarantine_does_not_count_once_the_row_counts_again() {
    let scene = scene_with(RED_ONCE, "quarantine", 3);
    scene.integrate(&["--land", "branch"]).expect(0);
    scene.scene.workspace.write("red", "");
    let text = scene.scene.workspace.read("pdca.toml");
    scene.scene.workspace.config(&text.replace("\"quarantine\"", "\"confirm\""));
    let said = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert_ne!(said["gate_runs"], 0, "{said:#}");
    assert_eq!(scene.subjects().len(), 2, "{:?}", scene.subjects());
}

#[test]
fn a_red_that_is_believed_at_once_is_not_asked_again() {
    // As flaky as it is, a red of it would be asked about many times.
    let (confirmed, believed) = (scene("confirm", 20), scene("fail", 20));
    for scene in [&confirmed, &believed] {
        let done = scene.integrate(&["--json"]).expect(101).json();
        assert_eq!(done["held"][0]["id"], "2");
        assert_eq!(done["flaky"][0]["flakes"], 20, "{done:#}");
        assert_eq!(done["flaky"][0]["last_seen"], "2026-01-02T03:04:05Z");
    }
    assert!(runs(&believed) < runs(&confirmed), "{} {}", runs(&believed), runs(&confirmed));
}

#[test]
fn at_check_a_row_in_quarantine_is_red_in_the_summary_and_says_why_it_does_not_block() {
    let scene = scene("quarantine", 3);
    scene.waiting("3", &[], &[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let summary = scene.scene.workspace.read("results/issue_3/SUMMARY.md");
    let line = summary.lines().find(|line| line.contains("T3-tests")).expect("it is there");
    assert!(line.contains("fail") && line.contains("in quarantine, does not block"), "{line}");
    let report = scene.scene.workspace.read("results/issue_3/check-gates.json");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["overall"], "pass");
    // The same with a row that blocks.
    let text = scene.scene.workspace.read("pdca.toml");
    scene.scene.workspace.config(&text.replace("\"quarantine\"", "\"confirm\""));
    scene.scene.workspace.write("todo/4/a.txt", "a\n");
    scene.scene.workspace.write("todo/4/b.txt", "b\n");
    scene.scene.brief("4", &[]);
    scene.pdca(&["run", "4"]).expect(100);
}

#[test]
fn what_integrations_cost_is_told_from_the_record() {
    let scene = scene("confirm", 0);
    let none = scene.pdca(&["integrate", "--stats"]).expect(4);
    assert!(none.out.contains("no integration is on record"), "{}", none.out);
    let done = scene.integrate(&["--json"]).expect(101).json();
    scene.integrate(&[]).expect(101);
    let said = scene.pdca(&["integrate", "--stats", "--json"]).expect(0).json();
    let stats = &said["stats"];
    assert_eq!((&stats["integrations"], &stats["cut_short"]), (&json!(2), &json!(0)), "{said:#}");
    assert_eq!((&stats["landed"], &stats["runs"]), (&json!(1), &done["gate_runs"]), "{said:#}");
    let red = stats["red_rate"].as_f64().unwrap();
    assert!(red > 0.0 && red < 1.0, "{red}");
    let blocks = json!([{
        "held": "2", "by": ["1"], "reason": "red", "rows": ["T3-tests"], "times": 2,
    }]);
    assert_eq!(stats["blocks"], blocks, "{said:#}");
    assert!(stats["median_secs_to_green"].is_number(), "{said:#}");
    let table = scene.pdca(&["integrate", "--stats"]).expect(0).out;
    for line in ["integrations", "red rate", "runs saved", "time to green", "who blocks whom"] {
        assert!(table.contains(line), "{table}");
    }
    let other = scene.pdca(&["integrate", "--stats", "--target", "other"]).expect(4);
    assert!(other.out.contains("no integration"), "{}", other.out);
}

#[test]
fn an_integration_that_was_killed_is_counted_as_far_as_it_came() {
    let scene = scene("confirm", 0);
    let killed = scene.scene.pdca_with(&[("PDCA_CRASH_AT", "verdict:2")], &["integrate"]);
    assert_eq!(killed.code, 128 + 9, "{}", killed.err);
    let stats = scene.pdca(&["integrate", "--stats", "--json"]).expect(0).json();
    assert_eq!((&stats["stats"]["runs"], &stats["stats"]["cut_short"]), (&json!(2), &json!(1)));
    scene.integrate(&[]).expect(101);
    let stats = scene.pdca(&["integrate", "--stats", "--json"]).expect(0).json();
    let of = |name: &str| stats["stats"][name].as_u64().unwrap();
    assert_eq!((of("integrations"), of("cut_short")), (1, 0), "{stats:#}");
}
