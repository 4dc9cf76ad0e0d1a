//! What accept promises happens, once: `signoff accept --publish`, and `[signoff] on_accept` wherever it is recorded.

use pdca_e2e::{leaf, terminal};
use pdca_testkit::Reply;

use super::stall::Stall;

/// A stall with one bundle at its sign-off, whose §6 is cleared.
fn waiting(publish: &str) -> Stall {
    let stall = Stall::with(publish, "");
    stall.meeting.waiting("7", &[], &[("a.txt", "a\n")]);
    stall.meeting.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    stall
}

fn state_of(stall: &Stall) -> String {
    let json = stall.meeting.pdca(&["status", "7", "--json"]).expect(0).json();
    json["state"].as_str().expect("the scene has it").to_owned()
}

#[test]
fn accept_publishes_marks_ready_and_posts_the_comment_that_was_edited_in_the_summary() {
    let stall = waiting("");
    let summary = stall.read("7", "SUMMARY.md");
    assert!(summary.contains("\n### Tracker comment\n"), "{summary}");
    assert!(summary.contains("\n> There is a change for this: a slug.\n"), "{summary}");
    let edited = summary.replace("> There is a change for this: a slug.", "> Mended at last.");
    stall.write("7", "SUMMARY.md", &edited);
    let done = stall.pdca(&["signoff", "7", "accept", "--publish", "--json"]).expect(0).json();
    assert_eq!(done["decided"][0]["state"], "COMPLETE");
    let item = &done["published"]["published"][0];
    let steps = serde_json::json!(["texts", "pushed", "opened", "commented", "ready"]);
    assert_eq!(item["done"], steps);
    assert_eq!(item["pull_request"]["state"], "ready");
    assert_eq!(item["merge"]["state"], "not-asked");
    assert_eq!(stall.pulls()[0]["isDraft"], false);
    let comments = stall.comments();
    assert_eq!(comments.len(), 1);
    let body = comments[0]["body"].as_str().expect("the scene has it");
    assert!(body.starts_with("Mended at last.\r\n"), "{body}");
    // The same command finds that everything is done.
    let again = stall.pdca(&["signoff", "7", "accept", "--publish"]).expect(4);
    assert!(again.out.contains("out already"), "{}", again.out);
    assert_eq!((stall.asked("pr create"), stall.asked("issue comment")), (1, 1));
}

#[test]
fn a_comment_that_was_removed_from_the_summary_is_not_posted() {
    let stall = waiting("");
    let summary = stall.read("7", "SUMMARY.md");
    let kept = |line: &&str| !line.starts_with('>') || line.contains("C1 Spec");
    let section = summary.find("### Tracker comment").expect("the scene has it");
    let (before, after) = summary.split_at(section);
    let after: Vec<&str> = after.lines().filter(kept).collect();
    stall.write("7", "SUMMARY.md", &format!("{before}{}\n", after.join("\n")));
    let done = stall.pdca(&["signoff", "7", "accept", "--publish", "--json"]).expect(0).json();
    assert_eq!(done["published"]["published"][0]["comment"]["state"], "declined");
    assert!(stall.comments().is_empty() && stall.pulls().len() == 1);
}

#[test]
fn without_the_flag_accept_does_nothing_outside() {
    let stall = waiting("");
    stall.pdca(&["signoff", "7", "accept"]).expect(0);
    assert!(stall.pulls().is_empty() && stall.branch("pdca/7").is_none());
}

#[test]
fn a_refused_publication_takes_no_acceptance_back_and_the_same_command_goes_on() {
    let stall = waiting("");
    stall.faults(&["pr create: refuse"]);
    let refused = stall.pdca(&["signoff", "7", "accept", "--publish"]).expect(1);
    assert!(refused.err.contains("HTTP 422"), "{}", refused.err);
    assert_eq!(state_of(&stall), "COMPLETE");
    stall.pdca(&["signoff", "7", "accept", "--publish"]).expect(0);
    assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1));
}

