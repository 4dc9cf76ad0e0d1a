//! Writes to the primary that are noticed, and those that are none.

use fs_err as fs;
use pdca_lanes::Tripwire;

use crate::scene::{BY, Scene};

fn scene() -> Scene {
    let scene = Scene::new(&[("a", "a\n"), ("b", "b\n"), ("c/d", "d\n"), (".gitignore", "*.o\n")]);
    scene.primary.git(&["branch", "side"]);
    scene.primary.write("b", "dirty\n");
    scene.primary.write("untracked", "u\n");
    scene
}

#[test]
fn looking_and_working_in_a_lane_trip_nothing() {
    let scene = scene();
    let wire = Tripwire::arm(&scene.target()).unwrap();
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "x\n").unwrap();
    lane.commit_all("x", &BY).unwrap();
    lane.copy_to(&scene.beside("copy")).unwrap();
    scene.primary.write("built.o", "ignored");
    // Refreshes the stat data in the index, as any editor's git does all the time.
    let touched = scene.primary.path().join("c/d");
    fs::write(&touched, "d\n").unwrap();
    scene.primary.try_git(&["update-index", "--refresh"]);
    assert_eq!(wire.breaches(), Vec::<String>::new());
}

/// Arms, writes, and gives what was noticed.
fn noticed(write: impl FnOnce(&Scene)) -> Vec<String> {
    let scene = scene();
    let wire = Tripwire::arm(&scene.target()).unwrap();
    write(&scene);
    wire.breaches()
}

#[test]
fn a_file_that_is_written_or_removed_is_named() {
    let cases = [
        ("file a", "a", Some("x\n")),
        ("file a", "a", None),
        ("file b", "b", Some("dirtY\n")),
        ("file b", "b", Some("b\n")),
        ("file untracked", "untracked", Some("v\n")),
        ("file untracked", "untracked", None),
        ("file c/new", "c/new", Some("n")),
        ("hook pre-commit", ".git/hooks/pre-commit", Some("x")),
        ("config", ".git/config", Some("[core]\n\tbare = false\n")),
    ];
    for (what, file, text) in cases {
        let breaches = noticed(|scene| match text {
            Some(text) => scene.primary.write(file, text),
            None => fs::remove_file(scene.primary.path().join(file)).unwrap(),
        });
        let named = breaches.len() == 1 && breaches[0].starts_with(what);
        assert!(named, "{what}: {breaches:?}");
    }
}

#[test]
fn a_git_command_that_writes_is_named() {
    let cases: [(&str, &[&str]); 5] = [
        ("the index", &["add", "b"]),
        ("ref refs/heads/main", &["commit", "-q", "--allow-empty", "-m", "x"]),
        ("ref refs/heads/new", &["branch", "new"]),
        ("ref refs/heads/side", &["branch", "-D", "side"]),
        ("HEAD", &["symbolic-ref", "HEAD", "refs/heads/side"]),
    ];
    for (what, args) in cases {
        let breaches = noticed(|scene| drop(scene.primary.git(args)));
        let named = breaches.iter().any(|breach| breach.starts_with(what));
        assert!(named, "{what}: {breaches:?}");
    }
}

#[test]
fn a_primary_that_is_gone_is_a_breach() {
    let scene = scene();
    let wire = Tripwire::arm(&scene.target()).unwrap();
    fs::rename(scene.primary.path(), scene.beside("elsewhere")).unwrap();
    assert_eq!(wire.breaches().len(), 1);
}

#[test]
fn a_bare_primary_has_refs_to_watch() {
    let scene = scene();
    let bare = scene.beside("bare.git");
    scene.primary.git(&["clone", "-q", "--bare", ".", bare.as_str()]);
    let target = pdca_lanes::Target::open("app", &bare).unwrap();
    let wire = Tripwire::arm(&target).unwrap();
    assert_eq!(wire.breaches(), Vec::<String>::new());
    scene.primary.git(&["push", "-q", bare.as_str(), "main:refs/heads/pushed"]);
    assert_eq!(wire.breaches().len(), 1);
}
