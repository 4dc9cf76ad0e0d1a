//! Reads and validates a patch before git sees it.
//!
//! git rejects most of what is rejected here, and the overlap is intended: a patch comes from outside and must neither
//! leave the checkout nor reach its `.git`, on any filesystem.

pub mod path;

use std::collections::BTreeSet;
use std::ops::Range;

use thiserror::Error;

use path::{leaves, lossy, unfit_path, unquote};

/// A rejected patch, with the position of the fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the patch: {fault}")]
#[non_exhaustive]
pub struct PatchError {
    /// The line of the patch, counted from 1.
    pub line: usize,
    /// The affected path; empty if there is none.
    pub path: String,
    /// The kind of fault.
    pub fault: PatchFault,
}

impl PatchError {
    /// Describes a symbolic link that would lead out of the tree, which `line` of the patch makes or moves.
    pub fn outward_link(line: usize, path: String, target: String) -> Self {
        Self { line, path: path.clone(), fault: PatchFault::Link { path, target } }
    }
}

/// The reason why a patch is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchFault {
    /// The patch contains no change.
    #[error("there is no change in it")]
    Empty,
    /// The text is not a valid patch.
    #[error("{0}")]
    Malformed(&'static str),
    /// A path is absolute.
    #[error("{0:?} is absolute")]
    Absolute(String),
    /// A path leads out of the tree, or has an empty component.
    #[error("{0:?} leaves the tree")]
    Leaves(String),
    /// A path lies in `.git`, in some spelling.
    #[error("{0:?} is inside .git")]
    Repository(String),
    /// A symbolic link would lead out of the tree.
    #[error("the link {path:?} to {target:?} leaves the tree")]
    Link {
        /// The path of the link.
        path: String,
        /// The target of the link.
        target: String,
    },
    /// The mode is neither that of a file nor of a link or submodule.
    #[error("{0:?} is no mode of a file")]
    Mode(String),
}

/// The positions and paths in a patch.
#[derive(Debug, Default)]
pub struct PatchScan {
    /// The path of each file and its lines in the patch.
    files: Vec<(String, Range<usize>)>,
    /// For each hunk its line in the patch and its line in the old file.
    hunks: Vec<(usize, usize)>,
    /// Every path that is written, moved or removed.
    touched: BTreeSet<Vec<u8>>,
}

/// Returns the paths that a patch writes or removes, sorted and unique. A rename has both its names, a change of mode
/// alone counts, and the source of a copy does not. Invalid UTF-8 is replaced.
///
/// ```
/// let patch = b"diff --git a/old.rs b/new.rs\nrename from old.rs\nrename to new.rs\n";
/// assert_eq!(pdca_state::footprint(patch)?, ["new.rs", "old.rs"]);
/// # Ok::<(), pdca_state::PatchError>(())
/// ```
pub fn footprint(patch: &[u8]) -> Result<Vec<String>, PatchError> {
    Ok(PatchScan::of(patch)?.paths())
}

/// Returns the paths that can be read, also from a patch that git rejects. For reports: nothing is decided by it.
pub fn named_paths(patch: &[u8]) -> Vec<String> {
    read(patch).0.paths()
}

/// One file of a patch, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFile<'p> {
    /// Its new name; the old one if it is removed.
    pub path: String,
    /// Its part of the patch, headers included.
    pub text: &'p [u8],
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
}

/// Returns the files of a patch in order, also of one that git rejects. For reports: nothing is decided by it.
///
/// ```
/// let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-one\n+two\n+three\n";
/// let files = pdca_state::patch_files(patch);
/// assert_eq!((files[0].path.as_str(), files[0].added, files[0].removed), ("x", 2, 1));
/// ```
pub fn patch_files(patch: &[u8]) -> Vec<PatchFile<'_>> {
    let mut ends = vec![0];
    ends.extend(patch.split_inclusive(|byte| *byte == b'\n').scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    }));
    let end = |line: usize| ends[line.saturating_sub(1).min(ends.len() - 1)];
    let file = |(path, lines): (String, Range<usize>)| {
        let text = &patch[end(lines.start)..end(lines.end)];
        let (added, removed) = changed_lines(text);
        PatchFile { path, text, added, removed }
    };
    read(patch).0.files.into_iter().map(file).collect()
}

/// Counts the added and removed lines of one file: those of its hunks, which begin at `@@`.
fn changed_lines(text: &[u8]) -> (usize, usize) {
    let lines = text.split(|byte| *byte == b'\n').skip_while(|line| !line.starts_with(b"@@ -"));
    lines.fold((0, 0), |(added, removed), line| match line.first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    })
}

