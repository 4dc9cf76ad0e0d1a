//! Names of failing tests, extracted from the output of a check.
//!
//! Test runners report failures in a few well-known forms. [`Scanner`] reads output in one pass,
//! with bounded memory, and collects the names from all of these forms:
//!
//! | runner | form |
//! |---|---|
//! | cargo test | `test a::b ... FAILED`, `---- a::b stdout ----`, the list below `failures:` |
//! | cargo nextest | `FAIL [ 0.1s] (1/2) crate a::b`, also `TIMEOUT`, `SIGSEGV`, `ABORT`; `TRY n` only in the final list |
//! | pytest | `FAILED file::test - why`, `ERROR file`, `file::test FAILED [ 5%]`, `[gw0] [ 5%] FAILED file::test` |
//! | unittest | `FAIL: test (module.Class.test)`; `ERROR:` and `UNEXPECTED SUCCESS:` below a line of `=` |
//! | go test | `--- FAIL: Test/sub (0.00s)`, `FAIL pkg [build failed]`, and the events of `-json` |
//! | jest, vitest, mocha, `node --test` | `● suite › test` below `FAIL file`, `FAIL file > test`, the list below `n failing`, `✖ test (1ms)` |
//! | TAP | `not ok 1 - name`, subtests under the name of their parent, without `# TODO` and `# SKIP` |
//! | `GoogleTest`, `CTest`, automake | `[  FAILED  ] A.b`, the list below `The following tests FAILED:`, `FAIL: name` |
//!
//! A line `FAILED name` counts as well, from any program. The names are evidence for people and take no part in a
//! verdict.

mod junit;
mod lines;
mod tap;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::marker::harmless;

pub use junit::read_junit;
use lines::LineSplitter;
use tap::Tap;

/// The number of names that are kept.
pub const MOST_NAMES: usize = 20;
/// The number of names that are told apart. Beyond it a test that is reported twice may count twice.
const MOST_SEEN: usize = 1 << 16;
/// The number of names of subtests and suites that are remembered until their parent is known.
const MOST_PENDING: usize = 256;
/// The number of last non-trivial lines that are kept.
const LAST_LINES: usize = 2;

/// The tests that failed, in the order they were reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// Their names, at most [`MOST_NAMES`]. Each is one printable line of at most 120 characters.
    pub names: Vec<String>,
    /// The number of further failing tests.
    pub more: usize,
}

impl Failing {
    pub fn only(name: String) -> Self {
        Self { names: vec![name], more: 0 }
    }

    /// Sanitizes names that were read from a file another process may have written.
    pub(crate) fn checked(self) -> Self {
        let names = self.names.iter().take(MOST_NAMES).map(|name| harmless(name.as_bytes()));
        Self { names: names.filter(|name| !name.is_empty()).collect(), more: self.more }
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the number of failing tests.
    pub fn count(&self) -> usize {
        self.names.len() + self.more
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join(", "))?;
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}

/// The reasons for a failure that were found in an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digested {
    pub failing: Failing,
    /// The last line that looks like an error message.
    pub complaint: Option<String>,
    /// The last non-trivial lines, in order.
    pub last: Vec<String>,
}

/// Extracts the failing tests and the last lines from a whole output.
pub fn digest_output(output: &[u8]) -> Digested {
    let mut scanner = Scanner::default();
    scanner.feed(output);
    scanner.finish()
}

/// Collects names in bounded memory.
#[derive(Debug, Default)]
struct Names {
    kept: Vec<String>,
    seen: HashSet<u64>,
    more: usize,
}

impl Names {
    fn add(&mut self, name: &str) {
        let name = harmless(name.as_bytes());
        if name.is_empty() {
            return;
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        if self.seen.len() < MOST_SEEN && !self.seen.insert(hasher.finish()) {
            return;
        }
        // More than are shown, because `forget` may still take a parent out for its subtests.
        if self.kept.len() < MOST_PENDING {
            self.kept.push(name);
        } else {
            self.more += 1;
        }
    }

    /// Removes a name for which a more detailed one was found.
    fn forget(&mut self, name: &str) {
        let name = harmless(name.as_bytes());
        self.kept.retain(|kept| *kept != name);
    }

    fn finish(mut self) -> Failing {
        let more = self.more + self.kept.len().saturating_sub(MOST_NAMES);
        self.kept.truncate(MOST_NAMES);
        Failing { names: self.kept, more }
    }
}

/// Reads an output piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    lines: LineSplitter,
    reading: Reading,
}

