//! Sign-off at a terminal: the real binary in a pseudo-terminal, with a person who types.

use pdca_e2e::{Ran, Scene, terminal};
use pdca_state::sha256_hex;

const STANDING: &str = "Validation — fitness-to-purpose — does it serve the people who use it?";

/// Makes a bundle that waits for sign-off, with these open items, in a workspace without a target.
fn awaiting(scene: &Scene, id: &str, open: &[&str], gate: &str) {
    scene.workspace.brief(id, &[]);
    let file = |name: &str| format!("results/issue_{id}/{name}");
    let patch =
        format!("diff --git a/{id} b/{id}\n--- a/{id}\n+++ b/{id}\n@@ -1 +1 @@\n-x\n+{id}\n");
    let digest = sha256_hex(patch.as_bytes());
    scene.workspace.write(file("patch.diff"), patch);
    scene.workspace.write(
        file("check-gates.json"),
        format!(
            r#"{{"issue_dir": "issue_{id}", "overall": "{gate}", "patch_digest": "{digest}", "rows": [
            {{"check": "T3 tests", "result": "{gate}", "rule_id": "T3-tests", "path_line": "1 test", "gating": true, "element": "T3"}}]}}"#
        ),
    );
    scene.workspace.write(file("check-review.md"), "| Item | Verdict | Basis |\n|---|---|---|\n");
    let boxes: String = open.iter().map(|item| ["- [ ] ", item, "\n"].concat()).collect();
    let summary = format!(
        "# Result — issue {id}\n\n## 6. NEEDS-HUMAN\n\n{boxes}\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n\
         - Outcome:\n- Iteration delta (if iterating):\n- By / date:\n\n## 10. Act candidates\n"
    );
    scene.workspace.write(file("SUMMARY.md"), summary);
}

/// A workspace without a target, with `count` bundles: every third has nothing open, the others the standing question.
fn cheap(count: usize) -> Scene {
    let scene = Scene::new("");
    scene.workspace.config("");
    for number in 1..=count {
        let open: &[&str] = if number % 3 == 0 { &[] } else { &[STANDING] };
        awaiting(&scene, &number.to_string(), open, "pass");
    }
    scene
}

fn summary(scene: &Scene, id: &str) -> String {
    let dir = scene.workspace.bundle(id);
    let archived = dir.join("iteration-v1/SUMMARY.md");
    let path = if archived.exists() { archived } else { dir.join("SUMMARY.md") };
    fs_err::read_to_string(path).expect("there is a summary")
}

#[test]
fn thirty_cheap_bundles_take_two_keys_each_and_leave_what_the_typed_command_leaves() {
    const COUNT: usize = 30;
    let (keyed, typed) = (cheap(COUNT), cheap(COUNT));
    // Those with nothing open come first, by id; the others take one more key for their item.
    let keys = format!("{}{}\n", "a".repeat(COUNT / 3), "ay".repeat(COUNT - COUNT / 3));
    assert!(keys.len() <= 2 * COUNT);
    let ran = keyed.with_keys(&["review"], &keys).expect(0);
    assert!(ran.out.contains("30 decided, 0 left"), "{}", ran.out);
    for number in 1..=COUNT {
        let id = number.to_string();
        if number % 3 != 0 {
            typed.pdca(&["signoff", &id, "clear", "1"]).expect(0);
        }
        typed.pdca(&["signoff", &id, "accept"]).expect(0);
        assert_eq!(summary(&keyed, &id), summary(&typed, &id), "{id}");
    }
}

#[test]
fn every_key_leaves_what_its_command_leaves() {
    let scene = |gate: &str| {
        let scene = Scene::new("");
        scene.workspace.config("");
        for id in ["1", "2", "3", "4"] {
            awaiting(&scene, id, &[], if id == "4" { gate } else { "pass" });
        }
        scene
    };
    let (keyed, typed) = (scene("fail"), scene("fail"));
    // The note of 1 is typed, that of 2 comes from an editor, 3 is given up, 4 is accepted although it is red.
    let keys = "imind the gap\nepxsuperseded\nano browser here\n\n";
    let editor = "f() { echo from the editor > \"$1\"; }; f";
    keyed.with_keys_and(&[("EDITOR", editor)], &["review"], keys).expect(0);
    for args in [
        &["signoff", "1", "iterate-do", "--note", "mind the gap"][..],
        &["signoff", "2", "iterate-plan", "--note", "from the editor"],
        &["signoff", "3", "discontinue", "--note", "superseded"],
        &["signoff", "4", "accept", "--override", "T3-tests", "--reason", "no browser here"],
    ] {
        typed.pdca(args).expect(0);
    }
    for id in ["1", "2", "3", "4"] {
        assert_eq!(summary(&keyed, id), summary(&typed, id), "{id}");
    }
}

