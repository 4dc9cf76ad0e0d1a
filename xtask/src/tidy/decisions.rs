//! Checks that decisions are numbered from 001, without gaps and duplicates.

use std::cmp::Ordering;

use camino::Utf8Path;

use super::{Finding, SourceFile};

const DIRECTORY: &str = "docs/decisions";

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut next = 1;
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
        match number.cmp(&next) {
            Ordering::Equal => {}
            Ordering::Less => {
                let what = format!("number {number:03} is used twice");
                findings.push(Finding::error(path, None, what));
            }
            Ordering::Greater => {
                let what = format!("number {number:03} follows {:03}: a gap", next - 1);
                findings.push(Finding::error(path, None, what));
            }
        }
        next = next.max(number + 1);
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
    fn a_gap_is_found_once() {
        assert_eq!(found(&["001-a.md", "003-c.md", "004-d.md"]), ["number 003 follows 001: a gap"]);
    }

    #[test]
    fn a_first_number_other_than_one_is_a_gap() {
        assert_eq!(found(&["002-b.md"]), ["number 002 follows 000: a gap"]);
    }

    #[test]
    fn a_number_used_twice_is_found() {
        assert_eq!(found(&["001-a.md", "001-b.md"]), ["number 001 is used twice"]);
    }

    #[test]
    fn another_kind_of_name_is_found() {
        assert_eq!(
            found(&["1-a.md", "notes.md"]),
            ["not named `NNN-title.md`", "not named `NNN-title.md`"]
        );
    }
}
