//! Validated checks, which can be run.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use camino::Utf8PathBuf;
use pdca_process::SandboxMode;
use pdca_state::{Brief, Element};
use serde::{Deserialize, Serialize};

use crate::{
    config::{CheckConfig, CheckScope, Cwd, Flaky, GatesConfig},
    digest::Digest,
    problem::ConfigProblem,
    when::{When, WhenText},
};

/// The id of the check that reports a change outside of the paths its brief declares. No configured check may have it.
pub const DRIFT_ROW: &str = "touches-drift";

/// The configured checks in the order of the report.
///
/// Only [`GatesConfig::checks`](crate::GatesConfig::checks) creates them, so every check has a valid tier, file name
/// and command. They are serialized as the configuration they came from, and validated again when they are
/// deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "GatesConfig", try_from = "GatesConfig")]
pub struct Checks(Vec<Check>);

/// A deserialized configuration that is not valid.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the gates cannot be run: {}", listed(.0))]
pub struct UnusableChecks(pub Vec<ConfigProblem>);

fn listed(problems: &[ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl TryFrom<GatesConfig> for Checks {
    type Error = UnusableChecks;

    fn try_from(config: GatesConfig) -> Result<Self, UnusableChecks> {
        config.checks().map_err(UnusableChecks)
    }
}

impl From<Checks> for GatesConfig {
    /// Returns a configuration in which every check sets all its values itself.
    fn from(checks: Checks) -> Self {
        Self { checks: checks.0.into_iter().map(CheckConfig::from).collect(), ..Self::default() }
    }
}

impl From<Check> for CheckConfig {
    fn from(check: Check) -> Self {
        let (cmd, argv) = match check.command {
            Command::Shell(text) => (Some(text), None),
            Command::Argv(argv) => (None, Some(argv)),
        };
        Self {
            id: check.id,
            tier: check.tier.as_str().to_owned(),
            label: check.label,
            cmd,
            argv,
            subcmd: None,
            scope: check.scope,
            gating: Some(check.gating),
            timeout_secs: Some(check.timeout.as_secs()),
            when: check.when.map(WhenText::Table),
            fix: check.fix.map(|fix| match fix {
                Command::Shell(text) => text,
                argv @ Command::Argv(_) => argv.shown(),
            }),
            confirm: check.confirm,
            at_publish: check.at_publish,
            needs_lane: check.needs_lane,
            parallel: Some(check.parallel),
            cwd: Some(check.cwd),
            identity: check.identity,
            junit: check.junit.map(Into::into),
            flaky: Some(check.flaky),
            may_write: check.may_write,
            shares: check.shares,
            sandbox: check.sandbox,
            env: check.env,
            needs: check.needs,
            reads_primary: check.reads_primary,
        }
    }
}

impl Checks {
    pub(crate) fn new(checks: Vec<Check>) -> Self {
        Self(checks)
    }

    pub fn as_slice(&self) -> &[Check] {
        &self.0
    }

    /// Returns the checks that `is_wanted` selects, in the same order.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&Check) -> bool) -> Self {
        Self(self.0.iter().filter(|check| is_wanted(check)).cloned().collect())
    }

    /// Returns the checks that decide about a combination: those that block and are about the repository.
    pub fn combined(&self) -> impl Iterator<Item = &Check> {
        self.0.iter().filter(|check| check.gating && check.scope == CheckScope::Repo)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns one check and the checks before it that share their files with it.
    #[must_use]
    pub fn with_shared(&self, id: &str) -> Self {
        let Some(at) = self.0.iter().position(|check| check.id == id) else {
            return Self::default();
        };
        let before = self.0[..at].iter().filter(|check| check.shares);
        Self(before.chain([&self.0[at]]).cloned().collect())
    }

    /// Returns a digest over everything that decides what the checks do.
    pub fn digest(&self) -> String {
        let mut digest = Digest::default();
        for check in &self.0 {
            check.add_to(&mut digest);
        }
        digest.hex()
    }
}

/// One validated check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the config file")]
pub struct Check {
    /// The name of the check, its log and its job; safe as a file name.
    pub id: String,
    /// The element of the check matrix that it fills.
    pub tier: Element,
    /// A description for people; the id if none was given.
    pub label: String,
    pub command: Command,
    pub scope: CheckScope,
    /// If false, a failure does not block.
    pub gating: bool,
    pub timeout: Duration,
    /// Restricts the check to briefs with this text.
    pub when: Option<When>,
    /// A command to run once after a failure, before the check runs again.
    pub fix: Option<Command>,
    /// Runs the check a second time after a failure.
    pub confirm: bool,
    /// The check runs again at publication.
    pub at_publish: bool,
    /// The check uses the private names of a lane.
    pub needs_lane: bool,
    /// The check may run at the same time as its neighbours.
    pub parallel: bool,
    pub cwd: Cwd,
    /// Commands whose output is part of the fingerprint.
    pub identity: Vec<String>,
    pub flaky: Flaky,
    /// The `JUnit` report that it writes, relative to its working directory.
    pub junit: Option<Utf8PathBuf>,
    /// Additional paths that it may write, as configured.
    pub may_write: Vec<String>,
    /// Later checks see the files that it leaves in the checkout.
    pub shares: bool,
    /// Its own sandbox, if it has one.
    pub sandbox: Option<SandboxMode>,
    /// Variables that it gets, with their values.
    pub env: BTreeMap<String, String>,
    /// The variables of [`CHANGING`](crate::CHANGING) that it gets; all of them if unset.
    pub needs: Option<Vec<String>>,
    /// It can read the target's own checkout.
    pub reads_primary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments; never empty.
    Argv(Vec<String>),
}

impl Check {
    /// Returns the name in the report: the tier and the label.
    pub fn check(&self) -> String {
        let tier = self.tier.as_str();
        // Labels often start with their tier.
        let named = self
            .label
            .strip_prefix(tier)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
        if named { self.label.clone() } else { format!("{tier} {}", self.label) }
    }

    /// Returns true if the check runs again at publication, so that it may defer its verdict.
    pub fn may_defer(&self) -> bool {
        self.at_publish || (self.scope == CheckScope::Bundle && self.tier == Element::T4)
    }

    /// Returns true if the check applies to this brief, or if there is no brief: a superfluous run only costs time, a
    /// missing one costs the check.
    pub fn applies_to(&self, brief: Option<&Brief>) -> bool {
        match (&self.when, brief) {
            (Some(when), Some(brief)) => when.is_mentioned_in(brief),
            (None, _) | (_, None) => true,
        }
    }

    /// Returns true if the check gets this variable of [`CHANGING`](crate::CHANGING).
    pub(crate) fn gets(&self, name: &str) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.iter().any(|needed| needed == name))
    }

    /// Returns true if the check gets no variable that differs between a bundle and a combination with the same tree, so
    /// that a verdict about one is a verdict about the other.
    pub fn is_same_anywhere(&self) -> bool {
        self.needs.as_ref().is_some_and(Vec::is_empty)
    }

    /// Adds everything that decides what the check reports about a given tree.
    pub(crate) fn add_to(&self, digest: &mut Digest) {
        // All fields are named, so that a new one does not compile until it is decided whether it
        // belongs to the digest.
        let Self {
            id,
            tier,
            label: _,
            command,
            scope,
            gating,
            timeout,
            when,
            fix,
            confirm,
            at_publish,
            needs_lane,
            parallel: _,
            cwd,
            // Their output is added together with the programs.
            identity: _,
            // It decides how a failure is treated, not what the check reports. A verdict names the checks it did not
            // count.
            flaky: _,
            // It names the failing tests and decides nothing.
            junit: _,
            may_write,
            shares,
            sandbox,
            env,
            needs,
            reads_primary,
        } = self;
        digest.text("id", id);
        digest.text("tier", tier.as_str());
        command.add_to("command", digest);
        digest.text("scope", scope.as_str());
        digest.text("gating", &gating.to_string());
        digest.text("timeout", &timeout.as_secs().to_string());
        if let Some(when) = when {
            digest.text("when", &when.field);
            digest.text("contains", &when.substring.0.join("\n"));
            // Only where it is set, so that checks from before there was `equals` keep their
            // digests.
            if !when.equals.is_empty() {
                digest.text("equals", &when.equals.0.join("\n"));
            }
        }
        if let Some(fix) = fix {
            fix.add_to("fix", digest);
        }
        digest.text("confirm", &confirm.to_string());
        digest.text("at_publish", &at_publish.to_string());
        digest.text("needs_lane", &needs_lane.to_string());
        digest.text("cwd", cwd.as_str());
        // Only where they are set, so that checks from before there were these keys keep their digests.
        for path in may_write {
            digest.text("may_write", path);
        }
        if *shares {
            digest.text("shares", "true");
        }
        if let Some(mode) = sandbox {
            digest.text("row sandbox", mode.as_str());
        }
        for (name, value) in env {
            digest.text("env", name);
            digest.text("value", value);
        }
        if let Some(needs) = needs {
            digest.text("needs", &needs.join("\n"));
        }
        if *reads_primary {
            digest.text("reads_primary", "true");
        }
    }
}

