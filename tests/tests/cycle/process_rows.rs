//! Rows of the process that only the whole program can show: what a person sees, in files and in words.

use camino::Utf8PathBuf;
use pdca_e2e::{Scene, leaf};
use serde_json::Value;

const REVIEW: &str =
    "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | read |\\n'";
const BUILD: &str = "echo \"$1\" > \"file-$1.txt\"\necho notes > \"$PDCA_OUTPUT\"";

fn scene(more: &str) -> Scene {
    Scene::with_leaves(BUILD, REVIEW, more)
}

fn lanes_root(scene: &Scene) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{}.lanes", scene.workspace.path()))
}

/// The slots that have a checkout.
fn slots(scene: &Scene) -> Vec<String> {
    let entries = lanes_root(scene).read_dir_utf8().into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_owned()).collect();
    names.retain(|name| name.starts_with("lane-"));
    names.sort_unstable();
    names
}

#[test]
fn the_number_of_lanes_comes_from_the_file_or_the_environment() {
    let tell = "echo \"${PDCA_LANE-none}\" > \"$PDCA_WORKSPACE/calls/slot-$1\"\n";
    for (file, env) in [("[driver]\nlanes = 2\n", None), ("", Some(("PDCA_LANES", "2")))] {
        let scene = Scene::with_leaves(&format!("{tell}{BUILD}"), REVIEW, file);
        scene.brief("1", &[]);
        scene.pdca_with(env.as_slice(), &["batch"]).expect(0);
        assert_eq!(scene.workspace.read("calls/slot-1").trim(), "0", "{file}{env:?}");
    }
}

#[test]
fn there_are_no_more_workers_than_bundles() {
    let scene = scene("");
    scene.brief("1", &[]);
    scene.brief("2", &[]);
    scene.pdca(&["batch", "--lanes", "4"]).expect(0);
    assert!(slots(&scene).len() <= 2, "{:?}", slots(&scene));
}

#[test]
fn a_batch_calls_neither_planner_nor_sign_off_nor_publisher_nor_act() {
    let more: String = ["planner", "signoff", "publisher", "act"].map(leaf).concat();
    let scene = scene(&more);
    for role in ["planner", "signoff", "publisher", "act"] {
        scene.script(role, "exit 1");
    }
    scene.brief("1", &[]);
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(scene.calls(), ["builder 1", "reviewer 1"]);
    assert_eq!(scene.state("1"), "AWAITING_SIGNOFF");
}

#[test]
fn the_state_is_read_from_the_files_that_are_there_wherever_they_were_made() {
    let made = scene("");
    made.brief("7", &[]);
    made.pdca(&["run", "7"]).expect(0);
    let other = Scene::new("");
    let from = made.workspace.path().join("results/issue_7");
    let to = other.workspace.path().join("results/issue_7");
    let copied = other.paste(&format!("mkdir -p results && cp -a {from} {to}"));
    copied.expect(0);
    assert_eq!(other.state("7"), "AWAITING_SIGNOFF");
    let without = |files: &[&str]| {
        for file in files {
            fs_err::remove_file(to.join(file)).expect("the file was there");
        }
        other.state("7")
    };
    assert_eq!(without(&["SUMMARY.md"]), "CHECKED");
    assert_eq!(without(&["check-review.md", "check-gates.json", "check-gates.md"]), "BUILT");
    assert_eq!(without(&["patch.diff", "build-notes.md"]), "PLANNED");
    assert_eq!(without(&["brief.md"]), "UNPLANNED");
}

