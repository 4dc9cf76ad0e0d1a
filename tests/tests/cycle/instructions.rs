//! The committed instruction file of a role is the project's part of that leaf's prompt.

use pdca_e2e::Scene;
use serde_json::Value;

fn leaf(role: &str) -> String {
    format!(
        "[leaves.{role}]\nmode = \"command\"\nargv = [\"sh\", \"{{workspace}}/leaves/{role}.sh\", \"{{id}}\"]\n\
         prompt_via = \"file\"\nwritable = [\"calls\"]\n\n"
    )
}

/// Keeps the prompt where the test can read it.
const KEEP: &str = "cat \"$PDCA_PROMPT_FILE\" > \"$PDCA_WORKSPACE/calls/$PDCA_ROLE.prompt\"\n";

const REVIEW: &str =
    "printf '| Item | Verdict | Basis |\\n|---|---|---|\\n| C1 Spec | PASS | read |\\n'";

/// What `pdca init` wrote before leaves read such files; it says the opposite of what a builder has to do.
const EARLIER: &str = "\
---
name: builder
description: Has one planned pdca issue built, gated and reviewed, and reports what came of it.
tools: Read, Grep, Glob, Bash
---

You have one issue built by pdca. You do not write the change: the leaf of the workspace does that, in a private checkout.

1. `pdca status <id>` must say that it is planned; otherwise name what its brief lacks and stop.
2. `pdca run <id>` builds, gates and reviews it. It may take long.
3. `pdca why <id>` says what it waits for, or why it failed. `results/issue_<id>/` has the patch, the notes, the gate report, the review
   and, after a failure, `*.error.log`.

Report the state, red gates, and every FAIL and NEEDS-HUMAN of the review. Do not sign anything off.
";

fn scene(builder: &str, more: &str) -> Scene {
    let roles: String = ["builder", "reviewer"].iter().map(|role| leaf(role)).collect();
    let scene = Scene::new(&format!("{roles}{more}"));
    scene.script("builder", &format!("{KEEP}{builder}\necho hi > greeting.txt"));
    scene.script("reviewer", &format!("{KEEP}{REVIEW}"));
    scene
}

fn prompt(scene: &Scene, role: &str) -> String {
    scene.workspace.read(format!("calls/{role}.prompt"))
}

fn calls(scene: &Scene, id: &str) -> Vec<Value> {
    let text = scene.workspace.read(format!("results/issue_{id}/logs/calls.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
}

#[test]
fn builder_and_reviewer_are_instructed_by_the_branch_and_never_by_the_change_or_the_checkout() {
    let plant = "mkdir -p process/leaves .claude/agents\n\
                 echo PLANTED > process/leaves/reviewer.md\necho PLANTED > .claude/agents/reviewer.md\n\
                 git add -A && git -c user.name=b -c user.email=b@b commit -qm planted";
    let scene = scene(plant, "");
    scene.repo.write("process/leaves/builder.md", "Keep {id} and \"quotes\" as they are.\n");
    scene.repo.write(".claude/agents/builder.md", "The other directory.\n");
    scene.repo.write(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ntools: Read\n---\n\nLook at the units.\n",
    );
    scene.repo.commit("instructions");
    let base = scene.repo.head();
    // Not committed, so it is nobody's word yet.
    scene.repo.write("process/leaves/builder.md", "UNCOMMITTED\n");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let builder = prompt(&scene, "builder");
    assert!(builder.starts_with("You build one issue: 7."), "the contract comes first: {builder}");
    assert!(builder.ends_with("\nKeep {id} and \"quotes\" as they are.\n"), "{builder}");
    assert!(!builder.contains("UNCOMMITTED") && !builder.contains("other directory"), "{builder}");
    let reviewer = prompt(&scene, "reviewer");
    assert!(reviewer.ends_with("\nLook at the units.\n"), "{reviewer}");
    assert!(!reviewer.contains("PLANTED") && !reviewer.contains("tools: Read"), "{reviewer}");
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(patch.contains("+PLANTED"), "the change itself is to be read: {patch}");
    let calls = calls(&scene, "7");
    let record = |role: &str| {
        let call = calls.iter().find(|call| call["role"] == role).expect("the call is recorded");
        call["instructions"].clone()
    };
    assert_eq!(record("builder")["path"], "process/leaves/builder.md");
    assert_eq!(record("builder")["commit"], base.as_str());
    let text = "Keep {id} and \"quotes\" as they are.\n";
    let digest = pdca_state::sha256_hex(text.as_bytes());
    assert_eq!(record("builder")["sha256"], digest.as_str());
    assert_eq!(record("reviewer")["path"], ".claude/agents/reviewer.md");
}

#[test]
fn an_instruction_of_an_accepted_change_that_nobody_merged_counts_for_nobody() {
    let scene = scene("mkdir -p process/leaves\necho STACKED > process/leaves/reviewer.md", "");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    scene.accept("1");
    scene.script("builder", &format!("{KEEP}ls process/leaves\necho more >> greeting.txt"));
    scene.brief("2", &[("Depends on", "1")]);
    scene.pdca(&["run", "2"]).expect(0);
    assert!(!prompt(&scene, "reviewer").contains("STACKED"), "{}", prompt(&scene, "reviewer"));
}

#[test]
fn a_workspace_beside_its_target_instructs_the_leaves_that_the_target_does_not() {
    let scene = scene("", "");
    scene.workspace.write(".claude/agents/builder.md", "From the workspace.\n");
    scene.workspace.write("process/leaves/reviewer.md", "From the workspace.\n");
    scene.repo.write("process/leaves/reviewer.md", "From the target.\n");
    scene.repo.commit("instructions");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert!(prompt(&scene, "builder").ends_with("\nFrom the workspace.\n"));
    assert!(prompt(&scene, "reviewer").ends_with("\nFrom the target.\n"));
}

#[test]
fn an_empty_file_says_none_and_a_text_of_an_earlier_init_is_left_out() {
    let scene = scene("", "");
    scene.repo.write("process/leaves/reviewer.md", "\n");
    scene.repo.write(".claude/agents/reviewer.md", "An agent of the project.\n");
    scene.repo.write(".claude/agents/builder.md", EARLIER);
    scene.repo.commit("instructions");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert!(!prompt(&scene, "reviewer").contains("An agent of the project"));
    assert!(!prompt(&scene, "reviewer").contains("instructions of this project"));
    assert!(!prompt(&scene, "builder").contains("You do not write the change"));
    let doctor = scene.pdca(&["doctor"]).out;
    assert!(doctor.contains("is from an earlier `pdca init`"), "{doctor}");
}

#[test]
fn a_file_that_is_no_text_stops_the_leaf_before_it_is_paid_for_and_is_named() {
    let scene = scene("", "");
    fs_err::create_dir_all(scene.repo.path().join("process/leaves")).expect("a directory");
    fs_err::write(scene.repo.path().join("process/leaves/builder.md"), b"\xff\xfe")
        .expect("a file");
    scene.repo.commit("instructions");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]);
    assert_ne!(ran.code, 0, "{}", ran.out);
    assert!(format!("{}{}", ran.out, ran.err).contains("process/leaves/builder.md"), "{ran:?}");
    assert!(scene.calls().is_empty(), "{:?}", scene.calls());
}

