//! Files that somebody puts into a lane between two jobs are kept, whatever the last job left.

use std::{cell::RefCell, os::unix::fs::MetadataExt as _};

use camino::Utf8Path;
use fs_err as fs;
use pdca_dag::{Case, Pattern};
use pdca_lanes::{
    ClaimError, Hydrate, HydrateConfig, Observer, OwnerNote, Reset, Setup, Workbench,
    WorkbenchEvent,
};
use pdca_process::Cancel;

use crate::scene::{BY, Scene, dirt, own, seen};

/// Records what a person is told.
#[derive(Default)]
struct Told(RefCell<Vec<String>>);

impl Observer for Told {
    fn reached(&self, _: &'static str, _: bool) {}

    fn event(&self, event: WorkbenchEvent) {
        self.0.borrow_mut().push(match event {
            WorkbenchEvent::Rescued { .. } => "rescued".to_owned(),
            WorkbenchEvent::FoundInIdle { paths, .. } => paths.join(" "),
            WorkbenchEvent::Replaced { .. } => "replaced".to_owned(),
            WorkbenchEvent::Hydrating { .. } | WorkbenchEvent::Hydrated { .. } => return,
        });
    }
}

fn scene() -> Scene {
    Scene::new(&[(".gitignore", "*.o\nkept/\n"), ("a.txt", "a\n")])
}

fn claim(scene: &Scene) -> Workbench {
    let cache = Pattern::parse("kept/**", Case::Sensitive).unwrap();
    Workbench::claim(&scene.lanes().with_cache([cache]), [0], scene.target()).unwrap()
}

/// Prepares the lane for a job.
fn prepare(bench: &Workbench, job: &str, commit: &str, told: &Told) {
    let config = HydrateConfig::default();
    let hydrate = Hydrate::new(&bench.target, &config);
    bench.prepare(&Setup::new(job, commit, hydrate), &Cancel::new(), told).unwrap();
}

/// Runs a job that ends with a commit; `leaves` is what gates do in the checkout after it.
fn finished_job(scene: &Scene, leaves: impl Fn(&Utf8Path)) {
    let bench = claim(scene);
    prepare(&bench, "first", &scene.primary.head(), &Told::default());
    fs::write(bench.lane.path().join("work.txt"), "work\n").unwrap();
    let head = bench.lane.commit_all("work", &BY).unwrap().unwrap();
    bench.set_owner(&OwnerNote { job: "first".into(), head: Some(head) }).unwrap();
    leaves(bench.lane.path());
}

/// Waits until the clock of the file system has moved on, by touching a file beside the checkout.
fn later(scene: &Scene) {
    let time = |path: &Utf8Path| fs::metadata(path).map(|at| (at.ctime(), at.ctime_nsec())).ok();
    let stamp = time(&scene.checkout().with_file_name("app.released"));
    let probe = scene.beside("probe");
    loop {
        fs::write(&probe, "").unwrap();
        if time(&probe) > stamp {
            return;
        }
    }
}

/// Takes the lane for the next job, and returns what was told.
fn next_job(scene: &Scene) -> (Workbench, String) {
    let (bench, told) = (claim(scene), Told::default());
    bench.keep_idle_changes(Reset::Clean, false, &told).unwrap();
    prepare(&bench, "second", &scene.primary.head(), &told);
    assert_eq!(dirt(&bench.lane), "");
    (bench, told.0.take().join(", "))
}

/// Returns true if a commit under any ref of the lane has this text in some file.
fn is_under_a_ref(bench: &Workbench, text: &str) -> bool {
    let found = own(&bench.lane).git(&["log", "--all", &format!("-S{text}"), "--format=%H"]);
    !found.trim().is_empty()
}

#[test]
fn a_lane_that_nobody_touched_is_reset_without_a_word() {
    for leaves in ["", "gate.txt", "gate.o", "a.txt"] {
        let scene = scene();
        finished_job(&scene, |path| {
            if !leaves.is_empty() {
                fs::write(path.join(leaves), "left by a gate").unwrap();
            }
        });
        later(&scene);
        assert_eq!(next_job(&scene).1, "", "{leaves}");
    }
}

#[test]
fn a_refused_claim_hides_nothing_that_somebody_left_before_it() {
    let scene = scene();
    finished_job(&scene, |_| {});
    later(&scene);
    fs::write(scene.checkout().join("by-hand.o"), "by hand\n").unwrap();
    let other = Scene::new(&[("a.txt", "another repository\n")]);
    let refused = scene.lanes().claim(0, &other.target()).unwrap_err();
    assert!(matches!(refused, ClaimError::OtherPrimary { .. }), "{refused:?}");
    assert_eq!(next_job(&scene).1, "by-hand.o");
}

#[test]
fn every_kind_of_file_that_somebody_left_is_kept_and_named() {
    for (name, says) in [
        ("a.txt", "rescued, a.txt"),
        ("work.txt", "rescued, work.txt"),
        ("by-hand.txt", "rescued, by-hand.txt"),
        ("deep/er/by-hand.txt", "rescued, deep/er/by-hand.txt"),
        ("by-hand.o", "by-hand.o"),
        ("deep/by-hand.o", "deep/by-hand.o"),
    ] {
        let scene = scene();
        finished_job(&scene, |path| fs::write(path.join("gate.o"), "by a gate").unwrap());
        later(&scene);
        let file = scene.checkout().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "precious").unwrap();
        let (bench, told) = next_job(&scene);
        assert_eq!(told, says);
        let aside = scene.checkout().with_file_name("rescued").join("first-idle").join(name);
        assert_eq!(fs::read_to_string(aside).unwrap(), "precious", "{name}");
        assert_eq!(is_under_a_ref(&bench, "precious"), says.starts_with("rescued"), "{name}");
        assert!(!file.exists() || name == "a.txt", "{name}");
    }
}

