//! The crash sweep: three bundles on two lanes, the driver killed at every effect, then the same command.

#![expect(clippy::print_stdout, reason = "how much was visited is a result as well")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;

const BATCH: [&str; 3] = ["batch", "--lanes", "2"];

/// Leaves take a moment, so that one that is cut off is cut off before its end.
const BUILDER: &str = "sleep 0.02\necho \"$1\" > \"file-$1.txt\"";

const GATE: &str = "[[gates.checks]]\nid = \"T1-there\"\ntier = \"T1\"\n\
    cmd = 'test -f \"file-$PDCA_ISSUE.txt\" && echo \"gate $PDCA_ISSUE\" >> \"$PDCA_WORKSPACE/calls/ended\"'\n";

fn scene() -> Scene {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.brief("7", &[("Touches", "file-7.txt")]);
    scene.brief("8", &[("Touches", "file-8.txt")]);
    scene.brief("9", &[("Conflicts with", "8"), ("Touches", "file-9.txt")]);
    scene
}

/// What must be the same however often the driver died on the way.
#[derive(Debug)]
struct End {
    files: BTreeMap<String, String>,
    /// What came to its own end.
    ended: BTreeSet<String>,
    user: String,
    runs: usize,
}

fn end(scene: &Scene) -> End {
    let refs = scene.repo.git(&["for-each-ref"]).lines().count();
    let user = format!("{}{refs}", scene.repo.status());
    let ended = scene.ended().into_iter().collect();
    End { files: scene.results(), ended, user, runs: scene.runs().len() }
}

/// Carries `visit` out for 1, 2, 3, … on several threads until it says that there is nothing there.
fn for_every(visit: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(1);
    let last = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::SeqCst);
                    if k > last.load(Ordering::SeqCst) {
                        return;
                    }
                    if !visit(k) {
                        last.fetch_min(k, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

/// Kills the driver at point `k`; false where it comes through before.
#[track_caller]
fn is_killed(scene: &Scene, k: u64) -> bool {
    let ran = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{k}"))], &BATCH);
    assert!([0, 3, 137].contains(&ran.code), "at point {k}: {ran:?}");
    ran.code == 137
}

#[track_caller]
fn goes_on(scene: &Scene, expected: &End, at: &str) {
    let resumed = scene.pdca(&BATCH);
    assert!(resumed.code == 0 || resumed.code == 3, "after {at}: {resumed:?}");
    scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
    let found = end(scene);
    let names = |end: &End| end.files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "killed at {at}");
    for (name, text) in &expected.files {
        assert_eq!(&found.files[name], text, "{name}, killed at {at}");
    }
    let End { ended, user, runs, .. } = &found;
    assert_eq!((ended, user), (&expected.ended, &expected.user), "killed at {at}");
    assert_eq!(*runs, 0, "killed at {at}");
}

/// Nothing is called more often than drivers died while it ran.
#[track_caller]
fn check_calls(scene: &Scene, deaths: usize, at: &str) {
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in scene.calls() {
        *calls.entry(call).or_default() += 1;
    }
    assert!(calls.values().all(|count| *count <= 1 + deaths), "killed at {at}: {calls:?}");
}

#[test]
fn killed_at_every_effect_of_a_batch_nothing_is_lost_doubled_or_left() {
    let undisturbed = scene();
    undisturbed.pdca(&BATCH).expect(0);
    let expected = end(&undisturbed);
    assert_eq!((expected.ended.len(), expected.runs), (9, 0), "{expected:?}");
    let visited = Mutex::new(Vec::new());
    for_every(|k| {
        let scene = scene();
        if !is_killed(&scene, k) {
            return false;
        }
        goes_on(&scene, &expected, &format!("point {k}"));
        check_calls(&scene, 1, &format!("point {k}"));
        visited.lock().expect("nobody panicked").push(k);
        true
    });
    let visited = visited.into_inner().expect("nobody panicked").len();
    println!("the sweep visited {visited} points");
    assert!(visited > 100, "only {visited} points were visited");
}

#[test]
fn a30_killed_again_while_it_goes_on_it_ends_the_same() {
    let undisturbed = scene();
    undisturbed.pdca(&BATCH).expect(0);
    let expected = end(&undisturbed);
    let visited = AtomicU64::new(0);
    // Every fifteenth point, and from there a second death further on each time.
    for_every(|n| {
        let scene = scene();
        let (first, second) = (n * 15, 1 + (n * 7) % 31);
        if !is_killed(&scene, first) {
            return false;
        }
        if is_killed(&scene, second) {
            visited.fetch_add(1, Ordering::SeqCst);
        }
        // Recovering by hand on the way changes nothing.
        let recovered = scene.pdca(&["recover"]);
        assert!([0, 4].contains(&recovered.code), "{recovered:?}");
        goes_on(&scene, &expected, &format!("points {first} and {second}"));
        check_calls(&scene, 2, &format!("points {first} and {second}"));
        true
    });
    let visited = visited.into_inner();
    println!("the sweep visited {visited} double crashes");
    assert!(visited > 3, "only {visited} double crashes");
}
