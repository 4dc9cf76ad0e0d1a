//! External dependencies, the size of a change, splitting, and a workspace without a target: what is said before it is paid for.

use pdca_e2e::{Scene, TARGET};

const BUILDER: &str = "seq 30 > \"file-$1.txt\"";
const REVIEWER: &str =
    "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | fine |\\n'";

const CHECKS: &str = r#"
[[doctor.checks]]
id = "etcd"
cmd = "test -e etcd-is-up || { echo no etcd here >&2; exit 7; }"
hint = "start it: touch etcd-is-up"

[[doctor.checks]]
id = "never"
cmd = "echo ran >> calls/never; false"
required = false
"#;

fn summary(scene: &Scene, id: &str) -> String {
    scene.workspace.read(format!("results/issue_{id}/SUMMARY.md"))
}

#[test]
fn a_bundle_whose_dependency_is_not_there_is_held_before_its_builder_is_paid() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, CHECKS);
    scene.brief("7", &[("External dependencies", "`etcd`, and `protoc`")]);
    scene.brief("8", &[]);
    for _ in 0..4 {
        // However often: a check costs nothing, so a batch always looks again.
        let held = scene.pdca(&["batch"]).expect(3);
        assert!(held.err.contains("external dependency not met: `etcd`"), "{}", held.err);
        assert!(held.err.contains("start it: touch etcd-is-up"), "{}", held.err);
    }
    assert_eq!(scene.calls(), ["builder 8", "reviewer 8"], "the others go on");
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("[dependency failed"), "{status}");
    let why = scene.pdca(&["why", "7"]).expect(0).out;
    assert!(why.contains("no etcd here") && why.contains("start it: touch etcd-is-up"), "{why}");
    let doctor = scene.pdca(&["doctor"]);
    assert!(doctor.out.contains("needs etcd") && doctor.code == 2, "{}", doctor.out);
    scene.workspace.write("etcd-is-up", "");
    scene.pdca(&["batch"]).expect(0);
    assert!(scene.calls().contains(&"builder 7".to_owned()));
    // What has a check opens no box; what has none does.
    let summary = summary(&scene, "7");
    assert!(!summary.contains("`etcd`"), "{summary}");
    assert!(summary.contains("- [ ] external dependency: `protoc`"), "{summary}");
    let never = scene.workspace.read("calls/never");
    assert_eq!(never, "ran\n", "only doctor runs what no brief names");
}

#[test]
fn the_guard_can_be_a_warning() {
    let scene =
        Scene::with_leaves(BUILDER, REVIEWER, &format!("[doctor]\nguard = \"warn\"\n{CHECKS}"));
    scene.brief("7", &[("External dependencies", "`etcd`")]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert!(ran.err.contains("it is built all the same"), "{}", ran.err);
}

#[test]
fn without_a_target_nothing_is_paid_for() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, "");
    let config = scene.workspace.read("pdca.toml").replace(TARGET, "");
    scene.workspace.config(&config);
    scene.brief("7", &[]);
    let refused = scene.pdca(&["run", "7"]).expect(2);
    assert!(refused.err.contains("no target is configured"), "{}", refused.err);
    assert!(refused.err.contains("add `[[targets]]`"), "{}", refused.err);
    assert_eq!(scene.calls(), Vec::<String>::new());
    scene.pdca_with(&[("PDCA_LEAVES_MODE", "stub")], &["run", "7"]).expect(0);
}

#[test]
fn a_change_that_is_larger_than_it_was_meant_to_be_asks_whether_to_split() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, "[check]\nmax_lines = 20\n");
    scene.brief("7", &[]);
    scene.brief("8", &[("Size limit", "100 lines")]);
    scene.pdca(&["run", "7", "8"]).expect(0);
    let asked = summary(&scene, "7");
    assert!(asked.contains("- [ ] size: the change has 30 lines in 1 files"), "{asked}");
    assert!(!summary(&scene, "8").contains("- [ ] size:"), "{}", summary(&scene, "8"));
    scene.pdca(&["signoff", "7", "accept"]).expect(2);
}

const PARTS: &str = "# Brief: issue 7 — two things\n\n- **Slug:** two-things\n\
    - **Repo + branch target:** team/app @ main\n- **Touches:** `file-*`\n\
    - **Part one:** the first\n  - Paths: `file-7-one.txt`\n  - Done when: it is there\n\
    - **Part two:** the second\n  - Paths: `file-7-two.txt`\n  - Done when: it is there too\n  - After: one\n\
    - **Part three:** the third\n  - Done when: it is there as well\n  - Waits for: a decision\n";

