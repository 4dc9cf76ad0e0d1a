//! Checks source files for forbidden text.

use super::{Finding, SourceFile};

/// Split, so that this file does not find itself.
const FORBIDDEN: &[(&str, &str)] = &[
    (
        concat!("#[", "allow("),
        "write `#[expect(lint, reason = …)]`, which tells when it is no longer needed",
    ),
    (
        concat!("#![", "allow("),
        "write `#![expect(lint, reason = …)]`, which tells when it is no longer needed",
    ),
    (concat!("todo", "!("), "finish it, or leave out what is not there yet"),
    (concat!("unimpl", "emented!("), "finish it, or leave out what is not there yet"),
    (concat!("#[", "ignore"), "a test that is not run proves nothing"),
];

/// Directories that exist on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if file.path.extension() == Some("rs") {
            findings.extend(forbidden(file));
        }
        findings.extend(machine_paths(file));
    }
    findings
}

fn forbidden(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (needle, why) in FORBIDDEN {
            if line.contains(needle) {
                let what = format!("`{needle}`: {why}");
                findings.push(Finding::error(&file.path, number, what));
            }
        }
    }
    findings
}

fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for needle in MACHINE_PATHS {
            if starts_a_path(line, needle) {
                let what = format!("`{needle}…` is a path of one machine");
                findings.push(Finding::error(&file.path, number, what));
            }
        }
    }
    findings
}

/// Returns whether `needle` is where an absolute path begins, not in the middle of a relative one.
fn starts_a_path(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        line[..at]
            .chars()
            .next_back()
            .is_none_or(|before| !before.is_alphanumeric() && !"._-~})]$>/".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<Finding> {
        check(&[SourceFile { path: path.into(), text: text.to_owned() }])
    }

    #[test]
    fn an_allow_a_gap_and_a_test_that_is_not_run_are_found_with_their_line() {
        let text = [
            "fn fine() {}",
            concat!("    #[", "allow(dead_code)]"),
            concat!("#![", "allow(missing_docs)]"),
            concat!("    todo", "!()"),
            concat!("#[", "ignore = \"slow\"]"),
        ]
        .join("\n");
        let lines: Vec<_> = found("a.rs", &text).into_iter().map(|finding| finding.line).collect();
        let error_at = Some;
        assert_eq!(lines, [error_at(2), error_at(3), error_at(4), error_at(5)]);
    }

    #[test]
    fn a_comment_may_name_what_code_may_not_hold() {
        let text = concat!("// no #[", "allow(…)] here\n/// nor #[", "ignore]\n");
        assert_eq!(found("a.rs", text), []);
    }

    #[test]
    fn other_files_than_rust_may_speak_of_attributes() {
        assert_eq!(found("a.md", concat!("Never `#[", "ignore]`.")), []);
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_any_file() {
        let text = concat!("see `/ho", "me/someone/pdca`");
        assert_eq!(found("docs/a.md", text).len(), 1);
        assert_eq!(found("a.toml", concat!("x = \"/ro", "ot/.cargo\"")).len(), 1);
    }

    #[test]
    fn the_same_words_inside_a_longer_path_are_not() {
        let text = concat!("<dir>/ho", "me/x {job}/wo", "rk/y lane-0/ro", "ot/z [TMP]/wo", "rk/");
        assert_eq!(found("a.md", text), []);
    }
}
