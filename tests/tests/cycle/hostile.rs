//! Hostile input: a clear error with file, line and hint, exit code 2, and nothing changed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use pdca_e2e::{Ran, Scene};

fn refused(ran: Ran, what: &str) {
    let ran = ran.expect(2);
    assert!(ran.err.contains("error:"), "{what}: {}", ran.err);
    assert!(ran.err.contains("hint:"), "{what}: {}", ran.err);
}

#[test]
fn an_id_that_is_none_is_refused_by_every_command_and_nothing_is_made() {
    let long = "x".repeat(300);
    let ids: [&OsStr; 8] = [
        OsStr::new("../x"),
        OsStr::new("-rf"),
        OsStr::new("a/b"),
        OsStr::new(&long),
        OsStr::new(""),
        OsStr::new("a b"),
        OsStr::new("a\nb"),
        OsStr::from_bytes(b"caf\xe9"),
    ];
    let scene = Scene::new("");
    scene.brief("7", &[]);
    let before = scene.results();
    for id in ids {
        for command in ["new", "run", "batch", "gates", "status", "why"] {
            let args: Vec<OsString> = vec![command.into(), "--".into(), id.to_owned()];
            refused(scene.pdca(&args), &format!("{command} {}", id.to_string_lossy()));
        }
        let args: Vec<OsString> =
            vec!["signoff".into(), "--".into(), id.to_owned(), "accept".into()];
        refused(scene.pdca(&args), &format!("signoff {}", id.to_string_lossy()));
    }
    assert_eq!(scene.results(), before);
    assert!(!scene.workspace.around().join("x").exists());
}

/// Puts something that is no brief where a brief should be.
type Spoil<'a> = &'a dyn Fn(&Scene);