#[test]
fn doctor_names_the_file_of_each_leaf_and_one_that_is_not_committed() {
    let scene = scene("", "");
    scene.repo.write("process/leaves/builder.md", "Use tabs.\n");
    scene.repo.commit("instructions");
    scene.repo.write("process/leaves/reviewer.md", "Be strict.\n");
    let found = scene.pdca(&["doctor", "--json"]).json();
    let rows: Vec<&Value> = found["rows"].as_array().expect("doctor has rows").iter().collect();
    let of = |role: &str| {
        let what = format!("instructions {role}");
        rows.iter().find(|row| row["what"] == what.as_str()).copied().cloned()
    };
    let builder = of("builder").expect("the builder has a file");
    let said = builder["found"].as_str().unwrap_or_default().to_owned();
    assert!(said.starts_with("process/leaves/builder.md at "), "{said}");
    let reviewer = of("reviewer").expect("the reviewer has a file that does not count");
    assert_eq!(reviewer["health"], "warning");
    let remedy = reviewer["remedy"].as_str().expect("a warning has a remedy").to_owned();
    let line = remedy.trim_matches('`').to_owned();
    scene.repo.git(&["config", "user.name", "Ada"]);
    scene.repo.git(&["config", "user.email", "ada@example.org"]);
    scene.paste(&line).expect(0);
    let again = scene.pdca(&["doctor"]).out;
    assert!(again.contains("process/leaves/reviewer.md at "), "{again}");
}

#[test]
fn init_writes_files_that_the_leaves_read_once_they_are_committed() {
    let scene = Scene::new("");
    let target = scene.repo.path();
    let args = ["init", "--builder", "claude", "--reviewer", "codex", "--yes"];
    let ran = scene.pdca(&[&["-C", target.as_str()], args.as_slice()].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    for file in ["planner", "builder", "sign-off", "publisher", "act"] {
        let text = fs_err::read_to_string(target.join(format!(".claude/agents/{file}.md")));
        let text = text.expect("init wrote it");
        assert!(text.contains("pdca adds this text to the prompt"), "{file}: {text}");
    }
    assert!(
        target.join("process/leaves/reviewer.md").exists() && target.join("AGENTS.md").exists()
    );
    scene.repo.commit("pdca");
    let said = scene.pdca(&["-C", target.as_str(), "doctor"]).out;
    for role in ["builder", "reviewer"] {
        let row = said.lines().find(|line| line.contains(&format!("instructions {role}")));
        assert!(row.is_some_and(|row| row.contains(" at ") && row.contains("✓")), "{said}");
    }
}
