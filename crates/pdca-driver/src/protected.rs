//! Protected paths: files of the target that decide how changes to it are judged.
//!
//! A change that writes one of them may weaken the very check that it passed, so it is never
//! accepted unseen: each such path is an item of §6, and no seal is made unless a person settled it.

use pdca_gates::{Checks, Command};
use pdca_state::footprint;

/// Directories of CI, agents, tools and `pdca`, anywhere in the tree.
const DIRECTORIES: [&str; 13] = [
    ".pdca",
    ".github",
    ".gitlab",
    ".circleci",
    ".buildkite",
    ".cargo",
    ".husky",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    ".agents",
];

/// File names anywhere in the tree: our configuration, CI, instructions to agents, configuration that decides which
/// tests run, which files a tool sees, and which findings of a scanner count.
const NAMES: [&str; 71] = [
    "pdca.toml",
    "agents.md",
    "claude.md",
    "gemini.md",
    ".mcp.json",
    "opencode.json",
    ".gitattributes",
    ".gitmodules",
    ".gitlab-ci.yml",
    ".travis.yml",
    "azure-pipelines.yml",
    "jenkinsfile",
    ".pre-commit-config.yaml",
    "conftest.py",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
    "nextest.toml",
    "build.rs",
    "sitecustomize.py",
    "phpunit.xml",
    "karma.conf.js",
    // What git and other tools do not see.
    ".gitignore",
    ".dockerignore",
    ".eslintignore",
    ".prettierignore",
    ".stylelintignore",
    ".semgrepignore",
    ".trivyignore",
    ".trivyignore.yaml",
    ".gitleaksignore",
    ".snyk",
    ".hadolint.yaml",
    ".dockle.yaml",
    // Linters, scanners and coverage.
    ".gitleaks.toml",
    "gitleaks.toml",
    "trivy.yaml",
    ".semgrep.yml",
    ".semgrep.yaml",
    ".bandit",
    "bandit.yaml",
    ".secrets.baseline",
    ".flake8",
    ".pylintrc",
    "pylintrc",
    "mypy.ini",
    ".mypy.ini",
    "pyrightconfig.json",
    "ruff.toml",
    ".ruff.toml",
    "setup.cfg",
    ".coveragerc",
    "codecov.yml",
    ".codecov.yml",
    "codecov.yaml",
    ".codecov.yaml",
    ".nycrc",
    ".nycrc.json",
    "sonar-project.properties",
    "clippy.toml",
    ".clippy.toml",
    "deny.toml",
    "audit.toml",
    ".clang-tidy",
    ".golangci.yml",
    ".golangci.yaml",
    ".golangci.toml",
    ".rubocop.yml",
    ".shellcheckrc",
    ".yamllint",
    ".markdownlint.json",
];

/// Prefixes of file names: the configuration of test runners and linters that comes in several formats.
const STARTS: [&str; 8] = [
    "jest.config.",
    "vitest.config.",
    "playwright.config.",
    ".mocharc.",
    ".eslintrc",
    "eslint.config.",
    ".stylelintrc",
    ".lintstagedrc",
];

/// The files from which common programs in gates read their commands.
const READ_BY: [(&str, &[&str]); 4] = [
    ("make", &["makefile", "gnumakefile"]),
    ("just", &["justfile", ".justfile"]),
    ("npm", &["package.json"]),
    ("tox", &["tox.ini"]),
];

/// Returns the protected paths that a patch writes, sorted. An unreadable patch has none, because it never
/// passes its gates.
pub fn protected_paths(rows: &Checks, patch: &[u8]) -> Vec<String> {
    let mut paths = footprint(patch).unwrap_or_default();
    let words = gate_words(rows);
    paths.retain(|path| is_protected(path, &words));
    paths
}

/// Returns every word of every gate, in lower case and without a leading `./`.
fn gate_words(rows: &Checks) -> Vec<String> {
    let mut words = Vec::new();
    for command in rows.as_slice().iter().flat_map(|row| [Some(&row.command), row.fix.as_ref()]) {
        let texts: &[String] = match command {
            None => &[],
            Some(Command::Shell(text)) => std::slice::from_ref(text),
            Some(Command::Argv(argv)) => argv,
        };
        let is_separator = |c: char| {
            c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '"' | '\'' | '=')
        };
        for word in texts.iter().flat_map(|text| text.split(is_separator)) {
            let word = word.trim_start_matches("./").to_lowercase();
            if !word.is_empty() {
                words.push(word);
            }
        }
    }
    words
}

/// Returns whether a path decides how changes are judged. Case is ignored, because some file systems ignore it.
fn is_protected(path: &str, gate_words: &[String]) -> bool {
    let path = path.to_lowercase();
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    // A workspace may lie inside of its target; a patch must not write a sign-off there.
    let is_bundle = |pair: &[&str]| pair[0] == "results" && pair[1].starts_with("issue_");
    let read_by = |(program, files): &(&str, &[&str])| {
        gate_words.iter().any(|word| word == program) && files.contains(&name)
    };
    parts.iter().any(|part| DIRECTORIES.contains(part))
        || parts.windows(2).any(is_bundle)
        || NAMES.contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || READ_BY.iter().any(read_by)
        || gate_words.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_judges_changes_is_protected_and_ordinary_code_is_not() {
        let words: Vec<String> =
            ["sh", "ci/test.sh", "make"].iter().map(ToString::to_string).collect();
        for path in [
            ".github/workflows/ci.yml",
            "sub/.GitHub/x",
            "pdca.toml",
            "deep/AGENTS.md",
            "CLAUDE.md",
            ".mcp.json",
            ".claude/settings.json",
            "results/issue_3/brief.md",
            ".pdca/x",
            "tests/conftest.py",
            "web/jest.config.ts",
            "ci/test.sh",
            "CI/Test.sh",
            "Makefile",
            ".gitignore",
            "deep/.gitattributes",
            ".semgrepignore",
            ".trivyignore",
            ".gitleaks.toml",
            ".eslintrc",
            "web/.eslintrc.cjs",
            "eslint.config.mjs",
            ".flake8",
            "ruff.toml",
            "clippy.toml",
            "deny.toml",
            ".pre-commit-config.yaml",
            "pytest.ini",
            "tox.ini",
            "setup.cfg",
            ".coveragerc",
            "codecov.yml",
            "sonar-project.properties",
        ] {
            assert!(is_protected(path, &words), "{path}");
        }
        for path in [
            "src/main.rs",
            "README.md",
            "results/table.csv",
            "test.sh",
            "docs/agents.md.txt",
            "src/make",
            "justfile",
            "github/x",
            "docs/gitignore.md",
            "src/deny.rs",
            "setup.py",
        ] {
            assert!(!is_protected(path, &words), "{path}");
        }
    }

    #[test]
    fn a_gate_s_script_is_found_in_shell_text_as_in_arguments() {
        let rows = |command| {
            let check = pdca_gates::CheckConfig {
                id: "t".to_owned(),
                tier: "T3".to_owned(),
                cmd: Some(command),
                ..pdca_gates::CheckConfig::default()
            };
            let checks = pdca_gates::GatesConfig { checks: vec![check], ..Default::default() };
            checks.checks().unwrap()
        };
        for text in ["./run.sh -v", "cd x && ./run.sh", "A=1 sh 'run.sh'", "(run.sh)"] {
            let words = gate_words(&rows((*text).to_owned()));
            assert!(is_protected("run.sh", &words), "{text}: {words:?}");
        }
    }
}
