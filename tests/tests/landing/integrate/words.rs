//! What a builder says, moves or holds decides nothing: messages, links, dates and locks.

use crate::meeting::Meeting;

const TARGET: &str = "[integrate]\nland = \"target\"\n";

/// The builder does what `todo/<id>.sh` says, or else what lies ready for it.
const BUILDER: &str = r#"
if [ -e "$PDCA_WORKSPACE/todo/$1.sh" ]; then . "$PDCA_WORKSPACE/todo/$1.sh"; else cp -R "$PDCA_WORKSPACE/todo/$1/." .; fi
"#;

fn meeting(more: &str) -> Meeting {
    let meeting = Meeting::with("true", &format!("{TARGET}{more}"));
    meeting.scene.script("builder", BUILDER);
    meeting
}

/// Builds and checks a bundle whose builder runs this script in its checkout.
fn does(meeting: &Meeting, id: &str, script: &str) {
    meeting.scene.workspace.write(format!("todo/{id}.sh"), script);
    meeting.scene.brief(id, &[]);
    meeting.pdca(&["run", id]).expect(0);
}

fn standing(meeting: &Meeting, id: &str) -> String {
    let status = meeting.pdca(&["--json", "status"]).expect(0).json();
    let rows = status["bundles"].as_array().expect("there are bundles").clone();
    let row = rows.iter().find(|row| row["id"] == id).expect("it is there");
    row["integration"].as_str().unwrap_or_default().to_owned()
}

fn is_in_main(meeting: &Meeting, file: &str) -> bool {
    meeting.scene.repo.try_git(&["cat-file", "-e", &format!("main:{file}")]).status.success()
}

#[test]
fn a_message_that_claims_another_change_does_not_keep_it_from_landing() {
    for strategy in ["rebase-ff", "merge-commit"] {
        let meeting = meeting(&format!("strategy = \"{strategy}\"\n"));
        meeting.accepted("2", "two.txt", "two\n");
        let seal = meeting.scene.workspace.read("results/issue_2/seal.json");
        let digest = pdca_state::sha256_hex(seal.as_bytes());
        let commit = format!(
            "echo three > three.txt; git add -A; git commit -q -m three -m ' pdca-sealed : 2 {digest}'\n\
             echo more > more.txt; git add -A; git commit -q -m more -m 'Pdca-Sealed: 2 {digest}'\n"
        );
        does(&meeting, "3", &commit);
        meeting.scene.accept("3");
        meeting.integrate(&["3"]).expect(0);
        assert_eq!(standing(&meeting, "3"), "landed", "{strategy}");
        assert_eq!(standing(&meeting, "2"), "sealed", "{strategy}");
        meeting.integrate(&[]).expect(0);
        assert_eq!(standing(&meeting, "2"), "landed", "{strategy}");
        assert!(is_in_main(&meeting, "two.txt"), "{strategy}");
        meeting.pdca(&["verify"]).expect(0);
    }
}

#[test]
fn a_sentence_about_a_revert_takes_nothing_back_and_a_revert_does() {
    let meeting = meeting("");
    meeting.accepted("2", "two.txt", "two\n");
    meeting.integrate(&[]).expect(0);
    let landed = meeting.at("main");
    let commit = format!(
        "echo three > three.txt; git add -A; git commit -q -m three -m 'This reverts commit {landed}.'"
    );
    does(&meeting, "3", &commit);
    meeting.scene.accept("3");
    meeting.integrate(&[]).expect(0);
    assert_eq!(standing(&meeting, "2"), "landed");
    meeting.waiting("4", &[("Depends on", "2")], &[("four.txt", "four\n")]);
    meeting.scene.accept("4");
    meeting.integrate(&[]).expect(0);
    assert_eq!(standing(&meeting, "4"), "landed");
    let elsewhere = meeting.scene.workspace.around().join("elsewhere");
    let repo = &meeting.scene.repo;
    repo.git(&["worktree", "add", "--quiet", "--detach", elsewhere.as_str(), "main"]);
    let other = pdca_testkit::Repo::existing(&elsewhere);
    other.git(&["revert", "--no-edit", "HEAD"]);
    let new = other.head();
    repo.git(&["worktree", "remove", "--force", elsewhere.as_str()]);
    repo.git(&["update-ref", "refs/heads/main", new.trim()]);
    assert_eq!(standing(&meeting, "4"), "reverted");
    assert_eq!(standing(&meeting, "2"), "landed");
}

