//! What is shown about a workspace is read in one process: no command that only looks starts git.

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_testkit::gits;

const BUILDER: &str = "cp -R \"$PDCA_WORKSPACE/todo/$1/.\" .";
const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";
const GATE: &str =
    "\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test -f greeting.txt\"\n";

/// Puts a `git` before every other that notes its arguments, and returns the file of notes and a `PATH` with it.
fn noting_git(scene: &Scene) -> (Utf8PathBuf, String) {
    let dir = scene.workspace.around().join("noting");
    fs_err::create_dir_all(&dir).expect("a directory can be made");
    let (notes, program) = (dir.join("calls"), dir.join("git"));
    let all = gits();
    let real = all.last().expect("there is a git").program.to_str().expect("its path is UTF-8");
    fs_err::write(&program, format!("#!/bin/sh\necho \"$@\" >> {notes}\nexec {real} \"$@\"\n"))
        .expect("a file can be written");
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
        .expect("a file can be made executable");
    #[expect(clippy::disallowed_methods, reason = "the rest of the path stays as it is")]
    let rest = std::env::var("PATH").expect("there is a PATH");
    (notes, format!("{dir}:{rest}"))
}

/// A workspace in which 1 and 2 landed, 3 and 4 are staged, 5 and 6 are sealed, and 7 and 8 wait; 6 and 8 conflict.
fn with_accepted_changes() -> Scene {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.repo.git(&["switch", "--quiet", "--create", "own-work"]);
    let build = |ids: &[&str]| {
        for id in ids {
            let file = if ["6", "8"].contains(id) { "shared.txt" } else { &format!("{id}.txt") };
            scene.workspace.write(format!("todo/{id}/{file}"), format!("by {id}\n"));
            scene.brief(id, &[]);
            scene.pdca(&["run", id]).expect(0);
        }
    };
    build(&["1", "2"]);
    scene.accept("1");
    scene.accept("2");
    scene.pdca(&["integrate"]).expect(0);
    let staging = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"]);
    let landed = scene.repo.git(&["rev-parse", staging.trim()]);
    scene.repo.git(&["update-ref", "refs/heads/main", landed.trim()]);
    build(&["3", "4"]);
    scene.accept("3");
    scene.accept("4");
    scene.pdca(&["integrate"]).expect(0);
    build(&["5", "6", "7", "8"]);
    scene.accept("5");
    scene.accept("6");
    scene
}

#[test]
fn commands_that_only_look_start_no_git() {
    let scene = with_accepted_changes();
    let (notes, path) = noting_git(&scene);
    let env = [("PATH", path.as_str())];

    let status = scene.pdca_with(&env, &["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().unwrap();
    let state = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
        row["integration"].as_str().unwrap_or("none").to_owned()
    };
    let found = ["1", "2", "3", "4", "5", "6", "7", "8"].map(state);
    let expected = ["landed", "landed", "staged", "staged", "sealed", "sealed", "none", "none"];
    assert_eq!(found, expected, "{status:#}");
    let queue = scene.pdca_with(&env, &["queue", "--json"]).expect(0).json();
    let eighth = queue["items"].as_array().unwrap().iter().find(|item| item["id"] == "8").unwrap();
    assert_eq!(eighth["forecast_conflicts"], serde_json::json!(["6"]), "{queue:#}");
    for args in [&[][..], &["status"], &["queue"], &["status", "1"], &["status", "8"]] {
        scene.pdca_with(&env, args).expect(0);
    }
    for id in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        scene.pdca_with(&env, &["why", id]).expect(0);
    }
    assert!(!notes.exists(), "git was called: {}", fs_err::read_to_string(&notes).unwrap());

    // The same git notes what `doctor` asks it, so nothing escaped.
    scene.pdca_with(&env, &["doctor", "--json"]);
    assert!(fs_err::read_to_string(&notes).unwrap().contains("--version"));
}
