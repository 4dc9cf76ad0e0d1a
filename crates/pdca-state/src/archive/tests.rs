mod hostile;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::State;
use crate::testing::{BRIEF, GATES, Scene, summary};

/// Every file below a bundle: relative path and bytes.
fn files_of(bundle: &Bundle) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![bundle.dir().to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in dir.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.symlink_metadata().unwrap().is_dir() {
                todo.push(path);
            } else {
                let relative = path.strip_prefix(bundle.dir()).unwrap().to_string();
                files.insert(relative, fs_err::read(&path).unwrap());
            }
        }
    }
    files
}

fn names_of(bundle: &Bundle) -> Vec<String> {
    files_of(bundle).into_keys().collect()
}

/// An attempt with everything that may be in one.
fn attempt(scene: &Scene, id: &str, outcome: &str) -> Bundle {
    let brief = format!("{BRIEF}- **Test file:** tests/a/t.rs, tests/b/t.rs\n");
    scene.bundle(
        id,
        &[
            ("brief.md", &brief),
            ("patch.diff", "the patch"),
            ("build-notes.md", "the notes"),
            ("close-disposition", "split\n"),
            ("check-gates.json", GATES),
            ("check-gates.md", "gates"),
            ("check-gates.json.torn-1", "{"),
            ("check-gates.json.aside-1", "{}"),
            ("own.txt.aside-12", "set aside"),
            ("gate-logs/C4.log", "a log"),
            ("gate-logs/T1.log", "another log"),
            ("check-review.md", "| Item | Verdict | Basis |\n"),
            ("check-advisory-sec.md", "advice"),
            ("reviewer.error.log", "it failed"),
            ("SUMMARY.md", &summary(outcome)),
            ("seal.json", "{}"),
            ("commit-msg.txt", "message"),
            ("pr-description.md", "description"),
            ("tracker-comment.md", "comment"),
            ("MANUAL-VERIFICATION.md", "by hand"),
            ("notes.json", "{}"),
            ("auto-iterate.json", "[]"),
            ("loop-telemetry.json", "[1]"),
            ("tests/a/t.rs", "test a"),
            ("tests/b/t.rs", "test b"),
            ("iteration-v1/patch.diff", "the first patch"),
            ("stray.txt", "a person's own file"),
        ],
    )
}

#[test]
fn an_iteration_to_do_moves_the_attempt_and_leaves_the_brief_and_the_record() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    assert_eq!(bundle.load().unwrap().state, State::Iterate(Reentry::Do));
    archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
    insta::assert_snapshot!(names_of(&bundle).join("\n"), @r"
    auto-iterate.json
    brief.md
    iteration-v1/patch.diff
    iteration-v2/MANUAL-VERIFICATION.md
    iteration-v2/SUMMARY.md
    iteration-v2/build-notes.md
    iteration-v2/check-advisory-sec.md
    iteration-v2/check-gates.json
    iteration-v2/check-gates.json.aside-1
    iteration-v2/check-gates.json.torn-1
    iteration-v2/check-gates.md
    iteration-v2/check-review.md
    iteration-v2/close-disposition
    iteration-v2/commit-msg.txt
    iteration-v2/gate-logs/C4.log
    iteration-v2/gate-logs/T1.log
    iteration-v2/own.txt.aside-12
    iteration-v2/patch.diff
    iteration-v2/pr-description.md
    iteration-v2/reviewer.error.log
    iteration-v2/seal.json
    iteration-v2/tests/a/t.rs
    iteration-v2/tests/b/t.rs
    iteration-v2/tracker-comment.md
    loop-telemetry.json
    notes.json
    stray.txt
    ");
    let snapshot = bundle.load().unwrap();
    assert_eq!((snapshot.state, snapshot.iterations), (State::Planned, 2));
}

#[test]
fn an_iteration_to_plan_moves_the_brief_too_and_begins_the_next_one_from_it() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Plan");
    archive_plan(&bundle, Reentry::Plan).unwrap().apply().unwrap();
    assert_eq!(bundle.load().unwrap().state, State::Unplanned);
    let files = files_of(&bundle);
    let seed = String::from_utf8(files["carry-forward.md"].clone()).unwrap();
    assert!(seed.starts_with("## Iteration 2 — carry-forward\n"), "{seed}");
    assert!(files["iteration-v2/brief.md"].ends_with(seed.as_bytes()));
    let draft = Brief::parse(std::str::from_utf8(&files["brief.md"]).unwrap());
    assert!(draft.is_placeholder(), "nothing is built before a person has gone over it");
    assert!(files["brief.md"].ends_with(seed.as_bytes()));
    let lost = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(['<', '>'], "");
    assert_eq!(lost(&files["brief.md"]), lost(&files["iteration-v2/brief.md"]));
}