#[test]
fn a_lane_borrows_the_objects_of_the_primary_has_its_remotes_and_is_where_leaves_and_gates_work() {
    let build = "git remote -v > remotes.txt\ncat .git/objects/info/alternates > borrowed.txt\npwd > where.txt\ntest \"$(pwd -P)\" = \"$(cd \"$PDCA_WORKTREE\" && pwd -P)\"";
    let gate = "[[gates.checks]]\nid = \"T1-where\"\ntier = \"T1\"\ncmd = 'test \"$(pwd -P)\" = \"$(cd \"$PDCA_WORKTREE\" && pwd -P)\"'\n";
    let scene = Scene::with_leaves(build, REVIEW, gate);
    scene.repo.git(&["remote", "add", "upstream", "https://example.org/up.git"]);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(patch.contains("+upstream\thttps://example.org/up.git (fetch)"), "{patch}");
    let objects = scene.repo.path().join(".git/objects").canonicalize_utf8().expect("it is there");
    assert!(patch.contains(&format!("+{objects}")), "{patch}");
    assert!(!patch.contains(&format!("+{}\n", scene.workspace.path())), "{patch}");
    let gates: Value =
        serde_json::from_str(&scene.workspace.read("results/issue_7/check-gates.json"))
            .expect("JSON");
    assert_eq!(gates["overall"], "pass", "{gates}");
}

#[test]
fn with_nothing_declared_bundles_start_in_the_order_of_their_names() {
    let scene = scene("");
    for id in ["c", "a", "b"] {
        scene.brief(id, &[]);
    }
    scene.pdca(&["batch"]).expect(0);
    let calls = scene.calls();
    let built: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("builder ")).collect();
    assert_eq!(built, ["a", "b", "c"]);
}

#[test]
fn the_queue_has_what_only_needs_a_confirmation_first_and_open_items_last() {
    let review = "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C3 Change | NEEDS-HUMAN | is it wanted? |\\n'";
    let scene = Scene::with_leaves(BUILD, review, "");
    scene.brief("1", &[]);
    scene.brief("2", &[("Disposition hint", "already-fixed")]);
    scene.pdca(&["batch"]).expect(0);
    let queue = scene.pdca(&["queue", "--json"]).expect(0).json();
    let text = queue.to_string();
    let at = |id: &str| text.find(&format!("\"id\":\"{id}\"")).expect("it is in the queue");
    assert!(at("2") < at("1"), "{queue}");
    assert_eq!(scene.calls().iter().filter(|call| call.ends_with(" 2")).count(), 0, "a close");
}

#[test]
fn another_place_for_bundles_comes_from_the_environment() {
    let scene = scene("");
    scene.brief("1", &[]);
    let elsewhere = scene.workspace.around().join("elsewhere");
    fs_err::create_dir_all(elsewhere.join("issue_9")).expect("a directory");
    let env = [("PDCA_BUNDLE_ROOT", elsewhere.as_str())];
    let status = scene.pdca_with(&env, &["status", "--json"]).expect(0).json();
    let ids: Vec<&Value> =
        status["bundles"].as_array().expect("bundles").iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["9"]);
}

#[test]
fn what_is_sent_back_is_archived_by_number_and_the_reason_is_on_record() {
    let scene = scene("");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    scene.pdca(&["signoff", "7", "iterate-do", "--note", "mind the empty list"]).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    let there = |file: &str| scene.workspace.has(format!("results/issue_7/{file}"));
    for file in
        ["patch.diff", "build-notes.md", "check-gates.json", "check-review.md", "SUMMARY.md"]
    {
        assert!(there(&format!("iteration-v1/{file}")), "{file}");
    }
    assert!(there("brief.md") && !there("iteration-v1/brief.md"));
    let summary = scene.workspace.read("results/issue_7/iteration-v1/SUMMARY.md");
    assert!(summary.contains("mind the empty list"), "{summary}");
    scene.pdca(&["signoff", "7", "iterate-plan", "--note", "another idea"]).expect(0);
    scene.pdca(&["run", "7"]);
    assert!(there("iteration-v2/brief.md") && there("iteration-v2/patch.diff"));
    assert_eq!(scene.state("7"), "UNPLANNED");
}

