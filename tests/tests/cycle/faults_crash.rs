//! Group A of the fault matrix: the driver is killed at each step. The real binary, killed by itself.

use pdca_e2e::Scene;
use pdca_e2e::cast::{is_at, patient, with};
use pdca_journal::{Runs, WorkstreamStatus};
use rustix::process::Signal;

const QUICK: &str = "echo $1 > file-$1.txt";

/// Kills a run of the bundle 7 with two lanes before the effect of that name.
fn killed_at(builder: &str, point: &str) -> Scene {
    let scene = with(builder, &["7"], "");
    scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["batch", "--lanes", "2"]).expect(137);
    scene
}

/// The journal of the newest run, as a reader finds it.
fn newest(scene: &Scene) -> pdca_journal::RunState {
    let runs = Runs::new(scene.workspace.path().join(".pdca/runs"));
    let ids = runs.list().expect("runs can be listed");
    let run = runs.find(ids.last().expect("there was a run"));
    run.found.expect("its journal can be read").state
}

fn generation(scene: &Scene) -> Option<u32> {
    let id = "7".parse().expect("an id");
    newest(scene).bundles[&id].claim.as_ref().map(|claim| claim.generation.get())
}

#[test]
fn a2_a_run_that_was_recorded_and_has_no_checkout_gets_one() {
    let scene = killed_at(QUICK, "attempt");
    let before = scene.before();
    assert!(!scene.workspace.around().join("ws.lanes/lane-0").exists());
    assert_eq!(generation(&scene), None);
    assert_eq!(scene.runs()[0]["phase"], "running");
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
}

#[test]
fn a5_c6_a_claim_whose_driver_died_is_claimed_again_with_the_next_generation() {
    let scene = killed_at(QUICK, "reset");
    let before = scene.before();
    assert_eq!((generation(&scene), scene.calls().len()), (Some(1), 0));
    let found = scene.pdca(&["recover", "-n", "--json"]).expect(0).json();
    let bundle = &found["runs"][0]["bundles"][0];
    assert_eq!((&bundle["was"], &bundle["runner"]), (&"running".into(), &"dead".into()));
    assert_eq!(bundle["action"], "mark-interrupted");
    assert_eq!(found["runs"][0]["driver"]["liveness"], "dead");
    scene.check_oracles(&before);
    let status = newest(&scene).bundles[&"7".parse().expect("an id")].status.clone();
    assert_eq!(status, WorkstreamStatus::Interrupted);
    scene.goes_on(&["7"]);
    assert_eq!(generation(&scene), Some(2));
}

#[test]
fn a7_what_a_builder_left_in_mid_edit_is_kept_and_the_bundle_claimed_again() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("it is in mid-edit", is_at("7"));
    driver.signal(Signal::KILL);
    driver.wait();
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
    let lane = scene.lane(0);
    let lane = pdca_testkit::Repo::existing(format!("{}.repository", lane.path()).as_ref());
    let rescued = lane.git(&["for-each-ref", "--format=%(refname)", "refs/pdca/rescue"]);
    let has =
        |name: &str| lane.try_git(&["show", &format!("{name}:half-7.txt")]).stdout == b"half\n";
    assert!(rescued.lines().any(has), "{rescued}");
    assert_eq!(scene.calls().iter().filter(|call| *call == "builder 7").count(), 2);
}

#[test]
fn a8_commits_that_a_builder_made_itself_are_kept_and_it_is_not_called_again() {
    let builder = "echo $1 > file-$1.txt\ngit add -A\n\
                   git -c user.name=b -c user.email=b@localhost commit -qm mine";
    let scene = killed_at(builder, "patch.diff");
    let before = scene.before();
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"]);
}

#[test]
fn a29_a_run_whose_work_was_done_and_that_was_not_marked_is_marked() {
    // Killed after the last effect: everything is done, and nobody wrote it down.
    let mut last = None;
    for k in (1..120).rev() {
        let scene = with(QUICK, &["7"], "");
        let at = format!("@{k}");
        if scene.pdca_with(&[("PDCA_CRASH_AT", &at)], &["run", "7"]).code == 137 {
            last = Some(scene);
            break;
        }
    }
    let scene = last.expect("it was killed somewhere");
    let before = scene.before();
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    assert_eq!(scene.runs().len(), 1);
    let told = scene.pdca(&["recover", "--json"]).expect(0).json();
    assert_eq!(told["runs"][0]["over"], true);
    assert_eq!(scene.runs(), Vec::<serde_json::Value>::new());
    scene.check_oracles(&before);
}

#[test]
fn a31_a_sign_off_that_is_killed_is_recorded_whole_or_not_at_all() {
    let scene = with(QUICK, &["7"], "");
    scene.pdca(&["run", "7"]).expect(0);
    scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    let before = scene.before();
    let open = scene.workspace.read("results/issue_7/SUMMARY.md");
    // What a killed writer leaves beside it does not count.
    scene.workspace.write("results/issue_7/.SUMMARY.md.pdca-tmp-1-0", &open[..open.len() / 2]);
    for milliseconds in 0..8_u64 {
        let signing = scene.start(&["signoff", "7", "accept"]);
        std::thread::park_timeout(std::time::Duration::from_millis(milliseconds * 3));
        signing.signal(Signal::KILL);
        signing.wait();
        let now = scene.workspace.read("results/issue_7/SUMMARY.md");
        let state = scene.state("7");
        assert_eq!(state == "AWAITING_SIGNOFF", now == open, "{now}");
        assert!(state == "AWAITING_SIGNOFF" || state == "COMPLETE", "{state}");
    }
    if scene.state("7") == "AWAITING_SIGNOFF" {
        scene.pdca(&["signoff", "7", "accept"]).expect(0);
    }
    assert_eq!(scene.state("7"), "COMPLETE");
    scene.check_oracles(&before);
}
