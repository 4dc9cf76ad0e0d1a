//! A change made in a lane: commit, tree, patch, and the patch applied again.

use std::{
    fs::Permissions,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use fs_err as fs;
use pdca_lanes::{ApplyError, Lane};

use crate::scene::{BY, Scene, assert_sound, dirt, seen};

/// Makes one change of every kind that a patch can carry.
fn change_everything(lane: &Lane) {
    let at = |name: &str| lane.path().join(name);
    fs::write(at("edit"), "one\ntwo\nTHREE\n").unwrap();
    fs::write(at("new file"), "n\u{e9}w\nno newline at the end").unwrap();
    fs::create_dir_all(at("deep/er")).unwrap();
    fs::write(at("deep/er/new\nline"), "x\n").unwrap();
    fs::write(at("binary"), (0..=255u8).cycle().take(5000).collect::<Vec<u8>>()).unwrap();
    fs::remove_file(at("gone")).unwrap();
    fs::rename(at("from"), at("to")).unwrap();
    fs::set_permissions(at("mode"), Permissions::from_mode(0o755)).unwrap();
    fs::write(at("crlf"), "a\r\nB\r\n").unwrap();
    symlink("edit", at("link")).unwrap();
    fs::write(at("empty"), "").unwrap();
}

fn scene() -> Scene {
    let body: Vec<String> = (0..40).map(|line| format!("line {line}\n")).collect();
    let body = body.concat();
    Scene::new(&[
        ("edit", "one\ntwo\nthree\n"),
        ("gone", "gone\n"),
        ("from", &body),
        ("mode", "m\n"),
        ("crlf", "a\r\nb\r\n"),
        ("binary", "\0\u{1}"),
    ])
}

#[test]
fn a_patch_of_everything_gives_the_same_tree_again() {
    let scene = scene();
    let base = scene.primary.head();
    let lane = scene.lane();
    change_everything(&lane);
    let tree = lane.tree().unwrap();
    let commit = lane.commit_all("all of it\n", &BY).unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["rev-parse", "HEAD^{tree}"]).trim(), tree);
    assert_eq!(dirt(&lane), "");
    let patch = lane.diff(&base, &commit).unwrap();
    assert!(patch.windows(12).any(|part| part == b"rename from "));

    lane.reset(&base).unwrap();
    lane.apply(&patch).unwrap();
    assert_eq!(lane.tree().unwrap(), tree);
    let again = lane.commit_all("all of it\n", &BY).unwrap().unwrap();
    assert_eq!(again, commit);
    assert_eq!(lane.diff(&base, &again).unwrap(), patch);
    assert_eq!(dirt(&lane), "");
    assert_sound(lane.path());
}

#[test]
fn a_patch_that_git_made_with_other_settings_applies_as_well() {
    let scene = scene();
    let lane = scene.lane();
    change_everything(&lane);
    let tree = lane.tree().unwrap();
    lane.commit_all("x", &BY).unwrap();
    let patch = seen(&lane).git_bytes(&[
        "-c",
        "core.quotePath=false",
        "diff",
        "--binary",
        "HEAD~1",
        "HEAD",
    ]);
    lane.reset(&scene.primary.head()).unwrap();
    lane.apply(&patch).unwrap();
    assert_eq!(lane.tree().unwrap(), tree);
}

#[test]
fn a_commit_depends_on_nothing_but_what_was_given() {
    let make = || {
        let scene = scene();
        let lane = scene.lane();
        change_everything(&lane);
        let message = "message\n\nwith a body\n";
        let commit = lane.commit_all(message, &BY).unwrap().unwrap();
        (seen(&lane).git(&["ls-tree", "-r", "HEAD"]), commit)
    };
    assert_eq!(make(), make());
}

#[test]
fn nothing_changed_is_no_commit() {
    let scene = scene();
    let lane = scene.lane();
    assert_eq!(lane.commit_all("x", &BY).unwrap(), None);
    assert_eq!(lane.changed_tracked().unwrap(), Vec::<&str>::new());
    fs::write(lane.path().join("edit"), "one\ntwo\nthree\n").unwrap();
    assert_eq!(lane.commit_all("x", &BY).unwrap(), None);
    assert_eq!(lane.changed_tracked().unwrap(), Vec::<&str>::new());
    assert_eq!(lane.head().unwrap(), Some(scene.primary.head()));
}