impl Scanner {
    /// Reads the next piece. Pieces may begin and end anywhere.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        let reading = &mut self.reading;
        self.lines.feed(piece, &mut |line| reading.line(line));
    }

    pub(crate) fn finish(mut self) -> Digested {
        let reading = &mut self.reading;
        self.lines.finish(&mut |line| reading.line(line));
        self.reading.finish()
    }
}

/// The state of the parser between two lines.
#[derive(Debug, Default)]
struct Reading {
    names: Names,
    tap: Tap,
    /// The previous line is a rule of `=`, as unittest draws above each failure.
    below_rule: bool,
    list: List,
    /// The test file that jest reports on.
    jest_file: Option<String>,
    /// Nextest has printed its summary; from there on a `TRY` line is final.
    nextest_summary: bool,
    /// Suites that `node --test` opened: their own failure only means that a test in them failed.
    node_suites: VecDeque<String>,
    /// Mocha has printed the number of failing tests.
    mocha: bool,
    /// The parts of a name that mocha spreads over several lines.
    mocha_name: Vec<String>,
    complaint: Option<String>,
    last: VecDeque<String>,
}

/// The list that the current line may belong to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum List {
    #[default]
    None,
    /// `failures:` of cargo test.
    Cargo,
    /// `The following tests FAILED:` of `CTest`.
    CTest,
}

impl Reading {
    /// Reads one line, without colours and line end.
    fn line(&mut self, line: &str) {
        let text = line.trim();
        self.note_last_words(text);
        let was_below_rule = std::mem::take(&mut self.below_rule);
        if self.read_list(line, text) || text.is_empty() {
            return;
        }
        // unittest's rule has 70; shorter ones are headings of other programs.
        if text.len() > 40 && text.bytes().all(|byte| byte == b'=') {
            self.below_rule = true;
            return;
        }
        // The specific forms first: `FAILED name` below would take a part of most of them for a
        // name.
        let is_known = self.cargo(line)
            || self.nextest(text)
            || self.go(line, text)
            || self.python(line, text, was_below_rule)
            || self.javascript(line, text)
            || self.tap.line(line, &mut self.names)
            || self.native(text);
        if !is_known && let Some(rest) = line.strip_prefix("FAILED ") {
            self.plain(rest);
        }
    }

    fn finish(mut self) -> Digested {
        self.tap.flush(&mut self.names);
        Digested { failing: self.names.finish(), complaint: self.complaint, last: self.last.into() }
    }