#[test]
fn a_brief_that_cannot_be_read_is_named_and_nothing_is_changed() {
    let cases: [(&str, Spoil<'_>); 4] = [
        ("a directory", &|scene| {
            fs_err::create_dir_all(scene.workspace.bundle("7").join("brief.md")).unwrap();
        }),
        ("a link out", &|scene| {
            scene.workspace.write("secret.md", "- **Slug:** x\n");
            fs_err::create_dir_all(scene.workspace.bundle("7")).unwrap();
            fs_err::os::unix::fs::symlink(
                "../../secret.md",
                scene.workspace.bundle("7").join("brief.md"),
            )
            .unwrap();
        }),
        ("50 MB", &|scene| scene.workspace.write("results/issue_7/brief.md", vec![b'x'; 50 << 20])),
        ("not UTF-8", &|scene| {
            scene.workspace.write("results/issue_7/brief.md", b"# b\n- **Slug:** \xff\n");
        }),
    ];
    for (what, make) in cases {
        let scene = Scene::new("");
        make(&scene);
        let ran = scene.pdca(&["run", "7"]).expect(2);
        assert!(ran.err.contains("brief.md"), "{what}: {}", ran.err);
        assert!(ran.err.contains("hint:"), "{what}: {}", ran.err);
        if what == "not UTF-8" {
            assert!(ran.err.contains("brief.md:2"), "{}", ran.err);
        }
        scene.pdca(&["status"]).expect(0);
        let names: Vec<String> =
            scene.results().into_keys().filter(|name| !name.ends_with("brief.md")).collect();
        assert_eq!(names, Vec::<String>::new(), "{what}");
    }
}

#[test]
fn a_brief_with_carriage_returns_is_a_brief() {
    let scene = Scene::new("");
    let text = "# b\r\n\r\n- **Slug:** windows\r\n- **Repo + branch target:** team/app @ main\r\n";
    scene.workspace.write("results/issue_7/brief.md", text);
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn a_config_that_is_wrong_is_refused_with_the_line_before_anything_runs() {
    for (text, place, hint) in [
        ("[driver]\nlanez = 2\n", ":8", "lanes"),
        ("[driver]\nlanes = \"two\"\n", ":8", ""),
        ("[gates]\nchekcs = []\n", ":8", "checks"),
        (
            "[[gates.checks]]\nid = \"a\"\ntier = \"T1\"\ncmd = \"true\"\n[[gates.checks]]\nid = \"a\"\ntier = \"T2\"\ncmd = \"true\"\n",
            ":",
            "a",
        ),
        ("[[gates.checks]]\nid = \"a\"\ntier = \"T9\"\ncmd = \"true\"\n", ":", "T9"),
        ("[[gates.checks]]\nid = \"a\"\ntier = \"T1\"\ncmd = \"\"\n", ":", "cmd"),
        ("this is not toml\n", ":7", ""),
    ] {
        let scene = Scene::new(text);
        scene.brief("7", &[]);
        let before = scene.results();
        for command in [&["run", "7"][..], &["batch"], &["status"], &["gates", "7"]] {
            let ran = scene.pdca(command).expect(2);
            assert!(ran.err.contains(&format!("pdca.toml{place}")), "{text}: {}", ran.err);
            assert!(ran.err.contains(hint), "{text}: {}", ran.err);
        }
        assert_eq!(scene.results(), before, "{text}");
    }
}

#[test]
fn the_config_of_another_instance_loads_with_compat_and_its_keys_are_told() {
    let foreign = "[project]\nname = \"theirs\"\nrubric_file = \"AGENTS.md\"\n[driver]\nmax_passes = 20\nauto_iterate = true\n\
                   [publisher]\nfix_branch_pattern = \"fix/{id}-{slug}\"\n\
                   [[gates.checks]]\nid = \"T1\"\ntier = \"T1\"\nlabel = \"here\"\ncmd = \"test -f pdca.toml\"\n";
    let scene = Scene::new(foreign);
    scene.brief("7", &[]);
    let strict = scene.pdca(&["status"]).expect(2);
    for key in ["rubric_file", "max_passes", "auto_iterate", "publisher"] {
        assert!(strict.err.contains(key), "all problems at once: {key} in {}", strict.err);
    }
    let compat = scene.pdca(&["status", "--compat"]).expect(0);
    assert!(compat.err.contains("warning: pdca.toml: keys of an older instance"), "{}", compat.err);
    let told = scene.pdca(&["config", "migrate", "--dry-run"]).expect(0);
    for key in ["rubric_file", "max_passes", "auto_iterate", "fix_branch_pattern"] {
        assert!(told.out.contains(key), "{key} in {}", told.out);
    }
    // Their gates run where their pdca.toml is.
    scene.pdca(&["run", "7", "--compat"]).expect(0);
}

/// A gate row of the scene's only check.
fn gate(row: &str) -> Scene {
    let about = "id = \"T1-x\"\ntier = \"T1\"\nscope = \"bundle\"";
    let scene = Scene::new(&format!("[[gates.checks]]\n{about}\n{row}\n"));
    scene.brief("7", &[]);
    scene
}

fn report(scene: &Scene) -> serde_json::Value {
    let text = scene.workspace.read("results/issue_7/check-gates.json");
    let report: serde_json::Value = serde_json::from_str(&text).expect("the report is JSON");
    let rows = report["rows"].as_array().expect("a report has rows").clone();
    rows.into_iter().find(|row| row["rule_id"] == "T1-x").expect("the row is there")
}

#[test]
fn a_gate_or_leaf_that_is_missing_is_named_with_its_line_before_anything_is_changed() {
    for row in [
        "argv = [\"no-such-program\"]",
        "cmd = \"no-such-program --all\"",
        "argv = [\"/etc/passwd\"]",
    ] {
        let scene = gate(row);
        let before = scene.results();
        let ran = scene.pdca(&["run", "7"]).expect(2);
        assert!(
            ran.err.contains("gate `T1-x`") && ran.err.contains("pdca.toml:"),
            "{row}: {}",
            ran.err
        );
        assert!(ran.err.contains("hint:"), "{row}: {}", ran.err);
        assert_eq!(scene.results(), before, "{row}");
    }
    let scene = Scene::new("[leaves.builder]\nmode = \"command\"\nargv = [\"no-such-agent\"]\n");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(2);
    assert!(ran.err.contains("no-such-agent") && ran.err.contains("pdca.toml:9"), "{}", ran.err);
}

#[test]
fn a_gate_of_the_checkout_that_cannot_be_started_is_the_hosts_fault_and_says_what_is_missing() {
    let scene = gate("argv = [\"./greeting.txt\"]");
    scene.pdca(&["run", "7"]).expect(0);
    let row = report(&scene);
    assert_eq!(row["result"], "unverifiable", "{row}");
    assert!(row["path_line"].as_str().is_some_and(|text| text.contains("greeting.txt")), "{row}");
    let refused = scene.pdca(&["signoff", "7", "accept"]).expect(2);
    assert!(refused.err.contains("T1"), "{}", refused.err);
}

#[test]
fn a_gate_that_is_killed_is_not_charged_to_the_patch() {
    let scene = gate("cmd = \"kill -9 $$\"");
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(report(&scene)["result"], "unverifiable");
}

#[test]
fn an_endless_gate_is_ended_and_says_timeout() {
    let scene = gate("cmd = \"while :; do sleep 1; done\"\ntimeout_secs = 1");
    scene.pdca(&["run", "7"]).expect(100);
    let row = report(&scene);
    assert_eq!(row["result"], "fail");
    assert!(row["path_line"].as_str().is_some_and(|text| text.contains("timeout")), "{row}");
    assert_eq!(scene.processes(), Vec::<String>::new());
}

#[test]
fn ten_gigabytes_of_output_cost_neither_memory_nor_disk_and_do_not_change_the_verdict() {
    // Sparse and from one process, so that it is the reading that is tested; the end has the marker.
    let scene = gate("cmd = \"head -c 10G /dev/zero; echo; echo PDCA-EVIDENCE: still here\"");
    scene.pdca(&["run", "7"]).expect(0);
    let row = report(&scene);
    assert_eq!(
        (row["result"].as_str(), row["path_line"].as_str()),
        (Some("pass"), Some("still here"))
    );
    let log = fs_err::metadata(scene.workspace.bundle("7").join("gate-logs/T1-x.log")).unwrap();
    assert!(log.len() < 8 << 20, "{} bytes of log", log.len());
}
