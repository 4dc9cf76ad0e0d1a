//! Resetting a lane: tracked files equal the base, untracked ones are removed, ignored ones stay.

use std::{
    ffi::OsStr,
    fs::Permissions,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::Path,
};

use fs_err as fs;
use pdca_lanes::{LaneError, Reset};

use crate::scene::{BY, Scene, assert_sound, dirt, own, seen};

#[test]
fn tracked_files_are_restored_whatever_happened_to_them() {
    let scene = Scene::new(&[
        ("a", "a\n"),
        ("b", "b\n"),
        ("c", "c\n"),
        ("d/e", "e\n"),
        ("f", "f\n"),
        ("g/h", "h\n"),
    ]);
    let lane = scene.lane();
    let at = |name: &str| lane.path().join(name);
    fs::write(at("a"), "x\n").unwrap();
    fs::remove_file(at("b")).unwrap();
    fs::set_permissions(at("c"), Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(at("d")).unwrap();
    fs::write(at("d"), "a file in the place of a directory").unwrap();
    fs::remove_file(at("f")).unwrap();
    fs::create_dir_all(at("f/deep/er")).unwrap();
    fs::write(at("f/deep/er/x"), "a directory in the place of a file").unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(dirt(&lane), "");
    assert_sound(lane.path());
}

#[test]
fn untracked_goes_and_ignored_stays() {
    let scene = Scene::new(&[
        (".gitignore", "target/\n*.o\n"),
        ("src/.gitignore", "gen\n"),
        ("src/a", "a\n"),
    ]);
    let lane = scene.lane();
    for file in ["new", "target/x", "a.o", "src/gen", "dir/only/new", "mixed/new", "mixed/keep.o"] {
        let path = lane.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    lane.reset(&scene.primary.head()).unwrap();
    let there = |file: &str| lane.path().join(file).exists();
    assert!(["target/x", "a.o", "src/gen", "mixed/keep.o"].into_iter().all(there));
    assert!(!["new", "dir", "mixed/new"].into_iter().any(there));
    assert_eq!(dirt(&lane), "");
}

#[test]
fn rules_that_were_added_in_the_lane_protect_nothing() {
    let scene = Scene::new(&[(".gitignore", "*.o\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join(".gitignore"), "*\n").unwrap();
    fs::write(lane.path().join(".git/info/exclude"), "*\n").unwrap();
    fs::write(lane.path().join("stale"), "x").unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!lane.path().join("stale").exists());
}

#[test]
fn what_the_primary_ignores_privately_is_ignored_in_the_lane() {
    let scene = Scene::new(&[("a", "a\n")]);
    scene.primary.write(".git/info/exclude", "private/\n");
    let lane = scene.lane();
    fs::create_dir(lane.path().join("private")).unwrap();
    fs::write(lane.path().join("private/x"), "x").unwrap();
    let before = lane.tree().unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert!(lane.path().join("private/x").exists());
    assert_eq!(lane.tree().unwrap(), before);
}

#[test]
fn a_file_that_was_tracked_goes_even_where_the_base_ignores_it() {
    let scene = Scene::new(&[(".gitignore", "*.gen\nout/\n"), ("a", "a\n")]);
    let lane = scene.lane();
    fs::create_dir(lane.path().join("out")).unwrap();
    fs::write(lane.path().join("x.gen"), "x").unwrap();
    fs::write(lane.path().join("out/y"), "y").unwrap();
    fs::write(lane.path().join("out/cache"), "kept").unwrap();
    seen(&lane).git(&["add", "--force", "x.gen", "out/y"]);
    seen(&lane).git(&["commit", "-q", "-m", "forced"]);
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!lane.path().join("x.gen").exists());
    assert!(!lane.path().join("out/y").exists());
    assert!(lane.path().join("out/cache").exists());
    assert_eq!(dirt(&lane), "");
}

#[test]
fn a_reset_moves_between_commits_in_both_directions() {
    let scene = Scene::new(&[("same", "same\n"), ("old", "old\n"), ("kind", "file\n")]);
    let old = scene.primary.head();
    fs::remove_file(scene.primary.path().join("old")).unwrap();
    fs::remove_file(scene.primary.path().join("kind")).unwrap();
    scene.primary.write("kind/is/dir", "dir\n");
    scene.primary.write_executable("new", "new\n");
    symlink("same", scene.primary.path().join("link")).unwrap();
    let new = scene.primary.commit("new");
    let lane = scene.lane();
    for commit in [&old, &new, &old, &new] {
        lane.reset(commit).unwrap();
        assert_eq!(lane.head().unwrap().as_ref(), Some(commit));
        assert_eq!(dirt(&lane), "");
    }
    assert_sound(lane.path());
}

#[test]
fn a_reset_with_nothing_to_do_rewrites_no_file() {
    let scene = Scene::new(&[("a", "a\n"), ("b/c", "c\n")]);
    let lane = scene.lane();
    lane.reset(&scene.primary.head()).unwrap();
    let times = || {
        ["app/a", "app/b/c", "app.index", "app.repository/HEAD"].map(|file| {
            let path = lane.path().parent().unwrap().join(file);
            fs::metadata(path).unwrap().modified().unwrap()
        })
    };
    let before = times();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(times(), before);
}

#[test]
fn a_file_that_was_only_touched_is_not_written_again() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let path = lane.path().join("a");
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), then);
    assert_eq!(dirt(&lane), "");
}