    fn note_last_words(&mut self, text: &str) {
        if !says_something(text) {
            return;
        }
        if is_complaint(text) {
            self.complaint = Some(harmless(text.as_bytes()));
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(harmless(text.as_bytes()));
    }

    /// Reads a line of a list of names; `false` if the line is not part of one.
    fn read_list(&mut self, line: &str, text: &str) -> bool {
        match self.list {
            List::Cargo if line.starts_with("    ") && !text.is_empty() => {
                self.names.add(text);
                true
            }
            List::CTest if line.starts_with(char::is_whitespace) && line.contains(" - ") => {
                let name = text.split_once(" - ").map_or(text, |(_, name)| name);
                self.names.add(name.rsplit_once(" (").map_or(name, |(name, _)| name));
                true
            }
            List::None | List::Cargo | List::CTest => {
                self.list = match line {
                    "failures:" => List::Cargo,
                    "The following tests FAILED:" => List::CTest,
                    _ => List::None,
                };
                self.list != List::None
            }
        }
    }

    fn cargo(&mut self, line: &str) -> bool {
        let name = if let Some(rest) = line.strip_prefix("test ") {
            rest.strip_suffix(" ... FAILED")
        } else if let Some(rest) = line.strip_prefix("---- ") {
            rest.strip_suffix(" stdout ----").or_else(|| rest.strip_suffix(" stderr ----"))
        } else {
            line.strip_suffix(" --- FAILED")
        };
        let Some(name) = name else { return false };
        let kinds = [" - should panic", " - compile fail", " - compile"];
        let bare = kinds.iter().find_map(|kind| name.strip_suffix(kind));
        self.names.add(bare.unwrap_or(name));
        true
    }

    fn nextest(&mut self, text: &str) -> bool {
        if text.starts_with("Summary [") {
            self.nextest_summary = true;
            return true;
        }
        let Some((word, rest)) = text.split_once(" [") else { return false };
        let (is_try, word) = match word.strip_prefix("TRY ") {
            Some(tried) => (true, tried.trim_start_matches(|c: char| c.is_ascii_digit()).trim()),
            None => (false, word),
        };
        let is_red = matches!(word, "FAIL" | "TIMEOUT" | "ABORT" | "LEAK-FAIL" | "XFAIL")
            || word.strip_prefix("SIG").is_some_and(|name| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase())
            });
        let Some((time, name)) = rest.split_once(']') else { return false };
        let is_time = time.ends_with('s')
            && time.trim().bytes().all(|byte| byte.is_ascii_digit() || b" .s>".contains(&byte));
        if !is_red || !is_time {
            return false;
        }
        if !is_try || self.nextest_summary {
            let name = name.trim();
            // The position among all tests: `(1/5)`.
            let name = match name.strip_prefix('(').and_then(|name| name.split_once(')')) {
                Some((_, name)) => name.trim(),
                None => name,
            };
            self.names.add(name);
        }
        true
    }

    fn go(&mut self, line: &str, text: &str) -> bool {
        if let Some(rest) = text.strip_prefix("--- FAIL: ") {
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            self.go_test(name);
            return true;
        }
        if let Some(package) = line.strip_prefix("FAIL\t") {
            // `[build failed]` and `[setup failed]`: there is no test to name. Otherwise the tests
            // were named before.
            if package.ends_with(" failed]") {
                self.names.add(package);
            }
            return true;
        }
        if line.starts_with('{') && line.contains("\"Action\":\"") {
            let Ok(event) = serde_json::from_str::<GoEvent>(line) else { return false };
            match (event.action.as_str(), event.package, event.test) {
                ("fail", Some(package), Some(name)) => self.go_test(&format!("{package} {name}")),
                ("fail", Some(package), None) if event.failed_build.is_some() => {
                    self.names.add(&format!("{package} [build failed]"));
                }
                _ => {}
            }
            return true;
        }
        false
    }

    /// Adds a go test or subtest. Subtests replace their parent, because they are more specific.
    fn go_test(&mut self, name: &str) {
        let part = format!("{name}/");
        if self.names.kept.iter().any(|kept| kept.starts_with(&part)) {
            return;
        }
        for (at, _) in name.match_indices('/') {
            self.names.forget(&name[..at]);
        }
        self.names.add(name);
    }

    fn python(&mut self, line: &str, text: &str, below_rule: bool) -> bool {
        if let Some(name) = line.strip_prefix("FAIL: ") {
            self.names.add(&unittest_name(name));
            return true;
        }
        let below = ["ERROR: ", "UNEXPECTED SUCCESS: "];
        if let Some(name) = below.iter().find_map(|word| line.strip_prefix(word))
            && below_rule
        {
            self.names.add(&unittest_name(name));
            return true;
        }
        let line = match line.strip_prefix("[gw").and_then(|rest| rest.split_once("%] ")) {
            Some((_, rest)) => rest,
            None => line,
        };
        for word in ["FAILED ", "ERROR "] {
            if let Some(node) = line.strip_prefix(word) {
                let node = before_reason(node);
                let is_node = node.contains("::") || node.strip_suffix(".py").is_some();
                if is_node {
                    self.names.add(node);
                    return true;
                }
            }
        }
        // In verbose mode the verdict follows the test.
        for word in [" FAILED", " ERROR"] {
            if let Some((node, rest)) = text.split_once(word)
                && node.contains("::")
                && node.contains(".py")
                && (rest.is_empty() || rest.trim_start().starts_with('['))
            {
                self.names.add(node);
                return true;
            }
        }
        false
    }

    fn javascript(&mut self, line: &str, text: &str) -> bool {
        if let Some(rest) = text.strip_prefix("FAIL ") {
            let rest = rest.trim();
            if rest.contains(" > ") {
                self.names.add(rest);
                return true;
            }
            let file = rest.rsplit_once(" (").map_or(rest, |(file, _)| file);
            let is_script = [".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".mts", ".cts"]
                .iter()
                .any(|end| file.ends_with(end));
            if is_script {
                self.jest_file = Some(file.to_owned());
            }
            return is_script;
        }
        if let (Some(name), Some(file)) = (line.strip_prefix("  ● "), &self.jest_file) {
            if name == "Test suite failed to run" {
                let name = format!("{file}: {name}");
                self.names.add(&name);
            // jest prints what a test wrote to the console under the same mark.
            } else if name != "Console" {
                self.names.add(name);
            }
            return true;
        }
        if let Some(suite) = text.strip_prefix("▶ ") {
            if self.node_suites.len() == MOST_PENDING {
                self.node_suites.pop_front();
            }
            self.node_suites.push_back(suite.to_owned());
            return true;
        }
        if let Some(rest) = text.strip_prefix("✖ ") {
            // The duration tells a test of `node --test` from other uses of the cross.
            if let Some((name, time)) = rest.rsplit_once(" (")
                && time.ends_with("ms)")
                && !self.node_suites.iter().any(|suite| suite == name)
            {
                self.names.add(name);
            }
            return true;
        }
        self.mocha(text)
    }

    fn mocha(&mut self, text: &str) -> bool {
        if text.strip_suffix(" failing").is_some_and(is_number) {
            self.mocha = true;
            return true;
        }
        if !self.mocha {
            return false;
        }
        if let Some((number, part)) = text.split_once(") ")
            && is_number(number)
        {
            self.mocha_name = vec![part.to_owned()];
        } else if self.mocha_name.is_empty() {
            return false;
        } else {
            self.mocha_name.push(text.to_owned());
        }
        if let Some(name) = self.mocha_name.join(" › ").strip_suffix(':') {
            self.names.add(name);
            self.mocha_name.clear();
        } else if self.mocha_name.len() > 16 {
            self.mocha_name.clear();
        }
        true
    }

    /// Reads the output of `GoogleTest`.
    fn native(&mut self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix("[  FAILED  ] ") else { return false };
        let name = rest.split_once(", where ").map_or(rest, |(name, _)| name);
        let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
        // `[  FAILED  ] 2 tests, listed below:`
        if name.contains('.') && !name.contains(' ') {
            self.names.add(name);
        }
        true
    }

    /// Reads the rest of a line `FAILED name`, possibly with a reason.
    fn plain(&mut self, rest: &str) {
        if rest.starts_with(|first: char| first == '(' || first.is_ascii_digit()) {
            return;
        }
        let name = before_reason(rest);
        let name = name.split_once(": ").map_or(name, |(name, _)| name);
        self.names.add(name.trim_end_matches(':'));
    }
}