#[test]
fn a_change_of_the_same_size_in_the_second_of_the_checkout_is_not_lost() {
    let scene = Scene::new(&[("a", "aaaa\n")]);
    let lane = scene.lane();
    let path = lane.path().join("a");
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let touch = |nanos: u64| {
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let at = then + std::time::Duration::from_nanos(nanos);
        file.set_modified(at).unwrap();
    };
    // The reset notes a time long past; the change comes a few nanoseconds later.
    touch(1);
    lane.reset(&scene.primary.head()).unwrap();
    fs::write(&path, "bbbb\n").unwrap();
    touch(2);
    assert_eq!(lane.changed_tracked().unwrap(), ["a"]);
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["show", &format!("{commit}:a")]), "bbbb\n");
}

#[test]
fn a_commit_says_what_was_given() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("edit"), "x").unwrap();
    lane.commit_all("subject\n\nbody\n", &BY).unwrap();
    let shown = seen(&lane).git(&["log", "-1", "--format=%an <%ae> %at %cn %ct%n%B"]);
    assert_eq!(
        shown.trim(),
        "A Builder <builder@example.com> 1000000000 A Builder 1000000000\nsubject\n\nbody"
    );
}

#[test]
fn ignored_files_are_not_committed_unless_someone_added_them() {
    let scene = Scene::new(&[(".gitignore", "*.log\n"), ("a", "a\n")]);
    let lane = scene.lane();
    fs::write(lane.path().join("x.log"), "x").unwrap();
    fs::write(lane.path().join("wanted.log"), "w").unwrap();
    seen(&lane).git(&["add", "--force", "wanted.log"]);
    fs::write(lane.path().join("wanted.log"), "as it is now").unwrap();
    lane.commit_all("x", &BY).unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["ls-tree", "--name-only", "HEAD"]), ".gitignore\na\nwanted.log\n");
    assert_eq!(seen(&lane).git(&["show", "HEAD:wanted.log"]), "as it is now");
    assert_eq!(dirt(&lane), "");
}

#[test]
fn the_tree_of_a_commit_made_in_the_lane_is_seen() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("edit"), "mine\n").unwrap();
    let commit = seen(&lane).commit("by the builder");
    assert_eq!(lane.head().unwrap(), Some(commit));
    assert_eq!(lane.commit_all("x", &BY).unwrap(), None);
    assert_eq!(lane.tree().unwrap(), seen(&lane).git(&["rev-parse", "HEAD^{tree}"]).trim());
}

#[test]
fn asking_for_the_tree_changes_neither_index_nor_head() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("edit"), "x\n").unwrap();
    fs::write(lane.path().join("other"), "x\n").unwrap();
    let state =
        || (seen(&lane).read(".git/index"), seen(&lane).read(".git/HEAD"), seen(&lane).status());
    let before = state();
    let tree = lane.tree().unwrap();
    assert_eq!(lane.tree().unwrap(), tree);
    assert_eq!(state(), before);
}

#[test]
fn changed_tracked_files_are_named_and_untracked_ones_are_not() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("edit"), "x\n").unwrap();
    fs::remove_file(lane.path().join("gone")).unwrap();
    fs::set_permissions(lane.path().join("mode"), Permissions::from_mode(0o755)).unwrap();
    fs::write(lane.path().join("untracked"), "x\n").unwrap();
    assert_eq!(lane.changed_tracked().unwrap(), ["edit", "gone", "mode"]);
}

