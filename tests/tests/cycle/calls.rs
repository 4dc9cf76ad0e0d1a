//! Transcripts and costs of leaf calls: kept once each, shown, and held against caps.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be set up fails its test")]

use std::collections::BTreeMap;

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;
use serde_json::Value;

/// Speaks as Claude Code, and tells half a dollar.
const CLAUDE: &str = r#"
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"sonnet"}'
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"I read the brief."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat brief.md"}}]}}'
printf 'a \033[31mred\033[0m word\n' >&2
ls "$PDCA_BUNDLE" > "$PDCA_WORKSPACE/calls/seen-by-builder"
echo "$1" > "file-$1.txt"
echo '{"type":"result","subtype":"success","is_error":false,"result":"Built.","total_cost_usd":0.5,"usage":{"input_tokens":1000,"cache_read_input_tokens":500,"output_tokens":20}}'
"#;

/// Speaks as Codex, which tells tokens and no cost.
const CODEX: &str = r#"
echo '{"type":"thread.started","thread_id":"t-9"}'
ls -R "$PDCA_BUNDLE" > "$PDCA_WORKSPACE/calls/seen-by-reviewer"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n' > "$PDCA_OUTPUT"
echo '{"type":"item.completed","item":{"type":"agent_message","text":"Reviewed."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":0,"output_tokens":0}}'
"#;

/// The leaves, with further keys of each and of the file.
fn scene(builder: &str, reviewer: &str, more: &str) -> Scene {
    let leaf = |role: &str, keys: &str| {
        format!(
            "[leaves.{role}]\nmode = \"command\"\nprompt_via = \"none\"\nwritable = [\"calls\"]\n\
             argv = [\"sh\", \"{{workspace}}/leaves/{role}.sh\", \"{{id}}\"]\n{keys}\n\n"
        )
    };
    let scene = Scene::with_leaves(CLAUDE, CODEX, "");
    let config = format!(
        "{}{}{}{more}",
        pdca_e2e::TARGET,
        leaf("builder", builder),
        leaf("reviewer", reviewer)
    );
    scene.workspace.config(&config);
    scene
}

const TELLING: (&str, &str) =
    ("protocol = \"claude\"", "protocol = \"codex\"\nprice = { input = 0.25, output = 10 }");

fn telling(more: &str) -> Scene {
    scene(TELLING.0, TELLING.1, more)
}

/// The records of a bundle's calls, over all attempts.
fn ledger(scene: &Scene, id: &str) -> Vec<Value> {
    let mut records = Vec::new();
    let bundle = scene.workspace.path().join(format!("results/issue_{id}"));
    let mut dirs = vec![bundle.join("logs")];
    dirs.extend((1..9).map(|number| bundle.join(format!("iteration-v{number}/logs"))));
    for dir in dirs {
        let text = fs_err::read_to_string(dir.join("calls.jsonl")).unwrap_or_default();
        records.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    records
}

fn cost(record: &Value) -> u64 {
    record["cost_usd_micros"].as_u64().unwrap_or(0)
}

/// The costs that the events of all runs tell, each call once.
fn told(scene: &Scene) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    let runs = scene.workspace.path().join(".pdca/runs");
    for run in fs_err::read_dir(runs).unwrap().flatten() {
        let text = fs_err::read_to_string(run.path().join("events.jsonl")).unwrap_or_default();
        for event in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if event["event"] == "leaf_recorded" {
                calls.insert(event["call"].as_str().unwrap().to_owned(), cost(&event));
            }
        }
    }
    calls
}

fn recorded(scene: &Scene, id: &str) -> BTreeMap<String, u64> {
    let call = |record: &Value| (record["call"].as_str().unwrap().to_owned(), cost(record));
    ledger(scene, id).iter().map(call).collect()
}