#[test]
fn what_is_accepted_beside_a_bundle_that_cannot_be_sealed_is_reported_and_published() {
    let stall = waiting("");
    stall.meeting.waiting("8", &[("Touches", "b.txt")], &[("b.txt", "b\n")]);
    // It is built on 8, which is not accepted.
    stall.meeting.waiting("9", &[("Touches", "b.txt")], &[("b.txt", "b\nc\n")]);
    let args = ["signoff", "7", "9", "accept", "--clear", "--publish", "--json"];
    let done = stall.pdca(&args).expect(1).json();
    assert_eq!(done["decided"][0]["id"], "7", "{done:#}");
    assert_eq!(done["published"]["published"][0]["id"], "7", "{done:#}");
    assert!(done["error"]["message"].as_str().is_some_and(|said| said.contains("stands on 8")));
    assert_eq!(stall.pulls().len(), 1);
}

#[test]
fn an_accepted_change_whose_pull_request_is_out_is_sent_back_only_after_a_question() {
    for action in ["iterate-do", "iterate-plan", "discontinue"] {
        let stall = waiting("");
        stall.pdca(&["signoff", "7", "accept", "--publish"]).expect(0);
        let args = ["signoff", "7", action, "--note", "too short"];
        let refused = stall.pdca(&args).expect(2);
        assert!(refused.err.contains("its pull request is out: "), "{}", refused.err);
        assert_eq!(state_of(&stall), "COMPLETE", "{action}");
        stall.pdca(&[&args[..], &["-y"]].concat()).expect(0);
        assert_ne!(state_of(&stall), "COMPLETE", "{action}");
    }
}

#[test]
fn a_merge_is_asked_for_once_the_checks_passed() {
    let stall = waiting("merge = true\nmerge_method = \"squash\"\n");
    let done = stall.pdca(&["signoff", "7", "accept", "--publish", "--json"]).expect(0).json();
    assert_eq!(done["published"]["published"][0]["merge"]["state"], "merged");
    let pull = &stall.pulls()[0];
    assert_eq!((&pull["state"], &pull["mergedWith"]), (&"MERGED".into(), &"--squash".into()));
    assert_eq!(stall.record("7")["pull_request"]["state"], "merged");
    assert_eq!(stall.remote.git(&["show", "main:a.txt"]), "a\n");
    stall.publish(&["7", "--ready"]).expect(4);
    assert_eq!(stall.asked("pr merge"), 1);
}

#[test]
fn a_merge_that_is_not_possible_is_said_with_its_remedy_and_nothing_is_lost() {
    let stall = waiting("merge = true\n");
    stall.pdca(&["signoff", "7", "accept"]).expect(0);
    stall.publish(&["7"]).expect(0);
    let checks = |conclusion: &str, status: &str| {
        serde_json::json!({
            "mergeStateStatus": "UNSTABLE", "reviewDecision": "",
            "statusCheckRollup": [{"name": "ci", "status": status, "conclusion": conclusion}],
        })
    };
    stall.change_pull(1, |pull| pull["checks"] = checks("", "IN_PROGRESS"));
    let waits = stall.publish(&["7", "--ready"]).expect(3);
    assert!(waits.out.contains("waits: checks are still running: ci"), "{}", waits.out);
    assert!(waits.out.contains("`pdca publish 7 --ready` tries again"), "{}", waits.out);
    stall.change_pull(1, |pull| pull["checks"] = checks("FAILURE", "COMPLETED"));
    let refused = stall.publish(&["7", "--ready"]).expect(3);
    assert!(refused.out.contains("refused: a check failed: ci"), "{}", refused.out);
    assert_eq!(stall.asked("pr merge"), 0, "a red check is not tried out");
    stall.change_pull(1, |pull| pull["checks"] = checks("SUCCESS", "COMPLETED"));
    stall.faults(&["pr merge: refuse"]);
    let refused = stall.publish(&["7", "--ready"]).expect(3);
    assert!(refused.out.contains("refused: HTTP 422"), "{}", refused.out);
    stall.publish(&["7", "--ready"]).expect(0);
    assert_eq!(stall.pulls()[0]["state"], "MERGED");
}

#[test]
fn what_others_pushed_on_top_is_never_merged() {
    let stall = waiting("merge = true\n");
    stall.pdca(&["signoff", "7", "accept"]).expect(0);
    stall.publish(&["7"]).expect(0);
    let at = stall.branch("pdca/7").expect("the scene has it");
    let tree = format!("{at}^{{tree}}");
    let more = stall.remote.git(&["commit-tree", &tree, "-p", &at, "-m", "sneaked in"]);
    stall.remote.git(&["update-ref", "refs/heads/pdca/7", more.trim()]);
    let refused = stall.publish(&["7", "--ready"]).expect(104);
    assert!(refused.err.contains("which was not pushed from here"), "{}", refused.err);
    assert_eq!((stall.asked("pr merge"), stall.branch("pdca/7")), (0, Some(more.trim().into())));
}

