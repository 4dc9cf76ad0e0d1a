//! Scheduling by the real binary: names, awaited states, bundles left alone.

use pdca_e2e::Scene;

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

/// A builder that writes a file of its own.
const BUILDER: &str = "echo \"$1\" > \"file-$1.txt\"";

/// Changes land, and something is gated before.
const LANDS: &str = "[integrate]\nland = \"target\"\n\
     [[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\ncmd = \"true\"\nscope = \"repo\"\n";

fn scene(more: &str) -> Scene {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, more);
    // Nobody stands on the branch that changes land in.
    scene.repo.git(&["checkout", "-q", "--detach"]);
    scene
}

fn states(scene: &Scene, ids: &[&str]) -> String {
    let states: Vec<String> = ids.iter().map(|id| scene.state(id)).collect();
    states.join(" ")
}

fn row(scene: &Scene, id: &str) -> serde_json::Value {
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().expect("status lists bundles");
    rows.iter().find(|row| row["id"] == id).expect("the bundle is listed").clone()
}

fn outcome(report: &serde_json::Value, id: &str) -> String {
    let rows = report["bundles"].as_array().expect("a run lists bundles");
    let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
    row["outcome"].as_str().expect("an outcome is a word").to_owned()
}

#[test]
fn a_bundle_of_any_legal_name_can_be_depended_on() {
    let scene = scene("");
    for id in ["setup-db", "Beta", "a.b", "under_score", "none-of-these", "and"] {
        scene.brief(id, &[]);
    }
    for (id, on, all) in [
        ("1", "setup-db", vec!["setup-db"]),
        (
            "2",
            "`Beta` and a.b, #under_score (its table), none-of-these",
            vec!["Beta", "a.b", "under_score", "none-of-these"],
        ),
        ("3", "issue_and — it comes first", vec!["and"]),
        ("4", "setup-db because it creates the table", vec!["setup-db"]),
        ("5", "none yet, this comes first", vec![]),
        ("6", "(nothing is needed)", vec![]),
    ] {
        scene.brief(id, &[("Depends on", on)]);
        assert_eq!(row(&scene, id)["blocked_by"], serde_json::json!(all), "{on}");
    }
    let report = scene.pdca(&["batch", "--json"]).expect(0).json();
    for id in ["1", "2", "3", "4"] {
        assert_eq!(outcome(&report, id), "blocked", "{id}");
    }
    assert_eq!(outcome(&report, "5") + &outcome(&report, "6"), "signoffsignoff");
    scene.accept("setup-db");
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(states(&scene, &["1", "2"]), "AWAITING_SIGNOFF PLANNED");
}

