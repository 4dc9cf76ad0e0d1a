//! The lines in which tests name the rows that they hold.

use camino::Utf8Path;

use crate::test_functions::{self, TestFunction};
use crate::tidy::SourceFile;

/// Split, so that this file does not find itself.
const START: &str = concat!("// ", "holds:");

/// A comment that names rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HoldsMarker<'a> {
    pub(super) path: &'a Utf8Path,
    pub(super) line: usize,
    pub(super) rows: Vec<&'a str>,
    /// The test below it.
    pub(super) test: Option<TestFunction<'a>>,
    /// Whether it is written as a marker; any other comment that names a row may be a mistyped one.
    pub(super) is_in_form: bool,
}

impl<'a> HoldsMarker<'a> {
    /// Returns each row with its test. A marker without a test holds nothing.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a str, TestFunction<'a>)> + '_ {
        self.test.into_iter().flat_map(|test| self.rows.iter().map(move |row| (*row, test)))
    }
}

/// Returns every marker of the Rust files, in the order of files and lines.
pub(super) fn all(files: &[SourceFile]) -> Vec<HoldsMarker<'_>> {
    let sources = files.iter().filter(|file| file.path.extension() == Some("rs"));
    sources.flat_map(of).collect()
}

fn of(file: &SourceFile) -> Vec<HoldsMarker<'_>> {
    let tests = test_functions::of(file);
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut markers = Vec::new();
    for (at, text) in lines.iter().enumerate().filter(|(_, text)| names_rows(text)) {
        // Several markers may stand above one test.
        let below = lines[at..].iter().take_while(|line| line.starts_with(START)).count();
        let attribute = at + below + 1;
        let listed = text.strip_prefix(START);
        markers.push(HoldsMarker {
            path: &file.path,
            line: at + 1,
            rows: listed.map(rows).unwrap_or_default(),
            test: tests.iter().copied().find(|test| below > 0 && test.attribute == attribute),
            is_in_form: listed.is_some(),
        });
    }
    markers
}

fn rows(listed: &str) -> Vec<&str> {
    listed.split(',').map(str::trim).collect()
}

fn names_rows(line: &str) -> bool {
    let words = || line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    line.starts_with(START) || (line.starts_with("// ") && words().any(is_row))
}

/// Returns whether a word has the form of a row: letters and digits, a dash, two digits.
fn is_row(word: &str) -> bool {
    let Some((group, number)) = word.split_once('-') else { return false };
    let is_group =
        group == "CARD" || group.strip_prefix("S00").is_some_and(|rest| rest.parse::<u8>().is_ok());
    is_group && number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, Vec<String>, Option<String>, bool)> {
        let file = SourceFile { path: "a.rs".into(), text: text.to_owned() };
        let told = |marker: HoldsMarker<'_>| {
            let rows = marker.rows.iter().map(|row| (*row).to_owned()).collect();
            let name = marker.test.map(|test| test.name.to_owned());
            (marker.line, rows, name, marker.is_in_form)
        };
        of(&file).into_iter().map(told).collect()
    }

    fn ids(rows: &[&str]) -> Vec<String> {
        rows.iter().map(|row| (*row).to_owned()).collect()
    }

    #[test]
    fn a_marker_belongs_to_the_test_directly_below_it() {
        let text = "  // holds: S000-01, CARD-02\n  // holds: S001-03\n  #[test]\n  #[expect(x)]\n  fn a(b in 0..1) {}";
        let name = || Some("a".to_owned());
        assert_eq!(
            found(text),
            [(1, ids(&["S000-01", "CARD-02"]), name(), true), (2, ids(&["S001-03"]), name(), true)]
        );
    }

    #[test]
    fn a_marker_above_anything_else_has_no_test() {
        for below in ["fn a() {}", "\n#[test]\nfn a() {}", "// why\n#[test]\nfn a() {}", ""] {
            let text = format!("// holds: S000-01\n{below}");
            assert_eq!(found(&text), [(1, ids(&["S000-01"]), None, true)], "{below}");
        }
    }

    #[test]
    fn a_comment_that_names_a_row_in_another_form_is_found() {
        let text = "// holds S000-01\n#[test]\nfn a() {}\n// see (CARD-02).\n";
        assert_eq!(found(text), [(1, vec![], None, false), (4, vec![], None, false)]);
    }

    #[test]
    fn other_comments_are_no_markers() {
        assert_eq!(found("// it holds: nothing\n/// S000-01 in a doc\nlet a = \"S000-01\";"), []);
    }
}
