//! The files that a check leaves in the checkout, and their removal before the next check.
//!
//! A check runs the change's code, and a later check must not read what that code wrote: a scanner that finds its
//! configuration in an ignored file judges nothing. So the state of every file is recorded before a check, and the next
//! check starts from it:
//!
//! 1. New files are removed, ignored ones included. Declared caches stay.
//! 2. Files of the checkout's own `.git` get their content back, except for objects: a new one is removed, and a changed
//!    one counts as damage.
//! 3. Other changed or missing files are returned as damage. The caller puts tracked ones back by a reset, and makes the
//!    checkout anew for the others, which hydration brought.
//!
//! A file is known by its inode, change time, size and mode. No program can set the change time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::{fs::Metadata, io};

use camino::Utf8Path;
use pdca_dag::Pattern;
use pdca_state::files;

/// The largest file of `.git` whose content is recorded; a larger one that changed counts as damage.
const LARGEST_KEPT: u64 = 64 << 20;

/// The part of a checkout that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    Checkout,
    /// The checkout's own `.git`: the files of a check that shares them stay.
    Repository,
}

/// The files of a checkout at one time.
#[derive(Debug)]
pub(crate) struct CheckoutState {
    extent: Extent,
    found: BTreeMap<PathBuf, Trace>,
    /// The content of files of `.git`.
    kept: BTreeMap<PathBuf, Vec<u8>>,
}

/// The properties by which a changed file is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trace {
    mode: u32,
    /// Inode, change time and size; zero for a directory, whose entries have traces of their own.
    version: (u64, i64, i64, u64),
}

impl Trace {
    fn of(found: &Metadata) -> Self {
        let version = if found.is_dir() {
            (0, 0, 0, 0)
        } else {
            (found.ino(), found.ctime(), found.ctime_nsec(), found.len())
        };
        Self { mode: found.mode(), version }
    }

    fn is_dir(self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    fn is_file(self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

impl CheckoutState {
    /// Records the files below `root`.
    pub(crate) fn take(root: &Utf8Path, extent: Extent, caches: &[Pattern]) -> io::Result<Self> {
        let Walked { found, .. } = walk(root, extent, caches, Closed::IsAnError)?;
        let mut kept = BTreeMap::new();
        for (path, trace) in &found {
            if is_restored(path) && trace.is_file() && trace.version.3 <= LARGEST_KEPT {
                kept.insert(path.clone(), fs_err::read(root.as_std_path().join(path))?);
            }
        }
        Ok(Self { extent, found, kept })
    }

    /// Removes what is new and restores `.git`. Returns the other paths that changed or are missing, relative to `root`.
    pub(crate) fn restore(&self, root: &Utf8Path, caches: &[Pattern]) -> io::Result<Vec<PathBuf>> {
        let Walked { found: now, cached } = walk(root, self.extent, caches, Closed::IsOpened)?;
        let root = root.as_std_path();
        // First, because a file can be removed only from a directory that can be written.
        for (path, before) in self.found.iter().filter(|(_, before)| before.is_dir()) {
            if now.get(path).is_some_and(|after| after.is_dir()) {
                set_mode(&root.join(path), before.mode | 0o700)?;
            }
        }
        let mut removed: Option<&Path> = None;
        let is_other = |path: &Path, trace: Trace| {
            let before = self.found.get(path);
            before.is_none_or(|before| before.is_dir() != trace.is_dir())
        };
        // In the order of the paths, so a directory comes before its entries, which go with it.
        for (path, trace) in now.iter().filter(|(path, trace)| is_other(path, **trace)) {
            // Of a new directory around a cache, the other entries are removed one by one.
            let is_around = trace.is_dir() && cached.iter().any(|cache| cache.starts_with(path));
            if !is_around && removed.is_none_or(|above| !path.starts_with(above)) {
                remove(&root.join(path), *trace)?;
                removed = Some(path);
            }
        }
        let mut damaged = Vec::new();
        for (path, before) in &self.found {
            let after = now.get(path).filter(|after| !is_other(path, **after));
            let is_opened = before.is_dir() && before.mode & 0o700 != 0o700;
            if after == Some(before) && !is_opened {
                continue;
            }
            let place = root.join(path);
            match self.kept.get(path) {
                Some(content) => {
                    files::replace_unsynced(utf8(&place)?, content)?;
                    set_mode(&place, before.mode)?;
                }
                None if before.is_dir() && (after.is_some() || is_restored(path)) => {
                    // Also of a directory whose mode is as it was: it may have been opened above.
                    fs_err::create_dir_all(&place)?;
                    set_mode(&place, before.mode)?;
                }
                // Its files are missing too, and each is damage.
                None if before.is_dir() => {}
                None => damaged.push(path.clone()),
            }
        }
        Ok(damaged)
    }
}

/// Removes everything in a directory, which stays.
pub(crate) fn empty(dir: &Utf8Path) -> io::Result<()> {
    let entries = match fs_err::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        remove(&entry.path(), Trace::of(&entry.path().symlink_metadata()?))?;
    }
    Ok(())
}

fn remove(path: &Path, trace: Trace) -> io::Result<()> {
    if trace.is_dir() { files::remove_tree(utf8(path)?) } else { fs_err::remove_file(path) }
}

/// Returns true for files of `.git` that get their content back.
fn is_restored(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.next() == Some(OsStr::new(".git")) && parts.next() != Some(OsStr::new("objects"))
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o7777))
}

