//! The test functions of the workspace, found in its source text.

use camino::Utf8Path;

use crate::tidy::SourceFile;

/// A function with `#[test]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestFunction<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: &'a Utf8Path,
    /// The line of the name.
    pub(crate) line: usize,
    /// The line of `#[test]`.
    pub(crate) attribute: usize,
}

/// Returns every test of the Rust files, in the order of files and lines.
pub(crate) fn all(files: &[SourceFile]) -> impl Iterator<Item = TestFunction<'_>> {
    files.iter().filter(|file| file.path.extension() == Some("rs")).flat_map(of)
}

/// Returns the tests of one file. Tests inside of a macro, as `proptest!`, count.
pub(crate) fn of(file: &SourceFile) -> Vec<TestFunction<'_>> {
    let mut tests = Vec::new();
    let mut marked = None;
    for (line, text) in (1..).zip(file.text.lines()) {
        let text = text.trim();
        if text == "#[test]" {
            marked = Some(line);
        } else if let Some(rest) = text.strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            tests.extend(marked.take().map(|attribute| TestFunction {
                name,
                path: &file.path,
                line,
                attribute,
            }));
        }
    }
    tests
}
