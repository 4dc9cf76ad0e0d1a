//! People act on the forge and in the workspace meanwhile.

use serde_json::json;

use super::stall::Stall;

#[test]
fn what_nobody_accepted_is_not_published() {
    let stall = Stall::new();
    stall.meeting.waiting("7", &[], &[("a.txt", "a\n")]);
    let refused = stall.publish(&["7"]).expect(3);
    assert!(
        refused.err.contains("7 is AWAITING_SIGNOFF, and only what was accepted is published"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("hint: `pdca signoff 7 accept`"), "{}", refused.err);
    stall.publish(&["7", "--ready"]).expect(3);
    assert_eq!(stall.branch("pdca/7"), None);
    assert_eq!(stall.asked("pr list"), 0);
}

#[test]
fn a_patch_that_is_not_what_was_sealed_is_not_published() {
    let stall = Stall::with_one();
    let patch = stall.read("7", "patch.diff");
    stall.write("7", "patch.diff", &patch.replace("+a", "+evil"));
    let refused = stall.publish(&["7"]).expect(104);
    assert!(refused.err.contains("7 is not what was sealed"), "{}", refused.err);
    assert_eq!(stall.branch("pdca/7"), None);
}

#[test]
fn lesson_19_a_branch_that_went_away_is_pushed_again_and_its_draft_is_open_again() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let commit = stall.branch("pdca/7");
    stall.remote.git(&["update-ref", "-d", "refs/heads/pdca/7"]);
    stall.publish(&["7"]).expect(0);
    assert_eq!(stall.branch("pdca/7"), commit);
    // A forge closes what lost its branch.
    stall.remote.git(&["update-ref", "-d", "refs/heads/pdca/7"]);
    stall.change_pull(1, |pull| pull["state"] = json!("CLOSED"));
    stall.faults(&["pr reopen: lose"]);
    let done = stall.publish(&["7", "--json"]).expect(0).json();
    assert_eq!(done["published"][0]["done"], json!(["pushed", "reopened"]));
    assert_eq!(stall.pulls().len(), 1);
    assert_eq!(stall.pulls()[0]["state"], "OPEN");
}

#[test]
fn killed_between_the_branch_and_its_draft_the_next_opens_it_again() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let record = stall.record("7");
    for point in ["publish-push", "publish.json:3", "pull-request-reopen"] {
        stall.remote.git(&["update-ref", "-d", "refs/heads/pdca/7"]);
        stall.change_pull(1, |pull| pull["state"] = json!("CLOSED"));
        let killed = stall.killed_at(point, &["7"]);
        assert_eq!(killed.code, 128 + 9, "{point}: {}", killed.err);
        assert_eq!(stall.pulls()[0]["state"], "CLOSED", "{point}");
        stall.publish(&["7"]).expect(0);
        assert_eq!(stall.pulls()[0]["state"], "OPEN", "{point}");
        assert_eq!(stall.record("7"), record, "{point}");
    }
}

#[test]
fn a_branch_that_somebody_moved_is_left_alone() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let theirs = stall.branch("main").unwrap();
    stall.remote.git(&["update-ref", "refs/heads/pdca/7", &theirs]);
    for args in [&["7"][..], &["7", "--dry-run"]] {
        let refused = stall.publish(args).expect(104);
        assert!(
            refused.err.contains(&format!("is at {theirs}, which was not pushed from here")),
            "{}",
            refused.err
        );
    }
    assert_eq!(stall.branch("pdca/7"), Some(theirs));
}

#[test]
fn a_branch_that_was_there_before_us_is_left_alone() {
    let stall = Stall::with_one();
    let theirs = stall.branch("main").unwrap();
    stall.remote.git(&["update-ref", "refs/heads/pdca/7", &theirs]);
    stall.publish(&["7"]).expect(104);
    assert_eq!(stall.branch("pdca/7"), Some(theirs));
    assert!(stall.pulls().is_empty());
}

#[test]
fn a_pull_request_of_somebody_else_is_not_taken_for_ours() {
    let stall = Stall::with_one();
    let theirs = json!({
        "number": 1, "url": "https://forge.example/team/app/pull/1", "state": "OPEN", "isDraft": false,
        "title": "theirs", "body": "theirs", "headRefName": "pdca/7", "baseRefName": "main",
        "isCrossRepository": false,
    });
    stall.put_pull(1, &theirs);
    let refused = stall.publish(&["7"]).expect(104);
    assert!(
        refused.err.contains("was not opened from here: https://forge.example/team/app/pull/1"),
        "{}",
        refused.err
    );
    assert_eq!(stall.branch("pdca/7"), None, "found out before anything was pushed");
    // That of a fork has nothing to do with our branch.
    stall.change_pull(1, |pull| pull["isCrossRepository"] = json!(true));
    stall.publish(&["7"]).expect(0);
    assert_eq!(stall.record("7")["pull_request"]["number"], 2);
}

#[test]
fn what_a_person_closed_stays_closed_and_what_was_merged_is_not_pushed_again() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    stall.change_pull(1, |pull| pull["state"] = json!("CLOSED"));
    let refused = stall.publish(&["7"]).expect(3);
    assert!(refused.err.contains("/pull/1 was closed"), "{}", refused.err);
    stall.change_pull(1, |pull| pull["state"] = json!("MERGED"));
    stall.remote.git(&["update-ref", "-d", "refs/heads/pdca/7"]);
    let done = stall.publish(&["7", "--json"]);
    assert_eq!(done.json()["published"][0]["pull_request"]["state"], "merged");
    assert_eq!(stall.branch("pdca/7"), None);
    assert_eq!(stall.pulls().len(), 1);
}

