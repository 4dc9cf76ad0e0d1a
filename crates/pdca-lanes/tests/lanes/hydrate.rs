//! The untracked files that a hydration brings into a lane, and those that it must not.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;
use fs_err as fs;
use pdca_lanes::{
    Hydrate, HydrateConfig, HydrateError, Hydrated, Lane, LaneKind, Placed, Sharer, Target,
    TreeSide,
};
use pdca_process::Cancel;

use crate::scene::{Scene, dirt};

pub(crate) fn list(entries: &[&str]) -> Vec<String> {
    entries.iter().map(ToString::to_string).collect()
}

pub(crate) fn hydrate(
    lane: &Lane,
    target: &Target,
    config: &HydrateConfig,
) -> Result<Hydrated, HydrateError> {
    lane.hydrate(&Hydrate::new(target, config), &Cancel::new(), &mut |_, _| {})
}

/// Returns the files of a hydration that was not a no-op.
fn placed(done: Result<Hydrated, HydrateError>) -> Placed {
    match done.unwrap() {
        Hydrated::Fresh(placed) => placed,
        other => panic!("{other:?}"),
    }
}

fn copy(entries: &[&str]) -> HydrateConfig {
    HydrateConfig { copy: list(entries), ..HydrateConfig::default() }
}

fn symlink(entries: &[&str]) -> HydrateConfig {
    HydrateConfig { symlink: list(entries), ..HydrateConfig::default() }
}

fn seed(entries: &[&str]) -> HydrateConfig {
    HydrateConfig { seed: list(entries), ..HydrateConfig::default() }
}

fn read(path: impl AsRef<Utf8Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap()
}

#[test]
fn a_lane_that_needs_nothing_is_left_alone() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), ("a", "a\n")]);
    scene.primary.write("local.env", "secret");
    let lane = scene.lane();
    let done = hydrate(&lane, &scene.target(), &HydrateConfig::default()).unwrap();
    assert_eq!(done, Hydrated::Nothing);
    assert!(!lane.path().join("local.env").exists());
    assert!(!scene.lanes().root().join("lane-0/app.hydration").exists());
}

#[test]
fn the_include_file_names_ignored_files_and_no_others() {
    let scene = Scene::new(&[
        (".gitignore", "*.env\n/private/\n!kept.env\n"),
        (".worktreeinclude", "# local\n*.env\n/private/**/key\nnotes\n!left.env\n"),
        ("tracked.txt", "t\n"),
    ]);
    // Tracked although it is ignored, as `git add -f` does it.
    scene.primary.write("forced.env", "committed\n");
    scene.primary.git(&["add", "-f", "forced.env"]);
    scene.primary.commit("forced");
    for file in ["a.env", "deep/er/b.env", "left.env", "private/x/key", "private/x/other"] {
        scene.primary.write(file, file);
    }
    scene.primary.write("kept.env", "not ignored");
    scene.primary.write("notes", "not ignored either");
    scene.primary.write("forced.env", "changed in the primary only");
    let lane = scene.lane();
    let config = HydrateConfig::default();
    assert_eq!(placed(hydrate(&lane, &scene.target(), &config)).files, 3);
    for file in ["a.env", "deep/er/b.env", "private/x/key"] {
        assert_eq!(read(lane.path().join(file)), file);
    }
    for file in ["left.env", "private/x/other", "kept.env", "notes"] {
        assert!(!lane.path().join(file).exists(), "{file}");
    }
    assert_eq!(read(lane.path().join("forced.env")), "committed\n");
    assert_eq!(dirt(&lane), "");
    assert_eq!(hydrate(&lane, &scene.target(), &config).unwrap(), Hydrated::Warm);
}

#[test]
fn what_the_lane_would_not_ignore_stays_out_of_it() {
    let scene = Scene::new(&[("a", "a\n"), (".worktreeinclude", "secret\n")]);
    let old = scene.primary.head();
    scene.primary.write(".gitignore", "secret\n");
    scene.primary.commit("ignored from now on");
    scene.primary.write("secret", "x");
    let lane = scene.claim();
    lane.reset(&old).unwrap();
    let done = hydrate(&lane, &scene.target(), &copy(&["secret"]));
    assert!(
        matches!(done, Err(HydrateError::NotIgnored { place: TreeSide::Lane, .. })),
        "{done:?}"
    );
    let done = placed(hydrate(
        &lane,
        &scene.target(),
        &HydrateConfig {
            verify: None,
            key: Some(list(&["a"])),
            seed: list(&["nothing"]),
            ..HydrateConfig::default()
        },
    ));
    assert_eq!(done.passed_over, ["secret"]);
    assert!(!lane.path().join("secret").exists());
    assert_eq!(dirt(&lane), "");
}

