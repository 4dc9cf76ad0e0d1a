//! Who makes the next attempt, in which session, and what of the last one's leavings gets into the change.

use pdca_e2e::{Ran, Scene};

/// The review of a change that has nothing wrong with it.
const PASSES: &str = r#"printf '%s\n' '| Item | Verdict | Basis |' '|---|---|---|' '| C3 Change | PASS | read |' \
  '| C5 Causal adequacy | PASS | read |' '| Validation — fitness-to-purpose | NEEDS-HUMAN | try it |' > "$PDCA_OUTPUT""#;

/// A gate that wants the greeting to end in `ok`.
const GATE: &str =
    "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"grep -q ok greeting.txt\"\n\n";

/// Fails at the first attempt and mends it at the second.
const MENDS: &str = "echo \"$PDCA_ATTEMPT ${PDCA_MODEL-none} ${PDCA_EFFORT-none} $*\" >> \"$log/attempts\"\n\
     if [ \"$PDCA_ATTEMPT\" = 1 ]; then echo no >> greeting.txt; else echo ok >> greeting.txt; fi\n";

/// A builder that speaks like an agent; it does not know the session `gone`.
const AGENT: &str = r#"
case "$*" in *"--resume gone"*) echo 'No conversation found' >&2; exit 1;; esac
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-$PDCA_ATTEMPT\"}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s-$PDCA_ATTEMPT\"}"
"#;

fn scene(builder: &str, keys: &str, more: &str) -> Scene {
    let leaf = |role: &str, keys: &str| {
        format!(
            "[leaves.{role}]\nmode = \"command\"\nargv = [\"sh\", \"{{workspace}}/leaves/{role}.sh\", \"{{id}}\"]\n\
             writable = [\"calls\"]\n{keys}\n"
        )
    };
    let scene = Scene::new(&format!(
        "{}{}[driver]\ngate_base = \"off\"\nmax_auto_iters = 2\n{GATE}{more}",
        leaf("builder", keys),
        leaf("reviewer", "")
    ));
    for (role, text) in [("builder", builder), ("reviewer", PASSES)] {
        let text = format!("log=\"$PDCA_WORKSPACE/calls\"\nset -eu\n{text}\n");
        scene.workspace.write(format!("leaves/{role}.sh"), text);
    }
    scene
}

fn attempts(scene: &Scene) -> String {
    scene.workspace.read("calls/attempts")
}

fn said(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

const ESCALATES: &str = "[[leaves.builder_variant]]\nattempt = 2\nmodel = \"large\"\neffort = \"max\"\n\
     [[leaves.builder_variant]]\nwhen = \"Difficulty: high\"\nmodel = \"medium\"\n";

#[test]
fn the_second_attempt_goes_to_the_stronger_model_by_itself() {
    let scene = scene(MENDS, "model = \"small\"", ESCALATES);
    scene.brief("7", &[]);
    scene.brief("8", &[("Difficulty", "high, because of locks")]);
    scene.brief("9", &[("Do model", "mine"), ("Do effort", "low")]);
    let why = scene.pdca(&["why", "8"]).expect(0);
    assert!(
        why.out.contains("model medium, builder_variant[1] (`Difficulty` has `high`)"),
        "{}",
        why.out
    );
    for id in ["7", "8", "9"] {
        let ran = scene.pdca(&["run", id]).expect(0);
        let text = said(&ran);
        assert!(
            text.contains("model large, effort max, builder_variant[0] (from attempt 2 on)"),
            "{text}"
        );
    }
    let expected = "1 small none 7\n2 large max 7\n1 medium none 8\n2 large max 8\n1 mine low 9\n2 large max 9\n";
    assert_eq!(attempts(&scene), expected);
}

#[test]
fn a_driver_that_is_killed_escalates_no_sooner_and_no_later() {
    for point in
        ["builder", "patch.diff", "archive-begin", "archive-finish", "attempt:3", "builder:2"]
    {
        let scene = scene(MENDS, "model = \"small\"", ESCALATES);
        scene.brief("7", &[]);
        scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["run", "7"]).expect(137);
        scene.pdca(&["run", "7"]).expect(0);
        let mut told: Vec<String> = attempts(&scene).lines().map(str::to_owned).collect();
        told.dedup();
        assert_eq!(told, ["1 small none 7", "2 large max 7"], "{point}");
        assert_eq!(scene.state("7"), "AWAITING_SIGNOFF", "{point}");
    }
}

