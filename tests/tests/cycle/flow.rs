//! `pdca flow` at a pseudo-terminal: from an export to landed and logged, also if it is killed again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use pdca_e2e::{Ran, Scene, leaf};
use pdca_testkit::Reply;
use rustix::process::Signal;

const ISSUES: usize = 12;

/// Fills in every draft of the session, after the person agreed.
const PLANNER: &str = r#"printf 'plan them? '; read answer; test "$answer" = yes
for issue in $PDCA_ISSUES; do
  printf -- "- **Slug:** fix-$issue\n- **Repo + branch target:** team/app @ main\n- **Touches:** file-$issue.txt\n- **Triage verdict:** fix\n" > "issue_$issue/brief.md"
done"#;
const BUILDER: &str = "echo \"$1\" > \"file-$1.txt\"";
const REVIEWER: &str = "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 | PASS | seen |\\n' > \"$PDCA_OUTPUT\"";
const SIGNOFF: &str = "printf 'accept it? '; read answer; test \"$answer\" = yes; echo '{\"action\": \"accept\"}' > \"$PDCA_OUTPUT\"";
const ACT: &str = r#"printf 'look back? '; read answer; test "$answer" = yes
cp entry-started.md act-entry.md; echo 'Seen.' >> act-entry.md"#;

const CONFIG: &str = "[driver]\nlanes = 2\ngate_base = \"off\"\n\n[integrate]\nland = \"target\"\n\n\
    [flow]\nmax_unsigned = 4\n\n\
    [[gates.checks]]\nid = \"T1-there\"\ntier = \"T1\"\ncmd = \"test -f greeting.txt\"\n\n";

/// A workspace with an export of so many issues, and leaves that talk with a person.
fn scene(more: &str) -> Scene {
    let talking = |role: &str| leaf(role).replace("prompt_via", "interactive = true\nprompt_via");
    // A session is about several issues, so there is no id to give.
    let people = talking("signoff") + &talking("act").replace("{id}", "session");
    let planner = talking("planner").replace("{id}", "session");
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &format!("{planner}{people}{CONFIG}{more}"));
    for (role, script) in [("planner", PLANNER), ("signoff", SIGNOFF), ("act", ACT)] {
        scene.script(role, script);
    }
    let rows: Vec<String> = (1..=ISSUES).map(|n| format!("{n},issue {n},new\n")).collect();
    let rows = rows.concat();
    scene.workspace.write("export.csv", format!("id,title,status\n{rows}"));
    // The branch may move only where nobody has it checked out.
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    scene
}

/// A person who agrees to everything.
fn agreeing() -> Vec<Reply> {
    let yes = ["plan them? ", "accept it? ", "look back? "].map(|to| Reply { to, with: "yes\n" });
    let enter = Reply { to: "[Y/n] ", with: "\n" };
    let confirm = Reply { to: "[y/N] ", with: "y\n" };
    yes.into_iter().chain([enter, confirm]).collect()
}

const LINE: &str = "exec $PDCA flow --from-csv export.csv --character hygiene --batch b --act";

/// What a flow is about: the state of each bundle, what landed, and what was logged.
fn outcome(scene: &Scene) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for n in 1..=ISSUES {
        let file = format!("file-{n}.txt");
        let landed = scene.repo.try_git(&["show", &format!("main:{file}")]);
        found.insert(file, String::from_utf8_lossy(&landed.stdout).into_owned());
        found.insert(format!("state {n}"), scene.state(&n.to_string()));
    }
    let commits = scene.repo.git(&["rev-list", "--count", "main"]);
    found.insert("commits".to_owned(), commits);
    let log = scene.workspace.read("process/act-log.md");
    let cycles: Vec<String> =
        (1..=ISSUES).filter(|n| log.contains(&format!("{n}"))).map(|n| n.to_string()).collect();
    found.insert("logged".to_owned(), cycles.join(" "));
    found.insert("entries".to_owned(), log.matches("Seen.").count().to_string());
    found
}

