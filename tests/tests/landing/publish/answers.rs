//! Answers get lost, programs fail, and drivers are killed: nothing is there twice.

use super::stall::Stall;

#[test]
fn a26_a_draft_whose_answer_was_lost_is_found_by_its_key() {
    let stall = Stall::with_one();
    for fault in ["lose", "die"] {
        stall.take_back("7");
        stall.faults(&[&format!("pr create: {fault}")]);
        stall.publish(&["7"]).expect(0);
        assert_eq!((stall.pulls().len(), stall.asked("pr create")), (1, 1), "{fault}");
        assert_eq!(stall.record("7")["pull_request"]["number"], 1);
    }
}

#[test]
fn a26_killed_once_the_draft_is_open_the_next_finds_it() {
    let stall = Stall::with_one();
    // The record is written before the push, after it, before the draft and after it.
    let killed = stall.killed_at("publish.json:4", &["7"]);
    assert_eq!(killed.code, 128 + 9, "{}", killed.err);
    assert_eq!(stall.pulls().len(), 1);
    assert_eq!(stall.record("7")["pull_request"].get("url"), None, "nobody has heard of it");
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.pulls().len(), stall.asked("pr create")), (1, 1));
}

#[test]
fn a27_a_comment_whose_answer_was_lost_is_found_by_its_key() {
    let stall = Stall::with_one();
    for fault in ["lose", "die"] {
        stall.take_back("7");
        stall.faults(&[&format!("issue comment: {fault}")]);
        stall.publish(&["7"]).expect(0);
        assert_eq!((stall.comments().len(), stall.asked("issue comment")), (1, 1), "{fault}");
        assert_eq!(stall.record("7")["comment"]["state"], "posted");
    }
}

#[test]
fn a27_killed_once_the_comment_is_posted_the_next_finds_it() {
    let stall = Stall::with_one();
    let killed = stall.killed_at("publish.json:6", &["7"]);
    assert_eq!(killed.code, 128 + 9, "{}", killed.err);
    assert_eq!(stall.comments().len(), 1);
    assert_eq!(stall.record("7")["comment"]["state"], "intended", "nobody has heard of it");
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.comments().len(), stall.asked("issue comment")), (1, 1));
}

#[test]
fn killed_at_any_effect_the_next_comes_to_the_same() {
    let stall = Stall::with_one();
    stall.publish(&["7", "--ready"]).expect(0);
    let (record, commit) = (stall.record("7"), stall.branch("pdca/7"));
    let mut killed = 0;
    for point in 1..100 {
        stall.take_back("7");
        let first = stall.killed_at(&format!("@{point}"), &["7", "--ready"]);
        if first.code == 0 {
            break;
        }
        assert_eq!(first.code, 128 + 9, "point {point}: {}", first.err);
        killed += 1;
        let second = stall.publish(&["7", "--ready"]);
        assert!([0, 4].contains(&second.code), "point {point}: {} {}", second.code, second.err);
        assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1), "point {point}");
        assert_eq!((stall.record("7"), stall.branch("pdca/7")), (record.clone(), commit.clone()));
        assert_eq!(stall.pulls()[0]["isDraft"], false, "point {point}");
        stall.publish(&["7", "--ready"]).expect(4);
    }
    assert!(killed >= 20, "only {killed} points");
}

#[test]
fn a_forge_in_trouble_is_asked_again() {
    let stall = Stall::with_one();
    stall.faults(&["pr list: busy", "pr create: busy", "pr create: busy", "issue comment: busy"]);
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.asked("pr create"), stall.asked("issue comment")), (3, 2));
    assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1));
}

#[test]
fn a_forge_that_will_not_is_asked_once_and_what_it_said_is_told() {
    let stall = Stall::with_one();
    stall.faults(&["pr create: refuse"]);
    let refused = stall.publish(&["7"]).expect(1);
    assert!(
        refused.err.contains("cannot open a pull request: HTTP 422: Validation Failed"),
        "{}",
        refused.err
    );
    assert_eq!(stall.asked("pr create"), 1);
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1));
}

#[test]
fn without_a_login_nothing_is_pushed() {
    let stall = Stall::with_one();
    stall.faults(&["pr list: logout"]);
    let refused = stall.publish(&["7"]).expect(2);
    assert!(refused.err.contains("gh auth login"), "{}", refused.err);
    assert_eq!(stall.branch("pdca/7"), None);
}

