//! A red row names the test that failed, keeps its log, and can be shown again.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_e2e::Ran;

use crate::meeting::Meeting;

const TARGET: &str = "[integrate]\nland = \"target\"\n";

/// What python 3.12 says where there is no test yet is fine.
const UNITTEST: &str = "python3 -m unittest discover || [ $? = 5 ]";
const GREEN: (&str, &str) = (
    "test_rule.py",
    "import unittest\nclass Rule(unittest.TestCase):\n    def test_is_there(self): pass\n",
);
/// Red where `limit.txt` is there, and followed by much that says nothing.
const LIMIT: (&str, &str) = (
    "test_limit.py",
    "import os, unittest\nclass Limit(unittest.TestCase):\n\
     \x20   def test_is_kept(self): self.assertFalse(os.path.exists('limit.txt'))\n\
     def tearDownModule():\n    for i in range(200): print('quiet', i)\n",
);
const NAME: &str = "test_limit.Limit.test_is_kept";

/// 71 lands, and 72 is held because a test of it is red with 71.
fn held_by_unittest() -> (Meeting, Ran) {
    let scene = Meeting::with(UNITTEST, TARGET);
    scene.waiting("71", &[], &[GREEN, ("limit.txt", "3\n")]);
    scene.scene.accept("71");
    scene.waiting("72", &[], &[LIMIT]);
    scene.scene.accept("72");
    let ran = scene.integrate(&[]).expect(101);
    (scene, ran)
}

/// Returns the text after a word in one of the lines.
fn after<'a>(text: &'a str, word: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(word));
    found.unwrap_or_else(|| panic!("no line begins with {word}\n{text}"))
}

fn evidence(scene: &Meeting) -> Vec<Utf8PathBuf> {
    let dir = scene.scene.workspace.path().join(".pdca/evidence");
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    entries.map(|entry| entry.path().to_owned()).collect()
}

/// Types a command that shows a red combination again, and takes its checkout away afterwards.
fn reproduce(scene: &Meeting, command: &str) -> Ran {
    let ran = scene.scene.paste(command);
    let list = scene.scene.repo.git(&["worktree", "list", "--porcelain"]);
    let made: Vec<&str> =
        list.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1).collect();
    assert_eq!(made.len(), 1, "{list}");
    scene.scene.repo.git(&["worktree", "remove", "--force", made[0]]);
    ran
}

#[test]
fn the_test_that_fails_in_a_combination_is_named_wherever_the_change_is_called_held() {
    let (scene, ran) = held_by_unittest();
    let sentence = format!("72 breaks T3-tests only together with 71: {NAME}");
    assert!(ran.out.contains(&format!("held    {sentence}\n")), "{}", ran.out);
    let log = scene.scene.workspace.path().join(after(&ran.out, "log: "));
    assert!(fs_err::read_to_string(&log).unwrap().contains("test_is_kept"), "{log}");
    let command = after(&ran.out, "reproduce: ");

    // Asked again nothing is gated, and the evidence is still told.
    let told = scene.integrate(&["--json"]).json();
    assert_eq!(told["gate_runs"], 0, "{told}");
    let held = &told["held"][0];
    assert_eq!(held["text"], sentence);
    assert_eq!(held["red"][0]["failing"], serde_json::json!([NAME]), "{held}");
    assert_eq!(held["red"][0]["reproduce"], command);
    assert_eq!(held["red"][0]["log"], log.as_str());
    let why = scene.pdca(&["why", "72"]).expect(0).out;
    assert!(why.contains(&format!("held: {sentence}\n")), "{why}");
    assert_eq!(after(&why, "reproduce: "), command);
    assert!(after(&why, "log: ").ends_with("T3-tests.log"), "{why}");
    let status = scene.pdca(&["status", "72"]).expect(0).out;
    assert!(status.contains(NAME), "{status}");
    let beside = "results/issue_72/gate-logs/integration/T3-tests.log";
    assert!(scene.scene.workspace.read(beside).contains("test_is_kept"));

    let shown = reproduce(&scene, command);
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(shown.err.contains("FAIL: test_is_kept"), "{shown:?}");
}

