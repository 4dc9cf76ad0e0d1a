//! Group F of the fault matrix: time, limits, people. The real binary, where it can show the row.

use pdca_e2e::Scene;
use rustix::process::Signal;

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

/// Says that it is there, leaves something half done, and goes on when the test lets it.
const PATIENT: &str = r#"
echo half > "half-$1.txt"
echo up > "$PDCA_WORKSPACE/calls/at-$1"
while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
echo "$1" > "file-$1.txt"
"#;

fn patient(ids: &[&str], more: &str) -> Scene {
    let scene = Scene::with_leaves(PATIENT, REVIEWER, more);
    for id in ids {
        scene.brief(id, &[]);
    }
    scene
}

fn is_at(id: &'static str) -> impl Fn(&Scene) -> bool {
    move |scene| scene.workspace.has(format!("calls/at-{id}"))
}

/// The commits that were kept, with the text of a file in them.
fn kept(scene: &Scene, commit: &str, file: &str) -> String {
    let lane = scene.workspace.around().join("ws.lanes/lane-0/app");
    pdca_testkit::Repo::existing(&lane).git(&["show", &format!("{commit}:{file}")])
}

/// A checkout that cannot be made ready until the file `ready` is there.
const NEVER_READY: &str = "[lanes.hydrate]\nverify = 'test -e \"$PDCA_WORKSPACE/ready\"'\n";

/// A run in which making a checkout was tried until it was blocked.
fn blocked() -> Scene {
    let scene = Scene::with_leaves("echo built > built.txt", REVIEWER, NEVER_READY);
    scene.brief("7", &[]);
    for _ in 0..5 {
        scene.pdca(&["run", "7"]).expect(2);
    }
    scene
}

#[test]
fn f14_abort_of_a_run_at_work_stops_its_lanes_keeps_the_work_and_lands_nothing() {
    let scene = patient(&["7", "8"], "");
    let before = scene.before();
    let driver = scene.start(&["batch", "--lanes", "2", "--events", "events"]);
    scene.wait_until("both are in work", |scene| is_at("7")(scene) && is_at("8")(scene));
    let dry = scene.pdca(&["abort", "-n", "--json"]).expect(0).json();
    assert_eq!((&dry["by"], dry["kept"].as_array().map(Vec::len)), (&"driver".into(), Some(2)));
    let told = scene.pdca(&["abort", "--why", "enough", "--json"]).expect(0).json();
    assert_eq!((&told["phase"], &told["run"]), (&"aborted".into(), &dry["run"]));
    assert_eq!(driver.wait(), 130);
    let events = scene.workspace.read("events");
    let rescued: Vec<&str> = events.lines().filter(|line| line.contains("\"rescued\"")).collect();
    assert_eq!(rescued.len(), 2, "{events}");
    assert_eq!(scene.runs(), Vec::<serde_json::Value>::new());
    scene.check_oracles(&before);
}

#[test]
fn f14_abort_of_a_run_whose_driver_died_keeps_its_work_and_says_how_to_get_it_back() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    driver.signal(Signal::KILL);
    driver.wait();
    let dry = scene.pdca(&["abort", "-n", "--json"]).expect(0).json();
    let told = scene.pdca(&["abort", "--json"]).expect(0).json();
    for (foreseen, done) in [(&dry["run"], &told["run"]), (&dry["by"], &told["by"])] {
        assert_eq!(foreseen, done);
    }
    assert_eq!(dry["kept"][0]["bundle"], told["kept"][0]["bundle"]);
    let commit = told["kept"][0]["commit"].as_str().expect("what was half done is kept");
    assert_eq!(kept(&scene, commit, "half-7.txt"), "half\n");
    assert!(told["kept"][0]["fetch"].as_str().is_some_and(|fetch| fetch.contains(commit)));
    scene.pdca(&["abort"]).expect(4);
    scene.check_oracles(&before);
    // The bundle itself was not given up.
    scene.workspace.write("go", "");
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn f16_after_a_manual_fix_it_goes_on_from_the_blocked_step_only() {
    let scene = blocked();
    let before = scene.before();
    let again = scene.pdca(&["run", "7"]).expect(104);
    assert!(again.err.contains("pdca unblock 7"), "{}", again.err);
    let shown = scene.pdca(&["recover"]).expect(104);
    assert!(shown.out.contains("decide:") && shown.out.contains("pdca unblock 7"), "{}", shown.out);
    assert!(scene.pdca(&["status"]).expect(0).out.contains("7 waits for a person"));
    scene.check_oracles(&before);
    scene.workspace.write("ready", "");
    scene.pdca(&["unblock", "8"]).expect(2);
    scene.pdca(&["unblock", "7", "-n"]).expect(0);
    scene.pdca(&["run", "7"]).expect(104);
    scene.pdca(&["unblock", "7", "--note", "mended"]).expect(0);
    scene.pdca(&["unblock", "7"]).expect(2);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"]);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}