#[test]
fn each_call_is_on_record_and_its_transcript_is_shown_to_people_and_never_to_a_reviewer() {
    let scene = telling("");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert!(ran.err.contains("1.5k tokens in (500 cached), 20 out · $0.50"), "{}", ran.err);
    assert!(ran.err.contains("1.0M tokens in, 0 out · about $0.25"), "{}", ran.err);

    let records = ledger(&scene, "7");
    let shown: Vec<_> = records
        .iter()
        .map(|record| (record["leaf"].as_str().unwrap(), cost(record), &record["session"]))
        .collect();
    assert_eq!(shown, [("builder", 500_000, &"s-1".into()), ("reviewer", 250_000, &"t-9".into())]);
    assert_eq!(records[0]["cost_basis"], "told");
    assert_eq!(records[1]["cost_basis"], "price");
    assert_eq!(records[0]["model"], "sonnet");
    assert_eq!(recorded(&scene, "7"), told(&scene));

    let log = scene.pdca(&["log", "7", "builder"]).expect(0).out;
    assert!(log.contains("I read the brief.\n→ Bash  cat brief.md\n"), "{log}");
    assert!(log.contains("a \\u{1b}[31mred"), "escape sequences are harmless: {log:?}");
    assert!(log.contains("$0.50") && log.contains("session s-1"), "{log}");
    let raw = scene.pdca(&["log", "7", "builder", "--raw"]).expect(0).out;
    assert!(raw.contains("\"total_cost_usd\":0.5"), "{raw}");
    let json = scene.pdca(&["log", "7", "--json"]).expect(0).json();
    assert_eq!((&json["what"], &json["running"]), (&"reviewer".into(), &false.into()));

    let seen = scene.workspace.read("calls/seen-by-reviewer");
    assert!(!seen.contains("log"), "{seen}");
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("- Cost of the leaves: $0.75 (1 of 2 calls estimated)"), "{summary}");
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    assert_eq!(status["bundles"][0]["cost"]["cost_usd_micros"], 750_000);
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("[$0.75]"), "{status}");
    let why = scene.pdca(&["why", "7"]).expect(0).out;
    assert!(why.contains("last call: reviewer (exit status 0), $0.75"), "{why}");

    scene.accept("7");
    let index = scene.pdca(&["act", "index"]).expect(0).out;
    assert!(index.contains("$0.75 per accepted issue"), "{index}");
    let index = scene.pdca(&["act", "index", "--json"]).expect(0).json();
    assert_eq!(index["cost_per_accepted_usd_micros"], 750_000);
}

#[test]
fn a_transcript_is_capped_and_goes_into_the_archive_with_its_attempt() {
    let scene = telling("[leaves]\ntranscript_kb = 1\n");
    scene.brief("7", &[]);
    let builder = format!(
        "echo builder >> \"$PDCA_WORKSPACE/calls/log\"\necho first line\nseq 1 2000\n{}",
        CLAUDE.replace("$1", "7")
    );
    scene.workspace.write("leaves/builder.sh", builder);
    scene.pdca(&["run", "7"]).expect(0);
    let kept = scene.workspace.read("results/issue_7/logs/01-builder.log");
    assert!(kept.len() < 1200, "{}", kept.len());
    assert!(kept.starts_with("first line\n") && kept.contains("bytes left out"), "{kept}");
    assert!(kept.contains("total_cost_usd"), "the end tells the cost: {kept}");
    let note = ["signoff", "7", "iterate-do", "--note", "again"];
    scene.pdca(&note).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.workspace.read("results/issue_7/iteration-v1/logs/01-builder.log"), kept);
    let first = scene.pdca(&["log", "7", "builder", "--attempt", "1", "--json"]).expect(0).json();
    assert_eq!(first["attempt"], 1);
    let newest = scene.pdca(&["log", "7", "builder", "--json"]).expect(0).json();
    assert_eq!(newest["attempt"], 2);
    assert_eq!(recorded(&scene, "7").values().sum::<u64>(), 1_500_000);
    assert_eq!(recorded(&scene, "7"), told(&scene));
    let ran = scene.pdca(&["log", "7", "--attempt", "3"]).expect(2);
    assert!(ran.err.contains("7 has no attempt 3"), "{}", ran.err);
}

#[test]
fn a_log_is_shown_while_the_call_runs_and_followed_to_its_end() {
    let scene = telling("");
    scene.brief("7", &[]);
    let builder = format!(
        "echo '{}'\necho up > \"$PDCA_WORKSPACE/calls/at-7\"\n\
         while [ ! -e \"$PDCA_WORKSPACE/go\" ]; do sleep 0.02; done\n{}",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I wait."}]}}"#,
        CLAUDE.replace("$1", "7")
    );
    scene.workspace.write("leaves/builder.sh", builder);
    let run = scene.start(&["run", "7"]);
    scene.wait_until("the builder runs", |scene| scene.workspace.says("calls/at-7"));
    let now = scene.pdca(&["log", "7", "--json"]).expect(0).json();
    assert_eq!((&now["what"], &now["running"]), (&"builder".into(), &true.into()));
    assert_eq!(now["entries"][0]["text"], "I wait.");
    let followed = std::thread::scope(|scope| {
        let following = scope.spawn(|| scene.pdca(&["log", "7", "builder", "-f"]));
        scene.workspace.write("go", "");
        following.join().unwrap()
    });
    let out = followed.expect(0).out;
    assert!(out.starts_with("I wait.\n") && out.contains("$0.50"), "{out}");
    assert_eq!(run.wait(), 0);
}

