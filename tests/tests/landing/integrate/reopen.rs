//! Sends accepted changes that have not landed back into the cycle; every state has a next command.

use pdca_e2e::{Ran, copy_tree};
use rustix::process::Signal;
use serde_json::Value;

use crate::meeting::Meeting;

/// Red where both are there.
const PAIR: &str =
    "! { test -e rule.txt && test -e breaks.txt; } || { echo 'test_rule failed'; false; }";
const TARGET: &str = "[integrate]\nland = \"target\"\n";

/// 71 lands, and 72 is held because it is red with it.
fn held_pair(more: &str) -> Meeting {
    let scene = Meeting::with(PAIR, more);
    scene.accepted("71", "rule.txt", "rule\n");
    scene.accepted("72", "breaks.txt", "breaks\n");
    scene.integrate(&[]).expect(101);
    scene
}

/// The next attempt of a bundle writes this file alone.
fn will_write(scene: &Meeting, id: &str, file: &str) {
    let todo = scene.scene.workspace.path().join("todo").join(id);
    fs_err::remove_dir_all(todo).expect("there is something to do");
    scene.scene.workspace.write(format!("todo/{id}/{file}"), "text\n");
}

fn read(scene: &Meeting, file: &str) -> String {
    scene.scene.workspace.read(file)
}

fn row(scene: &Meeting, id: &str) -> Value {
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().expect("status lists bundles").clone();
    rows.into_iter().find(|row| row["id"] == id).expect("the bundle is listed")
}

fn standing(scene: &Meeting, id: &str) -> String {
    row(scene, id)["integration"].as_str().unwrap_or_default().to_owned()
}

/// Returns the next command of `why`, `status` and `status <id>`, which must be the same.
fn next(scene: &Meeting, id: &str) -> String {
    let why = scene.pdca(&["why", id, "--json"]).expect(0).json();
    let detail = scene.pdca(&["status", id, "--json"]).expect(0).json();
    assert_eq!(why["next"], row(scene, id)["next"], "{why}");
    assert_eq!(why["next"], detail["next"], "{why}");
    let text = scene.pdca(&["why", id]).expect(0).out;
    let next = why["next"].as_str().unwrap_or_else(|| panic!("{id} has no next: {why}"));
    assert!(text.contains(&format!("next: {next}")), "{text}");
    next.to_owned()
}

/// Types what comes next for a bundle.
fn go_on(scene: &Meeting, id: &str) -> Ran {
    let next = next(scene, id);
    let ran = scene.scene.paste(&next);
    assert!([0, 3].contains(&ran.code), "{next}: {ran:?}");
    ran
}

#[test]
fn a_held_change_is_reopened_knows_note_partner_rows_and_log_and_lands_once_it_is_mended() {
    let scene = held_pair(TARGET);
    let old = scene.seal("72");
    assert_eq!(standing(&scene, "72"), "held");
    assert_eq!(next(&scene, "72"), "pdca reopen 72");
    let last = scene.pdca(&[]).expect(0).out.lines().last().unwrap().to_owned();
    assert!(
        last.starts_with("next: pdca reopen 72   # 72 breaks T3-tests only together"),
        "{last}"
    );
    let told = scene.pdca(&["reopen", "72", "--note", "obey the rule", "--json"]).expect(0).json();
    assert_eq!((&told["state"], &told["held"]), (&"PLANNED".into(), &"red".into()), "{told}");
    assert_eq!((&told["partners"][0], &told["next"]), (&"71".into(), &"pdca run 72".into()));
    let brief = read(&scene, "results/issue_72/brief.md");
    for said in [
        "> obey the rule",
        "72 breaks T3-tests only together with 71",
        "71: a-slug, the thing is wrong; its change is in `partner-71.diff`",
        "red: T3-tests: ",
        "log: ",
    ] {
        assert!(brief.contains(said), "{said}: {brief}");
    }
    let log = brief.lines().find_map(|line| line.split_once("log: ")).expect("a log is named").1;
    assert!(read(&scene, log).contains("test_rule failed"), "{log}");
    // The seal lies with the attempt, and in git.
    assert!(!scene.scene.workspace.has("results/issue_72/seal.json"));
    let archived: Value =
        serde_json::from_str(&read(&scene, "results/issue_72/iteration-v1/seal.json")).unwrap();
    assert_eq!(archived, old);
    assert_eq!(scene.scene.repo.git(&["for-each-ref", "refs/pdca/*/seal/72"]).lines().count(), 1);
    scene.integrate(&[]).expect(4);
    will_write(&scene, "72", "obeys.txt");
    scene.pdca(&["run", "72"]).expect(0);
    let seen = read(&scene, "calls/view-72/partner-71.diff");
    assert!(seen.contains("+++ b/rule.txt"), "{seen}");
    scene.scene.accept("72");
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|72", "a slug|71", "first|"]);
    let files = scene.scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert_eq!(files, "greeting.txt\nobeys.txt\nrule.txt\n");
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_conflict_that_nobody_resolves_is_reopened_with_its_files_and_partner() {
    let scene = Meeting::with("true", TARGET);
    scene.accepted("1", "greeting.txt", "one\n");
    scene.accepted("2", "greeting.txt", "two\n");
    scene.integrate(&[]).expect(102);
    assert_eq!(next(&scene, "2"), "pdca reopen 2");
    go_on(&scene, "2");
    let brief = read(&scene, "results/issue_2/brief.md");
    assert!(brief.contains("- 2 conflicts with 1 in greeting.txt:1"), "{brief}");
    assert!(brief.contains("- conflict: greeting.txt:1"), "{brief}");
    assert!(read(&scene, "results/issue_2/iteration-v1/partner-1.diff").contains("+one"));
    // Built upon what landed, it fits.
    scene.pdca(&["run", "2"]).expect(0);
    scene.scene.accept("2");
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.scene.repo.git(&["show", "main:greeting.txt"]), "two\n");
}

