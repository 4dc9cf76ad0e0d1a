//! Rows of recovery and cleanup, and the whole cycle with the agent that `pdca init` found.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_e2e::cast::{is_at, patient, with};
use pdca_testkit::{Reply, fake_gh};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Claude Code without a terminal: refuses other arguments than those of the preset, does the work of its role, and answers in
/// its stream of JSON.
const CLAUDE: &str = r#"#!/bin/sh
set -eu
case "$*" in
  "-p --permission-mode bypassPermissions --output-format stream-json --verbose"*) ;;
  *) echo "unexpected arguments: $*" >&2; exit 64 ;;
esac
prompt=$(cat)
case "$prompt" in You\ *) ;; *) echo "no prompt" >&2; exit 65 ;; esac
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
case "$PDCA_ROLE" in
  planner)
    for issue in $PDCA_ISSUES; do
      printf -- "- **Slug:** greet-%s\n- **Defect (Goal):** nothing greets the world\n" "$issue" > "issue_$issue/brief.md"
    done ;;
  builder)
    echo "hello, world" > world.txt
    echo "The greeting greets the world." > "$PDCA_OUTPUT" ;;
  reviewer)
    printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | read |\n' > "$PDCA_OUTPUT" ;;
  signoff)
    case "$prompt" in *"No person sits at your terminal"*) ;; *) exit 66 ;; esac
    printf '{"action": "accept", "note": "the gate is green"}' > "$PDCA_OUTPUT" ;;
  publisher)
    printf 'greet the world\n\nNothing did.\n' > commit-msg.txt
    echo 'The world is greeted.' > pr-description.md
    echo 'Claude greets the reporter.' > tracker-comment.md ;;
  act)
    cp entry-started.md act-entry.md
    echo 'Seen by claude.' >> act-entry.md ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":0.25,"usage":{"input_tokens":7,"output_tokens":3}}'
"#;

/// A new workspace beside a repository, made by `pdca init` with `claude` on `PATH`.
struct Fresh {
    scene: Scene,
    dir: Utf8PathBuf,
}

impl Fresh {
    fn new() -> Self {
        Self::with(CLAUDE)
    }

    fn with(agent: &str) -> Self {
        let scene = Scene::new("");
        scene.repo.write("Makefile", "test:\n\ttest -f greeting.txt\n");
        scene.repo.commit("a test");
        let around = scene.workspace.around();
        let (bin, dir) = (around.join("bin"), around.join("fresh"));
        for made in [&bin, &dir] {
            fs_err::create_dir_all(made).expect("a directory can be made");
        }
        fs_err::write(bin.join("claude"), agent).expect("a file can be written");
        fs_err::set_permissions(bin.join("claude"), Permissions::from_mode(0o755))
            .expect("it is ours");
        let identity = "[user]\n\tname = Ada\n\temail = ada@example.com\n";
        fs_err::write(around.join(".gitconfig"), identity).expect("a file can be written");
        let scene = scene.env("PATH", &format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
        let target = scene.repo.path().to_owned();
        scene.pdca(&["-C", dir.as_str(), "init", "--yes", "--target", target.as_str()]).expect(0);
        Self { scene, dir }
    }

    fn read(&self, file: &str) -> String {
        fs_err::read_to_string(self.dir.join(file)).unwrap_or_default()
    }

    /// Runs the flow of one issue at a terminal, where the person agrees to everything.
    #[track_caller]
    fn flow(&self, env: &[(&str, &str)]) -> String {
        let replies = [
            ("[Y/n] ", "\n"),
            ("[y/N] ", "y\n"),
            // The keys of a review: accept, tick what is asked every time, record at once.
            ("? keys\r\n", "a"),
            ("n leaves it\r\n", "y"),
            ("undoes the last\r\n", "\n"),
        ];
        let replies = replies.map(|(to, with)| Reply { to, with }).to_vec();
        let line = format!("exec $PDCA -C {} flow 7 --act", self.dir);
        let mut pty = self.scene.script_at_terminal(env, &line, replies);
        assert_eq!(pty.wait(), 0, "{}", pty.shown());
        pty.shown()
    }

    /// The roles that the agent was called in, each once.
    fn roles(&self) -> Vec<String> {
        let calls = self.read("results/issue_7/logs/calls.jsonl");
        let lines = calls.lines().map(|line| serde_json::from_str(line).expect("a call is JSON"));
        let role = |call: Value| call["role"].as_str().unwrap_or_default().to_owned();
        let mut roles: Vec<String> = lines.map(role).collect();
        roles.dedup();
        roles
    }
}

#[test]
fn after_init_with_an_agent_on_path_one_flow_goes_from_an_id_to_act() {
    let fresh = Fresh::new();
    let shown = fresh.flow(&[]);
    let reason = "the sign-off leaf proposes to accept 7: the gate is green";
    assert!(shown.contains(reason), "{shown}");
    assert!(shown.contains("Accept 7, as the sign-off leaf proposes?"), "{shown}");
    let summary = fresh.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("- By / date: ada / "), "a person decides: {summary}");
    assert!(fresh.read("results/issue_7/brief.md").contains("**Slug:** greet-7"));
    let staged = fresh.scene.repo.git(&["show", "pdca/staging/main:world.txt"]);
    assert_eq!(staged, "hello, world\n");
    assert!(fresh.read("process/act-log.md").contains("Seen by claude."), "{shown}");
    for role in ["builder", "reviewer", "signoff", "act"] {
        assert!(fresh.roles().iter().any(|one| one == role), "{role}: {:?}", fresh.roles());
    }
}

