//! A person decides: what a leaf proposes waits, what was checked is what is accepted, and each acceptance counts once.

use pdca_e2e::{Scene, leaf};

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

/// Proposes what the first line of a file in the workspace says.
const SIGNER: &str = r#"printf '{"action": "%s", "note": "a model says so"}' "$(cat "$PDCA_WORKSPACE/calls/proposes")" > "$PDCA_OUTPUT""#;

/// A row that a combination is gated with.
const ROW: &str = "[[gates.checks]]\nid = \"T1\"\ntier = \"T1\"\ncmd = \"true\"\n";

fn scene(proposes: &str, fields: &[(&str, &str)]) -> Scene {
    let scene = Scene::with_leaves("echo done > greeting.txt", REVIEWER, &leaf("signoff"));
    scene.script("signoff", SIGNER);
    scene.workspace.write("calls/proposes", proposes);
    scene.brief("7", fields);
    scene.pdca(&["run", "7"]).expect(0);
    let cleared = scene.pdca(&["signoff", "7", "clear", "all"]).code;
    assert!(cleared == 0 || cleared == 4, "a bundle that is closed has nothing open");
    scene
}

#[test]
fn a_proposal_waits_for_a_person_whatever_it_proposes() {
    for action in ["accept", "iterate-do", "iterate-plan", "discontinue"] {
        let scene = scene(action, &[]);
        let asked = scene.pdca(&["--json", "signoff", "7", "ask"]).expect(3).json();
        assert_eq!(
            (&asked["kind"], &asked["recorded"]),
            (&"signoff-proposal".into(), &false.into())
        );
        assert_eq!(scene.state("7"), "AWAITING_SIGNOFF", "{action}");
        let status = scene.pdca(&["--json", "status"]).expect(0).json();
        assert_eq!(status["bundles"][0]["proposed"], action);
        let why = scene.pdca(&["why", "7"]).expect(0).out;
        assert!(why.contains(&format!("proposes {action}")), "{why}");
        let card = scene.pdca(&["--json", "show", "7"]).expect(0).json();
        assert_eq!(card["proposal"]["action"], action);
        // The command that the card names makes it the person's decision.
        scene.paste(card["proposal"]["command"].as_str().unwrap()).expect(0);
        assert_ne!(scene.state("7"), "AWAITING_SIGNOFF", "{action}");
    }
}

#[test]
fn at_a_terminal_a_proposal_is_shown_and_counts_once_it_is_confirmed() {
    let scene = scene("accept", &[]);
    let ran = scene.with_keys(&["signoff", "7", "ask"], "n\n").expect(3);
    assert!(ran.out.contains("a model says so"), "{}", ran.out);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    scene.with_keys(&["signoff", "7", "ask"], "y\n").expect(0);
    assert_eq!(scene.state("7"), "COMPLETE");
}

#[test]
fn a_leaf_records_exactly_what_the_configuration_names_and_in_its_own_name() {
    let rule = "\n[signoff]\nleaf_may_record = [{ outcome = \"accept\", disposition = \"already-fixed\" }]\n";
    for (proposes, hint, state) in [
        ("accept", "already-fixed", "COMPLETE"),
        ("discontinue", "already-fixed", "AWAITING_SIGNOFF"),
        ("accept", "wontfix", "AWAITING_SIGNOFF"),
        ("accept", "fix", "AWAITING_SIGNOFF"),
    ] {
        let scene = scene(proposes, &[("Disposition hint", hint)]);
        scene.workspace.config(&format!("{}{rule}", scene.workspace.read("pdca.toml")));
        scene.pdca(&["signoff", "7", "ask"]);
        assert_eq!(scene.state("7"), state, "{proposes} {hint}");
        let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
        let is_named = summary.contains("- By / date: sign-off leaf, as [signoff] leaf_may_record");
        assert_eq!(is_named, state == "COMPLETE", "{summary}");
    }
}

#[test]
fn sending_back_needs_a_reason() {
    let scene = scene("accept", &[]);
    for action in ["iterate-do", "iterate-plan"] {
        let ran = scene.pdca(&["signoff", "7", action]).expect(2);
        let command = format!("`pdca signoff 7 {action} --note \"why\"`");
        assert!(ran.err.contains(&command), "{}", ran.err);
        assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    }
    scene.with_keys(&["signoff", "7", "iterate-do"], "the greeting is too short\n").expect(0);
    assert_eq!(scene.state("7"), "PLANNED");
    let brief = scene.workspace.read("results/issue_7/brief.md");
    assert!(brief.contains("the greeting is too short"), "{brief}");
}