#[test]
fn a_mistake_in_a_variant_is_found_before_anything_is_built() {
    let variant = "[[leaves.builder_variant]]\nattempt = 2\nargv = [\"no-such-agent\"]\n";
    let scene = scene(MENDS, "", variant);
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(2);
    assert!(
        ran.err.contains("builder_variant[0] program `no-such-agent` not found on PATH"),
        "{}",
        ran.err
    );
    assert!(!scene.workspace.path().join("calls/attempts").exists());
    let doctor = scene.pdca(&["doctor"]);
    assert!(said(&doctor).contains("leaf builder_variant[0]"), "{}", said(&doctor));

    let config = scene.workspace.read("pdca.toml").replace("attempt = 2\nargv", "atempt = 2\nargv");
    scene.workspace.write("pdca.toml", config);
    let ran = scene.pdca(&["run", "7"]).expect(2);
    assert!(ran.err.contains("did you mean `attempt`?"), "{}", ran.err);
}

#[test]
fn a_variant_is_shown_with_the_builder_s_own_keys() {
    let scene = scene(MENDS, "model = \"small\"\ntimeout_secs = 90", ESCALATES);
    let shown = scene.pdca(&["config", "show", "leaves.builder_variant"]).expect(0).out;
    for line in [
        "leaves.builder_variant[0].attempt = 2",
        "leaves.builder_variant[0].model = \"large\"",
        "leaves.builder_variant[0].timeout_secs = 90  # pdca.toml:",
        "leaves.builder_variant[1].model = \"medium\"",
        "leaves.builder_variant[1].when = \"Difficulty: high\"",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

const RESUMES: &str = "protocol = \"claude\"\nresume_args = [\"--resume\", \"{session}\"]\n";

#[test]
fn the_next_attempt_goes_on_in_the_session_of_the_last_one() {
    let scene = scene(&format!("{MENDS}{AGENT}"), RESUMES, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(attempts(&scene), "1 none none 7\n2 none none 7 --resume s-1\n");
    assert!(said(&ran).contains("goes on in session s-1 of attempt 1"), "{}", said(&ran));
    // A person sends it back: the third attempt goes on where the second ended.
    scene.pdca(&["signoff", "7", "iterate-do", "--note", "more"]).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    assert!(attempts(&scene).ends_with("3 none none 7 --resume s-2\n"), "{}", attempts(&scene));
}

#[test]
fn a_session_is_found_again_wherever_the_driver_was_killed() {
    for point in [
        "builder",
        "session",
        "patch.diff",
        "archive-finish",
        "apply-last",
        "builder:2",
        "session:2",
    ] {
        let scene = scene(&format!("{MENDS}{AGENT}"), RESUMES, "");
        scene.brief("7", &[]);
        scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["run", "7"]).expect(137);
        scene.pdca(&["run", "7"]).expect(0);
        let mut told: Vec<String> = attempts(&scene).lines().map(str::to_owned).collect();
        told.dedup();
        assert_eq!(told, ["1 none none 7", "2 none none 7 --resume s-1"], "{point}");
    }
}

#[test]
fn a_session_that_is_gone_costs_no_attempt_and_one_from_another_checkout_is_not_asked_for() {
    let agent = AGENT.replace("s-$PDCA_ATTEMPT", "gone");
    let scene = scene(&format!("{MENDS}{agent}"), RESUMES, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    // The agent is started in vain, then anew; its checkout is that of the second attempt both times.
    assert_eq!(attempts(&scene), "1 none none 7\n2 none none 7 --resume gone\n2 none none 7\n");
    assert!(said(&ran).contains("session gone could not be resumed"), "{}", said(&ran));
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");

    for (keys, from, resumes) in [
        ("resume = false\n", "last", false),
        ("", "base", false),
        ("resume = true\n", "base", true),
    ] {
        let scene = self::scene(&format!("{MENDS}{AGENT}"), &format!("{RESUMES}{keys}"), "");
        let config = scene.workspace.read("pdca.toml");
        let from = format!("iterate_from = \"{from}\"\nmax_auto_iters");
        scene.workspace.write("pdca.toml", config.replace("max_auto_iters", &from));
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        assert_eq!(attempts(&scene).contains("--resume"), resumes, "{keys}{from}");
    }
}

/// Leaves products of every kind, and some that were asked for.
const LITTERS: &str = r"
    echo ok >> greeting.txt
    mkdir -p pkg/__pycache__ node_modules/dep data
    echo x > pkg/__pycache__/m.cpython-312.pyc
    echo x > node_modules/dep/index.js
    echo x > .aider.chat.history.md
    echo x > data/wanted.o
    echo x > fixture.pyc
    git add fixture.pyc
    git -c user.name=b -c user.email=b@example.com commit --quiet --message 'a fixture'
    echo y >> known.pyc
";

fn littered() -> Scene {
    let scene = scene(LITTERS, "", "");
    scene.repo.write("known.pyc", "known\n");
    scene.repo.commit("a product that is tracked");
    scene.brief("7", &[("Touches", "greeting.txt, data/, pkg/*.py")]);
    scene
}

fn paths(patch: &str) -> Vec<&str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect()
}

#[test]
fn build_products_stay_out_of_the_patch_unless_they_were_asked_for_and_all_of_them_are_named() {
    let scene = littered();
    let ran = scene.pdca(&["run", "7"]).expect(0);
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert_eq!(paths(&patch), ["data/wanted.o", "fixture.pyc", "greeting.txt", "known.pyc"]);
    let text = said(&ran);
    let left =
        "left out of the change: `.aider.chat.history.md`, `node_modules`, `pkg/__pycache__`";
    assert!(text.contains(left), "{text}");
    assert!(text.contains("`data/wanted.o`, `fixture.pyc`, `known.pyc` has the name"), "{text}");
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    let place = "lane-0/rescued/products-7-1";
    for row in [
        format!(
            "- Build product: `.aider.chat.history.md`, `node_modules`, `pkg/__pycache__`: left out of the change, kept in `{place}`"
        ),
        "- Build product: `data/wanted.o`: in the change, because `Touches` names it".to_owned(),
        "- Build product: `fixture.pyc`, `known.pyc`: in the change, because it is in git"
            .to_owned(),
    ] {
        assert!(summary.contains(&row), "{row}\n{summary}");
    }
    let lanes = scene.workspace.path().with_extension("lanes");
    let kept = lanes.join(place).join("pkg/__pycache__/m.cpython-312.pyc");
    assert_eq!(fs_err::read_to_string(kept).unwrap(), "x\n");
}

#[test]
fn a_driver_that_is_killed_while_it_sorts_products_out_ends_with_the_same_result() {
    let undisturbed = littered();
    undisturbed.pdca(&["run", "7"]).expect(0);
    for point in ["products-noted", "products", "commit", "products-noted:2", "patch.diff"] {
        let scene = littered();
        scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["run", "7"]).expect(137);
        scene.pdca(&["run", "7"]).expect(0);
        assert_eq!(scene.results(), undisturbed.results(), "{point}");
    }
}

#[test]
fn a_builder_that_leaves_nothing_but_products_changed_nothing() {
    let scene = scene("mkdir __pycache__; echo x > __pycache__/m.pyc", "", "");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]);
    let log = scene.workspace.read("results/issue_7/builder.error.log");
    assert!(log.contains("changed nothing") && log.contains("`__pycache__`"), "{log}");
}

