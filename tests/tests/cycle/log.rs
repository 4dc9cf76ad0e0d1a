//! The log for maintainers: on standard error with `PDCA_LOG`, in a file with `-vv`, and nowhere without.

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;

fn scene() -> Scene {
    let scene = Scene::with_leaves("echo \"$1\" > new.txt", REVIEWER, "");
    scene.brief("7", &[]);
    scene
}

fn logs(scene: &Scene) -> Vec<Utf8PathBuf> {
    let Ok(dir) = scene.workspace.path().join(".pdca/log").read_dir_utf8() else {
        return Vec::new();
    };
    dir.map(|entry| entry.expect("it can be listed").into_path()).collect()
}

#[test]
fn a_filter_prints_to_standard_error_and_leaves_the_document_alone() {
    let scene = scene();
    let ran = scene.pdca_with(&[("PDCA_LOG", "info,pdca_process=debug")], &["run", "7", "--json"]);
    assert_eq!(ran.json()["kind"], "run");
    let line = |words: &[&str]| ran.err.lines().any(|line| words.iter().all(|w| line.contains(w)));
    assert!(line(&["INFO bundle{id=7", "pdca_driver::run_bundle: step"]), "{}", ran.err);
    assert!(line(&["child{program=sh}: pdca_process::run: started pid="]), "{}", ran.err);
    assert!(line(&["child{program=sh}: pdca_process::run: ended ending="]), "{}", ran.err);
    assert!(!ran.err.contains("pdca_journal"), "only what the filter names: {}", ran.err);
    assert_eq!(logs(&scene), [""; 0]);
}

#[test]
fn twice_verbose_writes_one_file_and_says_where() {
    let scene = scene();
    let ran = scene.pdca(&["-vv", "run", "7"]).expect(0);
    let [file] = &logs(&scene)[..] else { panic!("one command, one log: {:?}", logs(&scene)) };
    assert!(ran.err.lines().any(|line| line == format!("log: {file}")), "{}", ran.err);
    assert!(!ran.err.contains("pdca_journal"), "{}", ran.err);
    let log = fs_err::read_to_string(file).expect("it can be read");
    assert!(log.contains("pdca_journal::effects: begins effect=\"builder\""), "{log}");
    assert!(log.contains("leaf{role=builder}:child{program=sh}"), "{log}");
    // Arguments may be prompts and secrets.
    assert!(!log.contains("builder.sh"), "{log}");
}

#[test]
fn once_verbose_and_a_plain_command_log_nothing() {
    let scene = scene();
    let ran = scene.pdca(&["-v", "run", "7"]).expect(0);
    assert!(!ran.err.contains("pdca_journal") && !ran.err.contains("log: "), "{}", ran.err);
    scene.pdca(&["status"]).expect(0);
    assert_eq!(logs(&scene), [""; 0]);
}

#[test]
fn a_filter_that_is_none_is_refused_with_the_remedy_before_anything_happens() {
    let scene = scene();
    for text in ["pdca=loud", "dbug"] {
        let ran = scene.pdca_with(&[("PDCA_LOG", text)], &["run", "7", "--json"]).expect(2);
        let error = ran.json()["error"].clone();
        let message = error["message"].as_str().expect("an error has a message");
        assert_eq!(message, format!("PDCA_LOG is `{text}`, which is no filter"));
        assert!(error["hints"][0].as_str().is_some_and(|hint| hint.contains("or unset it")));
        assert!(ran.err.contains("hint: "), "{}", ran.err);
    }
    assert_eq!(scene.calls(), [""; 0]);
}

#[test]
fn twice_verbose_outside_a_workspace_says_that_no_log_is_written() {
    let scene = scene();
    let around = scene.workspace.around();
    let ran = scene.pdca(&["-C", around.as_str(), "-vv", "help", "exit-codes"]).expect(0);
    assert!(ran.err.starts_with("note: no log is written"), "{}", ran.err);
    assert!(!around.join(".pdca").exists());
}
