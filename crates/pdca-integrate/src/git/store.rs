//! The repository of a target: its objects and refs, never a working tree.

use std::{
    ops::Deref,
    sync::{Mutex, OnceLock, PoisonError},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{ObjectId, bstr::ByteSlice as _, objs::WriteTo as _};
use pdca_process::InstalledGit;

use crate::{
    git::command::RoomGit, git::failure::StoreError, git::footprint::Leaf, git::path::TreePath,
};

/// The repository of a target.
///
/// The path may be a checkout, a linked worktree or a bare repository. Nothing of a checkout is read or
/// written, except which branch it has checked out.
#[derive(Debug)]
pub struct Store {
    path: Utf8PathBuf,
    common_dir: Utf8PathBuf,
    room: Utf8PathBuf,
    tooling: OnceLock<Tooling>,
    repo: gix::ThreadSafeRepository,
    /// Unused handles with their caches.
    idle: Mutex<Vec<gix::Repository>>,
}

/// The git command line for a store. Objects and refs are read without it.
///
/// One that exists is of a git that is new enough, and its private repository shares the objects of the store.
#[derive(Debug, Clone)]
pub(crate) struct Tooling {
    pub(crate) git: RoomGit,
    installed: InstalledGit,
}

impl Tooling {
    fn prepare(store: &Store, installed: InstalledGit) -> Result<Self, StoreError> {
        let hash = store.repo.to_thread_local().object_hash();
        let objects = store.common_dir.join("objects");
        let git = RoomGit::prepare(installed.program.clone(), &store.room, &objects, hash)?;
        Ok(Self { git, installed })
    }

    /// Returns true if `git merge-tree` accepts three trees, and attributes from a tree.
    pub(crate) fn merges_trees(&self) -> bool {
        self.installed.is_at_least(2, 45)
    }
}

/// The size, in bytes, of each handle's object cache. A fold reads the same commits and directories repeatedly.
/// The cache belongs to a handle and goes with it, which is why handles return to a pool.
const REMEMBERED: usize = 16 << 20;

/// A handle on the repository, which returns to the pool when it is dropped.
#[derive(Debug)]
pub(crate) struct Handle<'a> {
    /// `Some` until it is dropped.
    repo: Option<gix::Repository>,
    idle: &'a Mutex<Vec<gix::Repository>>,
}

impl Deref for Handle<'_> {
    type Target = gix::Repository;

    fn deref(&self) -> &gix::Repository {
        self.repo.as_ref().expect("because it is taken out by drop alone")
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(self.repo.take());
    }
}

impl Store {
    /// Opens exactly the repository at `path`, without the configuration of the user or the environment.
    ///
    /// `room` is a private directory, created if needed. It contains a repository of ours in which git runs, so
    /// that git reads no configuration of the target.
    pub fn open(path: &Utf8Path, room: &Utf8Path) -> Result<Self, StoreError> {
        Self::open_with(path, room, InstalledGit::find()?)
    }

    /// Opens the repository with this git instead of the first on `PATH`.
    pub fn open_with(
        path: &Utf8Path,
        room: &Utf8Path,
        git: InstalledGit,
    ) -> Result<Self, StoreError> {
        // Before the repository is opened: a git that is too old is the first thing to mend.
        let installed = git.new_enough()?;
        let store = Self::open_to_read(path, room)?;
        let tooling = Tooling::prepare(&store, installed)?;
        store.tooling.get_or_init(|| tooling);
        Ok(store)
    }

    /// Opens the repository like [`open`](Self::open), but neither starts git nor creates `room` before a merge or a
    /// write needs them.
    pub fn open_to_read(path: &Utf8Path, room: &Utf8Path) -> Result<Self, StoreError> {
        let repo = open_repository(path)?;
        let common_dir = utf8(&repo.to_thread_local(), path)?;
        let (path, room) = (path.to_owned(), room.to_owned());
        let (tooling, idle) = (OnceLock::new(), Mutex::default());
        Ok(Self { path, common_dir, room, tooling, repo, idle })
    }

    /// Opens the same repository again, without any caches.
    /// A landing is proved through it: a cached ref or object would prove only what this process believes.
    pub(crate) fn reopen(&self) -> Result<Self, StoreError> {
        let repo = open_repository(&self.path)?;
        let (path, common_dir) = (self.path.clone(), self.common_dir.clone());
        let (room, tooling) = (self.room.clone(), self.tooling.clone());
        Ok(Self { path, common_dir, room, tooling, repo, idle: Mutex::default() })
    }

    /// Returns the git command line, found and prepared on first use.
    pub(crate) fn tooling(&self) -> Result<&Tooling, StoreError> {
        if let Some(known) = self.tooling.get() {
            return Ok(known);
        }
        // Two threads may prepare it at the same time. Both make the same files, and the first one is kept.
        let tooling = Tooling::prepare(self, InstalledGit::require()?)?;
        Ok(self.tooling.get_or_init(|| tooling))
    }