#[test]
fn without_the_program_nothing_is_pushed() {
    let stall = Stall::with("gh = \"no-such-gh\"\n", "");
    stall.meeting.accepted("7", "a.txt", "a\n");
    let refused = stall.publish(&["7"]).expect(2);
    assert!(refused.err.contains("program `no-such-gh` not found on PATH"), "{}", refused.err);
    assert!(refused.err.contains("hint: install"), "{}", refused.err);
    assert_eq!(stall.branch("pdca/7"), None);
}

#[test]
fn a_remote_that_does_not_answer_is_told_before_anything_is_changed() {
    let stall = Stall::with_one();
    let path = stall.remote.path();
    fs_err::rename(path, path.with_extension("gone")).unwrap();
    let before = stall.meeting.scene.results();
    let refused = stall.publish(&["7"]).expect(1);
    assert!(refused.err.contains("did not take pdca/7"), "{}", refused.err);
    assert_eq!(stall.meeting.scene.results(), before);
    assert!(stall.pulls().is_empty());
}

#[test]
fn a_tracker_that_will_not_is_told_before_anything_is_pushed() {
    let stall = Stall::with_one();
    stall.faults(&["issue view: refuse"]);
    let refused = stall.publish(&["7"]).expect(1);
    assert!(refused.err.contains("cannot look for comments: HTTP 422"), "{}", refused.err);
    assert!(refused.err.contains("`comments` in [publish]"), "{}", refused.err);
    assert_eq!(stall.branch("pdca/7"), None);
    assert!(stall.pulls().is_empty());
}

#[test]
fn an_answer_that_is_none_is_not_believed() {
    let stall = Stall::with_one();
    for answer in
        ["<html>", "{}", "[{\"number\": 1}]", "[{\"number\": 1, \"url\": \"javascript:x\"}]"]
    {
        stall.faults(&[&format!("pr list: say {answer}")]);
        let refused = stall.publish(&["7"]).expect(1);
        assert!(refused.err.contains("unexpected answer"), "{}", refused.err);
    }
    assert_eq!(stall.branch("pdca/7"), None);
}

#[test]
fn a_push_that_nobody_heard_of_is_ours_when_the_words_are_others_by_then() {
    let stall = Stall::with_one();
    let killed = stall.killed_at("publish.json:2", &["7"]);
    assert_eq!(killed.code, 128 + 9, "{}", killed.err);
    let before = stall.branch("pdca/7").unwrap();
    assert_eq!(stall.record("7")["branch"]["state"], "intended");
    stall.write("7", "commit-msg.txt", "Better words\n");
    stall.publish(&["7"]).expect(0);
    assert_ne!(stall.branch("pdca/7").unwrap(), before);
    assert_eq!(stall.remote.git(&["log", "-1", "--format=%s", "pdca/7"]).trim(), "Better words");
}

#[test]
fn interrupted_while_the_forge_is_slow_it_ends_in_order_and_the_next_goes_on() {
    let stall = Stall::with_one();
    stall.faults(&["pr create: hang"]);
    let started = stall.start(&["7"]);
    let hangs = stall.forge().join("hangs");
    let is_at = |_: &_| fs_err::read(&hangs).is_ok_and(|bytes| bytes.ends_with(b"\n"));
    stall.meeting.scene.wait_until("the forge hangs", is_at);
    started.signal(rustix::process::Signal::INT);
    fs_err::write(stall.forge().join("go"), "").unwrap();
    assert_eq!(started.wait(), 130);
    assert_eq!(stall.pulls().len(), 1);
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.pulls().len(), stall.comments().len()), (1, 1));
    assert_eq!(stall.asked("pr create"), 1);
}

#[test]
fn told_twice_to_stop_nobody_waits_for_the_forge() {
    let stall = Stall::with_one();
    stall.faults(&["pr create: hang"]);
    let started = stall.start(&["7"]);
    let hangs = stall.forge().join("hangs");
    let is_at = |_: &_| fs_err::read(&hangs).is_ok_and(|bytes| bytes.ends_with(b"\n"));
    stall.meeting.scene.wait_until("the forge hangs", is_at);
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        started.signal(signal);
    }
    // It would hang for a minute, and end well.
    assert_eq!(started.wait(), 130);
    assert_eq!(stall.record("7")["pull_request"].get("url"), None);
    stall.meeting.scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
    stall.publish(&["7"]).expect(0);
    assert_eq!((stall.pulls().len(), stall.asked("pr create")), (1, 1));
}
