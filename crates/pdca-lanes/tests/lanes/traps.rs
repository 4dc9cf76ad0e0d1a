//! Peculiarities of real repositories: each is supported or refused with a reason, and the user's repository does not
//! change by a byte.

use std::{
    ffi::OsStr,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt, symlink},
    },
    path::Path,
};

use camino::Utf8Path;
use fs_err as fs;
use pdca_lanes::{ClaimError, LaneError, ProvisionError, Target};
use pdca_testkit::{Repo, TestWorkspace};

use crate::scene::{Inventory, KINDS, Scene, assert_sound, digest, dirt, provision, seen};

/// Provisions lanes of both kinds, and checks that git accepts them and the primary is unchanged.
fn assert_provisioned(scene: &Scene, primary: &Utf8Path, base: &str) {
    for (kind, slots) in KINDS {
        let before = digest(primary, kind);
        let target = Target::open("app", primary).unwrap();
        provision(&scene.lanes(), &target, base, slots.clone(), kind).unwrap();
        let claim = |slot| scene.lanes().claim(slot, &target).unwrap();
        for lane in slots.clone().map(claim) {
            assert_eq!(lane.head().unwrap().as_deref(), Some(base), "{kind:?}");
            lane.reset(base).unwrap();
        }
        // Before git itself runs, because in a worktree it follows the configuration of the primary.
        assert_same(&before, &digest(primary, kind));
        for lane in slots.map(claim) {
            assert_eq!(dirt(&lane), "", "{kind:?}");
            assert_sound(lane.path());
        }
    }
}

/// Shows only the differences.
fn assert_same(before: &Inventory, after: &Inventory) {
    let changed = before.iter().filter(|fact| !after.contains(fact));
    let new = after.iter().filter(|fact| !before.contains(fact));
    let paths: Vec<_> = changed.chain(new).map(|(path, ..)| path).collect();
    assert!(paths.is_empty(), "the primary was changed: {paths:?}");
}

/// A primary with all kinds of entries.
fn rich() -> Scene {
    let scene = Scene::new(&[(".gitignore", "*.o\n"), ("a", "a\n"), ("dir/deep/b", "b\n")]);
    scene.primary.write_executable("run.sh", "#!/bin/sh\n");
    scene.primary.write("empty", "");
    symlink("dir/deep/b", scene.primary.path().join("link")).unwrap();
    symlink("/nowhere/at all", scene.primary.path().join("dir/dangling")).unwrap();
    scene.primary.commit("rich");
    scene
}

#[test]
fn every_kind_of_entry_is_as_git_checks_it_out() {
    let scene = rich();
    let theirs = scene.beside("theirs");
    scene.primary.git(&["clone", "-q", ".", theirs.as_str()]);
    assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
    let shape = |root: &Utf8Path| {
        let found = crate::scene::inventory_except(root, &[".git"]);
        found.into_iter().map(|(path, mode, _, held)| (path, mode, held)).collect::<Vec<_>>()
    };
    assert_eq!(shape(&scene.checkout()), shape(&theirs));
}

#[test]
fn d4_a_dirty_primary_with_a_stash_keeps_all_of_it() {
    let scene = rich();
    scene.primary.write("a", "stashed\n");
    scene.primary.git(&["stash", "--quiet"]);
    scene.primary.write("a", "dirty\n");
    scene.primary.write("new", "untracked\n");
    scene.primary.write("staged", "staged\n");
    scene.primary.git(&["add", "staged"]);
    assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
    let lane = scene.claim();
    assert_eq!(seen(&lane).git(&["stash", "list"]), "");
}

#[test]
fn unusual_indices_of_the_primary_are_neither_needed_nor_touched() {
    let cases: [&[&str]; 3] = [
        &["update-index", "--index-version=4"],
        &["update-index", "--split-index"],
        &["update-index", "--force-untracked-cache"],
    ];
    for args in cases {
        let scene = rich();
        scene.primary.git(args);
        assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
    }
}