/// The builders that were started, sorted.
/// The builders that ended by themselves, by the record of calls of their bundles. The leaf's own last word is no measure: it
/// can be killed between that and its exit, and a builder whose exit nobody saw has to run again.
fn builders(scene: &Scene) -> Vec<String> {
    let mut ended = Vec::new();
    for id in 1..=ISSUES {
        let file = format!("results/issue_{id}/logs/calls.jsonl");
        // A bundle that was not built has no record.
        let text = fs_err::read_to_string(scene.workspace.path().join(file)).unwrap_or_default();
        for line in text.lines() {
            let call: serde_json::Value = serde_json::from_str(line).expect("a line is a document");
            if call["role"] == "builder" && call["interrupted"] != true {
                ended.push(format!("builder {id}"));
            }
        }
    }
    ended
}

#[test]
fn twelve_issues_go_from_an_export_to_landed_and_logged_however_often_it_is_killed() {
    let calm = scene("");
    let mut pty = calm.script_at_terminal(&[], LINE, agreeing());
    assert_eq!(pty.wait(), 0, "{}", pty.shown());
    assert!(calm.workspace.has("process/act-log.md"), "{}", pty.shown());
    let expected = outcome(&calm);
    for n in 1..=ISSUES {
        assert_eq!(expected[&format!("file-{n}.txt")], format!("{n}\n"));
        assert_eq!(expected[&format!("state {n}")], "COMPLETE");
    }
    assert_eq!((expected["commits"].trim(), expected["entries"].as_str()), ("13", "1"));
    assert_eq!(builders(&calm).len(), ISSUES);

    let killed = scene("");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut kills = 0;
    let code = loop {
        let mut flow = killed.script_at_terminal(&[], LINE, agreeing());
        if kills == 10 {
            break (flow.wait(), flow.shown());
        }
        // A moment that is not known beforehand: so many leaves later, give or take.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (calls, more) =
            (killed.calls().len(), usize::try_from(random % 7).expect("it is small"));
        let pause = Duration::from_millis(random >> 8 & 0x7f);
        let pid = flow.pid();
        let is_over = || rustix::process::test_kill_process(pid).is_err();
        killed.wait_until("leaves were called", |scene| {
            scene.calls().len() >= calls + more || scene.calls().len() >= 50 || is_over()
        });
        std::thread::park_timeout(pause);
        let _killed = rustix::process::kill_process(pid, Signal::KILL);
        flow.wait();
        kills += 1;
        killed.wait_until("nobody is left", |scene| scene.processes().is_empty());
    };
    assert!(matches!(code.0, 0 | 4), "{code:?}");
    assert_eq!(outcome(&killed), expected);
    // A builder that came to its end is never paid again.
    assert_eq!(builders(&killed), builders(&calm));
    assert!(!killed.workspace.has(".pdca/flow.json"), "the flow has ended");
}

#[test]
fn without_a_terminal_it_builds_what_it_can_and_stops_with_the_next_command() {
    let scene = scene("");
    let ran = scene.pdca(&["flow", "--from-csv", "export.csv", "--json"]).expect(3);
    let said = ran.json();
    assert_eq!(
        (&said["end"], &said["drafts"].as_array().map(Vec::len)),
        (&"needs-you".into(), &Some(ISSUES))
    );
    assert_eq!(scene.calls(), [""; 0], "an interactive planner is not started");
    for id in ["1", "2", "3", "4", "5", "6"] {
        scene.brief(id, &[("Touches", &format!("file-{id}.txt"))]);
    }
    let said = scene.pdca(&["flow", "--json"]).expect(3).json();
    let unsigned = said["unsigned"].as_array().expect("a list").len();
    assert_eq!(unsigned, 4, "builds are held back at max_unsigned: {said}");
    assert_eq!(said["next"], "pdca queue");
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("builds are held back: 4 wait for sign-off"), "{status}");
    scene.paste("pdca queue").expect(0);
    // A decision lets the next one start.
    for id in ["1", "2"] {
        scene.accept(id);
    }
    let said = scene.pdca(&["flow", "--json"]).expect(3).json();
    assert_eq!(said["unsigned"].as_array().map(Vec::len), Some(4));
    assert_eq!(said["landed"], serde_json::json!(["1", "2"]));
    assert_eq!(builders(&scene).len(), 6);
}

#[test]
fn a_dry_run_says_what_would_come_next_and_changes_nothing() {
    let scene = scene("");
    scene.brief("7", &[]);
    let before = scene.results();
    let ran = scene.pdca(&["flow", "--dry-run", "--json"]).expect(0).json();
    assert_eq!((&ran["build"], &ran["person"]), (&serde_json::json!(["7"]), &"wait".into()));
    assert_eq!(scene.results(), before);
    assert_eq!(scene.calls(), [""; 0]);
    let nothing: Ran = Scene::new("").pdca(&["flow"]);
    nothing.expect(4);
}

