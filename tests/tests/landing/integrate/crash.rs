//! Killed with -9 anywhere, the next one comes to the same.

use rustix::process::Signal;

use crate::meeting::Meeting;

const RED: &str = "! { test -e a.txt && test -e b.txt; }";

fn scene_with_a_pair() -> Meeting {
    let scene = Meeting::with(RED, "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "c.txt", "c\n");
    scene.accepted("3", "b.txt", "b\n");
    scene
}

/// Puts everything back to before the integration.
fn back(scene: &Meeting, main: &str) {
    let repo = &scene.scene.repo;
    repo.git(&["update-ref", "refs/heads/main", main]);
    for name in ["integrations", "verdicts", "held.json", "culprits.json", "flakes.json"] {
        let path = scene.scene.workspace.path().join(".pdca").join(name);
        if path.is_dir() {
            fs_err::remove_dir_all(path).expect("it can be removed");
        } else if path.exists() {
            fs_err::remove_file(path).expect("it can be removed");
        }
    }
    let certificates = scene.scene.workspace.path().join("process/certificates");
    if certificates.exists() {
        fs_err::remove_dir_all(certificates).expect("they can be removed");
    }
}

#[test]
fn killed_at_any_effect_of_an_integration_the_next_comes_to_the_same_ids() {
    let scene = scene_with_a_pair();
    let main = scene.at("main");
    scene.integrate(&[]).expect(101);
    let whole = scene.at("main");
    let subjects = scene.subjects();
    assert_eq!(subjects, ["a slug|2", "a slug|1", "first|"]);
    let mut killed = 0;
    let named = ["land", "certificate", "land-outcome", "held.json"].map(str::to_owned);
    let sampled = (1..200).step_by(11).map(|point| format!("@{point}"));
    for point in named.into_iter().chain(sampled) {
        back(&scene, &main);
        let at = point.clone();
        let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", &at)], &["integrate"]);
        if first.code == 101 {
            break;
        }
        assert_eq!(first.code, 128 + 9, "point {point}: {}", first.err);
        killed += 1;
        let second = scene.integrate(&[]);
        assert!([101, 4].contains(&second.code), "point {point}: {} {}", second.code, second.err);
        assert_eq!(scene.at("main"), whole, "point {point}");
        assert_eq!(scene.subjects(), subjects, "nothing landed twice, point {point}");
        scene.pdca(&["verify"]).expect(0);
        let third = scene.integrate(&[]);
        assert!([101, 4].contains(&third.code), "point {point}: {}", third.err);
        assert_eq!(scene.at("main"), whole, "once more is the same, point {point}");
    }
    assert!(killed > 5, "only {killed} points");
    assert_eq!(scene.scene.processes(), Vec::<String>::new());
}

#[test]
fn killed_after_the_last_landing_its_certificate_is_written_by_the_next() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", "certificate")], &["integrate"]);
    assert_eq!(first.code, 128 + 9, "{}", first.err);
    assert_eq!(scene.subjects(), ["a slug|1", "first|"]);
    scene.pdca(&["verify"]).expect(4);
    scene.integrate(&[]).expect(4);
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn killed_on_the_way_to_a_branch_the_next_goes_on_in_the_same_branch() {
    let scene = Meeting::new(RED);
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.accepted("3", "c.txt", "c\n");
    for at in ["land:1", "land-outcome:1", "land-intent:2", "land-outcome:2", "journal-end"] {
        back(&scene, &scene.at("main"));
        for branch in branches(&scene) {
            scene.scene.repo.git(&["update-ref", "-d", &branch]);
        }
        let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", at)], &["integrate"]);
        assert_eq!(first.code, 128 + 9, "{at}: {}", first.err);
        let second = scene.integrate(&[]);
        assert!([101, 3].contains(&second.code), "{at}: {} {}", second.code, second.err);
        let branches = branches(&scene);
        assert_eq!(branches.len(), 1, "{at}: {branches:?}");
        let there = scene.log(&branches[0]);
        assert_eq!(there, ["a slug|3", "a slug|1", "first|"], "{at}");
        scene.pdca(&["verify"]).expect(0);
    }
}

fn branches(scene: &Meeting) -> Vec<String> {
    let list = ["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"];
    scene.scene.repo.git(&list).lines().map(str::to_owned).collect()
}

#[test]
fn killed_at_any_effect_of_an_acceptance_the_next_accepts_with_the_same_seal() {
    for point in 1..=4 {
        let scene = Meeting::new("true");
        scene.waiting("1", &[], &[("a.txt", "a\n")]);
        scene.pdca(&["signoff", "1", "clear", "all"]).expect(0);
        let at = format!("@{point}");
        let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", &at)], &["signoff", "1", "accept"]);
        assert_eq!(first.code, 128 + 9, "{}", first.err);
        assert_eq!(scene.scene.state("1"), "AWAITING_SIGNOFF");
        scene.pdca(&["signoff", "1", "accept"]).expect(0);
        let refs = scene.scene.repo.git(&["for-each-ref", "refs/pdca/*/seal/*"]);
        assert_eq!(refs.lines().count(), 1, "one seal: {refs}");
        scene.integrate(&["--land", "target"]).expect(0);
    }
}

/// Counts its runs over combinations, and waits in them where the test wants it to.
const COUNTED: &str = r#"
if [ -e a.txt ] && [ -e b.txt ]; then
  echo run >> "$PDCA_WORKSPACE/calls/runs"
  if [ -e "$PDCA_WORKSPACE/wait" ]; then
    touch "$PDCA_WORKSPACE/calls/at"
    while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
  fi
fi"#;

fn runs(scene: &Meeting) -> usize {
    scene.scene.workspace.read("calls/runs").lines().count()
}

#[test]
fn a20_a_driver_that_dies_while_the_combined_gate_runs_leaves_nothing_and_it_runs_again() {
    let scene = Meeting::with(COUNTED, "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.scene.workspace.write("wait", "");
    let started = scene.scene.start(&["integrate"]);
    scene.scene.wait_until("the gate waits", |scene| scene.workspace.has("calls/at"));
    started.signal(Signal::KILL);
    assert_eq!(started.wait(), 128 + 9);
    scene.scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
    scene.scene.workspace.write("go", "");
    scene.integrate(&[]).expect(0);
    assert_eq!(runs(&scene), 2);
}

#[test]
fn a21_a_combined_gate_that_ended_green_unheard_is_not_run_again() {
    let scene = Meeting::with(COUNTED, "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    // The first verdict is that of the branch by itself.
    let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", "verdict:2")], &["integrate"]);
    assert_eq!(first.code, 128 + 9, "{}", first.err);
    assert_eq!(runs(&scene), 1);
    scene.integrate(&[]).expect(0);
    assert_eq!(runs(&scene), 1, "the verdict that was paid for is used");
}
