//! The board in a real terminal: keys in, screens out, files on disk.

use pdca_e2e::cast::REVIEWER;
use pdca_e2e::{Scene, terminal};

/// A bundle that waits for sign-off with nothing but the standing question.
fn awaiting(scene: &Scene, id: &str) {
    scene.workspace.brief(id, &[("Slug", "a-cheap-one")]);
    let file = |name: &str| format!("results/issue_{id}/{name}");
    let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n";
    scene.workspace.write(file("patch.diff"), patch);
    let digest = pdca_state::sha256_hex(patch.as_bytes());
    let gates = format!(
        r#"{{"issue_dir": "issue_{id}", "overall": "pass", "patch_digest": "{digest}", "rows": [{{"check": "C4 verified", "result": "pass",
        "oracle": "./verify.sh", "rule_id": "C4-verify", "path_line": "1 test", "gating": true, "element": "C4"}}]}}"#
    );
    scene.workspace.write(file("check-gates.json"), gates);
    scene.workspace.write(
        file("check-review.md"),
        "| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n",
    );
    let summary = "# Result — issue / a-small-thing\n\n## 6. NEEDS-HUMAN — items the human must clear before sign-off\n\n- [ ] V Validation — fitness-to-purpose — Is this what they want?\n\n## 9. Check sign-off\n\n- Disposition confirmed / overridden:\n- Outcome:\n- Iteration delta (if iterating):\n- By / date:\n\n## 10. Act candidates\n";
    scene.workspace.write(file("SUMMARY.md"), summary);
}

/// Returns whether a process has started a child, ever: the faults of children that ended are counted, and those that
/// live are listed.
fn has_children(pid: i32) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).expect("it is alive");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("it has a name").1.split(' ').collect();
    let tasks = fs_err::read_dir(format!("/proc/{pid}/task")).expect("it is alive");
    let living = tasks.flatten().any(|task| {
        fs_err::read_to_string(task.path().join("children"))
            .is_ok_and(|children| !children.trim().is_empty())
    });
    // The eleventh field of the file is `cminflt`; the first two are the id and the name.
    fields[8] != "0" || living
}

fn is_gone(pid: i32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn twenty_bundles_are_decided_by_keyboard_as_if_typed_and_no_process_is_started() {
    let scene = Scene::new("");
    for id in 1..=20 {
        awaiting(&scene, &id.to_string());
    }
    let terminal = terminal!(&scene, &[]);
    let pid = terminal.board(&scene);
    for left in (1..=20).rev() {
        terminal.wait_for(&format!("waits for you {left} "));
        terminal.wait_for_card(&(21 - left).to_string());
        terminal.key("a");
        terminal.wait_for("tick 1?");
        terminal.key("y");
    }
    terminal.wait_for("waits for you 0 ");
    assert!(!has_children(pid), "a frame started a process");
    terminal.leave();
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().expect("status lists bundles");
    assert!(rows.iter().all(|row| row["state"] == "COMPLETE"), "{status:#}");
    // What is recorded is what the typed command records, byte for byte.
    let typed = Scene::new("");
    awaiting(&typed, "7");
    typed.pdca(&["signoff", "7", "accept", "--clear=1"]).expect(0);
    let file = "results/issue_7/SUMMARY.md";
    assert_eq!(scene.workspace.read(file), typed.workspace.read(file));
}

#[test]
fn a_board_that_is_killed_or_left_changes_nothing() {
    let scene = Scene::new("");
    for id in ["1", "2", "3"] {
        awaiting(&scene, id);
    }
    let before = scene.results();
    let terminal = terminal!(&scene, &[("NO_COLOR", "1"), ("PDCA_UNDO_SECS", "600")]);
    let pid = terminal.board(&scene);
    terminal.wait_for_card("1");
    terminal.key("a");
    terminal.wait_for("tick 1?");
    terminal.key("y");
    terminal.wait_for("1 not recorded yet");
    let pid = rustix::process::Pid::from_raw(pid).expect("it is a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    scene.wait_until("the board is gone", |_| is_gone(pid.as_raw_pid()));
    assert_eq!(scene.results(), before);
    // The terminal of a killed program is raw; `reset` is what people type.
    terminal.line("stty sane; clear; echo sane again");
    terminal.wait_until("the shell", |screen| screen.lines().any(|line| line == "sane again"));
    terminal.board(&scene);
    terminal.wait_for("waits for you 3 ");
    terminal.key("q");
    terminal.wait_for("ready>");
    assert_eq!(scene.results(), before);
}

#[test]
fn a_board_is_suspended_resumed_and_resized() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let terminal = terminal!(&scene, &[]);
    terminal.board(&scene);
    terminal.key("C-z");
    terminal.wait_for("Stopped");
    terminal.line("clear; echo shell $((40 + 2))");
    terminal.wait_for("shell 42");
    terminal.line("fg");
    terminal.wait_for("waits for you 1 ");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    // The card is read in the background, so a wide frame may come before it.
    terminal.wait_until("a wide frame with the whole card", |screen| {
        screen.lines().any(|line| line.chars().count() == 120)
            && screen.lines().count() >= 39
            && screen.contains("accept it as done")
    });
    terminal.key("2");
    terminal.wait_for("nothing is at work");
    terminal.key("3");
    terminal.wait_for("nothing is accepted yet");
    terminal.key("?");
    terminal.wait_for("Everywhere");
    terminal.key("x");
    terminal.key("q");
    terminal.wait_for("ready>");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let terminal = terminal!(&scene, &[("PDCA_PANIC_KEY", "!")]);
    terminal.board(&scene);
    terminal.key("!");
    let screen = terminal.wait_for("ready>");
    assert!(screen.contains("panicked"), "{screen}");
    assert!(!screen.contains(" 1 Decide "), "{screen}");
    terminal.is_usual();
}

#[test]
fn the_diff_a_shell_and_an_editor_have_the_terminal_and_give_it_back() {
    let gate =
        "\n[[gates.checks]]\nid = \"T1-there\"\ntier = \"T1\"\ncmd = \"test -f greeting.txt\"\n";
    let scene = Scene::with_leaves("echo \"$1\" > \"file-$1.txt\"", REVIEWER, gate);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]);
    let editor = "f() { echo mind the gap > \"$1\"; }; f";
    let terminal = terminal!(&scene, &[("PAGER", "cat"), ("EDITOR", editor)]);
    terminal.board(&scene);
    terminal.wait_for_card("7");
    // A pager that does not wait leaves its text until Enter.
    terminal.key("d");
    let diff = terminal.wait_for("Enter goes back");
    assert!(diff.contains("+7"), "{diff}");
    terminal.key("Enter");
    terminal.wait_for_card("7");
    // The shell is in a checkout with the change, and Ctrl-C in it ends nothing else.
    terminal.key("t");
    terminal.wait_for("`exit` brings you back");
    terminal.line("cat file-7.txt greeting.txt | tr '\\n' '+'");
    terminal.wait_for("7+hello+");
    terminal.key("C-c");
    terminal.line("exit");
    terminal.wait_for_card("7");
    // The note of the editor goes with the decision.
    terminal.key("e");
    terminal.wait_for("your note: mind the gap");
    terminal.key("i");
    terminal.wait_for("pdca signoff 7 iterate-do --note 'mind the gap'");
    terminal.leave();
    let summary = scene.workspace.read("results/issue_7/iteration-v1/SUMMARY.md");
    assert!(summary.contains("mind the gap"), "{summary}");
}