#[test]
fn a_file_in_a_cache_stays_where_it_is() {
    let scene = scene();
    finished_job(&scene, |_| ());
    later(&scene);
    let file = scene.checkout().join("kept/by-hand.o");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "precious").unwrap();
    assert_eq!(next_job(&scene).1, "");
    assert!(file.exists());
}

#[test]
fn a_commit_that_somebody_made_is_kept() {
    let scene = scene();
    finished_job(&scene, |_| ());
    later(&scene);
    let lane = scene.claim();
    fs::write(lane.path().join("a.txt"), "precious\n").unwrap();
    seen(&lane).git(&["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qam", "mine"]);
    drop(lane);
    let (bench, told) = next_job(&scene);
    assert_eq!(told, "rescued");
    assert!(is_under_a_ref(&bench, "precious"));
}

#[test]
fn after_a_driver_that_was_killed_everything_that_git_sees_is_kept() {
    let scene = scene();
    finished_job(&scene, |_| ());
    // A killed process leaves no stamp.
    fs::remove_file(scene.checkout().with_file_name("app.released")).unwrap();
    fs::write(scene.checkout().join("by-hand.txt"), "precious").unwrap();
    let (bench, told) = next_job(&scene);
    assert_eq!(told, "rescued, by-hand.txt");
    assert!(is_under_a_ref(&bench, "precious"));
}

#[test]
fn after_a_job_that_failed_the_files_of_a_person_are_kept_too() {
    let scene = scene();
    let bench = claim(&scene);
    prepare(&bench, "first", &scene.primary.head(), &Told::default());
    fs::write(bench.lane.path().join("half.txt"), "half of the work").unwrap();
    drop(bench);
    later(&scene);
    fs::write(scene.checkout().join("by-hand.txt"), "precious").unwrap();
    fs::write(scene.checkout().join("by-hand.o"), "precious").unwrap();
    let (bench, told) = next_job(&scene);
    assert_eq!(told, "by-hand.o, rescued");
    assert!(is_under_a_ref(&bench, "precious") && is_under_a_ref(&bench, "half of the work"));
    assert!(scene.checkout().with_file_name("rescued").join("first-idle/by-hand.o").exists());
}

#[test]
fn a_process_that_goes_on_in_its_own_lane_looks_for_nothing() {
    let scene = scene();
    finished_job(&scene, |_| ());
    later(&scene);
    fs::write(scene.checkout().join("by-hand.txt"), "").unwrap();
    let (bench, told) = (claim(&scene), Told::default());
    bench.keep_idle_changes(Reset::Clean, true, &told).unwrap();
    assert_eq!(told.0.take(), [""; 0]);
}
