//! Symbolic links that a change makes, moves or edits.

use std::os::unix::fs::symlink;

use pdca_integrate::{FoldFate, SealError, Strategy, outward_links};
use pdca_testkit::Repo;

use crate::scene::Scene;

fn linked(lane: &Repo, target: &str, path: &str) {
    let at = lane.path().join(path);
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    drop(std::fs::remove_file(&at));
    symlink(target, at).unwrap();
}

/// A tree with links at several depths, among them one that led out before.
fn scene() -> Scene {
    let repo = Repo::new();
    repo.write("target", "t\n");
    repo.write("d/e/g/x", "x\n");
    linked(&repo, "../../../target", "d/e/f/link");
    linked(&repo, "../../..", "d/e/f/top");
    linked(&repo, "/etc", "outside");
    repo.commit("base");
    Scene::of(repo)
}

type Edit = fn(&Repo);

/// Changes, and the links of theirs that lead out of the tree.
const CHANGES: [(&str, Edit, &[&str]); 17] = [
    ("a link that stays inside", |lane| linked(lane, "../target", "d/new"), &[]),
    ("a link to nothing", |lane| linked(lane, "not/there", "new"), &[]),
    ("an absolute link", |lane| linked(lane, "/etc/passwd", "new"), &["new"]),
    ("a link above the top", |lane| linked(lane, "../x", "new"), &["new"]),
    ("a link into .git", |lane| linked(lane, ".git/config", "new"), &["new"]),
    ("an empty way back and out", |lane| linked(lane, "d/../../x", "new"), &["new"]),
    ("a link through one that leads out", |lane| linked(lane, "outside/passwd", "new"), &["new"]),
    ("a link through one that stays", |lane| linked(lane, "d/e/f/top/target", "new"), &[]),
    ("a link to itself", |lane| linked(lane, "new", "new"), &[]),
    (
        "a renamed link that stays inside",
        |lane| drop(lane.git(&["mv", "d/e/f/link", "d/e/g/link"])),
        &[],
    ),
    (
        "a renamed link that comes to lead out",
        |lane| drop(lane.git(&["mv", "d/e/f/link", "link"])),
        &["link"],
    ),
    (
        "a moved directory with links in it",
        |lane| drop(lane.git(&["mv", "d/e/f", "f"])),
        &["f/link", "f/top"],
    ),
    ("a moved directory at the same depth", |lane| drop(lane.git(&["mv", "d/e/f", "d/e/h"])), &[]),
    ("a copied link", |lane| linked(lane, "../../../target", "d/e/link"), &["d/e/link"]),
    ("an edited target", |lane| linked(lane, "../../../../x", "d/e/f/link"), &["d/e/f/link"]),
    ("a file that becomes a link", |lane| linked(lane, "/etc/passwd", "target"), &["target"]),
    ("another file, beside a link that led out before", |lane| lane.write("y", "y\n"), &[]),
];

#[test]
fn links_are_judged_by_the_tree_and_a_change_that_leads_out_is_not_sealed() {
    for (name, edit, expected) in CHANGES {
        let scene = scene();
        let head = scene.commit(scene.base, name, edit);
        let found = outward_links(&scene.store, scene.base, head).unwrap();
        let paths: Vec<String> = found.iter().map(|link| link.path.to_string()).collect();
        assert_eq!(paths, expected, "{name}");
        let sealed = crate::seals::sealed_with(&scene, head, |_| {});
        match sealed {
            Ok(_) => assert!(expected.is_empty(), "{name}"),
            // Where the patch says it too, the patch is refused.
            Err(SealError::Links { .. } | SealError::Patch(_)) => {
                assert!(!expected.is_empty(), "{name}");
            }
            Err(other) => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_link_that_the_target_moved_meanwhile_is_judged_where_it_lands() {
    let repo = Repo::new();
    repo.write("d/e/x", "x\n");
    repo.write("target", "t\n");
    linked(&repo, "x", "d/e/link");
    repo.commit("base");
    let scene = Scene::of(repo);
    let head = scene.commit(scene.base, "edit", |lane| linked(lane, "../../target", "d/e/link"));
    let sealed = scene.accept("1", 1, scene.base, head);
    let moved =
        scene.commit(scene.base, "move", |lane| drop(lane.git(&["mv", "d/e/link", "link"])));
    let entry = pdca_integrate::PlanEntry::new(sealed, []);
    for strategy in [Strategy::RebaseFf, Strategy::MergeCommit] {
        let plan = pdca_integrate::FoldPlan::new(moved, strategy, [entry.clone()]).unwrap();
        let folded = scene.fold(&plan);
        // Git may also call it a conflict. It must not land.
        let fate = &folded.bundles[0].fate;
        assert!(
            matches!(fate, FoldFate::Unsealed { .. } | FoldFate::Conflict { .. }),
            "{strategy:?}: {fate:?}"
        );
    }
}