#[test]
fn a_held_change_can_be_planned_again_or_given_up() {
    let scene = held_pair(TARGET);
    scene.pdca(&["signoff", "72", "discontinue"]).expect(2);
    assert_eq!(standing(&scene, "72"), "held", "a refusal changes nothing");
    scene.pdca(&["signoff", "72", "discontinue", "--note", "not worth it"]).expect(0);
    assert_eq!(scene.scene.state("72"), "DISCONTINUED");
    let summary = read(&scene, "results/issue_72/SUMMARY.md");
    assert!(summary.contains("not worth it (accepted before, by ada / "), "{summary}");
    scene.integrate(&[]).expect(4);
    scene.pdca(&["reopen", "72"]).expect(2);

    let scene = held_pair(TARGET);
    let told = scene.pdca(&["signoff", "72", "iterate-plan", "--note", "another way"]).expect(0);
    assert!(told.out.contains("next: pdca new 72"), "{}", told.out);
    assert_eq!(scene.scene.state("72"), "UNPLANNED");
    scene.scene.paste("pdca new 72").expect(0);
    let brief = read(&scene, "results/issue_72/brief.md");
    assert!(brief.contains("another way") && brief.contains("only together with 71"), "{brief}");
}

#[test]
fn what_was_accepted_and_never_held_needs_a_note_and_what_landed_stays() {
    let scene = Meeting::with("true", TARGET);
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let before = scene.scene.results();
    let refused = scene.pdca(&["reopen", "1"]).expect(2);
    assert!(refused.err.contains("--note"), "{}", refused.err);
    let dry = scene.pdca(&["reopen", "1", "--note", "too soon", "--dry-run"]).expect(0);
    assert!(dry.out.contains("would record iterated-to-Do"), "{}", dry.out);
    assert_eq!(scene.scene.results(), before);
    scene.pdca(&["reopen", "1", "--note", "too soon"]).expect(0);
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|2", "first|"], "1 is not accepted any more");
    let before = scene.scene.results();
    for args in [
        &["reopen", "2", "--note", "x"][..],
        &["signoff", "2", "iterate-do", "--note", "x"],
        &["signoff", "2", "iterate-plan", "--note", "x"],
        &["signoff", "2", "discontinue", "--note", "x"],
    ] {
        let refused = scene.pdca(args).expect(2);
        assert!(refused.err.contains("2 has landed in main as "), "{}", refused.err);
        assert!(refused.err.contains("pdca new 2-follow-up"), "{}", refused.err);
    }
    let refused = scene.pdca(&["reopen", "1", "--note", "again"]).expect(2);
    assert!(refused.err.contains("1 is PLANNED"), "{}", refused.err);
    assert_eq!(scene.scene.results(), before);
}

