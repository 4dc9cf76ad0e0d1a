//! The way of a new user: `init`, `doctor`, `new`, a brief, `run`, with an agent on `PATH` and no edit of `pdca.toml`.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be set up fails its test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8PathBuf;
use pdca_e2e::{Ran, Scene};
use pdca_testkit::fake_leaf;

/// What the fake leaf does as Claude Code: by its role it builds or reviews, and says so in the protocol of Claude Code.
const CLAUDE: &str = r#"print {"type":"system","subtype":"init","session_id":"s-1","model":"m"}
write worktree:greeting.txt "hello, world\n"
write bundle:build-notes.md "The greeting greets the world.\n"
write bundle:check-review.md <<END
The greeting greets the world.

| Item | Verdict | Basis |
|---|---|---|
| C1 Spec | PASS | read |
END
print {"type":"result","subtype":"success","is_error":false,"result":"ready","session_id":"s-1","total_cost_usd":0.25,"usage":{"input_tokens":7,"output_tokens":3}}
"#;

/// A directory for a workspace beside a target, with programs on `PATH`.
struct Start {
    scene: Scene,
    dir: Utf8PathBuf,
}

impl Start {
    fn new(claude: &str) -> Self {
        let scene = Scene::new("");
        let around = scene.workspace.around();
        let (bin, dir) = (around.join("bin"), around.join("fresh"));
        fs_err::create_dir_all(&bin).unwrap();
        fs_err::create_dir_all(&dir).unwrap();
        let quoted = |line: &str| {
            // The words of the protocol have quotes of their own.
            let (action, text) = line.split_once(' ').unwrap_or((line, ""));
            if action == "print" {
                format!("print \"{}\"", text.replace('"', "\\\""))
            } else {
                line.to_owned()
            }
        };
        let script: Vec<String> = claude.lines().map(quoted).collect();
        fs_err::write(around.join("claude.script"), script.join("\n") + "\n").unwrap();
        let program = format!("#!/bin/sh\nexec {} {around}/claude.script\n", fake_leaf());
        fs_err::write(bin.join("claude"), program).unwrap();
        fs_err::set_permissions(bin.join("claude"), Permissions::from_mode(0o755)).unwrap();
        fs_err::write(
            around.join(".gitconfig"),
            "[user]\n\tname = Ada\n\temail = ada@example.com\n",
        )
        .unwrap();
        let path = format!("{bin}:/usr/local/bin:/usr/bin:/bin");
        Self { scene: scene.env("PATH", &path), dir }
    }

    fn pdca(&self, args: &[&str]) -> Ran {
        self.scene.pdca(&[&["-C", self.dir.as_str()], args].concat())
    }

    fn init(&self) {
        let target = self.scene.repo.path().as_str();
        self.pdca(&["init", "--yes", "--target", target]).expect(0);
    }
}

#[test]
fn from_init_to_a_review_without_an_edit_of_the_configuration() {
    let start = Start::new(CLAUDE);
    start.init();
    start.pdca(&["doctor"]).expect(0);
    start.pdca(&["new", "7", "--title", "Greet the world"]).expect(0);
    let brief = start.dir.join("results/issue_7/brief.md");
    let text = fs_err::read_to_string(&brief).unwrap();
    let slug = text.lines().find(|line| line.starts_with("- **Slug:**")).unwrap();
    fs_err::write(&brief, text.replace(slug, "- **Slug:** greet-the-world")).unwrap();
    start.pdca(&["run", "7"]).expect(0);
    let read =
        |name: &str| fs_err::read_to_string(start.dir.join("results/issue_7").join(name)).unwrap();
    assert!(read("patch.diff").contains("+hello, world"));
    assert!(read("check-review.md").contains("| C1 Spec | PASS |"));
}

#[test]
fn instruction_files_of_the_chosen_agent_are_written_once_and_never_over_a_file() {
    let start = Start::new(CLAUDE);
    fs_err::create_dir_all(start.dir.join(".claude/commands")).unwrap();
    fs_err::write(start.dir.join(".claude/commands/pdca.md"), "mine\n").unwrap();
    start.init();
    assert!(start.dir.join(".claude/agents/planner.md").is_file());
    let kept = fs_err::read_to_string(start.dir.join(".claude/commands/pdca.md")).unwrap();
    assert_eq!(kept, "mine\n");
    assert!(!start.dir.join("AGENTS.md").exists(), "claude alone was chosen");
}

#[test]
fn a_probe_calls_each_leaf_once_and_says_what_came_back() {
    let start = Start::new(CLAUDE);
    start.init();
    let report = start.pdca(&["doctor", "--probe", "--json"]).expect(0).json();
    let rows = report["rows"].as_array().unwrap();
    let probed: Vec<&serde_json::Value> =
        rows.iter().filter(|row| row["what"].as_str().unwrap().starts_with("probe ")).collect();
    assert_eq!(probed.len(), 6, "one for each role that the agent fills");
    let answer = &probed[0]["probe"];
    assert_eq!(answer["class"], "done");
    assert_eq!((&answer["said"], &answer["cost_usd_micros"]), (&"ready".into(), &250_000.into()));
    assert_eq!((&answer["input_tokens"], &answer["output_tokens"]), (&7.into(), &3.into()));
    let plain = start.pdca(&["doctor", "--json"]).expect(0).json();
    assert!(!plain["rows"].as_array().unwrap().iter().any(|row| row["probe"].is_object()));
    assert!(!start.dir.join("results/issue_1").exists(), "nothing of it is left in the workspace");
}

#[test]
fn a_probe_that_is_not_let_in_says_how_to_sign_in() {
    let start = Start::new(concat!(
        r#"print {"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid API key"}"#,
        "\nexit 1\n"
    ));
    start.init();
    let ran = start.pdca(&["doctor", "--probe"]).expect(2);
    assert!(ran.out.contains("auth: Invalid API key"), "{}", ran.out);
    assert!(ran.out.contains("sign in with /login, or set ANTHROPIC_API_KEY"), "{}", ran.out);
}
