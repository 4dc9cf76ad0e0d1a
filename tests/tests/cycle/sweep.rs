//! The crash sweep: three bundles on two lanes from admission to cleanup, whoever works killed at every
//! effect, then the same command.
//!
//! A scene in which the batch was killed at its point *k* goes on as a person would: each change is
//! accepted, all are integrated, and what is left is cleaned up, each of these killed at *its* point
//! *k* where it has as many. So every effect of every command is visited, and the later ones meet what
//! the earlier deaths left.

#![expect(clippy::print_stdout, reason = "how much was visited is a result as well")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;

const BATCH: [&str; 3] = ["batch", "--lanes", "2"];

/// Leaves take a moment, so that one that is cut off is cut off before its end.
const BUILDER: &str = "sleep 0.02\necho \"$1\" > \"file-$1.txt\"";

/// What landed together has no one bundle whose file must be there.
const MORE: &str = r#"
[integrate]
land = "target"

[[gates.checks]]
id = "T1-there"
tier = "T1"
cmd = 'case $PDCA_ISSUE in [0-9]) ;; *) exit 0;; esac; test -f "file-$PDCA_ISSUE.txt" && echo "gate $PDCA_ISSUE" >> "$PDCA_WORKSPACE/calls/ended"'
"#;

const IDS: [&str; 3] = ["7", "8", "9"];

const EPOCH: &str = "1794830400";

fn scene() -> Scene {
    // One date for all commits, so that scenes can be compared.
    let scene = Scene::with_leaves(BUILDER, REVIEWER, MORE).env("SOURCE_DATE_EPOCH", EPOCH);
    // The user is on another branch, so that the target may move.
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    scene.brief("7", &[("Touches", "file-7.txt")]);
    scene.brief("8", &[("Touches", "file-8.txt")]);
    scene.brief("9", &[("Conflicts with", "8"), ("Touches", "file-9.txt")]);
    scene
}

/// The state that must not depend on how often the driver died.
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
    dies(scene, &BATCH, k)
}

