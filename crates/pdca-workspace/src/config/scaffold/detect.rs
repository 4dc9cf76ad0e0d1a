//! Detects build tools and agents, and proposes config rows.

use camino::{Utf8Path, Utf8PathBuf};

use crate::config::Environment;

/// A proposed `[[gates.checks]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCheck {
    pub id: &'static str,
    pub tier: &'static str,
    pub label: &'static str,
    pub cmd: &'static str,
    pub gating: bool,
}

/// The detected tools, with the rows they propose.
#[derive(Debug, Default)]
pub struct DetectedTools {
    pub tools: Vec<&'static str>,
    pub gates: Vec<ProposedCheck>,
    /// The agents on `PATH`, the preferred one first.
    pub agents: Vec<&'static str>,
    /// Directories of the tools that are worth keeping from one change to the next.
    pub caches: Vec<&'static str>,
    /// The repository that contains the directory, as a relative path.
    pub repository: Option<Utf8PathBuf>,
}

/// Inspects a directory and `PATH`.
pub fn detect(dir: &Utf8Path, environment: Environment<'_>) -> DetectedTools {
    let mut found = DetectedTools { repository: repository(dir), ..DetectedTools::default() };
    let has = |name: &str| dir.join(name).is_file();
    if has("Cargo.toml") {
        found.tools.push("cargo");
        found.caches.push("target/");
        found.gates.extend([
            row("T1-fmt", "T1", "formatted as rustfmt wants it", "cargo fmt --all --check", false),
            row(
                "T2-clippy",
                "T2",
                "no clippy warning",
                "cargo clippy --workspace --all-targets -- -D warnings",
                false,
            ),
            row("T3-test", "T3", "the test suite passes", "cargo test --workspace", true),
        ]);
    }
    if has("package.json") {
        found.tools.push("npm");
        found.caches.push("node_modules/");
        let scripts = npm_scripts(dir);
        if scripts.iter().any(|name| name == "lint") {
            found.gates.push(row(
                "T2-npm-lint",
                "T2",
                "the linter is content",
                "npm run lint",
                false,
            ));
        }
        found.gates.push(row("T3-npm-test", "T3", "the test suite passes", "npm test", true));
    }
    if ["pytest.ini", "pyproject.toml", "setup.py", "setup.cfg", "tox.ini"].into_iter().any(has) {
        found.tools.push("pytest");
        found.caches.push(".venv/");
        found.gates.push(row(
            "T3-pytest",
            "T3",
            "the test suite passes",
            "python3 -m pytest -q",
            true,
        ));
    }
    if has("go.mod") {
        // Its build cache is outside the checkout, and keyed by content.
        found.tools.push("go");
        found.gates.push(row("T3-go-test", "T3", "the test suite passes", "go test ./...", true));
    }
    if let Some(target) = make_target(dir) {
        found.tools.push("make");
        if dir.join("build").is_dir() && found.caches.is_empty() {
            found.caches.push("build/");
        }
        // If a language's own runner was found, make usually calls the same.
        if found.gates.is_empty() {
            let cmd = if target == "check" { "make check" } else { "make test" };
            found.gates.push(row("T3-make", "T3", "the test suite passes", cmd, true));
        }
    }
    found.agents = ["claude", "codex", "gemini", "opencode", "aider"]
        .into_iter()
        .filter(|name| environment.find_program(name).is_some())
        .collect();
    found
}

fn row(
    id: &'static str,
    tier: &'static str,
    label: &'static str,
    cmd: &'static str,
    gating: bool,
) -> ProposedCheck {
    ProposedCheck { id, tier, label, cmd, gating }
}

fn repository(dir: &Utf8Path) -> Option<Utf8PathBuf> {
    let up = dir.ancestors().position(|dir| dir.join(".git").exists())?;
    Some(if up == 0 { Utf8PathBuf::from(".") } else { (0..up).map(|_| "..").collect() })
}

fn npm_scripts(dir: &Utf8Path) -> Vec<String> {
    let text = fs_err::read_to_string(dir.join("package.json")).unwrap_or_default();
    let package: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    package["scripts"]
        .as_object()
        .map(|scripts| scripts.keys().cloned().collect())
        .unwrap_or_default()
}

/// Returns the target of the Makefile that runs the tests.
fn make_target(dir: &Utf8Path) -> Option<&'static str> {
    let text = ["Makefile", "makefile", "GNUmakefile"]
        .into_iter()
        .find_map(|name| fs_err::read_to_string(dir.join(name)).ok())?;
    let has = |target: &str| {
        text.lines().any(|line| {
            line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    };
    ["test", "check"].into_iter().find(|target| has(target))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tools(files: &[(&str, &str)]) -> (Vec<&'static str>, Vec<&'static str>) {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        for (name, text) in files {
            fs_err::write(dir.join(name), text).unwrap();
        }
        let found = detect(dir, Environment { variables: &BTreeMap::new(), cwd: "/".into() });
        (found.tools, found.gates.iter().map(|row| row.id).collect())
    }

    #[test]
    fn each_build_tool_proposes_its_rows() {
        assert_eq!(tools(&[]), (vec![], vec![]));
        assert_eq!(
            tools(&[("Cargo.toml", "")]),
            (vec!["cargo"], vec!["T1-fmt", "T2-clippy", "T3-test"])
        );
        assert_eq!(
            tools(&[("package.json", r#"{"scripts": {"lint": "x"}}"#)]),
            (vec!["npm"], vec!["T2-npm-lint", "T3-npm-test"])
        );
        assert_eq!(tools(&[("pyproject.toml", "")]), (vec!["pytest"], vec!["T3-pytest"]));
        assert_eq!(
            tools(&[("Makefile", "all:\n\ntest : all\n\ttrue\n")]),
            (vec!["make"], vec!["T3-make"])
        );
        assert_eq!(tools(&[("Makefile", "testing:\n")]), (vec![], vec![]));
    }

    #[test]
    fn the_repository_around_is_named_as_seen_from_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(dir.path()).unwrap();
        fs_err::create_dir_all(top.join("a/b")).unwrap();
        assert_eq!(repository(&top.join("a/b")), None);
        fs_err::create_dir(top.join(".git")).unwrap();
        assert_eq!(repository(top).unwrap(), ".");
        assert_eq!(repository(&top.join("a/b")).unwrap(), "../..");
    }
}
