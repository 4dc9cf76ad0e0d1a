//! What keeps a leaf to its inputs, tried by leaves that do not want to be kept.
//!
//! Where the kernel has no sandbox the tests insist that the outcome says so, and that the digests
//! do their part.

use fs_err as fs;
use pdca_leaves::{Guard, LeafError, Output, Role};
use pdca_process::SandboxKind;
use pdca_state::Artifact;
use pdca_testkit::Repo;

use crate::scene::{SECRET, Scene, can_enforce, program, review, was_enforced};

/// The answers of a script that tried to read or write, without the paths.
/// The answers of a script. Behind bwrap what Landlock refuses is read-only or not there.
fn answers(text: &str) -> Vec<&str> {
    let answer = |line| str::rsplit_once(line, ": ").map_or(line, |(_, answer)| answer);
    let refused = |answer| match answer {
        "no (read-only filesystem or storage medium)" | "no (entity not found)" => {
            "no (permission denied)"
        }
        other => other,
    };
    text.lines().map(answer).map(refused).collect()
}

#[test]
fn a_reviewer_cannot_read_the_builders_notes_on_any_way() {
    let scene = Scene::new();
    let notes = scene.bundle.path(Artifact::BuildNotes);
    let builders = scene.workspace.path().join(".pdca/jobs/7/builder-1/bundle/build-notes.md");
    fs::create_dir_all(builders.parent().unwrap()).unwrap();
    fs::write(&builders, SECRET).unwrap();
    let hidden = [scene.workspace.around().join("hidden")];
    fs::create_dir_all(&hidden[0]).unwrap();
    fs::write(hidden[0].join("notes"), SECRET).unwrap();
    let pid = std::process::id();
    let script = format!(
        "read {notes} ${{PDCA_OUTPUT}}
         read bundle:../../../../../results/issue_7/build-notes.md ${{PDCA_OUTPUT}}
         read {old} ${{PDCA_OUTPUT}}
         link {notes} bundle:link
         read bundle:link ${{PDCA_OUTPUT}}
         link {results} worktree:results
         read worktree:results/issue_7/build-notes.md ${{PDCA_OUTPUT}}
         read /proc/{pid}/cwd/../../../../../../../../../..{notes} ${{PDCA_OUTPUT}}
         read /proc/{pid}/root{notes} ${{PDCA_OUTPUT}}
         read /proc/self/root{notes} ${{PDCA_OUTPUT}}
         read {builders} ${{PDCA_OUTPUT}}
         read bundle:../../builder-1/bundle/build-notes.md ${{PDCA_OUTPUT}}
         read {secret} ${{PDCA_OUTPUT}}
         read {patch} ${{PDCA_OUTPUT}}",
        old = scene.bundle.dir().join("iteration-v1/build-notes.md"),
        results = scene.bundle_root,
        secret = hidden[0].join("notes"),
        patch = scene.bundle.path(Artifact::Patch),
    );
    let leaf = scene.leaf("", &script);
    let outcome =
        scene.call_with(Role::Reviewer, &leaf, |call| call.places.hidden = &hidden).unwrap();
    let text = review(&outcome);
    if was_enforced(&outcome) {
        assert_eq!(answers(&text), ["no (permission denied)"; 12], "{text}");
    } else {
        assert!(!outcome.guard.is_enforced());
    }
}

#[test]
fn a_reviewer_that_shows_the_builders_notes_fails_and_is_reported() {
    for role in [Role::Reviewer, Role::Adviser] {
        let scene = Scene::new();
        let notes = scene.bundle.path(Artifact::BuildNotes);
        let result = scene.call(role, &program("", &["cat", notes.as_str()]));
        if can_enforce() {
            let error = result.unwrap_err();
            assert!(matches!(error, LeafError::Failed { .. }), "{error:?}");
            assert!(!error.error_log().unwrap().contains(SECRET), "{error:?}");
        } else {
            let guard = result.unwrap().guard;
            assert!(matches!(guard, Guard::Sandbox(SandboxKind::NotAvailable { .. })), "{guard}");
        }
    }
}

