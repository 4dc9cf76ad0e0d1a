//! The branch by itself is gated once before a batch pays anybody.

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;
use rustix::process::Signal;

const BUILDER: &str = "echo \"$1\" > \"file-$1.txt\"";

/// Tells who was gated, and is red where `broken.txt` is there.
const GATE: &str = r#"
echo "${PDCA_ISSUE:-base}" >> "$PDCA_WORKSPACE/calls/gated"
if [ -e broken.txt ]; then echo "test_everything failed"; exit 1; fi"#;

fn scene_with(builder: &str, gate: &str, driver: &str) -> Scene {
    let more = format!(
        "[driver]\n{driver}\n[integrate]\nland = \"target\"\n\
         [[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = '''{gate}'''\n"
    );
    let scene = Scene::with_leaves(builder, REVIEWER, &more);
    // The user is on another branch, so that the target may move.
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    scene
}

fn scene(gate: &str) -> Scene {
    scene_with(BUILDER, gate, "")
}

/// One more commit of somebody else on the branch.
fn commit_to_main(scene: &Scene, file: &str, text: Option<&str>) {
    let elsewhere = scene.workspace.around().join("elsewhere");
    scene.repo.git(&["worktree", "add", "--quiet", "--detach", elsewhere.as_str(), "main"]);
    let other = pdca_testkit::Repo::existing(&elsewhere);
    match text {
        Some(text) => other.write(file, text),
        None => fs_err::remove_file(elsewhere.join(file)).expect("it is there"),
    }
    other.commit("somebody else");
    let new = other.git(&["rev-parse", "HEAD"]).trim().to_owned();
    scene.repo.git(&["worktree", "remove", "--force", elsewhere.as_str()]);
    scene.repo.git(&["update-ref", "refs/heads/main", &new]);
}

/// The number of times that the branch was gated alone.
fn gated(scene: &Scene) -> usize {
    let text = fs_err::read_to_string(scene.workspace.path().join("calls/gated"));
    text.unwrap_or_default().lines().filter(|line| *line == "base").count()
}

