//! `cargo xtask tidy`: rules of this workspace that neither rustc nor clippy checks.
//!
//! Each rule is a pure function from text to findings, so that its tests can show that it is able
//! to fail. Only this module reads files and calls cargo.

mod coverage;
mod decisions;
mod dependencies;
mod edges;
mod headers;
mod keys;
mod links;
mod matrix;
mod sources;

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Outcome, Stopped, program};

/// Check the rules of this workspace that the compiler does not know
///
/// Crate edges, doc headers, file sizes, forbidden attributes, machine paths, `Debug` output in keys, names of
/// fault-matrix tests, tests and decisions of requirements, links of the documentation, numbers of the decisions, licences, sources and versions of the
/// dependencies.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {}

/// A text file of the workspace, with its path relative to the root.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub(crate) path: Utf8PathBuf,
    pub(crate) text: String,
}

/// One finding of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    path: Utf8PathBuf,
    /// Counted from one; `None` for the whole file.
    line: Option<usize>,
    what: String,
}

impl Finding {
    fn error(path: &Utf8Path, line: impl Into<Option<usize>>, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: line.into(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

pub(crate) fn run(_: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let metadata =
        program::output("cargo", &["metadata", "--no-deps", "--format-version", "1"], root)?;
    let packages = edges::packages(&metadata, root)?;
    let files = load_sources(root)?;
    let policy = fs_err::read_to_string(root.join("deny.toml"))?;
    let mut findings = Vec::new();
    findings
        .extend(dependencies::check(&policy, &dependencies::resolved(&dependency_tree(root)?)?)?);
    findings.extend(edges::check(&packages));
    findings.extend(headers::check(&headers::roots(&packages), &files));
    findings.extend(sources::check(&files));
    findings.extend(keys::check(&files));
    findings.extend(matrix::check(&files));
    findings.extend(coverage::check(&files)?);
    findings.extend(links::check(&files));
    findings.extend(decisions::check(&files));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} packages, {} files, {} errors", packages.len(), files.len(), findings.len());
    Ok(if findings.is_empty() { Outcome::Passed } else { Outcome::Failed })
}

/// Asks cargo for the packages that a build on this host uses, so that no others are fetched.
fn dependency_tree(root: &Utf8Path) -> Result<Vec<u8>, Stopped> {
    let rustc = String::from_utf8(program::output("rustc", &["-vV"], root)?)?;
    let host = rustc
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("rustc does not name its host")?;
    let args = ["metadata", "--format-version", "1", "--all-features", "--filter-platform", host];
    Ok(program::output("cargo", &args, root)?)
}

/// Returns every text file that people wrote, sorted by path. Files made by a build or by git are left out.
pub(crate) fn load_sources(root: &Utf8Path) -> Result<Vec<SourceFile>, Stopped> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir_utf8()? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && is_ours(entry.file_name()) {
                directories.push(entry.path().to_owned());
            } else if kind.is_file() && (is_text(entry.path()) || is_picture(entry.path())) {
                // A picture has no lines to judge, but links lead to it.
                let is_read = is_text(entry.path());
                let text =
                    if is_read { fs_err::read_to_string(entry.path())? } else { String::new() };
                files.push(SourceFile { path: entry.path().strip_prefix(root)?.to_owned(), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn is_ours(directory: &str) -> bool {
    match directory {
        ".github" | ".ci" | ".cargo" => true,
        "target" => false,
        other => !other.starts_with('.'),
    }
}

fn is_picture(path: &Utf8Path) -> bool {
    path.extension() == Some("png")
}

fn is_text(path: &Utf8Path) -> bool {
    matches!(
        path.extension(),
        Some("rs" | "md" | "json" | "toml" | "yml" | "yaml" | "sh" | "svg" | "tpl")
    ) || path.parent().and_then(Utf8Path::file_name) == Some(".ci")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_a_compiler_message() {
        let at_line = Finding::error(Utf8Path::new("a/b.rs"), 7, "too long");
        let whole = Finding::error(Utf8Path::new("a/b.rs"), None, "too long");
        assert_eq!(at_line.to_string(), "error: a/b.rs:7: too long");
        assert_eq!(whole.to_string(), "error: a/b.rs: too long");
    }

    #[test]
    fn what_people_wrote_is_read_and_what_a_build_made_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        for file in [
            "src/lib.rs",
            ".ci/run",
            ".github/workflows/ci.yml",
            "docs/a.md",
            "target/debug/out.rs",
            ".git/config.toml",
            "picture.png",
        ] {
            let path = root.join(file);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "text").unwrap();
        }
        let files = load_sources(root).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        let workflow = ".github/workflows/ci.yml";
        assert_eq!(paths, [".ci/run", workflow, "docs/a.md", "picture.png", "src/lib.rs"]);
        assert_eq!(files[3].text, "");
    }
}
