//! Checks that can be run: checked once, and nothing left to doubt.

use std::{fmt::Write as _, time::Duration};

use camino::Utf8PathBuf;
use pdca_state::{Brief, Element};
use serde::{Deserialize, Serialize};

use crate::{
    config::{CheckConfig, Cwd, Flaky, GatesConfig, Scope},
    digest::Digest,
    problem::ConfigProblem,
    when::{When, WhenText},
};

/// The id of the row about a change that leaves what its brief declares. No configured row has it.
pub const DRIFT_ROW: &str = "touches-drift";

/// The configured rows in the order of the report.
///
/// There is no way to make one but [`GatesConfig::checks`](crate::GatesConfig::checks), so every row has a
/// place in the matrix, a file name and something to run. They travel as the configuration that makes them,
/// and are validated again where they arrive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "GatesConfig", try_from = "GatesConfig")]
pub struct Checks(Vec<Check>);

/// A configuration that came from elsewhere and makes no checks.
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
    /// The configuration in which every row says everything itself.
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
        }
    }
}

impl Checks {
    pub(crate) fn new(checks: Vec<Check>) -> Self {
        Self(checks)
    }

    /// The rows in order.
    pub fn as_slice(&self) -> &[Check] {
        &self.0
    }

    /// Those of the rows that are wanted, in the same order.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&Check) -> bool) -> Self {
        Self(self.0.iter().filter(|check| is_wanted(check)).cloned().collect())
    }

    /// The rows that decide about a combination: those that block and are about the repository.
    pub fn combined(&self) -> impl Iterator<Item = &Check> {
        self.0.iter().filter(|check| check.gating && check.scope == Scope::Repo)
    }

    /// Whether nothing at all is configured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A digest over all that the rows say; another digest means another set of gates.
    pub fn digest(&self) -> String {
        let mut digest = Digest::default();
        for check in &self.0 {
            check.add_to(&mut digest);
        }
        digest.hex()
    }
}

/// One row that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the config file")]
pub struct Check {
    /// Names the row, its log and its job; safe as a file name.
    pub id: String,
    /// The element of the check matrix it fills.
    pub tier: Element,
    /// What it checks, for people; the id when nothing was said.
    pub label: String,
    /// What runs.
    pub command: Command,
    /// What it is about.
    pub scope: Scope,
    /// Whether red blocks.
    pub gating: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// Runs only where the brief says this.
    pub when: Option<When>,
    /// On red, run this once and the row again.
    pub fix: Option<Command>,
    /// On red, run the row once more.
    pub confirm: bool,
    /// Publish runs the row again.
    pub at_publish: bool,
    /// It uses the private names of a lane.
    pub needs_lane: bool,
    /// It may run at the same time as its neighbours.
    pub parallel: bool,
    /// Where it runs.
    pub cwd: Cwd,
    /// Commands whose answers are part of what judges.
    pub identity: Vec<String>,
    /// What its red means where it may be flaky.
    pub flaky: Flaky,
    /// The `JUnit` report that it writes, relative to where it runs.
    pub junit: Option<Utf8PathBuf>,
}

/// Something to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A text for `sh -c`.
    Shell(String),
    /// A program and its arguments; never empty.
    Argv(Vec<String>),
}

impl Check {
    /// The row's name in the report: its tier and what it checks.
    pub fn check(&self) -> String {
        let tier = self.tier.as_str();
        // Labels often begin with their tier already.
        let named = self
            .label
            .strip_prefix(tier)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
        if named { self.label.clone() } else { format!("{tier} {}", self.label) }
    }

    /// Whether publish runs it again, so that it may say "not yet".
    pub fn may_defer(&self) -> bool {
        self.at_publish || (self.scope == Scope::Bundle && self.tier == Element::T4)
    }

    /// Whether the row is about this brief. Without a brief nothing is filtered: a row too many
    /// costs time, a row too few costs the check.
    pub fn applies_to(&self, brief: Option<&Brief>) -> bool {
        match (&self.when, brief) {
            (Some(when), Some(brief)) => when.holds_for(brief),
            (None, _) | (_, None) => true,
        }
    }

    /// All that determines what the row would say about a given tree.
    pub(crate) fn add_to(&self, digest: &mut Digest) {
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
            // Its answers are added with the programs.
            identity: _,
            // It changes what a red means and not what the row says. A verdict to which a row did not count names it.
            flaky: _,
            // It names what failed and decides nothing.
            junit: _,
        } = self;
        digest.text("id", id);
        digest.text("tier", tier.as_str());
        command.add_to("command", digest);
        digest.text("scope", scope.as_str());
        digest.text("gating", &gating.to_string());
        digest.text("timeout", &timeout.as_secs().to_string());
        if let Some(when) = when {
            digest.text("when", &when.field);
            digest.text("contains", &when.substring);
        }
        if let Some(fix) = fix {
            fix.add_to("fix", digest);
        }
        digest.text("confirm", &confirm.to_string());
        digest.text("at_publish", &at_publish.to_string());
        digest.text("needs_lane", &needs_lane.to_string());
        digest.text("cwd", cwd.as_str());
    }
}

impl Command {
    /// The words that are started.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
            Self::Argv(words) => words.clone(),
        }
    }

    /// The command as a person would type it, on one line.
    pub fn shown(&self) -> String {
        match self {
            Self::Shell(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Self::Argv(words) => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                words.join(" ")
            }
        }
    }

    /// The command as one line that a shell can be given, whatever it consists of.
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
                digest.text(name, "argv");
            }
        }
    }
}

/// A word as a shell takes it, on one line even where the word has several: those are put back by
/// `printf`.
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

/// A word as a shell takes it.
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

    /// The row `text` describes, beside an id, a tier and a command that nobody cares about.
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
             identity = ['cc -v']\njunit = 'out/report.xml'\nconfirm = true",
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