#[test]
fn a_board_that_is_told_to_end_gives_the_terminal_back_and_names_what_is_not_recorded() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let before = scene.results();
    let terminal = terminal!(&scene, &[("PDCA_UNDO_SECS", "600")]);
    let pid = terminal.board(&scene);
    terminal.wait_for_card("1");
    terminal.key("a");
    terminal.wait_for("tick 1?");
    terminal.key("y");
    terminal.wait_for("1 not recorded yet");
    let pid = rustix::process::Pid::from_raw(pid).expect("it is a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    let screen = terminal.wait_for("`pdca board` goes on");
    assert!(screen.contains("pdca signoff 1 accept --clear=1"), "{screen}");
    terminal.is_usual();
    assert_eq!(scene.results(), before);
}

#[test]
fn a_decision_that_is_refused_after_the_person_left_is_an_error() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let terminal = terminal!(&scene, &[("PDCA_UNDO_SECS", "600")]);
    terminal.board(&scene);
    terminal.wait_for_card("1");
    terminal.key("a");
    terminal.wait_for("tick 1?");
    terminal.key("y");
    terminal.wait_for("1 not recorded yet");
    scene.workspace.write("results/issue_1/patch.diff", "edited\n");
    terminal.key("q");
    terminal.wait_for("leave?");
    terminal.key("Enter");
    terminal.wait_for("error: 1 was not recorded: ");
    terminal.wait_for("ready>");
    terminal.line("echo code=$?");
    terminal.wait_for("code=1");
}

#[test]
fn a_board_whose_terminal_is_closed_ends() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let terminal = terminal!(&scene, &[]);
    let pid = terminal.board(&scene);
    terminal.wait_for_card("1");
    terminal.tmux(&["kill-server"]);
    scene.wait_until("the board is gone", |_| is_gone(pid));
}

#[test]
fn the_mouse_selects_and_the_filter_narrows() {
    let scene = Scene::new("");
    for id in ["1", "2", "3"] {
        awaiting(&scene, id);
    }
    let terminal = terminal!(&scene, &[]);
    terminal.board(&scene);
    terminal.wait_for_card("1");
    // The left button at column 5, row 5: the third row of the list.
    terminal.tmux(&["send-keys", "-l", "\u{1b}[<0;5;5M"]);
    terminal.wait_for_card("3");
    terminal.tmux(&["send-keys", "-l", "/2"]);
    terminal.wait_for("filter: 2");
    terminal.key("Enter");
    terminal.wait_for_card("2");
    terminal.wait_for("waits for you 1 ");
    terminal.key("q");
    terminal.wait_for("ready>");
}

#[test]
fn a_dumb_terminal_gets_the_watched_status() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let terminal = terminal!(&scene, &[]);
    terminal.line("clear; TERM=dumb pdca-with-faults board");
    terminal.wait_for("AWAITING_SIGNOFF");
    terminal.key("C-c");
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with("ready>"));
}

#[test]
fn without_a_terminal_the_board_is_the_watched_status() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let started = scene.start_to_file(&["board"], "watched");
    scene.wait_until("the status is written", |scene| {
        fs_err::read_to_string(scene.workspace.path().join("watched"))
            .is_ok_and(|text| text.contains("AWAITING_SIGNOFF"))
    });
    started.signal(rustix::process::Signal::TERM);
    started.wait();
}
