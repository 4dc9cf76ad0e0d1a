//! Taking the commits of a lane into the driver's own repository, with every hash computed again.
//!
//! Processes in a lane write its `.git` as they like, and git verifies no hash when it reads an object: a file stored
//! under the id of another one is believed. So the repository of a lane is never opened. Two things are taken from it:
//! the id that its HEAD names, and the content of objects that the driver's repository does not have.
//!
//! 1. *Find HEAD* in the plain files. No configuration, no link and no other ref takes part.
//! 2. *Walk* from there to commits that are known. An object that is known is never asked for, so that nothing stored
//!    in the lane under its id is ever seen.
//! 3. *Read* a loose object, and *hash* it: content that is not that of the id does not count. If an object is missing,
//!    the packs are copied and indexed by git, which computes the ids from the content; an index file is not read.
//! 4. *Write* children before parents, so that an import that was interrupted is repeated and leaves nothing incomplete.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    objs::{CommitRefIter, Kind, TreeRefIter, Write as _, tree::EntryKind},
};
use pdca_process::GitCall;

use crate::{dir, failure::LaneError};

/// The largest object that is read. A patch of a readable size holds no larger file.
const LARGEST_OBJECT: u64 = 256 << 20;
/// The largest sum of all objects of one import, and of all packs.
const LARGEST_IMPORT: u64 = 1 << 30;
/// The most commits and the most objects of one import. A lane that fetched a whole history is refused, not followed.
const MOST_COMMITS: usize = 20_000;
const MOST_OBJECTS: usize = 1_000_000;
/// The longest chain of symbolic refs that git follows.
const MOST_STEPS: usize = 5;
/// The largest file of refs that is read.
const LARGEST_REFS: u64 = 64 << 20;

/// The `.git` directory of a lane, which the processes in it may have written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Untrusted<'a>(pub(crate) &'a Utf8Path);

