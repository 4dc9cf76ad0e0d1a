//! Checks that links between Markdown files lead to an existing file and heading.

use std::collections::BTreeSet;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::{Finding, SourceFile};

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_documentation(&file.path)) {
        for (line, target) in links(&file.text) {
            if let Some(why) = objection(file, &target, files) {
                findings.push(Finding::error(&file.path, line, why));
            }
        }
    }
    findings
}

/// Returns whether a path is Markdown under `docs/` or at the root of the workspace.
fn is_documentation(path: &Utf8Path) -> bool {
    path.extension() == Some("md")
        && (path.starts_with("docs") || path.parent() == Some(Utf8Path::new("")))
}

fn objection(from: &SourceFile, target: &str, files: &[SourceFile]) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let there = if path.is_empty() {
        from.path.clone()
    } else if let Some(there) = resolve(&from.path, path) {
        there
    } else {
        return Some(format!("`{target}` leaves the workspace"));
    };
    let Some(file) = files.iter().find(|file| file.path == there) else {
        let is_directory = files.iter().any(|file| file.path.starts_with(&there));
        // Licences have no extension and are not loaded; they are at the root.
        let is_licence = there.as_str().starts_with("LICENSE");
        return (!is_directory && !is_licence).then(|| format!("`{target}` leads nowhere"));
    };
    (!anchor.is_empty() && !anchors(&file.text).contains(anchor))
        .then(|| format!("`{target}`: {there} has no heading `#{anchor}`"))
}

/// Resolves `path` relative to the file `from`; `None` if it leaves the workspace.
fn resolve(from: &Utf8Path, path: &str) -> Option<Utf8PathBuf> {
    let mut there = from.parent()?.to_owned();
    for component in Utf8Path::new(path).components() {
        match component {
            Utf8Component::Normal(name) => there.push(name),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                if !there.pop() {
                    return None;
                }
            }
            Utf8Component::RootDir | Utf8Component::Prefix(_) => return None,
        }
    }
    Some(there)
}

/// Returns the targets of all inline links outside code, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code_spans(line);
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            if let Some(end) = rest.find(')') {
                let target = rest[..end].split(' ').next().unwrap_or_default();
                links.push((number, target.to_owned()));
            }
        }
    }
    links
}

/// Returns the lines outside fenced code, numbered from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

/// Returns the anchors that a Markdown host makes of the headings.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter_map(|(_, line)| line.strip_prefix('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .map(|heading| {
            heading
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).into(), text: (*text).to_owned() })
            .collect();
        check(&files).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_link_to_a_file_a_directory_a_heading_or_the_web_is_fine() {
        let from = "# Top\n[a](guide/a.md) [b](guide/) [c](guide/a.md#the-cli-step-2) [d](#top)\n\
                    [e](https://example.org/x) [f](../CHANGELOG.md) [g](../LICENSE-MIT)\n";
        assert_eq!(
            found(&[
                ("docs/README.md", from),
                ("docs/guide/a.md", "## The CLI, step 2\n"),
                ("CHANGELOG.md", ""),
            ]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        assert_eq!(
            found(&[("docs/README.md", "text\n[a](missing.md)\n")]),
            ["error: docs/README.md:2: `missing.md` leads nowhere"]
        );
    }

    #[test]
    fn a_heading_that_is_not_there_is_found() {
        assert_eq!(
            found(&[("README.md", "# One\n[a](#two)\n")]),
            ["error: README.md:2: `#two`: README.md has no heading `#two`"]
        );
    }

    #[test]
    fn a_link_out_of_the_workspace_is_found() {
        assert_eq!(
            found(&[("docs/a.md", "[a](../../secret.md)\n")]),
            ["error: docs/a.md:1: `../../secret.md` leaves the workspace"]
        );
    }

    #[test]
    fn code_is_not_read_for_links() {
        let text = "`[a](missing.md)`\n```\n[b](missing.md)\n```\n";
        assert_eq!(found(&[("docs/a.md", text)]), Vec::<String>::new());
    }

    #[test]
    fn markdown_inside_a_crate_is_not_the_documentation() {
        let text = "[a](missing.md)\n";
        assert_eq!(found(&[("crates/x/notes.md", text)]), Vec::<String>::new());
    }
}