#[test]
fn the_ready_parts_of_a_bundle_are_built_and_the_rest_waits() {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, "");
    scene.workspace.write("results/issue_7/brief.md", PARTS);
    scene.brief("9", &[("Depends on", "7")]);
    let split = scene.pdca(&["split", "7", "--ready", "--by", "Ada", "--json"]).expect(0).json();
    assert_eq!(split["repointed"][0], "9");
    scene.pdca(&["batch"]).expect(0);
    assert!(scene.calls().contains(&"builder 7-one".to_owned()), "{:?}", scene.calls());
    assert!(!scene.calls().iter().any(|call| call.contains("rest")), "{:?}", scene.calls());
    scene.accept("7-one");
    scene.pdca(&["batch"]).expect(0);
    scene.accept("7-two");
    let status = scene.pdca(&["status", "--json"]).expect(0).json().to_string();
    for id in ["7-one", "7-two", "7-rest"] {
        assert!(status.contains(&format!("\"{id}\"")), "{status}");
    }
    let why = scene.pdca(&["why", "7"]).expect(0).out;
    assert!(why.contains("split into 7-one, 7-two, 7-rest"), "{why}");
}

#[test]
fn killed_at_any_effect_a_split_is_finished_by_the_same_command() {
    let mut killed = 0;
    for point in 1..40 {
        let scene = Scene::with_leaves(BUILDER, REVIEWER, "");
        scene.workspace.write("results/issue_7/brief.md", PARTS);
        scene.brief("9", &[("Depends on", "7")]);
        let split = ["split", "7", "--by", "Ada"];
        let first = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{point}"))], &split);
        if first.code == 0 {
            break;
        }
        assert_eq!(first.code, 128 + 9, "{}", first.err);
        killed += 1;
        // Killed behind the last effect, it is split already.
        let second = scene.pdca(&split);
        let is_done = second.err.contains("7 is DISCONTINUED");
        assert!(second.code == 0 || is_done, "point {point}: {}", second.err);
        for id in ["7-one", "7-two", "7-three"] {
            let brief = scene.workspace.read(format!("results/issue_{id}/brief.md"));
            assert!(brief.contains("- **Split from:** 7\n"), "point {point}: {brief}");
        }
        let brief = scene.workspace.read("results/issue_9/brief.md");
        assert!(brief.contains("7-one, 7-two, 7-three"), "point {point}: {brief}");
        assert!(summary(&scene, "7").contains("- Outcome: discontinued"), "point {point}");
    }
    assert!(killed >= 10, "only {killed} points");
}

/// Two parts can be started only after bundle 41.
const PARTLY_READY: &str = "# Brief: issue 7 — three things\n\n- **Slug:** three-things\n\
    - **Repo + branch target:** team/app @ main\n- **Touches:** `file-7*`\n- **Invariant:** greeting.txt stays\n\
    - **Part one:** the first\n  - Paths: `file-7-one.txt`\n  - Done when: it is there\n\
    - **Part two:** the second\n  - Paths: `file-7-two.txt`\n  - Done when: it is there too\n  - Waits for: 41 (the format)\n\
    - **Part three:** the third\n  - Paths: `file-7-three.txt`\n  - Done when: it is there as well\n  - After: two\n";

fn partly_ready(builder: &str, config: &str) -> Scene {
    let scene = Scene::with_leaves(builder, REVIEWER, config);
    scene.brief("41", &[]);
    scene.brief("9", &[("Depends on", "7")]);
    scene.workspace.write("results/issue_7/brief.md", PARTLY_READY);
    scene
}

/// Whether a bundle waits for its sign-off; it may not be there yet.
fn is_at_signoff(scene: &Scene, id: &str) -> bool {
    let dir = scene.workspace.path().join(format!("results/issue_{id}"));
    dir.join("SUMMARY.md").exists() && scene.state(id) == "AWAITING_SIGNOFF"
}

fn was_built(scene: &Scene, id: &str) -> bool {
    scene.calls().contains(&format!("builder {id}"))
}

