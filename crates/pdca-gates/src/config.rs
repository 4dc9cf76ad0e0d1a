//! The tables `[gates]` and `[[gates.checks]]` as they are written in the file.
//!
//! The types here hold unvalidated values. [`GatesConfig::checks`] turns them into [`Checks`], the only type that can
//! be run, or returns every problem at once: an invalid check is never run, skipped or dropped from the report.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use camino::{Utf8Component, Utf8Path};
use pdca_process::SandboxMode;
use pdca_state::Element;
use serde::{Deserialize, Serialize};

use crate::{
    check::{Check, Checks, Command, DRIFT_ROW},
    context::CHANGING,
    problem::{ConfigFault, ConfigProblem},
    when::{When, WhenText},
};

/// The timeout of a check if none is configured, in seconds.
const DEFAULT_TIMEOUT: u64 = 3600;
/// The longest accepted timeout, in seconds; a longer one is a typing mistake.
const LONGEST_TIMEOUT: u64 = 30 * 24 * 3600;
/// The longest id: it becomes a file name with an extension and a directory name with a digest.
const LONGEST_ID: usize = 100;

/// The table `[gates]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatesConfig {
    /// The checks in the order of the report.
    pub checks: Vec<CheckConfig>,
    /// The working directory of checks that do not set their own.
    pub cwd: Cwd,
    /// The default of [`CheckConfig::parallel`].
    pub parallel: bool,
    /// The timeout of checks that do not set their own; one hour if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_timeout_secs: Option<u64>,
    /// The command that a check's `subcmd` is appended to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The sandbox in which checks run.
    pub sandbox: SandboxMode,
    /// The default of [`CheckConfig::flaky`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Flaky>,
    /// Additional paths that confined checks may write: relative to the workspace, absolute, or below `~`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_write: Vec<String>,
    /// Names of variables of the driver that checks get; they get no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_pass: Vec<String>,
    /// Variables that checks get, with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Directories below the home directory that checks can read and leaves cannot write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<String>,
}

/// One `[[gates.checks]]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the config file")]
pub struct CheckConfig {
    /// The name of the check, its log and its job.
    pub id: String,
    /// The element of the check matrix that it fills.
    pub tier: String,
    /// A description for people.
    pub label: String,
    /// A command line for `sh -c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<String>,
    /// A program and its arguments, without a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Arguments for `[gates] runner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subcmd: Option<String>,
    pub scope: CheckScope,
    /// If false, a failure does not block. True if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gating: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// Restricts the check to briefs with this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<WhenText>,
    /// A shell command to run once after a failure, before the check runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Runs the check a second time after a failure; if that passes, the check is flaky.
    pub confirm: bool,
    /// The check runs again at publication, so it may defer its verdict until then.
    pub at_publish: bool,
    /// The check uses the private names of a lane.
    pub needs_lane: bool,
    /// The check may run at the same time as its neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Cwd>,
    /// Commands whose output is part of the fingerprint, such as `rustc -V`: a different output invalidates earlier
    /// verdicts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<String>,
    /// The `JUnit` report that the check writes, relative to its working directory, from which the names of failing
    /// tests are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub junit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Flaky>,
    /// Additional paths that this check may write, as in [`GatesConfig::may_write`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_write: Vec<String>,
    /// Later checks see the files that this one leaves in the checkout, such as build products. Without it they are
    /// removed.
    pub shares: bool,
    /// The sandbox of this check, if it is not that of [`GatesConfig::sandbox`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxMode>,
    /// Variables of this check, in addition to [`GatesConfig::env`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The variables of [`CHANGING`] that the check reads; all of them if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
    /// The check can read the target's own checkout.
    pub reads_primary: bool,
}

/// The treatment of a failure of a check that may be flaky.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flaky {
    /// Runs the check again until the result is certain.
    #[default]
    Confirm,
    /// Like `Confirm`; once the check is known to be flaky, its failures are reported but do not block.
    Quarantine,
    /// Treats every failure as final.
    Fail,
}

/// The subject of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckScope {
    /// One bundle and its patch.
    Bundle,
    /// A tree, whatever changed it. Continuous integration runs these checks too.
    #[default]
    Repo,
}

/// The working directory of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cwd {
    /// The checkout with the patch applied, or the directory of `pdca.toml` if no target is configured.
    #[default]
    Auto,
    /// The directory of `pdca.toml`.
    Workspace,
    /// The checkout with the patch applied, and nowhere else.
    Worktree,
}

impl CheckScope {
    /// Returns the value in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Repo => "repo",
        }
    }
}