/// Reads a patch to its end. Returns its positions and the first fault.
fn read(patch: &[u8]) -> (PatchScan, Option<PatchError>) {
    let mut reader = Reader::default();
    let mut first = None;
    for (index, line) in patch.split_inclusive(|byte| *byte == b'\n').enumerate() {
        reader.line = index + 1;
        // The reader goes on after a fault, because reports name the files of a patch that git
        // rejects too.
        if let Err(fault) = reader.read(line) {
            first.get_or_insert_with(|| reader.fails(index + 1, fault));
            if (reader.old_left, reader.new_left) != (0, 0) {
                // The hunk is shorter than its header says: the line is a header, as far as it can be read.
                (reader.old_left, reader.new_left) = (0, 0);
                drop(reader.read(line));
            }
        }
    }
    reader.line += 1;
    if let Err(fault) = reader.end_file() {
        first.get_or_insert_with(|| reader.fails(reader.line - 1, fault));
    }
    if reader.scan.files.is_empty() {
        first.get_or_insert_with(|| reader.fails(1, PatchFault::Empty));
    }
    (reader.scan, first)
}

/// The state of the parser between two lines.
#[derive(Debug, Default)]
struct Reader {
    line: usize,
    scan: PatchScan,
    /// The line at which the current file began, if there is one.
    started: Option<usize>,
    path: Option<Vec<u8>>,
    is_link: bool,
    /// The target of the current link.
    target: Option<Vec<u8>>,
    /// The lines of the current hunk that are still to come, old and new.
    old_left: u64,
    new_left: u64,
    binary: bool,
}