#[test]
fn a_brief_that_a_person_wrote_while_the_archive_lay_half_done_is_not_replaced() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Plan");
    let plan = archive_plan(&bundle, Reentry::Plan).unwrap();
    let drafts = plan.steps.iter().position(|step| step.name() == "archive-draft").unwrap();
    for step in &plan.steps[..drafts] {
        step.apply().unwrap();
    }
    scene.write("issue_7/brief.md", "- **Slug:** mine\n");
    for step in &plan.steps[drafts..] {
        step.apply().unwrap();
    }
    assert_eq!(files_of(&bundle)["brief.md"], b"- **Slug:** mine\n");
}

#[test]
fn a_brief_that_a_person_wrote_stays_where_it_is_when_another_driver_finishes_the_archive() {
    // Before and after the draft: then it is the draft that the person went over.
    for written_before in ["archive-draft", "archive-finish"] {
        let scene = Scene::new();
        let bundle = attempt(&scene, "7", "iterated-to-Plan");
        let plan = archive_plan(&bundle, Reentry::Plan).unwrap();
        let done = plan.steps.iter().position(|step| step.name() == written_before).unwrap();
        plan.steps[..done].iter().try_for_each(ArchiveStep::apply).unwrap();
        scene.write("issue_7/brief.md", "- **Slug:** mine\n");
        resume_archive(&bundle).unwrap().unwrap().apply().unwrap();
        let files = files_of(&bundle);
        assert_eq!(files["brief.md"], b"- **Slug:** mine\n", "before {written_before}");
        assert!(!files.contains_key("iteration-v2/brief.md.2"), "before {written_before}");
    }
}

#[test]
fn every_directory_that_a_move_may_have_made_is_synced() {
    let moves = ["t/a/b.rs", "patch.diff"].map(Utf8PathBuf::from);
    let (root, archive) = (Utf8Path::new("issue_7"), Utf8Path::new("issue_7/iteration-v1"));
    let dirs = changed_dirs(root, archive, &moves);
    let dirs: Vec<String> = dirs.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(dirs.join("\n"), @r"
    issue_7
    issue_7/iteration-v1
    issue_7/iteration-v1/t
    issue_7/iteration-v1/t/a
    issue_7/t
    issue_7/t/a
    ");
}

#[test]
fn the_next_brief_says_why_and_which_gates_failed_with_their_evidence() {
    let scene = Scene::new();
    let gates = r#"{"issue_dir": "issue_7", "overall": "fail", "rows": [
        {"check": "C4 Verification", "result": "fail", "oracle": "x", "rule_id": "C4-verify", "path_line": "2 tests red", "gating": true, "element": "C4",
         "log": "gate-logs/C4-verify.log", "failing": ["a::b", "c\n## d"], "failing_more": 4},
        {"check": "T2 Shape", "result": "fail", "oracle": "x", "rule_id": "T2-lint", "path_line": "a.rs:3 too long", "gating": false, "element": "T2"},
        {"check": "T1 Structure", "result": "pass", "oracle": "x", "rule_id": "T1", "path_line": "", "gating": true, "element": "T1"}]}"#;
    let bundle = scene.bundle(
        "7",
        &[
            ("brief.md", BRIEF),
            ("patch.diff", ""),
            ("check-gates.json", gates),
            ("SUMMARY.md", &summary("iterated-to-Do")),
        ],
    );
    archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
    insta::assert_snapshot!(fs_err::read_to_string(bundle.path(Artifact::Brief)).unwrap(), @r"
    # Brief

    - **Slug:** a-slug
    - **Depends on:** 12, #15

    ## Iteration 1 — carry-forward

    Sent back to Do at sign-off. The whole attempt is in `iteration-v1/`.

    Rationale:

    > the cache is stale

    Failing gates:

    > - C4-verify (gating), C4 Verification: 2 tests red
    >   - failing: a::b, c ## d and 4 more
    >   - log: `iteration-v1/gate-logs/C4-verify.log`
    > - T2-lint (advisory), T2 Shape: a.rs:3 too long
    ");
}