#[test]
fn a_name_that_is_no_bundle_stops_everything_with_the_nearest_that_is() {
    let scene = scene("");
    scene.brief("setup-db", &[]);
    scene.brief("1", &[("Depends on", "setup-bd")]);
    scene.brief("2", &[("Depends on", "setup-bd because it creates the table")]);
    let ran = scene.pdca(&["batch"]).expect(2);
    assert_eq!(
        ran.err.matches("depends on setup-bd, which does not exist").count(),
        2,
        "{}",
        ran.err
    );
    assert_eq!(ran.err.matches("did you mean `setup-db`?").count(), 2, "{}", ran.err);
    assert!(ran.err.contains("results/issue_1/brief.md:"), "{}", ran.err);
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[test]
fn depends_on_merged_waits_until_the_other_has_landed() {
    let scene = scene(LANDS);
    scene.brief("base", &[]);
    scene.brief("2", &[("Depends on (merged)", "base")]);
    scene.brief("3", &[("Stacks on", "base")]);
    scene.pdca(&["batch"]).expect(0);
    scene.accept("base");
    let report = scene.pdca(&["batch", "--json"]).expect(0).json();
    assert_eq!(outcome(&report, "2"), "left-alone");
    assert_eq!(states(&scene, &["2", "3"]), "PLANNED AWAITING_SIGNOFF");
    let why = scene.pdca(&["why", "2"]).expect(0).out;
    assert!(why.contains("accepted and has not landed: `pdca integrate`"), "{why}");
    assert!(why.contains("next: pdca integrate"), "{why}");
    assert!(
        scene.pdca(&["status"]).expect(0).out.contains("[blocked-by: base until it has landed]")
    );
    let named = scene.pdca(&["run", "2"]).expect(2).err;
    assert!(named.contains("which is accepted and has not landed"), "{named}");
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(row(&scene, "2")["blocked_by"], serde_json::json!([]));
    scene.pdca(&["run", "2"]).expect(0);
    assert_eq!(scene.state("2"), "AWAITING_SIGNOFF");
}

#[test]
fn dependants_start_on_a_green_result_or_only_after_the_landing_as_configured() {
    let built = scene("[schedule]\ndependants = \"built\"\n");
    built.brief("1", &[]);
    built.brief("2", &[("Depends on", "1")]);
    built.brief("3", &[("Depends on", "2")]);
    built.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(
        states(&built, &["1", "2", "3"]),
        "AWAITING_SIGNOFF AWAITING_SIGNOFF AWAITING_SIGNOFF",
        "one pass, without a person in between"
    );
    let landed = scene(&format!("[schedule]\ndependants = \"landed\"\n{LANDS}"));
    landed.brief("1", &[]);
    landed.brief("2", &[("Depends on", "1")]);
    landed.pdca(&["batch"]).expect(0);
    landed.accept("1");
    landed.pdca(&["batch"]).expect(3);
    assert_eq!(landed.state("2"), "PLANNED");
    landed.pdca(&["integrate"]).expect(0);
    landed.pdca(&["batch"]).expect(0);
    assert_eq!(landed.state("2"), "AWAITING_SIGNOFF");
}

#[test]
fn a_red_prerequisite_frees_nobody_who_waits_for_a_green_one() {
    let scene = scene(
        "[schedule]\ndependants = \"built\"\n\
         [[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\ncmd = 'test ! -e file-1.txt'\n",
    );
    scene.brief("1", &[]);
    scene.brief("2", &[("Depends on", "1")]);
    scene.pdca(&["batch"]).expect(100);
    assert_eq!(states(&scene, &["1", "2"]), "AWAITING_SIGNOFF PLANNED");
}

#[test]
fn rivals_wait_for_the_sign_off_of_a_result_where_that_is_configured() {
    let scene = scene("[schedule]\nrivals = \"accepted\"\ndrift = \"off\"\n");
    scene.brief("1", &[("Touches", "src/a")]);
    scene.brief("2", &[("Touches", "src/**")]);
    let report = scene.pdca(&["batch", "--lanes", "2", "--json"]).expect(0).json();
    assert_eq!(outcome(&report, "2"), "blocked");
    assert_eq!(row(&scene, "2")["held_by"], serde_json::json!(["1"]));
    let why = scene.pdca(&["why", "2"]).expect(0).out;
    assert!(why.contains("it waits until 1 is signed off, sent back or given up"), "{why}");
    // A bundle that is named waits no less.
    scene.pdca(&["run", "2"]).expect(3);
    assert_eq!(scene.state("2"), "PLANNED");
    scene.pdca(&["signoff", "1", "discontinue", "--note", "not wanted"]).expect(0);
    scene.pdca(&["run", "2"]).expect(0);
    assert_eq!(scene.state("2"), "AWAITING_SIGNOFF");
}

#[test]
fn one_bad_brief_is_named_and_left_alone_with_what_needs_it_and_the_rest_starts() {
    let scene = scene("");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    scene.pdca(&["signoff", "1", "discontinue", "--note", "not wanted"]).expect(0);
    scene.brief("2", &[]);
    scene.brief("77", &[("Depends on", "1")]);
    scene.brief("78", &[("Depends on", "77")]);
    scene.brief("79", &[("Touches", "../outside")]);
    scene.brief("80", &[("Conflicts with", "nobody-knows")]);
    let latin = scene.workspace.path().join("results/issue_81");
    fs_err::create_dir_all(&latin).expect("a directory can be made");
    fs_err::write(latin.join("brief.md"), b"- **Slug:** caf\xe9\n").expect("a file can be written");
    let plan = scene.pdca(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["left_alone"].as_array().map(Vec::len), Some(5), "{plan}");
    let report = scene.pdca(&["batch", "--json"]).expect(0).json();
    assert_eq!(outcome(&report, "2"), "signoff");
    for id in ["77", "78", "79", "80", "81"] {
        assert_eq!(outcome(&report, id), "left-alone", "{id}");
    }
    let said = scene.pdca(&["batch"]).expect(3).out;
    for id in ["77", "78", "79", "80", "81"] {
        assert!(said.contains(&format!("issue_{id}  left alone: ")), "{said}");
        scene.pdca(&["run", id]).expect(2);
    }
    for id in ["77", "79", "80"] {
        let why = scene.pdca(&["why", id]).expect(0).out;
        assert!(why.contains(&format!("next: $EDITOR results/issue_{id}/brief.md")), "{why}");
    }
    let builders: Vec<String> =
        scene.calls().into_iter().filter(|call| call.starts_with("builder")).collect();
    assert_eq!(builders, ["builder 1", "builder 2"]);
}

#[test]
fn what_contradicts_itself_stops_everything_and_all_of_it_is_told() {
    let scene = scene("");
    scene.brief("1", &[("Depends on", "1")]);
    scene.brief("2", &[("Depends on", "3")]);
    scene.brief("3", &[("Depends on", "2")]);
    scene.brief("4", &[("Depends on", "99")]);
    scene.brief("5", &[("Touches", "../outside")]);
    scene.brief("6", &[]);
    let ran = scene.pdca(&["batch"]).expect(2);
    assert_eq!(ran.err.matches("error:").count(), 4, "{}", ran.err);
    assert_eq!(scene.calls(), Vec::<String>::new());
}

/// Says in which lane it is, and in which order.
const SAYS_LANE: &str = "echo \"$1 ${PDCA_LANE:-none}\" >> \"$PDCA_WORKSPACE/calls/lanes\"\necho \"$1\" > \"file-$1.txt\"";

fn grouped() -> Scene {
    let scene = Scene::with_leaves(SAYS_LANE, REVIEWER, "[schedule]\ndrift = \"off\"\n");
    for (id, touches) in [
        ("1", "a"),
        ("2", "a"),
        ("3", "a"),
        ("4", "b"),
        ("5", "b"),
        ("6", "c"),
        ("7", "c"),
        ("8", "d"),
        ("9", "d"),
    ] {
        scene.brief(id, &[("Touches", touches)]);
    }
    scene.pdca(&["plan", "--write"]).expect(0);
    scene
}

#[test]
fn the_bundles_of_a_group_run_one_after_the_other_in_one_lane() {
    for lanes in ["1", "2", "3", "8"] {
        let scene = grouped();
        scene.pdca(&["batch", "--lanes", lanes]).expect(0);
        let text = scene.workspace.read("calls/lanes");
        let said: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.split_once(' ')).collect();
        assert_eq!(said.len(), 9, "{said:?}");
        for group in [&["1", "2", "3"][..], &["4", "5"], &["6", "7"], &["8", "9"]] {
            let of: Vec<(&str, &str)> =
                said.iter().filter(|(id, _)| group.contains(id)).copied().collect();
            let order: Vec<&str> = of.iter().map(|(id, _)| *id).collect();
            assert_eq!(order, group, "with {lanes} lanes");
            assert!(of.iter().all(|(_, lane)| *lane == of[0].1), "with {lanes} lanes: {of:?}");
        }
    }
}

