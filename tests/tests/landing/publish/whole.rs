//! From an accepted bundle to a branch, a draft and a comment.

use super::stall::Stall;

#[test]
fn an_accepted_bundle_becomes_a_branch_a_draft_and_a_comment() {
    let stall = Stall::with_one();
    let seal = stall.meeting.seal("7");
    let done = stall.publish(&["7", "--json"]).expect(0).json();
    assert_eq!((&done["schema"], &done["kind"]), (&1.into(), &"publish".into()));
    let item = &done["published"][0];
    assert_eq!(item["done"], serde_json::json!(["texts", "pushed", "opened", "commented"]));

    let commit = stall.branch("pdca/7").unwrap();
    assert_eq!(item["commit"], commit.as_str());
    let said = stall.remote.git(&[
        "log",
        "-1",
        "--format=%T %P|%s|%(trailers:key=Pdca-Sealed,valueonly)",
        &commit,
    ]);
    let (tree, base) = (seal["tree"].as_str().unwrap(), seal["base"].as_str().unwrap());
    let digest = pdca_state::sha256_hex(
        stall.meeting.scene.workspace.read("results/issue_7/seal.json").as_bytes(),
    );
    assert_eq!(said.trim(), format!("{tree} {base}|a slug|7 {digest}"));

    let pulls = stall.pulls();
    assert_eq!(pulls.len(), 1);
    let pull = &pulls[0];
    assert_eq!((&pull["headRefName"], &pull["baseRefName"]), (&"pdca/7".into(), &"main".into()));
    assert_eq!((&pull["isDraft"], &pull["title"]), (&true.into(), &"a slug".into()));
    let key = item["key"].as_str().unwrap();
    assert!(key.starts_with(&format!("{}/7/", seal["run"].as_str().unwrap())), "{key}");
    let marker = format!("<!-- pdca-key: {key} -->");
    assert_eq!(pull["body"].as_str().unwrap().trim_end().lines().last(), Some(marker.as_str()));

    let comments = stall.comments();
    assert_eq!(comments.len(), 1);
    let body = comments[0]["body"].as_str().unwrap();
    assert!(body.contains(pull["url"].as_str().unwrap()) && body.contains(&marker), "{body}");

    let record = stall.record("7");
    assert_eq!(record["key"], key);
    assert_eq!(
        (&record["branch"]["commit"], &record["branch"]["state"]),
        (&item["commit"], &"pushed".into())
    );
    assert_eq!(record["pull_request"]["url"], pull["url"]);
    assert_eq!(record["comment"]["url"], comments[0]["url"]);
}

#[test]
fn twice_is_once() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let (record, commit) = (stall.record("7"), stall.branch("pdca/7"));
    let again = stall.publish(&["7"]).expect(4);
    assert!(again.out.contains("out already"), "{}", again.out);
    assert_eq!((stall.asked("pr create"), stall.asked("issue comment")), (1, 1));
    assert_eq!((stall.record("7"), stall.branch("pdca/7")), (record, commit));
}

#[test]
fn a_record_that_was_lost_is_found_again_outside() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let record = stall.record("7");
    fs_err::remove_file(stall.meeting.scene.workspace.bundle("7").join("publish.json")).unwrap();
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.asked("pr create"), stall.asked("issue comment")), (1, 1));
    assert_eq!(stall.record("7"), record);
}

#[test]
fn a_record_of_another_tool_is_kept_aside() {
    let stall = Stall::with_one();
    stall.write("7", "publish.json", "{\"pr\": \"https://elsewhere.example/1\"}");
    let done = stall.publish(&["7"]).expect(0);
    assert!(done.err.contains("publish.json.aside-1"), "{}", done.err);
    assert!(stall.read("7", "publish.json.aside-1").contains("elsewhere"));
    assert_eq!(stall.record("7")["pull_request"]["number"], 1);
}

#[test]
fn a_ready_mark_is_made_only_when_it_is_asked_for() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    assert_eq!(stall.pulls()[0]["isDraft"], true);
    stall.publish(&["7", "--ready"]).expect(0);
    assert_eq!(stall.pulls()[0]["isDraft"], false);
    assert_eq!(stall.record("7")["pull_request"]["state"], "ready");
    stall.publish(&["7", "--ready"]).expect(4);
    assert_eq!(stall.asked("pr ready"), 1);
}

#[test]
fn a_rehearsal_says_what_would_be_done_and_does_nothing() {
    let stall = Stall::with_one();
    let before = stall.meeting.scene.results();
    let said = stall.publish(&["7", "--dry-run"]).expect(0);
    for words in [
        "write commit-msg.txt",
        "push ",
        "to pdca/7 of ",
        "open a draft pull request in team/app onto main",
        "comment on 7",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let json = stall.publish(&["7", "--dry-run", "--ready", "--json"]).expect(0).json();
    let would = &json["would"][0];
    assert_eq!(would["would"], serde_json::json!(["push", "open", "comment", "ready"]));
    assert_eq!(stall.meeting.scene.results(), before);
    assert_eq!(stall.branch("pdca/7"), None);
    assert!(stall.pulls().is_empty() && stall.comments().is_empty());
    stall.publish(&["7"]).expect(0);
    assert_eq!(would["commit"], stall.branch("pdca/7").unwrap().as_str(), "it said which commit");
    stall.publish(&["7", "--dry-run"]).expect(4);
}

#[test]
fn one_that_cannot_be_published_keeps_nobody_else_back() {
    let stall = Stall::with_one();
    stall.meeting.waiting("8", &[], &[("b.txt", "b\n")]);
    let done = stall.publish(&["8", "7", "--json"]).expect(3);
    let json = done.json();
    assert_eq!((&json["failed"][0]["id"], &json["failed"][0]["exit"]), (&"8".into(), &3.into()));
    assert_eq!(json["published"][0]["id"], "7");
    assert!(done.err.contains("hint: `pdca signoff 8 accept`"), "{}", done.err);
    assert_eq!(stall.branch("pdca/8"), None);
}

#[test]
fn what_is_out_is_told_by_status() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let said = stall.meeting.pdca(&["status", "7"]).expect(0);
    assert!(
        said.out.contains("published  https://forge.example/team/app/pull/1 (draft)"),
        "{}",
        said.out
    );
    let json = stall.meeting.pdca(&["status", "7", "--json"]).expect(0).json();
    assert_eq!(json["published"]["url"], "https://forge.example/team/app/pull/1");
}
