//! What stands in where nothing is configured.

use fs_err as fs;
use insta::assert_snapshot;
use pdca_leaves::{FoundIn, Guard, LeafConfig, Output, ROLES, Role};
use pdca_state::{Artifact, Review};
use pdca_testkit::Repo;

use crate::scene::{Scene, review};

fn text(outcome: &pdca_leaves::LeafOutcome, artifact: Artifact) -> String {
    String::from_utf8(outcome.get(Output::Artifact(artifact)).unwrap().to_vec()).unwrap()
}

#[test]
fn the_reviewers_stub_passes_nothing_and_asks_for_a_person() {
    let scene = Scene::new();
    let outcome = scene.call(Role::Reviewer, &LeafConfig::default()).unwrap();
    assert_snapshot!(review(&outcome), @r"
    Stub: no reviewer is configured. Nothing was reviewed, so nothing here speaks for the change.

    | Item | Verdict | Basis |
    |---|---|---|
    | C1 Spec | N/A | stub: nothing was reviewed |
    | C2 Reproduction (red pre-fix) | N/A | stub: nothing was reviewed |
    | C3 Change | N/A | stub: nothing was reviewed |
    | C4 Verification (red→green) | N/A | stub: nothing was reviewed |
    | C5 Causal adequacy | N/A | stub: nothing was reviewed |
    | T1 Structure | N/A | stub: nothing was reviewed |
    | T2 Shape | N/A | stub: nothing was reviewed |
    | T3 Runtime | N/A | stub: nothing was reviewed |
    | T4 Contribution | N/A | stub: nothing was reviewed |
    | T5 Judgment | NEEDS-HUMAN | no reviewer is configured: nobody has reviewed this change |
    | Validation — fitness-to-purpose | NEEDS-HUMAN | decide whether the change serves its purpose |
    ");
    let parsed = Review::parse(&review(&outcome));
    assert_eq!(parsed.rows.len(), 11);
    assert!(parsed.rows.iter().all(|row| row.verdict != "PASS" && row.verdict != "FAIL"));
    assert_eq!(parsed.findings().count(), 1);
    assert!(parsed.standing().is_some());
}

#[test]
fn the_builders_stub_adds_a_file_to_the_checkout() {
    let scene = Scene::new();
    let outcome = scene.call(Role::Builder, &LeafConfig::default()).unwrap();
    assert_eq!(outcome.get(Output::Artifact(Artifact::Patch)), None);
    assert_snapshot!(text(&outcome, Artifact::BuildNotes), @r"
    # Build notes — issue 7

    Stub: no builder is configured. The change adds `pdca-stub/7.md` and has no effect; nothing the brief asks for was done.
    ");
    let added = fs::read_to_string(scene.lane.join("pdca-stub/7.md")).unwrap();
    assert_snapshot!(added, @r"
    # Stub change for issue 7

    Made by the stub builder because no builder is configured. It has no effect.
    ");
    assert_eq!(outcome.guard, Guard::Stub);
    assert!(!scene.job.exists() || !scene.job.join("try-001").exists());
}

#[test]
fn the_builders_stub_without_a_checkout_is_a_patch_that_git_applies() {
    let scene = Scene::new();
    let stub = LeafConfig::default();
    let with = scene.call(Role::Builder, &stub).unwrap();
    let without =
        scene.call_with(Role::Builder, &stub, |call| call.places.worktree = None).unwrap();
    assert_eq!(text(&with, Artifact::BuildNotes), text(&without, Artifact::BuildNotes));
    let repo = Repo::with_first_commit();
    fs::write(scene.desk.join("patch"), text(&without, Artifact::Patch)).unwrap();
    repo.git(&["apply", "--index", scene.desk.join("patch").as_str()]);
    assert_eq!(
        repo.read("pdca-stub/7.md"),
        fs::read(scene.lane.join("pdca-stub/7.md")).unwrap(),
        "both ways give the same file"
    );
}

#[test]
fn the_builders_stub_does_not_follow_a_link_of_the_target() {
    let scene = Scene::new();
    std::os::unix::fs::symlink(&scene.primary, scene.lane.join("pdca-stub")).unwrap();
    scene.call(Role::Builder, &LeafConfig::default()).unwrap();
    assert!(!scene.primary.join("7.md").exists());
    assert!(scene.lane.join("pdca-stub/7.md").exists());
}

#[test]
fn planner_and_sign_off_stubs_leave_what_is_a_persons_to_decide() {
    let scene = Scene::new();
    for role in [Role::Planner, Role::Signoff] {
        assert_eq!(scene.call(role, &LeafConfig::default()).unwrap().produced, [], "{role}");
    }
}

#[test]
fn every_stub_says_that_it_is_one_and_says_the_same_each_time() {
    for role in ROLES.iter().map(|spec| &spec.role) {
        let scene = Scene::new();
        let stub = LeafConfig::default();
        let first = scene.call(*role, &stub).unwrap();
        assert_eq!(first, scene.call(*role, &stub).unwrap());
        assert_eq!((first.attempts, &first.guard), (0, &Guard::Stub));
        for produced in &first.produced {
            let text = String::from_utf8_lossy(&produced.bytes).to_lowercase();
            assert!(text.contains("stub"), "{role}: {text}");
            assert_eq!(produced.found, FoundIn::Stub);
        }
    }
}

#[test]
fn stubs_can_be_forced_on_whatever_is_configured() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} real");
    let outcome = scene.call_with(Role::Reviewer, &leaf, |call| call.force_stub = true).unwrap();
    assert_eq!(outcome.guard, Guard::Stub);
    assert!(review(&outcome).starts_with("Stub:"));
}