#[test]
fn a_change_that_hides_behind_its_old_time_and_size_is_found() {
    let scene = Scene::new(&[("a", "aaaa\n")]);
    let lane = scene.lane();
    let path = lane.path().join("a");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "bbbb\n").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    assert_ne!(lane.tree().unwrap(), seen(&lane).git(&["rev-parse", "HEAD^{tree}"]).trim());
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "aaaa\n");
}

#[test]
fn an_index_that_says_nothing_changed_is_not_believed() {
    let scene = Scene::new(&[("a", "a\n"), ("b", "b\n")]);
    let lane = scene.lane();
    let clean = lane.tree().unwrap();
    seen(&lane).git(&["update-index", "--assume-unchanged", "a"]);
    seen(&lane).git(&["update-index", "--skip-worktree", "b"]);
    fs::write(lane.path().join("a"), "hidden\n").unwrap();
    fs::write(lane.path().join("b"), "hidden\n").unwrap();
    assert_eq!(lane.changed_tracked().unwrap(), ["a", "b"]);
    assert_ne!(lane.tree().unwrap(), clean);
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(dirt(&lane), "");
    assert_eq!(lane.tree().unwrap(), clean);
}

#[test]
fn links_in_the_lane_lead_no_deletion_out_of_it() {
    let scene = Scene::new(&[("src/a", "a\n")]);
    let lane = scene.lane();
    let outside = scene.beside("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("a"), "precious").unwrap();
    fs::write(outside.join("b"), "precious").unwrap();
    fs::remove_dir_all(lane.path().join("src")).unwrap();
    symlink(&outside, lane.path().join("src")).unwrap();
    symlink(&outside, lane.path().join("other")).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(outside.join("b")).unwrap(), "precious");
    assert!(!lane.path().join("other").exists());
    assert_eq!(dirt(&lane), "");
}

#[test]
fn read_only_directories_are_no_obstacle() {
    let scene = Scene::new(&[("src/a", "a\n")]);
    let lane = scene.lane();
    let (tracked, left) = (lane.path().join("src"), lane.path().join("left/deep"));
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("x"), "x").unwrap();
    fs::write(tracked.join("new"), "x").unwrap();
    fs::write(tracked.join("a"), "changed\n").unwrap();
    for dir in [&left, &tracked] {
        fs::set_permissions(dir, Permissions::from_mode(0o555)).unwrap();
    }
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!lane.path().join("left").exists());
    assert_eq!(dirt(&lane), "");
}

