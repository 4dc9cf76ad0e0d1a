//! Notifications: a command of the user's, once for each change.
//!
//! Each runs on a thread of its own with a time limit. So one that fails or hangs is only said, once, and delays nothing.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use pdca_process::Tool;
use serde::Serialize;

use crate::flow::settings::NotifySettings;

/// The most output of a command that is read.
const MAX_OUTPUT: usize = 1 << 20;

/// What somebody may want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// A person has to do something.
    NeedsYou,
    /// A run or a flow ended.
    RunEnded,
    /// A run is blocked until a person decides.
    Blocked,
    /// A change was held because others are red with it.
    Culprit,
}

/// One notification, as it is given to the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notification {
    /// The version of this document.
    pub schema: u32,
    /// The kind of news.
    pub kind: NoticeKind,
    /// One line for people.
    pub text: String,
    /// The workspace.
    pub workspace: String,
    /// The bundles that it is about.
    pub ids: Vec<String>,
    /// The command that shows or continues it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyOutcome {
    /// It ended with 0.
    Done,
    /// It did not, for this reason.
    Failed(String),
}

/// Runs the command of `[notify]`, once for each change.
#[derive(Debug)]
pub struct Notifier {
    settings: NotifySettings,
    /// The last news of each kind.
    last: Mutex<BTreeMap<NoticeKind, String>>,
    /// The last command that was started; it waits for the one before.
    sent: Mutex<Option<JoinHandle<()>>>,
    report: Mutex<(Sender<String>, Receiver<String>)>,
}

impl Notifier {
    /// Makes a notifier that has told nothing yet.
    pub fn new(settings: NotifySettings) -> Self {
        Self {
            settings,
            last: Mutex::default(),
            sent: Mutex::default(),
            report: Mutex::new(channel()),
        }
    }

    /// Forgets the news of a kind, so that the same are told again.
    pub fn forget(&self, kind: NoticeKind) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).remove(&kind);
    }

    /// Starts the command, unless the same was told last. Returns whether it was news.
    pub fn tell(&self, notice: &Notification) -> bool {
        let text = serde_json::to_string(notice).unwrap_or_default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(&notice.kind) == Some(&text) {
            return false;
        }
        last.insert(notice.kind, text.clone());
        drop(last);
        let Some(cmd) = self.settings.cmd.clone().filter(|cmd| !cmd.trim().is_empty()) else {
            return true;
        };
        let timeout = self.settings.timeout();
        let to = self.report.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sent.take();
        let run = move || {
            // Side by side, "run ended" could arrive before what it ended with.
            if let Some(before) = before {
                drop(before.join());
            }
            let tool = Tool::new("sh").args(["-c", &cmd]).stdin(text + "\n").timeout(timeout);
            if let NotifyOutcome::Failed(why) = deliver(&tool.max_stdout(MAX_OUTPUT)) {
                // Nobody listens any more once the flow has ended.
                drop(to.send(why));
            }
        };
        let thread = std::thread::Builder::new().name("notify".to_owned()).spawn(run);
        // A system without a thread to spare has more urgent needs.
        *sent = thread.ok();
        true
    }

    /// Waits for the commands that still run; each has a time limit.
    pub fn finish(&self) {
        let last = self.sent.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            drop(last.join());
        }
    }

    /// Returns why a command failed, for each that did since the last call.
    pub fn failures(&self) -> Vec<String> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).1.try_iter().collect()
    }
}

fn deliver(tool: &Tool) -> NotifyOutcome {
    match tool.run() {
        Ok(output) if output.success() => NotifyOutcome::Done,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or_default().trim().to_owned();
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            NotifyOutcome::Failed(format!("exit code {}{said}", output.code))
        }
        Err(error) => NotifyOutcome::Failed(error.to_string()),
    }
}

/// Returns the sequence that has a terminal show `text`, if it is known to understand it.
pub fn osc9(term_program: Option<&str>, term: Option<&str>, text: &str) -> Option<String> {
    let known = ["iTerm.app", "WezTerm", "ghostty", "vscode"];
    let is_known = term_program.is_some_and(|program| known.contains(&program))
        || term.is_some_and(|term| term.contains("kitty") || term.starts_with("foot"));
    // A control character would end the sequence and let the rest of the text control the terminal.
    let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    is_known.then(|| format!("\u{1b}]9;{text}\u{7}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(text: &str) -> Notification {
        Notification {
            schema: 1,
            kind: NoticeKind::NeedsYou,
            text: text.to_owned(),
            workspace: "/w".to_owned(),
            ids: vec!["36".to_owned()],
            next: Some("pdca review".to_owned()),
        }
    }

    fn notifier(cmd: String) -> Notifier {
        Notifier::new(NotifySettings { cmd: Some(cmd), timeout_secs: 1, terminal: false })
    }

    #[test]
    fn each_change_is_told_once_with_the_facts_on_standard_input() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("told");
        let notifier = notifier(format!("cat >> '{}'", file.display()));
        for text in ["one", "one", "two"] {
            notifier.tell(&notice(text));
            notifier.finish();
        }
        notifier.forget(NoticeKind::NeedsYou);
        notifier.tell(&notice("two"));
        notifier.finish();
        let told = std::fs::read_to_string(file).unwrap();
        let told: Vec<serde_json::Value> =
            told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let texts: Vec<&str> = told.iter().map(|one| one["text"].as_str().unwrap()).collect();
        assert_eq!(texts, ["one", "two", "two"]);
        assert_eq!((&told[0]["kind"], &told[0]["ids"][0]), (&"needs-you".into(), &"36".into()));
        assert!(notifier.failures().is_empty());
    }

    #[test]
    fn a_command_that_fails_or_hangs_says_so_and_no_more() {
        let bad = notifier("echo no network >&2; exit 3".to_owned());
        assert!(bad.tell(&notice("x")));
        bad.finish();
        assert_eq!(bad.failures(), ["exit code 3: no network"]);
        let hangs = notifier("sleep 1000".to_owned());
        assert!(hangs.tell(&notice("x")));
        hangs.finish();
        assert_eq!(hangs.failures(), ["sh did not end within 1 seconds"]);
    }

    #[test]
    fn only_terminals_that_know_it_get_the_sequence_and_no_text_breaks_out_of_it() {
        assert_eq!(osc9(Some("iTerm.app"), None, "a\u{7}b").as_deref(), Some("\u{1b}]9;ab\u{7}"));
        assert!(osc9(None, Some("xterm-kitty"), "x").is_some());
        assert_eq!(osc9(Some("Apple_Terminal"), Some("xterm-256color"), "x"), None);
    }
}
