//! A terminal with a person at it: what programs show is collected, what is typed reaches them.
//!
//! The terminal is made by `script` of util-linux, which every Linux distribution has.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// The longest wait for something that must be shown.
const PATIENCE: Duration = Duration::from_secs(120);

/// A shell script at a terminal of its own, as the leader of its session.
#[derive(Debug)]
pub struct Pty {
    script: Child,
    typed: Arc<Mutex<ChildStdin>>,
    shown: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// The file with the name of the terminal and the process id of the shell.
    facts: Utf8PathBuf,
}

/// An answer that is typed whenever the text is the last thing on the screen.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The text.
    pub to: &'static str,
    /// The answer.
    pub with: &'static str,
}

impl Pty {
    /// Starts a shell script in `dir` at a new terminal, where somebody gives these replies. `facts` names a file that does
    /// not exist. The script begins once the terminal can be looked at.
    #[expect(clippy::disallowed_methods, reason = "the test plays the person who starts it")]
    pub fn start(
        dir: &Utf8Path,
        facts: &Utf8Path,
        env: impl IntoIterator<Item = (String, String)>,
        script: &str,
        replies: Vec<Reply>,
    ) -> Self {
        // Moved into place, so that a file of facts that is there is complete.
        let line = format!(
            "stty rows 24 cols 100; {{ tty; stty -g; echo $$; }} > '{facts}.new'; mv '{facts}.new' '{facts}'; {script}"
        );
        let mut script = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"])
            .current_dir(dir)
            .envs(env)
            // `script` runs its command with `$SHELL`.
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`script` of util-linux is there");
        let typed = Arc::new(Mutex::new(script.stdin.take().expect("it is piped")));
        let mut reader = script.stdout.take().expect("it is piped");
        let shown = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (to, by) = (Arc::clone(&shown), Arc::clone(&typed));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                let mut all = to.0.lock().expect("nobody panics with it");
                all.extend_from_slice(&chunk[..read]);
                to.1.notify_all();
                let reply = replies.iter().find(|reply| all.ends_with(reply.to.as_bytes()));
                drop(all);
                if let Some(reply) = reply {
                    // The program may be gone by now.
                    let mut typed = by.lock().expect("nobody panics with it");
                    drop(typed.write_all(reply.with.as_bytes()).and_then(|()| typed.flush()));
                }
            }
        });
        let pty = Self { script, typed, shown, facts: facts.to_owned() };
        let begun = Instant::now();
        while !pty.facts.exists() {
            assert!(begun.elapsed() < PATIENCE, "no shell was started: {}", pty.shown());
            std::thread::park_timeout(Duration::from_millis(10));
        }
        pty
    }

    fn fact(&self, line: usize) -> String {
        let facts = fs_err::read_to_string(&self.facts).expect("the facts are there");
        facts.lines().nth(line).expect("there are three facts").to_owned()
    }

    /// The process id of the shell, or of the program that it became.
    pub fn pid(&self) -> rustix::process::Pid {
        let pid = self.fact(2).parse().expect("a process id is a number");
        rustix::process::Pid::from_raw(pid).expect("a process has an id")
    }

    /// Types.
    pub fn type_text(&self, text: &str) {
        let mut typed = self.typed.lock().expect("nobody panics with it");
        typed.write_all(text.as_bytes()).and_then(|()| typed.flush()).expect("it is open");
    }

    /// Everything that was shown so far.
    pub fn shown(&self) -> String {
        let shown = self.shown.0.lock().expect("nobody panics with it");
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Waits until `text` was shown.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        let mut shown = self.shown.0.lock().expect("nobody panics with it");
        while !String::from_utf8_lossy(&shown).contains(text) {
            let is_late = begun.elapsed() > PATIENCE;
            assert!(!is_late, "`{text}` was not shown:\n{}", String::from_utf8_lossy(&shown));
            let waited = self.shown.1.wait_timeout(shown, Duration::from_millis(100));
            shown = waited.expect("nobody panics with it").0;
        }
    }

    /// The settings of the terminal before the script began, as `stty` writes them.
    pub fn settings_before(&self) -> String {
        self.fact(1)
    }

    /// Waits for the end of the script: its exit code, or 128 and the signal.
    pub fn wait(&mut self) -> i32 {
        let status = self.script.wait().expect("it is a child");
        status.code().unwrap_or(-1)
    }
}
