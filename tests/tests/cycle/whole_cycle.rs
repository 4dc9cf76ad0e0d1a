//! The cycle, end to end: brief to sign-off to a frozen bundle, and round again.

use pdca_e2e::{Scene, TARGET, leaf};

const BUILDER: &str = r#"
if grep -q 'carry-forward' "$PDCA_BUNDLE/brief.md"; then echo right > greeting.txt; else echo wrong > greeting.txt; fi
echo notes > "$PDCA_BUNDLE/build-notes.md"
"#;

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

const GATE: &str = "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = \"grep -q right greeting.txt\"\n";

#[test]
fn a_red_attempt_goes_back_to_do_and_the_next_one_is_accepted() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(100);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    let refused = scene.pdca(&["signoff", "7", "accept"]).expect(2);
    assert!(refused.err.contains("gate red"), "{}", refused.err);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("- [ ] T3-tests FAILED (gating) — "), "{summary}");
    scene.pdca(&["signoff", "7", "iterate-do", "--note", r"not \1 $& ## wrong"]).expect(0);
    assert_eq!(scene.state("7"), "PLANNED");
    let brief = scene.workspace.read("results/issue_7/brief.md");
    assert!(brief.contains("## Iteration 1 — carry-forward"), "{brief}");
    assert!(brief.contains(r"not \1 $&"), "{brief}");
    assert!(brief.contains("T3-tests") || brief.contains("T3"), "{brief}");
    scene.pdca(&["run", "7"]).expect(0);
    scene.accept("7");
    assert_eq!(scene.state("7"), "COMPLETE");
    assert!(scene.workspace.has("results/issue_7/iteration-v1/patch.diff"));
    let frozen = scene.results();
    scene.pdca(&["run", "7"]).expect(4);
    scene.pdca(&["gates", "7"]).expect(0);
    assert_eq!(scene.results(), frozen, "lesson 3: a frozen record was written");
}

#[test]
fn back_to_plan_moves_the_brief_and_keeps_the_note_for_the_next_one() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(100);
    scene.pdca(&["signoff", "7", "iterate-plan", "--note", "the wrong question"]).expect(0);
    assert_eq!(scene.state("7"), "UNPLANNED");
    assert!(scene.workspace.has("results/issue_7/iteration-v1/brief.md"));
    assert!(
        scene.workspace.read("results/issue_7/carry-forward.md").contains("the wrong question")
    );
    scene.pdca(&["run", "7"]).expect(3);
    scene.pdca(&["new", "7", "--title", "again"]).expect(0);
    assert!(scene.workspace.read("results/issue_7/brief.md").contains("the wrong question"));
}

#[test]
fn a_review_advises_and_the_gates_alone_decide() {
    let reviewer = REVIEWER.replace("PASS | fine", "FAIL | the cause is elsewhere");
    let scene = Scene::with_leaves("echo right > greeting.txt", &reviewer, GATE);
    let config = scene.workspace.read("pdca.toml");
    let config = config
        .replace("[leaves.builder]", "[leaves.builder]\nfamily = \"acme\"")
        .replace("[leaves.reviewer]", "[leaves.reviewer]\nfamily = \"acme\"");
    scene.workspace.config(&config);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    let report = scene.workspace.read("results/issue_7/check-gates.json");
    assert!(report.contains("\"overall\": \"pass\""), "{report}");
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("- [ ] C1 Spec FAIL — the cause is elsewhere"), "{summary}");
    assert!(summary.contains("Builder and reviewer are of one family (acme)"), "{summary}");
    // The person has the last word about what a reviewer says.
    scene.pdca(&["signoff", "7", "accept"]).expect(2);
    scene.accept("7");
    assert_eq!(scene.state("7"), "COMPLETE");
}

