//! The paths that a patch changes, read from its headers.

use std::collections::BTreeSet;

/// The maximum number of paths to return, and the maximum length of a header line.
const MAX_FILES: usize = 10_000;
const MAX_HEADER: usize = 8 << 10;

/// Returns the paths named in the headers of a patch, sorted and without duplicates; empty if it is no patch.
///
/// Reads `diff --git`, `---`, `+++`, `rename` and `copy` lines, and counts the lines of each hunk, so that a
/// changed line is not mistaken for a header. Linear in the length of the patch.
pub fn changed_paths(patch: &[u8]) -> Vec<String> {
    let mut reader = Reader::default();
    for line in patch.split(|byte| *byte == b'\n') {
        if reader.paths.len() >= MAX_FILES {
            break;
        }
        reader.take(line);
    }
    reader.end_file();
    reader.paths.into_iter().collect()
}

#[derive(Default)]
struct Reader {
    paths: BTreeSet<String>,
    /// The path from `diff --git`, used if no exact header follows.
    announced: Option<String>,
    /// The remaining lines of the hunk in the old and the new file.
    hunk: (u64, u64),
}

impl Reader {
    fn take(&mut self, line: &[u8]) {
        if self.is_hunk_line(line) {
            return;
        }
        let Some(text) = line.get(..line.len().min(MAX_HEADER)).map(String::from_utf8_lossy) else {
            return;
        };
        let text = text.trim_end_matches('\r');
        if let Some(rest) = text.strip_prefix("diff --git ") {
            self.end_file();
            self.announced = announced(rest).filter(|path| !path.is_empty());
        } else if let Some(rest) = text.strip_prefix("@@ ") {
            self.hunk = hunk(rest).unwrap_or((0, 0));
        } else if let Some(rest) = text.strip_prefix("--- ").or_else(|| text.strip_prefix("+++ ")) {
            self.name(prefixed(rest));
        } else {
            let exact = ["rename from ", "rename to ", "copy to "];
            if let Some(rest) = exact.iter().find_map(|start| text.strip_prefix(start)) {
                self.name(unquoted(rest));
            }
        }
    }

    fn name(&mut self, path: Option<String>) {
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            self.paths.insert(path);
            self.announced = None;
        }
    }

    fn end_file(&mut self) {
        self.paths.extend(self.announced.take());
    }

    fn is_hunk_line(&mut self, line: &[u8]) -> bool {
        let (old, new) = &mut self.hunk;
        if (*old, *new) == (0, 0) {
            return false;
        }
        match line.first() {
            Some(b'-') => *old = old.saturating_sub(1),
            Some(b'+') => *new = new.saturating_sub(1),
            Some(b'\\') => {}
            // Some tools strip the space of an empty line.
            Some(b' ') | None => {
                *old = old.saturating_sub(1);
                *new = new.saturating_sub(1);
            }
            Some(_) => {
                self.hunk = (0, 0);
                return false;
            }
        }
        true
    }
}

/// Parses the line counts of `-1,2 +3,4 @@ …`.
fn hunk(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split(' ');
    let mut count = |sign: char| {
        let range = words.next()?.strip_prefix(sign)?;
        let (_, count) = range.split_once(',').unwrap_or((range, "1"));
        count.parse::<u64>().ok()
    };
    Some((count('-')?, count('+')?))
}

/// Returns the path of a `---` or `+++` line.
fn prefixed(text: &str) -> Option<String> {
    let path = unquoted(text.split('\t').next().unwrap_or(text))?;
    if path == "/dev/null" {
        return None;
    }
    Some(without_side(&path).to_owned())
}

fn without_side(path: &str) -> &str {
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path)
}

/// Returns the path of `a/x b/x`, if both sides have the same name.
fn announced(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix('"') {
        let (first, _) = rest.split_once('"')?;
        return unquoted(&format!("\"{first}\"")).map(|path| without_side(&path).to_owned());
    }
    // A name may contain spaces; the two halves are equal except for their first letter.
    let middle = text.len() / 2;
    let (left, right) = (text.get(..middle)?, text.get(middle + 1..)?);
    let same = without_side(left) == without_side(right) && !without_side(left).is_empty();
    same.then(|| without_side(left).to_owned())
}

/// Parses a name as git writes it: plain, or quoted with escapes.
fn unquoted(text: &str) -> Option<String> {
    let text = text.trim_end();
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return (!text.is_empty()).then(|| text.to_owned());
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    loop {
        rest = match rest {
            [] => break,
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest
            }
            [b'\\', escaped, rest @ ..] => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    other => *other,
                });
                rest
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(patch: &str) -> String {
        changed_paths(patch.as_bytes()).join(" | ")
    }

    #[test]
    fn headers_name_the_files() {
        let patch = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-x\n+y\n\
                     diff --git a/new b/new\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+y\n";
        insta::assert_snapshot!(paths(patch), @"new | src/a.rs");
    }

    #[test]
    fn a_changed_line_that_looks_like_a_header_is_none() {
        let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/not\n+++ b/neither\n same\n--- a/y\n+++ b/y\n";
        insta::assert_snapshot!(paths(patch), @"x | y");
    }

    #[test]
    fn files_without_hunks_are_told_too() {
        let patch = "diff --git a/a b c b/a b c\nBinary files differ\n\
                     diff --git a/old b/new\nrename from old\nrename to new\n\
                     diff --git \"a/f\\303\\266o\" \"b/f\\303\\266o\"\nold mode 100644\n";
        insta::assert_snapshot!(paths(patch), @"a b c | föo | new | old");
    }

    #[test]
    fn what_is_no_patch_changes_nothing() {
        insta::assert_snapshot!(paths("(content left out)\n"), @"");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(changed_paths(&bytes).len() <= bytes.len());
        }

        #[test]
        fn arbitrary_headers_never_panic(text in "((diff --git |--- |\\+\\+\\+ |@@ -|rename to )[ab/\" \\\\1,+@é]{0,12}\n){0,8}") {
            prop_assert!(changed_paths(text.as_bytes()).iter().all(|path| !path.is_empty()));
        }
    }
}
