//! From the tracker to drafts: the real binary, a forge in a directory, and a kill at every issue.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_e2e::{Ran, Scene};
use pdca_testkit::fake_gh;
use serde_json::json;

/// Without dates, because ages change at midnight.
const EXPORT: &str =
    "id,title,status\n1,one,new\n2,two,new\n3,three,new\n4,four,closed\n5,five,new\n";

/// Returns every file of the batch: bundles and index.
fn written(scene: &Scene) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for dir in ["results", "process/batches"] {
        let top = scene.workspace.path().join(dir);
        let mut dirs: Vec<Utf8PathBuf> = vec![top];
        while let Some(dir) = dirs.pop() {
            let Ok(entries) = dir.read_dir_utf8() else { continue };
            for entry in entries {
                let path = entry.expect("an entry can be read").path().to_owned();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    let name = path.strip_prefix(scene.workspace.path()).expect("it is below");
                    let text = fs_err::read_to_string(&path).expect("a file can be read");
                    files.insert(name.to_string(), text);
                }
            }
        }
    }
    files
}

fn scene(notes: &str) -> Scene {
    let scene = Scene::new(&format!("[tracker]\nnotes_cmd = '''{notes}'''\n"));
    scene.workspace.write("export.csv", EXPORT);
    scene
}

const LINE: [&str; 7] =
    ["select", "--from-csv", "export.csv", "--character", "hygiene", "--batch", "b"];

#[test]
fn a_selection_killed_at_any_issue_is_finished_by_the_next() {
    let thread = "echo \"{\\\"body\\\": \\\"$PDCA_ISSUE\\\"}\"";
    let calm = scene(thread);
    calm.pdca(&LINE).expect(0);
    let expected = written(&calm);
    assert_eq!(expected.len(), 4 * 2 + 1, "{:?}", expected.keys());
    for at in ["1", "2", "3", "5"] {
        let kill = format!(
            "if test $PDCA_ISSUE = {at} && ! test -e killed; then touch killed; kill -9 $PPID; fi; {thread}"
        );
        let scene = scene(&kill);
        scene.pdca(&LINE).expect(128 + 9);
        assert!(!scene.workspace.has(format!("results/issue_{at}")), "no half a draft");
        scene.pdca(&LINE).expect(0);
        assert_eq!(written(&scene), expected, "killed at {at}");
        scene.pdca(&LINE).expect(4);
        assert_eq!(written(&scene), expected);
    }
}

#[test]
fn standard_input_is_an_export_too() {
    let scene = scene("echo '{}'");
    let ran = scene.paste("pdca select --from-csv - --expect 4,5 --json < export.csv");
    assert_eq!(ran.json()["records"], 5, "{}", ran.err);
    assert!(scene.workspace.has("results/issue_5/notes.json"));
}

/// A workspace with a forge of these open issues.
fn with_forge(issues: &[(u64, &str, &str)]) -> Scene {
    let scene = Scene::new(&format!("[publish]\ngh = \"{}\"\n", fake_gh()));
    let dir = scene.workspace.around().join("forge/issues");
    fs_err::create_dir_all(&dir).expect("a directory can be made");
    for (number, title, label) in issues {
        let issue = json!({
            "number": number, "title": title, "body": format!("about {number}"), "state": "OPEN",
            "labels": [{ "name": label }], "author": { "login": "ada" }, "createdAt": "2026-01-02T03:04:05Z",
            "updatedAt": "2026-02-02T03:04:05Z", "url": format!("https://forge.example/o/r/issues/{number}"),
            "resolved": { "by": "a stranger" },
        });
        fs_err::write(dir.join(format!("{number:04}.json")), issue.to_string())
            .expect("a file can be written");
    }
    scene
}

fn select(scene: &Scene, args: &[&str]) -> Ran {
    let state = scene.workspace.around().join("forge");
    let env = [("FAKE_GH_STATE", state.as_str()), ("FAKE_GH_REMOTE", state.as_str())];
    scene.pdca_with(&env, &[&["select", "--from-gh", "o/r"], args].concat())
}

#[test]
fn open_issues_of_a_forge_become_drafts_with_their_threads() {
    let scene = with_forge(&[(7, "it breaks", "severity/high"), (9, "a wish", "enhancement")]);
    let ran = select(&scene, &["--json"]).expect(0).json();
    assert_eq!((&ran["records"], &ran["buckets"][1]["count"]), (&2.into(), &1.into()));
    assert_eq!(ran["drafts"][0]["severity"], "high");
    let notes: serde_json::Value =
        serde_json::from_str(&scene.workspace.read("results/issue_7/notes.json")).expect("JSON");
    assert_eq!((&notes["body"], &notes["resolved"]), (&"about 7".into(), &serde_json::Value::Null));
    assert_eq!(scene.state("7"), "UNPLANNED");
    assert!(!scene.workspace.has("results/issue_9"));
}

#[test]
fn a_forge_that_refuses_leaves_nothing_and_says_what_helps() {
    let scene = with_forge(&[(7, "it breaks", "bug")]);
    let faults = scene.workspace.around().join("forge/faults");
    fs_err::write(&faults, "issue list: logout\n").expect("a file can be written");
    let ran = select(&scene, &[]).expect(2);
    assert!(ran.err.contains("hint: `gh auth login`, then repeat"), "{}", ran.err);
    fs_err::write(&faults, "issue view: refuse\n").expect("a file can be written");
    select(&scene, &[]).expect(2);
    assert!(!scene.workspace.has("results/issue_7"));
    select(&scene, &[]).expect(0);
    assert!(scene.workspace.has("results/issue_7/notes.json"));
}