impl Flaky {
    /// Returns the value in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Quarantine => "quarantine",
            Self::Fail => "fail",
        }
    }
}

impl Cwd {
    /// Returns the value in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Workspace => "workspace",
            Self::Worktree => "worktree",
        }
    }
}

impl GatesConfig {
    /// Returns all problems in the order of the file; empty if the checks can be run.
    pub fn validate(&self) -> Vec<ConfigProblem> {
        self.checks().err().unwrap_or_default()
    }

    /// Validates the checks; fails with all problems.
    pub fn checks(&self) -> Result<Checks, Vec<ConfigProblem>> {
        let mut problems = Vec::new();
        let head = |key, fault| ConfigProblem { row: None, id: String::new(), key, fault };
        if let Some(secs) = self.default_timeout_secs
            && let Some(fault) = bad_timeout(secs)
        {
            problems.push(head("default_timeout_secs", fault));
        }
        if self.runner.as_deref().is_some_and(says_nothing) {
            problems.push(head("runner", ConfigFault::Empty));
        }
        if let Some(fault) = self.env.keys().find_map(|name| bad_variable(name)) {
            problems.push(head("env", fault));
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut checks = Vec::with_capacity(self.checks.len());
        for (index, config) in self.checks.iter().enumerate() {
            let mut faults = Vec::new();
            // The id becomes the file name of a log, and some filesystems ignore case.
            if let Some(first) = seen.get(&config.id.to_lowercase()) {
                faults.push(("id", ConfigFault::DuplicateId { first: *first }));
            } else {
                seen.insert(config.id.to_lowercase(), index);
            }
            let check = self.check(config, &mut faults);
            problems.extend(faults.into_iter().map(|(key, fault)| ConfigProblem {
                row: Some(index),
                id: config.id.clone(),
                key,
                fault,
            }));
            checks.extend(check);
        }
        if problems.is_empty() { Ok(Checks::new(checks)) } else { Err(problems) }
    }

    /// Validates one check. `None` only if a fault was added.
    fn check(
        &self,
        config: &CheckConfig,
        faults: &mut Vec<(&'static str, ConfigFault)>,
    ) -> Option<Check> {
        faults.extend(bad_id(&config.id).map(|fault| ("id", fault)));
        let tier = tier(&config.tier).map_err(|fault| faults.push(("tier", fault)));
        if config.label.contains(char::is_control) {
            faults.push(("label", ConfigFault::ControlCharacter));
        }
        let command = self.command(config).map_err(|(key, fault)| faults.push((key, fault)));
        let secs = config.timeout_secs.or(self.default_timeout_secs).unwrap_or(DEFAULT_TIMEOUT);
        let own_timeout = config.timeout_secs.and_then(bad_timeout);
        faults.extend(own_timeout.map(|fault| ("timeout_secs", fault)));
        let when = config.when.as_ref().map(WhenText::read);
        if when.as_ref().is_some_and(When::is_incomplete) {
            faults.push(("when", ConfigFault::Empty));
        }
        let fix = config.fix.clone();
        faults.extend(fix.as_deref().and_then(bad_shell).map(|fault| ("fix", fault)));
        let flaky = config.flaky.or(self.flaky).unwrap_or_default();
        let junit = config.junit.as_deref().map(Utf8Path::new);
        faults.extend(junit.and_then(bad_path).map(|fault| ("junit", fault)));
        if config.may_write.iter().any(|path| path.trim().is_empty()) {
            faults.push(("may_write", ConfigFault::Empty));
        }
        faults.extend(config.env.keys().find_map(|name| bad_variable(name)).map(|it| ("env", it)));
        faults.extend(bad_needs(config).map(|fault| ("needs", fault)));
        Some(Check {
            id: config.id.clone(),
            tier: tier.ok()?,
            label: Some(&config.label)
                .filter(|label| !label.trim().is_empty())
                .unwrap_or(&config.id)
                .clone(),
            command: command.ok()?,
            scope: config.scope,
            gating: config.gating.unwrap_or(true),
            timeout: Duration::from_secs(secs),
            when,
            fix: fix.map(Command::Shell),
            // `flaky = "fail"` means that the first failure is final.
            confirm: config.confirm && flaky != Flaky::Fail,
            at_publish: config.at_publish,
            needs_lane: config.needs_lane,
            parallel: config.parallel.unwrap_or(self.parallel),
            cwd: config.cwd.unwrap_or(self.cwd),
            identity: config.identity.clone(),
            flaky,
            junit: junit.map(ToOwned::to_owned),
            may_write: config.may_write.clone(),
            shares: config.shares,
            sandbox: config.sandbox,
            env: self.env.clone().into_iter().chain(config.env.clone()).collect(),
            needs: config.needs.clone(),
            reads_primary: config.reads_primary,
        })
    }

    fn command(&self, config: &CheckConfig) -> Result<Command, (&'static str, ConfigFault)> {
        match (&config.cmd, &config.argv, &config.subcmd) {
            (Some(cmd), None, None) => bad_shell(cmd)
                .map_or_else(|| Ok(Command::Shell(cmd.clone())), |fault| Err(("cmd", fault))),
            (None, Some(argv), None) => {
                if argv.first().is_none_or(|program| program.trim().is_empty()) {
                    Err(("argv", ConfigFault::Empty))
                } else if argv.iter().any(|word| word.contains('\0')) {
                    Err(("argv", ConfigFault::ControlCharacter))
                } else {
                    Ok(Command::Argv(argv.clone()))
                }
            }
            (None, None, Some(subcmd)) => match (&self.runner, bad_shell(subcmd)) {
                (_, Some(fault)) => Err(("subcmd", fault)),
                (None, None) => Err(("subcmd", ConfigFault::NoRunner)),
                (Some(runner), None) => Ok(Command::Shell(format!("{runner} {subcmd}"))),
            },
            (None, None, None) => Err(("cmd", ConfigFault::NoCommand)),
            (Some(_), Some(_), _) | (_, Some(_), Some(_)) => {
                Err(("argv", ConfigFault::SeveralCommands))
            }
            (Some(_), None, Some(_)) => Err(("subcmd", ConfigFault::SeveralCommands)),
        }
    }
}

/// Variables that every check gets from pdca.
const FIXED: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

fn bad_variable(name: &str) -> Option<ConfigFault> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty()
        || name.starts_with(|it: char| it.is_ascii_digit())
        || !name.chars().all(plain)
    {
        Some(ConfigFault::NotAVariable { name: name.to_owned() })
    } else if FIXED.contains(&name) || name.starts_with("PDCA_") {
        Some(ConfigFault::SetByPdca { name: name.to_owned() })
    } else {
        None
    }
}

/// Checks that `needs` names variables that pdca sets, and all that the command names.
fn bad_needs(config: &CheckConfig) -> Option<ConfigFault> {
    let needs = config.needs.as_ref()?;
    if let Some(name) = needs.iter().find(|name| !CHANGING.contains(&name.as_str())) {
        return Some(ConfigFault::NotChanging { name: name.clone() });
    }
    let texts = [&config.cmd, &config.subcmd, &config.fix].into_iter().flatten();
    let texts: Vec<&String> = texts.chain(config.argv.iter().flatten()).collect();
    let is_named = |name: &str| texts.iter().any(|text| names_variable(text, name));
    let missing =
        CHANGING.iter().find(|name| is_named(name) && !needs.iter().any(|it| it == *name));
    missing.map(|name| ConfigFault::NotNeeded { name: (*name).to_owned() })
}

fn names_variable(text: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
    text.match_indices(name).any(|(at, _)| ends(&text[at + name.len()..]))
}

/// Checks the path of a file that a check writes into its working directory.
fn bad_path(path: &Utf8Path) -> Option<ConfigFault> {
    let is_inside = |part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir);
    if path.as_str().trim().is_empty() {
        Some(ConfigFault::Empty)
    } else if path.as_str().contains(char::is_control) {
        Some(ConfigFault::ControlCharacter)
    } else if !path.components().all(is_inside) {
        Some(ConfigFault::NotInside)
    } else {
        None
    }
}