#[test]
fn the_list_of_products_is_the_configured_one() {
    let scene = scene("echo ok >> greeting.txt; echo x > a.pyc; echo x > b.tmp", "", "");
    let config = scene.workspace.read("pdca.toml");
    let config = config.replace("max_auto_iters", "products = [\"*.tmp\"]\nmax_auto_iters");
    scene.workspace.write("pdca.toml", config.as_str());
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert_eq!(paths(&patch), ["a.pyc", "greeting.txt"]);
    scene.workspace.write("pdca.toml", config.replace("*.tmp", "a/b"));
    let ran = scene.pdca(&["run", "7"]).expect(2);
    assert!(ran.err.contains("`a/b` is a path"), "{}", ran.err);
}

#[test]
fn the_builder_is_told_the_gates_and_the_last_attempt_and_the_reviewer_the_red_side() {
    let builder = format!("cat > \"$log/prompt-$PDCA_ATTEMPT\"\n{MENDS}");
    let scene = scene(&builder, "", "");
    // The red side is to be had with the words of the prompt.
    let reviewer = format!(
        "cat > \"$log/prompt-review\"\n\
         eval \"$(grep -o 'git worktree add --detach \"$TMPDIR/red\" [0-9a-f]*' \"$log/prompt-review\")\"\n\
         ! grep -q ok \"$TMPDIR/red/greeting.txt\"\ngrep -q hello \"$TMPDIR/red/greeting.txt\"\n{PASSES}"
    );
    let text = format!("log=\"$PDCA_WORKSPACE/calls\"\nset -eu\n{reviewer}\n");
    scene.workspace.write("leaves/reviewer.sh", text);
    let config = scene.workspace.read("pdca.toml");
    scene
        .workspace
        .write("pdca.toml", config.replace("[leaves.reviewer]", "[leaves.reviewer]\nretries = 0"));
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    let first = scene.workspace.read("calls/prompt-1");
    let second = scene.workspace.read("calls/prompt-2");
    let review = scene.workspace.read("calls/prompt-review");
    let gate = "- `T3-tests` (T3 Runtime): `grep -q ok greeting.txt`";
    for prompt in [&first, &second, &review] {
        assert!(prompt.contains(gate), "{prompt}");
    }
    assert!(!first.contains("iteration-v1"), "{first}");
    assert!(second.contains("/bundle/iteration-v1` is the attempt before this one"), "{second}");
    assert!(scene.workspace.path().join("results/issue_7/check-review.md").exists());
}