#[test]
fn d1_stale_locks_and_unfinished_work_are_cleared() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    for file in ["index.lock", "HEAD.lock", "refs/heads/x.lock", "MERGE_HEAD", "rebase-merge/onto"]
    {
        let path = lane.path().join(".git").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, scene.primary.head()).unwrap();
    }
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!lane.path().join(".git/index.lock").exists());
    let status = seen(&lane).git(&["status"]);
    assert!(
        status.contains("nothing to commit")
            && !status.contains("merg")
            && !status.contains("rebas"),
        "{status}"
    );
    seen(&lane).git(&["commit", "--allow-empty", "-q", "-m", "works"]);
}

#[test]
fn a_branch_made_in_the_lane_is_gone_after_a_reset_and_its_commits_are_kept() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let repo = seen(&lane);
    repo.git(&["checkout", "-q", "-b", "mine"]);
    fs::write(lane.path().join("a"), "mine\n").unwrap();
    let mine = repo.commit("mine");
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(repo.git(&["for-each-ref"]), "");
    let kept = own(&lane).git(&["for-each-ref", "--format=%(objectname)", "refs/pdca/rescue"]);
    assert_eq!(kept.trim(), mine);
    assert_eq!(repo.head(), scene.primary.head());
}

#[test]
fn every_name_that_git_takes_is_checked_out_and_cleaned() {
    let long = ["d".repeat(150), "e".repeat(150), "f".repeat(200)].join("/");
    let names = [
        "with space",
        "tab\there",
        "new\nline",
        "ünï/cødé",
        "quote\"d",
        "back\\slash",
        "-dash",
        "*star?",
        long.as_str(),
    ];
    let scene = Scene::new(&names.map(|name| (name, name)));
    scene.primary.write(Path::new(OsStr::from_bytes(b"latin-\xe9")), "not UTF-8");
    scene.primary.commit("odd");
    let lane = scene.lane();
    assert_eq!(dirt(&lane), "");
    for name in names {
        fs::write(lane.path().join(name), "changed").unwrap();
        fs::write(lane.path().join(format!("{name}.new")), "untracked").unwrap();
    }
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(dirt(&lane), "");
    assert_eq!(seen(&lane).read(&long), names[8].as_bytes());
    assert_sound(lane.path());
}

#[test]
fn line_ends_follow_the_attributes() {
    let scene = Scene::new(&[
        (".gitattributes", "*.txt text eol=crlf\n*.bin -text\n"),
        ("a.txt", "a\n"),
        ("b.bin", "b\r\n"),
    ]);
    let lane = scene.lane();
    assert_eq!(seen(&lane).read("a.txt"), b"a\r\n");
    assert_eq!(seen(&lane).read("b.bin"), b"b\r\n");
    assert_eq!(dirt(&lane), "");
    let before = lane.tree().unwrap();
    fs::write(lane.path().join("a.txt"), "changed\r\n").unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(seen(&lane).read("a.txt"), b"a\r\n");
    assert_eq!(lane.tree().unwrap(), before);
}

#[test]
fn submodules_are_left_empty() {
    let scene = Scene::new(&[("a", "a\n")]);
    let sub = Scene::new(&[("x", "x\n")]);
    scene.primary.git(&["submodule", "--quiet", "add", sub.primary.path().as_str(), "lib/sub"]);
    scene.primary.commit("with a submodule");
    assert_eq!(scene.target().notes().len(), 1);
    let lane = scene.lane();
    assert_eq!(fs::read_dir(lane.path().join("lib/sub")).unwrap().count(), 0);
    assert_eq!(seen(&lane).git(&["status", "--porcelain"]), "");
    assert_eq!(lane.commit_all("nothing", &BY).unwrap(), None);
}