fn tier(text: &str) -> Result<Element, ConfigFault> {
    if text.is_empty() {
        return Err(ConfigFault::Empty);
    }
    Element::ALL
        .iter()
        .copied()
        .find(|element| element.as_str() == text)
        .ok_or_else(|| ConfigFault::UnknownTier { tier: text.to_owned(), near: nearest_tier(text) })
}

/// Returns the element that was probably meant: the only one that `text` starts with, or else the only one at an edit
/// distance of one.
fn nearest_tier(text: &str) -> Option<Element> {
    let upper = text.trim().to_uppercase();
    let starts = |element: &&Element| upper.starts_with(element.as_str());
    let slipped = |element: &&Element| strsim::osa_distance(&upper, element.as_str()) == 1;
    let the_only = |mut found: Vec<Element>| found.pop().filter(|_| found.is_empty());
    the_only(Element::ALL.iter().filter(starts).copied().collect())
        .or_else(|| the_only(Element::ALL.iter().filter(slipped).copied().collect()))
}

fn bad_id(id: &str) -> Option<ConfigFault> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._+-".contains(letter);
    if id.is_empty() {
        Some(ConfigFault::Empty)
    } else if id.starts_with(['.', '-']) || !id.chars().all(plain) || id.len() > LONGEST_ID {
        Some(ConfigFault::NotAFileName)
    } else if id.eq_ignore_ascii_case(DRIFT_ROW) {
        Some(ConfigFault::Reserved)
    } else {
        None
    }
}