impl Command {
    /// Returns the program and its arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
            Self::Argv(words) => words.clone(),
        }
    }

    /// Returns the command as a person would type it, on one line.
    pub fn shown(&self) -> String {
        match self {
            Self::Shell(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Self::Argv(words) => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                words.join(" ")
            }
        }
    }

    /// Returns the command as one line that can be pasted into a shell, whatever it contains.
    pub fn typed(&self) -> String {
        match self {
            Self::Shell(text) => format!("sh -c {}", one_line(text.trim())),
            Self::Argv(words) => {
                let words: Vec<String> = words.iter().map(|word| one_line(word)).collect();
                words.join(" ")
            }
        }
    }

    fn add_to(&self, name: &str, digest: &mut Digest) {
        match self {
            Self::Shell(text) => digest.text(name, text),
            Self::Argv(words) => {
                for word in words {
                    digest.text(name, word);
                }
                // Tells `["a b"]` from the shell text `a b`.
                digest.text(name, "argv");
            }
        }
    }
}

/// Quotes a word for a shell on one line. Line feeds and control characters are restored by `printf`.
fn one_line(word: &str) -> String {
    if !word.contains(char::is_control) {
        return quoted(word);
    }
    let mut escaped = String::with_capacity(word.len());
    for letter in word.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '\'' => escaped.push_str(r"'\''"),
            '\n' => escaped.push_str(r"\n"),
            control if control.is_control() => {
                let mut bytes = [0; 4];
                for byte in control.encode_utf8(&mut bytes).bytes() {
                    write!(escaped, "\\0{byte:03o}").expect("a String takes everything");
                }
            }
            other => escaped.push(other),
        }
    }
    format!("\"$(printf %b '{escaped}')\"")
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::GatesConfig;

    /// Returns the check that `text` describes, with defaults for its id, tier and command.
    pub(crate) fn check(text: &str) -> Check {
        let base = "id = 'a'\ntier = 'T1'\ncmd = 'true'\n";
        let unsaid = base.lines().filter(|line| {
            let key = line.split(' ').next().expect("a line has a key");
            let argv = key == "cmd" && text.contains("argv = ");
            !argv && !text.lines().any(|own| own.starts_with(&format!("{key} =")))
        });
        let unsaid: Vec<_> = unsaid.collect();
        let text = format!("[[checks]]\n{}\n{text}", unsaid.join("\n"));
        let checks: GatesConfig = toml::from_str(&text).expect("the test's row is well formed");
        checks.checks().expect("the test's row is valid").as_slice()[0].clone()
    }

    #[test]
    fn the_name_in_the_report_says_the_tier_once() {
        assert_eq!(check("label = 'lint'").check(), "T1 lint");
        assert_eq!(check("label = 'T1 lint'").check(), "T1 lint");
        assert_eq!(check("label = 'T10 rules'").check(), "T1 T10 rules");
        assert_eq!(check("").check(), "T1 a");
    }

    #[test]
    fn rows_that_travelled_are_the_same_rows() {
        let config: GatesConfig = toml::from_str(
            "cwd = 'worktree'\nparallel = true\ndefault_timeout_secs = 7\nrunner = 'cargo xtask'\nflaky = 'quarantine'\n\
             [[checks]]\nid = 'a'\ntier = 'T1'\nsubcmd = \"lint\\n--all\"\nwhen = 'Surfaces: gui'\nfix = \"a  b\\nc\"\n\
             [[checks]]\nid = 'b'\ntier = 'T2'\nargv = ['true', 'x y']\ncwd = 'workspace'\nlabel = 'two'\n\
             parallel = false\ntimeout_secs = 9\ngating = false\nconfirm = true\nflaky = 'fail'\n\
             [[checks]]\nid = 'c'\ntier = 'C4'\ncmd = 'make'\nscope = 'bundle'\nat_publish = true\nneeds_lane = true\n\
             identity = ['cc -v']\njunit = 'out/report.xml'\nconfirm = true\nmay_write = ['out']\nshares = true\nsandbox = 'off'",
        )
        .unwrap();
        let checks = config.checks().unwrap();
        let sent = serde_json::to_string(&checks).unwrap();
        let arrived: Checks = serde_json::from_str(&sent).unwrap();
        assert_eq!(arrived, checks);
        assert_eq!(arrived.digest(), checks.digest());
    }

    #[test]
    fn rows_that_travelled_are_validated_where_they_arrive() {
        let sent = r#"{"checks": [{"id": "../a", "tier": "T1", "cmd": "true"}]}"#;
        let error = serde_json::from_str::<Checks>(sent).unwrap_err().to_string();
        assert!(error.contains("the gates cannot be run") && error.contains("id"), "{error}");
    }

    #[test]
    fn some_of_the_rows_keep_their_order_and_have_a_digest_of_their_own() {
        let text = ["a", "b", "c"]
            .map(|id| format!("[[checks]]\nid = '{id}'\ntier = 'T1'\ncmd = 'true'\n"))
            .concat();
        let checks = toml::from_str::<GatesConfig>(&text).unwrap().checks().unwrap();
        let some = checks.only(|check| check.id != "b");
        let ids: Vec<&str> = some.as_slice().iter().map(|check| check.id.as_str()).collect();
        assert_eq!(ids, ["a", "c"]);
        assert_ne!(some.digest(), checks.digest());
        assert!(checks.only(|_| false).is_empty());
    }

    #[test]
    fn only_rows_that_publish_runs_again_may_defer() {
        assert!(check("tier = 'T4'\nscope = 'bundle'").may_defer());
        assert!(check("at_publish = true").may_defer());
        assert!(!check("tier = 'T4'").may_defer());
        assert!(!check("tier = 'C4'\nscope = 'bundle'").may_defer());
    }

    #[test]
    fn a_row_applies_where_the_field_contains_the_text_in_any_case() {
        let brief = Brief::parse("- **Slug:** x\n- **Surfaces:** CLI and\n  GUI\n");
        assert!(check("when = 'surfaces: gui'").applies_to(Some(&brief)));
        assert!(!check("when = 'Surfaces: web'").applies_to(Some(&brief)));
        assert!(!check("when = 'Scope: gui'").applies_to(Some(&brief)));
        assert!(check("when = 'Surfaces: web'").applies_to(None));
        let old = Brief::parse("- **Slug:** x\n- **Disposition:** fix\n");
        assert!(check("when = 'Disposition hint fix'").applies_to(Some(&old)));
        assert!(check("").applies_to(Some(&brief)));
    }

    #[test]
    fn the_digest_changes_with_what_runs_and_not_with_the_words_about_it() {
        let digest = |text: &str| Checks::new(vec![check(text)]).digest();
        assert_eq!(digest("label = 'x'"), digest("label = 'y'"));
        assert_ne!(digest("cmd = 'true'"), digest("cmd = 'false'"));
        assert_ne!(digest("gating = true"), digest("gating = false"));
        assert_ne!(digest("argv = ['a b']"), digest("argv = ['a', 'b']"));
        assert_ne!(digest("cmd = 'a'"), digest("argv = ['a']"));
    }

    #[test]
    fn a_command_of_several_lines_is_typed_on_one() {
        let words = Command::Argv(vec!["./a b".into(), "x\ny".into(), "$z".into()]);
        assert_eq!(words.typed(), r#"'./a b' "$(printf %b 'x\ny')" '$z'"#);
        let odd = Command::Shell("a\u{85}\t\\'".into());
        assert_eq!(odd.typed(), r#"sh -c "$(printf %b 'a\0302\0205\0011\\'\''')""#);
    }

    #[test]
    fn a_command_is_shown_on_one_line() {
        assert_eq!(check("cmd = \"\"\"\nmake\n  test\"\"\"").command.shown(), "make test");
        assert_eq!(
            check("argv = ['./run', 'a b', \"it's\", '']").command.shown(),
            r"./run 'a b' 'it'\''s' ''"
        );
    }
}