#[test]
fn a_ready_part_starts_at_once_and_the_same_batch_starts_the_rest_when_its_blocker_is_accepted() {
    // 99 keeps the batch at work until the test has seen the rest start.
    let builder = format!(
        "[ $1 != 99 ] || while [ ! -e \"$PDCA_WORKSPACE/go\" ]; do sleep 0.05; done\n{BUILDER}"
    );
    let scene = partly_ready(&builder, "");
    scene.brief("99", &[]);
    let before = scene.workspace.read("results/issue_7/brief.md");
    let told = "7: 7-one starts now; 7-two after 41; 7-three follows";
    let plan = scene.pdca(&["plan"]).expect(0).out;
    assert!(plan.contains(told), "{plan}");
    let row = scene.pdca(&["plan", "--json"]).expect(0).json()["splits"][0].clone();
    assert_eq!(row["ready"], serde_json::json!(["7-one"]), "{row}");
    assert_eq!(row["waiting"][0]["waits_for"], serde_json::json!(["41"]), "{row}");
    let why = scene.pdca(&["why", "7"]).expect(0).out;
    assert!(why.contains(told), "{why}");
    let dry = scene.pdca(&["batch", "--dry-run"]).expect(0);
    assert!(dry.err.contains(&format!("would split {told}")), "{}", dry.err);
    assert_eq!(scene.workspace.read("results/issue_7/brief.md"), before, "so far nothing is split");

    let batch = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("the ready part and the blocker are built", |scene| {
        is_at_signoff(scene, "7-one") && is_at_signoff(scene, "41")
    });
    assert!(!was_built(&scene, "7-two"), "{:?}", scene.calls());
    scene.accept("41");
    scene.wait_until("the rest is built by itself", |scene| is_at_signoff(scene, "7-two"));
    scene.workspace.write("go", "");
    assert_eq!(batch.wait(), 0);
    assert!(!was_built(&scene, "7") && !was_built(&scene, "7-three"), "{:?}", scene.calls());
    // Nothing that the person wrote is lost.
    assert!(scene.workspace.read("results/issue_7/brief.md").starts_with(&before));
    assert!(summary(&scene, "7").contains("split into 7-one, 7-two, 7-three"));
    for id in ["7-one", "7-two", "7-three"] {
        let brief = scene.workspace.read(format!("results/issue_{id}/brief.md"));
        assert!(brief.contains("- **Invariant to restore:** greeting.txt stays"), "{brief}");
    }
    let brief = scene.workspace.read("results/issue_9/brief.md");
    assert!(brief.contains("7-one, 7-two, 7-three"), "{brief}");
    // The next batch has nothing to split, and builds what is behind the rest.
    scene.accept("7-two");
    let again = scene.pdca(&["batch"]).expect(0);
    assert!(!again.err.contains("split"), "{}", again.err);
    assert!(was_built(&scene, "7-three"), "{:?}", scene.calls());
}

#[test]
fn named_alone_a_bundle_is_split_and_only_its_ready_part_is_built() {
    let scene = partly_ready(BUILDER, "");
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert!(ran.err.contains("split 7: 7-one starts now"), "{}", ran.err);
    assert_eq!(scene.calls(), ["builder 7-one", "reviewer 7-one"]);
    assert_eq!(scene.state("7-two"), "PLANNED");
}

#[test]
fn a_bundle_stays_whole_if_that_is_configured_or_a_part_waits_for_a_person_or_all_parts_wait() {
    let never = partly_ready(BUILDER, "[schedule]\nsplit = \"never\"\n");
    never.pdca(&["run", "7"]).expect(0);
    assert!(was_built(&never, "7"), "{:?}", never.calls());

    let all = "  - Waits for: 41\n- **Part two:**";
    let person = PARTLY_READY.replace("  - After: two", "  - Waits for: a decision");
    for text in [PARTLY_READY.replace("- **Part two:**", all), person] {
        let scene = partly_ready(BUILDER, "");
        scene.workspace.write("results/issue_7/brief.md", &text);
        scene.pdca(&["batch"]).expect(0);
        assert_eq!(scene.calls(), ["builder 41", "reviewer 41"], "it waits as a whole: {text}");
        assert_eq!(scene.workspace.read("results/issue_7/brief.md"), text);
        scene.accept("41");
        scene.pdca(&["batch"]).expect(0);
        assert!(was_built(&scene, "7"), "{:?}", scene.calls());
    }
}

#[test]
fn killed_anywhere_in_a_split_of_its_own_the_next_batch_finishes_it_and_never_builds_the_whole() {
    let mut killed = 0;
    for name in [
        "split-off",
        "split-off:2",
        "split-off:3",
        "brief.md",
        "brief.md:2",
        "set-aside",
        "sign-off",
    ] {
        for at in [name.to_owned(), format!(">{name}")] {
            let scene = partly_ready(BUILDER, "");
            scene.pdca(&["run", "41"]).expect(0);
            let first = scene.pdca_with(&[("PDCA_CRASH_AT", &at)], &["batch"]);
            assert_eq!(first.code, 128 + 9, "{at}: {}", first.err);
            killed += 1;
            // What the parts waited for is over meanwhile, so that the whole could be built as well.
            let is_begun = scene.workspace.path().join("results/issue_7-one/brief.md").exists();
            if is_begun {
                scene.accept("41");
            }
            scene.pdca(&["batch"]).expect(0);
            assert!(!was_built(&scene, "7"), "{at}: {:?}", scene.calls());
            assert!(was_built(&scene, "7-one"), "{at}: {:?}", scene.calls());
            assert_eq!(was_built(&scene, "7-two"), is_begun, "{at}: {:?}", scene.calls());
            for id in ["7-one", "7-two", "7-three"] {
                let brief = scene.workspace.read(format!("results/issue_{id}/brief.md"));
                assert!(brief.contains("- **Split from:** 7\n"), "{at}: {brief}");
            }
            let brief = scene.workspace.read("results/issue_9/brief.md");
            assert!(brief.contains("7-one, 7-two, 7-three"), "{at}: {brief}");
            let outcomes = summary(&scene, "7").matches("- Outcome: discontinued").count();
            assert_eq!(outcomes, 1, "{at}");
        }
    }
    assert_eq!(killed, 14);
}
