//! Rows that publishing runs again.

use super::stall::Stall;

/// A row that says and does what the test wants. It reads a file that it does not name by its path, because such a file
/// would be part of what decides.
const ROW: &str = r#"
[[gates.checks]]
id = "T4-late"
tier = "T4"
scope = "bundle"
cmd = '''
test -e a.txt && git diff --quiet "$PDCA_BASE" -- greeting.txt || exit 9
if [ -e "$PDCA_WORKSPACE/says" ]; then cat "$PDCA_WORKSPACE/says"; fi
if [ -e "$PDCA_BUNDLE/commit-msg.txt" ]; then echo "at publish"; else echo "before"; fi
exit "$(cd "$PDCA_WORKSPACE" && cat exit 2>/dev/null || echo 0)"
'''
"#;

fn stall(row: &str) -> Stall {
    let stall = Stall::with("", row);
    stall.meeting.scene.workspace.write("exit", "0\n");
    stall
}

fn at_publish() -> String {
    ROW.replace("scope = \"bundle\"", "scope = \"bundle\"\nat_publish = true")
}

#[test]
fn a_row_that_is_red_at_publishing_stops_it_before_anything_is_out() {
    let stall = stall(&at_publish());
    stall.meeting.accepted("7", "a.txt", "a\n");
    stall.meeting.scene.workspace.write("exit", "1\n");
    let refused = stall.publish(&["7"]).expect(100);
    assert!(
        refused.err.contains("gates are red: T4-late: exited 1: last output: at publish"),
        "{}",
        refused.err
    );
    assert_eq!(stall.branch("pdca/7"), None);
    assert!(stall.pulls().is_empty());
    // Asked again it is asked anew.
    stall.publish(&["7"]).expect(100);
    stall.meeting.scene.workspace.write("exit", "0\n");
    let done = stall.publish(&["7", "--json"]).expect(0).json();
    assert_eq!(
        done["published"][0]["done"],
        serde_json::json!(["gated", "pushed", "opened", "commented"])
    );
    assert_eq!(stall.record("7")["gates"]["rows"], serde_json::json!(["T4-late"]));
    // What passed is not asked again, until the texts that it may look at are others.
    stall.publish(&["7"]).expect(4);
    stall.meeting.scene.workspace.write("exit", "1\n");
    stall.publish(&["7"]).expect(4);
    stall.write("7", "pr-description.md", "other words\n");
    stall.publish(&["7"]).expect(100);
}

#[test]
fn a_row_that_was_put_off_is_due_at_publishing() {
    let stall = stall(ROW);
    stall
        .meeting
        .scene
        .workspace
        .write("says", "PDCA-DEFERRED: the contribution is not written yet\n");
    stall.meeting.accepted("7", "a.txt", "a\n");
    assert!(stall.read("7", "check-gates.json").contains("\"deferred\""));
    let refused = stall.publish(&["7"]).expect(3);
    assert!(refused.err.contains("gates came to no verdict: T4-late"), "{}", refused.err);
    assert_eq!(stall.branch("pdca/7"), None);
    stall.meeting.scene.workspace.write("says", "now it is\n");
    stall.publish(&["7"]).expect(0);
}

#[test]
fn a_row_that_passed_and_does_not_ask_for_it_is_not_run_again() {
    let stall = stall(ROW);
    stall.meeting.accepted("7", "a.txt", "a\n");
    stall.meeting.scene.workspace.write("exit", "1\n");
    let done = stall.publish(&["7", "--json"]).expect(0).json();
    assert_eq!(
        done["published"][0]["done"],
        serde_json::json!(["texts", "pushed", "opened", "commented"])
    );
}

#[test]
fn killed_after_the_gates_the_next_comes_to_the_same() {
    let stall = stall(&at_publish());
    stall.meeting.accepted("7", "a.txt", "a\n");
    for point in ["gate", "guard-done", "publish.json:1", "publish-push"] {
        stall.take_back("7");
        let killed = stall.killed_at(point, &["7"]);
        assert_eq!(killed.code, 128 + 9, "{point}: {}", killed.err);
        stall.publish(&["7"]).expect(0);
        assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1), "{point}");
    }
}

#[test]
fn what_passed_is_asked_again_once_anything_that_decides_it_is_another() {
    // The mark is followed by a line that is replaced.
    let changes: [(&str, &str, &str); 7] = [
        ("the command", "#command", ": other"),
        ("the time limit", "#row", "timeout_secs = 77"),
        ("hydration", "#hydrate", "install = \":\""),
        ("caches", "#lanes", "cache = [\"cache/\"]"),
        ("the reset", "#lanes", "reset = \"pristine\""),
        ("the sandbox", "#gates", "sandbox = \"off\""),
        ("what an identity command says", "version", "2"),
    ];
    let row = at_publish()
        .replace("cmd = '''", "identity = [\"cat version\"]\n#row\n\ncmd = '''\n#command\n");
    let tables = "[lanes]\n#lanes\n\n[lanes.hydrate]\n#hydrate\n\n[gates]\n#gates\n\n";
    for (name, mark, text) in changes {
        let stall = stall(&format!("{tables}{row}"));
        let workspace = &stall.meeting.scene.workspace;
        workspace.write("version", "1");
        stall.meeting.accepted("7", "a.txt", "a\n");
        stall.publish(&["7"]).expect(0);
        workspace.write("exit", "1\n");
        stall.publish(&["7"]).expect(4);
        if mark == "version" {
            workspace.write("version", text);
        } else {
            let config = workspace.read("pdca.toml");
            let mut lines: Vec<&str> = config.lines().collect();
            let at = lines.iter().position(|line| *line == mark).expect("the mark is there");
            lines[at + 1] = text;
            workspace.config(&lines.join("\n"));
        }
        let refused = stall.publish(&["7"]);
        assert_eq!(refused.code, 100, "{name}: {}", refused.err);
    }
}
