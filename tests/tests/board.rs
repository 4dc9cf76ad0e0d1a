//! The board in a real terminal: keys in, screens out, files on disk.

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;
use pdca_process::Tool;
use pdca_testkit::pdca_bin;

/// The longest time for something that must come. It bounds a test that hangs, and says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal in tmux with a shell in it. Gone with its value.
struct Terminal {
    socket: Utf8PathBuf,
}

impl Terminal {
    /// Opens a terminal of 80 by 24 in the workspace; `None` where tmux is not installed.
    fn open(scene: &Scene, env: &[(&str, &str)]) -> Option<Self> {
        if Tool::new("tmux").arg("-V").run().is_err() {
            return None;
        }
        let terminal = Self { socket: scene.workspace.around().join("tmux") };
        let mut args = vec!["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"];
        let home = scene.workspace.around().to_string();
        let mut all: Vec<String> = [
            ("HOME", home.as_str()),
            ("XDG_CONFIG_HOME", &home),
            ("USER", "ada"),
            ("PS1", "ready> "),
            ("SHELL", "/bin/sh"),
        ]
        .iter()
        .chain(env)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
        all.push(format!("PATH={}:/usr/local/bin:/usr/bin:/bin", pdca_bin().parent()?));
        for pair in &all {
            args.extend(["-e", pair]);
        }
        args.extend(["-c", scene.workspace.path().as_str(), "/bin/bash --norc --noprofile"]);
        terminal.tmux(&args);
        terminal.wait_for("ready>");
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let tool = Tool::new("tmux").args(["-S", self.socket.as_str()]).args(args);
        let output = tool.timeout(PATIENCE).run().expect("tmux answers");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Types a line for the shell.
    fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.key("Enter");
    }

    fn key(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    #[track_caller]
    fn wait_until(&self, what: &str, done: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if done(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "waited too long for {what}:\n{screen}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Starts the board and returns its process id.
    fn board(&self, scene: &Scene) -> i32 {
        self.line("clear; sh -c 'echo $$ > ../pid; exec pdca-with-faults board'");
        self.wait_for(" 1 Decide ");
        let pid = fs_err::read_to_string(scene.workspace.around().join("pid"));
        pid.expect("the shell wrote it").trim().parse().expect("it is a number")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let tool = Tool::new("tmux").args(["-S", self.socket.as_str(), "kill-server"]);
        // It may be gone already.
        drop(tool.run());
    }
}

macro_rules! terminal {
    ($scene:expr, $env:expr) => {
        match Terminal::open($scene, $env) {
            Some(terminal) => terminal,
            None => {
                eprintln!(
                    "skipped: {}; tmux is not installed",
                    std::thread::current().name().unwrap_or("a test")
                );
                return;
            }
        }
    };
}

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
    let summary = "# Result\n\n## 6. Needs a person\n\n- [ ] V Validation — fitness-to-purpose — Is this what they want?\n\n## 9. Sign-off\n\n- Outcome:\n- By / date:\n";
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
        // The card must be there before it can be decided.
        terminal.wait_for("accept it as done");
        terminal.key("a");
        terminal.wait_for("tick 1?");
        terminal.key("y");
    }
    terminal.wait_for("waits for you 0 ");
    assert!(!has_children(pid), "a frame started a process");
    terminal.key("q");
    terminal.wait_until("the end of the board", |screen| {
        screen.contains("leave?") || screen.contains("ready>")
    });
    terminal.key("Enter");
    terminal.wait_for("ready>");
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
    let terminal = terminal!(&scene, &[("NO_COLOR", "1")]);
    let pid = terminal.board(&scene);
    terminal.wait_for("accept it as done");
    terminal.key("a");
    terminal.wait_for("tick 1?");
    terminal.key("y");
    terminal.wait_for("1 not recorded yet");
    let pid = rustix::process::Pid::from_raw(pid).expect("it is a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    terminal.wait_for("Killed");
    assert_eq!(scene.results(), before);
    // The terminal of a killed program is raw; `reset` is what people type.
    terminal.line("stty sane; clear");
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
    let wide = terminal.wait_until("a wide frame", |screen| {
        screen.lines().any(|line| line.chars().count() == 120) && screen.lines().count() >= 39
    });
    assert!(wide.contains("accept it as done"), "{wide}");
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
    terminal.line("clear; stty -a | tr ' ;' '\\n\\n' | grep -cx -e icanon -e echo");
    terminal.wait_until("two modes of a usual terminal", |screen| {
        screen.lines().any(|line| line.trim() == "2")
    });
}

#[test]
fn the_diff_and_a_shell_have_the_terminal_and_give_it_back() {
    let scene = Scene::with_leaves(
        "echo \"$1\" > \"file-$1.txt\"",
        REVIEWER,
        "\n[[gates.checks]]\nid = \"T1-there\"\ntier = \"T1\"\ncmd = \"test -f greeting.txt\"\n",
    );
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let terminal =
        terminal!(&scene, &[("PAGER", "cat; echo PAGED; read x < /dev/tty"), ("PS1", "ready> ")]);
    terminal.board(&scene);
    terminal.wait_for("accept it as done");
    terminal.key("d");
    let diff = terminal.wait_for("PAGED");
    assert!(diff.contains("+7"), "{diff}");
    terminal.key("Enter");
    terminal.wait_for("waits for you 1 ");
    terminal.key("t");
    terminal.wait_until("a shell", |screen| !screen.contains(" 1 Decide "));
    terminal.line("cat file-7.txt && exit");
    terminal.wait_for("waits for you 1 ");
    terminal.key("q");
    terminal.wait_for("ready>");
}

#[test]
fn without_a_terminal_the_board_is_the_watched_status() {
    let scene = Scene::new("");
    awaiting(&scene, "1");
    let started = scene.start_to_file(&["board"], "watched");
    scene.wait_until("the status is written", |scene| {
        fs_err::read_to_string(scene.workspace.path().join("watched"))
            .is_ok_and(|text| text.contains("AWAITING-SIGNOFF"))
    });
    started.signal(rustix::process::Signal::TERM);
    started.wait();
}
