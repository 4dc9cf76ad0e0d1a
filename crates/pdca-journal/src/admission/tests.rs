//! Two drivers, by every way there is to the same repository.

use std::io::Write as _;

use super::*;
use crate::testing::Scene;

fn holder_named(pid: u32) -> LockHolder {
    LockHolder { pid, host: "h".to_owned(), workspace: "w".into(), run: "01R".to_owned() }
}

/// A directory that stands for a git common directory.
fn common(scene: &Scene, name: &str) -> Utf8PathBuf {
    let dir = scene.path().join(name);
    fs_err::create_dir_all(&dir).unwrap();
    dir
}

fn refused(path: Utf8PathBuf) -> String {
    match Admission::take([path]) {
        Err(AdmissionError::Held { holder, .. }) => holder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn c1_a_second_driver_is_refused_and_told_who_holds_it() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    let first = Admission::take([path.clone()]).unwrap();
    assert_eq!(refused(path.clone()), "another process");
    first.announce(&holder_named(12)).unwrap();
    assert_eq!(refused(path.clone()), "process 12 on h, run 01R of w");
    assert_eq!(holder(&path).unwrap().unwrap(), "process 12 on h, run 01R of w");
    drop(first);
    assert_eq!(holder(&path).unwrap(), None);
    let second = Admission::take([path]).unwrap();
    let words: Vec<&str> = second.words_found().collect();
    assert_eq!(words, ["process 12 on h, run 01R of w"], "it is told where to look");
}

#[test]
fn c2_a_second_driver_is_refused_through_a_link_a_hard_link_and_a_bind_mount() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    let first = Admission::take([path.clone()]).unwrap();
    first.announce(&holder_named(12)).unwrap();
    fs_err::os::unix::fs::symlink("git", scene.path().join("link")).unwrap();
    refused(scene.path().join("link/pdca.lock"));
    fs_err::hard_link(&path, scene.path().join("hard.lock")).unwrap();
    refused(scene.path().join("hard.lock"));
    let mounted = common(&scene, "mounted");
    let (from, to) = (scene.path().join("git"), mounted.clone());
    match rustix::mount::mount_bind(from.as_std_path(), to.as_std_path()) {
        Ok(()) => {
            let found = Admission::take([mounted.join("pdca.lock")]);
            rustix::mount::unmount(to.as_std_path(), rustix::mount::UnmountFlags::empty()).unwrap();
            assert!(matches!(found, Err(AdmissionError::Held { .. })), "{found:?}");
        }
        Err(errno) => {
            assert!(
                matches!(errno, rustix::io::Errno::PERM | rustix::io::Errno::ACCESS),
                "{errno}"
            );
            writeln!(io::stderr(), "c2: only a privileged user may mount; not tried").unwrap();
        }
    }
}

#[test]
fn of_several_targets_all_are_taken_or_none() {
    let scene = Scene::new();
    let paths = ["a", "b", "c"].map(|name| common(&scene, name).join("pdca.lock"));
    let one = Admission::take([paths[1].clone()]).unwrap();
    Admission::take(paths.clone()).unwrap_err();
    for path in [&paths[0], &paths[2]] {
        assert_eq!(holder(path).unwrap(), None);
    }
    drop(one);
    Admission::take(paths).unwrap();
}

#[test]
fn two_targets_in_one_repository_share_its_lock() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    fs_err::os::unix::fs::symlink("git", scene.path().join("link")).unwrap();
    let both = [path.clone(), scene.path().join("link/pdca.lock")];
    let admission = Admission::take(both.clone()).unwrap();
    assert_eq!(admission.words_found().count(), 1);
    let taken_over = Admission::take_over(both).unwrap();
    assert!(taken_over.is_current());
    refused(path);
}

#[test]
fn a_link_in_place_of_a_lock_is_not_followed() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    let victim = scene.path().join("victim");
    fs_err::write(&victim, "precious").unwrap();
    fs_err::os::unix::fs::symlink(&victim, &path).unwrap();
    for taken in [Admission::take([path.clone()]), Admission::take_over([path.clone()])] {
        assert!(matches!(taken, Err(AdmissionError::Unusable { .. })), "{taken:?}");
    }
    assert!(holder(&path).is_err());
    assert_eq!(fs_err::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn something_else_in_place_of_a_lock_is_refused_and_not_waited_for() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path.as_std_path(), kind, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    assert!(matches!(Admission::take([path]), Err(AdmissionError::Unusable { .. })));
    let dir = common(&scene, "dir.lock");
    assert!(matches!(Admission::take([dir]), Err(AdmissionError::Unusable { .. })));
}

#[test]
fn c4_whoever_takes_over_has_the_lock_and_the_one_before_can_see_that_it_has_not() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    let stopped = Admission::take([path.clone()]).unwrap();
    stopped.announce(&holder_named(12)).unwrap();
    assert!(stopped.is_current());
    let taker = Admission::take_over([path.clone()]).unwrap();
    taker.announce(&holder_named(13)).unwrap();
    assert!(!stopped.is_current() && taker.is_current());
    assert_eq!(taker.words_found().next().unwrap(), "process 12 on h, run 01R of w");
    assert_eq!(refused(path.clone()), "process 13 on h, run 01R of w");
    // The old one ends, or writes its name again: neither touches the new one's.
    stopped.announce(&holder_named(12)).unwrap();
    drop(stopped);
    assert_eq!(refused(path.clone()), "process 13 on h, run 01R of w");
    drop(taker);
    Admission::take([path]).unwrap();
    assert_eq!(fs_err::read_dir(scene.path().join("git")).unwrap().count(), 1);
}

#[test]
fn what_is_written_in_a_lock_cannot_command_a_terminal_and_decides_nothing() {
    let scene = Scene::new();
    let path = common(&scene, "git").join("pdca.lock");
    fs_err::write(&path, b"\x1b[2J held \xff by \xc2\x9b2J me\n".repeat(1000)).unwrap();
    let admission = Admission::take([path.clone()]).unwrap();
    let held = refused(path);
    assert!(!held.contains(char::is_control) && held.len() < 2100, "{held:?}");
    drop(admission);
}

#[test]
fn where_to_look_for_a_run_that_was_left_is_read_from_the_words() {
    let holder = LockHolder { workspace: "a dir, run x of y".into(), ..holder_named(12) };
    assert_eq!(LockHolder::from_words(&holder.to_string()), Some(holder));
    for words in ["", "another process", "process x on h, run r of w", "process 1 on h"] {
        assert_eq!(LockHolder::from_words(words), None, "{words}");
    }
}
