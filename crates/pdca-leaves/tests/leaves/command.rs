//! How a leaf is started: arguments, environment, prompt, directory.

use std::collections::BTreeMap;

use fs_err as fs;
use pdca_leaves::{Call, CallFacts, Inputs, LeafConfig, LeafError, Role};
use pdca_state::Artifact;

use crate::scene::{Scene, program, review};

#[test]
fn a_leaf_is_told_where_it_starts_and_not_where_the_driver_does() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "save-env ${PDCA_OUTPUT}");
    let text = review(&scene.call(Role::Reviewer, &leaf).unwrap());
    let here = format!("PWD={}", scene.copy);
    assert!(text.lines().any(|line| line == here), "{text}");
}

#[test]
fn a_leaf_gets_the_documented_environment_and_no_other_of_ours() {
    let scene = Scene::new();
    let lane = BTreeMap::from([("PDCA_LANE".to_owned(), "2".to_owned())]);
    let keys = "model = \"m\"\neffort = \"high\"\nenv = { MINE = \"{id}-{role}\" }";
    let leaf = scene.leaf(keys, "save-env ${PDCA_OUTPUT}");
    let outcome = scene.call_with(Role::Reviewer, &leaf, |call| {
        call.facts = CallFacts {
            push: None,
            program: None,
            base: Some("0123abc"),
            brief_base: Some("main"),
            target: Some("repo"),
            git_common_dir: None,
            attempt: 3,
            gates: None,
            run: Some("run-1"),
            lane: &lane,
        };
    });
    let text = review(&outcome.unwrap());
    let ours: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("PDCA_") || line.starts_with("MINE="))
        .filter(|line| !line.starts_with("PDCA_SUPERVISED="))
        .map(|line| line.replace(scene.workspace.path().as_str(), "WS"))
        .collect();
    insta::assert_snapshot!(ours.join("\n"), @r"
    MINE=7-reviewer
    PDCA_ATTEMPT=3
    PDCA_BASE=0123abc
    PDCA_BRIEF_BASE=main
    PDCA_BUNDLE=WS/.pdca/jobs/7/leaf-0123456789abcdef/bundle
    PDCA_EFFORT=high
    PDCA_ISSUE=7
    PDCA_LANE=2
    PDCA_MODEL=m
    PDCA_OUTPUT=WS/.pdca/jobs/7/leaf-0123456789abcdef/bundle/check-review.md
    PDCA_PROMPT_FILE=WS/.pdca/jobs/7/leaf-0123456789abcdef/prompt.md
    PDCA_ROLE=reviewer
    PDCA_RUN=run-1
    PDCA_TARGET=repo
    PDCA_WORKSPACE=WS
    PDCA_WORKTREE=WS/.pdca/jobs/7/leaf-0123456789abcdef/copy
    ");
}

#[test]
fn what_has_no_value_is_not_set() {
    let scene = Scene::new();
    let leaf = scene.leaf("prompt_via = \"none\"", "save-env ${PDCA_OUTPUT}");
    let outcome = scene.call_with(Role::Builder, &leaf, |call| call.places.worktree = None);
    assert!(matches!(outcome.unwrap_err(), LeafError::NoArtifact { .. }));
    let text = fs::read_to_string(scene.view().join("build-notes.md")).unwrap();
    for absent in ["PDCA_WORKTREE", "PDCA_BASE", "PDCA_PROMPT_FILE", "PDCA_MODEL"] {
        assert!(!text.contains(absent), "{absent} is set: {text}");
    }
}

#[test]
fn arguments_are_filled_in_literally_one_by_one() {
    let scene = Scene::new();
    let brief = scene.view().join("brief.md");
    let script = "printf '%s\\n' \"$@\" > \"$PDCA_OUTPUT\"";
    let argv = ["sh", "-c", script, "sh", "{id} $(id)", "{{id}}", "{brief}", "{model}", "*"];
    let mut leaf = program("model = \"a b\"", &argv);
    let expected = format!("7 $(id)\n{{id}}\n{brief}\na b\n*\n");
    assert_eq!(review(&scene.call(Role::Reviewer, &leaf).unwrap()), expected);

    let scene = Scene::new();
    leaf.argv[4] = "{model}".to_owned();
    let outcome = scene.call_with(Role::Reviewer, &leaf, |call| {
        call.model = Some("the brief's");
    });
    assert!(review(&outcome.unwrap()).starts_with("the brief's\n"));
}

#[test]
fn a_placeholder_without_a_value_starts_nothing() {
    let scene = Scene::new();
    let leaf = program("", &["touch", "{worktree}", "{base}"]);
    let error = scene.call(Role::Builder, &leaf).unwrap_err();
    assert!(matches!(error, LeafError::NoValue(_)), "{error:?}");
    let leaf = program("", &["touch", "{bundel}"]);
    let error = scene.call(Role::Builder, &leaf).unwrap_err();
    assert!(matches!(error, LeafError::Template(_)), "{error:?}");
    let error = scene.call(Role::Builder, &program("", &[])).unwrap_err();
    assert!(matches!(error, LeafError::NoProgram { role: Role::Builder }), "{error:?}");
    assert!(!scene.job.join("try-001").exists());
}