#[test]
fn where_the_agent_proposes_nothing_the_person_decides_in_the_review_and_the_flow_goes_on() {
    let proposes =
        r#"printf '{"action": "accept", "note": "the gate is green"}' > "$PDCA_OUTPUT" ;;"#;
    assert!(CLAUDE.contains(proposes));
    let fresh = Fresh::with(&CLAUDE.replace(proposes, "true ;;"));
    let shown = fresh.flow(&[]);
    assert!(shown.contains("no decision was made"), "{shown}");
    assert!(shown.contains("1 decided, 0 left"), "{shown}");
    let staged = fresh.scene.repo.git(&["show", "pdca/staging/main:world.txt"]);
    assert_eq!(staged, "hello, world\n");
    assert!(fresh.read("process/act-log.md").contains("Seen by claude."), "{shown}");
}

#[test]
fn once_the_forge_is_named_the_flow_of_a_new_workspace_publishes_in_the_words_of_the_agent() {
    let fresh = Fresh::new();
    let (scene, around) = (&fresh.scene, fresh.scene.workspace.around());
    let remote = around.join("remote.git");
    scene.repo.git(&["clone", "--quiet", "--bare", ".", remote.as_str()]);
    scene.repo.git(&["remote", "add", "origin", remote.as_str()]);
    let config = fresh.read("pdca.toml");
    let named = config.replacen("#repo = \"owner/repo\"", "repo = \"team/app\"", 1);
    assert_ne!(named, config, "the template has a place for the repository");
    let named =
        named.replacen("\n[publish]\n", &format!("\n[publish]\ngh = \"{}\"\n", fake_gh()), 1);
    let flow = "[flow]\nafter_accept = \"publish\"\n";
    fs_err::write(fresh.dir.join("pdca.toml"), format!("{named}\n{flow}"))
        .expect("a file can be written");
    let forge = around.join("forge");
    let shown =
        fresh.flow(&[("FAKE_GH_STATE", forge.as_str()), ("FAKE_GH_REMOTE", remote.as_str())]);
    let pull = fs_err::read_to_string(forge.join("pulls/0001.json")).expect(&shown);
    let pull: Value = serde_json::from_str(&pull).expect("it is JSON");
    assert_eq!((&pull["title"], &pull["isDraft"]), (&json!("greet the world"), &json!(false)));
    assert!(pull["body"].as_str().is_some_and(|body| body.contains("The world is greeted.")));
    let comment = fs_err::read_to_string(forge.join("comments/7-1.json")).unwrap_or_default();
    let comments: Vec<_> = forge.join("comments").read_dir_utf8().expect(&shown).collect();
    assert_eq!(comments.len(), 1, "{comment}");
    assert!(fresh.roles().iter().any(|role| role == "publisher"), "{:?}", fresh.roles());
    assert!(fresh.read("process/act-log.md").contains("Seen by claude."), "{shown}");
}

/// Returns what a recovery would do: the action for the run and for each bundle. Asking changes nothing, so it is the same when
/// it is asked again.
#[track_caller]
fn foreseen(scene: &Scene) -> (Value, Vec<(String, String)>) {
    let ask = || {
        let ran = scene.pdca(&["recover", "-n", "--json"]);
        assert!([0, 4, 104].contains(&ran.code), "{ran:?}");
        ran.json()["runs"].clone()
    };
    let runs = ask();
    assert_eq!(runs, ask(), "the same facts lead to another decision");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bundles = runs[0]["bundles"].as_array().cloned().unwrap_or_default();
    let actions = bundles.iter().map(|row| (word(&row["id"]), word(&row["action"]))).collect();
    (runs[0]["action"].clone(), actions)
}

/// A run over 7 and 8 on one lane whose driver was killed while 7 was in work.
fn left_in_work() -> Scene {
    let scene = patient(&["7", "8"], "");
    let driver = scene.start(&["batch", "--lanes", "1"]);
    scene.wait_until("7 is in work", is_at("7"));
    let (action, bundles) = foreseen(&scene);
    assert_eq!(action, "leave", "a driver at work is left alone");
    assert!(bundles.iter().all(|(_, action)| action == "noop"), "{bundles:?}");
    driver.signal(Signal::KILL);
    driver.wait();
    scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
    scene
}

