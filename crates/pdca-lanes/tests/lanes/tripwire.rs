//! Writes to the primary that are reported, and those that are not.

use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt as _};

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
    let wire = Tripwire::arm(&scene.target(), &[]).unwrap();
    let lane = scene.lane();
    fs::write(lane.path().join("a"), "x\n").unwrap();
    lane.commit_all("x", &BY).unwrap();
    lane.copy_to(&scene.beside("copy")).unwrap();
    scene.primary.write("built.o", "ignored");
    // Refreshes the stat data in the index, as editors do all the time.
    let touched = scene.primary.path().join("c/d");
    fs::write(&touched, "d\n").unwrap();
    scene.primary.try_git(&["update-index", "--refresh"]);
    assert_eq!(wire.breaches(), Vec::<String>::new());
}

/// Arms the tripwire, writes, and returns the breaches.
fn noticed(write: impl FnOnce(&Scene)) -> Vec<String> {
    let scene = scene();
    let wire = Tripwire::arm(&scene.target(), &[]).unwrap();
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
fn a_hook_that_is_rewritten_with_its_old_size_and_time_is_named() {
    let scene = scene();
    scene.primary.write(".git/hooks/pre-commit", "exit 0\n");
    let hook = scene.primary.path().join(".git/hooks/pre-commit");
    let before = fs::metadata(&hook).unwrap().modified().unwrap();
    let wire = Tripwire::arm(&scene.target(), &[]).unwrap();
    fs::write(&hook, "exit 1\n").unwrap();
    fs::OpenOptions::new().write(true).open(&hook).unwrap().set_modified(before).unwrap();
    assert_eq!(wire.breaches(), ["hook pre-commit was changed"]);
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
    let wire = Tripwire::arm(&scene.target(), &[]).unwrap();
    fs::rename(scene.primary.path(), scene.beside("elsewhere")).unwrap();
    assert_eq!(wire.breaches().len(), 1);
}

#[test]
fn a_bare_primary_has_refs_to_watch() {
    let scene = scene();
    let bare = scene.beside("bare.git");
    scene.primary.git(&["clone", "-q", "--bare", ".", bare.as_str()]);
    let target = pdca_lanes::Target::open("app", &bare).unwrap();
    let wire = Tripwire::arm(&target, &[]).unwrap();
    assert_eq!(wire.breaches(), Vec::<String>::new());
    scene.primary.git(&["push", "-q", bare.as_str(), "main:refs/heads/pushed"]);
    assert_eq!(wire.breaches().len(), 1);
}

#[test]
fn what_is_excepted_may_be_written_and_nothing_else() {
    let scene = scene();
    scene.primary.write("work/results/old", "1");
    let link = scene.beside("link");
    std::os::unix::fs::symlink(scene.primary.path(), &link).unwrap();
    let except =
        [link.join("work/results"), scene.primary.path().join("work/.pdca"), scene.beside("x")];
    let wire = Tripwire::arm(&scene.target(), &except).unwrap();
    scene.primary.write("work/results/old", "2");
    scene.primary.write("work/results/issue_7/new", "n");
    scene.primary.write("work/.pdca/jobs/1", "n");
    assert_eq!(wire.breaches(), Vec::<String>::new());
    scene.primary.write("work/results-of-others", "n");
    assert_eq!(wire.breaches(), ["file work/results-of-others is new, or changed"]);
    scene.primary.git(&["add", "work/results/old"]);
    assert!(wire.breaches().iter().any(|breach| breach.starts_with("the index")));
}

#[test]
fn a_primary_that_is_excepted_whole_has_its_refs_watched() {
    let scene = scene();
    let wire = Tripwire::arm(&scene.target(), &[scene.beside("")]).unwrap();
    scene.primary.write("a", "x\n");
    assert_eq!(wire.breaches(), Vec::<String>::new());
    scene.primary.git(&["branch", "new"]);
    assert_eq!(wire.breaches().len(), 1);
}

#[test]
fn a_workspace_with_a_repository_of_its_own_may_be_written_where_excepted() {
    let scene = scene();
    let work = pdca_testkit::Repo::at(&scene.primary.path().join("work"));
    work.write("x", "x");
    work.commit("work");
    let wire = Tripwire::arm(&scene.target(), &[work.path().join("results")]).unwrap();
    work.write("results/issue_7/brief.md", "b");
    assert_eq!(wire.breaches(), Vec::<String>::new());
}

#[test]
fn an_armed_tripwire_is_kept_byte_for_byte() {
    let scene = scene();
    let odd = scene.primary.path().as_std_path().join(OsStr::from_bytes(b"odd \xff\n\\x41\""));
    fs::write(&odd, "1").unwrap();
    scene.primary.write("work/results/old", "1");
    let (target, file) = (scene.target(), scene.beside("armed.json"));
    assert!(Tripwire::load(&target, &[], &file).unwrap().is_none());
    Tripwire::arm(&target, &[]).unwrap().save(&file).unwrap();
    let load = |except: &[_]| Tripwire::load(&target, except, &file).unwrap().unwrap();
    assert_eq!(load(&[]).breaches(), Vec::<String>::new());
    scene.primary.write("work/results/old", "2");
    assert_eq!(load(&[]).breaches(), ["file work/results/old was changed"]);
    let except = [scene.primary.path().join("work")];
    assert_eq!(load(&except).breaches(), Vec::<String>::new());
    fs::write(&odd, "2").unwrap();
    assert_eq!(load(&except).breaches().len(), 1);
    fs::write(&odd, "1").unwrap();
    scene.primary.git(&["branch", "new"]);
    assert_eq!(load(&except).breaches(), ["ref refs/heads/new is new, or changed"]);
}

#[test]
fn a_kept_tripwire_that_is_damaged_or_another_s_is_an_error() {
    let scene = scene();
    let (target, file) = (scene.target(), scene.beside("armed.json"));
    let wire = Tripwire::arm(&target, &[]).unwrap();
    wire.save(&file).unwrap();
    let whole = fs::read(&file).unwrap();
    let refused = |what: &str| {
        let err = Tripwire::load(&target, &[], &file).expect_err(what);
        assert_eq!(err.kind(), io::ErrorKind::InvalidData, "{what}");
    };
    for (what, bytes) in [
        ("nothing in it", &b""[..]),
        ("the half of it", &whole[..whole.len() / 2]),
        ("another shape", b"{}"),
        ("no text", b"\xff\0"),
    ] {
        fs::write(&file, bytes).unwrap();
        refused(what);
    }
    let other = self::scene();
    Tripwire::arm(&other.target(), &[]).unwrap().save(&file).unwrap();
    refused("another repository's");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused("a directory");
}
