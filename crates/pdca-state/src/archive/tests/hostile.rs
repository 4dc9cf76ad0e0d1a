//! Briefs, records and directories that mean harm.

use super::*;

#[test]
fn a_test_named_by_a_hostile_brief_moves_nothing_from_outside_and_nothing_that_must_stay() {
    let scene = Scene::new();
    let outside = scene.path().join("outside.rs");
    fs_err::write(&outside, "mine").unwrap();
    let other = scene.bundle("8", &[("brief.md", BRIEF)]);
    let tests = format!(
        "../issue_8/brief.md, {outside}, ../../outside.rs, link/outside.rs, notes.json, iteration-v1/patch.diff, ., ./, brief.md"
    );
    let brief = format!("{BRIEF}- **Test file:** {tests}\n");
    let bundle = scene.bundle(
        "7",
        &[
            ("brief.md", &brief),
            ("patch.diff", "p"),
            ("notes.json", "{}"),
            ("iteration-v1/patch.diff", "old"),
        ],
    );
    std::os::unix::fs::symlink(scene.path(), bundle.dir().join("link")).unwrap();
    archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap();
    assert_eq!(fs_err::read(&outside).unwrap(), b"mine");
    assert_eq!(fs_err::read(other.path(Artifact::Brief)).unwrap(), BRIEF.as_bytes());
    for stays in ["brief.md", "notes.json", "iteration-v1/patch.diff", "iteration-v2/patch.diff"] {
        assert!(bundle.dir().join(stays).is_file(), "{stays}");
    }
}

#[test]
fn a_forged_record_cannot_reach_outside_of_the_bundle() {
    let scene = Scene::new();
    let outside = scene.path().join("outside.rs");
    fs_err::write(&outside, "mine").unwrap();
    for path in ["../../outside.rs", outside.as_str(), "link/outside.rs"] {
        let json = format!(r#"{{"reentry": "do", "carry_forward": "x", "moves": ["{path}"]}}"#);
        let bundle =
            scene.bundle("7", &[("brief.md", BRIEF), ("iteration-v3/archive-pending.json", &json)]);
        drop(std::os::unix::fs::symlink(scene.path(), bundle.dir().join("link")));
        let error = resume_archive(&bundle).unwrap().unwrap().apply().unwrap_err();
        assert!(matches!(error, ArchiveError::Write(WriteError::Outside { .. })), "{error}");
        assert!(outside.is_file());
    }
}

#[test]
fn an_archive_directory_that_leads_out_of_the_bundle_takes_nothing() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    let plan = archive_plan(&bundle, Reentry::Do).unwrap();
    let elsewhere = scene.path().join("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bundle.dir().join("iteration-v2")).unwrap();
    plan.apply().unwrap_err();
    assert_eq!(elsewhere.read_dir_utf8().unwrap().count(), 0);
    assert!(bundle.path(Artifact::Patch).is_file());
}

#[test]
fn a_damaged_record_is_an_error_with_its_place_and_not_a_state() {
    let scene = Scene::new();
    let bundle = scene.bundle(
        "7",
        &[("brief.md", BRIEF), ("iteration-v1/archive-pending.json", "{\n\"reentry\": \"up\"")],
    );
    let error = bundle.load().unwrap_err();
    assert!(error.path().ends_with("iteration-v1/archive-pending.json"), "{error}");
    assert_eq!(error.line(), Some(2));
    assert!(bundle.glance().is_err());
}

#[test]
fn a_brief_that_would_grow_past_its_limit_stays_as_it_is_until_a_person_shortens_it() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    let mut brief = BRIEF.as_bytes().to_vec();
    brief.resize(1 << 20, b'\n');
    scene.write("issue_7/brief.md", &brief);
    let error = archive_plan(&bundle, Reentry::Do).unwrap().apply().unwrap_err();
    assert!(
        matches!(error, ArchiveError::Load(LoadError::File(FileReadError::TooLarge { .. }))),
        "{error}"
    );
    assert_eq!(fs_err::read(bundle.path(Artifact::Brief)).unwrap(), brief);
    scene.write("issue_7/brief.md", BRIEF);
    resume_archive(&bundle).unwrap().unwrap().apply().unwrap();
    assert_eq!(bundle.load().unwrap().state, State::Planned);
}

#[test]
fn when_no_number_is_left_nothing_is_touched() {
    let scene = Scene::new();
    let bundle =
        scene.bundle("7", &[("brief.md", BRIEF), ("iteration-v4294967295/patch.diff", "x")]);
    assert!(matches!(archive_plan(&bundle, Reentry::Do), Err(ArchiveError::NoNumberLeft { .. })));
    assert_eq!(names_of(&bundle), ["brief.md", "iteration-v4294967295/patch.diff"]);
}

#[test]
fn only_plain_numbers_name_an_archived_attempt() {
    for (name, number) in [
        ("iteration-v1", Some(1)),
        ("iteration-v12", Some(12)),
        ("iteration-v", None),
        ("iteration-v+1", None),
        ("iteration-v1.bak", None),
        ("iteration-v99999999999", None),
        ("iteration-1", None),
    ] {
        assert_eq!(number_of(name), number, "{name}");
    }
}

#[test]
fn an_archive_that_cannot_be_looked_into_is_an_error_and_not_one_without_a_record() {
    let scene = Scene::new();
    let bundle = attempt(&scene, "7", "iterated-to-Do");
    // A name that leads to itself, because nothing else fails for root too.
    std::os::unix::fs::symlink("iteration-v2", bundle.dir().join("iteration-v2")).unwrap();
    let error = bundle.load().unwrap_err();
    assert!(matches!(error, LoadError::File(FileReadError::Io { .. })), "{error}");
    assert_eq!(error.path(), bundle.dir().join("iteration-v2/archive-pending.json"));
    bundle.glance().unwrap_err();
    assert!(matches!(resume_archive(&bundle), Err(ArchiveError::Load(_))));
}
