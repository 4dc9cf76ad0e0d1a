//! A real browser without a window, driven through its `DevTools` protocol.
//!
//! Chromium reads requests from one pipe and writes answers and events to another, one JSON object each, ended by a zero
//! byte. No port is opened and no further program is needed.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest life of a browser. It bounds a test that hangs, and says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(240);

const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
];

/// A page in a browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    number: u64,
    session: Option<String>,
    events: VecDeque<Value>,
    /// What was written to the console, policy violations and exceptions included.
    pub console: Vec<String>,
    /// Every address that was asked for.
    pub requests: Vec<String>,
    over: Arc<AtomicBool>,
    _profile: TempDir,
}

impl Browser {
    /// Opens a page; `None` where Chromium is not installed.
    pub fn open(page: &Utf8Path) -> Option<Self> {
        let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
            .into_iter()
            .find(|path| Utf8Path::new(path).exists())?;
        let mut browser = Self::start(program);
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let id = &target["targetId"];
        let attached =
            browser.call("Target.attachToTarget", &json!({"targetId": id, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Network.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.call("Page.navigate", &json!({"url": format!("file://{page}")}));
        browser.wait_for("Page.loadEventFired");
        Some(browser)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the browser is the other side of the test, not a child of the product"
    )]
    fn start(program: &str) -> Self {
        let profile = TempDir::new().expect("a temporary directory can be made");
        // The protocol has descriptors 3 and 4; a shell moves the pipes there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 >/dev/null 2>&1", "sh", program])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        let to = child.stdin.take().expect("it is a pipe");
        let from = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let over = Arc::new(AtomicBool::new(false));
        watch(rustix::process::Pid::from_child(&child), Arc::clone(&over));
        Self {
            child,
            to,
            from,
            number: 0,
            session: None,
            events: VecDeque::new(),
            console: Vec::new(),
            requests: Vec::new(),
            over,
            _profile: profile,
        }
    }

    /// Calls a method of the protocol and returns its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let number = self.number;
        let mut request = json!({"id": number, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        let mut bytes = serde_json::to_vec(&request).expect("a request is JSON");
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser reads");
        loop {
            let message = self.read();
            if message["id"] == number {
                assert_eq!(message["error"], Value::Null, "{method}");
                return message["result"].clone();
            }
        }
    }

    /// Evaluates an expression in the page.
    pub fn eval(&mut self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &params);
        assert_eq!(result["exceptionDetails"], Value::Null, "{script}");
        result["result"]["value"].clone()
    }

    /// Presses a key: a letter, `Enter`, `Escape` or `Tab`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "Tab" => (9, ""),
            other => (u32::from(other.as_bytes()[0].to_ascii_uppercase()), other),
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [kind, "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params =
                json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    /// Types a text into what has the focus.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    fn wait_for(&mut self, method: &str) {
        while !self.events.iter().any(|event| event["method"] == method) {
            self.read();
        }
    }

    /// Reads a message, and notes what the page did.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("the browser writes");
        assert_eq!(bytes.pop(), Some(0), "the browser ended, or took too long");
        let message: Value = serde_json::from_slice(&bytes).expect("the browser writes JSON");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                self.requests.extend(params["request"]["url"].as_str().map(str::to_owned));
            }
            Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                self.console.push(params.to_string());
            }
            _ => {}
        }
        if message["method"].is_string() {
            self.events.push_back(message.clone());
        }
        message
    }
}

/// Ends the browser if it lives too long.
fn watch(pid: rustix::process::Pid, over: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let end = std::time::Instant::now() + PATIENCE;
        while !over.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                // It may have ended by itself.
                _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                return;
            }
            std::thread::park_timeout(left.min(Duration::from_secs(1)));
        }
    });
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // It may have ended by itself; then there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