impl Reader {
    fn read(&mut self, line: &[u8]) -> Result<(), PatchFault> {
        if self.old_left > 0 || self.new_left > 0 {
            return self.hunk_line(line);
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.starts_with(b"diff --git ") {
            self.end_file()?;
            self.started = Some(self.line);
            return self.both_names(&text[b"diff --git ".len()..]);
        }
        if text.starts_with(b"--- ")
            // Below git's own header the first `---` belongs to that header; only one after a hunk
            // begins the next file. In binary content the line can be data.
            && (self.started.is_none() || self.scan_has_hunk())
            && !self.binary
        {
            // A patch without git's own header: each file begins here.
            self.end_file()?;
            self.started = Some(self.line);
        }
        // Text before the first file, such as a commit message, is ignored, as git does.
        let Some(started) = self.started else {
            return Ok(());
        };
        if let Some(rest) = text.strip_prefix(b"@@ -") {
            return self.hunk(rest);
        }
        if self.binary || self.line == started && text.starts_with(b"diff") {
            return Ok(());
        }
        self.header(text)
    }

    fn header(&mut self, text: &[u8]) -> Result<(), PatchFault> {
        for prefix in [&b"--- "[..], b"+++ "] {
            if let Some(name) = text.strip_prefix(prefix) {
                return self.name(name, true);
            }
        }
        for prefix in [&b"rename from "[..], b"rename to ", b"copy to "] {
            if let Some(name) = text.strip_prefix(prefix) {
                return self.name(name, false);
            }
        }
        if let Some(name) = text.strip_prefix(b"copy from ") {
            // The source of a copy is only read, but it must be inside the tree too.
            return read_name(name, false).map(drop);
        }
        for prefix in [&b"new file mode "[..], b"new mode ", b"old mode ", b"deleted file mode "] {
            if let Some(mode) = text.strip_prefix(prefix) {
                let stays = prefix.starts_with(b"new");
                return self.mode(mode, stays);
            }
        }
        if let Some(index) = text.strip_prefix(b"index ") {
            return match fields(index).nth(1) {
                Some(mode) => self.mode(mode, true),
                None => Ok(()),
            };
        }
        if text == b"GIT binary patch" {
            self.binary = true;
        } else if text.starts_with(b"Binary files ") {
            // git cannot apply it either; here the line of the patch is known.
            return Err(PatchFault::Malformed("a binary file is named without its content"));
        }
        Ok(())
    }

    fn mode(&mut self, mode: &[u8], stays: bool) -> Result<(), PatchFault> {
        match mode.trim_ascii() {
            b"120000" => self.is_link |= stays,
            // Old programs write 100664, which git accepts as 100644.
            b"100644" | b"100755" | b"160000" | b"100664" => {}
            other => return Err(PatchFault::Mode(lossy(other))),
        }
        Ok(())
    }

    /// Reads the names of `diff --git`, which are checked only where they can be told apart.
    fn both_names(&mut self, names: &[u8]) -> Result<(), PatchFault> {
        if names.starts_with(b"\"") {
            let (first, rest) =
                unquote(names).ok_or(PatchFault::Malformed("a quoted name is not closed"))?;
            let first = checked(first, true)?;
            self.touch(first);
            return self.name(rest.trim_ascii_start(), true);
        }
        if let Some(at) = names.windows(2).position(|pair| pair == b" \"") {
            self.name(&names[..at], true)?;
            return self.name(&names[at + 1..], true);
        }
        // Without quotes git itself only accepts two equal names; others follow in later headers.
        let names = names.strip_suffix(b"\r").unwrap_or(names);
        let middle = names.len() / 2;
        let same = names.get(middle) == Some(&b' ')
            && below(&names[..middle]) == below(&names[middle + 1..]);
        if same { self.name(&names[..middle], true) } else { Ok(()) }
    }

    fn name(&mut self, name: &[u8], prefixed: bool) -> Result<(), PatchFault> {
        let path = read_name(name, prefixed)?;
        self.touch(path);
        Ok(())
    }

    fn touch(&mut self, path: Option<Vec<u8>>) {
        if let Some(path) = path {
            self.scan.touched.insert(path.clone());
            self.path = Some(path);
        }
    }

    fn hunk(&mut self, rest: &[u8]) -> Result<(), PatchFault> {
        let bad = PatchFault::Malformed("a hunk header makes no sense");
        let mut parts = fields(rest);
        let (Some(old), Some(new)) =
            (parts.next(), parts.next().and_then(|new| new.strip_prefix(b"+")))
        else {
            return Err(bad);
        };
        let (Some((start, old)), Some((_, new))) = (range(old), range(new)) else {
            return Err(bad);
        };
        self.scan.hunks.push((self.line, usize::try_from(start).unwrap_or(usize::MAX)));
        (self.old_left, self.new_left) = (old, new);
        Ok(())
    }

    fn hunk_line(&mut self, line: &[u8]) -> Result<(), PatchFault> {
        let (old, new) = match line.first() {
            Some(b'-') => (1, 0),
            Some(b'+') => {
                if self.is_link {
                    let more = line[1..].strip_suffix(b"\n").unwrap_or(&line[1..]);
                    self.target.get_or_insert_default().extend_from_slice(more);
                }
                (0, 1)
            }
            Some(b' ' | b'\n' | b'\r') => (1, 1),
            Some(b'\\') => (0, 0),
            Some(_) | None => {
                return Err(PatchFault::Malformed("a line of a hunk starts with none of ' +-\\'"));
            }
        };
        let short = PatchFault::Malformed("a hunk has more lines than its header says");
        self.old_left = self.old_left.checked_sub(old).ok_or(short.clone())?;
        self.new_left = self.new_left.checked_sub(new).ok_or(short)?;
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), PatchFault> {
        if self.old_left > 0 || self.new_left > 0 {
            return Err(PatchFault::Malformed("a hunk has fewer lines than its header says"));
        }
        let Some(started) = self.started.take() else {
            return Ok(());
        };
        let path = self.path.take().unwrap_or_default();
        let shown = lossy(&path);
        if self.is_link && self.binary {
            // The target is compressed there and cannot be checked.
            return Err(PatchFault::Malformed("a link is given as binary content"));
        }
        if self.is_link
            && let Some(target) = self.target.take()
            && leaves(&path, &target)
        {
            return Err(PatchFault::Link { path: shown, target: lossy(&target) });
        }
        self.scan.files.push((shown, started..self.line));
        (self.is_link, self.binary, self.target) = (false, false, None);
        Ok(())
    }

    fn scan_has_hunk(&self) -> bool {
        self.scan.hunks.last().is_some_and(|(line, _)| Some(*line) > self.started)
    }

    fn fails(&self, line: usize, fault: PatchFault) -> PatchError {
        let path = self.path.as_deref().map(lossy).unwrap_or_default();
        PatchError { line, path, fault }
    }
}

impl PatchScan {
    /// Validates a patch and returns its positions.
    pub fn of(patch: &[u8]) -> Result<Self, PatchError> {
        match read(patch) {
            (scan, None) => Ok(scan),
            (_, Some(error)) => Err(error),
        }
    }

    fn paths(&self) -> Vec<String> {
        self.touched.iter().map(|path| lossy(path)).collect()
    }

    /// Finds the file and the line of the patch that a message of git is about.
    pub fn locate(&self, said: &str) -> (Option<String>, Option<usize>) {
        for line in said.lines() {
            let line = line.strip_prefix("error: ").unwrap_or(line);
            if let Some((file, at)) =
                line.strip_prefix("patch failed: ").and_then(|rest| rest.rsplit_once(':'))
            {
                return (Some(file.to_owned()), self.line_of(file, at.parse().ok()));
            }
            if let Some((_, at)) = line.rsplit_once(" at line ") {
                return (None, at.trim().parse().ok());
            }
            if let Some((file, _)) =
                self.files.iter().find(|(file, _)| line.starts_with(&format!("{file}: ")))
            {
                return (Some(file.clone()), self.line_of(file, None));
            }
        }
        (None, None)
    }

