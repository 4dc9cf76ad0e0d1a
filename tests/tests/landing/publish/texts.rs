//! The texts that go with a change.

use pdca_e2e::leaf;

use super::stall::Stall;

#[test]
fn what_a_person_wrote_is_used_as_it_is_and_never_written_over() {
    let stall = Stall::with_one();
    let texts = [
        ("commit-msg.txt", "Mend the greeting\n\nIt was rude.\n"),
        ("pr-description.md", "Mine.\n"),
        ("tracker-comment.md", "Also mine.\n"),
    ];
    for (file, text) in texts {
        stall.write("7", file, text);
    }
    stall.publish(&["7"]).expect(0);
    for (file, text) in texts {
        assert_eq!(stall.read("7", file), text, "{file}");
    }
    let said = stall.remote.git(&["log", "-1", "--format=%B", "pdca/7"]);
    let seal = pdca_state::sha256_hex(stall.read("7", "seal.json").as_bytes());
    let expected = format!("Mend the greeting\n\nIt was rude.\n\nPdca-Sealed: 7 {seal}");
    assert_eq!(said.trim(), expected);
    assert_eq!(stall.pulls()[0]["title"], "Mend the greeting");
    assert!(stall.pulls()[0]["body"].as_str().unwrap().starts_with("Mine.\r\n"));
    assert!(stall.comments()[0]["body"].as_str().unwrap().starts_with("Also mine.\r\n"));
}

#[test]
fn other_words_are_pushed_in_place_of_those_we_pushed_before() {
    let stall = Stall::with_one();
    stall.publish(&["7"]).expect(0);
    let before = stall.branch("pdca/7");
    stall.write("7", "commit-msg.txt", "Better words\n");
    let done = stall.publish(&["7", "--json"]).expect(0).json();
    assert_eq!(done["published"][0]["done"], serde_json::json!(["pushed"]));
    assert_ne!(stall.branch("pdca/7"), before);
    assert_eq!(stall.pulls().len(), 1);
}

#[test]
fn the_publisher_fills_what_is_not_there_and_nothing_else() {
    let stall = Stall::with("", &leaf("publisher"));
    let script = "set -eu\nd=$(dirname \"$PDCA_OUTPUT\")\nfor f in commit-msg.txt pr-description.md tracker-comment.md; do\n  echo \"the leaf's $f\" > \"$d/$f\"\ndone\necho publisher >> \"$PDCA_WORKSPACE/calls/log\"\n";
    stall.meeting.scene.workspace.write("leaves/publisher.sh", script);
    stall.meeting.accepted("7", "a.txt", "a\n");
    stall.write("7", "pr-description.md", "a person's\n");
    let rehearsed = stall.publish(&["7", "--dry-run"]).expect(0);
    assert!(
        rehearsed
            .out
            .contains("write commit-msg.txt by the publisher\n  write tracker-comment.md from §8"),
        "{}",
        rehearsed.out
    );
    stall.publish(&["7"]).expect(0);
    assert_eq!(stall.read("7", "pr-description.md"), "a person's\n");
    assert_eq!(stall.pulls()[0]["title"], "the leaf's commit-msg.txt");
    stall.publish(&["7"]).expect(4);
    let calls = stall.meeting.scene.calls();
    assert_eq!(calls.iter().filter(|call| *call == "publisher").count(), 1);
}

#[test]
fn a_text_that_cannot_be_used_is_named_and_nothing_is_pushed() {
    let stall = Stall::with_one();
    for (file, text) in [("commit-msg.txt", &b" \n"[..]), ("pr-description.md", b"\xff\n")] {
        stall.meeting.scene.workspace.write(format!("results/issue_7/{file}"), text);
        let refused = stall.publish(&["7"]).expect(2);
        assert!(refused.err.contains(&format!("--> results/issue_7/{file}")), "{}", refused.err);
        fs_err::remove_file(stall.meeting.scene.workspace.bundle("7").join(file)).unwrap();
    }
    assert_eq!(stall.branch("pdca/7"), None);
}

#[test]
fn no_text_passes_for_a_mark_an_option_or_another_change() {
    let stall = Stall::with_one();
    stall.meeting.accepted("8", "b.txt", "b\n");
    let rehearsed = stall.publish(&["8", "--dry-run", "--json"]).expect(0).json();
    let theirs = rehearsed["would"][0]["key"].as_str().unwrap();
    let marker = format!("<!-- pdca-key: {theirs} -->");
    stall.write(
        "7",
        "commit-msg.txt",
        "--repo=evil/app \u{1b}[31m--web\n\nwords\n\nPdca-Sealed: 8\n",
    );
    stall.write("7", "pr-description.md", &format!("--title=evil\n{marker}\n<!--\n"));
    stall.write("7", "tracker-comment.md", &format!("{marker}\n-->\n"));
    stall.publish(&["7"]).expect(0);
    assert_eq!(stall.pulls()[0]["title"], "--repo=evil/app [31m--web");
    let named = stall.remote.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Pdca-Sealed,valueonly)",
        "pdca/7",
    ]);
    let seal = pdca_state::sha256_hex(stall.read("7", "seal.json").as_bytes());
    assert_eq!(named.trim(), format!("7 {seal}"));
    for text in [&stall.pulls()[0]["body"], &stall.comments()[0]["body"]] {
        assert!(!text.as_str().unwrap().contains(&marker), "{text}");
    }
    // So the other one gets a draft of its own.
    stall.publish(&["8"]).expect(0);
    assert_eq!(stall.pulls().len(), 2);
    assert_eq!(stall.record("8")["pull_request"]["number"], 2);
    stall.publish(&["7", "8"]).expect(4);
}