#[test]
fn a_reviewer_cannot_bring_the_builders_notes_into_its_view() {
    let tricks = [
        "ln \"$1\" \"$PDCA_OUTPUT\"",
        "mv \"$1\" \"$PDCA_OUTPUT\"",
        "cp \"$1\" \"$PDCA_OUTPUT\"",
        "mv \"$(dirname \"$1\")\" \"$PDCA_BUNDLE/stolen\"",
        "git diff --no-index /dev/null \"$1\" > \"$PDCA_OUTPUT\"; test $? -eq 1",
        "GIT_DIR=\"$PDCA_WORKTREE/.git\" git init -q . && git hash-object -w \"$1\"",
    ];
    for trick in tricks {
        let scene = Scene::new();
        let notes = scene.bundle.path(Artifact::BuildNotes);
        let leaf = program("", &["sh", "-c", trick, "sh", notes.as_str()]);
        let result = scene.call(Role::Reviewer, &leaf);
        if can_enforce() {
            // It fails, or ends well with nothing in its hands.
            let came_to_nothing =
                matches!(result, Err(LeafError::Failed { .. } | LeafError::NoArtifact { .. }));
            assert!(came_to_nothing, "{trick}: {result:?}");
            assert_eq!(fs::read_to_string(&notes).unwrap(), SECRET, "{trick}");
        } else {
            // Moving the notes changes the bundle, and the digests see it; reading does not.
            let held = result.map_or(true, |outcome| !was_enforced(&outcome));
            assert!(held, "{trick}");
        }
    }
}

#[test]
fn a_reviewer_can_read_its_inputs_and_write_what_is_its_own() {
    let scene = Scene::new();
    let script = format!(
        "read bundle:brief.md ${{PDCA_OUTPUT}}
         read bundle:patch.diff ${{PDCA_OUTPUT}}
         read bundle:tests/empty.rs ${{PDCA_OUTPUT}}
         read ${{PDCA_PROMPT_FILE}} ${{PDCA_OUTPUT}}
         read {} ${{PDCA_OUTPUT}}
         read {} ${{PDCA_OUTPUT}}
         read workspace:pdca.toml ${{PDCA_OUTPUT}}
         try-write worktree:a.txt ${{PDCA_OUTPUT}}
         try-write worktree:new ${{PDCA_OUTPUT}}
         try-write ${{TMPDIR}}/new ${{PDCA_OUTPUT}}
         try-write /dev/null ${{PDCA_OUTPUT}}",
        scene.lane.join("a.txt"),
        scene.primary.join("a.txt"),
    );
    let outcome = scene.call(Role::Reviewer, &scene.leaf("", &script)).unwrap();
    assert_eq!(answers(&review(&outcome)), ["yes"; 11], "{}", review(&outcome));
}

#[test]
fn a_reviewer_cannot_write_the_fix_the_primary_the_workspace_or_its_own_record() {
    let scene = Scene::new();
    let script = format!(
        "try-write {} ${{PDCA_OUTPUT}}
         try-write {} ${{PDCA_OUTPUT}}
         try-write {} ${{PDCA_OUTPUT}}
         try-write workspace:pdca.toml ${{PDCA_OUTPUT}}
         try-write bundle:../before.json ${{PDCA_OUTPUT}}
         try-write bundle:../try-001/verdict.json ${{PDCA_OUTPUT}}
         try-write {} ${{PDCA_OUTPUT}}",
        scene.lane.join("a.txt"),
        scene.lane.join("new"),
        scene.primary.join("a.txt"),
        scene.bundle.path(Artifact::Patch),
    );
    let result = scene.call(Role::Reviewer, &scene.leaf("", &script));
    if can_enforce() {
        let outcome = result.unwrap();
        assert!(was_enforced(&outcome));
        assert_eq!(answers(&review(&outcome)), ["no (permission denied)"; 7]);
    } else {
        // Opening a file for writing changes none, so only the outcome can tell.
        assert!(!was_enforced(&result.unwrap()));
    }
}

#[test]
fn a_reviewer_that_edits_the_fix_fails_or_is_void() {
    let scene = Scene::new();
    let script = format!("append {} two\nwrite ${{PDCA_OUTPUT}} fine", scene.lane.join("a.txt"));
    let error = scene.call(Role::Reviewer, &scene.leaf("", &script)).unwrap_err();
    if can_enforce() {
        assert!(matches!(error, LeafError::Failed { .. }), "{error:?}");
        assert_eq!(fs::read_to_string(scene.lane.join("a.txt")).unwrap(), "one\n");
    } else {
        assert!(matches!(error, LeafError::Voided { fix: true, .. }), "{error:?}");
    }
}

