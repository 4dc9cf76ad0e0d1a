//! A tree as a list of the files and directories to write.

use std::ops::Range;

use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice as _},
    index::entry::{Flags, Mode, Stat},
    objs::{FindExt as _, TreeRefIter, tree::EntryKind},
    validate::path::component,
};

use crate::{failure::LaneError, stage};

/// The longest path that the system accepts.
const LONGEST: usize = 4095;

/// The options with which [`gix`] itself checks names when it makes an index of a tree.
const NAMES: component::Options =
    component::Options { protect_windows: false, protect_hfs: false, protect_ntfs: true };

/// All files and directories of one tree, in index order.
#[derive(Debug)]
pub(crate) struct WritePlan {
    pub(super) hash: gix::hash::Kind,
    pub(crate) files: Vec<File>,
    /// Each directory after its parent; the first is the root.
    pub(super) dirs: Vec<Dir>,
    /// The content of the `TREE` extension of an index.
    pub(super) trees: Vec<u8>,
    paths: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct File {
    path: Range<usize>,
    name: usize,
    pub(crate) id: ObjectId,
    pub(crate) mode: Mode,
}

/// A directory and the files directly in it, by index.
#[derive(Debug)]
pub(super) struct Dir {
    path: Range<usize>,
    pub(super) files: Vec<usize>,
}

impl WritePlan {
    /// Reads a tree recursively.
    pub(crate) fn of(repo: &gix::Repository, tree: ObjectId) -> Result<Self, LaneError> {
        let mut plan = Self {
            hash: repo.object_hash(),
            files: Vec::new(),
            dirs: Vec::new(),
            trees: Vec::new(),
            paths: Vec::new(),
        };
        let mut trees = Vec::new();
        plan.add(repo, tree, &mut Vec::new(), b"", &mut trees)?;
        plan.trees = trees;
        Ok(plan)
    }

    /// Adds one directory and appends its part of the `TREE` extension to `trees`. Returns the number of files below
    /// it.
    fn add(
        &mut self,
        repo: &gix::Repository,
        tree: ObjectId,
        path: &mut Vec<u8>,
        name: &[u8],
        trees: &mut Vec<u8>,
    ) -> Result<usize, LaneError> {
        let dir = self.dirs.len();
        let path_range = self.keep(path);
        // Pushed before its children, so that a directory always comes after its parent.
        self.dirs.push(Dir { path: path_range, files: Vec::new() });
        let unreadable = |source| LaneError::objects("read the tree", source);
        let mut bytes = Vec::new();
        repo.objects.find_tree(&tree, &mut bytes).map_err(unreadable)?;
        let (mut count, mut subtrees, mut below) = (0, 0, Vec::new());
        for entry in TreeRefIter::from_bytes(&bytes, self.hash) {
            let entry = entry.map_err(unreadable)?;
            let length = path.len();
            step_into(path, entry.filename)?;
            let mode = match entry.mode.kind() {
                EntryKind::Tree => {
                    let id = entry.oid.to_owned();
                    count += self.add(repo, id, path, entry.filename, &mut below)?;
                    subtrees += 1;
                    path.truncate(length);
                    continue;
                }
                EntryKind::Blob => Mode::FILE,
                EntryKind::BlobExecutable => Mode::FILE_EXECUTABLE,
                EntryKind::Link => Mode::SYMLINK,
                EntryKind::Commit => Mode::COMMIT,
            };
            let path_range = self.keep(path);
            let name = path_range.end - entry.filename.len();
            self.dirs[dir].files.push(self.files.len());
            self.files.push(File { path: path_range, name, id: entry.oid.to_owned(), mode });
            count += 1;
            path.truncate(length);
        }
        // A tree comes before its subtrees in the extension, but its counts are known only after
        // them; so they are collected apart.
        trees.extend_from_slice(name);
        trees.extend_from_slice(format!("\0{count} {subtrees}\n").as_bytes());
        trees.extend_from_slice(tree.as_slice());
        trees.append(&mut below);
        Ok(count)
    }

    fn keep(&mut self, path: &[u8]) -> Range<usize> {
        let start = self.paths.len();
        self.paths.extend_from_slice(path);
        start..self.paths.len()
    }

    pub(crate) fn path(&self, file: &File) -> &BStr {
        self.paths[file.path.clone()].as_bstr()
    }

    /// Returns an index of the plan without stat data.
    pub(crate) fn index(&self) -> gix::index::File {
        let mut index = gix::index::State::new(self.hash);
        for file in &self.files {
            let path = self.path(file);
            index.dangerously_push_entry(Stat::default(), file.id, Flags::empty(), file.mode, path);
        }
        gix::index::File::from_state(index, "")
    }

    /// Returns the `.gitattributes` files of the plan.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (BString, ObjectId)> {
        let all = self.files.iter().map(|file| (self.path(file), file.id));
        let setting = all.filter(|(path, _)| stage::sets_attributes(path));
        setting.map(|(path, id)| (path.to_owned(), id))
    }

    /// Returns the last component of a file's path.
    pub(crate) fn name(&self, file: &File) -> &[u8] {
        &self.paths[file.name..file.path.end]
    }

    pub(super) fn dir_path(&self, dir: &Dir) -> &[u8] {
        &self.paths[dir.path.clone()]
    }
}

/// Appends a name to a path; fails for names that must not be written.
fn step_into(path: &mut Vec<u8>, name: &BStr) -> Result<(), LaneError> {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    if path.len() > LONGEST || component(name, None, NAMES).is_err() {
        return Err(LaneError::NotWritten { path: path.to_str_lossy().into_owned() });
    }
    Ok(())
}