fn utf8(path: &Path) -> io::Result<&Utf8Path> {
    let named =
        || io::Error::new(io::ErrorKind::InvalidData, format!("{} is no text", path.display()));
    Utf8Path::from_path(path).ok_or_else(named)
}

/// The entries below a directory, by their path from it.
struct Walked {
    found: BTreeMap<PathBuf, Trace>,
    /// The outermost entries that are caches.
    cached: Vec<PathBuf>,
}

/// The treatment of a directory that cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    IsAnError,
    IsOpened,
}

/// Lists every entry below `root`, without following links and without the content of caches.
fn walk(root: &Utf8Path, extent: Extent, caches: &[Pattern], closed: Closed) -> io::Result<Walked> {
    let (mut found, mut skipped) = (BTreeMap::new(), Vec::new());
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        let place = root.as_std_path().join(&dir);
        if closed == Closed::IsOpened && place.metadata()?.mode() & 0o700 != 0o700 {
            set_mode(&place, 0o700)?;
        }
        for entry in fs_err::read_dir(&place)? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            let is_outside = extent == Extent::Repository && !path.starts_with(".git");
            let is_cache = || path.to_str().is_some_and(|path| is_cached(path, caches));
            if is_outside {
                continue;
            }
            if is_cache() {
                skipped.push(path);
                continue;
            }
            let trace = Trace::of(&entry.path().symlink_metadata()?);
            if trace.is_dir() {
                open.push(path.clone());
            }
            found.insert(path, trace);
        }
    }
    Ok(Walked { found, cached: skipped })
}