#[test]
fn without_a_sandbox_an_edited_fix_voids_the_review() {
    for role in [Role::Reviewer, Role::Adviser] {
        let scene = Scene::new();
        let script =
            format!("append {} two\nwrite ${{PDCA_OUTPUT}} fine", scene.lane.join("a.txt"));
        let error = scene.call(role, &scene.leaf("sandbox = \"off\"", &script)).unwrap_err();
        let LeafError::Voided { changed, fix: true, guard, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(changed.is_empty());
        assert_eq!(*guard, Some(Guard::Sandbox(SandboxKind::Off)));
        let expected = format!("the {role} is void: the reviewed checkout changed while it ran");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn without_a_sandbox_a_changed_byte_of_the_bundle_voids_the_review_and_is_named() {
    let scene = Scene::new();
    let script = format!(
        "append {gates} x\nwrite {new} x\nremove {old}\nprint editing\nexit 1",
        gates = scene.bundle.path(Artifact::GatesJson),
        new = scene.bundle.dir().join("SUMMARY.md"),
        old = scene.bundle.dir().join("iteration-v1/build-notes.md"),
    );
    let keys = "sandbox = \"off\"\nretries = 5";
    let error = scene.call(Role::Reviewer, &scene.leaf(keys, &script)).unwrap_err();
    let LeafError::Voided { changed, fix: false, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*changed, ["SUMMARY.md", "check-gates.json", "iteration-v1/build-notes.md"]);
    insta::assert_snapshot!(error.error_log().unwrap(), @r"
    reviewer 1 of 6: exit status 1
      | editing
    void: SUMMARY.md changed, check-gates.json changed, iteration-v1/build-notes.md changed while it ran
    ");
}

/// Brings the job back to where a driver is killed after its leaf ended and before it compared.
fn as_if_killed_before_comparing(scene: &Scene, before: &[u8]) {
    fs::remove_file(scene.job.join("try-001/unchanged")).unwrap();
    fs::write(scene.job.join("before.json"), before).unwrap();
}

/// The baseline of a leaf that ran while the bundle was as it is now.
fn baseline(scene: &Scene, role: Role) -> Vec<u8> {
    let leaf = scene.leaf("sandbox = \"off\"", "copy bundle:../before.json ${PDCA_OUTPUT}");
    let outcome = scene.call(role, &leaf).unwrap();
    fs::remove_dir_all(&scene.job).unwrap();
    fs::create_dir_all(&scene.copy).unwrap();
    outcome.produced[0].bytes.clone()
}

#[test]
fn a_change_that_an_earlier_driver_did_not_live_to_see_voids_the_review() {
    let scene = Scene::new();
    let before = baseline(&scene, Role::Reviewer);
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} fine");
    scene.call(Role::Reviewer, &leaf).unwrap();
    as_if_killed_before_comparing(&scene, &before);
    assert!(scene.call(Role::Reviewer, &leaf).unwrap().reused, "nothing has changed");

    as_if_killed_before_comparing(&scene, &before);
    fs::write(scene.bundle.path(Artifact::BuildNotes), "other").unwrap();
    for _driver in 0..2 {
        let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
        assert!(matches!(error, LeafError::Voided { fix: false, .. }), "{error:?}");
        assert_eq!(error.to_string(), "the reviewer is void: the bundle changed while it ran");
    }
}

#[test]
fn a_builders_change_to_the_bundle_is_told_by_the_next_driver_too() {
    let scene = Scene::new();
    let before = baseline(&scene, Role::Builder);
    let leaf = scene.leaf("", "print done");
    scene.call(Role::Builder, &leaf).unwrap();
    as_if_killed_before_comparing(&scene, &before);
    fs::write(scene.bundle.path(Artifact::Notes), "{}").unwrap();
    assert_eq!(scene.call(Role::Builder, &leaf).unwrap().bundle_changed, ["."]);
}

#[test]
fn what_the_driver_writes_after_a_call_is_not_the_leafs_doing() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} fine");
    scene.call(Role::Reviewer, &leaf).unwrap();
    scene.bundle.publish_file("adviser.error.log".into(), b"it failed\n").unwrap();
    fs::write(scene.lane.join("a.txt"), "reset\n").unwrap();
    assert!(scene.call(Role::Reviewer, &leaf).unwrap().reused);
}

#[test]
fn a_leaf_that_was_killed_with_its_driver_after_it_changed_the_bundle_is_not_asked_again() {
    let scene = Scene::new();
    let before = baseline(&scene, Role::Reviewer);
    fs::write(scene.job.join("before.json"), before).unwrap();
    fs::write(scene.bundle.path(Artifact::BuildNotes), "other").unwrap();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} fine");
    let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
    assert!(matches!(error, LeafError::Voided { guard: None, .. }), "{error:?}");
    assert!(!scene.job.join("try-001").exists());
}