#[test]
fn the_summary_has_ten_sections_and_an_acceptance_is_one_command_that_open_items_refuse() {
    let review = "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C3 Change | NEEDS-HUMAN | is it wanted? |\\n| C4 Verification | PASS | ran |\\n'";
    let scene = Scene::with_leaves(BUILD, review, "");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    for number in 1..=10 {
        assert!(summary.contains(&format!("\n## {number}. ")), "{number}: {summary}");
    }
    let tail = summary.split("\n## 9. ").nth(1).expect("there is a §9");
    assert!(!tail.contains("accepted"), "{tail}");
    assert!(summary.contains("- [ ] C3 Change"), "{summary}");
    let refused = scene.pdca(&["signoff", "7", "accept"]);
    assert_ne!(refused.code, 0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    scene.pdca(&["signoff", "7", "accept"]).expect(0);
    assert_eq!(scene.state("7"), "COMPLETE");
    let seal: Value =
        serde_json::from_str(&scene.workspace.read("results/issue_7/seal.json")).expect("JSON");
    assert!(seal["base"].is_string() && seal["head"].is_string(), "{seal}");
    assert!(seal["commits"].as_array().is_some_and(|commits| commits.len() == 1), "{seal}");
}

#[test]
fn builder_and_reviewer_see_exactly_their_inputs_and_nobody_at_the_keyboard() {
    let list = "(cd \"$PDCA_BUNDLE\" && find . -type f | sort) > \"$PDCA_WORKSPACE/calls/$PDCA_ROLE.seen\"\n\
                wc -c < /dev/stdin > \"$PDCA_WORKSPACE/calls/$PDCA_ROLE.stdin\"\n";
    let scene = Scene::with_leaves(&format!("{list}{BUILD}"), &format!("{list}{REVIEW}"), "");
    scene.brief("7", &[("Test file", "tests/seven.sh")]);
    scene.workspace.write("results/issue_7/tests/seven.sh", "true\n");
    scene.pdca(&["run", "7"]).expect(0);
    let seen = |role: &str| scene.workspace.read(format!("calls/{role}.seen"));
    assert!(seen("builder").contains("./brief.md"), "{}", seen("builder"));
    assert!(!seen("reviewer").contains("build-notes"), "{}", seen("reviewer"));
    for file in ["./brief.md", "./patch.diff", "./check-gates.json"] {
        assert!(seen("reviewer").contains(file), "{}", seen("reviewer"));
    }
    assert!(seen("reviewer").contains("./tests/seven.sh"), "{}", seen("reviewer"));
    for role in ["builder", "reviewer"] {
        assert_eq!(scene.workspace.read(format!("calls/{role}.stdin")).trim(), "0");
    }
}

#[test]
fn the_gate_report_names_check_result_oracle_and_rule_and_a_fix_turns_its_row_green() {
    let gates = "[[gates.checks]]\nid = \"T2-format\"\ntier = \"T2\"\ncmd = '! test -e file-7.txt || grep -q formatted file-7.txt'\nfix = 'echo formatted >> file-7.txt'\n\
                 [[gates.checks]]\nid = \"C4-tests\"\ntier = \"C4\"\ncmd = 'true'\n";
    let scene = scene(gates);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let text = scene.workspace.read("results/issue_7/check-gates.json");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["overall"], "pass", "{text}");
    let rows = report["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row.to_string().contains("T2-format")).expect("the row");
    for key in ["check", "result", "oracle"] {
        assert!(row.get(key).is_some(), "{key}: {row}");
    }
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(patch.contains("+formatted"), "the fix is part of the change: {patch}");
}

#[test]
fn without_rows_the_gate_report_says_that_it_is_a_stub() {
    let scene = scene("");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let report = scene.workspace.read("results/issue_7/check-gates.md");
    assert!(
        report.to_lowercase().contains("stub") || report.contains("no check is configured"),
        "{report}"
    );
}

#[test]
fn the_guard_refuses_what_is_a_persons_in_every_disguise_and_lets_a_draft_through_where_that_is_configured()
 {
    let scene = Scene::new("");
    let ask = |role: &str, push: &str, command: &str| {
        let call = serde_json::json!({
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "command": command },
        });
        scene.workspace.write("call.json", call.to_string());
        let line = format!(
            "env PDCA_ROLE={role} PDCA_WORKTREE={} {push} pdca guard builder < call.json",
            scene.repo.path()
        );
        scene.paste(&line)
    };
    for command in [
        "gh pr ready 7",
        "gh pr merge 7 --squash",
        "gh pr review 7 --approve",
        "true && timeout 5 gh pr merge 7",
        "env A=1 sh -c 'true; gh pr ready 7'",
        "git push",
        "gh pr create --draft --fill",
    ] {
        let said = ask("builder", "", command);
        assert_eq!(said.code, 2, "{command}: {}", said.err);
        assert_eq!(ask("reviewer", "", command).code, 0, "the guard is the builder's: {command}");
    }
    assert!(ask("builder", "", "git push").err.contains("builder_pushes"));
    assert!(ask("builder", "", "gh pr merge 7").err.contains("no key"));
    let push = "PDCA_BRIEF_BASE=main PDCA_PUSH='origin HEAD:refs/heads/pdca/7'";
    for command in ["git push origin HEAD:refs/heads/pdca/7", "gh pr create --draft --fill", "make"]
    {
        assert_eq!(ask("builder", push, command).code, 0, "{command}");
    }
    for command in ["git push origin HEAD:refs/heads/main", "gh pr ready 7", "gh pr create --fill"]
    {
        assert_eq!(ask("builder", push, command).code, 2, "{command}");
    }
}

