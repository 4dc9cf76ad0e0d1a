//! External dependencies: tools and services that a brief declares and a person provides.
//!
//! A builder that lacks one tends to work around it, and the evidence of the attempt is worth nothing. So the checks of
//! `[[doctor.checks]]` whose ids the brief names run before the builder is called, and a bundle whose check fails is held:
//! nothing is paid for, and the failure is recorded with its remedy. A dependency without a check becomes an item of §6.

use std::collections::BTreeSet;
use std::time::Duration;

use camino::Utf8Path;
use pdca_journal::events::WarningCode;
use pdca_process::{Cancel, Tool, ToolError};
use pdca_state::{Brief, Bundle, Snapshot, chain};
use serde::{Deserialize, Serialize};

use crate::config::WorkspaceConfig;
use crate::run_bundle::{BeatError, Driver};

/// The maximum length, in characters, of a check's message.
const SAID: usize = 200;
/// The maximum size of a check's output.
const OUTPUT: usize = 1 << 20;

/// `[doctor]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoctorSettings {
    /// The effect of a failed check on bundles that declare the dependency.
    pub guard: DependencyGuard,
    /// `[[doctor.checks]]`: the checks of external dependencies.
    pub checks: Vec<DependencyCheck>,
}

/// The effect of an unmet dependency on the bundles that declare it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyGuard {
    /// The bundle is not built.
    #[default]
    Hold,
    /// The bundle is built, with a warning.
    Warn,
    /// The checks run in `pdca doctor` only.
    Off,
}

/// A check of one external dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DependencyCheck {
    /// The name, as briefs write it in backticks in `External dependencies`.
    pub id: String,
    /// An `sh -c` command, run in the workspace; exit code 0 means that the dependency is there.
    pub cmd: String,
    /// The remedy: how to install or start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the workspace is broken without it; if not, `pdca doctor` only warns.
    #[serde(default = "yes")]
    pub required: bool,
    /// The time limit, in seconds.
    #[serde(default = "half_a_minute")]
    pub timeout_secs: u64,
}

fn yes() -> bool {
    true
}

fn half_a_minute() -> u64 {
    30
}

/// An invalid value in `[doctor]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` in [[doctor.checks]] {fault}")]
pub struct DoctorProblem {
    /// The place of the check in the list.
    pub index: usize,
    pub key: &'static str,
    fault: &'static str,
}

/// A declared dependency whose check failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetDependency {
    /// The id of the check.
    pub id: String,
    /// The end of the command, with its last words.
    pub said: String,
    pub hint: Option<String>,
}

impl std::fmt::Display for UnmetDependency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({})", self.id, self.said)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl DoctorSettings {
    /// Returns every problem of the checks.
    pub fn validate(&self) -> Vec<DoctorProblem> {
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, check) in self.checks.iter().enumerate() {
            let mut say = |key, fault| problems.push(DoctorProblem { index, key, fault });
            if check.id.trim().is_empty() {
                say("id", "is empty");
            } else if check.id.contains('`') {
                say("id", "has a backtick in it, which no brief could write");
            } else if !seen.insert(check.id.trim()) {
                say("id", "is there twice");
            }
            if check.cmd.trim().is_empty() {
                say("cmd", "is empty");
            }
            if check.timeout_secs == 0 {
                say("timeout_secs", "must be at least 1");
            }
        }
        problems
    }

    /// Returns the checks of the dependencies that a brief declares.
    pub fn declared_by(&self, brief: &Brief) -> Vec<&DependencyCheck> {
        let tokens = brief.external_dependencies();
        let is_named =
            |check: &&DependencyCheck| tokens.iter().any(|token| token == check.id.trim());
        self.checks.iter().filter(is_named).collect()
    }

    /// Returns the ids of all checks: dependencies that no person has to confirm.
    pub fn covered(&self) -> Vec<String> {
        self.checks.iter().map(|check| check.id.trim().to_owned()).collect()
    }
}

