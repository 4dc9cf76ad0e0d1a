use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::testing::{BRIEF, GATES, Scene, summary};

const PLACEHOLDER: &str = "- **Slug:** <short-name>\n";

/// The state that both readers derive from these files; they must agree.
fn state(files: &[(&str, &str)]) -> State {
    let scene = Scene::new();
    let bundle = scene.bundle("7", files);
    let state = bundle.load().unwrap().state;
    assert_eq!(bundle.glance().unwrap().state, state);
    state
}

#[test]
fn each_row_of_the_state_table_from_files() {
    let (patch, gates) = (("patch.diff", ""), ("check-gates.json", GATES));
    let brief = ("brief.md", BRIEF);
    assert_eq!(state(&[]), State::Unplanned);
    assert_eq!(state(&[("brief.md", PLACEHOLDER), patch, gates]), State::Unplanned);
    assert_eq!(state(&[("brief.md", "# no slug\n")]), State::Unplanned);
    assert_eq!(state(&[patch, gates]), State::Unplanned);
    assert_eq!(state(&[brief]), State::Planned);
    assert_eq!(state(&[brief, gates]), State::Planned);
    assert_eq!(state(&[brief, patch]), State::Built);
    assert_eq!(state(&[brief, ("close-disposition", "split\n")]), State::Built);
    assert_eq!(state(&[brief, patch, gates]), State::Checked);
    for (outcome, expected) in [
        ("", State::AwaitingSignoff),
        ("Accepted", State::AwaitingSignoff),
        ("accepted, I think", State::AwaitingSignoff),
        ("merged-wider | iterated-to-Do", State::AwaitingSignoff),
        ("merged-wider", State::Complete),
        ("accepted", State::Complete),
        ("iterated-to-Do", State::Iterate(crate::Reentry::Do)),
        ("iterated-to-Plan", State::Iterate(crate::Reentry::Plan)),
        ("discontinued", State::Discontinued),
    ] {
        assert_eq!(
            state(&[brief, patch, gates, ("SUMMARY.md", &summary(outcome))]),
            expected,
            "{outcome}"
        );
    }
    assert_eq!(state(&[brief, patch, ("SUMMARY.md", &summary("accepted"))]), State::Built);
}

