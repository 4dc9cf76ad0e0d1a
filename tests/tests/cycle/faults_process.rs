//! Group B of the fault matrix: processes. What one child does to itself is shown beside its supervisor.

#![expect(clippy::print_stdout, reason = "how long it took is said and not asserted")]

use pdca_e2e::Scene;
use pdca_e2e::cast::{is_at, patient, with};
use rustix::process::Signal;

/// A gate that daemonises twice, closes everything, and ignores the request to end.
const STUBBORN: &str = r#"
[[gates.checks]]
id = "T1-wait"
tier = "T1"
scope = "bundle"
cmd = '''
test -f "$PDCA_WORKSPACE/go" && exit 0
trap 'echo asked > "$PDCA_WORKSPACE/calls/asked"' TERM
setsid sh -c 'trap "" TERM INT HUP; setsid sh -c "trap \"\" TERM INT HUP; exec <&- >&- 2>&-; while :; do sleep 1; done" & while :; do sleep 1; done' &
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
fn b14_b15_a_second_signal_ends_everything_at_once_and_the_same_command_goes_on() {
    for signal in [Signal::INT, Signal::TERM] {
        let scene = waiting();
        let before = scene.before();
        let driver = scene.start(&["run", "7"]);
        scene.wait_until("the gate is up", is_up);
        driver.signal(signal);
        scene.wait_until("the gate was asked to end", |scene| scene.workspace.has("calls/asked"));
        driver.signal(signal);
        assert_eq!(driver.wait(), 130, "{signal:?}");
        scene.check_oracles(&before);
        scene.workspace.write("go", "");
        scene.pdca(&["run", "7"]).expect(0);
    }
}

#[test]
fn b4_b10_after_the_death_of_the_driver_nothing_of_a_gate_that_hides_lives_a_second_later() {
    let scene = waiting();
    let before = scene.before();
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("the gate is up", is_up);
    driver.signal(Signal::KILL);
    assert_eq!(driver.wait(), 128 + 9);
    let died = std::time::Instant::now();
    scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
    // Said, not asserted: how long it takes is the machine's business as well.
    println!("gone after {} ms", died.elapsed().as_millis());
    scene.check_oracles(&before);
    scene.workspace.write("go", "");
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn b17_a_driver_that_is_stopped_keeps_its_run_and_goes_on_when_it_is_continued() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    driver.signal(Signal::STOP);
    let second = scene.pdca(&["run", "7"]).expect(2);
    assert!(second.err.contains("is held by process"), "{}", second.err);
    let told = scene.pdca(&["recover", "--json"]).expect(4).json();
    assert_eq!(told["runs"][0]["action"], "leave");
    assert_eq!(told["runs"][0]["driver"]["liveness"], "alive");
    driver.signal(Signal::CONT);
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"]);
    scene.check_oracles(&before);
}

/// Holds two hundred megabytes in a variable of the shell.
const GREEDY: &str = r"x=$(head -c 200000000 /dev/zero | tr '\0' x); sleep 60";

#[test]
fn a_leaf_and_a_gate_with_more_memory_than_their_cap_are_ended_and_it_is_said() {
    let cap = "[driver]\nleaf_memory_mb = 96\ngate_base = \"off\"\n\n";
    let leaf = with(GREEDY, &["7"], cap);
    let before = leaf.before();
    let ran = leaf.pdca(&["run", "7"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("more memory than its cap of 96 MiB"), "{}", ran.err);
    leaf.check_oracles(&before);

    let gate = format!("[[gates.checks]]\nid = \"T1\"\ntier = \"T1\"\ncmd = '''{GREEDY}'''\n");
    let gate = with("echo $1 > file-$1.txt", &["7"], &format!("{cap}{gate}"));
    gate.pdca(&["run", "7"]);
    let report = gate.workspace.read("results/issue_7/check-gates.json");
    assert!(report.contains("more memory than its cap of 96 MiB"), "{report}");
    assert!(report.contains("\"fail\""), "{report}");
    let doctor = gate.pdca(&["doctor"]);
    assert!(doctor.out.contains("leaf memory"), "{}", doctor.out);
}