#[test]
fn a_brief_that_is_edited_after_check_is_checked_again_or_accepted_with_a_reason() {
    let scene = scene("accept", &[("Success criterion", "it works")]);
    let edit = |text: &str| {
        let file = "results/issue_7/brief.md";
        let brief = scene.workspace.read(file).replace("it works", text);
        scene.workspace.write(file, brief.replace("it sings", text));
    };
    edit("it sings");
    let status = scene.pdca(&["--json", "status"]).expect(0).json();
    assert_eq!(status["bundles"][0]["brief_changed"], true);
    let ran = scene.pdca(&["signoff", "7", "accept"]).expect(2);
    assert!(ran.err.contains("`pdca run 7`"), "{}", ran.err);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls().iter().filter(|call| *call == "builder 7").count(), 1);
    assert_eq!(scene.calls().iter().filter(|call| *call == "reviewer 7").count(), 2);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("the brief was edited after Do"), "{summary}");
    scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    edit("it dances");
    scene.pdca(&["signoff", "7", "accept"]).expect(2);
    let done = scene.pdca(&["--json", "signoff", "7", "accept", "--note", "a typo"]).expect(0);
    assert!(done.json()["remarks"].to_string().contains("brief-edited"), "{}", done.out);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    assert!(summary.contains("a typo"), "{summary}");
}

#[test]
fn the_same_change_accepted_twice_has_two_seals_and_is_two_cycles() {
    let scene = scene("accept", &[]);
    let cycles = || {
        let index = scene.pdca(&["--json", "act", "index"]).expect(0).json();
        index["cycles"].as_array().map_or(0, Vec::len)
    };
    scene.pdca(&["signoff", "7", "accept"]).expect(0);
    assert_eq!(cycles(), 1);
    scene.pdca(&["act", "log", "--record"]).expect(0);
    assert_eq!(cycles(), 0);
    scene.pdca(&["reopen", "7", "--note", "once more"]).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    scene.accept("7");
    let seal = |file: &str| scene.workspace.read(format!("results/issue_7/{file}"));
    assert_eq!(seal("patch.diff"), seal("iteration-v1/patch.diff"));
    assert_ne!(seal("seal.json"), seal("iteration-v1/seal.json"));
    assert_eq!(cycles(), 1, "the second acceptance is a cycle of its own");
    scene.pdca(&["act", "log", "--record"]).expect(0);
    assert_eq!(cycles(), 0);
}

#[test]
fn a_change_whose_accept_was_killed_and_that_landed_is_not_landed_by_its_old_seal_again() {
    let scene = Scene::with_leaves("echo done > greeting.txt", REVIEWER, ROW);
    let run = || {
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    };
    let land = || {
        scene.pdca(&["integrate"]).expect(0);
        scene.repo.git(&["merge", "-q", "--ff-only", "pdca/staging/main"]);
        assert_eq!(scene.repo.git(&["show", "HEAD:greeting.txt"]).trim(), "done");
    };
    run();
    // The second note of the attempt follows the sign-off.
    scene.pdca_with(&[("PDCA_CRASH_AT", "attempt:2")], &["signoff", "7", "accept"]).expect(137);
    assert_eq!(scene.state("7"), "COMPLETE");
    let first = scene.workspace.read("results/issue_7/seal.json");
    land();
    scene.repo.git(&["revert", "--no-edit", "HEAD"]);
    let results = scene.workspace.path().join("results");
    fs_err::rename(results.join("issue_7"), scene.workspace.around().join("put-away")).unwrap();
    run();
    scene.pdca(&["signoff", "7", "accept"]).expect(0);
    assert_ne!(scene.workspace.read("results/issue_7/seal.json"), first);
    land();
}

#[test]
fn what_an_agent_commits_is_by_the_configured_author_and_a_named_one_stays() {
    let builder = "echo one > one.txt; git add -A; git commit -qm 'parser: one'\n\
                   echo two > two.txt; git add -A; git -c user.name=Jane -c user.email=jane@x commit -qm 'parser: two'";
    let scene = Scene::with_leaves(builder, REVIEWER, "[project]\nauthor = \"Eve <eve@y>\"\n");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    scene.accept("7");
    let seal: serde_json::Value =
        serde_json::from_str(&scene.workspace.read("results/issue_7/seal.json")).unwrap();
    let head = seal["head"].as_str().unwrap();
    let log =
        scene.repo.git(&["log", "--format=%an <%ae> %s", "--reverse", &format!("main..{head}")]);
    assert_eq!(log.trim(), "Eve <eve@y> parser: one\nJane <jane@x> parser: two");
}