/// Everything around a workspace, to be put back as it was.
struct Copy {
    around: camino::Utf8PathBuf,
    kept: pdca_testkit::TestWorkspace,
}

impl Copy {
    fn of(stall: &Stall) -> Self {
        let around = stall.meeting.scene.workspace.around().clone();
        let kept = pdca_testkit::TestWorkspace::new();
        fs_err::create_dir_all(kept.path().join("copy")).expect("the scene has it");
        copy(&format!("{around}/."), &format!("{}/copy/", kept.path()));
        Self { around, kept }
    }

    fn put_back(&self) {
        for entry in self.around.read_dir_utf8().expect("the scene has it") {
            let path = entry.expect("the scene has it").path().to_owned();
            if path.is_dir() {
                fs_err::remove_dir_all(&path).expect("the scene has it");
            } else {
                fs_err::remove_file(&path).expect("the scene has it");
            }
        }
        copy(&format!("{}/copy/.", self.kept.path()), &format!("{}/", self.around));
    }
}

fn copy(from: &str, to: &str) {
    let copied =
        pdca_process::Tool::new("cp").args(["-a", from, to]).run().expect("the scene has it");
    assert!(copied.success(), "{}", String::from_utf8_lossy(&copied.stderr));
}

#[test]
fn killed_at_any_effect_of_accept_and_publish_the_same_command_comes_to_the_same() {
    let stall = waiting("merge = true\n");
    let before = Copy::of(&stall);
    let accept = ["signoff", "7", "accept", "--publish"];
    let (mut killed, mut point) = (0, 1);
    loop {
        let first = stall.pdca_with(&[("PDCA_CRASH_AT", &format!("@{point}"))], &accept);
        if first.code == 0 {
            break;
        }
        assert_eq!(first.code, 128 + 9, "point {point}: {}", first.err);
        killed += 1;
        let second = stall.pdca(&accept);
        assert!([0, 4].contains(&second.code), "point {point}: {} {}", second.code, second.err);
        assert_eq!(state_of(&stall), "COMPLETE", "point {point}");
        assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1), "point {point}");
        assert_eq!(stall.pulls()[0]["state"], "MERGED", "point {point}");
        assert_eq!(stall.asked("pr merge"), 1, "point {point}");
        assert_eq!(stall.record("7")["comment"]["state"], "posted", "point {point}");
        stall.pdca(&accept).expect(4);
        before.put_back();
        // Every effect has a point before it and one after it, which is also the one before the next.
        point += 2;
    }
    assert!(killed >= 12, "only {killed} points");
}

#[test]
fn a_flow_publishes_what_was_accepted_and_with_both_integrates_it_too() {
    for (after, is_landed) in [("publish", false), ("both", true)] {
        let flow =
            format!("\n[flow]\nafter_accept = \"{after}\"\n\n[integrate]\nland = \"target\"\n");
        let stall = Stall::with("", &flow);
        stall.meeting.accepted("7", "a.txt", "a\n");
        stall.meeting.waiting("8", &[], &[("b.txt", "b\n")]);
        let done = stall.pdca(&["flow", "--json"]).expect(3).json();
        assert_eq!(done["unsigned"], serde_json::json!(["8"]), "{after}");
        let pulls = stall.pulls();
        assert_eq!((pulls.len(), &pulls[0]["isDraft"]), (1, &false.into()), "{after}");
        assert_eq!(stall.comments().len(), 1, "{after}");
        let landed: &[&str] = if is_landed { &["a slug|7", "first|"] } else { &["first|"] };
        assert_eq!(stall.meeting.subjects(), landed, "{after}");
        // What is delivered is not delivered again; what is accepted later is.
        stall.meeting.scene.accept("8");
        stall.pdca(&["flow"]).expect(0);
        assert_eq!((stall.pulls().len(), stall.asked("pr create")), (2, 2), "{after}");
        stall.pdca(&["flow"]).expect(4);
    }
}