fn rows(of_7: &str, of_8: &str) -> Vec<(String, String)> {
    vec![("7".to_owned(), of_7.to_owned()), ("8".to_owned(), of_8.to_owned())]
}

#[test]
fn the_facts_about_a_run_decide_what_recovery_does_and_nothing_else() {
    // Each history twice: what decides is what is found, not which run it is.
    for _ in 0..2 {
        let scene = left_in_work();
        assert_eq!(foreseen(&scene), (json!("take-up"), rows("mark-interrupted", "launch")));
        scene.pdca(&["recover"]).expect(0);
        assert_eq!(foreseen(&scene).1, rows("reclaim", "launch"));
        scene.pdca(&["recover"]).expect(0);
        assert_eq!(foreseen(&scene).1, rows("reclaim", "launch"), "the record is right already");

        let lost = left_in_work();
        fs_err::remove_dir_all(lost.lane(0).path()).expect("it can be removed");
        assert_eq!(foreseen(&lost), (json!("take-up"), rows("block-recovery", "launch")));
        lost.pdca(&["recover"]).expect(104);
        assert_eq!(foreseen(&lost).1, rows("await-human", "launch"));
        lost.pdca(&["unblock", "7"]).expect(0);
        let (_, unblocked) = foreseen(&lost);
        assert_ne!(unblocked[0].1, "await-human", "a person decided");
        lost.goes_on(&["7", "8"]);
    }
}

/// Returns the decisions of a cleanup about runs and checkouts, in order.
fn decisions(report: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let steps = report["steps"].as_array().cloned().unwrap_or_default();
    let all = steps.iter().map(|step| (word(&step["what"]), word(&step["decision"])));
    all.filter(|(what, _)| ["end-run", "checkout"].contains(&what.as_str())).collect()
}

#[test]
fn a_run_is_drained_before_any_of_its_checkouts_is_removed() {
    let scene = left_in_work();
    let work = scene.lane(0).path().join("half-7.txt");
    let run = scene.runs()[0]["id"].as_str().expect("a run has an id").to_owned();
    let journal = || scene.workspace.read(format!(".pdca/runs/{run}/journal"));
    // The run has work, so its checkouts stay.
    let kept = scene.pdca(&["cleanup", "--json"]).expect(4).json();
    assert_eq!(decisions(&kept), [("checkout".to_owned(), "keep".to_owned())], "{kept:#}");
    assert!(work.exists());
    for id in ["7", "8"] {
        scene.pdca(&["signoff", id, "discontinue", "--note", "superseded"]).expect(0);
    }
    // Killed before the run is ended: nothing of it is gone.
    scene.pdca_with(&[("PDCA_CRASH_AT", "end-run")], &["cleanup"]).expect(137);
    assert!(work.exists());
    assert!(!journal().contains("\"draining\""), "{}", journal());
    // Killed when it is ended: it is drained, and its checkouts are there still.
    scene.pdca_with(&[("PDCA_CRASH_AT", ">end-run")], &["cleanup"]).expect(137);
    assert!(work.exists());
    let text = journal();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is missing:\n{text}"));
    assert!(at("\"draining\"") < at("\"abandoned\""), "{text}");
    assert!(at("\"abandoned\"") < at("\"cleaned\""), "{text}");
    assert!(at("\"cleaned\"") < at("\"completed\""), "{text}");
    let done = scene.pdca(&["cleanup", "--json"]).expect(0).json();
    assert_eq!(decisions(&done), [("checkout".to_owned(), "remove".to_owned())], "{done:#}");
    assert!(!work.exists());
}

#[test]
fn the_registration_of_a_worktree_goes_with_its_checkout() {
    let config = "[lanes]\nkind = \"worktree\"\n\n";
    let scene = with("echo $1 > file-$1.txt", &["7", "8"], config);
    let registered = || {
        let list = scene.repo.git(&["worktree", "list", "--porcelain"]);
        list.lines().filter(|line| line.starts_with("worktree ")).count() - 1
    };
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(registered(), 2);
    scene.accept("7");
    scene.pdca(&["cleanup"]).expect(0);
    assert_eq!(registered(), 1, "8 waits for its sign-off");
    scene.pdca(&["signoff", "8", "discontinue", "--note", "no"]).expect(0);
    scene.pdca(&["cleanup"]).expect(0);
    assert_eq!(registered(), 0);
    assert!(!scene.repo.path().join(".git/worktrees").exists());
    assert_eq!(scene.repo.git(&["worktree", "prune", "--dry-run", "--verbose"]), "");
}