#[test]
fn a_driver_that_has_not_recorded_a_call_yet_is_not_said_to_be_gone() {
    let scene = telling("");
    scene.brief("7", &[]);
    let driver = scene.start_with(&[("PDCA_STOP_AT", "call-kept")], &["run", "7"]);
    scene.wait_until("the driver stands still", |_| driver.is_stopped());
    let followed = scene.pdca(&["log", "7", "builder", "-f"]).expect(0);
    assert!(followed.err.contains("has not recorded the call yet"), "{}", followed.err);
    driver.signal(rustix::process::Signal::CONT);
    assert_eq!(driver.wait(), 0);
}

#[test]
fn a_builder_that_changed_nothing_is_heard() {
    let scene = Scene::with_leaves(
        "echo 'both at once: marmalade' > \"$PDCA_BUNDLE/build-notes.md\"",
        REVIEWER,
        "",
    );
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(1);
    for command in [["why", "7"], ["log", "7"]] {
        let out = scene.pdca(&command).expect(0).out;
        assert!(out.contains("marmalade"), "{command:?}: {out}");
    }
}

#[test]
fn where_there_is_no_log_the_next_command_is_said() {
    let scene = Scene::with_leaves("true", REVIEWER, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["log", "7"]).expect(4);
    assert!(
        ran.err.contains("7 has no log of any leaf") && ran.err.contains("pdca why 7"),
        "{}",
        ran.err
    );
    let json = scene.pdca(&["log", "7", "--json"]).expect(4).json();
    assert_eq!(json["kind"], "error");
    scene.pdca(&["run", "7"]).expect(1);
    let ran = scene.pdca(&["log", "7", "reviewer"]).expect(4);
    assert!(ran.err.contains("there are logs of builder"), "{}", ran.err);
}

#[test]
fn the_logs_of_gates_are_shown_by_name_and_together() {
    let more = "[[gates.checks]]\nid = \"T1-say\"\ntier = \"T1\"\ncmd = \"echo gate speaks\"\n";
    let scene = Scene::with_leaves("echo 1 > f.txt", REVIEWER, more);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    for what in ["gate", "T1-say"] {
        let out = scene.pdca(&["log", "7", what]).expect(0).out;
        assert!(out.contains("gate T1-say\n") && out.contains("gate speaks"), "{what}: {out}");
    }
}

/// Calls of builders and reviewers.
fn calls(scene: &Scene) -> usize {
    scene.calls().len()
}

#[test]
fn a_run_stops_when_it_spent_what_it_may_says_so_once_and_goes_on_when_that_is_raised() {
    // A builder is half a dollar, a reviewer a quarter.
    for (cap, called) in
        [("0.49", 1), ("0.5", 1), ("0.500001", 2), ("0.75", 2), ("0.76", 3), ("5", 6)]
    {
        let scene = telling("");
        for id in ["7", "8", "9"] {
            scene.brief(id, &[]);
        }
        let config = format!("driver.max_cost={cap}");
        let ran = scene.pdca(&["--config", &config, "batch", "--lanes", "1"]);
        let is_capped = called < 6;
        assert_eq!(ran.code, if is_capped { 103 } else { 0 }, "{cap}: {}", ran.err);
        assert_eq!(calls(&scene), called, "{cap}: {}", ran.err);
        if !is_capped {
            continue;
        }
        assert_eq!(ran.err.matches("raise `max_cost` in [driver]").count(), 1, "{}", ran.err);
        // The same command pays nothing more.
        let again = scene.pdca(&["--config", &config, "batch", "--lanes", "1"]).expect(103);
        assert_eq!(calls(&scene), called, "{cap}: {}", again.err);
        scene.pdca(&["--config", "driver.max_cost=9", "batch", "--lanes", "1"]).expect(0);
        assert_eq!(calls(&scene), 6, "nothing that was paid for is paid again");
    }
}

