//! The content of seals, and what they refuse.

use std::sync::LazyLock;

use pdca_integrate::{
    Acceptance, Fence, ObjectId, RefError, SealDrift, SealError, Sealed, Signer, StepEffect, Store,
    StoreError, seal,
};
use pdca_state::{BundleId, sha256_hex};
use pdca_testkit::Repo;

use crate::scene::{LOG, Scene, id};

fn one() -> BundleId {
    "1".parse().unwrap()
}

/// Seals a change of `a.txt`, with the acceptance modified by the caller.
pub(crate) fn sealed_with(
    scene: &Scene,
    head: ObjectId,
    change: impl FnOnce(&mut Acceptance<'_>),
) -> Result<(Sealed, StepEffect), SealError> {
    let (patch, bundle) = (scene.patch(scene.base, head), one());
    let digest = sha256_hex(&patch);
    let mut accepted = Acceptance {
        run: &scene.run,
        id: &bundle,
        base: scene.base,
        head,
        patch: &patch,
        reviewed_head: head,
        reviewed_patch: &digest,
        gate_digest: "gates1",
        completion_order: 1,
        tip: None,
        stands_on: &[],
        by: None,
        trailers: &[],
        brief: None,
        overrides: &[],
    };
    change(&mut accepted);
    seal(&scene.store, &scene.fence, &accepted, LOG)
}

fn scene_and_head() -> (Scene, ObjectId) {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let head = scene.commit(scene.base, "change", |lane| lane.write("a.txt", "b\n"));
    (scene, head)
}

#[test]
fn a15_sealing_without_a_ref_left_behind_gives_the_same_seal() {
    let (scene, head) = scene_and_head();
    let (first, _) = sealed_with(&scene, head, |_| {}).unwrap();
    let tag = scene.repo.git(&["rev-parse", "refs/pdca/run1/seal/1"]);
    // As after a crash between the intent and the ref.
    scene.repo.git(&["update-ref", "-d", "refs/pdca/run1/seal/1"]);
    let (second, outcome) = sealed_with(&scene, head, |_| {}).unwrap();
    assert_eq!((second, outcome), (first, StepEffect::Made));
    assert_eq!(scene.repo.git(&["rev-parse", "refs/pdca/run1/seal/1"]), tag);
}

#[test]
fn a16_a_seal_that_is_there_is_recognised() {
    let (scene, head) = scene_and_head();
    let (first, _) = sealed_with(&scene, head, |_| {}).unwrap();
    let (second, outcome) = sealed_with(&scene, head, |_| {}).unwrap();
    assert_eq!((&second, outcome), (&first, StepEffect::Recognised));
    assert_eq!(Sealed::load(&scene.store, &scene.run, &one()).unwrap(), first);
}

#[test]
fn another_content_under_the_same_seal_is_refused_and_the_difference_is_named() {
    let (scene, head) = scene_and_head();
    sealed_with(&scene, head, |_| {}).unwrap();
    let error = sealed_with(&scene, head, |accepted| {
        accepted.gate_digest = "gates2";
        accepted.completion_order = 2;
    });
    let Err(SealError::SealedOtherwise { fields, .. }) = error else { panic!("{error:?}") };
    assert_eq!(fields, ["gate digest", "completion order"]);
}

#[test]
fn what_check_did_not_see_is_not_sealed() {
    let (scene, head) = scene_and_head();
    let more = scene.commit(head, "more", |lane| lane.write("b.txt", "b\n"));
    let moved = sealed_with(&scene, more, |accepted| accepted.reviewed_head = head);
    assert!(matches!(moved, Err(SealError::NotAsReviewed { what: "the commit", .. })), "{moved:?}");
    let edited = sealed_with(&scene, head, |accepted| accepted.patch = b"other");
    assert!(matches!(edited, Err(SealError::NotAsReviewed { what: "patch.diff", .. })));
    assert!(matches!(
        Sealed::load(&scene.store, &scene.run, &one()),
        Err(SealError::NotSealed { .. })
    ));
}

#[test]
fn c14_a_commit_added_after_acceptance_is_drift_and_the_seal_stays() {
    let (scene, head) = scene_and_head();
    let (sealed, _) = sealed_with(&scene, head, |_| {}).unwrap();
    let more = scene.commit(head, "more", |lane| lane.write("b.txt", "b\n"));
    assert_eq!(sealed.drift(Some(more)), SealDrift::Moved { to: more });
    assert_eq!(sealed.drift(Some(head)), SealDrift::AsSealed);
    let again = sealed_with(&scene, more, |_| {});
    assert!(matches!(again, Err(SealError::SealedOtherwise { .. })), "{again:?}");
    assert_eq!(Sealed::load(&scene.store, &scene.run, &one()).unwrap(), sealed);
}

#[test]
fn c9_a_collection_of_garbage_takes_nothing_that_is_sealed() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    // A lane: a separate repository that borrows the target's objects.
    let place = scene.room("lane-clone");
    let target = scene.repo.path().as_str();
    scene.repo.git(&["clone", "--quiet", "--shared", "--branch", "main", target, place.as_str()]);
    let lane = Repo::existing(&place);
    lane.write("a.txt", "changed\n");
    lane.write("new.bin", [0, 159, 146, 150]);
    let head = id(&lane.commit("in the lane"));
    let patch = lane.git_bytes(&["diff-tree", "-p", "--binary", "HEAD^", "HEAD"]);
    assert!(matches!(
        sealed_with_patch(&scene, head, &patch),
        Err(SealError::Store(StoreError::NoSuchCommit { .. }))
    ));
    scene.store.import(&place, scene.base, head).unwrap();
    let sealed = sealed_with_patch(&scene, head, &patch).unwrap();
    drop(lane);
    std::fs::remove_dir_all(&place).unwrap();
    scene.repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    scene.repo.git(&["gc", "--quiet", "--prune=now"]);
    scene.repo.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(Sealed::load(&scene.store, &scene.run, &one()).unwrap(), sealed);
    assert_eq!(scene.file(head, "a.txt"), "changed\n");
}