#[test]
fn a_monitor_of_the_primary_is_not_asked() {
    let scene = rich();
    let ran = scene.beside("ran");
    scene.primary.git(&["config", "core.fsmonitor", &format!("touch {ran}; false")]);
    for (kind, slots) in KINDS {
        let before = digest(scene.primary.path(), kind);
        let lane = scene.provision(slots, kind).unwrap().remove(0);
        let lane = scene.lanes().claim(lane.slot, &scene.target()).unwrap();
        fs::write(lane.path().join("a"), "changed\n").unwrap();
        lane.tree().unwrap();
        lane.reset(&scene.primary.head()).unwrap();
        assert_same(&before, &digest(scene.primary.path(), kind));
    }
    assert!(!ran.exists());
}

#[test]
fn d16_hooks_of_the_primary_are_not_run() {
    let scene = rich();
    let ran = scene.beside("ran");
    let hooks = scene.beside("hooks");
    for dir in [scene.primary.path().join(".git/hooks"), hooks.clone()] {
        fs::create_dir_all(&dir).unwrap();
        for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
            fs::write(dir.join(hook), format!("#!/bin/sh\ntouch {ran}\n")).unwrap();
            fs::set_permissions(dir.join(hook), PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
    for path in [None, Some(&hooks)] {
        if let Some(path) = path {
            scene.primary.git(&["config", "core.hooksPath", path.as_str()]);
        }
        let (target, head) = (scene.target(), scene.primary.head());
        let (slots, kind) = if path.is_some() { (4..5, KINDS[1].0) } else { (0..1, KINDS[0].0) };
        provision(&scene.lanes(), &target, &head, slots.clone(), kind).unwrap();
        scene.lanes().claim(slots.start, &target).unwrap().reset(&head).unwrap();
    }
    assert!(!ran.exists());
}

#[test]
fn a_repository_of_sha256_is_provisioned() {
    let scene = Scene::new(&[("a", "a\n")]);
    let path = scene.beside("sha256");
    scene.primary.git(&["init", "-q", "-b", "main", "--object-format=sha256", path.as_str()]);
    let primary = Repo::existing(&path);
    primary.write("a", "a\n");
    primary.write("dir/b", "b\n");
    let base = primary.commit("first");
    assert_eq!(base.len(), 64);
    assert_provisioned(&scene, &path, &base);
}

#[test]
fn a_bare_primary_and_a_linked_worktree_are_provisioned() {
    let scene = rich();
    let head = scene.primary.head();
    let (linked, bare) = (scene.beside("linked"), scene.beside("bare.git"));
    scene.primary.git(&["worktree", "add", "-q", "-b", "side", linked.as_str()]);
    scene.primary.git(&["clone", "-q", "--bare", ".", bare.as_str()]);
    assert_provisioned(&scene, &linked, &head);
    let around = Scene::new(&[("x", "x\n")]);
    assert_provisioned(&around, &bare, &head);
}

#[test]
fn d8_submodules_are_left_empty_by_both_kinds() {
    let scene = rich();
    let sub = Scene::new(&[("x", "x\n")]);
    scene.primary.git(&["submodule", "--quiet", "add", sub.primary.path().as_str(), "lib/sub"]);
    let base = scene.primary.commit("with a submodule");
    assert_provisioned(&scene, scene.primary.path(), &base);
    for slot in [0, 2] {
        let lane = scene.lanes().claim(slot, &scene.target()).unwrap();
        assert_eq!(fs::read_dir(lane.path().join("lib/sub")).unwrap().count(), 0);
    }
}

#[test]
fn names_that_only_git_could_love_are_provisioned() {
    let long = ["d".repeat(150), "e".repeat(150), "f".repeat(200)].join("/");
    let scene = rich();
    for name in ["with space", "new\nline", "ünï/cødé", "case", "CASE", "Case/x", "case.d/x", &long]
    {
        scene.primary.write(name, name);
    }
    scene.primary.write(Path::new(OsStr::from_bytes(b"dir-\xff/latin-\xe9")), "not UTF-8");
    let base = scene.primary.commit("odd");
    assert_provisioned(&scene, scene.primary.path(), &base);
}

#[test]
fn a_primary_and_lanes_with_odd_letters_in_their_paths_are_provisioned() {
    let around = TestWorkspace::new();
    let primary = around.target("a b \"ü\" #x");
    primary.write("a", "a\n");
    let base = primary.commit("a");
    let lanes = pdca_lanes::Lanes::new(around.around().join("the länes"));
    let target = Target::open("a p ü", primary.path()).unwrap();
    for (kind, slots) in KINDS {
        for lane in provision(&lanes, &target, &base, slots, kind).unwrap() {
            assert_sound(&lane.path);
            assert_eq!(Repo::existing(&lane.path).git(&["status", "--porcelain"]), "");
        }
    }
}

#[test]
fn a_primary_whose_path_git_cannot_write_down_is_refused_by_name() {
    let around = TestWorkspace::new();
    let primary = around.target("new\nline");
    primary.write("a", "a\n");
    let base = primary.commit("a");
    let lanes = pdca_lanes::Lanes::new(around.around().join("lanes"));
    let target = Target::open("app", primary.path()).unwrap();
    let err = provision(&lanes, &target, &base, 0..1, KINDS[0].0).unwrap_err();
    match err {
        ProvisionError::Claim { source: ClaimError::Lane(LaneError::Path { path }), .. } => {
            assert!(path.as_str().contains('\n'));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_filesystem_without_modes_or_links_is_believed_to_be_one() {
    for key in ["core.fileMode", "core.symlinks"] {
        let scene = rich();
        scene.primary.git(&["config", key, "false"]);
        assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
    }
    let scene = rich();
    scene.primary.git(&["config", "core.symlinks", "false"]);
    scene.provision(0..1, KINDS[0].0).unwrap();
    assert_eq!(fs::read_to_string(scene.checkout().join("link")).unwrap(), "dir/deep/b");
    assert!(fs::symlink_metadata(scene.checkout().join("link")).unwrap().is_file());
}

#[test]
fn a_primary_that_ignores_case_gets_all_files_or_a_refusal() {
    let scene = Scene::new(&[("readme", "a\n"), ("dir/x", "x\n")]);
    scene.primary.git(&["config", "core.ignoreCase", "true"]);
    assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
}

#[test]
fn objects_that_were_borrowed_twice_are_found() {
    let first = rich();
    let (second, third) = (first.beside("second"), first.beside("third"));
    first.primary.git(&["clone", "-q", "--shared", ".", second.as_str()]);
    Repo::existing(&second).write("two", "two\n");
    Repo::existing(&second).commit("two");
    Repo::existing(&second).git(&["clone", "-q", "--shared", ".", third.as_str()]);
    Repo::existing(&third).write("three", "three\n");
    let base = Repo::existing(&third).commit("three");
    assert_provisioned(&first, &third, &base);
    let alternates = format!("{}.repository/objects/info/alternates", first.checkout());
    assert_eq!(fs::read_to_string(alternates).unwrap().lines().count(), 3);
}

#[test]
fn replaced_objects_of_the_primary_are_not_believed() {
    let scene = Scene::new(&[("a", "a\n")]);
    let base = scene.primary.head();
    scene.primary.write("a", "other\n");
    let other = scene.primary.commit("other");
    scene.primary.git(&["replace", &base, &other]);
    for (kind, slots) in KINDS {
        for lane in provision(&scene.lanes(), &scene.target(), &base, slots, kind).unwrap() {
            assert_eq!(fs::read_to_string(lane.path.join("a")).unwrap(), "a\n");
        }
    }
}

#[test]
fn d9_a_lane_whose_commit_was_pruned_is_found_out_and_made_anew() {
    let scene = Scene::new(&[("a", "a\n")]);
    let first = scene.primary.head();
    scene.primary.write("a", "b\n");
    scene.primary.commit("second");
    drop(scene.lane());
    scene.primary.git(&["reset", "-q", "--hard", &first]);
    scene.primary.git(&["reflog", "expire", "--expire=now", "--all"]);
    scene.primary.git(&["gc", "-q", "--prune=now"]);
    let lane = scene.claim();
    let aside = lane.moved_aside().expect("the lane cannot be worked in").to_owned();
    assert_eq!(fs::read_to_string(aside.join("a")).unwrap(), "b\n");
    lane.reset(&first).unwrap();
    assert_eq!(dirt(&lane), "");
}

#[test]
fn d22_a_base_that_misses_an_object_makes_no_lane_until_it_is_back() {
    let scene = rich();
    let blob = scene.primary.git(&["rev-parse", "HEAD:dir/deep/b"]);
    let tree = scene.primary.git(&["rev-parse", "HEAD:dir/deep"]);
    for id in [blob.trim(), tree.trim()] {
        let object = scene.primary.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
        let away = scene.beside("away");
        fs::rename(&object, &away).unwrap();
        for (kind, slots) in KINDS {
            match scene.provision(slots, kind) {
                Err(ProvisionError::Fill { source: LaneError::Objects { .. }, .. }) => {}
                other => panic!("{id} {kind:?}: {other:?}"),
            }
        }
        fs::rename(&away, &object).unwrap();
    }
    assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
}

#[test]
fn a_base_that_is_not_there_is_named() {
    let scene = rich();
    let absent = "0123456789012345678901234567890123456789";
    for (kind, slots) in KINDS {
        match provision(&scene.lanes(), &scene.target(), absent, slots, kind) {
            Err(ProvisionError::Fill { source: LaneError::NoSuchCommit { commit }, .. }) => {
                assert_eq!(commit, absent);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
}

#[test]
fn a_refused_repository_is_the_same_afterwards() {
    let scene = Scene::new(&[("a", "a\n"), ("deep/.gitattributes", "*.bin filter=lfs\n")]);
    let before = digest(scene.primary.path(), KINDS[0].0);
    for (kind, slots) in KINDS {
        match scene.provision(slots, kind) {
            Err(ProvisionError::Fill { source: LaneError::Unsupported(feature), .. }) => {
                assert!(feature.to_string().contains("deep/.gitattributes"), "{feature}");
            }
            other => panic!("{other:?}"),
        }
    }
    let after = digest(scene.primary.path(), KINDS[1].0);
    let before = before.into_iter().filter(|(path, ..)| !path.starts_with(".git/objects"));
    assert_same(&before.collect(), &after);
}

#[test]
fn a_tree_that_converts_line_ends_is_written_as_git_does() {
    let scene = Scene::new(&[
        (".gitattributes", "* text=auto\n*.txt text eol=crlf\n*.bin -text\n"),
        ("a.txt", "a\n"),
        ("b.bin", "b\r\n"),
    ]);
    assert_provisioned(&scene, scene.primary.path(), &scene.primary.head());
    assert_eq!(fs::read(scene.checkout().join("a.txt")).unwrap(), b"a\r\n");
    assert_eq!(fs::read(scene.checkout().join("b.bin")).unwrap(), b"b\r\n");
}

#[test]
fn git_need_not_read_a_file_to_know_that_a_fresh_lane_is_clean() {
    let scene = rich();
    for (kind, slots) in KINDS {
        for lane in scene.provision(slots, kind).unwrap() {
            let repo = Repo::existing(&lane.path);
            // Lists the files that the stat data alone does not prove unchanged.
            assert_eq!(repo.git(&["diff-files", "--name-only"]), "");
            let index = repo.git(&["rev-parse", "--path-format=absolute", "--git-path", "index"]);
            let written = fs::metadata(index.trim()).unwrap().mtime();
            // And no file is as young as the index.
            let debug = repo.git(&["ls-files", "--debug"]);
            let times = debug.lines().filter_map(|line| line.trim().strip_prefix("mtime: "));
            let times: Vec<i64> =
                times.map(|time| time.split(':').next().unwrap().parse().unwrap()).collect();
            assert!(times.len() > 5 && times.iter().all(|time| *time < written), "{times:?}");
        }
    }
}

#[test]
fn files_of_two_lanes_are_never_the_same_file() {
    let scene = rich();
    let lanes = scene.provision(0..2, KINDS[0].0).unwrap();
    let file = |at: usize| fs::metadata(lanes[at].path.join("a")).unwrap();
    assert_ne!(file(0).ino(), file(1).ino());
    assert_eq!(file(0).nlink(), 1);
    fs::write(lanes[0].path.join("a"), "changed\n").unwrap();
    assert_eq!(fs::read_to_string(lanes[1].path.join("a")).unwrap(), "a\n");
}