#[test]
fn a_carried_text_adds_no_field_and_no_section_to_the_brief() {
    let scene = Scene::new();
    let said = "x\r- **Touches:** everything\u{2028}- Conflicts with: 99\u{b}## 9. Check sign-off";
    let bundle = scene.bundle(
        "7",
        &[
            ("brief.md", BRIEF),
            ("SUMMARY.md", &summary("iterated-to-Do").replace("the cache is stale", said)),
            (
                "check-gates.json",
                &GATES
                    .replace(r#""result": "pass""#, r#""result": "fail""#)
                    .replace(r#""overall": "pass""#, r#""overall": "fail""#)
                    .replace(r#""ok""#, r#""\n- **Onto branch:** o/evil""#),
            ),
        ],
    );
    archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
    let brief = bundle.load().unwrap().brief.unwrap();
    let labels: Vec<_> = brief.fields().map(|field| field.label.to_owned()).collect();
    assert_eq!(labels, ["Slug", "Depends on"]);
}

#[test]
fn the_section_is_folded_once_however_often_the_step_runs() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Plan");
    let plan = archive_plan(&bundle, Reentry::Plan).unwrap();
    for step in &plan.steps {
        step.apply().unwrap();
        let after = files_of(&bundle);
        step.apply().unwrap();
        assert_eq!(files_of(&bundle), after, "{step}");
    }
    let brief = fs_err::read_to_string(bundle.dir().join("iteration-v2/brief.md")).unwrap();
    assert_eq!(brief.matches("## Iteration 2").count(), 1);
}

#[test]
fn a14_an_accepted_attempt_that_does_not_fit_is_archived_and_goes_on_from_do_wherever_it_stops() {
    let said = "7 conflicts with 3 in f:1";
    for stop in 0..100 {
        let scene = Scene::new();
        let bundle = attempt(&scene, "7", "accepted");
        assert_eq!(bundle.load().unwrap().state, State::Complete);
        let plan = archive_superseded(&bundle, said).unwrap();
        let (first, rest) = plan.steps.split_at(stop.min(plan.steps.len()));
        for step in first {
            step.apply().unwrap();
        }
        if (1..plan.steps.len()).contains(&stop) {
            assert_eq!(bundle.load().unwrap().state, State::Iterate(Reentry::Do));
            // Whoever finds it half done need not know why it was begun.
            archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
        } else {
            for step in rest {
                step.apply().unwrap();
            }
        }
        let after = bundle.load().unwrap();
        assert_eq!((after.state, after.iterations), (State::Planned, 2));
        let brief = fs_err::read_to_string(bundle.path(Artifact::Brief)).unwrap();
        assert_eq!(brief.matches("> 7 conflicts with 3 in f:1\n").count(), 1, "{brief}");
        assert!(bundle.dir().join("iteration-v2/seal.json").is_file());
        if stop >= plan.steps.len() {
            return;
        }
    }
    panic!("there are more steps than anybody thought");
}

#[test]
fn a14_an_archive_interrupted_after_any_step_ends_as_an_undisturbed_one() {
    for reentry in [Reentry::Do, Reentry::Plan] {
        let scene = Scene::new();
        let undisturbed = attempt(&scene, "1", "iterated-to-Do");
        let before = files_of(&undisturbed);
        archive_plan(&undisturbed, reentry).unwrap().apply().unwrap();
        let expected = files_of(&undisturbed);
        let steps =
            archive_plan(&attempt(&scene, "2", "iterated-to-Do"), reentry).unwrap().steps.len();
        for done in 1..steps {
            let bundle = attempt(&scene, &format!("x{done}"), "iterated-to-Do");
            for step in &archive_plan(&bundle, reentry).unwrap().steps[..done] {
                step.apply().unwrap();
            }
            assert_eq!(bundle.load().unwrap().state, State::Iterate(reentry), "after {done} steps");
            assert_eq!(
                bundle.glance().unwrap().state,
                State::Iterate(reentry),
                "after {done} steps"
            );
            assert_kept(&before, &files_of(&bundle));
            let plan = resume_archive(&bundle).unwrap().expect("it is half done");
            assert_eq!(plan.number, 2);
            // The other way in resumes the same archive, whatever it is asked for.
            assert_eq!(archive_plan(&bundle, Reentry::Do).unwrap().reentry, reentry);
            plan.apply().unwrap();
            assert_eq!(files_of(&bundle), expected, "after {done} steps");
            assert!(resume_archive(&bundle).unwrap().is_none());
        }
    }
}

/// Every file is still there with its bytes, under whatever name; the brief may have grown.
fn assert_kept(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    let mut left: Vec<&Vec<u8>> = after.values().collect();
    for (name, bytes) in before {
        let kept = |found: &&Vec<u8>| {
            if name == "brief.md" { found.starts_with(bytes) } else { *found == bytes }
        };
        let place = left.iter().position(kept);
        left.swap_remove(place.unwrap_or_else(|| panic!("{name} was lost")));
    }
}

#[test]
fn lesson_07_the_number_is_the_largest_plus_one_so_nothing_is_overwritten() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    fs_err::remove_dir_all(bundle.dir().join("iteration-v1")).unwrap();
    scene.write("issue_7/iteration-v2/patch.diff", "the second patch");
    let plan = archive_plan(&bundle, Reentry::Do).unwrap();
    assert_eq!(plan.number, 3);
    plan.apply().unwrap();
    let files = files_of(&bundle);
    assert_eq!(files["iteration-v2/patch.diff"], b"the second patch");
    assert_eq!(files["iteration-v3/patch.diff"], b"the patch");
}

#[test]
fn lesson_07_same_named_tests_from_two_directories_are_both_kept() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
    let files = files_of(&bundle);
    assert_eq!(
        (&files["iteration-v2/tests/a/t.rs"][..], &files["iteration-v2/tests/b/t.rs"][..]),
        (&b"test a"[..], &b"test b"[..])
    );
}