#[test]
fn a_commit_that_is_not_there_changes_nothing() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("new"), "x").unwrap();
    for commit in ["main", "HEAD", "", "0123456789012345678901234567890123456789", "--all"] {
        assert!(matches!(lane.reset(commit), Err(LaneError::NoSuchCommit { .. })), "{commit}");
    }
    assert!(lane.path().join("new").exists());
}

#[test]
fn d22_a_commit_that_is_there_and_damaged_is_not_said_to_be_absent() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    scene.primary.write("a", "b\n");
    let commit = scene.primary.commit("second");
    let tree = scene.primary.git(&["rev-parse", "HEAD:"]);
    let object = scene.primary.path().join(".git/objects").join(&commit[..2]).join(&commit[2..]);
    fs::remove_file(&object).unwrap();
    assert!(matches!(lane.reset(&commit), Err(LaneError::NoSuchCommit { .. })));
    fs::write(&object, "garbage").unwrap();
    let err = lane.reset(&commit).unwrap_err();
    assert!(matches!(err, LaneError::Objects { .. }), "{err:?}");
    assert!(matches!(lane.diff(&commit, &commit), Err(LaneError::Objects { .. })));
    // An existing object that is not a commit does not count as one.
    assert!(matches!(lane.reset(tree.trim()), Err(LaneError::NoSuchCommit { .. })));
}

#[test]
fn attributes_deep_in_the_tree_that_we_cannot_honour_are_refused_by_name() {
    let scene =
        Scene::new(&[("a", "a\n"), ("assets/.gitattributes", "*.png filter=lfs diff=lfs -text\n")]);
    let lane = scene.claim();
    let err = lane.reset(&scene.primary.head()).unwrap_err().to_string();
    assert!(err.contains("\"lfs\"") && err.contains("assets/.gitattributes"), "{err}");
    assert!(!lane.path().join("a").exists());
}

#[test]
fn a_pristine_reset_leaves_what_the_commit_has_and_nothing_else() {
    let scene = Scene::new(&[(".gitignore", "target/\n*.o\n"), ("src/a", "a\n")]);
    let lane = scene.lane();
    let outside = scene.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "x").unwrap();
    for file in ["new", "target/deep/x", "a.o", "src/b.o", "dir/keep.o"] {
        let path = lane.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    fs::create_dir(lane.path().join("target/empty")).unwrap();
    symlink(&outside, lane.path().join("target/link")).unwrap();
    symlink(&outside, lane.path().join("src/linked.o")).unwrap();
    pdca_testkit::Repo::at(&lane.path().join("vendor/repo"));
    fs::write(lane.path().join("src/a"), "changed\n").unwrap();
    for dir in ["target/deep", "target"] {
        fs::set_permissions(lane.path().join(dir), Permissions::from_mode(0o555)).unwrap();
    }
    lane.reset_with(&scene.primary.head(), Reset::Pristine).unwrap();
    let left: Vec<_> = crate::scene::inventory_except(lane.path(), &[".git"])
        .into_iter()
        .map(|(path, ..)| path.into_os_string().into_string().unwrap())
        .collect();
    assert_eq!(left, [".gitignore", "src/a"]);
    let ignored = ["status", "--porcelain", "--ignored", "--untracked-files=all"];
    assert_eq!(seen(&lane).git(&ignored), "");
    assert!(!lane.path().join("target").exists() && !lane.path().join("vendor").exists());
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "x");
    assert_sound(lane.path());
}

#[test]
fn files_that_a_build_made_read_only_are_reset() {
    let scene = Scene::new(&[("src/a", "a\n"), ("src/b", "b\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("src/a"), "changed\n").unwrap();
    for file in ["src/a", "src/b"] {
        fs::set_permissions(lane.path().join(file), Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(lane.path().join("src"), Permissions::from_mode(0o555)).unwrap();
    for what in [Reset::Tracked, Reset::Pristine] {
        lane.reset_with(&scene.primary.head(), what).unwrap();
        assert_eq!(dirt(&lane), "");
    }
}
