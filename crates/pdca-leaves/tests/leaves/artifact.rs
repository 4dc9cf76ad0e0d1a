//! What a leaf leaves, and what of it is taken.

use crate::scene::{SECRET, Scene, listing, program, review};
use fs_err as fs;
use pdca_leaves::{Call, Flaw, FoundIn, Inputs, LeafError, Output, Proposal, Role, call};
use pdca_state::{Artifact, SignoffAction};

#[test]
fn the_file_at_the_output_is_the_artifact_and_the_bundle_is_not_written() {
    let scene = Scene::new();
    let before = scene.bundle.digest().unwrap();
    let leaf = scene.leaf("", "print chatter\nwrite ${PDCA_OUTPUT} \"  a review\\n\"");
    let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
    assert_eq!(review(&outcome), "  a review\n");
    assert_eq!(outcome.produced[0].found, FoundIn::File);
    assert_eq!((outcome.attempts, outcome.throttled, outcome.reused), (1, 0, false));
    assert_eq!(outcome.earlier_failures, None);
    assert_eq!(scene.bundle.digest().unwrap(), before);
}

#[test]
fn the_view_holds_exactly_the_inputs_of_the_role_as_plain_copies() {
    let cases: &[(Role, &[&str])] = &[
        // The builder alone sees the attempt before this one.
        (Role::Builder, &["brief.md", "iteration-v1/build-notes.md", "tests/empty.rs"]),
        (Role::Reviewer, &["brief.md", "check-gates.json", "patch.diff", "tests/empty.rs"]),
        (Role::Adviser, &["brief.md", "check-gates.json", "patch.diff", "tests/empty.rs"]),
        (
            Role::Publisher,
            &["brief.md", "build-notes.md", "check-gates.json", "patch.diff", "tests/empty.rs"],
        ),
    ];
    for (role, expected) in cases {
        let scene = Scene::new();
        let leaf = scene.leaf("", "print looked\nexit 3");
        scene.call(*role, &leaf).unwrap_err();
        assert_eq!(listing(&scene.view()), *expected, "{role}");
        for name in *expected {
            let (copy, original) = (scene.view().join(name), scene.bundle.dir().join(name));
            assert_eq!(fs::read(&copy).unwrap(), fs::read(&original).unwrap());
            assert!(!fs::symlink_metadata(&copy).unwrap().is_symlink());
            fs::write(&copy, "spoilt").unwrap();
            assert_ne!(fs::read(&original).unwrap(), b"spoilt", "{name} is a link to the original");
        }
    }
}

#[test]
fn a_reviewer_that_only_prints_is_taken_at_its_word() {
    let scene = Scene::new();
    let leaf = program("", &["printf", "\\n| C1 Spec | PASS | \\377 |\\n\\n"]);
    let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
    assert_eq!(outcome.produced[0].bytes, b"\n| C1 Spec | PASS | \xff |\n\n");
    assert_eq!(outcome.produced[0].found, FoundIn::Printed);
}

#[test]
fn what_an_adviser_prints_is_its_advice() {
    let scene = Scene::new();
    let leaf =
        scene.leaf("", "write ${PDCA_OUTPUT} \" \\n\"\nprint \"- NEEDS-HUMAN — look at it\"");
    let outcome = scene.call(Role::Adviser, &leaf).unwrap();
    assert_eq!(outcome.get(Output::Advice).unwrap(), "- NEEDS-HUMAN — look at it\n".as_bytes());
}

#[test]
fn only_reviewers_may_print_their_artifact() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "print \"- **Slug:** printed\"");
    let error = scene.call(Role::Publisher, &leaf).unwrap_err();
    assert_flaw(&error, &Flaw::Missing("commit-msg.txt"));
}

#[test]
fn nothing_left_and_nothing_printed_is_no_artifact() {
    let scene = Scene::new();
    let error = scene.call(Role::Reviewer, &scene.leaf("", "exit 0")).unwrap_err();
    assert_flaw(&error, &Flaw::Missing("check-review.md"));
    assert_eq!(
        error.error_log(),
        Some("reviewer 1 of 1: exit status 0, but check-review.md is missing\n")
    );
}

#[test]
fn an_empty_file_is_no_artifact() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} \" \\n\"\nprint \"\"");
    assert_flaw(&scene.call(Role::Reviewer, &leaf).unwrap_err(), &Flaw::Empty("check-review.md"));
}

#[test]
fn a_brief_that_is_left_as_it_was_is_not_filled() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "print thinking");
    let error = scene.call(Role::Planner, &leaf).unwrap_err();
    assert_flaw(&error, &Flaw::Untouched("brief.md"));
}

#[test]
fn a_planner_fills_the_brief() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} \"- **Slug:** new\\n\"");
    let outcome = scene.call(Role::Planner, &leaf).unwrap();
    let brief = outcome.get(Output::Artifact(Artifact::Brief)).unwrap();
    assert_eq!(brief, b"- **Slug:** new\n");
}

#[test]
fn a_builder_may_leave_its_change_in_the_checkout_alone() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "append worktree:a.txt two");
    let outcome = scene.call(Role::Builder, &leaf).unwrap();
    assert_eq!(outcome.produced, []);
    assert_eq!(fs::read_to_string(scene.lane.join("a.txt")).unwrap(), "one\ntwo");
}