/// Kills a command at its point `k`; false where it comes through before.
#[track_caller]
fn dies(scene: &Scene, args: &[&str], k: u64) -> bool {
    let ran = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{k}"))], args);
    assert!([0, 3, 137].contains(&ran.code), "{args:?} at point {k}: {ran:?}");
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

/// The number of kills per command, and of commands that did not finish.
#[derive(Debug, Default)]
struct Visited {
    batch: AtomicU64,
    accept: AtomicU64,
    integrate: AtomicU64,
    cleanup: AtomicU64,
}

/// The state when everything has landed and is cleaned up.
#[derive(Debug, PartialEq, Eq)]
struct Landed {
    tree: String,
    subjects: String,
    states: Vec<String>,
    lanes: Vec<String>,
    /// Refs that kept what was gated.
    anchors: String,
    user: String,
}

const CLEANUP: [&str; 3] = ["cleanup", "--keep-days", "0"];

/// Accepts all, integrates and cleans up, each killed at its point `k`, and then done again.
/// Says whether any of them was.
#[track_caller]
fn is_landed(scene: &Scene, k: u64, visited: &Visited) -> bool {
    let mut died = false;
    let mut killed = |args: &[&str], count: &AtomicU64| {
        let dead = dies(scene, args, k);
        count.fetch_add(u64::from(dead), Ordering::SeqCst);
        died |= dead;
        dead
    };
    for id in IDS {
        // A person ticks the boxes in an editor.
        let summary = format!("results/issue_{id}/SUMMARY.md");
        let ticked = scene.workspace.read(&summary).replace("- [ ]", "- [x]");
        scene.workspace.write(&summary, ticked);
        let accept = ["signoff", id, "accept", "--date", "2026-11-16"];
        // Killed after its last effect it is accepted already, and a decision is final.
        if killed(&accept, &visited.accept) && scene.state(id) != "COMPLETE" {
            scene.pdca(&accept).expect(0);
        }
    }
    if killed(&["integrate"], &visited.integrate) {
        let again = scene.pdca(&["integrate"]);
        assert!([0, 4].contains(&again.code), "point {k}: {again:?}");
    }
    scene.pdca(&["verify"]).expect(0);
    if killed(&CLEANUP, &visited.cleanup) {
        let again = scene.pdca(&CLEANUP);
        assert!([0, 4].contains(&again.code), "point {k}: {again:?}");
    }
    died
}

fn landed(scene: &Scene) -> Landed {
    let lanes = scene.workspace.around().join("ws.lanes");
    let mut left: Vec<String> = Vec::new();
    for slot in lanes.read_dir_utf8().expect("lanes have a root").flatten() {
        let Ok(inner) = slot.path().read_dir_utf8() else { continue };
        if slot.file_name() == "rescued" {
            // What a builder had half done when its driver died outlives its lane, whole.
            for kept in inner.flatten() {
                scene.repo.git(&["bundle", "verify", "--quiet", kept.path().as_str()]);
            }
            continue;
        }
        left.extend(inner.flatten().map(|entry| entry.file_name().to_owned()));
    }
    left.sort();
    left.dedup();
    Landed {
        tree: scene.repo.git(&["rev-parse", "main^{tree}"]),
        subjects: scene.repo.git(&["log", "--format=%s", "main"]),
        states: IDS.iter().map(|id| scene.state(id)).collect(),
        lanes: left,
        anchors: scene.repo.git(&["for-each-ref", "refs/pdca/*/int/*"]),
        user: format!("{}{}", scene.repo.status(), scene.repo.head()),
    }
}

/// Every sealed change can be reached from a ref, each once.
#[track_caller]
fn check_seals(scene: &Scene, at: &str) {
    for id in IDS {
        let seal: serde_json::Value =
            serde_json::from_str(&scene.workspace.read(format!("results/issue_{id}/seal.json")))
                .expect("a seal is JSON");
        let head = seal["head"].as_str().expect("a seal names a commit");
        let refs = scene.repo.git(&["for-each-ref", "--contains", head]);
        assert!(!refs.is_empty(), "{id} is lost, killed at {at}");
        let seals = scene.repo.git(&["for-each-ref", &format!("refs/pdca/*/seal/{id}*")]);
        assert_eq!(seals.lines().count(), 1, "{id}, killed at {at}: {seals}");
    }
}

#[test]
fn killed_at_every_effect_from_admission_to_cleanup_nothing_is_lost_doubled_or_left() {
    let undisturbed = scene();
    undisturbed.pdca(&BATCH).expect(0);
    let expected = end(&undisturbed);
    assert_eq!((expected.ended.len(), expected.runs), (9, 0), "{expected:?}");
    assert!(!is_landed(&undisturbed, u64::MAX, &Visited::default()));
    let whole = landed(&undisturbed);
    assert_eq!(whole.subjects.lines().count(), 4, "{whole:?}");
    assert_eq!(whole.lanes, ["lock", "ports"], "no checkout is left");
    assert_eq!(whole.anchors, "", "what has landed needs no other ref");
    let visited = Visited::default();
    for_every(|k| {
        let scene = scene();
        let at = format!("point {k}");
        if !is_killed(&scene, k) {
            return false;
        }
        visited.batch.fetch_add(1, Ordering::SeqCst);
        goes_on(&scene, &expected, &at);
        check_calls(&scene, 1, &at);
        // Beyond the last point of the longest of them there is nothing new to see.
        if is_landed(&scene, k, &visited) {
            assert_eq!(landed(&scene), whole, "killed at {at}");
            check_seals(&scene, &at);
            assert_eq!(scene.pdca(&CLEANUP).code, 4, "nothing is left to do, killed at {at}");
            assert_eq!(scene.runs().len(), 0, "killed at {at}");
            scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
        }
        true
    });
    let Visited { batch, accept, integrate, cleanup } = visited;
    let counts = [batch, accept, integrate, cleanup].map(AtomicU64::into_inner);
    let [batch, accept, integrate, cleanup] = counts;
    let all: u64 = counts.iter().sum();
    println!(
        "the sweep visited {all} points: {batch} of the batch, {accept} of the sign-offs, \
         {integrate} of the integration, {cleanup} of the cleanup"
    );
    assert!(batch > 100 && accept >= 18, "only {counts:?} points were visited");
    assert!(integrate > 20 && cleanup > 20, "only {counts:?} points were visited");
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

/// A chain of three, the first of which is sent back once after it was accepted and built upon.
fn stacked() -> Scene {
    let builder = r#"
sleep 0.02
echo "$1 by $(cat "$PDCA_WORKSPACE/word")" > "own-$1.txt"
git add -A
git -c user.name=B -c user.email=b@example.org commit -q -m "own: $1"
echo "$1" > "file-$1.txt"
"#;
    let scene = Scene::with_leaves(builder, REVIEWER, MORE)
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .env("GIT_AUTHOR_DATE", "2026-11-16T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-11-16T00:00:00Z");
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    scene.workspace.write("word", "first");
    scene.brief("1", &[]);
    scene.brief("2", &[("Depends on", "1")]);
    scene.brief("3", &[("Depends on", "2")]);
    scene
}

/// Returns the final state of everything.
#[derive(Debug, PartialEq, Eq)]
struct Stacked {
    log: String,
    ended: BTreeSet<String>,
    user: String,
}

/// Does it, and if it was killed at its point `k`, does what goes on from there. Says whether it was.
#[track_caller]
fn again(scene: &Scene, args: &[&str], k: u64, finish: &[&str], visited: &AtomicU64) -> bool {
    let ran = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{k}"))], args);
    if ran.code != 137 {
        assert!([0, 3, 4].contains(&ran.code), "{args:?} at point {k}: {ran:?}");
        return false;
    }
    visited.fetch_add(1, Ordering::SeqCst);
    let second = scene.pdca(finish);
    assert!([0, 3, 4].contains(&second.code), "{finish:?} after point {k}: {second:?}");
    true
}

fn play_stacked(scene: &Scene, k: u64, visited: &AtomicU64) -> (bool, Stacked) {
    let batch = ["batch", "--lanes", "2"];
    let mut died = false;
    let accept = |id: &str| {
        scene.pdca(&["signoff", id, "clear", "all", "--note", "seen"]).expect(0);
        let accept = ["signoff", id, "accept", "--date", "2026-11-16"];
        let ran = scene.pdca_with(&[("PDCA_CRASH_AT", &format!("@{k}"))], &accept);
        if scene.state(id) != "COMPLETE" {
            scene.pdca(&accept).expect(0);
        }
        ran.code == 137
    };
    died |= again(scene, &batch, k, &batch, visited);
    died |= accept("1");
    // 2 is built on 1, which then changes: 2 is folded onto the new one without a builder.
    died |= again(scene, &batch, k, &batch, visited);
    scene.workspace.write("word", "second");
    // 2 is based on it, so this has to be confirmed.
    let reopen = ["--yes", "reopen", "1", "--note", "once more"];
    died |= again(scene, &reopen, k, &batch, visited);
    if scene.state("1") == "COMPLETE" {
        scene.pdca(&reopen).expect(0);
    }
    died |= again(scene, &batch, k, &batch, visited);
    died |= accept("1");
    died |= again(scene, &batch, k, &batch, visited);
    died |= accept("2");
    died |= again(scene, &batch, k, &batch, visited);
    died |= accept("3");
    died |= again(scene, &["integrate"], k, &["integrate"], visited);
    scene.pdca(&["verify"]).expect(0);
    scene.wait_until("nothing lives", |scene| scene.processes().is_empty());
    let stacked = Stacked {
        log: scene.repo.git(&["log", "--format=%H %an %ae %at %ct %s", "main"]),
        ended: scene.ended().into_iter().collect(),
        user: format!("{}{}", scene.repo.status(), scene.repo.head()),
    };
    (died, stacked)
}

#[test]
fn killed_at_every_effect_stacked_bases_and_send_backs_come_to_the_same_ids() {
    let visited = AtomicU64::new(0);
    let (died, whole) = play_stacked(&stacked(), u64::MAX, &visited);
    assert!(!died);
    assert_eq!(whole.log.lines().count(), 7, "two commits for each of three changes: {whole:?}");
    // Every fifth point of every command; the other sweep visits all of them.
    for_every(|n| {
        let k = n * 5 - 4;
        let (died, found) = play_stacked(&stacked(), k, &visited);
        assert_eq!(found, whole, "killed at point {k} of every command");
        died
    });
    let visited = visited.into_inner();
    println!("the sweep of stacks visited {visited} points");
    assert!(visited > 30, "only {visited} points");
}