#[test]
fn a_resolved_issue_is_resolved_until_something_shows_that_a_cycle_ran() {
    let notes = ("notes.json", r#"{"resolved": {"by": "PR 7"}}"#);
    assert_eq!(state(&[notes]), State::Resolved);
    assert_eq!(state(&[notes, ("brief.md", PLACEHOLDER)]), State::Resolved);
    assert_eq!(state(&[notes, ("own.txt", "")]), State::Resolved);
    assert_eq!(state(&[notes, ("brief.md", BRIEF)]), State::Planned);
    for evidence in [
        "patch.diff",
        "build-notes.md",
        "close-disposition",
        "check-gates.json",
        "check-gates.md",
        "gate-logs/x.log",
        "check-review.md",
        "check-advisory-x.md",
        "builder.error.log",
        "SUMMARY.md",
        "iteration-v1/x",
        "iteration-vX",
        "auto-iterate.json",
        "loop-telemetry.json",
    ] {
        assert_eq!(state(&[notes, (evidence, "")]), State::Unplanned, "{evidence}");
    }
    assert_eq!(state(&[("notes.json", r#"{"resolved": true}"#)]), State::Unplanned);
}

#[test]
fn carriage_returns_change_nothing() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let files = [
        ("brief.md", crlf(BRIEF)),
        ("patch.diff", String::new()),
        ("check-gates.json", crlf(GATES)),
        ("SUMMARY.md", crlf(&summary("merged-wider"))),
    ];
    assert_eq!(
        state(&files.each_ref().map(|(name, text)| (*name, text.as_str()))),
        State::Complete
    );
}

#[test]
fn notes_that_are_torn_are_a_problem_and_resolve_nothing() {
    let scene = Scene::new();
    let snapshot = scene.bundle("7", &[("notes.json", r#"{"resolved": {"#)]).load().unwrap();
    assert_eq!(snapshot.state, State::Unplanned);
    assert_eq!(snapshot.problems[0].artifact, Some(Artifact::Notes));
}

#[test]
fn a_brief_that_cannot_be_read_is_an_error_that_names_it() {
    let scene = Scene::new();
    let bundle = |id: &str| scene.bundle(id, &[]);
    fs_err::create_dir(bundle("dir").path(Artifact::Brief)).unwrap();
    fs_err::write(scene.path().join("outside.md"), BRIEF).unwrap();
    symlink(scene.path().join("outside.md"), bundle("link").path(Artifact::Brief)).unwrap();
    scene.write("issue_big/brief.md", vec![b'x'; (1 << 20) + 1]);
    scene.write("issue_latin/brief.md", b"- **Slug:** x\r\n\r\nna\xefve\n");
    let pipe = bundle("pipe").path(Artifact::Brief);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        pipe.as_std_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for (id, expected) in [
        ("dir", "brief.md is a directory, not a file"),
        ("link", "leads out of"),
        ("big", "has 1048577 bytes or more, the limit is 1048576"),
        ("latin", "brief.md:3: byte 0xef is not UTF-8"),
        ("pipe", "brief.md is a named pipe, not a file"),
    ] {
        let bundle = bundle(id);
        let error = bundle.load().unwrap_err();
        assert!(error.to_string().contains(expected), "{id}: {error}");
        assert_eq!(error.path(), bundle.path(Artifact::Brief));
        assert_eq!(bundle.glance().unwrap_err().to_string(), error.to_string());
    }
    assert_eq!(bundle("latin").load().unwrap_err().line(), Some(3));
}

#[test]
fn a_brief_of_exactly_the_limit_is_read() {
    let scene = Scene::new();
    let mut text = BRIEF.as_bytes().to_vec();
    text.resize(1 << 20, b'\n');
    scene.write("issue_7/brief.md", text);
    assert_eq!(scene.bundle("7", &[]).load().unwrap().state, State::Planned);
}

#[test]
fn a_summary_that_is_not_text_grants_nothing() {
    let scene = Scene::new();
    let bundle =
        scene.bundle("7", &[("brief.md", BRIEF), ("patch.diff", ""), ("check-gates.json", GATES)]);
    let mut text = summary("accepted").into_bytes();
    text.push(0xff);
    scene.write("issue_7/SUMMARY.md", text);
    assert!(matches!(bundle.load(), Err(LoadError::NotUtf8 { .. })));
    assert!(matches!(bundle.glance(), Err(LoadError::NotUtf8 { .. })));
}

#[test]
fn a_review_that_is_not_text_is_read_as_far_as_it_goes() {
    let scene = Scene::new();
    let bundle = scene.bundle("7", &[("brief.md", BRIEF)]);
    for name in ["check-review.md", "check-advisory-x.md"] {
        scene.write(&format!("issue_7/{name}"), b"# r\n- NEEDS-HUMAN \xe2\x80\x94 caf\xe9\n");
    }
    let snapshot = bundle.load().unwrap();
    assert_eq!(snapshot.review.unwrap().items.len(), 1);
    assert_eq!(snapshot.advisories[0].0, "x");
    assert!(snapshot.advisories[0].1.contains("NEEDS-HUMAN"));
    let problems: Vec<_> =
        snapshot.problems.iter().map(|p| (p.file.file_name().unwrap(), p.artifact)).collect();
    assert_eq!(
        problems,
        [("check-review.md", Some(Artifact::Review)), ("check-advisory-x.md", None)]
    );
    assert!(snapshot.problems[0].what.contains("line 2"), "{}", snapshot.problems[0]);
}

#[test]
fn a_patch_that_is_no_file_or_leads_out_is_no_change() {
    let scene = Scene::new();
    let dir = scene.bundle("1", &[("brief.md", BRIEF), ("patch.diff/x", "")]);
    let link = scene.bundle("2", &[("brief.md", BRIEF)]);
    symlink("/dev/null", link.path(Artifact::Patch)).unwrap();
    for bundle in [dir, link] {
        assert!(matches!(bundle.load(), Err(LoadError::File(_))), "{}", bundle.dir());
        assert!(matches!(bundle.glance(), Err(LoadError::File(_))), "{}", bundle.dir());
    }
}

#[test]
fn lesson_02_gates_that_ran_before_the_patch_do_not_cover_it() {
    let scene = Scene::new();
    let report = |digest: &str| {
        GATES.replace(r#""overall""#, &format!(r#""patch_digest": "{digest}", "overall""#))
    };
    let before = report(&crate::sha256_hex(b"an earlier patch"));
    let bundle = scene.bundle("7", &[("brief.md", BRIEF), ("check-gates.json", &before)]);
    assert_eq!(bundle.load().unwrap().state, State::Planned);
    assert_eq!(bundle.load().unwrap().coverage().unwrap(), Coverage::Changed);
    bundle.publish(Artifact::Patch, b"the patch").unwrap();
    assert_eq!(bundle.load().unwrap().coverage().unwrap(), Coverage::Changed);
    bundle
        .publish(Artifact::GatesJson, report(&crate::sha256_hex(b"the patch")).as_bytes())
        .unwrap();
    assert_eq!(bundle.load().unwrap().coverage().unwrap(), Coverage::Same);
    bundle.publish(Artifact::GatesJson, GATES.as_bytes()).unwrap();
    assert_eq!(bundle.load().unwrap().coverage().unwrap(), Coverage::Unknown);
}

#[test]
fn a_patch_beside_the_report_of_a_close_was_seen_by_no_gate() {
    let scene = Scene::new();
    let close = GateReport::for_close("issue_7").to_json();
    let bundle = scene.bundle(
        "7",
        &[("brief.md", BRIEF), ("close-disposition", "split\n"), ("check-gates.json", &close)],
    );
    let covered = || {
        let snapshot = bundle.load().unwrap();
        assert_eq!(snapshot.state, State::Checked);
        let coverage = snapshot.coverage().unwrap();
        assert_eq!(bundle.glance().unwrap().coverage, coverage);
        coverage
    };
    assert_eq!(covered(), Coverage::Unknown);
    bundle.publish(Artifact::Patch, b"the patch").unwrap();
    assert_eq!(covered(), Coverage::Changed);
    // One row that says something is a run of the gates, by a driver that noted no digest.
    bundle.publish(Artifact::GatesJson, GATES.as_bytes()).unwrap();
    assert_eq!(covered(), Coverage::Unknown);
}

#[test]
fn the_files_that_judge_a_change_are_named_in_the_order_to_set_them_aside() {
    let scene = Scene::new();
    let bundle = scene.bundle("7", &[("brief.md", BRIEF), ("patch.diff", "")]);
    assert!(bundle.load().unwrap().verdict_files().is_empty());
    for name in [
        "build-notes.md",
        "builder.error.log",
        "check-advisory-b.md",
        "check-advisory-a.md",
        "check-advisory-c.error.log",
        "check-gates.json.aside-1",
        "check-gates.md",
        "check-review.md",
        "check-review.error.log",
        "gate-logs/C4.log",
    ] {
        scene.write(&format!("issue_7/{name}"), b"");
    }
    scene.write("issue_7/SUMMARY.md", summary(""));
    scene.write("issue_7/check-gates.json", "torn");
    // What cannot be read says something, too.
    symlink("/nowhere", bundle.dir().join("check-advisory-d.md")).unwrap();
    let files = bundle.load().unwrap().verdict_files();
    assert_eq!(
        files,
        [
            "SUMMARY.md",
            "check-review.md",
            "check-advisory-a.md",
            "check-advisory-b.md",
            "check-advisory-d.md",
            "check-advisory-c.error.log",
            "check-review.error.log",
            "check-gates.json",
        ]
    );
    for file in &files {
        bundle.set_aside_file(file).unwrap().unwrap();
    }
    let snapshot = bundle.load().unwrap();
    assert_eq!(snapshot.state, State::Built);
    assert!(snapshot.verdict_files().is_empty());
}

#[test]
fn a_template_is_there_and_is_no_authored_brief() {
    let scene = Scene::new();
    let snapshot = scene.bundle("7", &[("brief.md", PLACEHOLDER)]).load().unwrap();
    assert!(snapshot.brief.is_some() && snapshot.authored_brief().is_none());
}

#[test]
fn a_bundle_that_is_not_there_is_missing() {
    let scene = Scene::new();
    let bundle = scene.root().bundle(&"404".parse().unwrap());
    assert!(matches!(bundle.load(), Err(LoadError::Missing { .. })));
    assert!(matches!(bundle.glance(), Err(LoadError::Missing { .. })));
    assert!(matches!(bundle.digest(), Err(LoadError::Missing { .. })));
}

/// Possible contents of a file that the state depends on.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let known = [BRIEF, PLACEHOLDER, GATES, r#"{"resolved": {}}"#, "", "{"]
        .map(|text| text.as_bytes().to_vec());
    let signed =
        ["", "accepted", "iterated-to-Plan", "?"].map(|outcome| summary(outcome).into_bytes());
    prop_oneof![
        6 => proptest::sample::select([known.as_slice(), signed.as_slice()].concat()),
        1 => any::<Vec<u8>>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_the_files_hold_both_readers_say_the_same(
        files in proptest::collection::btree_map(
            proptest::sample::select(vec![
                "brief.md", "patch.diff", "close-disposition", "check-gates.json", "SUMMARY.md", "notes.json",
                "check-review.md", "iteration-v1/archive-pending.json", "x.error.log",
            ]),
            content(),
            0..9,
        )
    ) {
        let scene = Scene::new();
        let bundle = scene.bundle("7", &[]);
        for (name, bytes) in &files {
            scene.write(&format!("issue_7/{name}"), bytes);
        }
        match (bundle.load(), bundle.glance()) {
            (Ok(snapshot), Ok(glance)) => prop_assert_eq!(snapshot.state, glance.state),
            (Err(load), Err(glance)) => prop_assert_eq!(load.to_string(), glance.to_string()),
            (load, glance) => prop_assert!(false, "{:?} but {:?}", load.map(|s| s.state), glance.map(|g| g.state)),
        }
    }
}