#[test]
fn a_file_written_anew_while_the_archive_lay_half_done_gets_a_name_of_its_own() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    let plan = archive_plan(&bundle, Reentry::Do).unwrap();
    plan.steps[..plan.steps.len() - 1].iter().try_for_each(ArchiveStep::apply).unwrap();
    scene.write("issue_7/SUMMARY.md", "a person wrote this");
    resume_archive(&bundle).unwrap().unwrap().apply().unwrap();
    let files = files_of(&bundle);
    assert_eq!(files["iteration-v2/SUMMARY.md.2"], b"a person wrote this");
    assert_eq!(files["iteration-v2/SUMMARY.md"], summary("iterated-to-Do").as_bytes());
}

/// Names that a bundle may hold, artifacts and others, each as a path of one or two components.
fn any_files() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let names = Artifact::ALL
        .iter()
        .filter(|a| **a != Artifact::GateLogs)
        .map(|a| a.file_name().to_owned());
    let others = [
        "gate-logs/a.log",
        "check-advisory-x.md",
        "do.error.log",
        "tests/t.rs",
        "t.rs",
        "own.txt",
        "iteration-v3/patch.diff",
    ];
    let names: Vec<String> = names.chain(others.map(String::from)).collect();
    proptest::collection::btree_map(proptest::sample::select(names), any::<Vec<u8>>(), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_archive_loses_no_byte_wherever_it_is_interrupted(
        mut files in any_files(), to_plan in any::<bool>(), stop in any::<prop::sample::Index>()
    ) {
        files.insert("brief.md".into(), b"- **Slug:** s\n- **Test file:** tests/t.rs, t.rs\n".to_vec());
        let scene = Scene::new();
        let bundle = scene.bundle("7", &[]);
        for (name, bytes) in &files {
            scene.write(&format!("issue_7/{name}"), bytes);
        }
        let mut before = files_of(&bundle);
        // Appended to, like the brief; its old bytes stay in front.
        let seed = before.remove("carry-forward.md");
        let reentry = if to_plan { Reentry::Plan } else { Reentry::Do };
        let plan = archive_plan(&bundle, reentry).unwrap();
        let number = plan.number;
        let stop = stop.index(plan.steps.len());
        for step in &plan.steps[..stop] {
            step.apply().unwrap();
            assert_kept(&before, &files_of(&bundle));
        }
        let plan = archive_plan(&bundle, reentry).unwrap();
        prop_assert_eq!(plan.number, number);
        plan.apply().unwrap();
        let after = files_of(&bundle);
        assert_kept(&before, &after);
        if let Some(seed) = seed {
            prop_assert!(after["carry-forward.md"].starts_with(&seed));
        }
    }

    #[test]
    fn any_bytes_as_a_record_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
        let scene = Scene::new();
        let bundle = scene.bundle("7", &[("brief.md", BRIEF)]);
        scene.write("issue_7/iteration-v1/archive-pending.json", &bytes);
        prop_assert_eq!(bundle.load().is_ok(), bundle.glance().is_ok());
    }
}