/// An event of `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: String,
    package: Option<String>,
    test: Option<String>,
    failed_build: Option<serde::de::IgnoredAny>,
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Converts `test_a (module.Class.test_a)` into the dotted name that unittest accepts on its command line.
fn unittest_name(shown: &str) -> String {
    let Some((test, rest)) = shown.split_once(" (") else { return shown.to_owned() };
    let Some((class, part)) = rest.split_once(')') else { return shown.to_owned() };
    let is_dotted = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
    };
    if !is_dotted(class) || !is_dotted(test) {
        return shown.to_owned();
    }
    let whole = if class.starts_with("unittest.loader.") {
        // A module that cannot be imported.
        test.to_owned()
    } else if class == test || class.ends_with(&format!(".{test}")) {
        class.to_owned()
    } else {
        format!("{class}.{test}")
    };
    format!("{whole}{part}")
}

/// Strips the reason from a pytest node id. Parameters may contain ` - ` themselves.
fn before_reason(node: &str) -> &str {
    let mut depth = 0_usize;
    for (at, letter) in node.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && node[at..].starts_with(" - ") => return &node[..at],
            _ => {}
        }
    }
    // An unbalanced bracket is part of a parameter.
    match node.split_once("] - ") {
        Some((name, _)) if depth > 0 => &node[..=name.len()],
        _ => node.trim_end(),
    }
}

/// Returns true if a line is more than a rule, a bracket or a mark.
fn says_something(text: &str) -> bool {
    text.chars().filter(|letter| letter.is_alphanumeric()).nth(1).is_some()
}

/// Returns true if a line looks like an error message, except for summaries that follow the actual errors.
fn is_complaint(text: &str) -> bool {
    const AFTER: [&str; 8] = [
        "error: could not compile",
        "error: aborting due to",
        "error: test failed",
        "error: doctest failed",
        "error: test run failed",
        "error Command failed",
        "npm ",
        "make",
    ];
    if AFTER.iter().any(|start| text.starts_with(start)) {
        return false;
    }
    let starts = ["error", "Error", "ERROR", "fatal", "FATAL", "E   ", "panic:", "FAIL", "assert"];
    let inside = ["Error: ", " error: ", ": error", "Exception: ", "panicked at", ": not found"];
    starts.iter().any(|start| text.starts_with(start))
        || inside.iter().any(|word| text.contains(word))
}