#[test]
fn nobody_reopens_what_an_integration_is_at_or_somebody_has() {
    let gate = "if [ -e a.txt ]; then touch \"$PDCA_WORKSPACE/calls/at\"; \
                while [ ! -e \"$PDCA_WORKSPACE/go\" ]; do sleep 0.02; done; fi";
    let scene = Meeting::with(gate, TARGET);
    scene.scene.workspace.write("go", "");
    scene.accepted("1", "a.txt", "a\n");
    fs_err::remove_file(scene.scene.workspace.path().join("go")).unwrap();
    fs_err::remove_file(scene.scene.workspace.path().join("calls/at")).unwrap();
    fs_err::remove_dir_all(scene.scene.workspace.path().join(".pdca/verdicts")).ok();
    let before = scene.scene.results();
    let started = scene.scene.start(&["integrate"]);
    scene.scene.wait_until("the gate waits", |scene| scene.workspace.has("calls/at"));
    let refused = scene.pdca(&["reopen", "1", "--note", "wait"]).expect(2);
    assert!(refused.err.contains("held by process"), "{}", refused.err);
    assert_eq!(scene.scene.results(), before);
    scene.scene.workspace.write("go", "");
    assert_eq!(started.wait(), 0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);

    scene.accepted("2", "b.txt", "b\n");
    let args = ["reopen", "2", "--note", "first"];
    let stopped = scene.scene.start_with(&[("PDCA_STOP_AT", "archive-begin")], &args);
    scene.scene.wait_until("somebody has it", |_| stopped.is_stopped());
    let refused = scene.pdca(&["reopen", "2", "--note", "second"]).expect(2);
    assert!(refused.err.contains("held by process"), "{}", refused.err);
    stopped.signal(Signal::CONT);
    assert_eq!(stopped.wait(), 0);
    assert!(read(&scene, "results/issue_2/brief.md").contains("> first"));
}

#[test]
fn a_staged_change_that_is_reopened_is_left_out_of_what_is_merged() {
    let scene = Meeting::new("true");
    for (id, file) in [("1", "a.txt"), ("2", "b.txt"), ("3", "c.txt")] {
        scene.accepted(id, file, "text\n");
    }
    let first = scene.integrate(&["--json"]).expect(0).json();
    let old = first["references"][0].as_str().unwrap().to_owned();
    let told = scene.pdca(&["reopen", "2", "--note", "too soon"]).expect(0);
    let short = old.trim_start_matches("refs/heads/");
    assert!(told.err.contains(&format!("{short} still has it")), "{}", told.err);
    assert_eq!(standing(&scene, "1"), "sealed", "that branch is not one to merge");
    let second = scene.integrate(&["--json"]).expect(0).json();
    let new = second["references"][0].as_str().unwrap().to_owned();
    assert_eq!(new, old, "one lasting name, folded anew");
    assert_eq!(scene.log(&new), ["a slug|3", "a slug|1", "first|"]);
    // Built and accepted anew, it goes on from there; the old branch does not count for it.
    will_write(&scene, "2", "other.txt");
    scene.pdca(&["run", "2"]).expect(0);
    scene.scene.accept("2");
    assert_eq!(standing(&scene, "2"), "sealed");
    scene.integrate(&[]).expect(0);
    assert_eq!(standing(&scene, "2"), "staged");
    go_on(&scene, "2");
    assert_eq!(standing(&scene, "2"), "landed");
    let files = scene.scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert_eq!(files, "a.txt\nc.txt\ngreeting.txt\nother.txt\n");
}

#[test]
fn killed_at_any_effect_of_a_reopening_whoever_comes_next_finishes_it_with_the_same_files() {
    let scene = held_pair(TARGET);
    let bundle = scene.scene.workspace.path().join("results/issue_72");
    let kept = scene.scene.workspace.path().join("kept");
    copy_tree(&bundle, &kept);
    let reopen = ["reopen", "72", "--note", "obey"];
    let back = || {
        fs_err::remove_dir_all(&bundle).unwrap();
        copy_tree(&kept, &bundle);
        drop(fs_err::remove_dir_all(scene.scene.workspace.path().join(".pdca/attempts")));
    };
    scene.pdca(&reopen).expect(0);
    scene.pdca(&["run", "72"]).expect(100);
    let whole = scene.scene.results();
    assert!(whole.contains_key("issue_72/iteration-v1/returned.json"));
    let mut killed = 0;
    for point in 1..100 {
        back();
        let at = format!("@{point}");
        let ran = scene.scene.pdca_with(&[("PDCA_CRASH_AT", &at)], &reopen);
        if ran.code == 0 {
            break;
        }
        assert_eq!(ran.code, 128 + 9, "point {point}: {} {}", ran.out, ran.err);
        killed += 1;
        // Before the first effect it is accepted as before, and reopened by the same command.
        if scene.scene.state("72") == "COMPLETE" {
            assert_eq!(standing(&scene, "72"), "held", "point {point}");
            scene.pdca(&reopen).expect(0);
        }
        scene.pdca(&["run", "72"]).expect(100);
        assert_eq!(scene.scene.results(), whole, "point {point}");
    }
    assert!(killed > 15, "only {killed} points");
}