#[test]
fn what_is_undone_or_pending_when_the_terminal_goes_is_not_recorded() {
    let scene = cheap(3);
    let before = summary(&scene, "3");
    // 3 is accepted and undone; then the sitting is left.
    scene.with_keys_and(&[("PDCA_UNDO_SECS", "600")], &["review"], "auq").expect(0);
    assert_eq!(summary(&scene, "3"), before);
    // Killed within the window, from what it started itself: nothing was recorded, and the command is named.
    let killer = [("EDITOR", "kill -TERM $PPID; true"), ("PDCA_UNDO_SECS", "600")];
    let ran = scene.with_keys_and(&killer, &["review"], "ae");
    assert_ne!(ran.code, 0);
    assert!(
        ran.out.contains("not recorded") && ran.out.contains("pdca signoff 3 accept"),
        "{}",
        ran.out
    );
    assert_eq!(summary(&scene, "3"), before);
}

#[test]
fn a_decision_that_is_refused_while_the_person_quits_brings_its_card_back() {
    let scene = Scene::new("");
    scene.workspace.config("");
    for id in ["1", "2"] {
        awaiting(&scene, id, &[], "pass");
    }
    let editor = "f() { echo edited > results/issue_1/patch.diff; }; f";
    let env = [("EDITOR", editor), ("PDCA_UNDO_SECS", "600")];
    // 1 is accepted and its patch edited; the acceptance is refused at the end, and both are given up after that.
    let ran = scene.with_keys_and(&env, &["review"], "aeq\nxgone\nxedited\n\n").expect(0);
    assert!(ran.out.contains("2 decided, 0 left"), "{}", ran.out);
}

#[test]
fn ctrl_d_at_a_note_leaves_the_note_and_keeps_what_is_pending() {
    let scene = Scene::new("");
    scene.workspace.config("");
    for id in ["1", "2"] {
        awaiting(&scene, id, &[], "pass");
    }
    let terminal = terminal!(&scene, &[("PDCA_UNDO_SECS", "600")]);
    terminal.line("clear; pdca-with-faults review");
    terminal.wait_for("? keys");
    terminal.key("a");
    terminal.wait_for("`u` undoes it");
    terminal.key("x");
    terminal.wait_for("discontinue: why?");
    terminal.key("C-d");
    terminal.wait_for("nothing was decided");
    terminal.key("q");
    terminal.wait_for("Enter records at once");
    terminal.key("Enter");
    terminal.wait_for("1 decided, 1 left");
}

#[test]
fn without_a_terminal_the_typed_commands_are_named() {
    let scene = cheap(1);
    for args in [&["review"][..], &["signoff"], &["review", "--json"]] {
        let ran = scene.pdca(args).expect(2);
        assert!(ran.err.contains("pdca signoff <id>"), "{}", ran.err);
    }
}

#[test]
fn the_terminal_is_put_back_however_the_sitting_ends() {
    let scene = cheap(1);
    // The shell around it says which mode the terminal has before and after. A child that is killed, or that leaves the
    // terminal without echo, changes nothing either.
    let editors = [
        ("true", "q", "leaves"),
        ("kill -TERM $PPID; true", "e", "is told to end"),
        ("kill -KILL $$; true", "eq", "has a child that is killed"),
        ("stty -echo raw; true", "eq", "has a child that changes the mode"),
    ];
    for (editor, keys, ending) in editors {
        let mode = "echo mode=$(stty -g)";
        let line = format!("{mode}; EDITOR='{editor}' pdca review; {mode}");
        let ran = scene.shell_with_keys(&line, keys);
        let modes: Vec<&str> =
            ran.out.lines().filter_map(|line| Some(line.split_once("mode=")?.1)).collect();
        assert_eq!(modes.len(), 2, "{}", ran.out);
        assert_eq!(modes[0], modes[1], "the person {ending}");
    }
}