/// Proposes to accept.
const SIGNER: &str = r#"echo '{"action": "accept", "note": "a model says so"}' > "$PDCA_OUTPUT""#;

/// A stall with one bundle at its sign-off, a sign-off leaf that proposes to accept, and these steps that follow.
fn follows(steps: &str, more: &str) -> Stall {
    let more = format!("\n[signoff]\non_accept = {steps}\n{more}\n{}", leaf("signoff"));
    let stall = Stall::with("", &more);
    stall.meeting.scene.script("signoff", SIGNER);
    stall.meeting.waiting("7", &[], &[("a.txt", "a\n")]);
    stall.meeting.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    stall
}

const ALL: &str = "[\"ready\", \"comment\", \"merge\"]";

/// The change is merged, with one pull request and one comment.
#[track_caller]
fn assert_all_is_out(stall: &Stall, how: &str) {
    assert_eq!(state_of(stall), "COMPLETE", "{how}");
    let pulls = stall.pulls();
    assert_eq!(pulls.len(), 1, "{how}");
    let pull = (&pulls[0]["state"], &pulls[0]["isDraft"]);
    assert_eq!(pull, (&"MERGED".into(), &false.into()), "{how}");
    assert_eq!(stall.comments().len(), 1, "{how}");
}

/// All three steps were carried out, and the forge was asked for each once.
#[track_caller]
fn assert_all_followed(stall: &Stall, how: &str) {
    assert_all_is_out(stall, how);
    let calls = ["pr create", "issue comment", "pr merge"].map(|call| stall.asked(call));
    assert_eq!(calls, [1, 1, 1], "{how}");
}

/// Accepts the bundle of a stall.
type Accept<'a> = &'a dyn Fn(&Stall);