fn sealed_with_patch(scene: &Scene, head: ObjectId, patch: &[u8]) -> Result<Sealed, SealError> {
    let bundle = one();
    let digest = sha256_hex(patch);
    let accepted = Acceptance {
        run: &scene.run,
        id: &bundle,
        base: scene.base,
        head,
        patch,
        reviewed_head: head,
        reviewed_patch: &digest,
        gate_digest: "gates1",
        completion_order: 1,
        tip: None,
        stands_on: &[],
        by: None,
        trailers: &[],
        brief: None,
        overrides: &[],
    };
    seal(&scene.store, &scene.fence, &accepted, LOG).map(|(sealed, _)| sealed)
}

#[test]
fn a_change_with_an_object_missing_is_not_sealed() {
    let (scene, head) = scene_and_head();
    let patch = scene.patch(scene.base, head);
    let blob = scene.repo.git(&["rev-parse", &format!("{head}:a.txt")]);
    let (dir, name) = blob.trim().split_at(2);
    std::fs::remove_file(scene.repo.path().join(".git/objects").join(dir).join(name)).unwrap();
    let error = sealed_with_patch(&scene, head, &patch).unwrap_err();
    assert!(matches!(error, SealError::Store(StoreError::Git { .. })), "{error:?}");
    assert!(
        !scene.repo.try_git(&["rev-parse", "--verify", "refs/pdca/run1/seal/1"]).status.success()
    );
}

