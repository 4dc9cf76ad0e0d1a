//! Provisioning many lanes at once.

use std::sync::Mutex;

use fs_err as fs;
use pdca_lanes::{LaneKind, Provision, ProvisionError, ProvisionEvent, Provisioned};

use crate::scene::{Scene, assert_sound, dirt, seen};

fn provision(
    scene: &Scene,
    slots: std::ops::Range<u32>,
) -> Result<Vec<Provisioned>, ProvisionError> {
    scene.provision(slots, LaneKind::Reference)
}

#[test]
fn lanes_are_made_once_and_each_is_a_checkout_of_the_base() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("src/b.txt", "b\n"), ("src/deep/er/c", "c\n")]);
    let made = provision(&scene, 0..3).unwrap();
    assert_eq!(
        made.iter().map(|lane| (lane.slot, lane.made)).collect::<Vec<_>>(),
        [(0, true), (1, true), (2, true)]
    );
    for lane in &made {
        assert_eq!((&lane.base, lane.kind), (&scene.primary.head(), LaneKind::Reference));
        let lane = scene.lanes().claim(lane.slot, &scene.target()).unwrap();
        assert_eq!(lane.head().unwrap(), Some(scene.primary.head()));
        assert_eq!(dirt(&lane), "");
        assert_eq!(seen(&lane).read("src/deep/er/c"), b"c\n");
        assert_sound(lane.path());
    }
    let again = provision(&scene, 0..4).unwrap();
    assert_eq!(again.iter().map(|lane| lane.made).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn a_lane_that_is_there_keeps_its_base_and_what_is_in_it() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let first = scene.primary.head();
    provision(&scene, 0..1).unwrap();
    fs::write(scene.checkout().join("a.txt"), "work\n").unwrap();
    scene.primary.write("a.txt", "b\n");
    scene.primary.commit("second");
    let again = provision(&scene, 0..1).unwrap();
    assert_eq!((again[0].made, &again[0].base), (false, &first));
    assert_eq!(fs::read_to_string(scene.checkout().join("a.txt")).unwrap(), "work\n");
}

#[test]
fn a_lane_that_someone_works_in_is_ready_and_is_not_waited_for() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let held = scene.lane();
    let there = provision(&scene, 0..2).unwrap();
    assert_eq!(there.iter().map(|lane| lane.made).collect::<Vec<_>>(), [false, true]);
    drop(held);
}

#[test]
fn no_lane_is_no_request() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    assert!(matches!(provision(&scene, 3..3), Err(ProvisionError::NoSlots)));
    assert!(!scene.lanes().root().exists());
}

#[test]
fn every_lane_is_told_of_when_it_is_begun_and_when_it_is_ready() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let (target, base) = (scene.target(), scene.primary.head());
    let request = Provision::new(0..2, &target, &base);
    let told = Mutex::new(Vec::new());
    let lanes =
        scene.lanes().provision(&request, &|event| told.lock().unwrap().push(event)).unwrap();
    let told = told.into_inner().unwrap();
    for lane in lanes {
        let begun =
            told.iter().position(|event| *event == ProvisionEvent::Making { slot: lane.slot });
        let ready = told.iter().position(|event| *event == ProvisionEvent::Ready(lane.clone()));
        assert!(begun.is_some() && begun < ready, "{told:?}");
    }
}