#[test]
fn a_relative_program_is_one_of_the_workspace() {
    let scene = Scene::new();
    let tool = scene.workspace.path().join("tools/leaf.sh");
    fs::create_dir_all(tool.parent().unwrap()).unwrap();
    fs::write(&tool, "#!/bin/sh\necho from the workspace\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&tool, mode).unwrap();
    let outcome = scene.call(Role::Reviewer, &program("", &["./tools/leaf.sh"])).unwrap();
    assert_eq!(review(&outcome), "from the workspace\n");
}

#[test]
fn each_role_works_in_its_own_checkout_or_else_in_its_view() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "pwd ${PDCA_OUTPUT}");
    assert_eq!(review(&scene.call(Role::Reviewer, &leaf).unwrap()), format!("{}\n", scene.copy));
    let scene = Scene::new();
    let leaf = scene.leaf("", "pwd ${PDCA_OUTPUT}");
    let outcome = scene.call_with(Role::Reviewer, &leaf, |call| call.places.worktree = None);
    assert_eq!(review(&outcome.unwrap()), format!("{}\n", scene.view()));
}

#[test]
fn the_built_in_prompt_comes_on_stdin_and_names_the_output() {
    let scene = Scene::new();
    let leaf = scene.leaf("", "save-stdin ${PDCA_OUTPUT}");
    let prompt = review(&scene.call(Role::Reviewer, &leaf).unwrap());
    assert!(prompt.starts_with("You review one change: issue 7."), "{prompt}");
    assert!(prompt.contains(&format!("`{}`", scene.view().join("check-review.md"))), "{prompt}");
    assert!(!prompt.contains("{output}") && !prompt.contains("build-notes"), "{prompt}");
}

#[test]
fn a_prompt_may_come_as_a_file() {
    let scene = Scene::new();
    scene.workspace.write("prompts/own.md", "Look at {id}, not at { this }.\n");
    let keys = "prompt_via = \"file\"\nprompt_file = \"prompts/own.md\"";
    let script = "copy ${PDCA_PROMPT_FILE} ${PDCA_OUTPUT}\nsave-stdin worktree:stdin";
    let outcome = scene.call(Role::Reviewer, &scene.leaf(keys, script)).unwrap();
    assert_eq!(review(&outcome), "Look at 7, not at { this }.\n");
    assert_eq!(fs::read_to_string(scene.copy.join("stdin")).unwrap(), "");
}

#[test]
fn a_prompt_may_come_as_an_argument() {
    let scene = Scene::new();
    let argv = ["sh", "-c", "printf %s \"$1\" > \"$PDCA_OUTPUT\"", "sh", "{prompt}"];
    let leaf = program("prompt = \"say {id} 'and' \\\"no\\\" more\"", &argv);
    assert_eq!(review(&scene.call(Role::Reviewer, &leaf).unwrap()), "say 7 'and' \"no\" more");
}

#[test]
fn a_prompt_that_cannot_be_read_is_named() {
    let scene = Scene::new();
    fs::write(scene.workspace.path().join("latin.md"), b"\xe9").unwrap();
    for file in ["none.md", "latin.md", "results"] {
        let leaf = scene.leaf(&format!("prompt_file = \"{file}\""), "exit 0");
        let error = scene.call(Role::Reviewer, &leaf).unwrap_err();
        let LeafError::Prompt { path, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(path, scene.workspace.path().join(file));
    }
}

#[test]
fn b11_a_question_on_stdin_gets_the_end_of_input() {
    for keys in ["prompt_via = \"none\"", "prompt_via = \"file\""] {
        let scene = Scene::new();
        let leaf = scene.leaf(keys, "ask \"may I?\" ${PDCA_OUTPUT}");
        let outcome = scene.call(Role::Reviewer, &leaf).unwrap();
        assert_eq!(review(&outcome), "answer: end of input\n");
    }
}

#[test]
fn an_interactive_leaf_leaves_its_artifact_as_any_other() {
    let scene = Scene::new();
    let leaf = scene.leaf("interactive = true", "write ${PDCA_OUTPUT} \"- **Slug:** x\\n\"");
    let outcome = scene.call(Role::Planner, &leaf).unwrap();
    let brief = outcome.get(pdca_leaves::Output::Artifact(Artifact::Brief)).unwrap();
    assert_eq!(brief, b"- **Slug:** x\n");
}

#[test]
fn the_digest_of_a_call_follows_all_that_determines_its_result() {
    let scene = Scene::new();
    scene.workspace.write("own.md", "one");
    let leaf = scene.leaf("prompt_file = \"own.md\"\nmodel = \"m\"", "exit 0");
    let inputs = Inputs::gather(Role::Reviewer, &scene.bundle).unwrap();
    let call = Call::new(&leaf, &inputs, &scene.job, scene.places(Role::Reviewer));
    let first = call.digest().unwrap();
    let elsewhere = Call { job: &scene.desk, ..call };
    assert_eq!(elsewhere.digest().unwrap(), first, "the place of the job is no part of it");

    let other_leaf = LeafConfig { retries: 1, ..leaf.clone() };
    let other_base = CallFacts { base: Some("abc"), ..call.facts };
    let other_branch = CallFacts { brief_base: Some("abc"), ..call.facts };
    let mut digests = vec![
        first,
        Call { config: &other_leaf, ..call }.digest().unwrap(),
        Call { model: Some("n"), ..call }.digest().unwrap(),
        Call { force_stub: true, ..call }.digest().unwrap(),
        Call { facts: other_base, ..call }.digest().unwrap(),
        Call { facts: other_branch, ..call }.digest().unwrap(),
    ];
    scene.workspace.write("own.md", "two");
    digests.push(call.digest().unwrap());
    let all = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), all);
}
