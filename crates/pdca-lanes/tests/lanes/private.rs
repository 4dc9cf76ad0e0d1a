//! The private names and ports of a lane.

use fs_err as fs;
use pdca_lanes::{PortRange, PrivateNames, WorkspaceId};

use crate::scene::{Scene, dirt};

#[test]
fn a_held_lane_has_ports_and_an_empty_directory_outside_the_checkout() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let here = WorkspaceId::of(scene.lanes().root());
    let tmp = scene.lanes().root().join("lane-0/app.tmp");
    fs::create_dir_all(tmp.join("left/by an earlier bundle")).unwrap();
    let private = lane.take_names(&here, PortRange::default()).unwrap();
    assert_eq!(private.names().tmp(), tmp);
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    assert!(private.names().port_base().is_some());
    assert_eq!(dirt(&lane), "");
}

#[test]
fn whoever_asks_from_outside_is_told_the_ports_that_the_lane_has() {
    let scene = Scene::new(&[("a", "a\n")]);
    let (lanes, here) = (scene.lanes(), WorkspaceId::of(scene.lanes().root()));
    let range = PortRange::default();
    let asked = || lanes.names(&here, "app", 0, range);
    assert_eq!(asked().port_base(), Some(range.preferred(&here, 0)));
    assert!(!lanes.root().exists(), "asking makes nothing");
    let lane = scene.lane();
    // Whether or not the preferred block was free, the reported block is the one that is held.
    let elsewhere = range.take(&here, 0).unwrap();
    let private = lane.take_names(&here, range).unwrap();
    assert_ne!(private.names().port_base(), Some(elsewhere.base()));
    assert_eq!(&asked(), private.names());
    assert_eq!(
        asked().with_port_base(1),
        PrivateNames::new(&here, "app", 0, &lanes.slot_dir(0)).with_port_base(1)
    );
}

#[test]
fn a_link_in_the_place_of_the_temporary_files_is_not_followed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let here = WorkspaceId::of(scene.lanes().root());
    let precious = scene.beside("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("x"), "x").unwrap();
    let tmp = scene.lanes().root().join("lane-0/app.tmp");
    std::os::unix::fs::symlink(&precious, &tmp).unwrap();
    lane.take_names(&here, PortRange::default()).unwrap();
    assert!(precious.join("x").exists());
    assert!(!fs::symlink_metadata(&tmp).unwrap().is_symlink());
}

#[test]
fn names_of_files_beside_the_checkout_are_no_names_of_targets() {
    let scene = Scene::new(&[("a", "a\n")]);
    for name in ["ports", "app.tmp"] {
        let refused = pdca_lanes::Target::open(name, scene.primary.path()).unwrap_err();
        assert!(refused.to_string().contains("reserved"), "{name}: {refused}");
    }
}