#[test]
fn a_cargo_gate_names_its_failing_test_too() {
    let cargo = Utf8Path::new(env!("CARGO"));
    let rustc = cargo.with_file_name("rustc");
    let gate = format!("test ! -e Cargo.toml || RUSTC={rustc} {cargo} test --offline --quiet");
    let scene = Meeting::with(&gate, TARGET);
    let package =
        "[package]\nname = \"limit\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    let files = [("Cargo.toml", package), ("src/lib.rs", ""), ("limit.txt", "3\n")];
    scene.waiting("71", &[], &files);
    scene.scene.accept("71");
    let test = "mod limit {\n    #[test]\n    fn is_kept() { assert!(!std::path::Path::new(\"limit.txt\").exists()) }\n}\n";
    scene.waiting("72", &[], &[("tests/all.rs", test)]);
    scene.scene.accept("72");
    let ran = scene.integrate(&[]).expect(101);
    let line = "held    72 breaks T3-tests only together with 71: limit::is_kept\n";
    assert!(ran.out.contains(line), "{}\n{}", ran.out, ran.err);
    let shown = reproduce(&scene, after(&ran.out, "reproduce: "));
    assert!(shown.code != 0 && shown.out.contains("limit::is_kept"), "{shown:?}");
}

#[test]
fn a_gate_of_several_lines_with_quotes_can_be_shown_again_by_one_line() {
    let gate = "set -e\n# it is \"quoted\"\nif test -e rule.txt -a -e breaks.txt; then\n\
                \x20 printf \"FAILED the rule\\n\"; test \"$PDCA_TARGET\" != app\nfi\n";
    let scene = Meeting::with(gate, TARGET);
    scene.accepted("71", "rule.txt", "rule\n");
    scene.accepted("72", "breaks.txt", "breaks\n");
    let ran = scene.integrate(&[]).expect(101);
    assert!(ran.out.contains("only together with 71: the rule\n"), "{}", ran.out);
    let shown = reproduce(&scene, after(&ran.out, "reproduce: "));
    assert_eq!((shown.code, shown.out.as_str()), (1, "FAILED the rule\n"), "{shown:?}");
}

#[test]
fn a_branch_that_is_red_by_itself_names_the_test_and_can_be_shown_again() {
    let scene = Meeting::with(UNITTEST, TARGET);
    scene.accepted("71", GREEN.0, GREEN.1);
    scene.commit_to_main(LIMIT.0, LIMIT.1);
    scene.commit_to_main("limit.txt", "3\n");
    let ran = scene.integrate(&[]).expect(100);
    assert!(ran.err.contains(NAME), "{}", ran.err);
    let command = ran.err.lines().find_map(|line| line.split_once("reproduce: "));
    let shown = reproduce(&scene, command.expect("it can be shown again").1);
    assert!(shown.err.contains("FAIL: test_is_kept"), "{shown:?}");
}