#[test]
fn a_close_needs_no_model_and_sending_it_back_opens_the_full_band() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, "");
    scene.brief("7", &[("Disposition hint", "by-design")]);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls(), Vec::<String>::new());
    assert!(scene.workspace.has("results/issue_7/close-disposition"));
    scene.pdca(&["signoff", "7", "iterate-do", "--note", "no, it is a defect"]).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"]);
    assert!(scene.workspace.has("results/issue_7/patch.diff"));
}

#[test]
fn a_builder_that_writes_a_patch_is_honoured_and_a_hostile_patch_is_refused() {
    let good = r#"cat > "$PDCA_BUNDLE/patch.diff" <<'END'
--- a/greeting.txt
+++ b/greeting.txt
@@ -1 +1 @@
-hello
+hi
END"#;
    let scene = Scene::with_leaves(
        good,
        REVIEWER,
        "[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = \"grep -q hi greeting.txt\"\n",
    );
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);

    for hostile in ["../outside", ".git/config", "/etc/passwd"] {
        let patch = format!(
            "printf 'diff --git a/{hostile} b/{hostile}\\nnew file mode 100644\\n--- /dev/null\\n+++ b/{hostile}\\n@@ -0,0 +1 @@\\n+x\\n' > \"$PDCA_BUNDLE/patch.diff\""
        );
        let scene = Scene::with_leaves(&patch, REVIEWER, "");
        scene.brief("7", &[]);
        let ran = scene.pdca(&["run", "7"]).expect(1);
        assert!(ran.err.contains("patch cannot be taken"), "{hostile}: {}", ran.err);
        assert_eq!(scene.state("7"), "PLANNED");
    }
}

