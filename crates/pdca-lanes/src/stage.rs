//! The trusted index of a lane: the stat data of its files, kept beside the checkout.
//!
//! The copy beside the checkout, the *memory*, is out of reach of the processes in the lane. It only says that a path
//! with this stat data holds this blob, and can be trusted because a program cannot set the change time of a file. The
//! index inside the checkout is not trusted, because a program there may write anything into it.

use std::{io, os::unix::fs::MetadataExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{
    bstr::{BString, ByteSlice as _},
    index::entry::{Flags, Stat},
};
use pdca_state::files;

use pdca_state::patch::path;

use crate::{failure::LaneError, room::CheckoutRepository, target, walk};

/// The suffix of the memory of a target.
pub(crate) const INDEX: &str = ".index";
/// The suffix of the private index that git works with.
pub(crate) const NEW_INDEX: &str = ".index.new";
/// The suffix of an empty directory, which git takes for a working tree without attributes.
pub(crate) const ATTRIBUTES: &str = ".index.new.attributes";

/// The paths of the memory and the private index of a lane.
#[derive(Debug)]
pub(crate) struct IndexPaths {
    memory: Utf8PathBuf,
    scratch: Utf8PathBuf,
}

impl IndexPaths {
    /// Names the files of a target in the directory of its slot.
    pub(crate) fn new(dir: &Utf8Path, target: &str) -> Self {
        let [memory, scratch] = [INDEX, NEW_INDEX].map(|end| dir.join(format!("{target}{end}")));
        Self { memory, scratch }
    }

    /// Returns the path of the private index that git may work with.
    pub(crate) fn scratch(&self) -> &Utf8Path {
        &self.scratch
    }

    /// Returns the index of a tree, with the stat data of every file that is known to hold its blob.
    pub(crate) fn index_of(
        &self,
        repo: &gix::Repository,
        tree: gix::ObjectId,
    ) -> Result<gix::index::File, LaneError> {
        let mut memory = self.recall(repo);
        if let Some(mut memory) = memory.take_if(|memory| is_of(memory, tree)) {
            distrust_racy(&mut memory);
            return Ok(memory);
        }
        let mut index = repo
            .index_from_tree(&tree)
            .map_err(|source| LaneError::objects("read the tree", source))?;
        carry(memory.as_ref(), &mut index);
        Ok(index)
    }

    /// Returns the index of a tree, plus the paths that were added to the checkout's own index, and whether there are
    /// any.
    ///
    /// An added path only means that the file is to be tracked: git reads its content.
    pub(crate) fn index_with_wishes(
        &self,
        repo: &gix::Repository,
        room: &CheckoutRepository,
        tree: gix::ObjectId,
    ) -> Result<(gix::index::File, bool), LaneError> {
        let mut index = self.index_of(repo, tree)?;
        let Some(theirs) = room.parsed_index(repo.object_hash()) else {
            return Ok((index, false));
        };
        let mut wished = false;
        for path in missing_from(&index, &theirs) {
            let Some(entry) = theirs.entry_by_path(path.as_bstr()) else {
                continue;
            };
            // The checkout's index is written by a job and may name a path outside of the checkout
            // or in `.git`.
            if path::unfit_path(&path).is_none() {
                index.dangerously_push_entry(
                    Stat::default(),
                    entry.id,
                    Flags::empty(),
                    entry.mode,
                    path.as_bstr(),
                );
                wished = true;
            }
        }
        if wished {
            index.sort_entries();
            // The extension says which tree the entries are, which is no longer true.
            index.remove_tree();
        }
        Ok((index, wished))
    }

    /// Writes an index to the path of the private index.
    pub(crate) fn put_scratch(&self, index: &mut gix::index::File) -> Result<(), LaneError> {
        self.clear_scratch()
            .map_err(|source| LaneError::Io { doing: "clear the private index", source })?;
        index.set_path(self.scratch.as_std_path());
        let options = gix::index::write::Options::default();
        index.write(options).map_err(|source| LaneError::objects("write the private index", source))
    }

    /// Makes the private index the memory; the checkout's own index is left as it is.
    pub(crate) fn remember_scratch(&self) -> Result<(), LaneError> {
        fs::rename(&self.scratch, &self.memory)
            .map_err(|source| LaneError::Io { doing: "keep the private index", source })
    }

    /// Makes the private index the memory and the index of the checkout.
    pub(crate) fn keep_scratch(&self, room: &CheckoutRepository) -> Result<(), LaneError> {
        let kept = || -> io::Result<()> {
            let bytes = fs::read(&self.scratch)?;
            fs::rename(&self.scratch, &self.memory)?;
            room.put_index(&bytes)
        };
        kept().map_err(|source| LaneError::Io { doing: "put the index in place", source })
    }

    /// Stores these bytes as the memory; the caller writes them as the index of the checkout.
    pub(crate) fn remember(&self, index: &[u8]) -> io::Result<()> {
        files::replace_unsynced(&self.memory, index)
    }

    /// Gives the checkout the memory as its index, in a repository that is [written anew](CheckoutRepository::lend)
    /// where it has one of its own.
    pub(crate) fn lend_memory(&self, room: &CheckoutRepository) -> Result<(), LaneError> {
        let failed = |source| LaneError::Io { doing: "put the index in place", source };
        let ours = match fs::read(&self.memory) {
            Ok(ours) => ours,
            // Nothing was checked out yet.
            Err(err) if err.kind() == io::ErrorKind::NotFound => return room.lend(None),
            Err(source) => return Err(failed(source)),
        };
        if room.is_lent() {
            return room.lend(Some(&ours));
        }
        if room.left_index().as_ref() != Some(&ours) {
            room.put_index(&ours).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns true if the index of the checkout equals the memory, byte for byte.
    pub(crate) fn is_lent(&self, room: &CheckoutRepository) -> bool {
        let lent = room.left_index();
        lent.is_some_and(|lent| fs::read(&self.memory).is_ok_and(|ours| ours == lent))
    }

    fn clear_scratch(&self) -> io::Result<()> {
        for path in [&self.scratch, &Utf8PathBuf::from(format!("{}.lock", self.scratch))] {
            match fs::remove_file(path) {
                Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the memory; an unreadable one counts as missing.
    pub(crate) fn recall(&self, repo: &gix::Repository) -> Option<gix::index::File> {
        let ours = fs::symlink_metadata(&self.memory)
            .ok()
            // A file that has a second name may be written through it.
            .filter(|found| found.is_file() && found.nlink() == 1);
        ours?;
        gix::index::File::at(
            self.memory.as_std_path(),
            repo.object_hash(),
            false,
            gix::index::decode::Options::default(),
        )
        .ok()
    }
}

/// Returns true if an index covers exactly this tree and has no special flags.
pub(crate) fn is_of(index: &gix::index::State, tree: gix::ObjectId) -> bool {
    let count = u32::try_from(index.entries().len()).ok();
    let whole = |root: &gix::index::extension::Tree| root.id == tree && root.num_entries == count;
    index.tree().is_some_and(whole)
        // With `assume-unchanged` or `skip-worktree` git would not look at a file.
        && index.entries().iter().all(|entry| (entry.flags & !Flags::PATH_LEN).is_empty())
}

/// Clears the stat data of files that are as young as the index, because a later change may not show in it.
pub(crate) fn distrust_racy(index: &mut gix::index::State) {
    let taken = (index.timestamp().unix_seconds(), index.timestamp().nanoseconds());
    for entry in index.entries_mut() {
        if walk::is_racy(&entry.stat, taken) {
            entry.stat = Stat::default();
        }
    }
}

pub(crate) fn stats(index: &gix::index::State) -> Vec<Stat> {
    index.entries().iter().map(|entry| entry.stat).collect()
}

/// Copies the stat data of files that are known to hold the blob of an entry.
pub(crate) fn carry(memory: Option<&gix::index::File>, index: &mut gix::index::File) {
    let Some(memory) = memory else { return };
    let taken = memory.timestamp();
    let taken = (taken.unix_seconds(), taken.nanoseconds());
    let mut seen = memory.entries().iter().peekable();
    for (entry, path) in index.entries_mut_with_paths() {
        // Both are sorted by path, so one pass over each is enough.
        while seen.next_if(|old| old.path(memory) < path).is_some() {}
        let Some(old) = seen.peek().filter(|old| old.path(memory) == path) else {
            continue;
        };
        if old.id == entry.id && old.mode == entry.mode && !walk::is_racy(&old.stat, taken) {
            entry.stat = old.stat;
        }
    }
}

/// Returns the paths of `other` that `index` does not have; both are sorted.
pub(crate) fn missing_from(index: &gix::index::State, other: &gix::index::State) -> Vec<BString> {
    let mut ours = index.entries().iter().map(|entry| entry.path(index)).peekable();
    let mut missing: Vec<BString> = Vec::new();
    for path in other.entries().iter().map(|entry| entry.path(other)) {
        while ours.next_if(|own| *own < path).is_some() {}
        if ours.peek() != Some(&path) && missing.last().is_none_or(|last| last != path) {
            missing.push(path.to_owned());
        }
    }
    missing
}

/// Fails for a tree with attributes that a lane does not support.
///
/// Returns true if the remaining attributes can make a file differ from its blob.
pub(crate) fn check_attributes(
    repo: &gix::Repository,
    files: impl Iterator<Item = (BString, gix::ObjectId)>,
) -> Result<bool, LaneError> {
    let mut rewrites = false;
    for (path, id) in files {
        let blob = repo
            .find_blob(id)
            .map_err(|source| LaneError::objects("read the attributes", source))?;
        if let Some(feature) = target::unfit_attribute(repo, &path.to_str_lossy(), &blob.data) {
            return Err(LaneError::Unsupported(feature));
        }
        rewrites |= REWRITING.iter().any(|word| blob.data.contains_str(word));
    }
    Ok(rewrites)
}

/// Words in an attributes file with which a checkout writes other bytes than those of the blob.
///
/// `text` alone is not among them: without `eol` it changes only what is committed.
const REWRITING: &[&str] = &["crlf", "filter", "ident", "working-tree-encoding", "[attr]"];

/// Returns the `.gitattributes` files of an index.
pub(crate) fn attribute_files(
    index: &gix::index::State,
) -> impl Iterator<Item = (BString, gix::ObjectId)> {
    let all = index.entries().iter().map(|entry| (entry.path(index), entry.id));
    all.filter(|(path, _)| sets_attributes(path)).map(|(path, id)| (path.to_owned(), id))
}

pub(crate) fn sets_attributes(path: &[u8]) -> bool {
    path == b".gitattributes" || path.ends_with(b"/.gitattributes")
}