#[test]
fn only_one_line_of_commits_from_the_base_is_sealed() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let left = scene.commit(scene.base, "left", |lane| lane.write("l", "l\n"));
    let merge = scene.commit(scene.base, "right", |lane| {
        lane.write("r", "r\n");
        lane.commit("right");
        lane.git(&["merge", "--quiet", "--no-ff", "--message", "merge", &left.to_string()]);
    });
    let error = sealed_with(&scene, merge, |_| {}).unwrap_err();
    assert!(matches!(error, SealError::NotLinear { .. }), "{error:?}");
    let orphan = scene.repo.git(&["commit-tree", "-m", "x", &scene.tree(scene.base)]);
    let error = sealed_with(&scene, id(&orphan), |_| {}).unwrap_err();
    assert!(matches!(error, SealError::NotFromBase { .. }), "{error:?}");
    let empty = scene.commit(scene.base, "empty", |_| {});
    let error = sealed_with(&scene, empty, |_| {}).unwrap_err();
    assert!(matches!(error, SealError::NoChange { .. }), "{error:?}");
}

#[test]
fn a_seal_that_was_tampered_with_does_not_load() {
    let (scene, head) = scene_and_head();
    sealed_with(&scene, head, |_| {}).unwrap();
    let tag = scene.repo.git(&["cat-file", "tag", "refs/pdca/run1/seal/1"]);
    for (from, to) in [
        ("\"a.txt\"", "\"b.txt\""),
        (scene.tree(head).as_str(), scene.tree(scene.base).as_str()),
        ("\"id\": \"1\"", "\"id\": \"2\""),
        ("\"schema\": 2", "\"schema\": 3"),
    ] {
        assert!(tag.contains(from), "{tag}");
        let path = scene.room("tag");
        std::fs::write(&path, tag.replace(from, to)).unwrap();
        let forged = scene.repo.git(&["hash-object", "-t", "tag", "-w", path.as_str()]);
        scene.repo.git(&["update-ref", "refs/pdca/run1/seal/1", forged.trim()]);
        let error = Sealed::load(&scene.store, &scene.run, &one()).unwrap_err();
        assert!(matches!(error, SealError::Broken { .. }), "{from}: {error:?}");
    }
}

#[test]
fn c4_whoever_was_taken_over_changes_no_ref_any_more() {
    let (scene, head) = scene_and_head();
    let new = Fence::take(&scene.store, &"run2".parse().unwrap(), 0).unwrap();
    assert!(new.epoch() > scene.fence.epoch());
    let error = sealed_with(&scene, head, |_| {}).unwrap_err();
    assert!(matches!(error, SealError::Ref(RefError::Fenced { .. })), "{error:?}");
    assert!(
        !scene.repo.try_git(&["rev-parse", "--verify", "refs/pdca/run1/seal/1"]).status.success()
    );
}

#[test]
fn an_epoch_is_never_used_twice_even_where_the_fence_was_removed() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    scene.repo.git(&["update-ref", "-d", "refs/pdca/fence"]);
    let run = "run2".parse().unwrap();
    let fence = Fence::take(&scene.store, &run, scene.fence.epoch()).unwrap();
    assert_eq!(fence.epoch(), scene.fence.epoch() + 1);
    assert!(matches!(scene.fence.verify(&scene.store), Err(RefError::Fenced { .. })));
}

#[test]
fn nothing_is_a_store_but_a_repository() {
    let home = tempfile::tempdir().unwrap();
    let home = camino::Utf8Path::from_path(home.path()).unwrap();
    let error = Store::open(home, &home.join("room")).unwrap_err();
    assert!(matches!(error, StoreError::NotARepository { .. }), "{error:?}");
    assert!(!home.join("room").exists(), "nothing was made");
}

#[test]
fn a22_a_lock_that_a_killed_takeover_left_does_not_bar_the_next() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let path = scene.room("epoch");
    std::fs::write(&path, "epoch 2\nholder killed\n").unwrap();
    let blob = scene.repo.git(&["hash-object", "-w", path.as_str()]);
    let lock = scene.repo.path().join(".git/refs/pdca/fence.lock");
    std::fs::write(&lock, blob).unwrap();
    let next = Fence::take(&scene.store, &"run2".parse().unwrap(), 0).unwrap();
    assert_eq!(Fence::current(&scene.store).unwrap(), Some(next));
    assert!(!lock.exists());
}