fn bad_timeout(secs: u64) -> Option<ConfigFault> {
    (secs == 0 || secs > LONGEST_TIMEOUT)
        .then_some(ConfigFault::TimeoutOutOfRange { secs, longest: LONGEST_TIMEOUT })
}

fn bad_shell(text: &str) -> Option<ConfigFault> {
    if says_nothing(text) {
        Some(ConfigFault::Empty)
    } else {
        text.contains('\0').then_some(ConfigFault::ControlCharacter)
    }
}

/// Returns true if a shell would do nothing and succeed: blank text, or comments only.
fn says_nothing(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(text: &str) -> GatesConfig {
        toml::from_str(text).expect("the test's text is of the right shape")
    }

    fn problems(text: &str) -> Vec<String> {
        let problems = checks(text).validate();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn variables_that_pdca_sets_and_needs_that_do_not_exist_are_refused() {
        let row = |keys: &str| {
            let text = format!("[[checks]]\nid = 'a'\ntier = 'T1'\n{keys}");
            problems(&text).join("; ")
        };
        assert_eq!(row("cmd = 'true'\nneeds = []\nenv = { LANG = 'de_DE.UTF-8' }"), "");
        assert_eq!(row("cmd = 'x $PDCA_BASE_DIR'\nneeds = []"), "");
        assert_eq!(row("cmd = 'x $PDCA_BASE'\nneeds = ['PDCA_BASE']"), "");
        for (keys, word) in [
            ("cmd = 'x $PDCA_BASE'\nneeds = []", "PDCA_BASE"),
            ("cmd = 'x'\nneeds = ['PDCA_ISSUES']", "PDCA_ISSUES"),
            ("cmd = 'x'\nenv = { HOME = '/h' }", "HOME"),
            ("cmd = 'x'\nenv = { 'A B' = '1' }", "A B"),
        ] {
            assert!(row(keys).contains(word), "{keys}: {}", row(keys));
        }
        assert!(problems("env = { PDCA_ISSUE = '7' }")[0].contains("PDCA_ISSUE"));
    }

    #[test]
    fn a_row_with_the_bare_minimum_gets_the_documented_defaults() {
        let checks =
            checks("checks = [{ id = 'C4-verify', tier = 'C4', cmd = 'true' }]").checks().unwrap();
        let check = &checks.as_slice()[0];
        assert_eq!(check.label, "C4-verify");
        assert_eq!(check.scope, CheckScope::Repo);
        assert_eq!(check.cwd, Cwd::Auto);
        assert_eq!(check.timeout, Duration::from_secs(3600));
        assert!(check.gating);
        assert!(!check.confirm && !check.parallel && !check.at_publish && !check.needs_lane);
    }

    #[test]
    fn what_the_table_says_holds_for_rows_that_say_nothing() {
        let checks = checks(
            "cwd = 'worktree'\nparallel = true\ndefault_timeout_secs = 7\nrunner = 'cargo xtask'\n\
             [[checks]]\nid = 'a'\ntier = 'T1'\nsubcmd = 'lint'\n\
             [[checks]]\nid = 'b'\ntier = 'T2'\nargv = ['true']\ncwd = 'workspace'\n\
             parallel = false\ntimeout_secs = 9\ngating = false",
        )
        .checks()
        .unwrap();
        let [a, b] = checks.as_slice() else { panic!("two rows were written") };
        assert_eq!((a.cwd, a.parallel, a.timeout.as_secs()), (Cwd::Worktree, true, 7));
        assert_eq!(a.command, Command::Shell("cargo xtask lint".to_owned()));
        assert_eq!((b.cwd, b.parallel, b.timeout.as_secs()), (Cwd::Workspace, false, 9));
        assert!(!b.gating);
    }

    #[test]
    fn what_a_red_means_is_said_for_the_row_or_for_all() {
        let text = "flaky = 'quarantine'\n\
             [[checks]]\nid = 'a'\ntier = 'T1'\ncmd = 'true'\nconfirm = true\n\
             [[checks]]\nid = 'b'\ntier = 'T2'\ncmd = 'true'\nconfirm = true\nflaky = 'fail'";
        let checks = checks(text).checks().unwrap();
        let [a, b] = checks.as_slice() else { panic!("two rows were written") };
        assert_eq!((a.flaky, a.confirm), (Flaky::Quarantine, true));
        assert_eq!((b.flaky, b.confirm), (Flaky::Fail, false));
        let unknown = toml::from_str::<GatesConfig>("flaky = 'maybe'").unwrap_err().to_string();
        assert!(unknown.contains("quarantine"), "{unknown}");
    }

    #[test]
    fn rows_are_confined_where_that_is_possible_unless_the_table_says_otherwise() {
        assert_eq!(checks("").sandbox, SandboxMode::Auto);
        assert_eq!(checks("sandbox = 'require'").sandbox, SandboxMode::Require);
        assert_eq!(checks("sandbox = 'off'").sandbox, SandboxMode::Off);
        let unknown = toml::from_str::<GatesConfig>("sandbox = 'on'").unwrap_err().to_string();
        assert!(unknown.contains("require"), "{unknown}");
    }

    #[test]
    fn every_problem_is_told_at_once_with_row_id_and_key() {
        insta::assert_snapshot!(problems(
            "default_timeout_secs = 0\n\
             [[checks]]\nid = 'C4-verify'\ntier = 'C4'\ncmd = 'true'\nargv = ['true']\n\
             [[checks]]\nid = 'c4-Verify'\ntier = 'c4'\ncmd = ' '\ntimeout_secs = 0\n\
             [[checks]]\nid = '../x'\ntier = 'C9'\n\
             [[checks]]\ntier = ''\nsubcmd = 'lint'\nwhen = 'Surfaces'\nfix = ''"
        ).join("\n"), @r"
        gates: `default_timeout_secs`: 0 seconds is not between 1 and 2592000
        gates.checks[0] `C4-verify`: `argv`: more than one of `cmd`, `argv` and `subcmd` is given
        gates.checks[1] `c4-Verify`: `id`: already the id of gates.checks[0]
        gates.checks[1] `c4-Verify`: `tier`: `c4` is not an element of the check matrix
        gates.checks[1] `c4-Verify`: `cmd`: is empty
        gates.checks[1] `c4-Verify`: `timeout_secs`: 0 seconds is not between 1 and 2592000
        gates.checks[2] `../x`: `id`: cannot be a file name
        gates.checks[2] `../x`: `tier`: `C9` is not an element of the check matrix
        gates.checks[2] `../x`: `cmd`: none of `cmd`, `argv` and `subcmd` is given
        gates.checks[3]: `id`: is empty
        gates.checks[3]: `tier`: is empty
        gates.checks[3]: `subcmd`: there is no `runner` to hand it to
        gates.checks[3]: `when`: is empty
        gates.checks[3]: `fix`: is empty
        ");
    }

    #[test]
    fn the_id_of_the_row_that_the_driver_writes_is_taken() {
        assert_eq!(
            problems("checks = [{ id = 'Touches-Drift', tier = 'T1', cmd = 'true' }]").len(),
            1
        );
    }

    #[test]
    fn lesson_17_a_mistyped_tier_is_a_config_error_that_names_the_near_one() {
        let near = |tier: &str| match super::tier(tier) {
            Err(ConfigFault::UnknownTier { near, .. }) => near.map(Element::as_str),
            other => panic!("{tier} was taken: {other:?}"),
        };
        assert_eq!(near("c4"), Some("C4"));
        assert_eq!(near("T3-suite"), Some("T3"));
        assert_eq!(near("4C"), Some("C4"));
        assert_eq!(near("T"), None, "one letter off from five elements");
        assert_eq!(near("C6"), None, "one letter off from five elements");
    }

    #[test]
    fn lesson_17_a_command_that_does_nothing_is_a_config_error() {
        for cmd in ["", "  \t ", "# to do", "\n# one\n  # two\n"] {
            let check = format!("checks = [{{ id = 'a', tier = 'T1', cmd = {cmd:?} }}]");
            assert_eq!(problems(&check), ["gates.checks[0] `a`: `cmd`: is empty"]);
        }
        assert_eq!(
            problems("checks = [{ id = 'a', tier = 'T1', argv = [] }]"),
            ["gates.checks[0] `a`: `argv`: is empty"]
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_name() {
        let check = "checks = [{ id = 'a', tier = 'T1', cmd = 'true', gatting = false }]";
        let error = toml::from_str::<GatesConfig>(check).unwrap_err();
        assert!(error.to_string().contains("gatting"), "{error}");
        assert!(error.span().is_some(), "the place is known");
    }
}