    fn line_of(&self, file: &str, old: Option<usize>) -> Option<usize> {
        let (_, lines) = self.files.iter().find(|(name, _)| name == file)?;
        let hunk = self.hunks.iter().find(|(at, start)| lines.contains(at) && Some(*start) == old);
        Some(hunk.map_or(lines.start, |(at, _)| *at))
    }
}

/// Reads a name that must stay inside the tree; `None` for `/dev/null`.
fn read_name(name: &[u8], prefixed: bool) -> Result<Option<Vec<u8>>, PatchFault> {
    if name.starts_with(b"\"") {
        let (name, _) =
            unquote(name).ok_or(PatchFault::Malformed("a quoted name is not closed"))?;
        return checked(name, prefixed);
    }
    // A time may follow after a tab; git itself writes a tab after a name with blanks.
    let name =
        if prefixed { name.split(|byte| *byte == b'\t').next().unwrap_or(name) } else { name };
    checked(name.strip_suffix(b"\r").unwrap_or(name).to_vec(), prefixed)
}

fn checked(name: Vec<u8>, prefixed: bool) -> Result<Option<Vec<u8>>, PatchFault> {
    if name == b"/dev/null" {
        return Ok(None);
    }
    if name.starts_with(b"/") {
        return Err(PatchFault::Absolute(lossy(&name)));
    }
    let path = match (prefixed, below(&name)) {
        (true, Some(below)) => below.to_vec(),
        (true, None) => return Err(PatchFault::Malformed("a name has no a/ or b/ before it")),
        (false, _) => name,
    };
    match unfit_path(&path) {
        Some(fault) => Err(fault),
        None => Ok(Some(path)),
    }
}

/// Returns a name without its first directory, which is `a` or `b`.
fn below(name: &[u8]) -> Option<&[u8]> {
    let slash = name.iter().position(|byte| *byte == b'/')?;
    Some(&name[slash + 1..])
}

fn fields(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Parses `12,3`, or `12` which means `12,1`.
fn range(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?;
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{footprint, named_paths};

    fn touched(patch: &str) -> String {
        footprint(patch.as_bytes()).expect("it is a patch").join(" | ")
    }

    #[test]
    fn whatever_is_written_moved_or_removed_is_touched() {
        let changed = "diff --git a/m b/m\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-x\n+y\n";
        let added =
            "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n";
        let removed = "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n";
        let moved =
            "diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n";
        let mode = "diff --git a/run me b/run me\nold mode 100644\nnew mode 100755\n";
        let empty = "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n";
        let binary =
            "diff --git a/p b/p\nindex 1..2 100644\nGIT binary patch\nliteral 0\n\nliteral 0\n\n";
        let all = [changed, added, removed, moved, mode, empty, binary].concat();
        assert_eq!(touched(&all), "d | e | from | m | n | p | run me | to");
    }

    #[test]
    fn what_is_only_copied_from_is_not_touched() {
        assert_eq!(touched("diff --git a/x b/y\ncopy from x\ncopy to y\n"), "y");
    }

    #[test]
    fn a_changed_line_that_looks_like_a_header_is_none() {
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/not\n+++ b/neither\n";
        assert_eq!(touched(patch), "x");
        assert_eq!(
            touched(
                "diff --git \"a/f\\303\\266o\" \"b/f\\303\\266o\"\nold mode 100644\nnew mode 100755\n"
            ),
            "föo"
        );
    }

    #[test]
    fn what_is_no_patch_has_no_footprint() {
        footprint(b"hello\n").unwrap_err();
        footprint(b"").unwrap_err();
    }

    #[test]
    fn a_file_that_git_would_refuse_is_named_in_reports_all_the_same() {
        let patch = "diff --git a/a b c b/a b c\nBinary files differ\n\
                     diff --git a/old b/new\nrename from old\nrename to new\n\
                     --- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-y\ndiff --git a/z b/z\nold mode 100644\n";
        footprint(patch.as_bytes()).unwrap_err();
        assert_eq!(named_paths(patch.as_bytes()).join(" | "), "a b c | new | old | x | z");
        assert_eq!(named_paths(b"(content left out)\n"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(named_paths(&bytes).len() <= bytes.len());
        }

        #[test]
        fn arbitrary_headers_never_panic(
            text in "((diff --git |--- |\\+\\+\\+ |@@ -|rename to )[ab/\" \\\\1,+@é]{0,12}\n){0,8}"
        ) {
            prop_assert!(named_paths(text.as_bytes()).iter().all(|path| !path.is_empty()));
        }
    }
}