#[test]
fn an_issue_that_spent_what_it_may_waits_and_the_others_go_on() {
    let scene = telling("[driver]\nmax_cost_per_issue = 0.6\n");
    scene.brief("7", &[]);
    scene.brief("8", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let note = ["signoff", "7", "iterate-do", "--note", "again"];
    scene.pdca(&note).expect(0);
    let ran = scene.pdca(&["batch", "--lanes", "1"]).expect(103);
    assert!(ran.err.contains("the issue spent $0.75, and its limit is $0.60"), "{}", ran.err);
    assert!(ran.err.contains("raise `max_cost_per_issue`"), "{}", ran.err);
    assert_eq!(scene.state("8"), "AWAITING_SIGNOFF");
    assert_eq!(scene.state("7"), "PLANNED");
    assert_eq!(calls(&scene), 4);
}

#[test]
fn a_cap_with_an_agent_that_tells_no_cost_is_an_error_before_anything_is_paid() {
    for (keys, remedy) in [("protocol = \"codex\"", "price = {"), ("", "cost_per_call")] {
        for key in ["max_cost", "max_cost_per_issue"] {
            let scene = scene(keys, TELLING.1, &format!("[driver]\n{key} = 1\n"));
            scene.brief("7", &[]);
            let ran = scene.pdca(&["run", "7"]).expect(2);
            assert!(
                ran.err.contains("[leaves.builder]") && ran.err.contains(remedy),
                "{}",
                ran.err
            );
            assert_eq!(calls(&scene), 0);
            scene.pdca_with(&[("PDCA_LEAVES_MODE", "stub")], &["run", "7"]).expect(0);
        }
    }
    let estimated = scene("cost_per_call = 0.3", TELLING.1, "[driver]\nmax_cost = 1\n");
    estimated.brief("7", &[]);
    estimated.pdca(&["run", "7"]).expect(0);
    assert_eq!(recorded(&estimated, "7").values().sum::<u64>(), 550_000);
    let wrong = telling("[driver]\nmax_cost = 0\n");
    let ran = wrong.pdca(&["status"]).expect(2);
    assert!(ran.err.contains("`max_cost` is 0"), "{}", ran.err);
}

#[test]
fn a_retry_is_a_call_of_its_own() {
    let scene = scene("protocol = \"claude\"\nretries = 2", TELLING.1, "");
    scene.brief("7", &[]);
    let failing = r#"
echo '{"type":"result","subtype":"error_during_execution","is_error":true,"total_cost_usd":0.125}'
[ "$(wc -l < "$PDCA_WORKSPACE/calls/log")" -ge 3 ] || exit 1
"#;
    let builder = format!(
        "echo b >> \"$PDCA_WORKSPACE/calls/log\"\n{failing}\n{}",
        CLAUDE.replace("$1", "7")
    );
    scene.workspace.write("leaves/builder.sh", builder);
    scene.pdca(&["run", "7"]).expect(0);
    let costs: Vec<u64> = ledger(&scene, "7").iter().map(cost).collect();
    assert_eq!(costs, [125_000, 125_000, 500_000, 250_000]);
    assert_eq!(recorded(&scene, "7"), told(&scene));
}

#[test]
fn killed_at_every_effect_each_call_that_ended_is_counted_once_and_told() {
    let make = || {
        let scene = telling("[driver]\ngate_base = \"off\"\n");
        scene.brief("7", &[]);
        scene
    };
    for k in 1.. {
        let scene = make();
        let ran = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{k}"))], &["run", "7"]);
        let resumed = if ran.code == 0 { ran.code } else { scene.pdca(&["run", "7"]).code };
        assert!(resumed == 0 || resumed == 3, "after point {k}: {resumed}");
        let records = ledger(&scene, "7");
        let ended = records.iter().filter(|record| record["interrupted"] != true);
        let ended: Vec<(&str, u64)> =
            ended.map(|record| (record["leaf"].as_str().unwrap(), cost(record))).collect();
        assert_eq!(ended, [("builder", 500_000), ("reviewer", 250_000)], "killed at point {k}");
        // A program that was killed before its first line has started all the same.
        let started = scene.calls().len();
        assert!(
            (started..=started + 1).contains(&records.len()),
            "killed at point {k}: {records:?}"
        );
        assert_eq!(recorded(&scene, "7"), told(&scene), "killed at point {k}");
        if ran.code == 0 {
            assert!(k > 30, "only {k} points were visited");
            return;
        }
    }
}
