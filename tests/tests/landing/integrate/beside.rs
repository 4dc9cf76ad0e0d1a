//! An integration beside a batch that builds, in one workspace and on one target.

use pdca_e2e::{Scene, Started};
use rustix::process::Signal;

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// Waits where the test wants it to, and says that it is there.
const BUILDER: &str = r#"
if [ -e "$PDCA_WORKSPACE/slow-$1" ]; then
  echo at > "$PDCA_WORKSPACE/calls/at-$1"
  while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
fi
echo "$1" > "file-$1.txt"
"#;

/// Waits over combinations of two accepted changes, where the test wants it to.
const GATE: &str = r#"
if [ -e file-1.txt ] && [ -e file-2.txt ] && [ -e "$PDCA_WORKSPACE/slow-gate" ]; then
  echo at > "$PDCA_WORKSPACE/calls/at-gate"
  while [ ! -e "$PDCA_WORKSPACE/go-gate" ]; do sleep 0.02; done
fi"#;

/// Two accepted changes, and a batch in the middle of building two more.
fn scene() -> (Scene, Started) {
    let config = format!(
        "[integrate]\nland = \"target\"\n\
         [[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = '''{GATE}'''\n"
    );
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &config);
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    for id in ["1", "2"] {
        scene.brief(id, &[]);
        scene.pdca(&["run", id]).expect(0);
        scene.accept(id);
    }
    for id in ["3", "4"] {
        scene.workspace.write(format!("slow-{id}"), "");
        scene.brief(id, &[]);
    }
    let batch = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("both are being built", |scene| {
        ["3", "4"].iter().all(|id| scene.workspace.has(format!("calls/at-{id}")))
    });
    (scene, batch)
}

fn on_main(scene: &Scene) -> usize {
    let count = scene.repo.git(&["rev-list", "--count", "main"]);
    count.trim().parse().expect("git counts in digits")
}

#[test]
fn changes_land_while_a_batch_builds_and_the_batch_goes_on() {
    let (scene, batch) = scene();
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(on_main(&scene), 3, "both are in the branch");
    scene.pdca(&["verify"]).expect(0);
    // One of a kind at a time.
    let second = scene.pdca(&["run", "3"]).expect(2);
    assert!(second.err.contains("held by"), "{}", second.err);
    scene.workspace.write("go", "");
    assert_eq!(batch.wait(), 0);
    for id in ["3", "4"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
        scene.accept(id);
    }
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(on_main(&scene), 5);
    assert_eq!(scene.processes(), Vec::<String>::new());
}

#[test]
fn a_second_integration_is_refused_and_told_who_integrates() {
    let (scene, batch) = scene();
    scene.workspace.write("slow-gate", "");
    let integration = scene.start(&["integrate"]);
    scene.wait_until("the gate waits", |scene| scene.workspace.has("calls/at-gate"));
    let second = scene.pdca(&["integrate"]).expect(2);
    assert!(
        second.err.contains("the integration of accepted changes is held by"),
        "{}",
        second.err
    );
    let swept = scene.pdca(&["cleanup"]).expect(2);
    assert!(swept.err.contains("held by"), "{}", swept.err);
    scene.workspace.write("go-gate", "");
    assert_eq!(integration.wait(), 0);
    scene.workspace.write("go", "");
    assert_eq!(batch.wait(), 0);
}

#[test]
fn an_integration_that_is_killed_leaves_the_batch_alone_and_the_next_lands_the_same() {
    let (scene, batch) = scene();
    scene.workspace.write("slow-gate", "");
    let integration = scene.start(&["integrate"]);
    scene.wait_until("the gate waits", |scene| scene.workspace.has("calls/at-gate"));
    integration.signal(Signal::KILL);
    assert_eq!(integration.wait(), 128 + 9);
    assert_eq!(on_main(&scene), 1, "nothing landed");
    scene.workspace.write("go-gate", "");
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(on_main(&scene), 3);
    scene.workspace.write("go", "");
    assert_eq!(batch.wait(), 0);
    assert_eq!(scene.state("3"), "AWAITING_SIGNOFF");
    assert_eq!(scene.processes(), Vec::<String>::new());
}

#[test]
fn a_batch_that_is_killed_leaves_the_integration_alone_and_the_next_builds_the_rest() {
    let (scene, batch) = scene();
    scene.workspace.write("slow-gate", "");
    let integration = scene.start(&["integrate"]);
    scene.wait_until("the gate waits", |scene| scene.workspace.has("calls/at-gate"));
    batch.signal(Signal::KILL);
    assert_eq!(batch.wait(), 128 + 9);
    scene.workspace.write("go", "");
    // The next batch begins while the integration is still at work.
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    assert_eq!(scene.state("4"), "AWAITING_SIGNOFF");
    assert_eq!(on_main(&scene), 1, "the integration still waits");
    scene.workspace.write("go-gate", "");
    assert_eq!(integration.wait(), 0);
    assert_eq!(on_main(&scene), 3);
    assert_eq!(scene.processes(), Vec::<String>::new());
}
