//! Witnesses: the changes that the evidence of a red points to.
//!
//! The change that added the failing test, then those that touched a file with it or a file that the failing test's
//! name has, then those with a file that the output names. A search tries them before it halves. A wrong witness costs
//! a gate run and names nobody.

use std::collections::BTreeMap;

use gix::bstr::ByteSlice as _;
use pdca_state::files;

use crate::git::failure::StoreError;
use crate::git::path::TreePath;
use crate::git::seal::SealRecord;
use crate::git::store::Store;

use super::evidence::RedRow;

/// The maximum size, in bytes, of a log or a file that is searched.
const LARGEST: u64 = 1 << 20;
/// The maximum number of files of a change that are searched.
const MOST_FILES: usize = 200;
/// The maximum number of failing tests that are looked for.
const MOST_TESTS: usize = 8;
/// The minimum length of a name that is looked for. A shorter one is found by chance.
const SHORTEST: usize = 4;
/// A file that so many changes touch points to none of them.
const SHARED: usize = 3;

/// The strength of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hint {
    /// The output names a file that the change touches.
    Output,
    /// The failing test's name has a file that the change touches, or the change touches a file with the failing test.
    TestFile,
    /// The change added the failing test.
    AddedTest,
}

/// Returns the numbers of the changes that red rows point to, most likely first, and of equal ones the last.
pub(super) fn witnesses(
    store: &Store,
    changes: &[&SealRecord],
    red: &[RedRow],
) -> Result<Vec<usize>, StoreError> {
    let tests: Vec<&str> =
        red.iter().flat_map(|row| &row.failing).map(String::as_str).take(MOST_TESTS).collect();
    let needles: Vec<&str> = tests.iter().flat_map(|test| names_in(test)).collect();
    let output: Vec<String> = red.iter().map(output_of).collect();
    let mut touched: BTreeMap<&TreePath, usize> = BTreeMap::new();
    for path in changes.iter().flat_map(|change| &change.footprint) {
        *touched.entry(path).or_default() += 1;
    }
    let mut found: Vec<(Hint, usize)> = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let mut strongest = None;
        for path in change.footprint.iter().take(MOST_FILES) {
            let hint = hint(store, change, path, &tests, &needles)?;
            let is_own = touched.get(path).is_none_or(|count| *count < SHARED);
            let is_named = || is_own && output.iter().any(|text| has_path(text, path));
            strongest = strongest.max(hint.or_else(|| is_named().then_some(Hint::Output)));
        }
        found.extend(strongest.map(|hint| (hint, number)));
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, number)| number).collect())
}

/// Returns what one file of a change has to do with the failing tests.
fn hint(
    store: &Store,
    change: &SealRecord,
    path: &TreePath,
    tests: &[&str],
    needles: &[&str],
) -> Result<Option<Hint>, StoreError> {
    if tests.is_empty() {
        return Ok(None);
    }
    let text_at = |commit| -> Result<Vec<u8>, StoreError> {
        let leaf = store.leaf(store.tree_of(commit)?, path)?;
        let Some(leaf) = leaf.filter(|leaf| leaf.mode.is_blob()) else { return Ok(Vec::new()) };
        let failed = |source| StoreError::objects("read a file", source);
        let repo = store.repo();
        if repo.find_header(leaf.id).map_err(failed)?.size() > LARGEST {
            return Ok(Vec::new());
        }
        Ok(repo.find_blob(leaf.id).map_err(failed)?.detach().data)
    };
    let now = text_at(change.head)?;
    let in_it: Vec<&&str> = needles.iter().filter(|needle| now.contains_str(needle)).collect();
    if in_it.is_empty() {
        let is_named = tests.iter().any(|test| has_path(test, path));
        return Ok(is_named.then_some(Hint::TestFile));
    }
    let before = text_at(change.base)?;
    let is_new = in_it.iter().any(|needle| !before.contains_str(needle));
    Ok(Some(if is_new { Hint::AddedTest } else { Hint::TestFile }))
}

/// Returns the names under which a test may stand in a file: its last part without parameters, and the whole name.
fn names_in(test: &str) -> impl Iterator<Item = &str> {
    let plain = test.split(['[', '(']).next().unwrap_or(test).trim_end();
    let last = plain.rsplit([':', '.', '/', ' ', '>']).next().unwrap_or(plain);
    let whole = Some(test).filter(|_| last != test);
    [last].into_iter().chain(whole).filter(|name| name.len() >= SHORTEST)
}

/// Returns the reason of a row and its log, if that can be read.
fn output_of(row: &RedRow) -> String {
    let log = row.log.as_ref().and_then(|log| files::read_bounded(log, LARGEST).ok().flatten());
    let log = log.unwrap_or_default();
    format!("{}\n{}", row.said, log.to_str_lossy())
}

/// Returns true if a text names a path as a whole.
fn has_path(text: &str, path: &TreePath) -> bool {
    let path = path.to_string();
    if path.len() < SHORTEST {
        return false;
    }
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    text.match_indices(&path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + path.len()..].chars();
        let next = after.next();
        // A dot may end a sentence.
        let ends = match next {
            Some('.') => !after.next().is_some_and(is_part),
            Some(letter) => !is_part(letter),
            None => true,
        };
        // Output may name the path below the checkout.
        !before.is_some_and(is_part) && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_looked_for_under_its_own_name() {
        let names = |test| names_in(test).collect::<Vec<&str>>();
        assert_eq!(
            names("tests/test_x.py::TestC::test_total[a-1]"),
            ["test_total", "tests/test_x.py::TestC::test_total[a-1]"]
        );
        assert_eq!(names("queue::tests::it_lands"), ["it_lands", "queue::tests::it_lands"]);
        assert_eq!(names("TestSum"), ["TestSum"]);
        assert_eq!(names("a::b"), ["a::b"], "`b` is everywhere");
    }

    #[test]
    fn a_path_is_named_only_as_a_whole() {
        let has = |text, path: &str| has_path(text, &TreePath::new(path));
        assert!(has("error in src/sum.c:3", "src/sum.c"));
        assert!(has("/lane/x/src/sum.c: bad", "src/sum.c"));
        assert!(has("see src/sum.c.", "src/sum.c"));
        assert!(!has("src/sum.cc", "src/sum.c"));
        assert!(!has("src/sum.c.orig", "src/sum.c"));
        assert!(!has("mysrc/sum.c", "src/sum.c"));
        assert!(!has("a b c", "b"));
    }
}