#[test]
fn a_signal_a_stop_and_a_panic_at_the_prompt_give_the_terminal_back() {
    let scene = cheap(2);
    let before = summary(&scene, "1");
    let terminal = terminal!(&scene, &[("PDCA_PANIC_KEY", "!"), ("PDCA_UNDO_SECS", "600")]);
    let review = "clear; pdca-with-faults review";
    // Ctrl-C while a decision could still be undone: it is not recorded, and its command is named.
    terminal.line(review);
    terminal.wait_for("? keys");
    terminal.tmux(&["send-keys", "ay"]);
    terminal.wait_for("`u` undoes it");
    terminal.key("C-c");
    let screen = terminal.wait_for("not recorded");
    assert!(screen.contains("pdca signoff 1 accept"), "{screen}");
    terminal.is_usual();
    // Ctrl-Z, something else, and back.
    terminal.line(review);
    terminal.wait_for("? keys");
    terminal.key("C-z");
    terminal.wait_for("Stopped");
    terminal.is_usual();
    terminal.line("clear; fg");
    terminal.wait_for("? keys");
    terminal.key("!");
    let screen = terminal.wait_for("asked for by PDCA_PANIC_KEY");
    assert!(screen.contains("panicked"), "{screen}");
    terminal.is_usual();
    assert_eq!(summary(&scene, "1"), before);
}

#[test]
fn a_new_bundle_opens_the_editor_at_a_terminal_only() {
    let scene = Scene::new("");
    let brief = "- **Slug:** from-the-editor\n- **Defect:** wrong\n- **Success criterion:** right\n- **Repo + branch target:** team/app @ main\n- **Disposition hint:** fix\n";
    scene.workspace.write("filled.md", brief);
    let editor = [("EDITOR", "cp filled.md")];
    let ran = scene.with_keys_and(&editor, &["new", "7", "--title", "Editor"], "").expect(0);
    assert!(ran.out.contains("pdca run 7"), "{}", ran.out);
    assert_eq!(scene.workspace.read("results/issue_7/brief.md"), brief);
    // Without a terminal, and with a failing editor, the template is left with the command that edits it.
    scene.pdca_with(&editor, &["new", "8", "--title", "Script"]).expect(0);
    assert!(scene.workspace.read("results/issue_8/brief.md").contains("Script"));
    let ran = scene.with_keys_and(&[("EDITOR", "false")], &["new", "9", "--title", "Failed"], "");
    assert!(ran.expect(0).out.contains("results/issue_9/brief.md"));
}

#[test]
fn a_card_a_diff_and_many_decisions_at_once() {
    let scene = cheap(4);
    let card = scene.pdca(&["show", "1", "--json"]).expect(0).json();
    assert_eq!(card["kind"], "card");
    assert_eq!(card["items"][0]["number"], 1);
    let diff = scene.pdca(&["diff", "1"]).expect(0).out;
    assert!(diff.starts_with("diff --git a/1 b/1\n"), "{diff}");
    assert_eq!(
        scene.pdca(&["diff", "1", "--stat"]).expect(0).out,
        "    +1     -1  1\n1 file, +1 -1\n"
    );
    // One of them cannot be accepted, so none is.
    awaiting(&scene, "9", &[], "fail");
    let refused = scene.pdca(&["signoff", "1", "2", "9", "accept", "--clear"]).expect(2);
    assert!(
        refused.err.contains("nothing was recorded") && refused.err.contains("gate red"),
        "{}",
        refused.err
    );
    assert!(summary(&scene, "1").contains("- Outcome:\n"));
    let Ran { out, .. } = scene
        .pdca(&["signoff", "1", "2", "3", "accept", "--clear", "--note", "all read"])
        .expect(0);
    assert_eq!(out, "1 is COMPLETE\n2 is COMPLETE\n3 is COMPLETE\n");
    let apart = cheap(1);
    apart.pdca(&["signoff", "1", "clear", "all", "--note", "all read"]).expect(0);
    apart.pdca(&["signoff", "1", "accept", "--note", "all read"]).expect(0);
    assert_eq!(summary(&scene, "1"), summary(&apart, "1"));
}

#[test]
fn a_shell_in_a_throwaway_checkout_has_the_change_and_leaves_nothing() {
    let builder = "echo changed > greeting.txt";
    let reviewer =
        r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";
    let gate =
        "\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test -f greeting.txt\"\n";
    let scene = Scene::with_leaves(builder, reviewer, gate);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let shell = scene.workspace.around().join("shell.sh");
    let seen = scene.workspace.around().join("seen");
    fs_err::write(
        &shell,
        format!(
            "#!/bin/sh\npwd > {seen}\ncat greeting.txt >> {seen}\necho spoilt > greeting.txt\n"
        ),
    )
    .unwrap();
    fs_err::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ran = scene.shell_with_keys(&format!("SHELL={shell} pdca review 7"), "tq").expect(0);
    let seen = fs_err::read_to_string(&seen).unwrap_or_else(|_| panic!("{}", ran.out));
    let (dir, greeting) = seen.split_once('\n').unwrap();
    assert_eq!(greeting, "changed\n");
    assert!(!camino::Utf8Path::new(dir).exists(), "{dir}");
    assert_eq!(scene.repo.read("greeting.txt"), b"hello\n");
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}