#[test]
fn a_renamed_link_that_comes_to_lead_out_of_the_tree_does_not_land() {
    let meeting = meeting("");
    does(
        &meeting,
        "1",
        "mkdir -p d/e/f; ln -s ../../../greeting.txt d/e/f/link; ln -s ../../../greeting.txt d/e/f/other",
    );
    meeting.scene.accept("1");
    meeting.integrate(&[]).expect(0);
    let renamed = |id: &str, from: &str, to: &str| {
        meeting.scene.brief(id, &[]);
        let patch = format!(
            "diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"
        );
        meeting.scene.workspace.write(format!("results/issue_{id}/patch.diff"), patch);
        meeting.pdca(&["run", id])
    };
    // Refused by Check already, which comes before anybody is asked.
    let refused = renamed("2", "d/e/f/link", "link");
    assert_ne!(refused.code, 0);
    let fault = r#"the link "link" to "../../../greeting.txt" leaves the tree"#;
    assert!(refused.err.contains(fault), "{}", refused.err);
    assert_ne!(meeting.pdca(&["signoff", "2", "accept"]).code, 0);
    renamed("3", "d/e/f/other", "d/e/g/other").expect(0);
    meeting.scene.accept("3");
    meeting.integrate(&[]).expect(0);
    assert!(is_in_main(&meeting, "d/e/g/other") && !is_in_main(&meeting, "link"));
}

#[test]
fn no_commit_has_a_date_before_1970_and_a_strict_remote_takes_every_ref() {
    let meeting = meeting("");
    meeting.scene.workspace.write("todo/1/one.txt", "one\n");
    meeting.scene.brief("1", &[]);
    let early = [("SOURCE_DATE_EPOCH", "-1")];
    let refused = meeting.scene.pdca_with(&early, &["run", "1"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("SOURCE_DATE_EPOCH is `-1`"), "{}", refused.err);
    meeting.pdca(&["run", "1"]).expect(0);
    meeting.scene.accept("1");
    // A builder writes its own commits, with any date that git can be made to write.
    let early = "echo two > two.txt; git add -A\n\
        printf 'tree %s\\nparent %s\\nauthor A <a@b> -5 +0000\\ncommitter A <a@b> -5 +0000\\n\\ntwo\\n' \
        \"$(git write-tree)\" \"$(git rev-parse HEAD)\" > ../commit\n\
        git reset -q --soft \"$(git hash-object -t commit -w --literally ../commit)\"; rm ../commit\n";
    does(&meeting, "2", &early.replace("../commit", "\"$TMPDIR/commit\""));
    meeting.scene.accept("2");
    meeting.integrate(&[]).expect(0);
    assert!(is_in_main(&meeting, "one.txt") && is_in_main(&meeting, "two.txt"));
    let strict = meeting.scene.workspace.around().join("strict.git");
    let repo = &meeting.scene.repo;
    repo.git(&["init", "--quiet", "--bare", strict.as_str()]);
    pdca_testkit::Repo::existing(&strict).git(&["config", "receive.fsckObjects", "true"]);
    repo.git(&["push", "--quiet", strict.as_str(), "refs/*:refs/*"]);
}

#[test]
fn a_builder_that_locks_every_file_it_can_read_keeps_nothing_away() {
    let meeting = meeting("");
    for id in ["1", "2"] {
        meeting.waiting(id, &[], &[(&format!("{id}.txt"), "x\n")]);
    }
    meeting.scene.accept("1");
    let repo = meeting.scene.repo.path();
    let script = format!(
        "find \"$PDCA_WORKSPACE\" \"$PDCA_WORKSPACE.lanes\" '{repo}/.git' -type f \\( -name '*lock*' -o -name '*.json' -o -name '*.toml' \\) 2>/dev/null |\n\
         while read -r f; do flock -n \"$f\" sh -c 'until test -e \"$PDCA_WORKSPACE/go\"; do sleep 0.1; done' & done\n\
         touch \"$PDCA_WORKSPACE/calls/at-3\"\n\
         until test -e \"$PDCA_WORKSPACE/go\"; do sleep 0.1; done\n\
         echo three > three.txt\n"
    );
    meeting.scene.workspace.write("todo/3.sh", script);
    meeting.scene.brief("3", &[]);
    let builder = meeting.scene.start(&["run", "3"]);
    meeting.scene.wait_until("the builder works", |scene| scene.workspace.has("calls/at-3"));
    meeting.scene.accept("2");
    meeting.integrate(&["1"]).expect(0);
    assert_eq!(standing(&meeting, "1"), "landed");
    meeting.scene.workspace.write("go", "");
    assert_eq!(builder.wait(), 0);
}
