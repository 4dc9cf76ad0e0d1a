//! A change that carries configuration of agents does not speak to its reviewer.

use pdca_e2e::Scene;

/// Files that some agent loads from the directory it works in.
const FILES: [&str; 14] = [
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    "web/AGENTS.md",
    ".claude/settings.json",
    ".claude/agents/reviewer.md",
    ".mcp.json",
    ".codex/config.toml",
    ".opencode/plugin/evil.js",
    "opencode.json",
    ".gemini/settings.json",
    ".aider.conf.yml",
    "CONTEXT.md",
];

/// A reviewer that says what of the planted words is in its copy of the checkout.
const REVIEWER: &str = r#"found=$(grep -rl PLANTED . --exclude-dir=.git | sort | tr '\n' ' ')
printf 'found: %s\n\n| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | read |\n' "$found""#;

fn plant(files: &[&str]) -> String {
    let write = |file: &&str| {
        format!("mkdir -p \"$(dirname {file})\"\nrm -f {file}\necho PLANTED > {file}\n")
    };
    files.iter().map(write).collect::<String>() + "echo hi > greeting.txt"
}

fn review(scene: &Scene) -> String {
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let text = scene.workspace.read("results/issue_7/check-review.md");
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn files_of_every_agent_are_in_the_patch_and_not_in_the_reviewers_copy() {
    let scene = Scene::with_leaves(&plant(&FILES), REVIEWER, "");
    assert_eq!(review(&scene), "found: ");
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    for file in FILES {
        assert!(patch.contains(&format!("b/{file}")), "{file} is to be read: {patch}");
    }
}

#[test]
fn a_file_that_the_base_has_is_as_the_base_has_it() {
    let reviewer = "printf 'found: %s\\n\\n| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | read |\\n' \"$(cat CLAUDE.md)\"";
    let scene = Scene::with_leaves(&plant(&["CLAUDE.md"]), reviewer, "");
    scene.repo.write("CLAUDE.md", "be kind\n");
    scene.repo.commit("rules");
    assert_eq!(review(&scene), "found: be kind");
}

#[test]
fn documents_that_the_bases_files_import_are_as_the_base_has_them() {
    let planted =
        ["docs/rules.md", "docs/deep.md", "docs/new.md", "style.txt", "linked.md", "other.md"];
    let scene = Scene::with_leaves(&plant(&planted), REVIEWER, "");
    for (file, text) in [
        ("AGENTS.md", "Follow @docs/rules.md.\n"),
        ("docs/rules.md", "See @deep.md and @missing/../new.md.\n"),
        ("docs/deep.md", "deep\n"),
        ("style.txt", "style\n"),
        ("linked.md", "linked\n"),
        ("other.md", "other\n"),
        (".gemini/settings.json", "{\"context\": {\"fileName\": [\"style.txt\"]}}\n"),
    ] {
        scene.repo.write(file, text);
    }
    fs_err::os::unix::fs::symlink("linked.md", scene.repo.path().join("CLAUDE.md"))
        .expect("a link can be made");
    scene.repo.commit("rules");
    assert_eq!(review(&scene), "found: ./other.md ", "nothing imports that one");
}