#[test]
fn a_named_file_must_be_there_ignored_and_not_tracked() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), ("a", "a\n")]);
    scene.primary.write("open", "x");
    let lane = scene.lane();
    let refused =
        |entry: &str| hydrate(&lane, &scene.target(), &copy(&[entry])).unwrap_err().to_string();
    let missing =
        format!("`copy` names {}, which cannot be found", scene.primary.path().join("no.env"));
    assert_eq!(refused("no.env"), missing);
    assert_eq!(refused("a"), "`copy` names a, which is tracked in the primary");
    assert_eq!(refused("open"), "`copy` names open, which is not ignored in the primary");
    assert_eq!(
        refused("../x"),
        "`copy` in [lanes.hydrate]: \"../x\" is not a path inside the checkout"
    );
    assert!(!scene.lanes().root().join("lane-0/app.hydration").exists(), "nothing was begun");
}

#[test]
fn a_copy_keeps_its_mode_and_a_directory_comes_whole() {
    let scene = Scene::new(&[(".gitignore", "/conf/\n"), ("a", "a\n")]);
    scene.primary.write("conf/one", "1");
    scene.primary.write_executable("conf/deep/two", "2");
    std::os::unix::fs::symlink("deep/two", scene.primary.path().join("conf/inner")).unwrap();
    let key = scene.primary.path().join("conf/one");
    fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let lane = scene.lane();
    placed(hydrate(&lane, &scene.target(), &copy(&["conf/"])));
    let mode = |path: &str| {
        fs::symlink_metadata(lane.path().join(path)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("conf/one"), 0o600);
    assert_eq!(mode("conf/deep/two"), 0o755);
    assert_eq!(read(lane.path().join("conf/inner")), "2");
    assert_eq!(dirt(&lane), "");
}

#[test]
fn links_out_of_the_checkout_are_not_followed_and_not_copied() {
    let scene = Scene::new(&[(".gitignore", "/conf/\n/alone\n"), ("a", "a\n")]);
    let outside = scene.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "x").unwrap();
    fs::create_dir(scene.primary.path().join("conf")).unwrap();
    for link in ["conf/dir", "alone"] {
        std::os::unix::fs::symlink(&outside, scene.primary.path().join(link)).unwrap();
    }
    let lane = scene.lane();
    let done = placed(hydrate(&lane, &scene.target(), &copy(&["conf", "alone"])));
    assert_eq!(done.passed_over, ["alone", "conf/dir"]);
    for link in ["conf/dir", "alone"] {
        assert!(fs::symlink_metadata(lane.path().join(link)).is_err(), "{link}");
    }
}