#[test]
fn with_auto_a_culprit_goes_back_by_itself_twice_and_then_waits_for_a_person() {
    // Each attempt meets a rule that was accepted before it and that it could not know.
    let gate = "for n in 1 2 3; do ! { test -e rule$n && test -e breaks$n; } || exit 1; done";
    let scene = Meeting::with(gate, &format!("{TARGET}return_culprits = \"auto\"\n"));
    scene.waiting("72", &[], &[("breaks1", "text\n")]);
    for attempt in 1..=3 {
        scene.accepted(&format!("8{attempt}"), &format!("rule{attempt}"), "text\n");
        scene.scene.accept("72");
        let done = scene.integrate(&["--json"]).expect(101).json();
        let partner = &done["held"][0]["partners"][0];
        assert_eq!(partner, &Value::from(format!("8{attempt}")), "{done}");
        if attempt == 3 {
            assert_eq!(done["returned"], Value::Array(Vec::new()), "{done}");
            break;
        }
        assert_eq!(done["returned"][0]["id"], "72", "{done}");
        assert_eq!(done["held"][0]["next"], "pdca run 72", "{done}");
        assert_eq!(scene.scene.state("72"), "PLANNED");
        let record = read(&scene, &format!("results/issue_72/iteration-v{attempt}/returned.json"));
        assert!(record.contains("\"automatic\": true"), "{record}");
        // The next rule is accepted only after this is built.
        will_write(&scene, "72", &format!("breaks{}", attempt + 1));
        scene.pdca(&["run", "72"]).expect(0);
    }
    assert_eq!(standing(&scene, "72"), "held");
    assert_eq!(next(&scene, "72"), "pdca reopen 72");
    go_on(&scene, "72");
    assert_eq!(scene.scene.state("72"), "PLANNED", "a person may do it as often as they like");
}

#[test]
fn a_culprit_that_cannot_go_back_hides_nothing_of_what_landed() {
    let scene = Meeting::with(PAIR, &format!("{TARGET}return_culprits = \"auto\"\n"));
    scene.accepted("71", "rule.txt", "rule\n");
    scene.accepted("72", "breaks.txt", "breaks\n");
    let merged = r#"{"schema": 1, "key": "k", "pull_request": {"repo": "a/b", "state": "merged"}}"#;
    scene.scene.workspace.write("results/issue_72/publish.json", merged);
    let ran = scene.integrate(&["--json"]);
    assert!(ran.err.contains("the pull request of 72 was merged"), "{}", ran.err);
    let done = ran.json();
    let told = (&done["landed"][0]["id"], &done["held"][0]["id"]);
    assert_eq!(told, (&Value::from("71"), &Value::from("72")), "{done}");
}

#[test]
fn a_culprit_whose_lock_cannot_be_used_is_not_said_to_be_in_use() {
    let scene = Meeting::with(PAIR, &format!("{TARGET}return_culprits = \"auto\"\n"));
    scene.accepted("71", "rule.txt", "rule\n");
    scene.accepted("72", "breaks.txt", "breaks\n");
    let lock = scene.scene.workspace.path().join(".pdca/locks/issue_72.lock");
    fs_err::remove_file(&lock).expect("72 was signed under it");
    fs_err::create_dir(&lock).expect("a directory can be made");
    let ran = scene.integrate(&["--json"]);
    assert!(ran.err.contains("issue_72.lock"), "{}", ran.err);
    assert!(!ran.err.contains("in use by another command"), "{}", ran.err);
    assert_eq!(ran.json()["landed"][0]["id"], "71");
}

