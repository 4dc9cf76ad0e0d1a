//! Showing one tree under the path of another, behind `bwrap`.
//!
//! A lane borrows objects from its target, and a workspace may lie in the target's checkout. So what is shown in the
//! checkout's place has openings, each a mount of its own. A mount needs a mount point. If the shown tree has all of
//! them, it is mounted as a whole. Otherwise the directories above a missing one are made anew, and what the shown tree has
//! in them is mounted entry by entry: nothing may be made in the shown tree itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::spec::Sandbox;

/// The mounts that show one tree in the place of another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaidTree {
    pub(crate) args: Vec<OsString>,
    /// Directories that are made in memory; they are closed once all mounts in them are there.
    pub(crate) made: Vec<PathBuf>,
}

/// Returns the replaced trees of a sandbox by their real paths.
pub(crate) fn resolved(sandbox: &Sandbox) -> BTreeMap<PathBuf, PathBuf> {
    let real = |path: &camino::Utf8Path| path.as_std_path().canonicalize().ok();
    let both = sandbox.replaced.iter().filter_map(|one| Some((real(&one.tree)?, real(&one.with)?)));
    both.filter(|(tree, with)| tree != with && with.is_dir()).collect()
}

/// Shows `with` at `tree`, with room for the mounts at `places`. Its `.git` is left out: with other objects it would be no
/// repository, and it is not that of `tree`.
pub(crate) fn lay(tree: &Path, with: &Path, places: &BTreeSet<PathBuf>) -> LaidTree {
    let (git, shown_git) = (tree.join(".git"), with.join(".git"));
    let is_there = |place: &PathBuf| {
        let inner = place.strip_prefix(tree).map(|inner| with.join(inner));
        inner.is_ok_and(|inner| inner.exists() && inner.is_dir() == place.is_dir())
    };
    let is_free = |place: &PathBuf| place.starts_with(&git) && *place != git;
    let is_plain = shown_git.symlink_metadata().is_ok_and(|found| found.is_dir());
    if is_plain && below(tree, places).all(|place| is_free(place) || is_there(place)) {
        let whole =
            ["--ro-bind".into(), with.into(), tree.into(), "--tmpfs".into(), git.clone().into()];
        return LaidTree { args: whole.to_vec(), made: vec![git] };
    }
    let mut args = vec!["--tmpfs".into(), tree.into()];
    for entry in entries(with).into_iter().filter(|entry| *entry != shown_git) {
        lay_entry(&tree.join(entry.file_name().unwrap_or_default()), &entry, places, &mut args);
    }
    LaidTree { args, made: vec![tree.to_owned()] }
}

fn lay_entry(at: &Path, from: &Path, places: &BTreeSet<PathBuf>, args: &mut Vec<OsString>) {
    // The mount of its own comes later.
    if places.contains(at) {
        return;
    }
    let is_link = from.is_symlink();
    if below(at, places).next().is_none() {
        if !is_link {
            args.extend(["--ro-bind".into(), from.into(), at.into()]);
        } else if let Ok(to) = std::fs::read_link(from) {
            args.extend(["--symlink".into(), to.into(), at.into()]);
        }
    } else if from.is_dir() && !is_link {
        args.extend(["--dir".into(), at.into()]);
        for entry in entries(from) {
            lay_entry(&at.join(entry.file_name().unwrap_or_default()), &entry, places, args);
        }
    }
}

fn below<'p>(tree: &'p Path, places: &'p BTreeSet<PathBuf>) -> impl Iterator<Item = &'p PathBuf> {
    // Paths are ordered by their components, so those below a tree follow it without a gap.
    let after = (std::ops::Bound::Excluded(tree), std::ops::Bound::Unbounded);
    places.range::<Path, _>(after).take_while(move |place| place.starts_with(tree))
}

/// Returns the entries of a directory in order; none if it cannot be listed.
fn entries(dir: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(laid: &LaidTree, root: &Path) -> Vec<String> {
        let words = laid.args.iter().map(|arg| arg.to_string_lossy().into_owned());
        words.map(|word| word.replace(&root.display().to_string(), "")).collect()
    }

    #[test]
    fn nothing_is_made_in_the_shown_tree_for_the_mounts_inside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in
            ["app/.git/objects", "app/.pdca/job", "lane/.git/objects", "lane/src", "lane/in"]
        {
            fs_err::create_dir_all(root.join(made)).unwrap();
        }
        fs_err::write(root.join("lane/in/file"), "").unwrap();
        fs_err::os::unix::fs::symlink("src", root.join("lane/link")).unwrap();
        let (tree, with) = (root.join("app"), root.join("lane"));
        let places = |inner: &[&str]| inner.iter().map(|path| root.join(path)).collect();
        let laid = lay(&tree, &with, &places(&["app", "app/.git/objects"]));
        assert_eq!(shown(&laid, &root).join(" "), "--ro-bind /lane /app --tmpfs /app/.git");
        assert_eq!(laid.made, [root.join("app/.git")]);
        let laid = lay(&tree, &with, &places(&["app", "app/.git", "app/.pdca/job", "app/in/tool"]));
        let expected = "--tmpfs /app --dir /app/in --ro-bind /lane/in/file /app/in/file --symlink src /app/link --ro-bind /lane/src /app/src";
        assert_eq!(shown(&laid, &root).join(" "), expected);
        assert_eq!(laid.made, [root.join("app")]);
    }
}