#[test]
fn a_result_without_a_baseline_cannot_be_vouched_for_and_is_made_again() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} fine");
    scene.call(Role::Reviewer, &leaf).unwrap();
    fs::remove_file(scene.job.join("try-001/unchanged")).unwrap();
    assert!(!scene.call(Role::Reviewer, &leaf).unwrap().reused);
}

#[test]
fn what_a_crashed_publication_left_in_the_bundle_is_nobodys_change() {
    let scene = Scene::new();
    let debris = scene.bundle.dir().join(".check-review.md.pdca-tmp-1-0");
    fs::write(&debris, "fi").unwrap();
    let before = baseline(&scene, Role::Reviewer);
    let leaf = scene.leaf("", "write ${PDCA_OUTPUT} fine");
    scene.call(Role::Reviewer, &leaf).unwrap();
    as_if_killed_before_comparing(&scene, &before);
    fs::write(&debris, "fi").unwrap();
    assert!(scene.call(Role::Reviewer, &leaf).unwrap().reused);
}

#[test]
fn a_reviewer_may_change_its_throwaway_copy() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "append worktree:a.txt two\nwrite ${PDCA_OUTPUT} fine");
    assert_eq!(review(&scene.call(Role::Reviewer, &leaf).unwrap()), "fine");
}

#[test]
fn git_works_in_a_copy_whose_objects_are_borrowed() {
    let scene = Scene::new();
    let primary = Repo::at(&scene.workspace.around().join("origin"));
    primary.write("a.txt", "one\n");
    let head = primary.commit("first");
    let copy = scene.copy.join("shared");
    primary.git(&["clone", "--quiet", "--shared", ".", copy.as_str()]);
    let command = "git -C shared log -1 --format=%H > \"$PDCA_OUTPUT\"";
    let leaf = program("", &["sh", "-c", command]);
    let outcome = scene.call_with(Role::Reviewer, &leaf, |call| {
        call.places.primary = Some(primary.path());
    });
    assert_eq!(review(&outcome.unwrap()), format!("{head}\n"));
}

#[test]
fn a_builder_can_write_its_lane_and_not_the_primary_or_another_lane() {
    let scene = Scene::new();
    let lanes = [scene.workspace.around().join("work.lanes")];
    let other = lanes[0].join("lane-1/target");
    let cache = scene.workspace.path().join("cache");
    for dir in [&other, &cache] {
        fs::create_dir_all(dir).unwrap();
    }
    let script = format!(
        "try-write {} ${{PDCA_OUTPUT}}
         try-write {} ${{PDCA_OUTPUT}}
         try-write {} ${{PDCA_OUTPUT}}
         try-write {} ${{PDCA_OUTPUT}}
         try-write workspace:pdca.toml ${{PDCA_OUTPUT}}
         print ok
         try-write worktree:a.txt ${{PDCA_OUTPUT}}
         try-write worktree:new ${{PDCA_OUTPUT}}
         try-write workspace:cache/new ${{PDCA_OUTPUT}}
         try-write ${{TMPDIR}}/new ${{PDCA_OUTPUT}}",
        scene.primary.join("a.txt"),
        scene.primary.join("new"),
        other.join("new"),
        scene.bundle.path(Artifact::GatesJson),
    );
    let leaf = scene.leaf("writable = [\"cache\"]", &script);
    let outcome = scene.call_with(Role::Builder, &leaf, |call| call.places.kept = &lanes).unwrap();
    let notes = outcome.get(Output::Artifact(Artifact::BuildNotes)).unwrap();
    let text = String::from_utf8_lossy(notes);
    let answers = answers(&text);
    assert_eq!(answers[5..], ["yes"; 4], "{text}");
    if was_enforced(&outcome) {
        assert_eq!(answers[..5], ["no (permission denied)"; 5], "{text}");
    }
}