impl Untrusted<'_> {
    /// Returns the commit that HEAD names; `None` if it names none.
    pub(crate) fn head(self) -> Result<Option<ObjectId>, LaneError> {
        self.resolve("HEAD")
    }

    fn resolve(self, name: &str) -> Result<Option<ObjectId>, LaneError> {
        let mut name = name.to_owned();
        for _ in 0..MOST_STEPS {
            let Some(text) = self.read(&name, 4 << 10)? else {
                let mut packed = self.packed()?.into_iter();
                return Ok(packed.find_map(|(known, id)| (known == name).then_some(id)));
            };
            let Some(next) = text.trim_end().strip_prefix(b"ref: ") else {
                return Ok(ObjectId::from_hex(text.trim_end()).ok());
            };
            let Ok(next) = next.to_str() else { return Ok(None) };
            // Only names that git itself accepts: others could lead out of the repository.
            if gix::refs::FullName::try_from(next).is_err() || !next.starts_with("refs/") {
                return Ok(None);
            }
            next.clone_into(&mut name);
        }
        Ok(None)
    }

    /// Returns the tips that would be lost with this directory: branches, tags, stashes and rescued work.
    ///
    /// A packed file with exactly the content `inherited` is the one that was lent, and is not read.
    pub(crate) fn tips(self, inherited: &[u8]) -> Result<Vec<(String, ObjectId)>, LaneError> {
        let mut tips = Vec::new();
        let mut open = vec!["refs".to_owned()];
        while let Some(dir) = open.pop() {
            let Ok(entries) = self.0.join(&dir).read_dir_utf8() else { continue };
            for entry in entries.flatten() {
                let name = format!("{dir}/{}", entry.file_name());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(name),
                    Ok(kind) if kind.is_file() => {
                        tips.extend(self.resolve(&name)?.map(|id| (name, id)));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        if self.read("packed-refs", LARGEST_REFS)?.as_deref() != Some(inherited) {
            tips.extend(self.packed()?);
        }
        let log = self.read("logs/refs/stash", LARGEST_REFS)?.unwrap_or_default();
        let stashes = log.lines().filter_map(|line| ObjectId::from_hex(line.fields().nth(1)?).ok());
        tips.extend(stashes.map(|id| ("refs/stash".to_owned(), id)));
        tips.retain(|(name, _)| !name.starts_with("refs/remotes/"));
        tips.sort();
        tips.dedup();
        Ok(tips)
    }

    fn packed(self) -> Result<Vec<(String, ObjectId)>, LaneError> {
        let text = self.read("packed-refs", LARGEST_REFS)?.unwrap_or_default();
        let line = |line: &[u8]| {
            let (id, name) = line.split_once_str(" ")?;
            Some((name.to_str().ok()?.to_owned(), ObjectId::from_hex(id).ok()?))
        };
        Ok(text.lines().filter_map(line).collect())
    }

    /// Reads a small file. A link, a directory or a pipe counts as missing.
    fn read(self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, LaneError> {
        let path = self.0.join(name);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(source) => {
                return Err(LaneError::Io { doing: "read the refs of the lane", source });
            }
        };
        if !found.is_file() {
            return Ok(None);
        }
        if found.len() > limit {
            return Err(LaneError::TooLarge { path: path.into_string(), size: found.len(), limit });
        }
        fs::read(path)
            .map(Some)
            .map_err(|source| LaneError::Io { doing: "read the refs of the lane", source })
    }
}

/// An import under way.
pub(crate) struct Import<'a> {
    /// The driver's repository, which no process of a lane can write.
    own: &'a gix::Repository,
    /// The same one, to ask for objects that are probably new. A miss does not list the packs again, which would cost
    /// more than the rest of the import; a pack that somebody made meanwhile is found through `own`.
    quick: gix::Repository,
    own_dir: Utf8PathBuf,
    from: Untrusted<'a>,
    loose: gix::odb::loose::Store,
    are_packs_in: bool,
    /// Trees whose content was looked at.
    seen: BTreeSet<ObjectId>,
    bytes: u64,
    objects: usize,
}

impl<'a> Import<'a> {
    pub(crate) fn new(own: &'a gix::Repository, own_dir: &Utf8Path, from: Untrusted<'a>) -> Self {
        let objects = from.0.join("objects").into_std_path_buf();
        Self {
            own,
            quick: quick(own),
            own_dir: own_dir.to_owned(),
            from,
            loose: gix::odb::loose::Store::at(objects, own.object_hash()),
            are_packs_in: false,
            seen: BTreeSet::new(),
            bytes: 0,
            objects: 0,
        }
    }

    /// Takes a commit with its history and files into the driver's repository.
    pub(crate) fn take(&mut self, head: ObjectId) -> Result<(), LaneError> {
        if self.own.has_object(head) {
            return Ok(());
        }
        for id in self.new_commits(head)? {
            let (found, data) = self.read(id, Kind::Commit)?;
            let (tree, parents) = commit_parts(id, &data)?;
            // The first parent is in the store by now, or there is none.
            let before = match parents.first() {
                Some(parent) => Some(self.tree_of(*parent)?),
                None => None,
            };
            self.take_tree(before, tree)?;
            if found == Found::InLane {
                self.write(id, Kind::Commit, &data)?;
            }
        }
        Ok(())
    }

    /// Returns the commits that are not known, parents first.
    fn new_commits(&mut self, head: ObjectId) -> Result<Vec<ObjectId>, LaneError> {
        let mut order = Vec::new();
        let mut met = BTreeSet::new();
        // A commit is pushed a second time before its parents, and is complete when it comes up again.
        let mut open = vec![(head, false)];
        while let Some((id, are_parents_done)) = open.pop() {
            if are_parents_done {
                order.push(id);
                continue;
            }
            if self.quick.has_object(id) || !met.insert(id) {
                continue;
            }
            if met.len() > MOST_COMMITS {
                return Err(untrue(id, "is one of too many commits that the target does not have"));
            }
            let (_, data) = self.read(id, Kind::Commit)?;
            open.push((id, true));
            open.extend(commit_parts(id, &data)?.1.into_iter().map(|parent| (parent, false)));
        }
        Ok(order)
    }

    fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, LaneError> {
        let failed = |source| LaneError::objects("read a commit", source);
        Ok(self.own.find_commit(commit).map_err(failed)?.tree_id().map_err(failed)?.detach())
    }

    /// Takes a tree and its content, except for what `before` has at the same place.
    fn take_tree(&mut self, before: Option<ObjectId>, tree: ObjectId) -> Result<(), LaneError> {
        // Written after their content, so that a crash leaves no incomplete tree.
        let mut trees = Vec::new();
        let mut open = vec![(before, tree)];
        while let Some((before, tree)) = open.pop() {
            // Looked into even if the store has it: a pack that was indexed may hold a tree without its files.
            if before == Some(tree) || !self.seen.insert(tree) {
                continue;
            }
            let known: BTreeMap<_, _> = match before {
                Some(before) => self
                    .entries(before)?
                    .into_iter()
                    .map(|(name, kind, id)| (name, (kind, id)))
                    .collect(),
                None => BTreeMap::new(),
            };
            let (found, data) = self.read(tree, Kind::Tree)?;
            for (name, kind, id) in tree_entries(tree, &data, self.own.object_hash())? {
                let at_same_place = known.get(&name);
                if at_same_place.is_some_and(|(_, known)| *known == id) {
                    continue;
                }
                match kind {
                    EntryKind::Tree => {
                        let before = at_same_place.filter(|(kind, _)| *kind == EntryKind::Tree);
                        open.push((before.map(|(_, id)| *id), id));
                    }
                    EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                        // A blob that is known is not read: it may be large.
                        if !self.quick.has_object(id)
                            && let (Found::InLane, data) = self.read(id, Kind::Blob)?
                        {
                            self.write(id, Kind::Blob, &data)?;
                        }
                    }
                    // The commit of a submodule is in another repository.
                    EntryKind::Commit => {}
                }
            }
            if found == Found::InLane {
                trees.push((tree, data));
            }
        }
        trees.iter().rev().try_for_each(|(tree, data)| self.write(*tree, Kind::Tree, data))
    }

    fn entries(&self, tree: ObjectId) -> Result<Vec<(BString, EntryKind, ObjectId)>, LaneError> {
        let found = self.own.find_tree(tree);
        let found = found.map_err(|source| LaneError::objects("read a tree", source))?;
        tree_entries(tree, &found.data, self.own.object_hash())
    }

    /// Returns the content of an object: the known one, or what the lane has under this id if it is true.
    fn read(&mut self, id: ObjectId, wanted: Kind) -> Result<(Found, Vec<u8>), LaneError> {
        let known = |(kind, data)| Ok((Found::InStore, require_kind(id, wanted, kind, data)?));
        if let Some(found) = read_known(&self.quick, id)? {
            return known(found);
        }
        let why = match self.read_loose(id)? {
            Loose::True(kind, data) => {
                return Ok((Found::InLane, require_kind(id, wanted, kind, data)?));
            }
            Loose::Untrue => "has content that is not its own",
            Loose::Missing => "is missing",
        };
        if !self.are_packs_in {
            self.take_packs()?;
            self.are_packs_in = true;
        }
        // The packs of the lane, or one that a repacking of the target made meanwhile.
        if let Some(found) = read_known(self.own, id)? {
            return known(found);
        }
        Err(untrue(id, why))
    }

    /// Reads a loose object of the lane, and computes its id.
    fn read_loose(&mut self, id: ObjectId) -> Result<Loose, LaneError> {
        // A pipe would block for ever.
        let is_file =
            self.loose.object_path(&id).symlink_metadata().is_ok_and(|found| found.is_file());
        if !is_file {
            return Ok(Loose::Missing);
        }
        // Asked first: the reader makes room for as much as the header says.
        let Ok(Some((size, _))) = self.loose.try_header(&id) else { return Ok(Loose::Untrue) };
        self.count(id, size)?;
        let mut data = Vec::new();
        let kind = match self.loose.try_find(&id, &mut data) {
            Ok(Some(found)) => found.kind,
            Ok(None) | Err(_) => return Ok(Loose::Untrue),
        };
        let real = gix::objs::compute_hash(id.kind(), kind, &data);
        let is_true = real.is_ok_and(|real| real == id);
        Ok(if is_true { Loose::True(kind, data) } else { Loose::Untrue })
    }

    fn count(&mut self, id: ObjectId, size: u64) -> Result<(), LaneError> {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(size);
        if size > LARGEST_OBJECT {
            return Err(LaneError::TooLarge {
                path: format!("object {id}"),
                size,
                limit: LARGEST_OBJECT,
            });
        }
        if self.bytes > LARGEST_IMPORT {
            let path = "the commits of the lane".to_owned();
            return Err(LaneError::TooLarge { path, size: self.bytes, limit: LARGEST_IMPORT });
        }
        if self.objects > MOST_OBJECTS {
            return Err(untrue(id, "is one of too many objects"));
        }
        Ok(())
    }

    /// Copies every pack of the lane into the driver's repository and has git index it.
    fn take_packs(&mut self) -> Result<(), LaneError> {
        let failed = |source| LaneError::Io { doing: "copy a pack of the lane", source };
        let Ok(entries) = self.from.0.join("objects/pack").read_dir_utf8() else { return Ok(()) };
        let mut packs: Vec<Utf8PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .map(camino::Utf8DirEntry::into_path)
            .filter(|path| path.extension() == Some("pack"))
            .collect();
        packs.sort_unstable();
        let to = self.own_dir.join("objects/pack");
        fs::create_dir_all(&to).map_err(failed)?;
        let (scratch, index) = (to.join("import.pack"), to.join("import.idx"));
        for pack in packs {
            let size = fs::symlink_metadata(&pack).map_err(failed)?.len();
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > LARGEST_IMPORT {
                return Err(LaneError::TooLarge {
                    path: pack.into_string(),
                    size: self.bytes,
                    limit: LARGEST_IMPORT,
                });
            }
            for left in [&scratch, &index] {
                dir::remove_at(left).map_err(failed)?;
            }
            fs::copy(&pack, &scratch).map_err(failed)?;
            // Done by git because it resolves deltas of any form in a process that can be ended.
            let limit = format!("--max-input-size={LARGEST_IMPORT}");
            let args = ["index-pack", limit.as_str(), "-o", index.as_str(), scratch.as_str()];
            let said = GitCall::isolated(&self.own_dir).args(args).run()?;
            if !said.success() {
                // Not a pack: what it may have held is missing, and is reported as that.
                continue;
            }
            let name = said.text();
            if ObjectId::from_hex(name.as_bytes()).is_err() {
                continue;
            }
            let place = |end: &str| to.join(format!("pack-{name}.{end}"));
            // The pack first: an index without its pack is an error for every reader.
            fs::rename(&scratch, place("pack")).map_err(failed)?;
            fs::rename(&index, place("idx")).map_err(failed)?;
        }
        for left in [&scratch, &index] {
            dir::remove_at(left).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes an object that the store does not have.
    fn write(&self, id: ObjectId, kind: Kind, data: &[u8]) -> Result<(), LaneError> {
        let written = self.own.objects.write_buf(kind, data);
        let written = written.map_err(|source| LaneError::objects("write an object", source))?;
        // Hashed a second time, by the writer: nothing is in the store under an id that is not its own.
        if written == id { Ok(()) } else { Err(untrue(id, "has content that is not its own")) }
    }
}

/// Returns a handle whose misses are cheap.
fn quick(repo: &gix::Repository) -> gix::Repository {
    let mut quick = repo.clone();
    quick.objects.refresh_never();
    quick
}

fn read_known(repo: &gix::Repository, id: ObjectId) -> Result<Option<(Kind, Vec<u8>)>, LaneError> {
    let found = repo.try_find_object(id);
    let found = found.map_err(|source| LaneError::objects("read an object", source))?;
    Ok(found.map(|found| (found.kind, found.detach().data)))
}

/// The place where an object was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    InStore,
    /// In the lane alone: it is to be written into the store.
    InLane,
}

/// What a lane has under an id, as a loose object.
enum Loose {
    Missing,
    /// Content that is not that of the id, or none that can be read.
    Untrue,
    True(Kind, Vec<u8>),
}

fn untrue(id: ObjectId, why: &'static str) -> LaneError {
    LaneError::Untrue { id: id.to_string(), why }
}

fn require_kind(
    id: ObjectId,
    wanted: Kind,
    kind: Kind,
    data: Vec<u8>,
) -> Result<Vec<u8>, LaneError> {
    if kind == wanted {
        return Ok(data);
    }
    Err(untrue(id, "is of another kind than its parent says"))
}

fn commit_parts(id: ObjectId, data: &[u8]) -> Result<(ObjectId, Vec<ObjectId>), LaneError> {
    let broken = || untrue(id, "is no commit that can be read");
    let mut parts = CommitRefIter::from_bytes(data, id.kind());
    let tree = parts.tree_id().map_err(|_| broken())?;
    let parents = CommitRefIter::from_bytes(data, id.kind()).parent_ids().collect();
    Ok((tree, parents))
}

fn tree_entries(
    id: ObjectId,
    data: &[u8],
    hash: gix::hash::Kind,
) -> Result<Vec<(BString, EntryKind, ObjectId)>, LaneError> {
    let broken = |_| untrue(id, "is no tree that can be read");
    TreeRefIter::from_bytes(data, hash)
        .map(|entry| {
            let entry = entry.map_err(broken)?;
            Ok((entry.filename.to_owned(), entry.mode.kind(), entry.oid.to_owned()))
        })
        .collect()
}