#[test]
fn each_change_is_notified_once_and_a_hanging_command_delays_nothing() {
    let told = "[notify]\ncmd = 'cat >> told'\n";
    let scene = scene(told);
    scene.brief("7", &[]);
    scene.pdca(&["flow"]).expect(3);
    let told: Vec<serde_json::Value> = scene
        .workspace
        .read("told")
        .lines()
        .map(|line| serde_json::from_str(line).expect("each is a JSON object"))
        .collect();
    let kinds: Vec<&str> = told.iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds, ["needs-you", "run-ended"]);
    assert_eq!(told[0]["ids"], serde_json::json!(["7"]));

    let hangs = self::scene("[notify]\ncmd = 'echo no network >&2; exit 7'\n");
    hangs.brief("7", &[]);
    let ran = hangs.pdca(&["flow"]).expect(3);
    let warnings = ran.err.matches("[not_notified]").count();
    assert_eq!(warnings, 1, "{}", ran.err);
    assert!(ran.err.contains("exit code 7: no network"), "{}", ran.err);
}

#[test]
fn the_caps_of_the_driver_count_for_all_batches_of_a_flow() {
    // Each batch calls a builder and a reviewer for one bundle; the second needs the first to be signed.
    let scene = scene("");
    let config =
        scene.workspace.read("pdca.toml").replace("[driver]\n", "[driver]\nmax_leaf_calls = 3\n");
    scene.workspace.write("pdca.toml", config);
    scene.brief("7", &[("Touches", "file-7.txt")]);
    scene.brief("8", &[("Touches", "file-8.txt"), ("Depends on", "7")]);
    let mut pty = scene.script_at_terminal(&[], "exec $PDCA flow", agreeing());
    assert_eq!(pty.wait(), 103, "{}", pty.shown());
    assert_eq!(builders(&scene), ["builder 7", "builder 8"]);
    let reviews = scene.ended().iter().filter(|call| call.starts_with("reviewer ")).count();
    assert_eq!(reviews, 1);
}

#[test]
fn a_planning_session_keeps_each_brief_by_itself() {
    let scene = scene("");
    scene.script(
        "planner",
        "printf -- '- **Slug:** one\\n- **Triage verdict:** fix\\n' > issue_1/brief.md\n\
         printf -- '- **Slug:** two\\n- **Triage verdict:** <later>\\n' > issue_2/brief.md\n\
         printf '\\377' > issue_3/brief.md\nls templates/brief.md.tpl\nexit 3",
    );
    let line = "exec $PDCA flow --from-csv export.csv --limit 4 --character hygiene";
    let mut pty = scene.script_at_terminal(&[], line, Vec::new());
    pty.wait_for("issue_4 was left as it was");
    // The one that is planned would be built and signed off next.
    let _killed = rustix::process::kill_process(pty.pid(), Signal::KILL);
    pty.wait();
    scene.wait_until("nobody is left", |scene| scene.processes().is_empty());
    let shown = pty.shown();
    assert!(shown.contains("issue_1 is planned"), "{shown}");
    assert!(shown.contains("issue_2 is still a draft: Triage verdict not filled in"), "{shown}");
    assert!(shown.contains("the brief of 3 was not taken: it is not UTF-8"), "{shown}");
    assert!(shown.contains("issue_4 was left as it was"), "{shown}");
    assert!(scene.workspace.read("results/issue_2/brief.md").contains("- **Slug:** two"));
    assert!(scene.workspace.read("results/issue_3/brief.md").contains("issue 3"));
    assert_eq!(scene.calls().iter().filter(|call| call.starts_with("planner")).count(), 1);
}

#[test]
fn without_a_sign_off_leaf_the_person_decides_in_the_review_and_the_flow_goes_on() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, CONFIG);
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    for id in ["7", "8"] {
        scene.brief(id, &[("Touches", &format!("file-{id}.txt"))]);
    }
    // Accept it, tick what is asked every time, record at once.
    let replies = [("? keys\r\n", "a"), ("n leaves it\r\n", "y"), ("undoes the last\r\n", "\n")];
    let replies = replies.map(|(to, with)| Reply { to, with }).to_vec();
    let mut pty = scene.script_at_terminal(&[], "exec $PDCA flow", replies);
    assert_eq!(pty.wait(), 0, "{}", pty.shown());
    assert_eq!((scene.state("7"), scene.state("8")), ("COMPLETE".into(), "COMPLETE".into()));
    let landed = scene.repo.git(&["log", "--format=%s", "main"]);
    assert_eq!(landed.lines().count(), 3, "{landed}");
}

