//! Throwaway copies of a checkout.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use camino::Utf8Path;
use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    index::entry::Mode,
    refs::transaction::PreviousValue,
};

use crate::{
    checkout::{self, CheckoutPlace},
    dir,
    failure::LaneError,
    history,
    work_tree::WorkTree,
};

/// The files of a tree with mode and content.
type Entries = BTreeMap<BString, (Mode, ObjectId)>;

/// Files that are to be as they were before the change.
#[derive(Clone, Copy)]
pub struct Selected<'a> {
    /// Says whether a path is one of them.
    pub is_of: &'a dyn Fn(&str) -> bool,
    /// The further paths that such a file, with its text, brings in. A `*` stands for any letters.
    pub imports: &'a dyn Fn(&str, &str) -> Vec<String>,
}

impl std::fmt::Debug for Selected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Selected")
    }
}

/// The longest chain of files that import each other. Each step reads the files of the tree that
/// the step before named.
const DEPTH: usize = 6;

impl Selected<'_> {
    /// Paths and patterns that the selected files of a tree bring in, over any number of files up to [`DEPTH`].
    fn imported(
        &self,
        repo: &gix::Repository,
        tree: &Entries,
    ) -> Result<BTreeSet<String>, LaneError> {
        let mut patterns = BTreeSet::new();
        let mut read = BTreeSet::new();
        for _ in 0..DEPTH {
            let mut found = BTreeSet::new();
            for (path, (mode, id)) in tree.iter().filter(|(_, (mode, _))| *mode != Mode::COMMIT) {
                let name = path.to_str_lossy();
                let is_named = (self.is_of)(&name)
                    || patterns.iter().any(|pattern: &String| is_like(&name, pattern));
                if !is_named || !read.insert(path.clone()) {
                    continue;
                }
                let blob = repo
                    .find_blob(*id)
                    .map_err(|source| LaneError::objects("read a file of the base", source))?;
                let text = blob.data.to_str_lossy();
                if *mode == Mode::SYMLINK {
                    // What it leads to is what is loaded.
                    let dir = name.rsplit_once('/').map_or("", |(dir, _)| dir);
                    found.extend(joined(dir, &text));
                } else {
                    found.extend((self.imports)(&name, &text));
                }
            }
            if found.is_empty() {
                break;
            }
            patterns.extend(found);
        }
        Ok(patterns)
    }
}

/// The path of a link's end in the tree; none for one outside of it.
fn joined(dir: &str, to: &str) -> Option<String> {
    if to.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in to.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// Returns whether a path is the one of a pattern, in which the letters from the first to the last `*` are any.
fn is_like(path: &str, pattern: &str) -> bool {
    match (pattern.find('*'), pattern.rfind('*')) {
        (Some(first), Some(last)) => {
            let (start, end) = (&pattern[..first], &pattern[last + 1..]);
            path.len() >= start.len() + end.len() && path.starts_with(start) && path.ends_with(end)
        }
        (None, _) | (_, None) => path == pattern,
    }
}

fn entries(repo: &gix::Repository, tree: ObjectId) -> Result<Entries, LaneError> {
    let index = repo
        .index_from_tree(&tree)
        .map_err(|source| LaneError::objects("read the tree", source))?;
    let all = index.entries().iter();
    Ok(all.map(|one| (one.path(&index).to_owned(), (one.mode, one.id))).collect())
}

impl WorkTree {
    /// Creates a throwaway checkout of HEAD at `dest`, as a repository of its own that only borrows objects.
    ///
    /// Nothing that is written there reaches the lane or the primary.
    pub fn copy_to(&self, dest: &Utf8Path) -> Result<(), LaneError> {
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let room = self.room.borrowed_by(dest);
        let empty = || -> io::Result<bool> {
            fs::create_dir_all(dest)?;
            Ok(fs::read_dir(dest)?.next().is_none())
        };
        if !empty().map_err(|source| LaneError::Io { doing: "make the destination", source })? {
            return Err(LaneError::NotEmpty { path: dest.to_owned() });
        }
        room.create()?;
        let copy = room.enter()?;
        history::move_ref(&copy, "HEAD", head, PreviousValue::Any, false)?;
        let place = CheckoutPlace { room: &room, stage: None };
        checkout::fill(&copy, history::tree_of(&copy, head)?, &[place], &|_, _| {})
    }

    /// Restores the files of a [copy](Self::copy_to) that `selected` names to their state in `base`; those that `base`
    /// does not have are removed. Returns the changed paths, with invalid UTF-8 replaced.
    pub fn put_back(
        &self,
        copy: &Utf8Path,
        base: &str,
        selected: &Selected<'_>,
    ) -> Result<Vec<String>, LaneError> {
        let repo = self.room.enter()?;
        let now = entries(&repo, history::tree_of(&repo, self.require_head(&repo)?)?)?;
        let before = entries(&repo, history::tree_of(&repo, history::find_commit(&repo, base)?)?)?;
        let imported = selected.imported(&repo, &before)?;
        let is_of = |path: &BString| {
            let path = path.to_str_lossy();
            (selected.is_of)(&path) || imported.iter().any(|pattern| is_like(&path, pattern))
        };
        let of =
            |all: Entries| -> Entries { all.into_iter().filter(|(path, _)| is_of(path)).collect() };
        let (now, before) = (of(now), of(before));
        let failed = |source| LaneError::Io { doing: "put a file of the copy back", source };
        let mut changed = Vec::new();
        for path in now.keys().filter(|path| now.get(*path) != before.get(*path)) {
            // All are removed before any is written: a file of the base may be where a directory of
            // the change is.
            dir::remove_tracked(copy, path).map_err(failed)?;
            changed.push(path.to_str_lossy().into_owned());
        }
        let is_other = |(path, what): &(&BString, &(Mode, ObjectId))| now.get(*path) != Some(*what);
        // A submodule has no files of its own here.
        for (path, (mode, id)) in
            before.iter().filter(is_other).filter(|(_, (mode, _))| *mode != Mode::COMMIT)
        {
            let blob = repo
                .find_blob(*id)
                .map_err(|source| LaneError::objects("read a file of the base", source))?;
            let Ok(relative) = path.to_path() else { continue };
            let place = copy.as_std_path().join(relative);
            let put = || -> io::Result<()> {
                dir::make_room(copy.as_std_path(), relative)?;
                if *mode == Mode::SYMLINK {
                    let to = blob.data.to_path().map_err(io::Error::other)?;
                    return std::os::unix::fs::symlink(to, &place);
                }
                fs::write(&place, &blob.data)?;
                if *mode == Mode::FILE_EXECUTABLE {
                    fs::set_permissions(
                        &place,
                        std::os::unix::fs::PermissionsExt::from_mode(0o755),
                    )?;
                }
                Ok(())
            };
            put().map_err(failed)?;
            changed.push(path.to_str_lossy().into_owned());
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }
}