#[test]
fn act_looks_at_the_finished_cycles_of_all_lanes_by_hand_at_any_time_and_touches_nothing_in_flight()
{
    let scene = scene("");
    for id in ["1", "2", "3"] {
        scene.brief(id, &[]);
    }
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    for id in ["1", "2"] {
        let path = format!("results/issue_{id}/SUMMARY.md");
        let summary = scene.workspace.read(&path);
        scene.workspace.write(
            &path,
            format!("{}\n- the brief lacked the failing input\n", summary.trim_end()),
        );
        scene.accept(id);
    }
    let before = scene.results();
    let index = scene.pdca(&["act", "index", "--json"]).expect(0).json();
    let ids: Vec<&Value> =
        index["cycles"].as_array().expect("cycles").iter().map(|cycle| &cycle["id"]).collect();
    assert_eq!(ids, ["1", "2"], "3 is in flight");
    assert!(index["patterns"].to_string().contains("failing input"), "{index}");
    let shown = scene.pdca(&["act-index"]).expect(0).out;
    for part in ["§6", "§9", "§10", "recurring"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    scene.pdca(&["act-log", "--record", "--yes"]).expect(0);
    let log = scene.workspace.read("process/act-log.md");
    assert!(log.contains("# Act review") && log.contains("cycles considered: 1, 2"), "{log}");
    assert_eq!(scene.results(), before, "no bundle is changed");
    let rest = scene.pdca(&["act", "index", "--json"]).expect(0).json();
    assert_eq!(rest["cycles"], serde_json::json!([]));
}

#[test]
fn an_export_becomes_a_profiled_pool_whose_buckets_add_up_and_drafts_with_a_triage() {
    let scene = Scene::new("");
    let export = "id,title,status,severity,component,description\n1,\"two\nlines\",new,major,core,broken\n2,two,closed,minor,core,x\n3,three,new,minor,web,x\n";
    scene.workspace.write("export.csv", export);
    let missing = scene.pdca(&[
        "select",
        "--from-csv",
        "export.csv",
        "--character",
        "hygiene",
        "--batch",
        "b",
        "--expect",
        "99",
    ]);
    assert_ne!(missing.code, 0);
    assert!(
        missing.err.contains("99") && !scene.workspace.has("results/issue_1"),
        "{}",
        missing.err
    );
    let line = ["select", "--from-csv", "export.csv", "--character", "hygiene", "--batch", "b"];
    let said = scene.pdca(&line).expect(0).out;
    assert!(said.contains('3'), "three records in five lines: {said}");
    assert!(said.contains("core") && said.contains("major"), "{said}");
    assert!(scene.workspace.has("process/batches/b.md"), "the index of the batch");
    let brief = scene.workspace.read("results/issue_1/brief.md");
    assert!(brief.to_lowercase().contains("triage"), "{brief}");
    assert_eq!(scene.state("1"), "UNPLANNED");
    assert!(!scene.workspace.has("results/issue_2"), "what is closed is dropped");
}

#[test]
fn a_new_brief_comes_from_the_workspaces_template_and_a_person_fills_it_in() {
    let scene = Scene::new("");
    scene.workspace.write(
        "templates/brief.md.tpl",
        "# Brief\n\n- **Slug:** <slug>\n- **Repo + branch target:** <target>\n- **Our own field:** <say it>\n",
    );
    scene.pdca(&["new", "5", "--title", "a thing"]).expect(0);
    let brief = scene.workspace.read("results/issue_5/brief.md");
    assert!(brief.contains("Our own field"), "{brief}");
    assert_eq!(scene.state("5"), "UNPLANNED");
}

#[test]
fn groups_follow_from_dependencies_and_files_and_joins_are_reported() {
    let scene = Scene::new("");
    scene.brief("1", &[("Touches", "src/a.rs")]);
    scene.brief("2", &[("Touches", "src/a.rs"), ("Depends on", "1")]);
    scene.brief("3", &[("Touches", "src/b.rs")]);
    scene.pdca(&["plan", "--write"]).expect(0);
    let file: Value = serde_json::from_str(&scene.workspace.read("lanes.json")).expect("JSON");
    let members = |at: usize| file["groups"][at]["bundles"].clone();
    assert_eq!(
        members(0),
        serde_json::json!(["1", "2"]),
        "in the order of their dependencies: {file}"
    );
    assert_eq!(members(1), serde_json::json!(["3"]), "no files in common: {file}");
    assert_eq!(file["collapse_report"][0]["bundles"], members(0), "{file}");
    let said = scene.pdca(&["plan", "--workstreams"]).expect(0).out;
    let streams = said.split("workstreams ").nth(1).unwrap_or_default();
    let words: Vec<Vec<&str>> =
        streams.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(&words[..2], [vec!["1", "1", "2"], vec!["2", "3"]], "{said}");
}

#[test]
fn init_finds_both_agents_ships_the_command_and_a_workflow_that_gates_each_push() {
    let scene = Scene::new("");
    let bin = scene.workspace.around().join("agents");
    fs_err::create_dir_all(&bin).expect("a directory");
    let make = format!(
        "for name in claude codex; do printf '#!/bin/sh\\necho 1.0\\n' > {bin}/$name; chmod +x {bin}/$name; done; cd {} && PATH={bin}:$PATH pdca init --yes",
        scene.repo.path()
    );
    scene.paste(&make).expect(0);
    let read =
        |file: &str| fs_err::read_to_string(scene.repo.path().join(file)).unwrap_or_default();
    let config = read("pdca.toml");
    assert!(config.contains("[leaves.builder]\nagent = \"claude\""), "{config}");
    assert!(config.contains("[leaves.reviewer]\nagent = \"codex\""), "{config}");
    assert!(read(".claude/commands/pdca.md").contains("pdca run $ARGUMENTS"));
    let workflow = read(".github/workflows/pdca.yml");
    assert!(
        workflow.contains("pull_request") && workflow.contains("gates --working-tree"),
        "{workflow}"
    );
}

#[test]
fn buckets_of_a_selection_add_up_and_its_character_decides_the_order() {
    let scene = Scene::new("");
    let export = "id,title,status,severity,created\n1,old,new,minor,2001-01-01\n2,grave,new,critical,2020-01-01\n3,done,closed,minor,2010-01-01\n";
    scene.workspace.write("export.csv", export);
    let select = |character: &str| {
        let line =
            ["select", "--from-csv", "export.csv", "--character", character, "--dry-run", "--json"];
        scene.pdca(&line).expect(0).json()
    };
    let first = |found: &Value| found["drafts"][0]["id"].clone();
    let (fix, hygiene) = (select("fix"), select("hygiene"));
    assert_eq!((first(&fix), first(&hygiene)), ("2".into(), "1".into()));
    let buckets = fix["buckets"].as_array().expect("buckets");
    let sum: u64 = buckets.iter().filter_map(|bucket| bucket["count"].as_u64()).sum();
    assert_eq!(Some(sum), fix["records"].as_u64(), "{fix}");
    assert!(buckets.iter().all(|bucket| bucket.get("disposition").is_some()), "{fix}");
}

#[test]
fn what_nobody_can_predict_shares_a_lane_where_the_configuration_says_so() {
    let groups = |config: &str| {
        let scene = Scene::new(config);
        scene.brief("1", &[]);
        scene.brief("2", &[]);
        scene.pdca(&["plan", "--write"]).expect(0);
        let file: Value = serde_json::from_str(&scene.workspace.read("lanes.json")).expect("JSON");
        file["groups"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(groups(""), 2);
    assert_eq!(groups("[schedule]\nuntouched = \"exclusive\"\n"), 1);
}

#[test]
fn a_name_with_the_run_in_it_meets_no_earlier_run() {
    let tell = "echo \"$PDCA_RUN\" >> \"$PDCA_WORKSPACE/calls/runs\"\n";
    let scene = Scene::with_leaves(&format!("{tell}{BUILD}"), REVIEW, "");
    for id in ["1", "2"] {
        scene.brief(id, &[]);
        scene.pdca(&["run", id]).expect(0);
    }
    let runs = scene.workspace.read("calls/runs");
    let runs: Vec<&str> = runs.lines().collect();
    assert!(runs.len() == 2 && runs[0] != runs[1] && !runs[0].is_empty(), "{runs:?}");
}

#[test]
fn a_gate_finds_the_git_directories_that_a_container_has_to_mount() {
    let page = include_str!("../../../docs/reference/gates.md");
    let line = "sed 's|.*|--volume &:&:ro|' \"$lane/.git/objects/info/alternates\"";
    assert!(page.contains(line), "the page shows another line");
    // In place of a container: each directory is there, the primary's among them.
    let gate = format!(
        "lane=\"$PDCA_WORKTREE\"\nset -- $({line})\ncase \"$*\" in *\" \"*/app/.git/objects:*) ;; *) echo \"$*\"; exit 1;; esac\n\
         while [ $# -gt 0 ]; do test -d \"${{2%%:*}}\" || exit 1; shift 2; done\ngit -C \"$lane\" log -1 --format=%s\n"
    );
    let scene = scene(
        &format!(
            "[[gates.checks]]\nid = \"T3-mounts\"\ntier = \"T3\"\ncmd = \"\"\"\n{gate}\"\"\"\n"
        )
        .replace('\\', "\\\\"),
    );
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let report: Value =
        serde_json::from_str(&scene.workspace.read("results/issue_7/check-gates.json"))
            .expect("JSON");
    assert_eq!(report["overall"], "pass", "{report}");
}

#[test]
fn a_row_that_needs_a_lane_is_not_run_without_one() {
    let gate =
        "[[gates.checks]]\nid = \"T3-db\"\ntier = \"T3\"\nneeds_lane = true\ncmd = 'touch ran'\n";
    let scene = Scene::new(gate);
    let said = scene.pdca(&["gates", "--working-tree", "--json"]);
    assert!(said.out.contains("unverifiable"), "{}{}", said.out, said.err);
    assert!(!scene.repo.path().join("ran").exists());
}

#[test]
fn two_bundles_with_one_slug_have_names_of_their_own() {
    let scene = scene("");
    scene.brief("1", &[]);
    scene.brief("2", &[]);
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    let refs = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/pdca"]);
    let mut ids: Vec<&str> = refs.lines().filter_map(|name| name.rsplit('/').next()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(
        ids.iter().any(|id| id.ends_with('1')) && ids.iter().any(|id| id.ends_with('2')),
        "{refs}"
    );
}