#[test]
fn a_text_without_its_mark_is_still_ours_where_we_saw_it_once() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    stall.change_pull(1, |pull| pull["body"] = json!("a person wrote all of it anew"));
    stall.publish(&["7"]).expect(4);
    assert_eq!(stall.pulls().len(), 1);
}

#[test]
fn a_comment_that_somebody_removed_is_not_posted_again() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    fs_err::remove_dir_all(stall.meeting.scene.workspace.around().join("forge/comments")).unwrap();
    stall.publish(&["7"]).expect(4);
    assert!(stall.comments().is_empty());
}

#[test]
fn the_target_s_own_branch_is_never_pushed_to() {
    let stall = Stall::with("branch = \"{id}\"\n", "");
    stall.meeting.accepted("main", "a.txt", "a\n");
    let refused = stall.publish(&["main"]).expect(2);
    assert!(
        refused.err.contains("would be pushed to `main`, the branch that it is meant for"),
        "{}",
        refused.err
    );
    assert_eq!(stall.asked("pr list"), 0);
}

#[test]
fn a_driver_at_work_does_not_keep_a_change_from_being_published() {
    let stall = Stall::with_one();
    let lock = stall.meeting.scene.workspace.path().join(".pdca/driver.lock");
    let _lock = pdca_process::FileLock::wait(&lock, "").unwrap();
    stall.publish(&["7"]).expect(0);
}

#[test]
fn commands_of_the_project_may_keep_the_comments() {
    let commands = r#"comments = "command"
comment_cmd = 'cat >> "talk-$PDCA_ISSUE.txt"; exit "$(cat comment-exit 2>/dev/null || echo 0)"'
list_cmd = 'cat "talk-$PDCA_ISSUE.txt" 2>/dev/null || true'
"#;
    let stall = Stall::with(commands, "");
    stall.meeting.accepted("PROJ-9", "a.txt", "a\n");
    // It is posted, and the answer is lost.
    stall.meeting.scene.workspace.write("comment-exit", "1\n");
    stall.publish(&["PROJ-9"]).expect(0);
    let said = stall.meeting.scene.workspace.read("talk-PROJ-9.txt");
    assert_eq!(said.matches("pdca-key: ").count(), 1, "{said}");
    fs_err::remove_file(stall.meeting.scene.workspace.bundle("PROJ-9").join("publish.json"))
        .unwrap();
    stall.publish(&["PROJ-9"]).expect(0);
    assert_eq!(stall.meeting.scene.workspace.read("talk-PROJ-9.txt"), said);
    assert_eq!(stall.asked("issue comment"), 0);
}

#[test]
fn an_id_that_is_no_issue_of_the_forge_gets_no_comment_and_that_is_told() {
    let stall = Stall::new();
    stall.meeting.accepted("a.b+c", "a.txt", "a\n");
    let done = stall.publish(&["a.b+c"]).expect(0);
    assert!(done.out.contains("none: a.b+c is no number of an issue"), "{}", done.out);
    assert!(stall.branch("pdca/a.b+c").is_some());
    assert_eq!(stall.asked("issue view"), 0);
    stall.publish(&["a.b+c"]).expect(4);
}

#[test]
fn what_has_landed_is_not_shown_any_more() {
    let stall = Stall::with("", "[integrate]\nland = \"target\"\n");
    stall.meeting.accepted("7", "a.txt", "a\n");
    stall.meeting.integrate(&["7"]).expect(0);
    let said = stall.publish(&["7"]).expect(4);
    assert!(said.err.contains("7 is in main already, as "), "{}", said.err);
    assert_eq!(stall.branch("pdca/7"), None);
}

#[test]
fn a_pull_request_that_was_merged_and_fetched_is_known_as_landed() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    // The objects are here already, so fetching moves the branch and nothing else.
    let commit = stall.branch("pdca/7").unwrap();
    stall.meeting.scene.repo.git(&["update-ref", "refs/heads/main", &commit]);
    stall.change_pull(1, |pull| pull["state"] = json!("MERGED"));
    stall.meeting.integrate(&[]).expect(4);
    let done = stall.publish(&["7", "--json"]).expect(4).json();
    assert_eq!(done["published"][0]["pull_request"]["state"], "merged");
}

#[test]
fn of_several_pull_requests_of_ours_an_open_one_counts() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let first = stall.pulls()[0].clone();
    let mut second = first.clone();
    second["number"] = json!(2);
    second["url"] = json!("https://forge.example/team/app/pull/2");
    stall.put_pull(2, &second);
    stall.change_pull(1, |pull| pull["state"] = json!("CLOSED"));
    let done = stall.publish(&["7", "--json"]).json();
    assert_eq!(done["published"][0]["pull_request"]["number"], 2);
}

#[test]
fn a_bundle_that_cannot_be_read_keeps_no_other_from_being_published() {
    let stall = Stall::with_one();
    stall.meeting.accepted("8", "b.txt", "b\n");
    let brief = stall.read("8", "brief.md");
    stall.write("8", "brief.md", &brief.replace("team/app @ main", "team/other @ main"));
    stall.publish(&["7"]).expect(0);
    let refused = stall.publish(&["8"]).expect(2);
    assert!(refused.err.contains("cannot determine the target of 8"), "{}", refused.err);
}
