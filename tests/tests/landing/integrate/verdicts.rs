//! Reuse of cached verdicts.

use camino::Utf8Path;
use pdca_e2e::Scene;
use pdca_integrate::{Verdict, VerdictCache, VerdictOrigin};
use serde_json::{Value, json};

use crate::meeting::Meeting;

/// Counts its runs.
const COUNTED: &str = r#"echo run >> "$PDCA_WORKSPACE/calls/runs""#;

const TARGET: &str = "[integrate]\nland = \"target\"\n";

fn runs(scene: &Scene) -> usize {
    let text = fs_err::read_to_string(scene.workspace.path().join("calls/runs"));
    text.unwrap_or_default().lines().count()
}

fn landed(done: &Value) -> Vec<&str> {
    let landed = done["landed"].as_array().expect("it is a list");
    landed.iter().map(|item| item["id"].as_str().expect("an id is a word")).collect()
}

/// Every verdict that is kept, as it would be had it been given long ago.
fn age(workspace: &Utf8Path) {
    let dir = workspace.join(".pdca/verdicts");
    let cache = VerdictCache::new(&dir);
    let mut aged = 0;
    for entry in dir.read_dir_utf8().expect("verdicts are kept").flatten() {
        let text = fs_err::read(entry.path()).expect("it can be read");
        let entry: Value = serde_json::from_slice(&text).expect("it is JSON");
        let verdict: Verdict =
            serde_json::from_value(entry["verdict"].clone()).expect("it has a verdict");
        let at = entry["origin"]["at"].as_i64().expect("it says when it was given");
        let origin = VerdictOrigin { at: Some(at - 30 * 24 * 3600), by: None };
        cache.keep_from(&verdict, &origin).expect("it can be kept");
        aged += 1;
    }
    assert!(aged > 0, "nothing is kept");
}