#[test]
fn what_on_accept_names_follows_an_acceptance_wherever_it_is_recorded() {
    let ways: [(&str, Accept<'_>); 4] = [
        ("signoff", &|stall| drop(stall.pdca(&["signoff", "7", "accept"]).expect(0))),
        ("review", &|stall| {
            let ran = stall.with_keys(&["review", "7"], "a\n").expect(0);
            assert!(ran.out.contains("published  7"), "{}", ran.out);
            assert!(ran.out.contains("1 decided, 0 left"), "{}", ran.out);
        }),
        ("a proposal that is confirmed", &|stall| {
            let ran = stall.with_keys(&["signoff", "7", "ask"], "y\n").expect(0);
            assert!(ran.out.contains("published  7"), "{}", ran.out);
        }),
        ("a proposal that is confirmed from a script", &|stall| {
            let ran = stall.pdca(&["--json", "-y", "signoff", "7", "ask"]).expect(0).json();
            assert_eq!(ran["decided"][0]["state"], "COMPLETE");
            assert_eq!(ran["published"]["published"][0]["merge"]["state"], "merged");
        }),
    ];
    for (how, accept) in ways {
        let stall = follows(ALL, "");
        accept(&stall);
        assert_all_followed(&stall, how);
        // The typed command finds that everything is done.
        stall.pdca(&["signoff", "7", "accept"]).expect(4);
        assert_all_followed(&stall, how);
    }
}

#[test]
fn only_the_steps_follow_that_on_accept_names_and_only_an_acceptance() {
    let stall = follows("[\"ready\"]", "");
    stall.with_keys(&["review", "7"], "a\n").expect(0);
    assert_eq!(stall.pulls()[0]["isDraft"], false);
    assert_eq!((stall.comments().len(), stall.asked("pr merge")), (0, 0));
    let stall = follows(ALL, "");
    stall.with_keys(&["review", "7"], "inot yet\n\n").expect(0);
    assert_eq!(state_of(&stall), "PLANNED");
    assert_eq!((stall.pulls().len(), stall.asked("pr list")), (0, 0));
}

#[test]
fn what_follows_fails_and_the_acceptance_stays_with_the_command_that_goes_on() {
    let ways: [(&str, &[&str], &str); 2] =
        [("review", &["review", "7"], "a\n"), ("ask", &["signoff", "7", "ask"], "y\n")];
    for (how, args, keys) in ways {
        let stall = follows(ALL, "");
        stall.faults(&["pr create: refuse"]);
        let ran = stall.with_keys(args, keys).expect(1);
        assert!(ran.out.contains("HTTP 422"), "{how}: {}", ran.out);
        assert!(ran.out.contains("`pdca signoff 7 accept` goes on"), "{how}: {}", ran.out);
        assert_eq!((state_of(&stall).as_str(), stall.pulls().len()), ("COMPLETE", 0), "{how}");
        stall.pdca(&["signoff", "7", "accept"]).expect(0);
        assert_all_is_out(&stall, how);
    }
    let stall = follows(ALL, "");
    stall.faults(&["pr merge: refuse"]);
    let ran = stall.with_keys(&["review", "7"], "a\n").expect(3);
    assert!(ran.out.contains("then `pdca signoff 7 accept` tries again"), "{}", ran.out);
}

#[test]
fn an_acceptance_at_the_board_is_followed_too() {
    let stall = follows(ALL, "");
    let forge = stall.forge();
    let env = [("FAKE_GH_STATE", forge.as_str()), ("FAKE_GH_REMOTE", stall.remote.path().as_str())];
    let scene = &stall.meeting.scene;
    let terminal = terminal!(scene, &env);
    terminal.board(scene);
    terminal.wait_for_card("7");
    terminal.key("a");
    terminal.wait_for("1 not recorded yet");
    terminal.leave();
    assert_all_followed(&stall, "board");
}

#[test]
fn a_board_says_on_leaving_what_was_accepted_and_not_published() {
    let stall = follows(ALL, "");
    stall.faults(&["pr create: refuse"]);
    let forge = stall.forge();
    let env = [("FAKE_GH_STATE", forge.as_str()), ("FAKE_GH_REMOTE", stall.remote.path().as_str())];
    let scene = &stall.meeting.scene;
    let terminal = terminal!(scene, &env);
    terminal.board(scene);
    terminal.wait_for_card("7");
    terminal.key("a");
    terminal.wait_for("1 not recorded yet");
    terminal.leave();
    let screen = terminal.wait_for("7 is accepted, and not published");
    assert!(screen.contains("HTTP 422"), "{screen}");
    assert_eq!(state_of(&stall), "COMPLETE");
    stall.pdca(&["signoff", "7", "accept"]).expect(0);
    assert_all_is_out(&stall, "board");
}

#[test]
fn in_a_flow_an_acceptance_is_followed_once_also_where_the_flow_publishes() {
    for after in ["nothing", "publish"] {
        let stall = follows(ALL, &format!("\n[flow]\nafter_accept = \"{after}\"\n"));
        let forge = stall.forge();
        let env =
            [("FAKE_GH_STATE", forge.as_str()), ("FAKE_GH_REMOTE", stall.remote.path().as_str())];
        let confirm = Reply { to: "[y/N] ", with: "y\n" };
        let mut pty =
            stall.meeting.scene.script_at_terminal(&env, "exec $PDCA flow", vec![confirm]);
        assert_eq!(pty.wait(), 0, "{after}: {}", pty.shown());
        assert!(!pty.shown().contains("error"), "{after}: {}", pty.shown());
        assert_all_followed(&stall, after);
    }
}

#[test]
fn a_change_whose_pull_request_is_out_is_sent_back_only_after_a_yes() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let url = stall.pulls()[0]["url"].as_str().expect("the scene has it").to_owned();
    let back = ["signoff", "7", "iterate-do", "--note", "no"];
    let refused = stall.pdca(&back).expect(2);
    let asks = format!("7 is accepted, and its pull request is out: {url}");
    assert!(refused.err.contains(&asks), "{}", refused.err);
    assert!(refused.err.contains("add `-y`"), "{}", refused.err);
    let ran = stall.with_keys(&back, "n\n").expect(2);
    assert!(ran.out.contains(&asks), "{}", ran.out);
    assert!(ran.out.contains("Take the acceptance back all the same?"), "{}", ran.out);
    assert_eq!(state_of(&stall), "COMPLETE");
    stall.with_keys(&back, "y\n").expect(0);
    assert_eq!(state_of(&stall), "PLANNED");
    // Without a pull request there is nothing to ask.
    let quiet = Stall::with_one();
    quiet.pdca(&back).expect(0);
    assert_eq!(state_of(&quiet), "PLANNED");
}