#[test]
fn a_link_in_the_lane_is_not_written_through() {
    let scene = Scene::new(&[(".gitignore", "/conf/local\n"), ("a", "a\n")]);
    let outside = scene.beside("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, scene.primary.path().join("conf")).unwrap();
    let with_link = scene.primary.commit("conf is a link");
    fs::remove_file(scene.primary.path().join("conf")).unwrap();
    scene.primary.write("conf/local", "secret");
    scene.primary.commit("conf is none");
    let lane = scene.claim();
    lane.reset(&with_link).unwrap();
    hydrate(&lane, &scene.target(), &copy(&["conf/local"])).unwrap_err();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_directory_that_two_lanes_could_write_is_an_error_that_names_both() {
    let scene = Scene::new(&[(".gitignore", "node_modules\n"), ("a", "a\n")]);
    scene.primary.write("node_modules/x/index.js", "x");
    let config = symlink(&["node_modules/"]);
    let lane = scene.lane();
    let shared = scene.primary.path().join("node_modules");
    let alone = hydrate(&lane, &scene.target(), &config).unwrap_err();
    assert_eq!(
        alone.to_string(),
        format!("lane 0 and the primary would share {shared}, which both can write")
    );
    let _other = scene.lanes().claim(3, &scene.target()).unwrap();
    let both = hydrate(&lane, &scene.target(), &config).unwrap_err();
    assert!(matches!(both, HydrateError::SharedMutable { lane: 0, with: Sharer::Lane(3), .. }));
    assert!(fs::symlink_metadata(lane.path().join("node_modules")).is_err());
}

#[test]
fn a_file_and_a_directory_that_nobody_can_write_may_be_shared() {
    let scene = Scene::new(&[(".gitignore", "sdk\nmodel.bin\n"), ("a", "a\n")]);
    scene.primary.write("sdk/lib/a.h", "a");
    scene.primary.write("model.bin", "m");
    let lane = scene.lane();
    let sdk = scene.primary.path().join("sdk");
    let set = |path: &Utf8Path, mode| {
        fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&sdk, 0o555);
    let config = symlink(&["sdk", "model.bin"]);
    let refused = hydrate(&lane, &scene.target(), &config).unwrap_err();
    assert!(refused.to_string().contains(sdk.join("lib").as_str()), "deeper: {refused}");
    set(&sdk.join("lib"), 0o555);
    placed(hydrate(&lane, &scene.target(), &config));
    assert_eq!(read(lane.path().join("sdk/lib/a.h")), "a");
    assert_eq!(read(lane.path().join("model.bin")), "m");
    assert_eq!(dirt(&lane), "");
    // So that the directory can be removed again.
    set(&sdk.join("lib"), 0o755);
    set(&sdk, 0o755);
}

#[test]
fn a_link_that_a_pattern_for_directories_would_miss_is_refused() {
    let scene = Scene::new(&[(".gitignore", "sdk/\n"), ("a", "a\n")]);
    scene.primary.write("sdk/x", "x");
    let sdk = scene.primary.path().join("sdk");
    fs::set_permissions(&sdk, std::fs::Permissions::from_mode(0o555)).unwrap();
    let lane = scene.lane();
    let refused = hydrate(&lane, &scene.target(), &symlink(&["sdk"])).unwrap_err();
    assert!(matches!(refused, HydrateError::NotIgnored { place: TreeSide::Lane, .. }), "{refused}");
    fs::set_permissions(&sdk, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_seed_is_a_private_copy_with_the_times_of_the_original() {
    let scene = Scene::new(&[(".gitignore", "/target\n"), ("a", "a\n")]);
    scene.primary.write("target/debug/lib.rlib", "built\n");
    let original = scene.primary.path().join("target/debug/lib.rlib");
    let lane = scene.lane();
    placed(hydrate(&lane, &scene.target(), &seed(&["target"])));
    let own = lane.path().join("target/debug/lib.rlib");
    let (from, to) = (fs::metadata(&original).unwrap(), fs::metadata(&own).unwrap());
    assert_ne!(from.ino(), to.ino());
    assert_eq!((from.nlink(), to.nlink()), (1, 1));
    assert_eq!((from.mtime(), from.mtime_nsec()), (to.mtime(), to.mtime_nsec()));
    // Rewritten in place, as linkers do.
    let mut file = fs::OpenOptions::new().write(true).open(&own).unwrap();
    std::io::Write::write_all(&mut file, b"BUILT").unwrap();
    assert_eq!(read(&original), "built\n");
}

#[test]
fn a_cache_that_the_lane_has_is_not_replaced_by_a_seed() {
    let scene = Scene::new(&[(".gitignore", "/target\n"), ("a", "a\n")]);
    scene.primary.write("target/x", "the primary's");
    let lane = scene.lane();
    fs::create_dir(lane.path().join("target")).unwrap();
    fs::write(lane.path().join("target/own"), "the lane's").unwrap();
    assert_eq!(placed(hydrate(&lane, &scene.target(), &seed(&["target"]))).files, 0);
    assert_eq!(read(lane.path().join("target/own")), "the lane's");
    assert!(!lane.path().join("target/x").exists());
}

#[test]
fn what_is_no_longer_named_is_taken_back() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), ("a", "a\n")]);
    scene.primary.write("one.env", "1");
    scene.primary.write("two.env", "2");
    let lane = scene.lane();
    placed(hydrate(&lane, &scene.target(), &copy(&["one.env", "two.env"])));
    placed(hydrate(&lane, &scene.target(), &copy(&["two.env"])));
    assert!(!lane.path().join("one.env").exists());
    assert!(lane.path().join("two.env").exists());
    placed(hydrate(&lane, &scene.target(), &HydrateConfig::default()));
    assert!(!lane.path().join("two.env").exists());
}

