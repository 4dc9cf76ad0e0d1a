//! The table `[lanes.hydrate]` of the configuration.

use std::{ffi::OsString, time::Duration};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use pdca_state::patch::path;

/// The timeout of a command if none is configured, in seconds.
const DEFAULT_TIMEOUT: u64 = 3600;
/// The longest accepted timeout, in seconds; a longer one is a typing mistake.
const LONGEST_TIMEOUT: u64 = 24 * 3600;
/// The default of `key`: the lock files of common package managers.
const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    "go.sum",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "requirements.txt",
    "uv.lock",
    "yarn.lock",
];

/// The table `[lanes.hydrate]`: the untracked files that a lane needs.
///
/// Paths are relative to the root of the target's checkout, and name ignored files or directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HydrateConfig {
    /// Files and directories of the primary that are copied into each lane.
    pub copy: Vec<String>,
    /// Files and read-only directories of the primary to which each lane gets a symbolic link.
    pub symlink: Vec<String>,
    /// Build caches of the primary that are copied into a lane that has none yet.
    pub seed: Vec<String>,
    /// The command that installs the dependencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<HydrateProgram>,
    /// The command whose exit status decides whether the lane can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<HydrateProgram>,
    /// Files of the lane whose change triggers a new hydration; well-known lock files if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Vec<String>>,
    /// The timeout of `install` and of `verify`, each; one hour if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a command in quotes, or a list of a program and its arguments")]
pub enum HydrateProgram {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// An invalid key of `[lanes.hydrate]`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}` in [lanes.hydrate]: {fault}")]
pub struct HydrateProblem {
    /// The name of the key.
    pub key: &'static str,
    /// The reason why it is invalid.
    pub fault: HydrateFault,
}

/// The reason why a key is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HydrateFault {
    /// The path leads out of the checkout or into its `.git`, or is empty.
    #[error("{path:?} is not a path inside the checkout")]
    Path {
        /// The path as given.
        path: String,
    },
    /// Two entries would write to the same path.
    #[error("{path:?} is given twice, or is inside {other:?}")]
    Overlap {
        /// The later path.
        path: String,
        /// The earlier path.
        other: String,
    },
    /// The command is empty.
    #[error("the command is empty")]
    Empty,
    /// The timeout is out of range.
    #[error("must be between 1 and {LONGEST_TIMEOUT}")]
    Timeout,
}

impl HydrateConfig {
    /// Returns true if neither files nor commands are configured.
    pub fn is_empty(&self) -> bool {
        let Self { copy, symlink, seed, install, verify, key: _, timeout_secs: _ } = self;
        [copy, symlink, seed].iter().all(|list| list.is_empty())
            && install.is_none()
            && verify.is_none()
    }

    /// Returns all problems in the order of the keys.
    pub fn validate(&self) -> Vec<HydrateProblem> {
        let mut problems = Vec::new();
        let mut placed: Vec<&str> = Vec::new();
        for (key, list) in [("copy", &self.copy), ("symlink", &self.symlink), ("seed", &self.seed)]
        {
            for entry in list {
                let path = plain(entry);
                let fault = unfit(entry).or_else(|| {
                    let other = placed.iter().find(|other| overlap(path, other))?;
                    Some(HydrateFault::Overlap {
                        path: path.to_owned(),
                        other: (*other).to_owned(),
                    })
                });
                match fault {
                    Some(fault) => problems.push(HydrateProblem { key, fault }),
                    None => placed.push(path),
                }
            }
        }
        for (key, program) in [("install", &self.install), ("verify", &self.verify)] {
            if program.as_ref().is_some_and(HydrateProgram::says_nothing) {
                problems.push(HydrateProblem { key, fault: HydrateFault::Empty });
            }
        }
        let keys = self.key.iter().flatten().filter_map(|path| unfit(path));
        problems.extend(keys.map(|fault| HydrateProblem { key: "key", fault }));
        if self.timeout_secs.is_some_and(|secs| secs == 0 || secs > LONGEST_TIMEOUT) {
            problems.push(HydrateProblem { key: "timeout_secs", fault: HydrateFault::Timeout });
        }
        problems
    }

    /// Returns the files of the lane whose change triggers a new hydration.
    pub(crate) fn keys(&self) -> Vec<&str> {
        match &self.key {
            Some(key) => key.iter().map(String::as_str).collect(),
            None => LOCK_FILES.to_vec(),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_secs.unwrap_or(DEFAULT_TIMEOUT))
    }
}

impl HydrateProgram {
    /// Returns the program and its arguments.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        match self {
            Self::Shell(text) => ["sh", "-c", text].map(OsString::from).to_vec(),
            Self::Argv(argv) => argv.iter().map(OsString::from).collect(),
        }
    }

    fn says_nothing(&self) -> bool {
        match self {
            Self::Shell(text) => text.trim().is_empty() || text.contains('\0'),
            Self::Argv(argv) => {
                argv.first().is_none_or(|program| program.trim().is_empty())
                    || argv.iter().any(|word| word.contains('\0'))
            }
        }
    }
}

/// Strips a trailing slash: `node_modules/` means the directory `node_modules`.
pub(crate) fn plain(entry: &str) -> &str {
    entry.strip_suffix('/').unwrap_or(entry)
}

fn unfit(entry: &str) -> Option<HydrateFault> {
    path::unfit_path(plain(entry).as_bytes()).map(|_| HydrateFault::Path { path: entry.to_owned() })
}

/// Returns true if two paths are equal or one is inside the other.
fn overlap(left: &str, right: &str) -> bool {
    let inside = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    inside(left, right) || inside(right, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(config: &HydrateConfig) -> Vec<String> {
        config.validate().iter().map(ToString::to_string).collect()
    }

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_that_leaves_the_checkout_is_refused() {
        let bad = ["", "/etc/passwd", "../x", "a/../../x", "a//b", ".git/config", "x/.GIT"];
        for entry in bad {
            let config = HydrateConfig { copy: list(&[entry]), ..HydrateConfig::default() };
            let expected =
                format!("`copy` in [lanes.hydrate]: {entry:?} is not a path inside the checkout");
            assert_eq!(problems(&config), [expected]);
        }
        let good = list(&[".env", "a b/ü", "node_modules/", ".gitmodules.local"]);
        assert_eq!(problems(&HydrateConfig { seed: good, ..HydrateConfig::default() }), [""; 0]);
    }

    #[test]
    fn two_entries_for_one_place_are_refused() {
        let config = HydrateConfig {
            copy: list(&["a", "ab"]),
            symlink: list(&["a/b"]),
            seed: list(&["ab/"]),
            ..HydrateConfig::default()
        };
        assert_eq!(
            problems(&config),
            [
                "`symlink` in [lanes.hydrate]: \"a/b\" is given twice, or is inside \"a\"",
                "`seed` in [lanes.hydrate]: \"ab\" is given twice, or is inside \"ab\"",
            ]
        );
    }

    #[test]
    fn a_command_must_say_something_and_a_bound_must_bound() {
        let config = HydrateConfig {
            install: Some(HydrateProgram::Shell("  ".to_owned())),
            verify: Some(HydrateProgram::Argv(Vec::new())),
            timeout_secs: Some(0),
            ..HydrateConfig::default()
        };
        assert_eq!(
            problems(&config),
            [
                "`install` in [lanes.hydrate]: the command is empty",
                "`verify` in [lanes.hydrate]: the command is empty",
                "`timeout_secs` in [lanes.hydrate]: must be between 1 and 86400",
            ]
        );
    }
}
