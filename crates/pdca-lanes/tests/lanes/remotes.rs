//! The remotes of the primary in a lane.

use fs_err as fs;
use pdca_lanes::LaneKind;
use pdca_testkit::Repo;

use crate::scene::{Scene, assert_sound, digest, seen};

/// A primary with an upstream that is one commit ahead, and a second remote.
fn with_upstream() -> (Scene, Repo) {
    let scene = Scene::new(&[("a", "a\n")]);
    let upstream = scene.beside("upstream");
    scene.primary.git(&["clone", "-q", ".", upstream.as_str()]);
    let upstream = Repo::existing(&upstream);
    upstream.git(&["tag", "-a", "-m", "first", "v1"]);
    let url = format!("file://{}", upstream.path());
    scene.primary.git(&["remote", "add", "upstream", &url]);
    scene.primary.git(&["remote", "add", "-t", "main", "mirror", "../upstream"]);
    scene.primary.git(&["config", "remote.upstream.prune", "true"]);
    scene.primary.git(&["config", "--add", "remote.upstream.fetch", "+refs/notes/*:refs/notes/*"]);
    scene.primary.git(&["config", "remote.upstream.futureKey", "kept \"as\" it is; # too"]);
    let config = scene.primary.path().join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[remote \"upstream\"]\n\tskipFetchAll\n")).unwrap();
    scene.primary.git(&["fetch", "-q", "--tags", "upstream"]);
    scene.primary.git(&["remote", "set-head", "upstream", "main"]);
    (scene, upstream)
}

#[test]
fn a_lane_fetches_from_upstream_as_the_primary_would() {
    let (scene, upstream) = with_upstream();
    upstream.write("a", "newer\n");
    let newer = upstream.commit("newer");
    for (slot, kind) in [(0, LaneKind::Reference), (1, LaneKind::Worktree)] {
        scene.provision(slot..slot + 1, kind).unwrap();
        let lane = scene.lanes().claim(slot, &scene.target()).unwrap();
        let before = digest(scene.primary.path(), LaneKind::Reference);
        seen(&lane).git(&["fetch", "-q", "upstream"]);
        assert_eq!(seen(&lane).git(&["rev-parse", "upstream/main"]).trim(), newer);
        if kind == LaneKind::Reference {
            assert!(before == digest(scene.primary.path(), LaneKind::Reference));
            // Work upon a commit that only the lane has comes in with it.
            seen(&lane).git(&["checkout", "-q", &newer]);
            lane.import().unwrap();
            lane.reset(&newer).unwrap();
            seen(&lane).git(&["fetch", "-q", "mirror"]);
        }
        assert_sound(lane.path());
    }
}

#[test]
fn remotes_are_carried_over_word_for_word() {
    let (scene, upstream) = with_upstream();
    let lane = scene.lane();
    let listed = |repo: &Repo, key: &str| repo.git(&["config", "--local", "--get-regexp", key]);
    let theirs = listed(&scene.primary, "^remote\\.upstream\\.");
    assert_eq!(listed(&seen(&lane), "^remote\\.upstream\\."), theirs);
    let bare = ["config", "--type=bool", "remote.upstream.skipFetchAll"];
    assert_eq!(seen(&lane).git(&bare), "true\n");
    // A relative path leads to the same directory as in the primary.
    let mirror = seen(&lane).git(&["config", "remote.mirror.url"]);
    assert_eq!(
        fs::canonicalize(mirror.trim()).unwrap(),
        fs::canonicalize(upstream.path()).unwrap()
    );
}

#[test]
fn tags_and_remote_branches_are_there_and_branches_and_stash_are_not() {
    let (scene, _) = with_upstream();
    scene.primary.git(&["branch", "private"]);
    scene.primary.write("a", "stashed\n");
    scene.primary.git(&["stash", "--quiet"]);
    let lane = scene.lane();
    let refs = |repo: &Repo, which: &[&str]| {
        let format = "--format=%(refname) %(objectname) %(*objectname) %(symref)";
        repo.git(&[&["for-each-ref", format], which].concat())
    };
    let shared = ["refs/remotes", "refs/tags"];
    assert_eq!(refs(&seen(&lane), &shared), refs(&scene.primary, &shared));
    assert!(refs(&scene.primary, &shared).contains("refs/remotes/upstream/HEAD"));
    assert_eq!(refs(&seen(&lane), &["refs/heads", "refs/stash"]), "");
    assert_eq!(seen(&lane).git(&["describe", "--exact-match", "v1"]).trim(), "v1");
    assert!(lane.path().join(".git/packed-refs").is_file());
    assert!(!lane.path().join(".git/refs/tags/v1").exists());
}

#[test]
fn git_log_in_a_lane_tells_the_same_history() {
    let (scene, _) = with_upstream();
    scene.primary.write("a", "second\n");
    scene.primary.commit("second");
    let theirs = scene.primary.git(&["log", "--format=%H %s", "HEAD"]);
    for (slot, kind) in [(0, LaneKind::Reference), (1, LaneKind::Worktree)] {
        let lane = scene.provision(slot..slot + 1, kind).unwrap().remove(0);
        assert_eq!(Repo::existing(&lane.path).git(&["log", "--format=%H %s"]), theirs);
    }
}

#[test]
fn a_stash_made_in_a_lane_is_the_lane_s_own() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let before = digest(scene.primary.path(), LaneKind::Reference);
    fs::write(lane.path().join("a"), "mine\n").unwrap();
    seen(&lane).git(&["stash", "--quiet"]);
    assert_eq!(seen(&lane).git(&["stash", "list"]).lines().count(), 1);
    assert!(before == digest(scene.primary.path(), LaneKind::Reference));
}

#[test]
fn a_tag_that_leads_nowhere_is_left_out() {
    let (scene, _) = with_upstream();
    let absent = "0123456789012345678901234567890123456789";
    fs::write(scene.primary.path().join(".git/refs/tags/broken"), format!("{absent}\n")).unwrap();
    let lane = scene.lane();
    assert_eq!(seen(&lane).git(&["tag", "--list"]), "v1\n");
    assert_sound(lane.path());
}
