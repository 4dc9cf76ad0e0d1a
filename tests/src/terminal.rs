//! A terminal with a shell in it, operated from outside through tmux: keys in, screens out.

use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use pdca_process::Tool;
use pdca_testkit::pdca_bin;

use crate::Scene;

/// The longest time for something that must come. It bounds a test that hangs, and says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal in tmux with a shell in it. Gone with its value.
pub struct Terminal {
    socket: Utf8PathBuf,
}

impl Terminal {
    /// Opens a terminal of 80 by 24 in the workspace; `None` where tmux is not installed.
    pub fn open(scene: &Scene, env: &[(&str, &str)]) -> Option<Self> {
        if Tool::new("tmux").arg("-V").run().is_err() {
            return None;
        }
        let terminal = Self { socket: scene.workspace.around().join("tmux") };
        let home = scene.workspace.around().to_string();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", pdca_bin().parent()?);
        let usual = [
            ("HOME", home.as_str()),
            ("XDG_CONFIG_HOME", &home),
            ("USER", "ada"),
            ("PATH", &path),
            ("PS1", "ready> "),
            ("SHELL", "/bin/sh"),
            ("RUST_BACKTRACE", "0"),
        ];
        let env: Vec<String> =
            usual.iter().chain(env).map(|(name, value)| format!("{name}={value}")).collect();
        let mut args = vec!["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"];
        // By `env` and not by a shell of tmux, which has ideas of its own about PATH and PS1.
        args.extend(["-c", scene.workspace.path().as_str(), "env"]);
        args.extend(env.iter().map(String::as_str));
        args.extend(["/bin/bash", "--norc", "--noprofile"]);
        terminal.tmux(&args);
        terminal.wait_for("ready>");
        Some(terminal)
    }

    pub fn tmux(&self, args: &[&str]) -> String {
        let tool = Tool::new("tmux").args(["-S", self.socket.as_str()]).args(args);
        let output = tool.timeout(PATIENCE).run().expect("tmux answers");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Types a line for the shell.
    pub fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.key("Enter");
    }

    pub fn key(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    #[track_caller]
    pub fn wait_until(&self, what: &str, done: impl Fn(&str) -> bool) -> String {
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
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits for the card of a bundle, which is read while the list is there already.
    #[track_caller]
    pub fn wait_for_card(&self, id: &str) -> String {
        self.wait_for(&format!("┌ {id} a "))
    }

    /// Starts the board and returns its process id.
    pub fn board(&self, scene: &Scene) -> i32 {
        self.line("clear; sh -c 'echo $$ > ../pid; exec pdca-with-faults board'");
        self.wait_for(" 1 Decide ");
        let pid = fs_err::read_to_string(scene.workspace.around().join("pid"));
        pid.expect("the shell wrote it").trim().parse().expect("it is a number")
    }
}

impl Terminal {
    /// Leaves the board, and confirms what is still pending.
    #[track_caller]
    pub fn leave(&self) {
        self.key("q");
        self.wait_until("the end of the board", |screen| {
            screen.contains("leave?") || screen.trim_end().ends_with("ready>")
        });
        self.key("Enter");
        self.wait_until("the prompt", |screen| screen.trim_end().ends_with("ready>"));
    }

    /// The terminal must edit lines, echo, and show the shell's own screen.
    #[track_caller]
    pub fn is_usual(&self) {
        self.wait_until("the prompt", |screen| screen.trim_end().ends_with("ready>"));
        self.line("clear; stty -a | tr ' ;' '\\n\\n' | grep -cx -e icanon -e echo");
        self.wait_until("two modes of a usual terminal", |screen| {
            screen.lines().any(|line| line.trim() == "2")
        });
        let flags = "#{alternate_on} #{mouse_any_flag}";
        assert_eq!(self.tmux(&["display-message", "-p", flags]).trim(), "0 0");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let tool = Tool::new("tmux").args(["-S", self.socket.as_str(), "kill-server"]);
        // It may be gone already.
        drop(tool.run());
    }
}

/// Opens a terminal, or ends the test where tmux is not installed.
#[macro_export]
macro_rules! terminal {
    ($scene:expr, $env:expr) => {
        match $crate::Terminal::open($scene, $env) {
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