impl DependencyCheck {
    /// Runs the command. A command that cannot be run counts as a failed check.
    pub fn run(&self, workspace: &Utf8Path, cancel: &Cancel) -> Result<(), UnmetDependency> {
        let tool = Tool::new("sh")
            .args(["-c", &self.cmd])
            .cwd(workspace)
            .timeout(Duration::from_secs(self.timeout_secs))
            .killed_by(cancel)
            .max_stdout(OUTPUT);
        let said = match tool.run() {
            Ok(output) if output.success() => return Ok(()),
            Ok(output) => {
                // Most programs say on standard error what is missing; some say it on standard
                // output.
                let words = [&output.stderr, &output.stdout].map(|bytes| last_line(bytes));
                let words = words.into_iter().find(|words| !words.is_empty());
                let code = output.code;
                words.map_or_else(
                    || format!("exit code {code}"),
                    |words| format!("exit code {code}: {words}"),
                )
            }
            Err(error @ ToolError::TimedOut { .. }) => error.to_string(),
            Err(error) => chain(&error),
        };
        Err(UnmetDependency { id: self.id.trim().to_owned(), said, hint: self.hint.clone() })
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    last.chars().filter(|c| !c.is_control()).take(SAID).collect()
}

/// Returns an error if a dependency that the brief declares is not there.
pub(crate) fn require_dependencies(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    let unmet = unmet_dependencies(cx.config, snapshot.authored_brief(), cx.cancel);
    if cx.cancel.is_cancelled() {
        // A killed check says nothing about the dependency.
        return Err(BeatError::Interrupted);
    }
    match cx.config.doctor.guard {
        _ if unmet.is_empty() => Ok(()),
        DependencyGuard::Hold => Err(BeatError::Dependency { unmet }),
        DependencyGuard::Warn => {
            for one in &unmet {
                let text = format!("external dependency {one}; it is built all the same");
                cx.warn(bundle, WarningCode::DependencyUnmet, text);
            }
            Ok(())
        }
        DependencyGuard::Off => Ok(()),
    }
}

fn unmet_dependencies(
    config: &WorkspaceConfig,
    brief: Option<&Brief>,
    cancel: &Cancel,
) -> Vec<UnmetDependency> {
    let Some(brief) = brief.filter(|_| config.doctor.guard != DependencyGuard::Off) else {
        return Vec::new();
    };
    let checks = config.doctor.declared_by(brief);
    checks.into_iter().filter_map(|check| check.run(&config.dirs.root, cancel).err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, cmd: &str) -> DependencyCheck {
        DependencyCheck {
            id: id.to_owned(),
            cmd: cmd.to_owned(),
            hint: None,
            required: true,
            timeout_secs: 30,
        }
    }

    fn settings(checks: Vec<DependencyCheck>) -> DoctorSettings {
        DoctorSettings { checks, ..DoctorSettings::default() }
    }

    #[test]
    fn only_the_checks_that_the_brief_names_are_run() {
        let settings = settings(vec![check("protoc", "true"), check("docker", "true")]);
        let named = |text: &str| {
            let brief = Brief::parse(&format!("- **External dependencies:** {text}\n"));
            let checks = settings.declared_by(&brief);
            checks.iter().map(|check| check.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(named("`protoc`, and `etcd`"), ["protoc"]);
        assert_eq!(named("`docker` (no-check: it is the CI's)"), Vec::<String>::new());
        assert_eq!(named("none"), Vec::<String>::new());
        assert_eq!(named("protoc"), Vec::<String>::new(), "only words in backticks are declared");
    }

    #[test]
    fn a_failed_check_says_how_it_ended() {
        let said = |cmd: &str| check("x", cmd).run("/".into(), &Cancel::new()).unwrap_err().said;
        assert_eq!(check("x", "true").run("/".into(), &Cancel::new()), Ok(()));
        assert_eq!(said("exit 3"), "exit code 3");
        assert_eq!(said("echo out; printf 'one\\n two \\n\\n' >&2; exit 1"), "exit code 1: two");
        assert_eq!(said("echo out; exit 1"), "exit code 1: out");
        assert!(said("no-such-program-anywhere").starts_with("exit code 127"));
    }

    #[test]
    fn every_problem_is_found_at_once() {
        let twice = vec![
            check("a", ""),
            check(" a ", "true"),
            DependencyCheck { timeout_secs: 0, ..check("", "true") },
            check("b`", "true"),
        ];
        let found: Vec<String> =
            settings(twice).validate().iter().map(|one| format!("{} {one}", one.index)).collect();
        assert_eq!(
            found,
            [
                "0 `cmd` in [[doctor.checks]] is empty",
                "1 `id` in [[doctor.checks]] is there twice",
                "2 `id` in [[doctor.checks]] is empty",
                "2 `timeout_secs` in [[doctor.checks]] must be at least 1",
                "3 `id` in [[doctor.checks]] has a backtick in it, which no brief could write",
            ]
        );
    }
}
