//! The recorded events of a run and of an integration, rendered again.

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;
use pdca_testkit::{assert_follows_schema, pdca_bin};

const MORE: &str = r#"
[integrate]
land = "branch"

[[gates.checks]]
id = "T1-there"
tier = "T1"
cmd = "test -f greeting.txt"
"#;

fn scene() -> Scene {
    let scene = Scene::with_leaves("echo \"$1\" > \"file-$1.txt\"", REVIEWER, MORE);
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    scene
}

#[test]
fn a_batch_and_an_integration_are_replayed_line_for_line() {
    let scene = scene();
    let run = scene.pdca(&["batch", "--lanes", "2", "--events", "events"]).expect(0);
    let replayed = scene.pdca(&["replay"]).expect(0);
    assert!(run.err.lines().count() > 10, "{}", run.err);
    assert_eq!(replayed.out, run.err);
    assert_eq!(replayed.err, "");

    let raw = scene.pdca(&["replay", "latest", "--raw"]).expect(0);
    let events = scene.workspace.read("events");
    let recorded: Vec<&str> = events.lines().filter(|line| !line.contains("\"alive\"")).collect();
    assert_eq!(raw.out.lines().collect::<Vec<_>>(), recorded);

    scene.accept("7");
    scene.accept("8");
    let integration = scene.pdca(&["integrate"]).expect(0);
    let replayed = scene.pdca(&["replay", "--follow"]).expect(0);
    assert!(integration.err.contains("integrate  "), "{}", integration.err);
    assert_eq!(replayed.out, integration.err);

    let first = serde_json::from_str::<serde_json::Value>(recorded[0]).expect("a line is JSON");
    let id = first["run"].as_str().expect("an event of a run names it");
    assert_eq!(scene.pdca(&["replay", id]).expect(0).out, run.err);
    let document = scene.pdca(&["replay", id, "--json"]).expect(0).json();
    assert_eq!(document["events"].as_array().map(Vec::len), Some(recorded.len()));
}

#[test]
fn events_are_numbered_and_say_when_and_where() {
    let scene = scene();
    scene.pdca(&["run", "7"]).expect(0);
    let raw = scene.pdca(&["replay", "--raw"]).expect(0);
    let events: Vec<serde_json::Value> =
        raw.out.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    // Nothing is lost in the types that the JSON Schema is made from.
    for event in &events {
        let read: pdca_journal::events::Event =
            serde_json::from_value(event.clone()).expect("an event can be read");
        assert_eq!(&serde_json::to_value(&read).expect("an event can be written"), event);
    }
    for event in &events {
        assert_eq!(event["schema"], 1, "{event}");
        assert!(event["at"].is_string() && event["run"].is_string(), "{event}");
    }
    // A sign of life has a number and is not stored.
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers.len(), events.len());
    assert!(numbers.first() == Some(&1) && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let is_base = |event: &&serde_json::Value| event["scope"] == "base";
    let base = events.iter().find(is_base).expect("the branch is gated by itself");
    assert_eq!((&base["id"], &base["target"]), (&"base+".into(), &"app".into()));
}

#[test]
fn a_torn_last_line_is_named_and_the_rest_is_shown() {
    let scene = scene();
    let run = scene.pdca(&["run", "7"]).expect(0);
    let whole = scene.pdca(&["replay", "--raw"]).expect(0).out;
    let first: serde_json::Value =
        serde_json::from_str(whole.lines().next().expect("a line")).expect("a line is JSON");
    let id = first["run"].as_str().expect("an event of a run names it");
    let log = format!(".pdca/runs/{id}/events.jsonl");
    let torn = &scene.workspace.read(&log)[..whole.len() - 5];
    scene.workspace.write(&log, torn);
    let replayed = scene.pdca(&["replay"]).expect(0);
    assert!(run.err.starts_with(&replayed.out) && replayed.out.len() < run.err.len());
    let last = whole.lines().count();
    assert!(replayed.err.contains(&format!("line {last} of the events")), "{}", replayed.err);
}

#[test]
fn nothing_recorded_and_an_unknown_run_are_told_apart() {
    let scene = scene();
    assert!(scene.pdca(&["replay"]).expect(4).err.contains("no run is recorded"));
    assert!(scene.pdca(&["replay", "nonsense"]).expect(2).err.contains("`nonsense`"));
}

#[test]
fn while_a_run_works_status_says_what_is_being_done() {
    let more = format!(
        r#"
[gates]
sandbox = "off"

[[gates.checks]]
id = "T1-look"
tier = "T1"
cwd = "workspace"
cmd = "{} status --json > seen.json && {} status > seen.txt"
"#,
        pdca_bin(),
        pdca_bin()
    );
    let scene = Scene::with_leaves("echo 1 > file.txt", REVIEWER, &more);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let seen: serde_json::Value =
        serde_json::from_str(&scene.workspace.read("seen.json")).expect("it is one document");
    assert_follows_schema(&seen);
    let doing = &seen["bundles"][0]["doing"];
    assert_eq!(doing["what"], "gate 1/1 T1-look", "{seen:#}");
    assert!(doing["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{seen:#}");
    let text = scene.workspace.read("seen.txt");
    assert!(text.contains("[in work, ") && text.contains(": gate 1/1 T1-look for "), "{text}");
    let after = scene.pdca(&["status", "--json"]).expect(0).json();
    assert_eq!(after["bundles"][0]["doing"], serde_json::Value::Null);
}