#[test]
fn by_default_nothing_goes_back_by_itself_and_what_needs_a_culprit_never_does() {
    let scene = held_pair(TARGET);
    assert_eq!(standing(&scene, "72"), "held");
    let scene = Meeting::with(PAIR, &format!("{TARGET}return_culprits = \"auto\"\n"));
    scene.accepted("71", "rule.txt", "rule\n");
    scene.accepted("72", "breaks.txt", "breaks\n");
    scene.waiting("73", &[("Depends on", "72")], &[("c.txt", "c\n")]);
    scene.scene.accept("73");
    let done = scene.integrate(&["--json"]).expect(101).json();
    assert_eq!(done["returned"].as_array().map(Vec::len), Some(1), "{done}");
    assert_eq!(scene.scene.state("73"), "COMPLETE");
    assert_eq!(standing(&scene, "73"), "held");
    // With the culprit given up that it was red with, only the next integration can tell.
    let pair = held_pair("");
    pair.pdca(&["reopen", "71", "--note", "too soon"]).expect(0);
    assert_eq!(standing(&pair, "72"), "sealed");
    assert_eq!(next(&scene, "73"), "pdca why 72");
}

#[test]
fn every_standing_has_a_next_command_that_works_when_it_is_pasted() {
    // Held: red, and what needs it.
    let scene = held_pair("");
    assert_eq!(standing(&scene, "71"), "staged");
    go_on(&scene, "71");
    assert_eq!(standing(&scene, "71"), "landed");
    go_on(&scene, "71");
    go_on(&scene, "72");
    assert_eq!(scene.scene.state("72"), "PLANNED");
    // Planned, waiting for sign-off, sealed.
    will_write(&scene, "72", "fine.txt");
    assert_eq!(next(&scene, "72"), "pdca run 72");
    go_on(&scene, "72");
    assert_eq!(scene.scene.state("72"), "AWAITING_SIGNOFF");
    go_on(&scene, "72");
    scene.scene.accept("72");
    assert_eq!(standing(&scene, "72"), "sealed");
    go_on(&scene, "72");
    assert_eq!(standing(&scene, "72"), "staged");

    // Drifted, and accepted without a seal.
    let scene = Meeting::with("true", TARGET);
    for (id, file) in [("1", "a.txt"), ("2", "b.txt"), ("3", "c.txt")] {
        scene.accepted(id, file, "text\n");
    }
    let workspace = &scene.scene.workspace;
    workspace.write("results/issue_1/patch.diff", "something else\n");
    let run = scene.seal("2")["run"].as_str().unwrap().to_owned();
    scene.scene.repo.git(&["update-ref", "-d", &format!("refs/pdca/{run}/seal/2")]);
    fs_err::remove_file(workspace.path().join("results/issue_2/seal.json")).unwrap();
    assert_eq!(
        (standing(&scene, "1"), standing(&scene, "2")),
        ("drifted".into(), "unsealed".into())
    );
    go_on(&scene, "1");
    assert_eq!(scene.scene.state("1"), "PLANNED");
    assert_eq!(next(&scene, "2"), "pdca integrate --seal 2");
    go_on(&scene, "2");
    assert_eq!(standing(&scene, "2"), "landed");

    // Blocked: by one that is planned, by one that waits, by one that does not exist.
    scene.scene.brief("4", &[("Depends on", "1")]);
    assert_eq!(next(&scene, "4"), "pdca run 1");
    go_on(&scene, "4");
    assert_eq!(next(&scene, "4"), "pdca show 1");
    go_on(&scene, "4");
    scene.scene.brief("5", &[("Depends on", "99")]);
    assert_eq!(next(&scene, "5"), "pdca new 99");
    go_on(&scene, "5");
    assert_eq!(next(&scene, "5"), "$EDITOR results/issue_99/brief.md");
    go_on(&scene, "5");
}

#[test]
fn a_next_command_names_the_workspace_it_was_asked_about() {
    let scene = held_pair(TARGET);
    let workspace = scene.scene.workspace.path().to_owned();
    let elsewhere = scene.scene.workspace.around().join("a b");
    fs_err::os::unix::fs::symlink(&workspace, &elsewhere).unwrap();
    let why = scene.pdca(&["-C", elsewhere.as_str(), "why", "72", "--json"]).expect(0).json();
    let next = why["next"].as_str().unwrap();
    assert_eq!(next, format!("pdca -C '{elsewhere}' reopen 72"));
    scene.scene.paste(&format!("cd / && {next}")).expect(0);
    assert_eq!(scene.scene.state("72"), "PLANNED");
}