#[test]
fn one_group_takes_one_checkout_however_many_lanes_there_are() {
    let scene = Scene::with_leaves(SAYS_LANE, REVIEWER, "[schedule]\ndrift = \"off\"\n");
    for id in ["1", "2", "3"] {
        scene.brief(id, &[("Touches", "a")]);
    }
    scene.pdca(&["plan", "--write"]).expect(0);
    let lanes = scene.workspace.around().join("ws.lanes");
    assert!(!lanes.exists(), "planning makes no checkout");
    scene.pdca(&["batch", "--lanes", "4"]).expect(0);
    assert_eq!(scene.workspace.read("calls/lanes"), "1 0\n2 0\n3 0\n");
    assert!(lanes.join("lane-0").exists() && !lanes.join("lane-1").exists());
}

#[test]
fn independent_groups_are_built_at_the_same_time() {
    // Each builder waits for that of the other group: one after the other, both would fail.
    let meets = "touch \"$PDCA_WORKSPACE/calls/up-$1\"\nfor tick in $(seq 1500); do\n\
                 [ -e \"$PDCA_WORKSPACE/calls/up-1\" ] && [ -e \"$PDCA_WORKSPACE/calls/up-2\" ] && break\n\
                 [ $tick != 1500 ] || exit 3\nsleep 0.02\ndone\necho $1 > file-$1.txt";
    let scene = Scene::with_leaves(meets, REVIEWER, "[schedule]\ndrift = \"off\"\n");
    scene.brief("1", &[("Touches", "a")]);
    scene.brief("2", &[("Touches", "b")]);
    scene.pdca(&["plan", "--write"]).expect(0);
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(states(&scene, &["1", "2"]), "AWAITING_SIGNOFF AWAITING_SIGNOFF");
}

