//! Integrations while other processes act, or over changed facts.

use pdca_integrate::{Fence, Store};
use rustix::process::Signal;

use crate::meeting::Meeting;

/// Waits, where `a.txt` is there and the test wants it to, until the test lets it go.
const PATIENT: &str = r#"
if [ -e a.txt ] && [ -e "$PDCA_WORKSPACE/wait" ]; then
  touch "$PDCA_WORKSPACE/calls/at"
  while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
fi"#;

/// Starts an integration and comes back when its gate waits. What Check said about the same tree is left out.
fn waiting_at_the_gate(scene: &Meeting) -> pdca_e2e::Started {
    scene.scene.workspace.write("wait", "");
    let started = scene.scene.start(&["integrate", "--fresh", "--land", "target"]);
    scene.scene.wait_until("the gate waits", |scene| scene.workspace.has("calls/at"));
    started
}

#[test]
fn a_commit_of_somebody_else_during_the_gate_is_gated_too_and_never_overwritten() {
    let scene = Meeting::new(PATIENT);
    scene.accepted("1", "a.txt", "a\n");
    let started = waiting_at_the_gate(&scene);
    scene.commit_to_main("new.txt", "new\n");
    scene.scene.workspace.write("go", "");
    assert_eq!(started.wait(), 0);
    assert_eq!(scene.subjects(), ["a slug|1", "somebody else|", "first|"]);
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_branch_that_was_rewound_during_the_gate_is_left_alone() {
    let scene = Meeting::new(PATIENT);
    scene.commit_to_main("old.txt", "old\n");
    scene.accepted("1", "a.txt", "a\n");
    let started = waiting_at_the_gate(&scene);
    scene.scene.repo.git(&["update-ref", "refs/heads/main", "main~1"]);
    scene.scene.workspace.write("go", "");
    assert_eq!(started.wait(), 104);
    assert_eq!(scene.subjects(), ["first|"]);
}

#[test]
fn a_collection_of_garbage_during_the_gate_takes_nothing_away() {
    let scene = Meeting::new(PATIENT);
    scene.accepted("1", "a.txt", "a\n");
    scene.scene.repo.git(&["gc", "--quiet", "--prune=now"]);
    let started = waiting_at_the_gate(&scene);
    scene.scene.repo.git(&["gc", "--quiet", "--prune=now"]);
    scene.scene.workspace.write("go", "");
    assert_eq!(started.wait(), 0);
    scene.scene.repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_patch_that_was_edited_after_acceptance_is_reported_and_never_merged() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    let patch = scene.scene.workspace.read("results/issue_1/patch.diff");
    scene.scene.workspace.write("results/issue_1/patch.diff", patch.replace("+a", "+evil"));
    let done = scene.integrate(&["--land", "target", "--json"]).expect(104).json();
    assert_eq!(done["held"][0]["reason"], "drift");
    assert_eq!(scene.subjects(), ["a slug|2", "first|"]);
}

#[test]
fn the_seal_holds_when_the_lanes_and_its_copy_are_gone() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    fs_err::remove_dir_all(scene.scene.workspace.around().join("ws.lanes")).unwrap();
    fs_err::remove_file(scene.scene.workspace.path().join("results/issue_1/seal.json")).unwrap();
    scene.integrate(&["--land", "target"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
}

#[test]
fn a_seal_whose_ref_is_gone_is_not_merged() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    let run = scene.seal("1")["run"].as_str().unwrap().to_owned();
    scene.scene.repo.git(&["update-ref", "-d", &format!("refs/pdca/{run}/seal/1")]);
    let refused = scene.integrate(&["--land", "target"]).expect(104);
    assert!(refused.out.contains("is gone"), "{}", refused.out);
    assert_eq!(scene.subjects(), ["first|"]);
}

#[test]
fn a_bundle_accepted_without_a_seal_is_named_and_can_be_sealed() {
    let scene = Meeting::new("true");
    scene.accepted("1", "a.txt", "a\n");
    let run = scene.seal("1")["run"].as_str().unwrap().to_owned();
    scene.scene.repo.git(&["update-ref", "-d", &format!("refs/pdca/{run}/seal/1")]);
    fs_err::remove_file(scene.scene.workspace.path().join("results/issue_1/seal.json")).unwrap();
    let told = scene.integrate(&["--land", "target"]).expect(4);
    assert!(told.out.contains("1 was accepted without a seal"), "{}", told.out);
    scene.integrate(&["1", "--land", "target"]).expect(3);
    // It keeps nothing else from landing, and the end is that of the rest.
    scene.accepted("2", "b.txt", "b\n");
    let landed = scene.integrate(&["--land", "target"]).expect(0);
    assert!(landed.out.contains("1 was accepted without a seal"), "{}", landed.out);
    assert_eq!(scene.subjects(), ["a slug|2", "first|"]);
    scene.integrate(&["--land", "target", "--seal"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "a slug|2", "first|"]);
}

#[test]
fn of_many_changes_without_a_seal_the_document_has_each_with_its_own_command() {
    let scene = Meeting::new("true");
    for id in ["1", "2", "3", "4", "5"] {
        scene.accepted(id, &format!("{id}.txt"), "text\n");
    }
    for id in ["1", "2", "3", "4"] {
        let run = scene.seal(id)["run"].as_str().unwrap().to_owned();
        scene.scene.repo.git(&["update-ref", "-d", &format!("refs/pdca/{run}/seal/{id}")]);
        let copy = format!("results/issue_{id}/seal.json");
        fs_err::remove_file(scene.scene.workspace.path().join(copy)).unwrap();
    }
    let patch = scene.scene.workspace.read("results/issue_5/patch.diff");
    scene.scene.workspace.write("results/issue_5/patch.diff", patch.replace("+text", "+evil"));
    let done = scene.integrate(&["--land", "target", "--json"]).expect(104).json();
    let held = done["held"].as_array().unwrap().iter();
    let told: Vec<String> = held.map(|held| format!("{} {}", held["id"], held["next"])).collect();
    let seal = |id: &str| format!("\"{id}\" \"pdca integrate --seal {id}\"");
    let mut expected: Vec<String> = ["1", "2", "3", "4"].map(seal).to_vec();
    expected.push("\"5\" \"pdca reopen 5\"".to_owned());
    assert_eq!(told, expected, "{done}");
}

#[test]
fn f15_gates_that_changed_since_are_asked_anew() {
    let scene = Meeting::new("test ! -e red");
    scene.accepted("1", "a.txt", "a\n");
    let first = scene.integrate(&["--fresh", "--json"]).expect(0).json();
    assert_eq!(first["gate_runs"], 2, "the branch and the whole");
    let config = scene.scene.workspace.read("pdca.toml");
    scene.scene.workspace.config(&config.replace("test ! -e red", "test ! -e a.txt"));
    let second = scene.integrate(&["--land", "target", "--json"]).expect(101).json();
    assert!(second["gate_runs"].as_u64().unwrap() > 0);
    assert_eq!(scene.subjects(), ["first|"]);
}

#[test]
fn accept_is_refused_when_the_patch_is_not_what_was_checked() {
    let scene = Meeting::new("true");
    scene.waiting("1", &[], &[("a.txt", "a\n")]);
    scene.pdca(&["signoff", "1", "clear", "all"]).expect(0);
    let patch = scene.scene.workspace.read("results/issue_1/patch.diff");
    scene.scene.workspace.write("results/issue_1/patch.diff", patch.replace("+a", "+evil"));
    let refused = scene.pdca(&["signoff", "1", "accept"]).expect(2);
    assert!(refused.err.contains("gated:"), "{}", refused.err);
    assert!(!scene.scene.workspace.has("results/issue_1/seal.json"));
}

#[test]
fn a_second_integration_is_refused_while_one_is_at_work() {
    let scene = Meeting::new(PATIENT);
    scene.accepted("1", "a.txt", "a\n");
    let started = waiting_at_the_gate(&scene);
    let refused = scene.integrate(&["--land", "target"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("held by"), "{}", refused.err);
    scene.scene.workspace.write("go", "");
    assert_eq!(started.wait(), 0);
}

#[test]
fn an_interrupted_integration_lands_nothing_and_goes_on() {
    let scene = Meeting::new(PATIENT);
    scene.accepted("1", "a.txt", "a\n");
    let started = waiting_at_the_gate(&scene);
    started.signal(rustix::process::Signal::INT);
    assert_eq!(started.wait(), 130);
    assert_eq!(scene.subjects(), ["first|"]);
    assert_eq!(scene.scene.processes(), Vec::<String>::new());
    scene.scene.workspace.write("go", "");
    scene.integrate(&["--land", "target"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
}

#[test]
fn what_changes_in_the_users_checkout_while_gates_run_unconfined_is_told_and_stays() {
    let gate = r#"
if [ -e "$PDCA_WORKSPACE/evil" ]; then echo evil > "$(cat "$PDCA_WORKSPACE/evil")"; fi"#;
    let scene = Meeting::with(gate, "[gates]\nsandbox = \"off\"\n");
    scene.accepted("1", "a.txt", "a\n");
    let written = scene.scene.repo.path().join("written.txt");
    scene.scene.workspace.write("evil", written.as_str());
    // It may be the user at work as well as a gate, and nobody is stopped by the user's work.
    let ran = scene.integrate(&["--fresh", "--land", "target"]).expect(0);
    assert!(ran.err.contains("file written.txt"), "{}", ran.err);
    assert!(ran.err.contains("without a sandbox"), "{}", ran.err);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    assert_eq!(fs_err::read_to_string(&written).unwrap(), "evil\n", "nothing is put back");
    fs_err::remove_file(&written).unwrap();
}

#[test]
fn a_gate_that_still_runs_when_its_answer_is_of_no_use_any_more_is_called_off() {
    // 4 is red, so shorter lines are tried side by side. The shorter one never ends, and nobody needs it once the
    // longer one is green.
    let gate = r#"
if [ -e d.txt ] && [ -e a.txt ]; then exit 1; fi
if [ -e a.txt ] && [ -e b.txt ] && [ ! -e c.txt ]; then
  touch "$PDCA_WORKSPACE/calls/endless"; sleep 600
elif [ -e c.txt ] && [ -e "$PDCA_WORKSPACE/evil" ]; then
  until [ -e "$PDCA_WORKSPACE/calls/endless" ]; do sleep 0.01; done
fi"#;
    let scene = Meeting::with(gate, "[gates]\nsandbox = \"off\"\n");
    for (id, file) in [("1", "a.txt"), ("2", "b.txt"), ("3", "c.txt"), ("4", "d.txt")] {
        scene.accepted(id, file, "text\n");
    }
    scene.scene.workspace.write("evil", "");
    let ran = scene.integrate(&["--land", "target", "--lanes", "2"]).expect(101);
    assert!(ran.out.contains("held    4 breaks T3-tests"), "{}", ran.out);
    assert_eq!(scene.subjects().len(), 4, "the others landed");
    assert!(scene.scene.workspace.has("calls/endless"), "another one was at work");
    scene.scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
}

#[test]
fn c4_an_integration_that_stood_still_through_a_takeover_is_refused_by_the_fence_when_it_wakes() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    let main = scene.at("main");
    let driver = scene.scene.start_with(&[("PDCA_STOP_AT", "land")], &["integrate"]);
    scene.scene.wait_until("it is about to land", |_| driver.is_stopped());
    // Somebody takes the repository over, and lets the old driver live.
    let room = scene.scene.workspace.around().join("room");
    let store = Store::open(scene.scene.repo.path(), &room).expect("it can be opened");
    let holder = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().expect("a name");
    let fence = Fence::take(&store, &holder, 0).expect("the fence can be taken");
    driver.signal(Signal::CONT);
    let code = driver.wait();
    assert_eq!(code, 104, "it found out");
    assert_eq!(scene.at("main"), main, "and it moved nothing");
    fence.verify(&store).expect("nobody took the fence back");
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
}

#[test]
fn d3_a_lock_that_a_live_git_holds_is_told_after_a_while_and_never_removed() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    let main = scene.at("main");
    let lock = scene.scene.repo.path().join(".git/refs/heads/main.lock");
    // As git does it: the file is made, and open while its process is at work.
    let held = fs_err::File::create(&lock).expect("it can be made");
    let told = scene.integrate(&[]);
    assert_eq!(told.code, 104, "{told:?}");
    assert!(told.err.contains("refs/heads/main.lock"), "{}", told.err);
    assert!(lock.exists(), "it is not ours to remove");
    assert_eq!(scene.at("main"), main);
    let doctor = scene.pdca(&["doctor"]);
    let pid = std::process::id().to_string();
    assert!(doctor.out.contains("main.lock") && doctor.out.contains(&pid), "{}", doctor.out);
    drop(held);
    fs_err::remove_file(&lock).expect("it can be removed");
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
}

#[test]
fn d3_a_lock_that_a_live_git_gives_back_meanwhile_is_waited_for() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    let lock = scene.scene.repo.path().join(".git/refs/heads/main.lock");
    let driver = scene.scene.start_with(&[("PDCA_STOP_AT", "land")], &["integrate"]);
    scene.scene.wait_until("it is about to land", |_| driver.is_stopped());
    let held = fs_err::File::create(&lock).expect("it can be made");
    driver.signal(Signal::CONT);
    // A git that takes its time.
    std::thread::park_timeout(std::time::Duration::from_millis(600));
    drop(held);
    fs_err::remove_file(&lock).expect("it is there still");
    assert_eq!(driver.wait(), 0);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
}