#[test]
fn a_copied_file_that_something_in_the_lane_changed_is_put_back() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), ("a", "a\n")]);
    scene.primary.write("one.env", "1");
    let lane = scene.lane();
    let own = lane.path().join("one.env");
    placed(hydrate(&lane, &scene.target(), &copy(&["one.env"])));
    fs::write(&own, "2").unwrap();
    placed(hydrate(&lane, &scene.target(), &copy(&["one.env"])));
    assert_eq!(read(&own), "1");
    fs::remove_file(&own).unwrap();
    placed(hydrate(&lane, &scene.target(), &copy(&["one.env"])));
    assert_eq!(read(&own), "1");
}

#[test]
fn what_became_tracked_is_not_taken_back() {
    let scene = Scene::new(&[(".gitignore", "*.env\n/conf/\n"), ("a", "a\n")]);
    scene.primary.write("one.env", "local");
    scene.primary.write("conf/x", "local");
    let lane = scene.lane();
    placed(hydrate(&lane, &scene.target(), &copy(&["one.env", "conf"])));
    fs::remove_dir_all(scene.primary.path().join("conf")).unwrap();
    scene.primary.write("conf", "a file by now");
    scene.primary.write("one.env", "tracked by now");
    scene.primary.git(&["add", "-f", "one.env", "conf"]);
    lane.reset(&scene.primary.commit("tracked")).unwrap();
    placed(hydrate(&lane, &scene.target(), &HydrateConfig::default()));
    assert_eq!(read(lane.path().join("one.env")), "tracked by now");
    assert_eq!(dirt(&lane), "");
}

#[test]
fn a_linked_worktree_is_hydrated_like_any_other_lane() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), (".worktreeinclude", "two.env\n")]);
    scene.primary.write("one.env", "1");
    scene.primary.write("two.env", "2");
    let lane = scene.lanes().of_kind(LaneKind::Worktree).claim(0, &scene.target()).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(placed(hydrate(&lane, &scene.target(), &copy(&["one.env"]))).files, 2);
    assert_eq!(dirt(&lane), "");
    assert_eq!(hydrate(&lane, &scene.target(), &copy(&["one.env"])).unwrap(), Hydrated::Warm);
}

#[test]
fn a_pipe_in_the_place_of_the_include_file_is_refused_and_not_waited_for() {
    let scene = Scene::new(&[("a", "a\n")]);
    let pipe = scene.primary.path().join(".worktreeinclude");
    let made = pdca_process::Tool::new("mkfifo").args([pipe.as_str()]).run().unwrap();
    assert_eq!(made.code, 0);
    let lane = scene.lane();
    let refused = hydrate(&lane, &scene.target(), &HydrateConfig::default()).unwrap_err();
    assert!(matches!(refused, HydrateError::Io { .. }), "{refused}");
}

#[test]
fn a_bare_target_has_nothing_to_copy() {
    let scene = Scene::new(&[(".gitignore", "*.env\n"), ("a", "a\n")]);
    let bare = scene.beside("bare.git");
    scene.primary.git(&["clone", "--quiet", "--bare", ".", bare.as_str()]);
    let target = Target::open("bare", &bare).unwrap();
    let lane = scene.lanes().claim(1, &target).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    let refused = hydrate(&lane, &target, &copy(&["one.env"])).unwrap_err();
    assert!(matches!(refused, HydrateError::Bare { .. }), "{refused}");
    let nothing = hydrate(&lane, &target, &HydrateConfig::default()).unwrap();
    assert_eq!(nothing, Hydrated::Nothing);
}

#[test]
fn the_primary_is_only_read() {
    let scene = Scene::new(&[
        (".gitignore", "*.env\n/target\n"),
        (".worktreeinclude", "*.env\n"),
        ("a", "a\n"),
    ]);
    scene.primary.write("one.env", "1");
    scene.primary.write("target/x", "x");
    let everything = || {
        let mut found = Vec::new();
        let mut todo = vec![scene.primary.path().to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in dir.read_dir_utf8().unwrap() {
                let path = entry.unwrap().into_path();
                let seen = fs::symlink_metadata(&path).unwrap();
                if seen.is_dir() {
                    todo.push(path.clone());
                }
                found.push((path, seen.ino(), seen.size(), seen.ctime(), seen.ctime_nsec()));
            }
        }
        found.sort();
        found
    };
    let lane = scene.lane();
    let before = everything();
    placed(hydrate(&lane, &scene.target(), &seed(&["target"])));
    assert_eq!(everything(), before);
}
