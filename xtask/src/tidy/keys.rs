//! Checks that no `Debug` output gets into a key or a digest.
//!
//! `Debug` output is not stable: a new field or a new version of a library changes it, and then nothing
//! is found under a key that was made of it.

use super::{Finding, SourceFile};

/// Calls whose arguments become part of a digest.
const FEEDS: &[&str] =
    &["sha256_hex(", "Sha256::digest(", "hasher.update(", "digest.text(", "digest.bytes("];
/// Words in the name of a function that makes a key, between underscores.
const MAKERS: &[&str] = &["key", "keys", "digest", "fingerprint", "stamp", "checksum", "sum"];
/// The `Debug` placeholders of format strings, split so that this file does not find itself.
const ASKS: &[&str] = &[concat!(":", "?}"), concat!(":", "#?}")];

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let is_ours = |file: &&SourceFile| {
        let path = file.path.as_str();
        file.path.extension() == Some("rs")
            && path.contains("src/")
            && !path.contains("/tests/")
            && !path.ends_with("tests.rs")
            && !path.contains("/testing")
    };
    files.iter().filter(is_ours).flat_map(of_file).collect()
}

fn of_file(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_maker = false;
    // The end of the call that feeds a digest is unknown, so a few lines are taken for it.
    let mut since_feed = usize::MAX;
    for (number, line) in (1..).zip(file.text.lines()) {
        let code = line.trim_start();
        if code.starts_with("#[cfg(test)]") {
            break;
        }
        if code.starts_with("//") {
            continue;
        }
        if let Some(name) = function(code) {
            is_maker = name.split('_').any(|word| MAKERS.contains(&word));
            since_feed = usize::MAX;
        }
        since_feed = since_feed.saturating_add(1);
        if FEEDS.iter().any(|feed| code.contains(feed)) {
            since_feed = 0;
        }
        let is_message =
            ["panic!(", "expect(", "assert", "error("].iter().any(|word| code.contains(word));
        if ASKS.iter().any(|asks| code.contains(asks))
            && (is_maker || since_feed < 3)
            && !is_message
        {
            let what = "`Debug` output in a key or a digest: write each part in a form of its own";
            findings.push(Finding::error(&file.path, number, what));
        }
    }
    findings
}

/// Returns the name of the function that begins in a line.
fn function(code: &str) -> Option<&str> {
    let (before, rest) = code.split_once("fn ")?;
    let is_word = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "crate)" | "super)")
            || word.starts_with("pub(")
    };
    before.split_whitespace().all(is_word).then_some(())?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let file = SourceFile { path: "crates/a/src/b.rs".into(), text: text.to_owned() };
        check(&[file]).into_iter().filter_map(|finding| finding.line).collect()
    }

    #[test]
    fn debug_output_in_a_digest_is_found_with_its_line() {
        let asks = concat!("{kind:", "?}");
        assert_eq!(lines(&format!("fn a() {{\n    hasher.update(format!(\"{asks}\"));\n}}")), [2]);
        assert_eq!(
            lines(&format!("fn a() {{\n    sha256_hex(\n        format!(\"{asks}\"),\n")),
            [3]
        );
        assert_eq!(
            lines(&format!(
                "pub(crate) fn job_key() {{\n    let a = 1;\n    format!(\"{asks}\")\n"
            )),
            [3]
        );
    }

    #[test]
    fn debug_output_that_people_read_is_left_alone() {
        let asks = concat!("{kind:", "?}");
        assert_eq!(lines(&format!("fn told() {{\n    format!(\"{asks}\")\n}}")), [0; 0]);
        assert_eq!(lines(&format!("fn key() {{\n    assert!(x, \"{asks}\");\n}}")), [0; 0]);
        assert_eq!(
            lines(&format!("fn key() {{\n    // {asks}\n}}\nfn told() {{ \"{asks}\" }}")),
            [0; 0]
        );
        assert_eq!(lines(&format!("#[cfg(test)]\nfn key() {{ format!(\"{asks}\") }}")), [0; 0]);
    }
}
