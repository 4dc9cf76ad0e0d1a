//! The protocol of a workbench: the steps between two jobs, and their order.

use std::cell::RefCell;

use fs_err as fs;
use pdca_lanes::{
    Hydrate, HydrateConfig, Observer, OwnerNote, Setup, Workbench, WorkbenchError, WorkbenchEvent,
};
use pdca_process::Cancel;

use crate::scene::{Scene, dirt, own};

/// Records completed steps and events.
#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Observer for Log {
    fn reached(&self, step: &'static str, done: bool) {
        if done {
            self.0.borrow_mut().push(step.to_owned());
        }
    }

    fn event(&self, event: WorkbenchEvent) {
        let name = match event {
            WorkbenchEvent::Rescued { .. } => "(rescued)",
            WorkbenchEvent::Replaced { .. } => "(replaced)",
            WorkbenchEvent::FoundInIdle { .. } => "(found)",
            WorkbenchEvent::Hydrating { .. } => "(hydrating)",
            WorkbenchEvent::Hydrated { .. } => "(hydrated)",
        };
        self.0.borrow_mut().push(name.to_owned());
    }
}

fn claim(scene: &Scene) -> Workbench {
    Workbench::claim(&scene.lanes(), [0], scene.target()).unwrap()
}

/// Prepares the workbench for a job, and returns the recorded steps.
fn prepare(bench: &Workbench, job: &str, commit: &str) -> String {
    let (log, config) = (Log::default(), HydrateConfig::default());
    let hydrate = Hydrate::new(&bench.target, &config);
    let setup = Setup::new(job, commit, hydrate);
    bench.prepare(&setup, &Cancel::new(), &log).unwrap();
    log.0.take().join(" ")
}

#[test]
fn the_owner_changes_before_the_reset_and_after_the_hydration() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (bench, base) = (claim(&scene), scene.primary.head());
    assert_eq!(prepare(&bench, "first", &base), "rescue occupy reset hydrate occupy");
    assert!(bench.is_owned_by("first").unwrap());
    assert_eq!(dirt(&bench.lane), "");
}

#[test]
fn work_that_no_commit_holds_is_rescued_before_the_next_job() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (bench, base) = (claim(&scene), scene.primary.head());
    prepare(&bench, "first", &base);
    assert!(!bench.differs_from(&base));
    fs::write(bench.lane.path().join("a.txt"), "changed\n").unwrap();
    assert!(bench.differs_from(&base));
    let done = prepare(&bench, "second", &base);
    assert_eq!(done, "rescue (rescued) occupy reset hydrate occupy");
    let refs = own(&bench.lane).git(&["for-each-ref", "--format=%(refname)"]);
    assert!(refs.contains("first"), "{refs}");
    assert!(!bench.differs_from(&base));
}

#[test]
fn work_that_a_commit_holds_is_not_rescued() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (bench, base) = (claim(&scene), scene.primary.head());
    prepare(&bench, "first", &base);
    let settled = OwnerNote { job: "first".into(), head: Some(base.clone()) };
    bench.set_owner(&settled).unwrap();
    assert_eq!(prepare(&bench, "second", &base), "occupy reset hydrate occupy");
}

#[test]
fn a_checkout_that_was_being_cleared_when_its_driver_died_is_cleared_again() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (bench, base) = (claim(&scene), scene.primary.head());
    bench.set_owner(&OwnerNote::unfinished("clearing")).unwrap();
    assert!(bench.owner().unwrap().unwrap().is_clearing());
    assert_eq!(prepare(&bench, "next", &base), "occupy reset hydrate occupy");
}

#[test]
fn the_first_free_slot_is_claimed() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (lanes, target) = (scene.lanes(), || scene.target());
    let first = Workbench::claim(&lanes, [3, 4], target()).unwrap();
    let second = Workbench::claim(&lanes, [3, 4], target()).unwrap();
    assert_ne!(first.lane.path(), second.lane.path());
    let third = Workbench::claim(&lanes, [3, 4], target());
    assert!(matches!(third, Err(WorkbenchError::Claim { .. })), "{third:?}");
}

#[test]
fn a_tripwire_that_a_job_kept_compares_with_the_time_before_the_job() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (bench, job) = (claim(&scene), scene.beside("job"));
    drop(bench.arm_for(&[], &job).unwrap());
    scene.primary.write("a.txt", "written by the job\n");
    assert!(bench.arm(&[]).unwrap().breaches().is_empty(), "armed after the write");
    let breaches = bench.arm_for(&[], &job).unwrap().breaches();
    assert_eq!(breaches.len(), 1, "{breaches:?}");
    assert!(breaches[0].contains("a.txt"), "{breaches:?}");
}
