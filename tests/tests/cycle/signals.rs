//! Interrupts, a second driver, and what a killed driver leaves running: nothing.

use pdca_e2e::Scene;
use rustix::process::Signal;

/// A gate that says it is there and then waits, in a grandchild that left its session, and ignores TERM.
const STUBBORN: &str = r#"
[[gates.checks]]
id = "T1-wait"
tier = "T1"
scope = "bundle"
cmd = '''
test -f "$PDCA_WORKSPACE/go" && exit 0
trap "" TERM
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
echo up > "$PDCA_WORKSPACE/calls/up"
while :; do sleep 1; done
'''
"#;

fn waiting() -> Scene {
    let scene = Scene::new(STUBBORN);
    scene.brief("7", &[]);
    scene
}

fn is_up(scene: &Scene) -> bool {
    scene.workspace.says("calls/up")
}

#[test]
fn b13_b16_an_interrupt_ends_the_tree_and_the_same_command_goes_on() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let scene = waiting();
        let driver = scene.start(&["run", "7"]);
        scene.wait_until("the gate is up", is_up);
        driver.signal(signal);
        assert_eq!(driver.wait(), 130, "{signal:?}");
        scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
        assert_eq!(scene.state("7"), "BUILT");
        scene.workspace.write("go", "");
        scene.pdca(&["run", "7"]).expect(0);
    }
}

#[test]
fn b10_a_killed_driver_leaves_no_process_behind() {
    let scene = waiting();
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("the gate is up", is_up);
    driver.signal(Signal::KILL);
    assert_eq!(driver.wait(), 128 + 9);
    scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
    scene.workspace.write("go", "");
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn lesson_08_an_interrupt_keeps_the_remaining_bundles_from_starting() {
    let scene = waiting();
    scene.brief("8", &[]);
    let driver = scene.start(&["batch"]);
    scene.wait_until("the gate is up", is_up);
    driver.signal(Signal::INT);
    assert_eq!(driver.wait(), 130);
    assert_eq!(scene.state("8"), "PLANNED");
}

#[test]
fn lesson_09_a_second_driver_is_refused_and_told_who_is_at_work() {
    let scene = waiting();
    let driver = scene.start(&["batch"]);
    scene.wait_until("the gate is up", is_up);
    let second = scene.pdca(&["run", "7"]).expect(2);
    assert!(second.err.contains("the workspace is held by process"), "{}", second.err);
    assert!(second.err.contains(&driver.pid().as_raw_nonzero().to_string()), "{}", second.err);
    // Reading is always allowed.
    assert_eq!(scene.state("7"), "BUILT");
    driver.signal(Signal::INT);
    assert_eq!(driver.wait(), 130);
}