#[test]
fn a_repository_that_was_made_inside_is_no_part_of_the_change() {
    let scene = scene();
    let lane = scene.lane();
    let inner = pdca_testkit::Repo::at(&lane.path().join("inner [x]"));
    inner.write("x", "x");
    inner.commit("inner");
    pdca_testkit::Repo::at(&lane.path().join("unborn"));
    fs::write(lane.path().join("edit"), "x\n").unwrap();
    lane.commit_all("x", &BY).unwrap().unwrap();
    assert_eq!(seen(&lane).git(&["diff", "--name-only", "HEAD~1", "HEAD"]), "edit\n");
    lane.reset(&scene.primary.head()).unwrap();
    assert!(!lane.path().join("inner [x]").exists() && !lane.path().join("unborn").exists());
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing_and_says_where() {
    let scene = scene();
    let lane = scene.lane();
    let patch = "diff --git a/from b/from\n--- a/from\n+++ b/from\n@@ -1,2 +1,2 @@\n-line 0\n+LINE\n line 1\n@@ -20,2 +20,2 @@\n-nothing like it\n+x\n line 20\n";
    match lane.apply(patch.as_bytes()).unwrap_err() {
        ApplyError::DoesNotApply { file, line, reason } => {
            assert_eq!((file.as_deref(), line), (Some("from"), Some(8)), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(dirt(&lane), "");
    let missing =
        "diff --git a/no such b/no such\n--- a/no such\t\n+++ b/no such\t\n@@ -1 +1 @@\n-a\n+b\n";
    match lane.apply(missing.as_bytes()).unwrap_err() {
        ApplyError::DoesNotApply { file, line, .. } => {
            assert_eq!((file.as_deref(), line), (Some("no such"), Some(1)));
        }
        other => panic!("{other:?}"),
    }
    lane.apply(
        "diff --git a/edit b/edit\n--- a/edit\n+++ b/edit\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"
            .as_bytes(),
    )
    .unwrap();
    assert_eq!(fs::read_to_string(lane.path().join("edit")).unwrap(), "ONE\ntwo\nthree\n");
}

#[test]
fn a_patch_over_crlf_files_applies() {
    let scene = Scene::new(&[
        (".gitattributes", "*.txt eol=crlf\n"),
        ("a.txt", "one\ntwo\n"),
        ("raw", "one\r\ntwo\r\n"),
    ]);
    let lane = scene.lane();
    fs::write(lane.path().join("a.txt"), "one\r\nTWO\r\n").unwrap();
    fs::write(lane.path().join("raw"), "one\r\nTWO\r\n").unwrap();
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    let patch = lane.diff(&scene.primary.head(), &commit).unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    lane.apply(&patch).unwrap();
    assert_eq!(lane.commit_all("x", &BY).unwrap().unwrap(), commit);
    assert_eq!(seen(&lane).read("a.txt"), b"one\r\nTWO\r\n");
}

#[test]
fn a_patch_does_not_depend_on_what_lies_in_the_working_tree() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("edit"), "x\n").unwrap();
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    let patch = lane.diff(&scene.primary.head(), &commit).unwrap();
    fs::write(lane.path().join(".gitattributes"), "* binary\n").unwrap();
    assert_eq!(lane.diff(&scene.primary.head(), &commit).unwrap(), patch);
}

#[test]
fn a_change_does_not_decide_how_it_is_shown() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("edit"), "shown as text\n").unwrap();
    fs::write(lane.path().join(".gitattributes"), "edit -diff\n* binary\n").unwrap();
    fs::write(lane.path().join(".git/info/attributes"), "* -diff\n").unwrap();
    let commit = lane.commit_all("x", &BY).unwrap().unwrap();
    let patch = lane.diff(&scene.primary.head(), &commit).unwrap();
    assert!(String::from_utf8_lossy(&patch).contains("\n+shown as text\n"));
}

#[test]
fn a_repository_with_sha256_works_the_same() {
    let around = pdca_testkit::TestWorkspace::new();
    let path = around.around().join("sha256");
    let first = pdca_testkit::Repo::with_first_commit();
    first.git(&["init", "-q", "--object-format=sha256", "--initial-branch=main", path.as_str()]);
    let primary = pdca_testkit::Repo::existing(&path);
    primary.write("a", "a\n");
    let base = primary.commit("a");
    let target = pdca_lanes::Target::open("app", &path).unwrap();
    let lane = pdca_lanes::Lanes::new(around.around().join("lanes")).claim(0, &target).unwrap();
    lane.reset(&base).unwrap();
    fs::write(lane.path().join("a"), "b\n").unwrap();
    let commit = lane.commit_all("b", &BY).unwrap().unwrap();
    assert_eq!((commit.len(), dirt(&lane)), (64, String::new()));
    assert!(!lane.diff(&base, &commit).unwrap().is_empty());
    assert_sound(lane.path());
}
