//! The guilty and those that merely could not be left out are told apart.

use pdca_e2e::Scene;
use serde_json::Value;

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// Each change has a file of its own and a line of NEWS.md, written below those of the earlier ones.
const BUILDER: &str = r#"
mkdir -p parts tests
echo "by $1" > "parts/p$1"
echo "- change $1" >> NEWS.md
[ "$1" != 12 ] || echo "def test_loose(): pass" > tests/loose_test.py
"#;

/// Red where the parts of 12 and 16 are both there, as the test of 12 finds.
const GATE: &str = "test ! -f parts/p12 || test ! -f parts/p16 || \
    { echo 'FAILED tests/loose_test.py::test_loose'; exit 1; }";

fn list(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|id| id.as_str().expect("an id")).collect()
}

fn scene() -> Scene {
    let more = format!(
        "[driver]\ngate_base = \"off\"\n[integrate]\nland = \"target\"\n\n[[gates.checks]]\nid = \"T3-tests\"\n\
         tier = \"T3\"\ncmd = '''{GATE}'''\n"
    );
    let scene = Scene::with_leaves(BUILDER, REVIEWER, &more);
    scene.repo.write("NEWS.md", "news\n----\n");
    scene.repo.commit("news");
    scene.repo.git(&["checkout", "--quiet", "--detach"]);
    scene
}

fn accepted(scene: &Scene, id: &str) {
    scene.brief(id, &[("Touches", &format!("NEWS.md, parts/p{id}"))]);
    scene.pdca(&["run", id]).expect(0);
    scene.accept(id);
}

#[test]
fn partners_are_those_without_which_it_is_green_and_the_others_are_context() {
    let scene = scene();
    for id in ["11", "12", "13", "14", "15"] {
        accepted(&scene, id);
    }
    // It touches no file of theirs, so it is built on the branch alone and does not see 12.
    scene.brief("16", &[("Touches", "parts/p16")]);
    scene.script("builder", "mkdir -p parts\necho by 16 > parts/p16\n");
    scene.pdca(&["run", "16"]).expect(0);
    scene.accept("16");
    let ran = scene.pdca(&["--json", "integrate"]);
    let told = ran.json();
    let held = told["held"].as_array().expect("a list");
    assert_eq!(held.len(), 1, "{told}");
    assert_eq!((held[0]["id"].as_str(), list(&held[0]["partners"])), (Some("16"), vec!["12"]));
    let context = list(&held[0]["context"]);
    assert!(context.contains(&"11") && !context.contains(&"12"), "{context:?}");
    let text = held[0]["text"].as_str().expect("a sentence");
    assert!(text.contains("together with 12 (11") && text.contains("NEWS.md"), "{text}");
    for id in ["11", "12", "13", "14", "15"] {
        scene.repo.git(&["cat-file", "-e", &format!("main:parts/p{id}")]);
    }
    // Alone, with the change whose test failed, once more, and that change without it.
    let asked = |word: &str| ran.err.lines().filter(|line| line.contains(word)).count();
    let beyond = asked(" alone ") + asked(" to find the partners ") + asked(" once more ");
    assert!(beyond <= 4, "{beyond} runs:\n{}", ran.err);
    assert!(ran.err.contains("run 1 of at most 2 if all is green)"), "{}", ran.err);
    // The record and the next attempt know the same.
    let back = scene.pdca(&["--json", "reopen", "16", "--note", "obey"]).expect(0).json();
    assert_eq!(list(&back["partners"]), ["12"], "{back}");
    let facts = list(&back["facts"]).join("\n");
    assert!(facts.contains("could not be left out"), "{facts}");
    assert!(!facts.contains("partner-11.diff"), "{facts}");
}