#[test]
fn what_failed_goes_into_the_next_attempt_and_evidence_stays_as_long_as_it_is_named() {
    let (scene, _) = held_by_unittest();
    let held = evidence(&scene);
    // Those of other combinations are named nowhere.
    let steps = scene.pdca(&["cleanup", "-n"]).out;
    scene.pdca(&["cleanup"]);
    let named = evidence(&scene);
    assert_eq!(named.len(), 1, "{held:?}\n{steps}");
    let gone = steps.lines().filter(|line| line.starts_with("evidence ")).count();
    assert_eq!(gone, held.len() - 1, "a dry run tells what goes\n{steps}");

    scene.pdca(&["reopen", "72", "--note", "keep the limit"]).expect(0);
    let brief = scene.scene.workspace.read("results/issue_72/brief.md");
    assert!(brief.contains(&format!("> - failing: {NAME}\n")), "{brief}");
    let command = after(&brief, "> - reproduce: ");
    assert!(command.starts_with("(w=$PWD d=$(mktemp -d) && git -C \"$w\"/"), "{command}");
    assert!(!brief.contains(scene.scene.workspace.path().as_str()), "no path of this machine");
    assert!(reproduce(&scene, command).err.contains("test_is_kept"), "it works in the workspace");
    let archived = "results/issue_72/iteration-v1/gate-logs/integration/T3-tests.log";
    assert!(scene.scene.workspace.read(archived).contains("test_is_kept"));
    scene.pdca(&["cleanup"]);
    assert_eq!(evidence(&scene), named, "the brief names it");

    fs_err::remove_dir_all(scene.scene.workspace.path().join("todo/72")).unwrap();
    scene.scene.workspace.write("todo/72/other.txt", "text\n");
    scene.pdca(&["run", "72"]).expect(0);
    scene.scene.accept("72");
    scene.integrate(&[]).expect(0);
    scene.pdca(&["cleanup"]).expect(0);
    assert_eq!(evidence(&scene), Vec::<Utf8PathBuf>::new());
    assert!(!scene.scene.workspace.has("results/issue_72/gate-logs/integration"));
}

#[test]
fn a_red_row_of_check_names_the_test_in_every_document_and_runs_again_by_one_command() {
    let scene = Meeting::with(UNITTEST, "");
    for (file, text) in [LIMIT, ("limit.txt", "3\n")] {
        scene.scene.workspace.write(format!("todo/5/{file}"), text);
    }
    scene.scene.brief("5", &[]);
    scene.pdca(&["run", "5"]).expect(100);
    let read = |file: &str| scene.scene.workspace.read(format!("results/issue_5/{file}"));
    let report: serde_json::Value = serde_json::from_str(&read("check-gates.json")).unwrap();
    let row = report["rows"].as_array().unwrap().iter().find(|row| row["rule_id"] == "T3-tests");
    let row = row.expect("the row is in the report");
    assert_eq!(row["path_line"], format!("1 failed: {NAME}"));
    assert_eq!(row["failing"], serde_json::json!([NAME]));
    let command = "pdca gates 5 --row T3-tests";
    assert_eq!(row["reproduce"], command);
    assert!(read("gate-logs/T3-tests.log").contains("test_is_kept"));
    let summary = read("SUMMARY.md");
    for line in [
        format!("  - failing: {NAME}\n"),
        "  - log: `gate-logs/T3-tests.log`\n".to_owned(),
        format!("  - again: `{command}`\n"),
        format!("- [ ] T3-tests FAILED (gating) — 1 failed: {NAME}\n"),
    ] {
        assert!(summary.contains(&line), "{line}\n{summary}");
    }
    let why = scene.pdca(&["why", "5"]).expect(0).out;
    assert!(why.contains(&format!("gate T3-tests failed: 1 failed: {NAME}\n")), "{why}");
    assert_eq!(after(&why, "log: "), "results/issue_5/gate-logs/T3-tests.log");
    assert_eq!(after(&why, "reproduce: "), command);

    let before = scene.scene.results();
    let shown = scene.scene.paste(command).expect(100);
    assert!(shown.out.contains("FAIL: test_is_kept"), "{shown:?}");
    assert!(shown.out.contains(&format!("failing: {NAME}\n")), "{shown:?}");
    assert_eq!(scene.scene.results(), before, "nothing is written");
    let unknown = scene.pdca(&["gates", "5", "--row", "T9"]).expect(2);
    assert!(unknown.err.contains("the rows are T3-tests"), "{}", unknown.err);

    scene.pdca(&["signoff", "5", "iterate-do", "--note", "mend it"]).expect(0);
    scene.pdca(&["run", "5"]);
    let brief = read("brief.md");
    assert!(brief.contains(&format!(">   - failing: {NAME}\n")), "{brief}");
    let log = after(&brief, ">   - log: ").trim_matches('`').to_owned();
    assert!(read(&log).contains("test_is_kept"), "{log}");
}