#[test]
fn what_changed_in_the_bundle_while_a_builder_ran_is_told() {
    let scene = Scene::new();
    let brief = scene.bundle.path(Artifact::Brief);
    let leaf = scene.leaf("sandbox = \"off\"", &format!("append {brief} x"));
    let outcome = scene.call(Role::Builder, &leaf).unwrap();
    assert_eq!(outcome.bundle_changed, ["brief.md"]);
}

#[test]
fn no_setting_opens_what_a_role_may_not_write() {
    let scene = Scene::new();
    let lane = scene.lane.as_str();
    let primary = scene.primary.as_str();
    std::os::unix::fs::symlink(&scene.bundle_root, scene.workspace.path().join("detour")).unwrap();
    let cases = [
        (Role::Builder, "results"),
        (Role::Builder, "results/issue_7"),
        (Role::Builder, "detour/issue_8"),
        (Role::Builder, ".pdca"),
        (Role::Builder, "."),
        (Role::Builder, primary),
        (Role::Builder, "../primary/build"),
        (Role::Reviewer, lane),
    ];
    for (role, path) in cases {
        let leaf = scene.leaf(&format!("writable = [\"{path}\"]"), "exit 0");
        let error = scene.call(role, &leaf).unwrap_err();
        assert!(matches!(error, LeafError::Writable { .. }), "{role} {path}: {error:?}");
    }
    assert!(!scene.job.join("try-001").exists());
}

#[test]
fn a_directory_above_what_is_closed_may_be_opened_and_what_is_closed_in_it_stays_closed() {
    if !can_enforce() {
        return;
    }
    let scene = Scene::new();
    let around = scene.workspace.around().clone();
    fs::create_dir_all(around.join("mine")).unwrap();
    for (path, opens) in [("mine/new.txt", true), ("primary/new.txt", false)] {
        let script = format!("write {around}/{path} x");
        let leaf = scene.leaf(&format!("writable = [\"{around}\"]"), &script);
        let _outcome = scene.call(Role::Builder, &leaf);
        assert_eq!(around.join(path).exists(), opens, "{path}");
    }
}

#[test]
fn what_an_independent_leaf_prints_on_standard_error_is_no_review() {
    let scene = Scene::new();
    let table = "| Item | Verdict | Basis |";
    let printed = |stream: &str| {
        program("prompt_via = \"none\"", &["sh", "-c", &format!("echo '{table}' {stream}")])
    };
    let error = scene.call(Role::Reviewer, &printed(">&2")).unwrap_err();
    assert!(matches!(error, LeafError::NoArtifact { .. }), "{error:?}");
    let scene = Scene::new();
    let outcome = scene.call(Role::Reviewer, &printed("")).unwrap();
    assert_eq!(outcome.produced[0].bytes, format!("{table}\n").into_bytes());
}

#[test]
fn a_required_sandbox_that_is_missing_refuses_before_anything_starts() {
    let scene = Scene::new();
    let leaf = scene.leaf("sandbox = \"require\"", "write ${PDCA_OUTPUT} fine");
    let missing = SandboxKind::NotAvailable { why: "no such kernel".to_owned() };
    let error = scene.call_with(Role::Reviewer, &leaf, |call| call.support = Some(&missing));
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "the reviewer requires a sandbox: no such kernel");
    assert!(!scene.job.join("try-001").exists() && !scene.job.join("before.json").exists());
}

#[test]
fn a_required_sandbox_holds_or_the_call_is_refused() {
    let scene = Scene::new();
    let leaf = scene.leaf("sandbox = \"require\"", "write ${PDCA_OUTPUT} fine");
    match scene.call(Role::Reviewer, &leaf) {
        Ok(outcome) => assert!(was_enforced(&outcome)),
        Err(LeafError::NoSandbox { .. }) => assert!(!can_enforce()),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_outcome_says_what_held() {
    let scene = Scene::new();
    let leaf = scene.leaf("sandbox = \"off\"", "write ${PDCA_OUTPUT} fine");
    let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
    assert_eq!(outcome.guard.to_string(), "no sandbox; digests alone");
    let scene = Scene::new();
    let outcome = scene.call(Role::Reviewer, &scene.leaf("", "write ${PDCA_OUTPUT} x")).unwrap();
    assert_eq!(outcome.guard.is_enforced(), can_enforce());
}