    /// Returns the path that the repository was opened with.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Returns the directory that all worktrees share, without symbolic links.
    pub fn common_dir(&self) -> &Utf8Path {
        &self.common_dir
    }

    /// Returns the output of `git --version`; empty if no usable git is found, which the next use of it reports.
    pub fn git_version(&self) -> &str {
        self.tooling().map_or("", |tooling| &tooling.installed.said)
    }

    /// Reads the commit of a ref from disk, or returns `None` if the ref does not exist.
    ///
    /// `name` is the full name, such as `refs/heads/main`.
    pub fn commit_at(&self, name: &str) -> Result<Option<ObjectId>, StoreError> {
        let failed = |source| StoreError::objects("read a ref", source);
        let repo = self.repo();
        let Some(mut found) = repo.try_find_reference(name).map_err(failed)? else {
            return Ok(None);
        };
        let commit = found.peel_to_commit().map_err(failed)?;
        Ok(Some(commit.id))
    }

    /// Returns the tip of a branch, named without `refs/heads/` or `refs/remotes/`; a local branch takes precedence.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<ObjectId>, StoreError> {
        match self.commit_at(&format!("refs/heads/{branch}"))? {
            Some(tip) => Ok(Some(tip)),
            None => self.commit_at(&format!("refs/remotes/{branch}")),
        }
    }

    /// Copies the commits after `base` up to `head` with their contents from another repository of the same
    /// history, such as a lane.
    ///
    /// Every object is checked. No ref names them until [`seal`](crate::seal) creates one, so garbage
    /// collection may remove them until then.
    pub fn import(
        &self,
        from: &Utf8Path,
        base: ObjectId,
        head: ObjectId,
    ) -> Result<(), StoreError> {
        let other = open_repository(from)?.to_thread_local();
        let objects = utf8(&other, from)?.join("objects");
        let wanted = format!("{head}\n^{base}\n");
        let git = self.git()?;
        let pack = git.with_objects(&objects).must(
            "pack the commits",
            &["pack-objects", "--revs", "--stdout", "--quiet"],
            wanted.into_bytes(),
        )?;
        // A builder wrote these objects. `--strict` refuses malformed ones, such as a tree with an entry
        // `.git`.
        let args = ["index-pack", "--stdin", "--strict"];
        git.must("take in the commits", &args, pack)?;
        self.require_commit(head)
    }

    pub(crate) fn require_commit(&self, commit: ObjectId) -> Result<(), StoreError> {
        let found = self.repo().try_find_header(commit);
        let found = found.map_err(|source| StoreError::objects("read a commit", source))?;
        match found.map(|header| header.kind()) {
            Some(gix::object::Kind::Commit) => Ok(()),
            _ => Err(StoreError::NoSuchCommit { commit }),
        }
    }

    pub fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, StoreError> {
        let repo = self.repo();
        let tree = find_commit(&repo, commit)?.tree_id().map(gix::Id::detach);
        tree.map_err(|source| StoreError::objects("read a commit", source))
    }

    /// Returns the committer date of a commit, in seconds since 1970.
    pub fn committed_at(&self, commit: ObjectId) -> Result<i64, StoreError> {
        Ok(self.read_commit(commit)?.committer.time.seconds)
    }

    /// Returns the tree of a commit, or the id itself if it is a tree.
    pub(crate) fn tree_at(&self, id: ObjectId) -> Result<ObjectId, StoreError> {
        let repo = self.repo();
        let found = repo.try_find_object(id);
        let found = found.map_err(|source| StoreError::objects("read a tree", source))?;
        match found.map(|object| object.kind) {
            Some(gix::object::Kind::Tree) => Ok(id),
            _ => self.tree_of(id),
        }
    }

    pub(crate) fn parents_of(&self, commit: ObjectId) -> Result<Vec<ObjectId>, StoreError> {
        let repo = self.repo();
        let parents = find_commit(&repo, commit)?.parent_ids().map(gix::Id::detach).collect();
        Ok(parents)
    }

    pub(crate) fn read_commit(&self, commit: ObjectId) -> Result<gix::objs::Commit, StoreError> {
        let failed = |source| StoreError::objects("read a commit", source);
        let repo = self.repo();
        let found = find_commit(&repo, commit)?;
        let decoded = found.decode().map_err(failed)?;
        gix::objs::Commit::try_from(decoded).map_err(failed)
    }

    /// Fails for a commit that is not in git's canonical form: recreated, it would have another id. Fails also for a
    /// person or a date that `git fsck` does not accept, such as one before 1970: strict remotes would refuse the branch.
    pub(crate) fn require_sound(&self, commit: ObjectId) -> Result<(), StoreError> {
        let mut again = Vec::new();
        let form = |_| StoreError::Form { what: format!("commit {commit}") };
        self.read_commit(commit)?.write_to(&mut again).map_err(form)?;
        let repo = self.repo();
        let found = repo.find_commit(commit);
        let found = found.map_err(|source| StoreError::objects("read a commit", source))?;
        if found.data != again {
            return Err(StoreError::Form { what: format!("commit {commit}") });
        }
        let header = found.data.split_str("\n\n").next().unwrap_or_default();
        for key in [b"author ".as_slice(), b"committer "] {
            let who = header.lines().filter_map(|line| line.strip_prefix(key));
            let who: Vec<&[u8]> = who.collect();
            if !matches!(who[..], [who] if is_sound_person(who)) {
                let key = key.as_bstr().trim().as_bstr();
                let what = format!("the {key} or the date of commit {commit}");
                return Err(StoreError::Form { what });
            }
        }
        Ok(())
    }

    /// Returns the file, link or submodule of a tree at this path.
    pub(crate) fn leaf(&self, tree: ObjectId, path: &TreePath) -> Result<Option<Leaf>, StoreError> {
        let failed = |source| StoreError::objects("read a tree", source);
        let repo = self.repo();
        let mut at = Leaf { mode: gix::objs::tree::EntryKind::Tree.into(), id: tree };
        for name in path.as_bytes().split_str("/") {
            // A submodule's content is in another repository.
            if !at.mode.is_tree() {
                return Ok(None);
            }
            let tree = repo.find_tree(at.id).map_err(failed)?;
            let Some(entry) = tree.find_entry(name) else { return Ok(None) };
            at = Leaf { mode: entry.mode(), id: entry.object_id() };
        }
        Ok(Some(at).filter(|leaf| !leaf.mode.is_tree()))
    }

    pub(crate) fn has_path(&self, tree: ObjectId, path: &TreePath) -> Result<bool, StoreError> {
        Ok(self.leaf(tree, path)?.is_some())
    }

    pub(crate) fn repo(&self) -> Handle<'_> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let repo = idle.unwrap_or_else(|| {
            let mut repo = self.repo.to_thread_local();
            repo.object_cache_size(REMEMBERED);
            repo
        });
        Handle { repo: Some(repo), idle: &self.idle }
    }

    pub(crate) fn git(&self) -> Result<&RoomGit, StoreError> {
        Ok(&self.tooling()?.git)
    }
}