#[test]
fn a_lock_that_a_killed_driver_left_on_a_ref_of_ours_bars_nobody() {
    let (scene, head) = scene_and_head();
    let store = &scene.store;
    let name = "refs/pdca/attempts/0123abcd/1";
    let keep = |to| pdca_integrate::keep_work(store, &scene.fence, name, (scene.base, to), LOG);
    keep(scene.base).unwrap();
    let lock = scene.repo.path().join(format!(".git/{name}.lock"));
    // Killed before it wrote anything, while it wrote another value, and while it deleted the ref.
    for left in [String::new(), format!("{}\n", scene.base), "0".repeat(17)] {
        std::fs::write(&lock, &left).unwrap();
        keep(head).unwrap();
        assert_eq!(scene.repo.git(&["rev-parse", name]).trim(), head.to_string());
        assert!(!lock.exists());
        keep(scene.base).unwrap();
    }
}

#[test]
fn two_drivers_that_take_over_at_once_never_get_the_same_epoch() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let epochs: Vec<u64> = std::thread::scope(|scope| {
        let take = |name: String| {
            let store = &scene.store;
            scope.spawn(move || Fence::take(store, &name.parse().unwrap(), 0).unwrap().epoch())
        };
        let all: Vec<_> = (0..8).map(|number| take(format!("r{number}"))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let distinct: std::collections::BTreeSet<u64> = epochs.iter().copied().collect();
    assert_eq!(distinct.len(), 8, "{epochs:?}");
}

#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let blob = scene.repo.git(&["rev-parse", &format!("{}:a.txt", scene.base)]);
    let deep = format!("100644,{},{}f", blob.trim(), "d/".repeat(20_000));
    let mut head = scene.base;
    scene.commit(scene.base, "unused", |lane| {
        lane.git(&["update-index", "--add", "--cacheinfo", &deep]);
        let tree = lane.git(&["write-tree"]);
        let base = scene.base.to_string();
        head = id(&lane.git(&["commit-tree", "-m", "deep", "-p", &base, tree.trim()]));
        lane.git(&["reset", "--quiet"]);
    });
    let error = sealed_with_patch(&scene, head, b"patch").unwrap_err();
    assert!(matches!(error, SealError::Store(StoreError::Form { .. })), "{error:?}");
}

#[test]
fn a_commit_that_is_not_in_the_form_of_one_is_refused() {
    let (scene, head) = scene_and_head();
    let text = scene.repo.git(&["cat-file", "commit", &head.to_string()]);
    let path = scene.room("commit");
    std::fs::write(&path, text.replace("author A Tester <tester@example.com>", "author <<>"))
        .unwrap();
    let odd = scene.repo.git(&["hash-object", "-t", "commit", "--literally", "-w", path.as_str()]);
    let error = sealed_with_patch(&scene, id(&odd), b"patch").unwrap_err();
    assert!(matches!(error, SealError::Store(StoreError::Form { .. })), "{error:?}");
}

#[test]
fn a_seal_names_the_brief_and_the_overridden_rows_and_loses_neither_quietly() {
    static OVERRIDES: LazyLock<Vec<pdca_state::Override>> = LazyLock::new(|| {
        let (row, reason) = ("T3".to_owned(), "no browser".to_owned());
        vec![pdca_state::Override { row, reason }]
    });
    let (scene, head) = scene_and_head();
    let (sealed, _) = sealed_with(&scene, head, |accepted| {
        accepted.brief = Some("b0");
        accepted.overrides = &OVERRIDES;
    })
    .unwrap();
    assert_eq!(sealed.record().schema, 3);
    let loaded = Sealed::load(&scene.store, &scene.run, &one()).unwrap();
    assert_eq!(loaded.record().brief_digest.as_deref(), Some("b0"));
    assert_eq!(loaded.record().overrides, *OVERRIDES);
    let other = sealed_with(&scene, head, |accepted| accepted.brief = Some("b0")).unwrap_err();
    assert!(matches!(other, SealError::SealedOtherwise { .. }), "{other:?}");
    let tag = scene.repo.git(&["cat-file", "tag", "refs/pdca/run1/seal/1"]);
    let path = scene.room("tag");
    std::fs::write(&path, tag.replace("\"schema\": 3", "\"schema\": 2")).unwrap();
    let forged = scene.repo.git(&["hash-object", "-t", "tag", "-w", path.as_str()]);
    scene.repo.git(&["update-ref", "refs/pdca/run1/seal/1", forged.trim()]);
    let error = Sealed::load(&scene.store, &scene.run, &one()).unwrap_err();
    assert!(matches!(error, SealError::Broken { field: "schema", .. }), "{error:?}");
}

#[test]
fn commits_with_other_files_than_the_patch_are_not_sealed_and_the_files_are_named() {
    let scene = Scene::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let shown = scene.commit(scene.base, "shown", |lane| lane.write("a.txt", "x\n"));
    let more = scene.commit(scene.base, "more", |lane| {
        lane.write("a.txt", "x\n");
        lane.write("b.txt", "backdoor\n");
    });
    let patch_of = |head| scene.patch(scene.base, head);
    for (head, patch, expected) in [
        (more, patch_of(shown), "the commits change `b.txt`, which patch.diff does not name"),
        (shown, patch_of(more), "patch.diff names `b.txt`, which the commits do not change"),
    ] {
        let (digest, patch): (&str, &[u8]) = (sha256_hex(&patch).leak(), patch.leak());
        let refused = sealed_with(&scene, head, |accepted| {
            (accepted.patch, accepted.reviewed_patch) = (patch, digest);
        });
        assert!(matches!(refused, Err(SealError::OtherFiles { .. })), "{refused:?}");
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
    sealed_with(&scene, more, |_| {}).unwrap();
}

#[test]
fn a_commit_with_a_date_or_a_person_that_git_does_not_accept_is_not_sealed() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let head = scene.commit(scene.base, "change", |lane| lane.write("a.txt", "b\n"));
    let (tree, base) = (scene.tree(head), scene.base);
    let good = "Ada <ada@example.com> 1700000000 +0100";
    let table = [
        (good, true),
        ("Ada <ada@example.com> 0 +0000", true),
        ("Ada <ada@example.com> -1 +0000", false),
        ("Ada <ada@example.com> -9223372036854775808 +0000", false),
        ("Ada <ada@example.com> 18446744073709551616 +0000", false),
        ("Ada <ada@example.com> 9223372036854775808 +0000", false),
        ("Ada <ada@example.com> 01700000000 +0000", false),
        ("Ada <ada@example.com> 1700000000", false),
        ("Ada <ada@example.com> 1700000000 ", false),
        ("Ada <ada@example.com> 1700000000 0100", false),
        ("Ada <ada@example.com> 1700000000 +100", false),
        ("Ada <ada@example.com>", false),
        ("Ada ada@example.com 1700000000 +0100", false),
    ];
    for (who, is_sound) in table {
        for (author, committer) in [(who, good), (good, who)] {
            let text = format!(
                "tree {tree}\nparent {base}\nauthor {author}\ncommitter {committer}\n\nchange\n"
            );
            let file = scene.room("commit");
            std::fs::write(&file, text).unwrap();
            let args = ["hash-object", "-t", "commit", "-w", "--literally", file.as_str()];
            let made = id(&scene.repo.git(&args));
            let sealed = sealed_with(&scene, made, |_| {});
            assert_eq!(sealed.is_ok(), is_sound, "{author} | {committer}: {sealed:?}");
            if is_sound {
                scene.repo.git(&["update-ref", "-d", "refs/pdca/run1/seal/1"]);
            }
        }
    }
}

#[test]
fn an_acceptance_before_1970_is_not_sealed() {
    static EARLY: LazyLock<Signer> =
        LazyLock::new(|| Signer { name: "Ada".to_owned(), email: "a@b".to_owned(), seconds: -1 });
    let (scene, head) = scene_and_head();
    let refused = sealed_with(&scene, head, |accepted| accepted.by = Some(&EARLY));
    assert!(matches!(refused, Err(SealError::Store(StoreError::BeforeEpoch { seconds: -1 }))));
}