#[test]
fn a_member_that_fails_keeps_nobody_of_its_group_but_its_dependants() {
    let scene = Scene::with_leaves(
        "[ $1 != 1 ] || exit 3\necho $1 > file-$1.txt",
        REVIEWER,
        "[schedule]\ndrift = \"off\"\n",
    );
    scene.brief("1", &[("Touches", "a")]);
    scene.brief("2", &[("Touches", "a"), ("Depends on", "1")]);
    scene.brief("3", &[("Touches", "a")]);
    scene.pdca(&["plan", "--write"]).expect(0);
    scene.pdca(&["batch", "--lanes", "2"]).expect(1);
    assert_eq!(states(&scene, &["1", "2", "3"]), "PLANNED PLANNED AWAITING_SIGNOFF");
}

#[test]
fn a_lanes_json_that_is_damaged_or_out_of_date_is_refused_before_anything_starts() {
    let scene = grouped();
    scene.brief("10", &[]);
    let before = scene.results();
    for args in [&["batch"][..], &["run", "1"], &["batch", "--dry-run"], &["plan"]] {
        let refused = scene.pdca(args).expect(2);
        assert!(refused.err.contains("lanes.json is out of date"), "{args:?}: {}", refused.err);
        assert!(refused.err.contains("`pdca plan --write`"), "{args:?}: {}", refused.err);
    }
    scene.pdca(&["plan", "--check"]).expect(3);
    scene.pdca(&["plan", "--write"]).expect(0);
    scene.pdca(&["batch", "--dry-run"]).expect(0);
    let whole = scene.workspace.read("lanes.json");
    for damaged in
        [&whole[..whole.len() / 2], "", "{}", &whole.replace("\"schema\": 1", "\"schema\": 9")]
    {
        scene.workspace.write("lanes.json", damaged);
        for args in [&["batch"][..], &["run", "1"], &["plan"], &["plan", "--write"]] {
            let refused = scene.pdca(args).expect(2);
            assert!(refused.err.contains("lanes.json cannot be used"), "{args:?}: {}", refused.err);
            assert!(refused.err.contains("remove the file"), "{args:?}: {}", refused.err);
        }
    }
    assert_eq!((scene.calls(), scene.results()), (Vec::new(), before));
    fs_err::remove_file(scene.workspace.path().join("lanes.json")).expect("it is there");
    scene.pdca(&["run", "1"]).expect(0);
}

#[test]
fn a_current_lanes_json_stays_current_while_it_is_carried_out() {
    let scene = grouped();
    scene.pdca(&["run", "1", "4", "--lanes", "2"]).expect(0);
    scene.accept("1");
    scene.pdca(&["signoff", "4", "discontinue", "--note", "not wanted"]).expect(0);
    scene.pdca(&["plan", "--check"]).expect(0);
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(
        states(&scene, &["2", "3", "5", "9"]),
        "AWAITING_SIGNOFF AWAITING_SIGNOFF AWAITING_SIGNOFF AWAITING_SIGNOFF"
    );
}

/// A builder that fails on bundle 1, unless it is told otherwise, and says how.
const FAILS: &str = "[ $1 != 1 ] || [ -e \"$PDCA_WORKSPACE/mended\" ] || { echo cannot; exit 3; }\necho \"$1\" > \"file-$1.txt\"";