#[test]
fn d19_a_builder_that_changes_nothing_is_neither_success_nor_tried_again_unasked() {
    let scene = Scene::with_leaves("true", REVIEWER, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(1);
    assert!(ran.err.contains("changed nothing"), "{}", ran.err);
    assert_eq!(scene.calls(), ["builder 7"]);
    assert_eq!(scene.state("7"), "PLANNED");
}

#[test]
fn one_bundles_failure_does_not_stop_the_others() {
    let scene = Scene::with_leaves("[ $1 != 8 ] || exit 3\necho $1 > greeting.txt", REVIEWER, "");
    for id in ["7", "8", "9"] {
        scene.brief(id, &[]);
    }
    let ran = scene.pdca(&["batch"]).expect(1);
    assert!(ran.err.contains("issue_8"), "{}", ran.err);
    assert_eq!(
        (scene.state("7"), scene.state("9")),
        ("AWAITING_SIGNOFF".into(), "AWAITING_SIGNOFF".into())
    );
    assert_eq!(scene.state("8"), "PLANNED");
    assert!(scene.workspace.read("results/issue_8/builder.error.log").contains("exit status 3"));
}

#[test]
fn a_bundle_waits_for_what_it_depends_on_to_be_complete() {
    let scene = Scene::with_leaves("echo $1 > greeting.txt", REVIEWER, "");
    scene.brief("7", &[]);
    scene.brief("8", &[("Depends on", "7")]);
    let ran = scene.pdca(&["batch"]).expect(0);
    assert!(ran.out.contains("[blocked-by: 7]"), "{}", ran.out);
    assert_eq!(scene.state("8"), "PLANNED");
    let alone = scene.pdca(&["run", "8"]).expect(2);
    assert!(alone.err.contains("8 depends on 7, which is not complete"), "{}", alone.err);
    assert!(alone.err.contains("results/issue_8/brief.md:"), "{}", alone.err);
    scene.accept("7");
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(scene.state("8"), "AWAITING_SIGNOFF");
}

#[test]
fn a_patch_edited_after_check_is_gated_again_or_cannot_be_accepted() {
    let scene = Scene::with_leaves("echo right > greeting.txt", REVIEWER, GATE);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let edited = scene.workspace.read("results/issue_7/patch.diff").replace("+right", "+left");
    scene.workspace.write("results/issue_7/patch.diff", edited);
    let refused = scene.pdca(&["signoff", "7", "accept"]).expect(2);
    assert!(refused.err.contains("patch.diff"), "{}", refused.err);
}

#[test]
fn lesson_02_a_verdict_from_before_do_does_not_count_for_the_patch() {
    let scene = Scene::with_leaves("echo wrong > greeting.txt", REVIEWER, GATE);
    scene.brief("7", &[]);
    scene.pdca(&["gates", "7"]).expect(0);
    assert!(!scene.workspace.has("results/issue_7/check-gates.json"));
    // Some other tool left one.
    scene.workspace.write(
        "results/issue_7/check-gates.json",
        r#"{"issue_dir": "issue_7", "overall": "pass", "rows": []}"#,
    );
    assert_eq!(scene.state("7"), "PLANNED");
    scene.pdca(&["run", "7"]).expect(100);
    assert!(
        scene.workspace.read("results/issue_7/check-gates.json").contains("\"overall\": \"fail\"")
    );
}

#[test]
fn lesson_05_a_torn_gate_report_is_kept_aside_and_the_gates_run_again() {
    let scene = Scene::with_leaves("echo right > greeting.txt", REVIEWER, GATE);
    scene.brief("7", &[]);
    scene.pdca_with(&[("PDCA_CRASH_AT", "check-gates.json")], &["run", "7"]).expect(137);
    scene.workspace.write("results/issue_7/check-gates.json", r#"{"issue_dir": "issue_7", "over"#);
    assert_eq!(scene.state("7"), "BUILT");
    scene.pdca(&["run", "7"]).expect(0);
    let kept =
        scene.results().into_iter().find(|(name, _)| name.contains("check-gates.json.aside"));
    assert!(kept.is_some_and(|(_, text)| text.contains("over")), "{:?}", scene.results().keys());
}

#[test]
fn lesson_06_one_brief_that_is_not_utf_8_is_one_bad_row() {
    let scene = Scene::new("");
    scene.brief("7", &[]);
    scene.workspace.write("results/issue_8/brief.md", b"- **Slug:** caf\xe9\n");
    let status = scene.pdca(&["status"]).expect(0);
    assert!(status.out.contains("PLANNED") && status.out.contains('8'), "{}", status.out);
    let json = scene.pdca(&["status", "--json"]).expect(0).json();
    assert_eq!(json["bundles"].as_array().map(Vec::len), Some(2));
}

#[test]
fn lesson_11_each_gate_sees_base_and_this_patch_and_nothing_of_the_bundle_before() {
    let gate = "[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = 'test \"$(cat greeting.txt)\" = \"$PDCA_ISSUE\" && test ! -e left-by-a-gate && touch left-by-a-gate'\n";
    let scene = Scene::with_leaves("echo $1 > greeting.txt", REVIEWER, gate);
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    scene.pdca(&["batch"]).expect(0);
}

#[test]
fn lesson_18_a_declared_cache_stays_between_do_and_check() {
    let scene = Scene::with_leaves(
        "echo target > .gitignore\nmkdir -p target\necho warm > target/cache\necho $1 > greeting.txt",
        REVIEWER,
        "[lanes]\ncache = [\"target/\"]\n[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = \"grep -q warm target/cache\"\n",
    );
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn lesson_20_the_users_checkout_is_the_same_before_and_after_whatever_they_have_in_it() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.repo.write("greeting.txt", "my own unfinished edit\n");
    scene.repo.write("untracked.txt", "mine\n");
    scene.repo.git(&["add", "untracked.txt"]);
    scene.brief("7", &[]);
    let before = (
        scene.repo.status(),
        scene.repo.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/remotes"]),
        scene.repo.read(".git/index"),
    );
    scene.pdca(&["run", "7"]).expect(100);
    scene.pdca(&["signoff", "7", "iterate-do", "--note", "again"]).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    let after = (
        scene.repo.status(),
        scene.repo.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/remotes"]),
        scene.repo.read(".git/index"),
    );
    assert_eq!(before, after);
}

#[test]
fn stubs_carry_a_bundle_to_sign_off_and_say_that_they_are_stubs() {
    let scene = Scene::with_leaves("exit 9", "exit 9", "");
    scene.brief("7", &[]);
    let ran = scene.pdca_with(&[("PDCA_LEAVES_MODE", "stub")], &["run", "7"]).expect(0);
    assert!(ran.err.contains("no gate is configured: nothing real was checked"), "{}", ran.err);
    assert_eq!(scene.calls(), Vec::<String>::new());
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("stub"), "{summary}");
    scene.pdca(&["signoff", "7", "accept"]).expect(2);
}

#[test]
fn a_workspace_without_a_target_works_and_says_so() {
    let scene = Scene::new("");
    let config = scene.workspace.read("pdca.toml").replace(TARGET, "")
        + "[[gates.checks]]\nid = \"T1\"\ntier = \"T1\"\ncmd = \"test -f pdca.toml\"\n";
    scene.workspace.config(&config);
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert!(ran.err.contains("no target is configured"), "{}", ran.err);
}

#[test]
fn f10_a_throttled_builder_is_asked_again_and_no_attempt_is_spent() {
    let builder = r#"
n=$(cat "$PDCA_WORKSPACE/calls/n" 2>/dev/null || echo 0)
echo $((n + 1)) > "$PDCA_WORKSPACE/calls/n"
[ "$n" -ge 2 ] || exit 75
echo done > greeting.txt
"#;
    let throttled =
        "throttled = { exit_codes = [75], backoff_secs = 0.01, max_wait_secs = 5 }\nprompt_via";
    let scene = Scene::new(&leaf("builder").replace("prompt_via", throttled));
    scene.workspace.write("leaves/builder.sh", builder);
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(ran.err.matches("throttled").count(), 2, "{}", ran.err);
}

#[test]
fn lesson_10_a_bundle_is_checked_as_soon_as_it_is_built_and_waits_for_no_other() {
    let scene = Scene::with_leaves("echo $1 > greeting.txt", REVIEWER, "");
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7", "builder 8", "reviewer 8"]);
}

#[test]
fn lesson_13_reading_commands_start_no_other_program() {
    let scene = Scene::new("");
    scene.brief("7", &[]);
    for words in [&["status"][..], &["status", "7"], &["why", "7"], &["queue"], &["config", "show"]]
    {
        scene.pdca_with(&[("PATH", "")], words).expect(0);
    }
}

#[test]
fn lesson_19_a_run_in_which_nothing_could_be_done_does_not_claim_success() {
    let scene = Scene::with_leaves("exit 1", REVIEWER, "");
    scene.brief("7", &[]);
    scene.brief("8", &[("Depends on", "7")]);
    scene.workspace.write("results/issue_9/notes.json", "{}");
    scene.pdca(&["run", "7"]).expect(1);
    scene.pdca(&["run", "8"]).expect(2);
    scene.pdca(&["run", "9"]).expect(3);
    scene.workspace.write("results/issue_9/notes.json", r#"{"resolved": {"state": "closed"}}"#);
    scene.pdca(&["run", "9"]).expect(4);
}

#[test]
fn an_edited_prompt_is_another_question_and_not_answered_by_the_old_verdict() {
    let scene = Scene::with_leaves("echo $1 > greeting.txt", REVIEWER, "");
    let config = scene.workspace.read("pdca.toml").replace(
        "[leaves.builder]\nmode = \"command\"",
        "[leaves.builder]\nprompt_file = \"prompt.md\"\nmode = \"command\"",
    );
    let config = config.replacen("prompt_via = \"none\"", "prompt_via = \"stdin\"", 1);
    scene.workspace.config(&config);
    scene.workspace.write("prompt.md", "do it");
    scene.brief("7", &[]);
    scene.pdca_with(&[("PDCA_CRASH_AT", "commit")], &["run", "7"]).expect(137);
    scene.workspace.write("prompt.md", "do it well");
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "builder 7", "reviewer 7"]);
}
