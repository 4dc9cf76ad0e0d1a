//! Attributes of a tree for a git that cannot read them from one.
//!
//! Before 2.41 git reads attributes from files only. So the attribute files of the tree, and nothing else, are
//! written below a directory of ours that git takes for the top of a working tree. Patterns, directories and
//! precedence remain git's own.

use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
};
use pdca_state::sha256_hex;

use crate::{
    git::command::Scratch, git::failure::StoreError, git::footprint::MAX_DEPTH, git::store::Store,
};

const NAME: &[u8] = b".gitattributes";
/// Git ignores an attributes file larger than this.
const MAX_FILE: u64 = 100 << 20;
/// The UTF-8 byte order mark, which git skips in a file but not in a tree.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Writes attribute files, and remembers which trees have none.
#[derive(Debug, Default)]
pub(super) struct AttributeFiles {
    without: BTreeSet<ObjectId>,
    last: Option<(ObjectId, Option<Utf8PathBuf>)>,
}

impl AttributeFiles {
    /// Returns the directory with the attribute files of a tree, or `None` if it has none.
    pub(super) fn of(
        &mut self,
        store: &Store,
        tree: ObjectId,
    ) -> Result<Option<Utf8PathBuf>, StoreError> {
        // The merges of a fold share one tree of attributes until a change touches an attributes file.
        if let Some((last, dir)) = &self.last
            && *last == tree
        {
            return Ok(dir.clone());
        }
        let mut files = Vec::new();
        self.collect(&store.repo(), tree, &BString::default(), 0, &mut files)?;
        let dir = if files.is_empty() { None } else { Some(lay_out(store, &files)?) };
        self.last = Some((tree, dir.clone()));
        Ok(dir)
    }

    /// Collects the attribute files below a tree. Returns true if there are any.
    fn collect(
        &mut self,
        repo: &gix::Repository,
        tree: ObjectId,
        at: &BString,
        depth: usize,
        files: &mut Vec<(BString, ObjectId)>,
    ) -> Result<bool, StoreError> {
        let failed = |source| StoreError::objects("read a tree", source);
        // Most directories have no attributes file, and the next tree shares most of its directories with this
        // one.
        if self.without.contains(&tree) {
            return Ok(false);
        }
        if depth > MAX_DEPTH {
            let what = format!("a tree of more than {MAX_DEPTH} directories in each other");
            return Err(StoreError::Form { what });
        }
        let before = files.len();
        let found = repo.find_tree(tree).map_err(failed)?;
        for entry in found.iter() {
            let entry = entry.map_err(failed)?;
            let (name, mode) = (entry.filename(), entry.mode());
            let mut path = at.clone();
            path.extend_from_slice(name);
            if mode.is_tree() {
                path.push(b'/');
                self.collect(repo, entry.object_id(), &path, depth + 1, files)?;
            } else if name == NAME && !mode.is_commit() {
                files.push((path, entry.object_id()));
            }
        }
        let any = files.len() > before;
        if !any {
            self.without.insert(tree);
        }
        Ok(any)
    }
}

/// Writes the files below a directory that is named by a digest of them, unless it exists.
fn lay_out(store: &Store, files: &[(BString, ObjectId)]) -> Result<Utf8PathBuf, StoreError> {
    let mut text = Vec::new();
    for (path, id) in files {
        text.extend_from_slice(path);
        text.extend_from_slice(format!("\0{id}\0").as_bytes());
    }
    let all = store.git()?.room().join("attributes");
    let dir = all.join(sha256_hex(&text));
    if dir.is_dir() {
        return Ok(dir);
    }
    let io = |source| StoreError::io("lay out attributes in", &all, source);
    // Written beside its final place and renamed, so that an existing directory is always complete.
    let new = Scratch::new(&all)?;
    let repo = store.repo();
    for (path, id) in files {
        write(&repo, new.path(), path, *id)?;
    }
    match fs::rename(new.path(), &dir) {
        Ok(()) => {}
        // Another process was faster, with the same files.
        Err(_) if dir.is_dir() => {}
        Err(source) => return Err(io(source)),
    }
    Ok(dir)
}

fn write(
    repo: &gix::Repository,
    top: &Utf8Path,
    path: &BString,
    id: ObjectId,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::objects("read an attributes file", source);
    // An unchecked tree may contain names that lead out of the directory.
    let leads_out = |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&b'/');
    if path.split_str("/").any(leads_out) || path.contains(&0) {
        return Err(StoreError::Form { what: format!("the path {path:?} in a tree") });
    }
    if repo.find_header(id).map_err(failed)?.size() > MAX_FILE {
        return Ok(());
    }
    let blob = repo.find_blob(id).map_err(failed)?;
    // When git reads attributes from a tree, the file ends at the first zero byte.
    let text = &blob.data[..blob.data.find_byte(0).unwrap_or(blob.data.len())];
    // Git skips the mark on the first line of a file only. Behind a comment line it stays part of the pattern,
    // as in a tree.
    let start: &[u8] = if text.starts_with(MARK) { b"#\n" } else { b"" };
    let to = top.as_std_path().join(OsStr::from_bytes(path));
    let io = |source| StoreError::io("write attributes of", path.to_str_lossy().as_ref(), source);
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir).map_err(io)?;
    }
    fs::write(to, [start, text].concat()).map_err(io)
}
