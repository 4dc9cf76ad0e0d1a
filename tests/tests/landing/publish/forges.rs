//! Other forges than `gh`, none at all, and drafts that a builder opened.

use pdca_testkit::fake_gh;

use super::stall::Stall;

#[test]
fn without_a_forge_the_branch_is_pushed_and_nothing_else() {
    let stall = Stall::with("forge = \"none\"\ngh = \"no-such-gh\"\n", "");
    stall.meeting.accepted("7", "a.txt", "a\n");
    let done = stall.publish(&["7", "--ready", "--json"]).expect(0).json();
    let item = &done["published"][0];
    assert_eq!(item["done"], serde_json::json!(["texts", "pushed"]));
    assert!(item["pull_request"].is_null(), "{item}");
    assert_eq!(item["comment"]["state"], "off");
    assert_eq!(stall.branch("pdca/7").as_deref(), item["commit"].as_str());
    stall.publish(&["7"]).expect(4);
    let shown = stall.meeting.pdca(&["status", "7"]).expect(0);
    assert!(shown.out.contains("pdca/7"), "{}", shown.out);
}

/// A forge of its own, behind a shell script that speaks the protocol of `forge_cmd`.
const FORGE: &str = r#"
set -eu
d="$FORGE_DIR"; mkdir -p "$d"
echo "$PDCA_FORGE" >> "$d/log"
json() { sed 's/\\/\\\\/g; s/"/\\"/g' | awk '{printf "%s\\n", $0}'; }
case "$PDCA_FORGE" in
list)
    if [ -e "$d/body" ] && [ "$(cat "$d/head")" = "$PDCA_HEAD" ]; then
        printf '[{"number": 1, "url": "https://other.example/1", "state": "%s", "isDraft": %s, "body": "%s", "headRefName": "%s", "baseRefName": "%s", "headRefOid": "%s", "isCrossRepository": false}]' \
            "$(cat "$d/state")" "$(cat "$d/draft")" "$(json < "$d/body")" "$PDCA_HEAD" "$(cat "$d/base")" "$(cat "$d/oid" 2>/dev/null || true)"
    else
        echo '[]'
    fi ;;
open) cat > "$d/body"; echo "$PDCA_HEAD" > "$d/head"; echo "$PDCA_BASE" > "$d/base"; echo OPEN > "$d/state"; echo true > "$d/draft" ;;
ready) echo false > "$d/draft" ;;
checks) echo '{"mergeStateStatus": "CLEAN"}' ;;
merge) [ "$PDCA_METHOD" = rebase ]; echo MERGED > "$d/state" ;;
*) exit 64 ;;
esac
"#;

#[test]
fn another_forge_is_spoken_with_through_a_command() {
    let publish = "forge = \"command\"\nforge_cmd = \"sh forge.sh\"\nmerge = true\nmerge_method = \"rebase\"\n";
    let stall = Stall::with(publish, "");
    stall.meeting.scene.workspace.write("forge.sh", FORGE);
    stall.meeting.accepted("7", "a.txt", "a\n");
    let dir = stall.meeting.scene.workspace.around().join("other-forge");
    let env = [("FORGE_DIR", dir.as_str())];
    let done = stall.publish_with(&env, &["7", "--json"]).expect(0).json();
    assert_eq!(done["published"][0]["pull_request"]["url"], "https://other.example/1");
    stall.publish_with(&env, &["7"]).expect(4);
    fs_err::write(dir.join("oid"), stall.branch("pdca/7").expect("the scene has it"))
        .expect("the scene has it");
    let done = stall.publish_with(&env, &["7", "--ready", "--json"]).expect(0).json();
    assert_eq!(done["published"][0]["done"], serde_json::json!(["ready", "merged"]));
    let log = fs_err::read_to_string(dir.join("log")).expect("the scene has it");
    assert_eq!(log.lines().filter(|line| *line == "open").count(), 1, "{log}");
}

/// Does what a builder does that may push: a branch with its own commit, and a draft.
fn builder_opens_a_draft(stall: &Stall) -> String {
    let base = stall.remote.git(&["rev-parse", "main"]);
    let tree = stall.remote.git(&["rev-parse", "main^{tree}"]);
    let own = stall.remote.git(&["commit-tree", tree.trim(), "-p", base.trim(), "-m", "wip"]);
    stall.remote.git(&["update-ref", "refs/heads/pdca/7", own.trim()]);
    let tool = pdca_process::Tool::new(fake_gh().as_std_path())
        .args([
            "pr",
            "create",
            "--draft",
            "--repo=team/app",
            "--head=pdca/7",
            "--base=main",
            "--title=wip",
            "--body-file=-",
        ])
        .env("FAKE_GH_STATE", stall.forge())
        .env("FAKE_GH_REMOTE", stall.remote.path())
        .env("GH_PROMPT_DISABLED", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin("what the builder says\n");
    assert!(tool.run().expect("the scene has it").success());
    own.trim().to_owned()
}

#[test]
fn a_draft_that_the_builder_opened_is_adopted_and_never_doubled() {
    let stall = Stall::with("builder_pushes = true\n", "");
    stall.meeting.accepted("7", "a.txt", "a\n");
    builder_opens_a_draft(&stall);
    let rehearsed = stall.publish(&["7", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(rehearsed["would"][0]["would"], serde_json::json!(["push", "adopt", "comment"]));
    let done = stall.publish(&["7", "--json"]).expect(0).json();
    let steps = serde_json::json!(["texts", "pushed", "adopted", "commented"]);
    assert_eq!(done["published"][0]["done"], steps);
    let pulls = stall.pulls();
    assert_eq!((pulls.len(), stall.asked("pr create")), (1, 1), "only the builder's");
    assert_eq!(pulls[0]["title"], "a slug");
    let body = pulls[0]["body"].as_str().expect("the scene has it");
    assert!(body.contains("pdca-key: ") && !body.contains("what the builder says"), "{body}");
    assert_eq!(
        done["published"][0]["commit"],
        stall.branch("pdca/7").expect("the scene has it").as_str()
    );
    stall.publish(&["7"]).expect(4);
    // A person's words in it stay from now on.
    stall.change_pull(1, |pull| pull["body"] = "a person's words".into());
    stall.publish(&["7"]).expect(4);
    assert_eq!(stall.pulls()[0]["body"], "a person's words");
}

#[test]
fn killed_while_a_draft_is_adopted_the_next_goes_on() {
    let stall = Stall::with("builder_pushes = true\n", "");
    stall.meeting.accepted("7", "a.txt", "a\n");
    let mut killed = 0;
    for point in (1..60).step_by(2) {
        stall.take_back("7");
        builder_opens_a_draft(&stall);
        let first = stall.killed_at(&format!("@{point}"), &["7"]);
        if first.code == 0 {
            break;
        }
        killed += 1;
        let second = stall.publish(&["7"]);
        assert!([0, 4].contains(&second.code), "point {point}: {} {}", second.code, second.err);
        assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1), "point {point}");
        assert_eq!(stall.record("7")["pull_request"]["adopted"], "done", "point {point}");
        stall.publish(&["7"]).expect(4);
    }
    assert!(killed >= 8, "only {killed} points");
}

#[test]
fn where_the_builder_may_not_push_its_draft_is_somebody_else_s() {
    let stall = Stall::with_one();
    let own = builder_opens_a_draft(&stall);
    let refused = stall.publish(&["7"]).expect(104);
    assert!(refused.err.contains("was not opened from here"), "{}", refused.err);
    assert!(refused.err.contains("builder_pushes"), "the remedy is named: {}", refused.err);
    assert_eq!(stall.branch("pdca/7"), Some(own));
}