#[test]
fn a_red_base_stops_the_batch_before_anybody_is_paid_and_is_charged_to_nobody() {
    let scene = scene(GATE);
    commit_to_main(&scene, "broken.txt", Some("x\n"));
    for id in ["1", "2", "3"] {
        scene.brief(id, &[]);
    }
    let before = scene.results();
    let refused = scene.pdca(&["batch", "--lanes", "2", "--json"]).expect(100);
    let told = refused.json();
    let base = &told["bases"][0];
    assert_eq!((&base["target"], &base["branch"]), (&"app".into(), &"main".into()), "{told}");
    assert_eq!((&base["verdict"], &base["rows"][0]), (&"red".into(), &"T3-tests".into()), "{told}");
    assert_eq!(base["gate_runs"], 2, "a red is confirmed");
    let outcomes: Vec<&str> = told["bundles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["not-started"; 3]);
    for said in ["app main is red by itself at ", "T3-tests", "test_everything failed", "mend main"]
    {
        assert!(refused.err.contains(said), "{said}: {}", refused.err);
    }
    let log = base["logs"][0].as_str().unwrap();
    assert!(fs_err::read_to_string(log).unwrap().contains("test_everything failed"), "{log}");
    assert!(refused.err.contains("evidence"), "{}", refused.err);
    assert_eq!(scene.calls(), Vec::<String>::new(), "nobody was called");
    assert_eq!(scene.results(), before);
    assert_eq!(scene.runs().len(), 0, "no run is left");
    // Asked again it is looked at once more, for what made it red may be no part of the tree.
    scene.pdca(&["run", "1"]).expect(100);
    assert_eq!(gated(&scene), 3);
    commit_to_main(&scene, "broken.txt", None);
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(scene.state("3"), "AWAITING_SIGNOFF");
}

#[test]
fn a_base_that_is_known_to_be_green_costs_nothing_and_an_integration_knows_it_too() {
    let scene = scene(GATE);
    for number in 1..=9 {
        scene.brief(&number.to_string(), &[]);
    }
    let told = scene.pdca(&["batch", "--lanes", "3", "--json"]).expect(0).json();
    let base = &told["bases"][0];
    assert_eq!((&base["verdict"], &base["gate_runs"]), (&"green".into(), &1.into()), "{told}");
    assert_eq!(gated(&scene), 1, "once for nine bundles");
    scene.brief("10", &[]);
    let told = scene.pdca(&["run", "10", "--json"]).expect(0).json();
    assert_eq!(told["bases"][0]["gate_runs"], 0, "{told}");
    assert_eq!(gated(&scene), 1);
    scene.accept("1");
    let done = scene.pdca(&["integrate", "--json"]).expect(0).json();
    assert_eq!((&done["gate_runs"], &done["landed"][0]["id"]), (&1.into(), &"1".into()), "{done}");
    // What landed was gated as exactly that tree: the next batch knows it.
    scene.brief("11", &[]);
    let told = scene.pdca(&["run", "11", "--json"]).expect(0).json();
    assert_eq!(told["bases"][0]["gate_runs"], 0, "{told}");
}

#[test]
fn a_red_that_is_green_when_asked_again_stops_nobody() {
    let flaky = r#"
echo "${PDCA_ISSUE:-base}" >> "$PDCA_WORKSPACE/calls/gated"
test -n "${PDCA_ISSUE:-}" || ! mkdir "$PDCA_WORKSPACE/calls/first""#;
    let scene = scene(flaky);
    scene.brief("1", &[]);
    let told = scene.pdca(&["run", "1", "--json"]).expect(0).json();
    let base = &told["bases"][0];
    assert_eq!((&base["verdict"], &base["gate_runs"]), (&"green".into(), &2.into()), "{told}");
}

#[test]
fn a_base_that_cannot_be_decided_is_told_and_stops_nobody() {
    let scene = scene(r#"test -n "${PDCA_ISSUE:-}" || exit 77"#);
    scene.brief("1", &[]);
    let told = scene.pdca(&["run", "1", "--json"]).expect(0);
    assert_eq!(told.json()["bases"][0]["verdict"], "undecided", "{}", told.out);
    assert!(told.err.contains("alone came to no verdict"), "{}", told.err);
    assert_eq!(scene.state("1"), "AWAITING_SIGNOFF");
}

#[test]
fn where_nothing_is_to_be_built_or_nothing_judges_a_branch_nothing_is_gated() {
    // Only rows about a bundle.
    let more = "[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\n\
                cmd = 'echo \"${PDCA_ISSUE:-base}\" >> \"$PDCA_WORKSPACE/calls/gated\"'\n";
    let scene = Scene::with_leaves(BUILDER, REVIEWER, more);
    scene.brief("1", &[]);
    let told = scene.pdca(&["run", "1", "--json"]).expect(0).json();
    assert_eq!((told["bases"].as_array().map(Vec::len), gated(&scene)), (Some(0), 0), "{told}");
    // Switched off, a red base is found by the bundles' own gates.
    let scene = scene_with(BUILDER, GATE, "gate_base = \"off\"");
    commit_to_main(&scene, "broken.txt", Some("x\n"));
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(100);
    assert_eq!((scene.state("1"), gated(&scene)), ("AWAITING_SIGNOFF".to_owned(), 0));
    // What is built already, waits for others or is closed pays nobody.
    let scene = scene_with(BUILDER, GATE, "");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    commit_to_main(&scene, "broken.txt", Some("x\n"));
    scene.brief("2", &[("Depends on", "1")]);
    scene.brief("3", &[("Disposition hint", "wontfix")]);
    scene.pdca(&["batch"]).expect(0);
    assert_eq!((scene.state("3"), gated(&scene)), ("AWAITING_SIGNOFF".to_owned(), 1));
}

#[test]
fn a_red_branch_of_one_target_keeps_the_batch_from_starting_and_the_others_can_be_named() {
    let more = "[[targets]]\nname = \"other\"\npath = \"../other\"\nrepo = \"team/other\"\nbranch = \"main\"\n";
    let scene = scene_with(BUILDER, GATE, &format!("lanes = 2\n{more}"));
    let other = scene.workspace.target("other");
    other.write("greeting.txt", "hello\n");
    other.commit("first");
    commit_to_main(&scene, "broken.txt", Some("x\n"));
    scene.brief("1", &[]);
    scene.workspace.brief("2", &[("Slug", "b"), ("Repo + branch target", "team/other @ main")]);
    let told = scene.pdca(&["batch", "--json"]).expect(100).json();
    let verdicts: Vec<&str> = told["bases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|base| base["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["red", "green"], "{told}");
    assert_eq!(scene.calls(), Vec::<String>::new());
    scene.pdca(&["run", "2"]).expect(0);
}

#[test]
fn beside_the_builders_a_red_base_stops_what_is_in_flight_and_what_was_begun_on_it_begins_anew() {
    let builder = r#"
if [ -e broken.txt ]; then touch "$PDCA_WORKSPACE/calls/building"; sleep 600; fi
echo "$1" > "file-$1.txt""#;
    let gate = r#"
echo "${PDCA_ISSUE:-base}" >> "$PDCA_WORKSPACE/calls/gated"
if [ -e broken.txt ]; then
  while [ ! -e "$PDCA_WORKSPACE/calls/building" ]; do sleep 0.02; done
  exit 1
fi"#;
    let scene = scene_with(builder, gate, "gate_base = \"beside\"");
    commit_to_main(&scene, "broken.txt", Some("x\n"));
    scene.brief("1", &[]);
    let refused = scene.pdca(&["run", "1", "--json"]).expect(100);
    assert!(refused.err.contains("is red by itself"), "{}", refused.err);
    assert_eq!(refused.json()["bases"][0]["verdict"], "red");
    assert_eq!((scene.calls().len(), scene.ended().len()), (1, 0), "it was stopped");
    scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
    assert_eq!(scene.state("1"), "PLANNED");
    commit_to_main(&scene, "broken.txt", None);
    scene.pdca(&["run", "1"]).expect(0);
    let report = scene.workspace.read("results/issue_1/check-gates.json");
    let main = scene.repo.git(&["rev-parse", "main"]);
    assert!(report.contains(main.trim()), "it stands on what was mended: {report}");
}

#[test]
fn beside_the_builders_a_green_base_is_known_and_nobody_waits_for_it() {
    let scene = scene_with(BUILDER, GATE, "gate_base = \"beside\"");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    // One that never ends is called off when all is built.
    let endless = r#"test -n "${PDCA_ISSUE:-}" || sleep 600"#;
    let scene = scene_with(BUILDER, endless, "gate_base = \"beside\"");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    assert_eq!(scene.state("1"), "AWAITING_SIGNOFF");
    scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
}

#[test]
fn interrupted_or_killed_while_the_base_is_gated_nothing_is_started_and_no_verdict_is_paid_twice() {
    let gate = r#"
echo "${PDCA_ISSUE:-base}" >> "$PDCA_WORKSPACE/calls/gated"
while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done"#;
    let scene = scene(gate);
    scene.brief("1", &[]);
    let started = scene.start(&["run", "1"]);
    scene.wait_until("the base is gated", |scene| gated(scene) == 1);
    started.signal(Signal::INT);
    assert_eq!(started.wait(), 130);
    scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
    assert_eq!(scene.calls(), Vec::<String>::new());
    scene.workspace.write("go", "");
    // Killed when the gate has ended and before its verdict is kept.
    let killed = scene.pdca_with(&[("PDCA_CRASH_AT", "verdict")], &["run", "1"]);
    assert_eq!((killed.code, gated(&scene)), (128 + 9, 2));
    scene.pdca(&["run", "1"]).expect(0);
    assert_eq!(gated(&scene), 2, "what ended is not run again");
    let left = scene.workspace.path().join(".pdca/bases").read_dir_utf8().expect("it was used");
    assert_eq!(left.count(), 0, "and nothing of it is left");
}

#[test]
fn what_changes_in_the_users_checkout_while_gates_run_that_nothing_confines_is_told_and_stops_nobody()
 {
    let gate = "test -n \"${PDCA_ISSUE:-}\" || echo x > \"$(cat \"$PDCA_WORKSPACE/primary\")/planted.txt\"";
    let scene = scene_with(BUILDER, gate, "\n[gates]\nsandbox = \"off\"\n");
    scene.workspace.write("primary", scene.repo.path().as_str());
    scene.brief("1", &[]);
    let ran = scene.pdca(&["run", "1", "--json"]).expect(0);
    assert_eq!(ran.json()["bases"][0]["verdict"], "green", "{}", ran.out);
    assert!(ran.err.contains("file planted.txt"), "{}", ran.err);
    assert_eq!(scene.state("1"), "AWAITING_SIGNOFF");
    assert!(scene.repo.path().join("planted.txt").exists(), "and nothing is put back");
}
