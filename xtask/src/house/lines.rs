//! Counts of lines and of doc comments. Text is enough for these: rustfmt fixes where a comment
//! and a test module may begin.

use std::ops::AddAssign;

use camino::Utf8Path;

/// Lines and doc comments of one file, or of many added up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineCount {
    /// Lines that are neither blank nor of a test.
    pub(super) source: usize,
    /// Lines of tests that are not blank.
    pub(super) tests: usize,
    /// `//` comment lines among the source lines.
    pub(super) comments: usize,
    /// Doc comments, a block of `///` or `//!` lines counted once.
    pub(super) docs: usize,
    /// Doc comments that begin with a question word.
    pub(super) wh: usize,
    /// Doc comments of at most two words.
    pub(super) short: usize,
}

const QUESTION_WORDS: &[&str] = &[
    "What", "Whatever", "Whether", "How", "Who", "Whoever", "Whose", "Why", "Where", "Wherever",
    "When", "Which",
];

impl LineCount {
    pub(super) fn of(path: &Utf8Path, text: &str) -> Self {
        let mut counted = LineCount::default();
        let mut in_tests = is_test_file(path);
        let mut doc: Vec<&str> = Vec::new();
        let mut lines = text.lines().map(str::trim_end).peekable();
        while let Some(line) = lines.next() {
            if line == "#[cfg(test)]" && !in_tests {
                // A test module that is a file of its own is declared anywhere; one with a body is by convention the
                // last item of a file.
                if lines.next_if(|next| next.ends_with(';')).is_some() {
                    counted.tests += 2;
                    continue;
                }
                in_tests = true;
            }
            let line = line.trim_start();
            let documentation = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(words) = documentation.filter(|_| !in_tests) {
                doc.push(words);
            } else {
                counted.close(&mut doc);
            }
            if line.is_empty() {
                continue;
            }
            if in_tests {
                counted.tests += 1;
            } else {
                counted.source += 1;
                counted.comments += usize::from(documentation.is_none() && line.starts_with("//"));
            }
        }
        counted.close(&mut doc);
        counted
    }

    fn close(&mut self, doc: &mut Vec<&str>) {
        if doc.is_empty() {
            return;
        }
        let mut words = doc.iter().flat_map(|line| line.split_whitespace());
        let first = words.next().unwrap_or_default().trim_end_matches(|c: char| !c.is_alphabetic());
        self.docs += 1;
        self.wh += usize::from(QUESTION_WORDS.contains(&first));
        self.short += usize::from(words.count() < 2);
        doc.clear();
    }
}

impl AddAssign<&LineCount> for LineCount {
    fn add_assign(&mut self, more: &LineCount) {
        let LineCount { source, tests, comments, docs, wh, short } = more;
        self.source += source;
        self.tests += tests;
        self.comments += comments;
        self.docs += docs;
        self.wh += wh;
        self.short += short;
    }
}

/// Recognizes a file of tests by its path: `tests/`, `tests.rs`, `testing.rs` and files below them.
pub(super) fn is_test_file(path: &Utf8Path) -> bool {
    path.components().any(|part| {
        matches!(part.as_str(), "tests" | "tests.rs" | "testing" | "testing.rs" | "benches")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_is_counted_once_and_a_test_module_apart() {
        let text = "\
//! Whether it rains.
//! Or not.

/// The name.
name: String,
// Zero would divide.
let x = 1;

#[cfg(test)]
mod tests {
    /// What is this.
    fn x() {}
}
";
        let counted = LineCount::of("src/a.rs".into(), text);
        let expected = LineCount { source: 6, tests: 5, comments: 1, docs: 2, wh: 1, short: 1 };
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_ends_nothing() {
        let text = "#[cfg(test)]\nmod tests;\n\nuse std::io;\nfn x() {}\n";
        let counted = LineCount::of("src/a.rs".into(), text);
        assert_eq!(counted, LineCount { source: 2, tests: 2, ..LineCount::default() });
    }

    #[test]
    fn a_file_below_tests_is_all_test() {
        let counted =
            LineCount::of("crates/a/src/b/tests/c.rs".into(), "/// Why not.\nfn x() {}\n");
        assert_eq!(counted, LineCount { tests: 2, ..LineCount::default() });
    }
}
