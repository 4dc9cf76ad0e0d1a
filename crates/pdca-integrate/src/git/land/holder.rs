//! Checkouts that hold a branch.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::{git::failure::StoreError, git::store::Store};

/// A checkout that has a branch checked out, or that is in the middle of an operation with it.
///
/// Moving a branch under its checkout would make everything that landed look like an uncommitted removal, which
/// the next `git commit -a` would carry out. The checkout belongs to the user and cannot be updated. So such a
/// branch is not moved, whether the checkout has changes or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub path: Utf8PathBuf,
    /// The use, as the end of a sentence.
    pub doing: &'static str,
}

/// Returns every checkout that holds a branch, given the full name of its ref.
pub fn holders(store: &Store, reference: &str) -> Result<Vec<Holder>, StoreError> {
    let mut found = Vec::new();
    for (git_dir, path) in checkouts(store)? {
        let short = reference.strip_prefix("refs/heads/").unwrap_or(reference);
        if head_of(&git_dir)?.as_deref() == Some(reference) {
            found.push(Holder { path, doing: "has it checked out" });
            continue;
        }
        let uses = [
            // During a rebase or a bisection HEAD is detached or elsewhere, and git comes back to the branch at
            // the end.
            ("rebase-merge/head-name", reference.to_owned(), "is rebasing it"),
            ("rebase-apply/head-name", reference.to_owned(), "is rebasing it"),
            // The other branches of `rebase --update-refs`, which git moves at the end: a line for each, and two for
            // where it is and goes.
            ("rebase-merge/update-refs", reference.to_owned(), "is rebasing it"),
            ("BISECT_START", short.to_owned(), "is bisecting from it"),
        ];
        for (file, text, doing) in uses {
            let lines = read_text(&git_dir.join(file))?.unwrap_or_default();
            if lines.lines().any(|line| line == text) {
                found.push(Holder { path: path.clone(), doing });
                break;
            }
        }
    }
    Ok(found)
}

/// Returns the ref of HEAD, which git stores as a text or as a symbolic link.
fn head_of(git_dir: &Utf8Path) -> Result<Option<String>, StoreError> {
    let path = git_dir.join("HEAD");
    if let Ok(to) = path.read_link_utf8() {
        return Ok(Some(to.into_string()));
    }
    let text = read_text(&path)?;
    Ok(text.and_then(|text| Some(text.strip_prefix("ref:")?.trim().to_owned())))
}

/// Returns the git directory and the path of every checkout of the repository.
fn checkouts(store: &Store) -> Result<Vec<(Utf8PathBuf, Utf8PathBuf)>, StoreError> {
    let common = store.common_dir();
    let mut found = Vec::new();
    // HEAD of a bare repository names a default branch, which has no checkout.
    if store.repo().config_snapshot().boolean("core.bare") != Some(true) {
        // The path is only shown to people; with `--separate-git-dir` the place of the checkout is not known
        // here.
        let place = if common.file_name() == Some(".git") { common.parent() } else { None };
        found.push((common.to_owned(), place.unwrap_or(common).to_owned()));
    }
    let linked = common.join("worktrees");
    let failed = |source| StoreError::io("list", &linked, source);
    let entries = match linked.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let git_dir = entry.map_err(failed)?.into_path();
        let link = read_text(&git_dir.join("gitdir"))?;
        let place = link.as_deref().map(Utf8Path::new).and_then(Utf8Path::parent);
        let place = place.unwrap_or(&git_dir).to_owned();
        found.push((git_dir, place));
    }
    Ok(found)
}

fn read_text(path: &Utf8Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end().to_owned())),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(StoreError::io("read", path, source)),
    }
}