#[test]
fn a_flow_whose_plan_cannot_be_carried_out_is_refused_before_anything_is_built() {
    let scene = scene("");
    scene.brief("1", &[("Depends on", "2")]);
    scene.brief("2", &[("Depends on", "1")]);
    scene.brief("3", &[("Depends on", "99")]);
    scene.brief("4", &[]);
    let ran = scene.pdca(&["flow"]).expect(2);
    for told in ["1 depends on 2", "2 depends on 1", "3 depends on 99, which does not exist"] {
        assert!(ran.err.contains(told), "{told} is missing:\n{}", ran.err);
    }
    assert_eq!(scene.calls(), [""; 0]);
}

#[test]
fn each_step_of_a_flow_is_an_event_that_can_be_replayed() {
    let scene = scene("");
    let line = "exec $PDCA flow --from-csv export.csv --limit 2 --character hygiene --act --events all.jsonl";
    let mut pty = scene.script_at_terminal(&[], line, agreeing());
    assert_eq!(pty.wait(), 0, "{}", pty.shown());
    let flows: Vec<String> = fs_err::read_dir(scene.workspace.path().join(".pdca/flows"))
        .expect("there is a log")
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    let [flow] = &flows[..] else { panic!("{flows:?}") };
    let said = scene.pdca(&["replay", flow]).expect(0).out;
    for step in
        ["drafting", "planning session", "batch", "sign-off session", "integration", "look back"]
    {
        for word in ["begins", "ended"] {
            assert!(said.contains(&format!("{step} {word}")), "{step} {word} is missing:\n{said}");
        }
    }
    assert!(said.contains("planning session begins: 1, 2"), "{said}");
    let raw = scene.pdca(&["replay", flow, "--raw"]).expect(0).out;
    let events: Vec<serde_json::Value> =
        raw.lines().map(|line| serde_json::from_str(line).expect("it is an event")).collect();
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(count("flow_began"), count("flow_ended"));
    assert!(events.windows(2).all(|two| two[0]["seq"].as_u64() < two[1]["seq"].as_u64()));
    // `--events` has them beside those of the batches.
    let all = scene.workspace.read("all.jsonl");
    assert!(all.contains("\"flow_began\"") && all.contains("\"gate_ended\""), "{all}");
}

#[test]
fn a_batch_and_an_integration_tell_of_their_end_too() {
    let told = "[notify]\ncmd = 'cat >> told'\n";
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &format!("{CONFIG}{told}"));
    let kinds = |scene: &Scene| -> Vec<String> {
        let path = scene.workspace.path().join("told");
        let text = fs_err::read_to_string(&path).unwrap_or_default();
        drop(fs_err::remove_file(path));
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON"));
        lines.map(|one: serde_json::Value| format!("{} {}", one["kind"], one["ids"])).collect()
    };
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    scene.brief("7", &[]);
    scene.pdca(&["batch", "--dry-run"]).expect(0);
    assert_eq!(kinds(&scene), [""; 0]);
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(kinds(&scene), ["\"needs-you\" [\"7\"]", "\"run-ended\" []"]);
    scene.accept("7");
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(kinds(&scene), ["\"run-ended\" []"]);
    scene.pdca(&["integrate"]).expect(4);
    assert_eq!(kinds(&scene), [""; 0], "nothing to do is no news");
}

#[test]
fn drafts_that_another_process_holds_cost_no_planning_session() {
    let planner = leaf("planner").replace("{id}", "session");
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &planner);
    scene.script("planner", "true");
    scene.workspace.write("results/issue_1/brief.md", "- **Slug:** <short-name>\n");
    let lock = scene.workspace.path().join(".pdca/locks/issue_1.lock");
    fs_err::create_dir_all(lock.parent().expect("it lies in a directory")).expect("it can be made");
    let _lock =
        pdca_process::FileLock::take(&lock, "process 7").expect("no other process holds it");
    scene.pdca(&["flow", "1"]).expect(3);
    assert!(scene.calls().is_empty(), "{:?}", scene.calls());
}
