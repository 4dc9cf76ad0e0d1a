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