/// Returns true if git accepts a person with a date: `Name <address> 1700000000 +0100`.
fn is_sound_person(text: &[u8]) -> bool {
    let Some((name, rest)) = text.split_once_str(b" <") else { return false };
    let Some((email, time)) = rest.split_once_str(b"> ") else { return false };
    let is_plain = |text: &[u8]| !text.contains_str("<") && !text.contains_str(">");
    let Some((date, zone)) = time.split_once_str(b" ") else { return false };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    // A minus sign is no digit: git knows no date before 1970.
    let is_date = is_number(date)
        && (date == b"0" || !date.starts_with(b"0"))
        && date.to_str().is_ok_and(|date| date.parse::<i64>().is_ok());
    let is_zone =
        matches!(zone, [b'+' | b'-', digits @ ..] if digits.len() == 4 && is_number(digits));
    !name.is_empty() && is_plain(name) && is_plain(email) && is_date && is_zone
}

fn find_commit(repo: &gix::Repository, commit: ObjectId) -> Result<gix::Commit<'_>, StoreError> {
    let found = repo.try_find_object(commit);
    let found = found.map_err(|source| StoreError::objects("read a commit", source))?;
    let found = found.and_then(|object| object.try_into_commit().ok());
    found.ok_or(StoreError::NoSuchCommit { commit })
}

pub(crate) fn open_repository(path: &Utf8Path) -> Result<gix::ThreadSafeRepository, StoreError> {
    // With a replacement, gix would show another content under an id than the one that was sealed and gated.
    let options = gix::open::Options::isolated().config_overrides(["core.useReplaceRefs=false"]);
    gix::ThreadSafeRepository::open_opts(path.as_std_path(), options).map_err(|source| {
        StoreError::NotARepository { path: path.to_owned(), source: Box::new(source) }
    })
}

fn utf8(repo: &gix::Repository, path: &Utf8Path) -> Result<Utf8PathBuf, StoreError> {
    let real = fs::canonicalize(repo.common_dir())
        .map_err(|source| StoreError::io("find", path, source))?;
    Utf8PathBuf::from_path_buf(real)
        .map_err(|path| StoreError::Path { path: path.display().to_string() })
}
