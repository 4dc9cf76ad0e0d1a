use std::os::unix::fs::symlink;

use super::*;
use crate::testing::{BRIEF, GATES, Scene};
use crate::{State, WriteError};

fn names(bundle: &Bundle) -> Vec<String> {
    let mut names: Vec<_> =
        bundle.dir().read_dir_utf8().unwrap().map(|e| e.unwrap().file_name().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_bundle_is_known_by_the_name_of_its_directory() {
    let bundle = Bundle::at("some/results/issue_PROJ-12").unwrap();
    assert_eq!(bundle.id().as_str(), "PROJ-12");
    assert_eq!(bundle.path(Artifact::Brief), "some/results/issue_PROJ-12/brief.md");
    for dir in ["results", "results/issue_..", "results/issue_", "/", "", "36"] {
        assert!(Bundle::at(dir).is_err(), "{dir}");
    }
}

#[test]
fn a_created_bundle_holds_its_brief_and_nothing_else() {
    let scene = Scene::new();
    let root = BundleRoot::new(scene.path().join("not/yet"));
    let bundle = root.create(&"7".parse().unwrap(), BRIEF).unwrap();
    assert_eq!(names(&bundle), ["brief.md"]);
    assert_eq!(bundle.load().unwrap().state, State::Planned);
    assert_eq!(root.path().read_dir_utf8().unwrap().count(), 1);
}

#[test]
fn a_bundle_can_be_created_with_its_thread() {
    let scene = Scene::new();
    let files = [(Artifact::Brief, BRIEF.as_bytes()), (Artifact::Notes, &b"{}"[..])];
    let bundle = scene.root().create_with(&"7".parse().unwrap(), &files).unwrap();
    assert_eq!(names(&bundle), ["brief.md", "notes.json"]);
}

#[test]
fn a_bundle_that_exists_in_whatever_shape_is_not_created_again() {
    let scene = Scene::new();
    let root = scene.root();
    scene.bundle("full", &[("notes.json", "{}")]);
    scene.bundle("empty", &[]);
    scene.write("issue_file", "mine");
    symlink("nowhere", root.path().join("issue_link")).unwrap();
    for id in ["full", "empty", "file", "link"] {
        let error = root.create(&id.parse().unwrap(), BRIEF).unwrap_err();
        assert!(
            matches!(&error, CreateError::Exists { dir } if dir.ends_with(format!("issue_{id}"))),
            "{id}: {error}"
        );
    }
    assert_eq!(names(&scene.bundle("full", &[])), ["notes.json"]);
    assert_eq!(names(&scene.bundle("empty", &[])), [""; 0]);
    assert_eq!(fs_err::read(root.path().join("issue_file")).unwrap(), b"mine");
    assert_eq!(root.path().read_dir_utf8().unwrap().count(), 4);
}

#[test]
fn what_a_crash_left_of_a_publication_is_no_artifact_and_is_swept_by_the_next() {
    let scene = Scene::new();
    let bundle = scene
        .bundle("7", &[(".brief.md.pdca-tmp-4-0", "half"), (".SUMMARY.md.pdca-tmp-4-1", "half")]);
    assert_eq!(bundle.load().unwrap().state, State::Unplanned);
    assert!(bundle.load().unwrap().artifacts.is_empty());
    bundle.publish(Artifact::Brief, BRIEF.as_bytes()).unwrap();
    assert_eq!(names(&bundle), [".SUMMARY.md.pdca-tmp-4-1", "brief.md"]);
    scene.write("issue_7/.iteration-v1.pdca-tmp-4-2/archive-pending.json", "{}");
    bundle.sweep_temps().unwrap();
    assert_eq!(names(&bundle), ["brief.md"]);
}

#[test]
fn lesson_05_a_torn_gate_report_is_set_aside_and_the_bundle_goes_on() {
    let scene = Scene::new();
    let torn = &GATES[..GATES.len() / 2];
    let bundle =
        scene.bundle("7", &[("brief.md", BRIEF), ("patch.diff", ""), ("check-gates.json", torn)]);
    let snapshot = bundle.load().unwrap();
    assert_eq!(snapshot.state, State::Built);
    assert_eq!(bundle.glance().unwrap().state, State::Built);
    assert_eq!(snapshot.problems.len(), 1);
    assert_eq!(snapshot.problems[0].artifact, Some(Artifact::GatesJson));

    let aside = bundle.set_aside(Artifact::GatesJson).unwrap().unwrap();
    bundle.publish(Artifact::GatesJson, GATES.as_bytes()).unwrap();
    let snapshot = bundle.load().unwrap();
    assert_eq!((snapshot.state, snapshot.problems.len()), (State::Checked, 0));
    assert_eq!(fs_err::read_to_string(&aside).unwrap(), torn);
    assert_eq!(snapshot.leftovers, [aside.file_name().unwrap()]);

    let second = bundle.set_aside(Artifact::GatesJson).unwrap().unwrap();
    assert_ne!(second, aside);
    assert_eq!(fs_err::read_to_string(&aside).unwrap(), torn);
    assert_eq!(bundle.set_aside(Artifact::GatesJson).unwrap(), None);
}

#[test]
fn any_file_of_a_bundle_is_set_aside_under_a_free_name() {
    let scene = Scene::new();
    let advisory = "check-advisory-x.md";
    let bundle = scene.bundle("7", &[(advisory, "second"), ("own.txt", "mine")]);
    scene.write("issue_7/check-advisory-x.md.aside-1", "first");
    let aside = bundle.set_aside_file(Utf8Path::new(advisory)).unwrap().unwrap();
    assert_eq!(aside, bundle.dir().join("check-advisory-x.md.aside-2"));
    assert_eq!(fs_err::read(&aside).unwrap(), b"second");
    assert_eq!(fs_err::read(bundle.dir().join("check-advisory-x.md.aside-1")).unwrap(), b"first");
    assert_eq!(bundle.set_aside_file(Utf8Path::new(advisory)).unwrap(), None);
    bundle.set_aside_file(Utf8Path::new("./own.txt")).unwrap().unwrap();
    let snapshot = bundle.load().unwrap();
    assert!(snapshot.advisories.is_empty());
    assert_eq!(
        snapshot.leftovers,
        ["check-advisory-x.md.aside-1", "check-advisory-x.md.aside-2", "own.txt.aside-1"]
    );
}

#[test]
fn nothing_but_a_file_directly_in_the_bundle_is_set_aside() {
    let scene = Scene::new();
    let bundle = scene.bundle("7", &[("tests/t.rs", ""), ("iteration-v1/patch.diff", "")]);
    let outside = scene.write("issue_8/patch.diff", "another's");
    symlink(scene.path(), bundle.dir().join("link")).unwrap();
    let absolute = outside.as_str();
    for path in [
        "../issue_8/patch.diff",
        absolute,
        "tests/t.rs",
        "link/x",
        "",
        ".",
        "..",
        "a\nb",
        "iteration-v1",
    ] {
        let error = bundle.set_aside_file(Utf8Path::new(path)).unwrap_err();
        assert!(matches!(error, WriteError::Outside { .. }), "{path}: {error}");
    }
    assert_eq!(names(&bundle), ["iteration-v1", "link", "tests"]);
    assert!(outside.exists());
}

#[test]
fn a_file_is_published_at_its_relative_path_and_never_outside() {
    let scene = Scene::new();
    let bundle = scene.bundle("7", &[("file", "")]);
    bundle.publish_file(Utf8Path::new("tests/a/t.rs"), b"t").unwrap();
    assert_eq!(fs_err::read(bundle.dir().join("tests/a/t.rs")).unwrap(), b"t");
    symlink(scene.path(), bundle.dir().join("link")).unwrap();
    for path in ["../x", "/etc/pdca-x", "a/../../x", "", ".", "link/x", "file/x", "a\nb"] {
        let error = bundle.publish_file(Utf8Path::new(path), b"t").unwrap_err();
        assert!(matches!(error, WriteError::Outside { .. }), "{path}: {error}");
    }
    assert!(!scene.path().join("x").exists());
}

#[test]
fn a_name_from_config_stays_one_harmless_file_name() {
    for (name, file) in [
        ("C4-verify", "gate-logs/C4-verify.log"),
        ("../../x", "gate-logs/_.._.._x.log"),
        ("", "gate-logs/_.log"),
    ] {
        assert_eq!(Artifact::gate_log(name), file);
    }
    assert_eq!(Artifact::advisory("a/b"), "check-advisory-a_b.md");
    assert_eq!(Artifact::error_log("reviewer"), "reviewer.error.log");
    assert!(Artifact::gate_log(&"x".repeat(1000)).file_name().unwrap().len() < 200);
}

#[test]
fn a_publication_that_cannot_be_written_names_the_file() {
    let scene = Scene::new();
    let bundle = scene.bundle("7", &[("patch.diff/x", "")]);
    let error = bundle.publish(Artifact::Patch, b"p").unwrap_err();
    assert!(error.to_string().ends_with("issue_7/patch.diff"), "{error}");
    assert!(Bundle::at("/nonexistent/issue_7").unwrap().publish(Artifact::Patch, b"p").is_err());
}

#[test]
fn nothing_is_written_through_a_bundle_that_leads_out_of_the_root() {
    let scene = Scene::new();
    let outside = scene.path().join("outside");
    fs_err::create_dir(&outside).unwrap();
    symlink(&outside, scene.root().path().join("issue_7")).unwrap();
    let bundle = scene.root().bundle(&"7".parse().unwrap());
    assert!(matches!(bundle.publish(Artifact::Patch, b"p"), Err(WriteError::Outside { .. })));
    assert!(matches!(
        bundle.publish_derived(Artifact::Patch, b"p"),
        Err(WriteError::Outside { .. })
    ));
    assert!(matches!(
        bundle.publish_file(Utf8Path::new("t.rs"), b"p"),
        Err(WriteError::Outside { .. })
    ));
    assert!(matches!(bundle.set_aside(Artifact::Patch), Err(WriteError::Outside { .. })));
    assert!(matches!(
        bundle.set_aside_file(Utf8Path::new("t.rs")),
        Err(WriteError::Outside { .. })
    ));
    assert_eq!(outside.read_dir_utf8().unwrap().count(), 0);
}

#[test]
fn what_a_crash_left_of_a_creation_is_swept_by_the_next() {
    let scene = Scene::new();
    scene.write(".issue_7.pdca-tmp-4-0/brief.md", "half");
    scene.write(".issue_8.pdca-tmp-4-0/brief.md", "half");
    scene.root().create(&"7".parse().unwrap(), BRIEF).unwrap();
    assert!(!scene.root().path().join(".issue_7.pdca-tmp-4-0").exists());
    assert!(scene.root().path().join(".issue_8.pdca-tmp-4-0").exists());
    assert!(scene.root().scan().unwrap().strangers.is_empty());
}

#[test]
fn of_several_that_create_a_bundle_at_once_one_wins_and_its_brief_is_there() {
    const CREATORS: usize = 4;
    let scene = Scene::new();
    let root = scene.root();
    for round in 0..60 {
        let id: BundleId = format!("{round}").parse().unwrap();
        let start = std::sync::Barrier::new(CREATORS);
        let create = |number: usize| {
            start.wait();
            let brief = format!("{BRIEF}\nwritten by {number}\n");
            root.create(&id, &brief).map(|_| brief)
        };
        let create = &create;
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..CREATORS).map(|number| scope.spawn(move || create(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let won: Vec<&String> = results.iter().flatten().collect();
        assert_eq!(won.len(), 1, "{results:?}");
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            assert!(matches!(error, CreateError::Exists { .. }), "{error:?}");
        }
        let bundle = root.bundle(&id);
        assert_eq!(names(&bundle), ["brief.md"]);
        assert_eq!(fs_err::read_to_string(bundle.path(Artifact::Brief)).unwrap(), *won[0]);
        assert_eq!(root.path().read_dir_utf8().unwrap().count(), round + 1);
    }
}

#[test]
fn what_a_crash_left_beside_a_log_goes_when_the_log_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = crate::BundleRoot::new(Utf8PathBuf::from_path_buf(dir.path().into()).unwrap());
    let bundle = root.bundle(&"7".parse().unwrap());
    let logs = bundle.dir().join("gate-logs");
    fs_err::create_dir_all(&logs).unwrap();
    for name in [".T1.log.pdca-tmp-1-2", ".T2.log.pdca-tmp-1-2"] {
        fs_err::write(logs.join(name), "half").unwrap();
    }
    bundle.publish_derived_file("gate-logs/T1.log".into(), b"whole").unwrap();
    let mut names: Vec<String> =
        logs.read_dir_utf8().unwrap().map(|it| it.unwrap().file_name().to_owned()).collect();
    names.sort();
    assert_eq!(
        names,
        [".T2.log.pdca-tmp-1-2", "T1.log"],
        "another's is left to whoever writes that"
    );
}

#[test]
fn logs_of_an_integration_go_without_those_of_check_and_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = crate::BundleRoot::new(Utf8PathBuf::from_path_buf(dir.path().into()).unwrap());
    let bundle = root.bundle(&"7".parse().unwrap());
    bundle.publish_derived_file(&Artifact::gate_log("integration"), b"check").unwrap();
    bundle.remove_integration_logs().unwrap();
    bundle.publish_derived_file(&Artifact::integration_log("T1"), b"red").unwrap();
    let logs = bundle.dir().join("gate-logs");
    assert_eq!(fs_err::read_to_string(logs.join("integration/T1.log")).unwrap(), "red");
    bundle.remove_integration_logs().unwrap();
    assert!(!logs.join("integration").exists());
    assert_eq!(fs_err::read_to_string(logs.join("integration.log")).unwrap(), "check");
    let elsewhere = root.path().join("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    fs_err::write(elsewhere.join("kept"), "").unwrap();
    symlink(&elsewhere, logs.join("integration")).unwrap();
    bundle.remove_integration_logs().unwrap();
    assert!(elsewhere.join("kept").exists());
}