/// Returns true if a path is a declared cache. Nothing of `.git` is.
fn is_cached(path: &str, caches: &[Pattern]) -> bool {
    let is_own = path == ".git" || path.starts_with(".git/");
    !is_own && caches.iter().any(|cache| cache.covers(path))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pdca_dag::Case;
    use proptest::prelude::*;

    use super::*;

    /// An operation of a check on a file of the checkout.
    #[derive(Debug, Clone)]
    enum Deed {
        Write(usize, u8),
        Remove(usize),
        Directory(usize),
        Link(usize),
        Mode(usize, u32),
    }

    const PATHS: [&str; 12] = [
        "a.txt",
        "dir/b.txt",
        "dir/deep/c.txt",
        "new",
        "dir/new",
        "new-dir/x/y",
        ".git/HEAD",
        ".git/refs/heads/main",
        ".git/refs/heads/planted",
        ".git/info/attributes",
        ".git/hooks/post-checkout",
        ".git/objects/aa/bb",
    ];
    /// Those that are there at first.
    const THERE: [usize; 6] = [0, 1, 2, 6, 7, 9];

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let at = 0..PATHS.len();
        let one = prop_oneof![
            (at.clone(), any::<u8>()).prop_map(|(at, byte)| Deed::Write(at, byte)),
            at.clone().prop_map(Deed::Remove),
            at.clone().prop_map(Deed::Directory),
            at.clone().prop_map(Deed::Link),
            (at, prop_oneof![Just(0o755), Just(0o600), Just(0o444)])
                .prop_map(|(at, mode)| Deed::Mode(at, mode)),
        ];
        prop::collection::vec(one, 0..8)
    }

    /// Does it as far as that is possible, as a script that goes on after errors.
    fn carry_out(root: &Utf8Path, deed: &Deed) {
        let clear = |path: &Utf8Path| {
            drop(std::fs::remove_file(path));
            drop(std::fs::remove_dir_all(path));
            drop(std::fs::create_dir_all(path.parent().unwrap()));
        };
        match deed {
            Deed::Write(at, byte) => {
                let path = root.join(PATHS[*at]);
                drop(std::fs::create_dir_all(path.parent().unwrap()));
                drop(std::fs::write(path, [*byte; 3]));
            }
            Deed::Remove(at) => {
                let path = root.join(PATHS[*at]);
                drop(std::fs::remove_file(&path));
                drop(std::fs::remove_dir_all(&path));
            }
            Deed::Directory(at) => {
                let path = root.join(PATHS[*at]);
                clear(&path);
                drop(std::fs::create_dir_all(path.join("inner")));
            }
            Deed::Link(at) => {
                let path = root.join(PATHS[*at]);
                clear(&path);
                drop(std::os::unix::fs::symlink("nowhere", path));
            }
            Deed::Mode(at, mode) => {
                let path = root.join(PATHS[*at]);
                // A mode is set through a link, and a test must not change what lies elsewhere.
                if !path.is_symlink() {
                    drop(set_mode(path.as_std_path(), 0o100_000 | mode));
                }
            }
        }
    }

    /// Returns what a later check can see: paths with content, link or mode.
    fn seen(root: &Utf8Path) -> BTreeMap<PathBuf, String> {
        let walked = walk(root, Extent::Checkout, &[], Closed::IsAnError);
        let Walked { found, .. } = walked.unwrap();
        let told = |path: &PathBuf, trace: &Trace| {
            let place = root.as_std_path().join(path);
            let content = match std::fs::read_link(&place) {
                Ok(link) => format!("{link:?}"),
                Err(_) if trace.is_file() => format!("{:?}", std::fs::read(&place).unwrap()),
                Err(_) => String::new(),
            };
            (path.clone(), format!("{:o} {content}", trace.mode))
        };
        found.iter().map(|(path, trace)| told(path, trace)).collect()
    }

    fn scene() -> (tempfile::TempDir, camino::Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().to_owned();
        for at in THERE {
            carry_out(&root, &Deed::Write(at, 7));
        }
        (dir, root)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
        #[test]
        fn whatever_a_check_does_the_next_one_sees_what_it_saw_or_is_told_of_the_damage(deeds in deeds()) {
            let (_dir, root) = scene();
            let before = seen(&root);
            let state = CheckoutState::take(&root, Extent::Checkout, &[]).unwrap();
            for deed in &deeds {
                carry_out(&root, deed);
            }
            let damaged: BTreeSet<PathBuf> = state.restore(&root, &[]).unwrap().into_iter().collect();
            let after = seen(&root);
            // An empty directory is no damage of its own: only its files are.
            let is_damaged = |path: &&PathBuf| damaged.iter().any(|one| one.starts_with(path));
            for path in before.keys().chain(after.keys()).filter(|path| !is_damaged(path)) {
                prop_assert_eq!(before.get(path), after.get(path), "{:?} after {:?}", path, deeds);
            }
            for path in &damaged {
                prop_assert!(!path.starts_with(".git/refs") && path != Path::new(".git/HEAD"));
            }
        }
    }

    #[test]
    fn a_check_that_touched_nothing_leaves_no_damage_and_caches_stay() {
        let (_dir, root) = scene();
        let caches = [Pattern::parse("target/**", Case::Sensitive).unwrap()];
        let state = CheckoutState::take(&root, Extent::Checkout, &caches).unwrap();
        fs_err::create_dir_all(root.join("target/debug")).unwrap();
        fs_err::write(root.join("target/debug/x.o"), "x").unwrap();
        fs_err::write(root.join("other.o"), "x").unwrap();
        assert_eq!(state.restore(&root, &caches).unwrap(), Vec::<PathBuf>::new());
        assert!(root.join("target/debug/x.o").exists());
        assert!(!root.join("other.o").exists());
    }

    #[test]
    fn of_a_check_that_shares_its_files_only_those_in_the_repository_are_taken_back() {
        let (_dir, root) = scene();
        let state = CheckoutState::take(&root, Extent::Repository, &[]).unwrap();
        fs_err::write(root.join("product.o"), "x").unwrap();
        fs_err::write(root.join(".git/refs/heads/planted"), "x").unwrap();
        assert_eq!(state.restore(&root, &[]).unwrap(), Vec::<PathBuf>::new());
        assert!(root.join("product.o").exists());
        assert!(!root.join(".git/refs/heads/planted").exists());
    }
}