fn builders(scene: &Scene, id: &str) -> usize {
    scene.calls().iter().filter(|call| **call == format!("builder {id}")).count()
}

#[test]
fn a_failed_builder_is_told_by_status_why_and_next_and_tried_three_times_unasked() {
    let scene = Scene::with_leaves(FAILS, REVIEWER, "");
    scene.brief("1", &[]);
    scene.brief("2", &[("Depends on", "1")]);
    assert!(row(&scene, "1")["failed"].is_null());
    for times in 1..=3 {
        scene.pdca(&["batch"]).expect(1);
        let failed = row(&scene, "1")["failed"].clone();
        assert_eq!(
            (&failed["beat"], &failed["times"]),
            (&"builder".into(), &times.into()),
            "{failed}"
        );
        assert_eq!(failed["why"], "exit status 3: cannot");
        assert!(
            failed["log"].as_str().is_some_and(|log| log.ends_with("builder.error.log")),
            "{failed}"
        );
    }
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("[builder failed ×3: exit status 3: cannot]"), "{status}");
    let why = scene.pdca(&["why", "1"]).expect(0).out;
    assert!(why.contains("the builder failed 3 times, last: exit status 3: cannot; see "), "{why}");
    assert!(why.contains("next: pdca run 1"), "{why}");
    let next = scene.pdca::<&str>(&[]).expect(0).out;
    assert!(next.contains("next: pdca why 1   # the builder of 1 failed 3 times"), "{next}");
    // Enough: it is named and left alone, and what is new starts.
    scene.brief("3", &[]);
    let report = scene.pdca(&["batch", "--json"]).expect(0).json();
    assert_eq!(
        (outcome(&report, "1"), outcome(&report, "3")),
        ("left-alone".into(), "signoff".into())
    );
    assert_eq!(builders(&scene, "1"), 3);
    let plan = scene.pdca(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["left_alone"][0]["kind"], "failed");
    // Named, it is tried again, and that is said.
    let again = scene.pdca(&["run", "1"]).expect(1);
    assert!(
        again.err.contains("issue_1 failed before (the builder failed 3 times"),
        "{}",
        again.err
    );
    assert_eq!(builders(&scene, "1"), 4);
}

#[test]
fn a_failure_is_over_when_the_brief_changes_or_an_attempt_succeeds() {
    let scene = Scene::with_leaves(FAILS, REVIEWER, "[driver]\nmax_attempts = 1\n");
    scene.brief("1", &[]);
    scene.pdca(&["batch"]).expect(1);
    scene.pdca(&["batch"]).expect(3);
    assert_eq!(builders(&scene, "1"), 1);
    scene.brief("1", &[("Scope", "something smaller")]);
    assert!(row(&scene, "1")["failed"].is_null());
    scene.pdca(&["batch"]).expect(1);
    assert_eq!(row(&scene, "1")["failed"]["times"], 1);
    scene.workspace.write("mended", "");
    scene.pdca(&["run", "1"]).expect(0);
    assert!(row(&scene, "1")["failed"].is_null());
    // Sent back, it begins anew.
    scene.pdca(&["signoff", "1", "iterate-do", "--note", "once more"]).expect(0);
    assert!(row(&scene, "1")["failed"].is_null());
    scene.pdca(&["batch"]).expect(0);
}

#[test]
fn an_interruption_and_a_missing_limit_are_no_failures() {
    let patient = "touch \"$PDCA_WORKSPACE/calls/at\"\nsleep 600";
    let scene = Scene::with_leaves(patient, REVIEWER, "");
    scene.brief("1", &[]);
    let driver = scene.start(&["batch"]);
    scene.wait_until("the builder is at work", |scene| {
        scene.workspace.path().join("calls/at").exists()
    });
    let busy = scene.pdca(&["signoff", "1", "discontinue", "--note", "x"]);
    assert_ne!(busy.code, 0);
    assert!(busy.err.contains("process "), "it says who has it: {}", busy.err);
    driver.signal(rustix::process::Signal::INT);
    assert_eq!(driver.wait(), 130);
    assert!(row(&scene, "1")["failed"].is_null());
    let unlimited = Scene::with_leaves(FAILS, REVIEWER, "[driver]\nmax_attempts = 0\n");
    unlimited.brief("1", &[]);
    for _ in 0..5 {
        unlimited.pdca(&["batch"]).expect(1);
    }
    assert_eq!(row(&unlimited, "1")["failed"]["times"], 5);
}

