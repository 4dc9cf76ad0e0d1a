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

/// Codex that fails its first `$FAILS` calls with a message, and then builds.
const FLAKY: &str = r#"#!/bin/sh
cat > /dev/null
echo "$PDCA_ISSUE" >> "$PDCA_WORKSPACE/calls/codex"
if [ "$(wc -l < "$PDCA_WORKSPACE/calls/codex")" -le FAILS ]; then
    echo '{"type":"turn.failed","error":{"message":"MESSAGE"}}'
    exit 1
fi
echo "$PDCA_ISSUE" > "new-$PDCA_ISSUE.txt"
echo '{"type":"item.completed","item":{"type":"command_execution","aggregated_output":"429 Too Many Requests"}}'
echo '{"type":"error","message":"Reconnecting... 1/5 (429 Too Many Requests)"}'
echo '{"type":"turn.completed"}'
"#;

/// A batch of four over two lanes whose builder fails its first calls.
fn flaky(fails: &str, message: &str) -> Scene {
    let agent = FLAKY.replace("FAILS", fails).replace("MESSAGE", &message.replace('\'', r"'\''"));
    let config = "[leaves.builder]\nagent = \"codex\"\nwritable = [\"calls\"]\n";
    let scene = scene(config, &[("codex", &agent)]);
    for id in ["1", "2", "3", "4"] {
        scene.brief(id, &[]);
    }
    scene
}

fn calls(scene: &Scene) -> usize {
    scene.workspace.read("calls/codex").lines().count()
}

#[test]
fn a_limit_pauses_the_agent_for_all_lanes_and_fails_nobody() {
    let scene =
        flaky("2", "exceeded retry limit, last status: 429 Too Many Requests, retry-after: 1");
    let ran = scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert!(ran.err.contains("builder: throttled: exceeded retry limit"), "{}", ran.err);
    for id in ["1", "2", "3", "4"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
    }
    assert_eq!(calls(&scene), 6);
}

#[test]
fn a_key_that_is_not_accepted_stops_the_batch_after_one_call() {
    let scene = flaky("99", "unexpected status 401 Unauthorized: bad key");
    let ran = scene.pdca(&["batch", "--lanes", "1"]).expect(1);
    assert_eq!(calls(&scene), 1);
    let said = "`codex` is not signed in, so nothing more was started: unexpected status 401";
    assert!(ran.err.contains(said), "{}", ran.err);
    // The next run asks again.
    scene.pdca(&["run", "1"]);
    assert_eq!(calls(&scene), 2);
}

#[test]
fn a_key_that_is_not_accepted_is_tried_once_however_many_lanes_there_are() {
    let scene = flaky("99", "unexpected status 401 Unauthorized: bad key");
    let ran = scene.pdca(&["batch", "--lanes", "3"]).expect(1);
    assert_eq!(calls(&scene), 1, "{}", ran.err);
    let said = "`codex` is not signed in, so nothing more was started: unexpected status 401";
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn others_go_ahead_once_the_first_call_has_an_answer() {
    // The first call ends only when a second one has begun.
    let waiting = "#!/bin/sh\ncat > /dev/null\necho x >> \"$PDCA_WORKSPACE/calls/codex\"\n\
        echo '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"I begin.\"}}'\n\
        while [ \"$(wc -l < \"$PDCA_WORKSPACE/calls/codex\")\" -lt 2 ]; do sleep 0.05; done\n\
        echo \"$PDCA_ISSUE\" > \"new-$PDCA_ISSUE.txt\"\necho '{\"type\":\"turn.completed\"}'\n";
    let config =
        "[leaves.builder]\nagent = \"codex\"\nwritable = [\"calls\"]\ntimeout_secs = 100\n";
    let scene = scene(config, &[("codex", waiting)]);
    scene.brief("1", &[]);
    scene.brief("2", &[]);
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
}

#[test]
fn a_limit_longer_than_the_longest_wait_is_not_waited_for() {
    let scene = flaky("99", "You've hit your usage limit. Try again in 3 days.");
    let ran = scene.pdca(&["run", "1"]);
    assert_eq!((ran.code, calls(&scene)), (1, 1));
    assert!(ran.err.contains("You've hit your usage limit"), "{}", ran.err);
}

#[test]
fn an_end_without_an_error_code_and_with_an_error_inside_is_an_error() {
    let scene = flaky("99", "Your input exceeds the context window of this model.");
    let text = FLAKY.replace("FAILS", "99").replace("exit 1", "exit 0");
    let text = text.replace("MESSAGE", "Your input exceeds the context window of this model.");
    fs_err::write(scene.workspace.around().join("bin/codex"), text).unwrap();
    scene.pdca(&["run", "1"]).expect(1);
    assert_eq!(calls(&scene), 1, "another try would read as much");
    let log = scene.workspace.read("results/issue_1/builder.error.log");
    assert!(log.contains("context too long: Your input exceeds"), "{log}");
}

#[test]
fn a_builder_that_changed_nothing_is_quoted() {
    let agent = "#!/bin/sh\ncat > /dev/null\n\
        echo '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"The brief asks for nothing.\"}}'\n\
        echo '{\"type\":\"turn.completed\"}'\n";
    let scene = scene("[leaves.builder]\nagent = \"codex\"\n", &[("codex", agent)]);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(1);
    let log = scene.workspace.read("results/issue_7/builder.error.log");
    assert!(log.contains("Its last message:\n\nThe brief asks for nothing."), "{log}");
}

#[test]
fn a_reconnect_loop_stalls_however_much_it_prints() {
    let chatty = "#!/bin/sh\ncat > /dev/null\n\
        while :; do echo '{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}'; sleep 0.1; done\n";
    let config = "[leaves.builder]\nagent = \"codex\"\nstall_secs = 1\n";
    let looping = scene(config, &[("codex", chatty)]);
    looping.brief("7", &[]);
    looping.pdca(&["run", "7"]).expect(1);
    let log = looping.workspace.read("results/issue_7/builder.error.log");
    assert!(log.starts_with("builder 1 of 1: stalled"), "{log}");
}
