//! Changes that stand on each other become pull requests that do; and nothing goes out that is not of a change.

use super::stall::Stall;

/// Two bundles of one file: 8 is built on 7, which is accepted.
fn stacked(publish: &str) -> Stall {
    let stall = Stall::with(publish, "");
    stall.meeting.accepted("7", "a.txt", "a\n");
    stall.meeting.waiting("8", &[("Depends on", "7")], &[("a.txt", "a\nb\n")]);
    stall.meeting.scene.accept("8");
    let seal = stall.meeting.seal("8");
    assert_eq!(seal["stands_on"][0]["id"], "7", "{seal}");
    stall
}

#[test]
fn each_pull_request_shows_its_own_change_and_the_next_one_is_retargeted() {
    let stall = stacked("merge = true\n");
    // Asked for in the wrong order.
    let done = stall.publish(&["8", "7", "--json"]).expect(0).json();
    let ids: Vec<&str> = done["published"]
        .as_array()
        .expect("the scene has it")
        .iter()
        .map(|one| one["id"].as_str().expect("the scene has it"))
        .collect();
    assert_eq!(ids, ["7", "8"]);
    let upper = &done["published"][1]["pull_request"];
    assert_eq!((&upper["base"], &upper["stands_on"]), (&"pdca/7".into(), &"7".into()));
    let pulls = stall.pulls();
    assert_eq!(
        (&pulls[0]["baseRefName"], &pulls[1]["baseRefName"]),
        (&"main".into(), &"pdca/7".into())
    );
    let body = pulls[1]["body"].as_str().expect("the scene has it");
    assert!(
        body.contains(
            "Stands on https://forge.example/team/app/pull/1 (`7`), which is to be merged first."
        ),
        "{body}"
    );
    // Its branch is one commit on that of the other, with exactly the sealed files.
    let log = stall.remote.git(&["log", "--format=%s", "pdca/7..pdca/8"]);
    assert_eq!(log.lines().count(), 1, "{log}");
    let files = stall.remote.git(&["diff", "--stat", "--format=", "pdca/7...pdca/8"]);
    assert!(files.contains("1 insertion"), "{files}");
    let tree = stall.remote.git(&["rev-parse", "pdca/8^{tree}"]);
    assert_eq!(stall.meeting.seal("8")["tree"], tree.trim());
    stall.publish(&["7", "8"]).expect(4);

    // The upper one waits for the lower one, and is retargeted when that is merged.
    let waits = stall.publish(&["8", "--ready"]).expect(3);
    assert!(waits.out.contains("it stands on 7, which is not merged yet"), "{}", waits.out);
    stall.publish(&["7", "--ready"]).expect(0);
    assert_eq!(stall.pulls()[0]["state"], "MERGED");
    let last = stall.publish(&["8", "--ready", "--json"]).expect(0).json();
    let item = &last["published"][0];
    assert_eq!(item["done"], serde_json::json!(["retargeted", "merged"]));
    assert_eq!(item["pull_request"]["base"], "main");
    assert_eq!(stall.remote.git(&["show", "main:a.txt"]), "a\nb\n");
    assert_eq!(stall.asked("pr create"), 2);
}

#[test]
fn killed_at_any_effect_of_a_stack_the_same_command_comes_to_the_same() {
    let stall = stacked("");
    stall.publish(&["7"]).expect(0);
    let forge =
        fs_err::read_to_string(stall.forge().join("pulls/0001.json")).expect("the scene has it");
    stall.publish(&["8"]).expect(0);
    let (record, commit) = (stall.record("8"), stall.branch("pdca/8"));
    let mut killed = 0;
    for point in (1..100).step_by(2) {
        stall.take_back("8");
        fs_err::create_dir_all(stall.forge().join("pulls")).expect("the scene has it");
        fs_err::write(stall.forge().join("pulls/0001.json"), &forge).expect("the scene has it");
        let first = stall.killed_at(&format!("@{point}"), &["8"]);
        if first.code == 0 {
            break;
        }
        killed += 1;
        let second = stall.publish(&["8"]);
        assert!([0, 4].contains(&second.code), "point {point}: {} {}", second.code, second.err);
        assert_eq!((stall.record("8"), stall.branch("pdca/8")), (record.clone(), commit.clone()));
        assert_eq!(stall.pulls().len(), 2, "point {point}");
    }
    assert!(killed >= 8, "only {killed} points");
}

#[test]
fn a_change_below_that_is_not_out_is_named_and_not_sent_along_unasked() {
    let stall = stacked("");
    let refused = stall.publish(&["8"]).expect(3);
    assert!(
        refused.err.contains("1 other commit that origin lacks would be pushed with 8"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("`pdca publish 7 8` makes a stack"), "{}", refused.err);
    assert!(stall.branch("pdca/8").is_none() && stall.pulls().is_empty());
    stall.publish(&["8", "--include-base"]).expect(0);
    let body = stall.pulls()[0]["body"].as_str().expect("the scene has it").to_owned();
    assert!(
        body.contains("Stands on `7`, whose commits it contains until they are merged."),
        "{body}"
    );
}

#[test]
fn commits_of_the_branch_that_the_remote_lacks_are_not_pushed_unasked() {
    let stall = Stall::new();
    stall.meeting.commit_to_main("private.txt", "not for others\n");
    stall.meeting.accepted("7", "a.txt", "a\n");
    let before = stall.meeting.scene.results();
    for more in [&["7"][..], &["7", "--dry-run"]] {
        let refused = stall.publish(more).expect(3);
        assert!(refused.err.contains("somebody else"), "the commit is named: {}", refused.err);
        assert!(refused.err.contains("push the branch to origin first"), "{}", refused.err);
    }
    assert_eq!(stall.meeting.scene.results(), before);
    assert_eq!((stall.branch("pdca/7"), stall.pulls().len()), (None, 0));
    let done = stall.publish(&["7", "--include-base"]).expect(0);
    assert!(done.err.contains("because origin lacks them"), "{}", done.err);
    assert!(stall.branch("pdca/7").is_some());
    // What is out is out; it is not asked about again.
    stall.publish(&["7"]).expect(4);
}

#[test]
fn a_remote_that_is_ahead_is_no_reason_to_refuse() {
    let stall = Stall::with_one();
    let tree = stall.remote.git(&["rev-parse", "main^{tree}"]);
    let new = stall.remote.git(&["commit-tree", tree.trim(), "-p", "main", "-m", "elsewhere"]);
    stall.remote.git(&["update-ref", "refs/heads/main", new.trim()]);
    stall.publish(&["7"]).expect(0);
}