#[test]
fn a_change_on_the_base_it_was_checked_on_lands_without_a_gate_run() {
    let scene = Meeting::sharing(COUNTED, TARGET);
    scene.accepted("1", "a.txt", "a\n");
    assert_eq!(runs(&scene.scene), 1, "Check ran the gates");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!((landed(&done), &done["gate_runs"]), (vec!["1"], &json!(0)), "{done:#}");
    assert_eq!(runs(&scene.scene), 1);
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn what_check_said_about_another_tree_lands_nothing() {
    let scene = Meeting::sharing(COUNTED, TARGET);
    scene.accepted("1", "a.txt", "a\n");
    scene.commit_to_main("other.txt", "other\n");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!(landed(&done), ["1"]);
    assert_ne!(done["gate_runs"], 0, "{done:#}");
}

#[test]
fn fresh_uses_no_verdict_that_is_known() {
    let scene = Meeting::sharing(COUNTED, TARGET);
    scene.accepted("1", "a.txt", "a\n");
    let said = scene.integrate(&["--dry-run", "--json"]).expect(0).json();
    assert_eq!(said["verdict"], "green", "{said:#}");
    let said = scene.integrate(&["--fresh", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(said["verdict"], Value::Null, "{said:#}");
    let done = scene.integrate(&["--fresh", "--json"]).expect(0).json();
    assert_eq!((landed(&done), &done["cached"]), (vec!["1"], &json!(0)), "{done:#}");
    assert_eq!(Some(runs(&scene.scene) as u64 - 1), done["gate_runs"].as_u64());
    assert_ne!(done["gate_runs"], 0);
}

#[test]
fn fresh_asks_about_a_known_culprit_again_and_lands_it_where_the_world_changed() {
    // What the row reads is nothing that anybody declared.
    let gate = r#"test ! -e a.txt || ls "$PDCA_WORKSPACE" | grep -q mended"#;
    let scene = Meeting::with(gate, TARGET);
    scene.scene.workspace.write("mended", "");
    scene.accepted("1", "a.txt", "a\n");
    fs_err::remove_file(scene.scene.workspace.path().join("mended")).unwrap();
    scene.integrate(&["--fresh"]).expect(101);
    scene.scene.workspace.write("mended", "");
    let again = scene.integrate(&["--json"]).expect(101).json();
    assert_eq!(again["gate_runs"], 0, "it is known: {again:#}");
    let fresh = scene.integrate(&["--fresh", "--json"]).expect(0).json();
    assert_eq!(landed(&fresh), ["1"]);
}

#[test]
fn a_verdict_that_is_too_old_is_asked_for_again() {
    for (limit, asked) in [("", false), ("verdict_max_age = \"7d\"\n", true)] {
        let scene = Meeting::sharing(COUNTED, &format!("{TARGET}{limit}"));
        scene.accepted("1", "a.txt", "a\n");
        age(scene.scene.workspace.path());
        let done = scene.integrate(&["--json"]).expect(0).json();
        assert_eq!(landed(&done), ["1"]);
        assert_eq!(done["gate_runs"] != 0, asked, "{limit}: {done:#}");
    }
}

#[test]
fn a_culprit_whose_verdict_is_too_old_is_gated_again() {
    let gate = format!("{COUNTED}; ! {{ test -e a.txt && test -e b.txt; }}");
    let scene = Meeting::with(&gate, &format!("{TARGET}verdict_max_age = \"7d\"\n"));
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.integrate(&[]).expect(101);
    let known = scene.integrate(&["--json"]).expect(101).json();
    assert_eq!(known["gate_runs"], 0, "{known:#}");
    age(scene.scene.workspace.path());
    let again = scene.integrate(&["--json"]).expect(101).json();
    assert_ne!(again["gate_runs"], 0, "{again:#}");
    assert_eq!(again["held"][0]["text"], "2 breaks T3-tests only together with 1");
}

#[test]
fn a_span_that_cannot_be_read_is_told_with_its_line() {
    let scene = Meeting::with("true", "[integrate]\nverdict_max_age = \"soon\"\n");
    let refused = scene.integrate(&[]).expect(2);
    assert!(refused.err.contains("pdca.toml:"), "{}", refused.err);
    assert!(refused.err.contains("`7d`"), "{}", refused.err);
}

#[test]
fn check_of_a_tree_that_an_integration_gated_green_is_not_run_again() {
    let scene = Meeting::sharing(COUNTED, "");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.integrate(&[]).expect(0);
    let before = runs(&scene.scene);
    // The branch itself is where it was, so this gives the tree that is staged.
    scene.waiting("3", &[], &[("a.txt", "a\n"), ("b.txt", "b\n")]);
    assert_eq!(runs(&scene.scene), before);
    let report = scene.scene.workspace.read("results/issue_3/check-gates.md");
    assert!(report.contains("green over exactly this tree"), "{report}");
    // Whoever asks for the gates by hand wants them run.
    scene.pdca(&["gates", "3"]).expect(0);
    assert_eq!(runs(&scene.scene), before + 1);
}

#[test]
fn a_verdict_of_a_lane_that_keeps_ignored_files_lands_nothing() {
    let scene = Meeting::with(COUNTED, &format!("[lanes]\nreset = \"tracked\"\n{TARGET}"));
    scene.accepted("1", "a.txt", "a\n");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!(landed(&done), ["1"]);
    assert_ne!(done["gate_runs"], 0, "{done:#}");
}

#[test]
fn a_row_that_reads_which_bundle_it_is_about_is_asked_about_the_combination_itself() {
    let gate = format!("{COUNTED}; git diff --quiet \"${{PDCA_BASE}}\" -- nothing");
    let scene = Meeting::with(&gate, TARGET);
    scene.accepted("1", "a.txt", "a\n");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_ne!(done["gate_runs"], 0, "{done:#}");
}

#[test]
fn killed_before_check_has_kept_its_verdict_nothing_is_lost_but_the_shortcut() {
    let scene = Meeting::sharing(COUNTED, TARGET);
    scene.scene.workspace.write("todo/1/a.txt", "a\n");
    scene.scene.brief("1", &[]);
    let killed = scene.scene.pdca_with(&[("PDCA_CRASH_AT", "check-verdict")], &["run", "1"]);
    assert_eq!(killed.code, 128 + 9, "{}", killed.err);
    scene.pdca(&["run", "1"]).expect(0);
    assert_eq!(runs(&scene.scene), 1, "what ended is not run again");
    scene.scene.accept("1");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!(landed(&done), ["1"]);
}

/// Says over which tree it runs.
const TREES: &str = r#"git rev-parse "HEAD^{tree}" >> "$PDCA_WORKSPACE/calls/trees""#;

fn trees_on_main(scene: &Scene) -> Vec<String> {
    let text = scene.repo.git(&["log", "--format=%T", "main"]);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn where_each_step_is_gated_every_commit_of_the_branch_was_green() {
    for (gate, lanes) in [("each", "1"), ("each", "3"), ("tip", "1")] {
        let config = format!("{TARGET}gate = \"{gate}\"\n");
        let scene = Meeting::with(&format!("{TREES}; test ! -e bad.txt"), &config);
        for (id, file) in [("1", "a.txt"), ("2", "b.txt"), ("3", "c.txt")] {
            scene.accepted(id, file, "x\n");
        }
        let main = scene.at("main");
        fs_err::remove_file(scene.scene.workspace.path().join("calls/trees")).unwrap();
        let done = scene.integrate(&["--fresh", "--lanes", lanes, "--json"]).expect(0).json();
        assert_eq!(landed(&done), ["1", "2", "3"]);
        let gated = scene.scene.workspace.read("calls/trees");
        let steps = trees_on_main(&scene.scene);
        let base = scene.scene.repo.git(&["rev-parse", &format!("{main}^{{tree}}")]);
        let new: Vec<&String> = steps.iter().filter(|tree| **tree != base.trim()).collect();
        assert_eq!(new.len(), 3);
        let green = new.iter().filter(|tree| gated.contains(tree.as_str())).count();
        assert_eq!(green, if gate == "each" { 3 } else { 1 }, "{gate} with {lanes} lanes");
        let certificates = done["certificates"].as_array().unwrap().len();
        assert_eq!(certificates, if gate == "each" { 3 } else { 1 });
        scene.pdca(&["verify"]).expect(0);
    }
}

#[test]
fn where_each_step_is_gated_a_change_with_a_red_commit_on_its_way_is_held() {
    let builder = r#"
commit() { git add -A && git -c user.name=b -c user.email=b@b commit --quiet -m "$1"; }
case $1 in
1) echo one > bad.txt; commit "breaks"; rm bad.txt; echo one > one.txt; commit "mends" ;;
2) echo one > two.txt; commit "first"; echo two > two.txt; commit "second" ;;
esac
"#;
    let reviewer =
        "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | fine |\\n'";
    for (gate, code, expected) in [("tip", 0, vec!["1", "2"]), ("each", 101, vec!["2"])] {
        let config = format!(
            "[driver]\ngate_base = \"off\"\n{TARGET}gate = \"{gate}\"\n\
             [[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test ! -e bad.txt\"\n"
        );
        let scene = Scene::with_leaves(builder, reviewer, &config);
        scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
        for id in ["1", "2"] {
            scene.brief(id, &[]);
            scene.pdca(&["run", id]).expect(0);
            scene.accept(id);
        }
        let done = scene.pdca(&["integrate", "--json"]).expect(code).json();
        assert_eq!(landed(&done), expected, "{gate}: {done:#}");
        if gate == "each" {
            assert_eq!(done["held"][0]["text"], "1 breaks T3-tests by itself");
            assert_eq!(scene.repo.git(&["rev-list", "--count", "main"]).trim(), "3");
        }
    }
}

#[test]
fn nothing_that_gates_is_refused_before_anything_runs() {
    let config = "[[gates.checks]]\nid = \"T1-notes\"\ntier = \"T1\"\nscope = \"bundle\"\n\
                  cmd = '''echo run >> \"$PDCA_WORKSPACE/calls/runs\"'''\n";
    let scene = Meeting::with("true", config);
    scene.accepted("1", "a.txt", "a\n");
    let text = scene.scene.workspace.read("pdca.toml");
    let id = "id = \"T3-tests\"\n";
    scene.scene.workspace.config(&text.replace(id, &format!("{id}gating = false\n")));
    let before = runs(&scene.scene);
    for args in [&["--land", "target"][..], &["--land", "target", "--dry-run"]] {
        let refused = scene.integrate(args).expect(2);
        assert!(refused.err.contains("no gating check"), "{}", refused.err);
        assert!(refused.err.contains("scope = \"repo\""), "{}", refused.err);
    }
    assert_eq!(runs(&scene.scene), before);
    assert_eq!(scene.subjects(), ["first|"]);
}

/// Says over which tree it ran when it comes to its end.
const ENDED: &str = r#"
r=0; if test -e a.txt && test -e b.txt; then r=1; fi
echo "$(git rev-parse 'HEAD^{tree}')" >> "$PDCA_WORKSPACE/calls/runs"; exit $r"#;

#[test]
fn killed_anywhere_in_the_search_no_gate_run_that_ended_is_repeated() {
    let scene = Meeting::with(ENDED, TARGET);
    for (id, file) in [("1", "a.txt"), ("2", "c.txt"), ("3", "b.txt"), ("4", "d.txt")] {
        scene.accepted(id, file, "x\n");
    }
    let main = scene.at("main");
    let calls = scene.scene.workspace.path().join("calls/runs");
    let back = || {
        scene.scene.repo.git(&["update-ref", "refs/heads/main", &main]);
        for name in ["integrations", "verdicts", "stats"] {
            fs_err::remove_dir_all(scene.scene.workspace.path().join(".pdca").join(name)).ok();
        }
        for name in ["held.json", "culprits.json", "flakes.json"] {
            fs_err::remove_file(scene.scene.workspace.path().join(".pdca").join(name)).ok();
        }
        fs_err::remove_file(&calls).ok();
    };
    let ran = || {
        let text = fs_err::read_to_string(&calls).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    back();
    scene.integrate(&[]).expect(101);
    let (whole, undisturbed) = (scene.at("main"), ran());
    assert!(undisturbed.len() > 4, "{undisturbed:?}");
    let named = (1..=undisturbed.len()).map(|number| format!("verdict:{number}"));
    let sampled = (3..300).step_by(29).map(|point| format!("@{point}"));
    let mut killed = 0;
    for point in named.chain(sampled) {
        back();
        let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", &point)], &["integrate"]);
        if first.code == 101 {
            continue;
        }
        assert_eq!(first.code, 128 + 9, "{point}: {}", first.err);
        killed += 1;
        let second = scene.integrate(&[]);
        assert!([101, 4].contains(&second.code), "{point}: {} {}", second.code, second.err);
        assert_eq!(scene.at("main"), whole, "{point}");
        assert_eq!(ran(), undisturbed, "{point}: a gate run was repeated or left out");
    }
    assert!(killed > 8, "only {killed} points");
}
