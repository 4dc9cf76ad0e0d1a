//! Checks that every decision has a number of its own.
//!
//! A gap is allowed: the page was folded into the documentation of a module or into another page, and
//! `docs/decisions/README.md` says where. Its number is not used again.

use camino::Utf8Path;

use super::{Finding, SourceFile};

const DIRECTORY: &str = "docs/decisions";

/// Files come in the order of their paths, so numbers ascend unless one is used twice.
pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut last = 0;
    for file in files {
        let path = &file.path;
        if path.parent() != Some(Utf8Path::new(DIRECTORY)) || path.file_name() == Some("README.md")
        {
            continue;
        }
        let Some(number) = path.file_name().and_then(number) else {
            findings.push(Finding::error(path, None, "not named `NNN-title.md`"));
            continue;
        };
        if number <= last {
            let what = format!("number {number:03} is used twice");
            findings.push(Finding::error(path, None, what));
        }
        last = last.max(number);
    }
    findings
}

fn number(name: &str) -> Option<u32> {
    let (digits, title) = name.strip_suffix(".md")?.split_once('-')?;
    let is_number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !title.is_empty()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<String> {
        let files: Vec<_> = names
            .iter()
            .map(|name| SourceFile {
                path: Utf8Path::new(DIRECTORY).join(name),
                text: String::new(),
            })
            .collect();
        check(&files).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn consecutive_numbers_are_fine() {
        assert_eq!(found(&["001-a.md", "002-b.md", "README.md"]), Vec::<String>::new());
    }

    #[test]
    fn a_gap_is_fine() {
        assert_eq!(found(&["002-b.md", "005-e.md", "006-f.md"]), Vec::<String>::new());
    }

    #[test]
    fn a_number_used_twice_is_found() {
        assert_eq!(
            found(&["001-a.md", "001-b.md", "003-c.md", "003-d.md"]),
            ["number 001 is used twice", "number 003 is used twice"]
        );
    }

    #[test]
    fn another_kind_of_name_is_found() {
        assert_eq!(
            found(&["1-a.md", "notes.md"]),
            ["not named `NNN-title.md`", "not named `NNN-title.md`"]
        );
    }
}