#[test]
fn a_bundle_is_given_up_from_every_state_that_is_not_finished_and_stays_so() {
    let scene = Scene::with_leaves(FAILS, REVIEWER, "");
    let give_up =
        |id: &str| scene.pdca(&["signoff", id, "discontinue", "--note", "it cannot be done"]);
    let results = |path: &str, text: &str| scene.workspace.write(format!("results/{path}"), text);
    scene.pdca(&["new", "unplanned"]).expect(0);
    results("issue_bare/notes.json", "{}");
    for id in ["1", "planned", "built", "checked", "signoff", "iterate"] {
        scene.brief(id, &[]);
    }
    scene.pdca(&["run", "1"]).expect(1);
    results(
        "issue_built/patch.diff",
        "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n",
    );
    scene.pdca(&["run", "checked", "signoff", "iterate"]).expect(0);
    fs_err::remove_file(scene.workspace.path().join("results/issue_checked/SUMMARY.md"))
        .expect("it is there");
    let sent_back = scene.workspace.read("results/issue_iterate/SUMMARY.md");
    results(
        "issue_iterate/SUMMARY.md",
        &sent_back.replace("- Outcome:", "- Outcome: iterated-to-Do"),
    );
    scene.brief("after", &[("Depends on", "planned")]);
    let before = states(
        &scene,
        &["unplanned", "bare", "1", "planned", "built", "checked", "signoff", "iterate"],
    );
    assert_eq!(
        before,
        "UNPLANNED UNPLANNED PLANNED PLANNED BUILT CHECKED AWAITING_SIGNOFF ITERATE_DO"
    );
    for id in ["unplanned", "bare", "1", "planned", "built", "checked", "signoff", "iterate"] {
        scene.pdca(&["signoff", id, "discontinue"]).expect(2);
        let ran = give_up(id).expect(0);
        assert_eq!(ran.err.contains("after waits for it in vain"), id == "planned", "{}", ran.err);
        assert_eq!(scene.state(id), "DISCONTINUED", "{id}");
        let why = scene.pdca(&["why", id]).expect(0).out;
        assert!(why.contains("it cannot be done"), "{why}");
        give_up(id).expect(2);
    }
    assert!(scene.workspace.path().join("results/issue_iterate/iteration-v1/patch.diff").exists());
    let calls = scene.calls().len();
    let report = scene.pdca(&["batch", "--json"]).expect(3).json();
    assert_eq!(outcome(&report, "after"), "left-alone");
    assert_eq!(scene.calls().len(), calls, "nothing is started again");
    scene.pdca(&["new", "bare"]).expect(2);
}

#[test]
fn a_brief_that_is_sent_back_to_plan_is_edited_and_not_written_anew() {
    let scene = scene("");
    scene.brief("1", &[("Scope", "the parser")]);
    scene.pdca(&["run", "1"]).expect(0);
    scene.pdca(&["signoff", "1", "iterate-plan", "--note", "the wrong question"]).expect(0);
    assert_eq!(scene.state("1"), "UNPLANNED");
    let draft = scene.workspace.read("results/issue_1/brief.md");
    for kept in [
        "- **Scope:** the parser",
        "- **Slug:** <a-slug>",
        "## Iteration 1",
        "> the wrong question",
    ] {
        assert!(draft.contains(kept), "{kept}: {draft}");
    }
    scene.pdca(&["batch"]).expect(3);
    let next = scene.pdca::<&str>(&[]).expect(0).out;
    assert!(next.contains("next: $EDITOR results/issue_1/brief.md"), "{next}");
    scene.workspace.write("results/issue_1/brief.md", draft.replace("<a-slug>", "a-slug"));
    scene.pdca(&["run", "1"]).expect(0);
    assert_eq!(scene.state("1"), "AWAITING_SIGNOFF");
}
