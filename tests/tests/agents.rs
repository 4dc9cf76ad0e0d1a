//! Leaves that only name their agent. The agent is a script of its name that speaks its protocol.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be set up fails its test")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use pdca_e2e::Scene;

/// A scene with agents on `PATH`: name and script.
fn scene(config: &str, agents: &[(&str, &str)]) -> Scene {
    let scene = Scene::new(config);
    let bin = scene.workspace.around().join("bin");
    fs_err::create_dir_all(&bin).unwrap();
    for (name, text) in agents {
        fs_err::write(bin.join(name), text).unwrap();
        fs_err::set_permissions(bin.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    #[expect(clippy::disallowed_methods, reason = "the rest of the path stays as it is")]
    let path = std::env::var("PATH").unwrap();
    scene.env("PATH", &format!("{bin}:{path}"))
}

/// Claude Code as a builder: keeps its arguments, changes the checkout and says so.
const CLAUDE: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$PDCA_BUNDLE/build-notes.md"
echo "prompt: $(head -c 20)" >> "$PDCA_BUNDLE/build-notes.md"
echo hi > greeting.txt
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":2}}'
"#;

/// Codex as a reviewer that writes no file: its last message is the review.
const CODEX: &str = r#"#!/bin/sh
cat > /dev/null
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I look at it."}}'
printf '%s\n' '{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | read |\n"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}'
"#;

#[test]
fn the_name_of_an_agent_is_a_whole_leaf() {
    let config = "[leaves.builder]\nagent = \"claude\"\nmodel = \"opus\"\n\n[leaves.reviewer]\nagent = \"codex\"\n";
    let scene = scene(config, &[("claude", CLAUDE), ("codex", CODEX)]);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let notes = scene.workspace.read("results/issue_7/build-notes.md");
    assert!(notes.contains("--permission-mode\nbypassPermissions\n"), "{notes}");
    assert!(notes.contains("--model\nopus\n") && !notes.contains("--effort"), "{notes}");
    assert!(notes.contains(" guard builder --agent claude || exit 2"), "{notes}");
    assert!(notes.contains("prompt: You build one issue"), "{notes}");
    let review = scene.workspace.read("results/issue_7/check-review.md");
    assert!(review.starts_with("| Item |"), "the last message alone is the review: {review}");
}

#[test]
fn a_key_of_the_file_wins_over_the_preset_and_each_value_says_where_it_is_from() {
    let config = "[leaves.builder]\nagent = \"claude\"\nenv = { CLAUDE_CODE_MAX_RETRIES = \"9\" }\nprotocol = \"text\"\n";
    let scene = scene(config, &[]);
    let shown = scene.pdca(&["config", "show", "leaves.builder"]).expect(0).out;
    for line in [
        "leaves.builder.mode = \"command\"  # preset claude",
        "leaves.builder.env.CLAUDE_CODE_MAX_RETRIES = \"9\"  # pdca.toml:",
        "leaves.builder.env.DISABLE_AUTOUPDATER = \"1\"  # preset claude",
        "leaves.builder.family = \"anthropic\"  # preset claude",
        "leaves.builder.agent = \"claude\"  # pdca.toml:",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(!shown.contains("protocol"), "text is the default: {shown}");
    let json = scene.pdca(&["config", "show", "leaves.builder.argv", "--json"]).expect(0).json();
    assert_eq!(json["values"][0]["source"], "preset");
}

#[test]
fn an_agent_with_arguments_of_its_own_is_what_it_was() {
    let config = "[leaves.builder]\nagent = \"claude\"\nmode = \"command\"\nargv = [\"sh\", \"-c\", \"echo $PDCA_AGENT > greeting.txt\"]\n";
    let scene = scene(config, &[]);
    let shown = scene.pdca(&["config", "show", "leaves.builder"]).expect(0).out;
    assert!(!shown.contains("preset"), "{shown}");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert!(scene.workspace.read("results/issue_7/patch.diff").contains("+claude"));
}

#[test]
fn a_name_near_a_preset_is_a_warning_and_a_role_it_cannot_fill_an_error() {
    let near = scene("[leaves.builder]\nagent = \"cluade\"\n", &[]);
    let ran = near.pdca(&["config", "show", "leaves.builder.mode"]).expect(0);
    assert!(ran.err.contains("did you mean `claude`?"), "{}", ran.err);
    assert!(ran.out.contains("\"stub\""), "{}", ran.out);
    let far = scene("[leaves.builder]\nagent = \"our-own\"\n", &[]);
    assert_eq!(far.pdca(&["config", "show", "leaves.builder.mode"]).expect(0).err, "");
    let wrong = scene("[leaves.reviewer]\nagent = \"aider\"\n", &[]);
    let ran = wrong.pdca(&["config", "show"]).expect(2);
    assert!(ran.err.contains("`aider` has no preset as reviewer"), "{}", ran.err);
}