#[test]
fn a_builder_without_a_checkout_has_to_leave_a_patch() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} notes");
    let error = scene.call_with(Role::Builder, &leaf, |call| call.places.worktree = None);
    assert_flaw(&error.unwrap_err(), &Flaw::Missing("patch.diff"));

    let scene = Scene::new();
    let leaf = scene.leaf("", "pwd bundle:patch.diff\nwrite ${PDCA_OUTPUT} notes");
    let outcome =
        scene.call_with(Role::Builder, &leaf, |call| call.places.worktree = None).unwrap();
    let patch = outcome.get(Output::Artifact(Artifact::Patch)).unwrap();
    assert_eq!(String::from_utf8_lossy(patch), format!("{}\n", scene.view()));
    assert_eq!(outcome.get(Output::Artifact(Artifact::BuildNotes)).unwrap(), b"notes");
}

#[test]
fn a_publisher_may_leave_three_texts() {
    let scene = Scene::new();
    let leaf =
        scene.leaf("", "write ${PDCA_OUTPUT} message\nwrite bundle:tracker-comment.md comment");
    let outcome = scene.call(Role::Publisher, &leaf).unwrap();
    assert_eq!(outcome.get(Output::Artifact(Artifact::CommitMessage)).unwrap(), b"message");
    assert_eq!(outcome.get(Output::Artifact(Artifact::TrackerComment)).unwrap(), b"comment");
    assert_eq!(outcome.get(Output::Artifact(Artifact::PrDescription)), None);
}

#[test]
fn a_sign_off_leaf_proposes_or_leaves_the_table() {
    let scene = Scene::new();
    let outcome = scene.call(Role::Signoff, &scene.leaf("", "exit 0")).unwrap();
    assert_eq!(outcome.produced, []);

    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} <<END\n{\"action\": \"accept\"}\nEND\n");
    let outcome = scene.call(Role::Signoff, &leaf).unwrap();
    let proposal = Proposal::parse(outcome.get(Output::Proposal).unwrap()).unwrap();
    assert_eq!(proposal.action, SignoffAction::Accept);
}

#[test]
fn act_sees_what_the_driver_put_together_and_leaves_an_entry() {
    let scene = Scene::new();
    let inputs = Inputs::for_act([("index/cycles.md".into(), b"two cycles\n".to_vec())]).unwrap();
    let leaf = scene.leaf("", "copy bundle:index/cycles.md ${PDCA_OUTPUT}");
    let mut described = Call::new(&leaf, &inputs, &scene.job, scene.places(Role::Act));
    described.places.worktree = None;
    let outcome = call(&described, &mut |_| (), &scene.cancel).unwrap();
    assert_eq!(outcome.get(Output::ActEntry).unwrap(), b"two cycles\n");
}

#[test]
fn a_link_out_of_the_view_is_not_followed() {
    let scene = Scene::new();
    let notes = scene.bundle.path(Artifact::BuildNotes);
    let leaf = scene.leaf("sandbox = \"off\"", &format!("link {notes} ${{PDCA_OUTPUT}}\nprint x"));
    let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
    assert!(matches!(&error, LeafError::NoArtifact { flaw: Flaw::Unfit { .. }, .. }), "{error:?}");
    assert!(!error.error_log().unwrap().contains(SECRET));
}

#[test]
fn a_view_that_was_swapped_for_another_directory_is_not_read() {
    let scene = Scene::new();
    let (view, bundle) = (scene.view(), scene.bundle.dir());
    let script = format!("remove {view}\nlink {bundle} {view}\nprint x");
    let leaf = scene.leaf("sandbox = \"off\"", &script);
    let error = scene.call(Role::Publisher, &leaf).unwrap_err();
    assert!(matches!(&error, LeafError::NoArtifact { flaw: Flaw::Unfit { .. }, .. }), "{error:?}");
}

#[test]
fn a_directory_or_a_pipe_in_the_place_of_the_artifact_is_refused_without_waiting() {
    for command in ["mkdir \"$PDCA_OUTPUT\"", "mkfifo \"$PDCA_OUTPUT\""] {
        let scene = Scene::new();
        let leaf = program("", &["sh", "-c", command]);
        let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
        let refused = matches!(&error, LeafError::NoArtifact { flaw: Flaw::Unfit { .. }, .. });
        assert!(refused, "{command}: {error:?}");
    }
}

#[test]
fn an_artifact_that_is_too_large_is_refused() {
    let scene = Scene::new();
    let command = "head -c 2000000 /dev/zero | tr '\\0' x > \"$PDCA_OUTPUT\"";
    let error = scene.call(Role::Signoff, &program("", &["sh", "-c", command])).unwrap_err();
    assert!(matches!(&error, LeafError::NoArtifact { flaw: Flaw::Unfit { .. }, .. }), "{error:?}");
}

#[test]
fn a_leaf_may_print_without_end_as_long_as_it_leaves_its_file() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "flood 30000000\nwrite ${PDCA_OUTPUT} done");
    assert_eq!(review(&scene.call(Role::Reviewer, &leaf).unwrap()), "done");
}

#[test]
fn a_printed_review_that_was_cut_is_none() {
    let scene = Scene::new();
    let error = scene.call(Role::Reviewer, &scene.leaf("", "flood 30000000")).unwrap_err();
    assert_flaw(&error, &Flaw::Cut("check-review.md"));
}

fn assert_flaw(error: &LeafError, expected: &Flaw) {
    let LeafError::NoArtifact { flaw, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(flaw, expected);
}
