//! The target's repository: its objects and its refs, never a working tree.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{ObjectId, bstr::ByteSlice as _, objs::WriteTo as _};

use crate::{failure::StoreError, footprint::Leaf, git::Git, path::TreePath};

/// The first git whose `merge-tree` takes trees as they are.
const OLDEST_GIT: (u32, u32) = (2, 45);

/// The target's repository.
///
/// The path may be a checkout, a linked worktree or a bare repository; nothing of a checkout is
/// read or written, but who has which branch checked out.
#[derive(Debug)]
pub struct Store {
    path: Utf8PathBuf,
    common_dir: Utf8PathBuf,
    git: Git,
    version: String,
    repo: gix::ThreadSafeRepository,
}

impl Store {
    /// Opens exactly what is at `path`, without the configuration of the user or the environment.
    ///
    /// `room` is a directory that is ours alone, made where it is not there: git's own repository
    /// is in it, so that git reads no configuration of the target.
    pub fn open(path: &Utf8Path, room: &Utf8Path) -> Result<Self, StoreError> {
        let repo = open_repository(path)?;
        let common_dir = utf8(&repo.to_thread_local(), path)?;
        let hash = repo.to_thread_local().object_hash();
        let git = Git::prepare(room, &common_dir.join("objects"), hash)?;
        let version = git.must("ask git for its version", &["--version"], Vec::new())?;
        let version = version.to_str_lossy().trim().to_owned();
        require_version(&version)?;
        Ok(Self { path: path.to_owned(), common_dir, git, version, repo })
    }

    /// The same repository, looked at anew.
    pub(crate) fn reopen(&self) -> Result<Self, StoreError> {
        let repo = open_repository(&self.path)?;
        let (path, common_dir) = (self.path.clone(), self.common_dir.clone());
        Ok(Self { path, common_dir, git: self.git.clone(), version: self.version.clone(), repo })
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The directory that all worktrees of the repository share, free of symbolic links.
    pub fn common_dir(&self) -> &Utf8Path {
        &self.common_dir
    }

    /// What git says about its version.
    pub fn git_version(&self) -> &str {
        &self.version
    }

    /// The commit that a ref leads to, as it is on disk now; none where there is no such ref.
    ///
    /// `name` is the full name, as in `refs/heads/main`.
    pub fn commit_at(&self, name: &str) -> Result<Option<ObjectId>, StoreError> {
        let failed = |source| StoreError::objects("read a ref", source);
        let repo = self.repo();
        let Some(mut found) = repo.try_find_reference(name).map_err(failed)? else {
            return Ok(None);
        };
        let commit = found.peel_to_commit().map_err(failed)?;
        Ok(Some(commit.id))
    }

    /// Brings the commits after `base` up to `head`, and all that is in them, from another
    /// repository of the same history, such as a lane, into this one.
    ///
    /// Every object is checked on its way in. Nothing refers to them yet: [`seal`](crate::seal)
    /// does, and until then a collection of garbage may take them away again.
    pub fn import(
        &self,
        from: &Utf8Path,
        base: ObjectId,
        head: ObjectId,
    ) -> Result<(), StoreError> {
        let other = open_repository(from)?.to_thread_local();
        let objects = utf8(&other, from)?.join("objects");
        let wanted = format!("{head}\n^{base}\n");
        let pack = self.git.with_objects(&objects).must(
            "pack the commits",
            &["pack-objects", "--revs", "--stdout", "--quiet"],
            wanted.into_bytes(),
        )?;
        let args = ["index-pack", "--stdin", "--strict"];
        self.git.must("take in the commits", &args, pack)?;
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

    /// The tree of a commit.
    pub fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, StoreError> {
        self.require_commit(commit)?;
        let repo = self.repo();
        let tree = repo.find_commit(commit).and_then(|commit| Ok(commit.tree_id()?.detach()));
        tree.map_err(|source| StoreError::objects("read a commit", source))
    }

    pub(crate) fn parents_of(&self, commit: ObjectId) -> Result<Vec<ObjectId>, StoreError> {
        self.require_commit(commit)?;
        let repo = self.repo();
        let found = repo.find_commit(commit);
        let found = found.map_err(|source| StoreError::objects("read a commit", source))?;
        Ok(found.parent_ids().map(gix::Id::detach).collect())
    }

    /// Everything that a commit says.
    pub(crate) fn read_commit(&self, commit: ObjectId) -> Result<gix::objs::Commit, StoreError> {
        let failed = |source| StoreError::objects("read a commit", source);
        let repo = self.repo();
        let found = repo.find_commit(commit).map_err(failed)?;
        let decoded = found.decode().map_err(failed)?;
        gix::objs::Commit::try_from(decoded).map_err(failed)
    }

    /// Refuses a commit that is not in the form that git gives it: made again, it would be
    /// another, or none.
    pub(crate) fn require_sound(&self, commit: ObjectId) -> Result<(), StoreError> {
        let mut again = Vec::new();
        let form = |_| StoreError::Form { what: format!("commit {commit}") };
        self.read_commit(commit)?.write_to(&mut again).map_err(form)?;
        let repo = self.repo();
        let found = repo.find_commit(commit);
        let found = found.map_err(|source| StoreError::objects("read a commit", source))?;
        if found.data == again {
            return Ok(());
        }
        Err(StoreError::Form { what: format!("commit {commit}") })
    }

    /// The file, link or submodule that a tree has under this path.
    pub(crate) fn leaf(&self, tree: ObjectId, path: &TreePath) -> Result<Option<Leaf>, StoreError> {
        let failed = |source| StoreError::objects("read a tree", source);
        let repo = self.repo();
        let tree = repo.find_tree(tree).map_err(failed)?;
        let entry = tree.lookup_entry(path.as_bytes().split_str("/")).map_err(failed)?;
        let leaf = entry.map(|entry| Leaf { mode: entry.mode(), id: entry.object_id() });
        Ok(leaf.filter(|leaf| !leaf.mode.is_tree()))
    }

    pub(crate) fn has_path(&self, tree: ObjectId, path: &TreePath) -> Result<bool, StoreError> {
        Ok(self.leaf(tree, path)?.is_some())
    }

    pub(crate) fn repo(&self) -> gix::Repository {
        self.repo.to_thread_local()
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }
}

/// Refuses a git that cannot merge three trees; one whose version is not understood is taken.
fn require_version(said: &str) -> Result<(), StoreError> {
    let mut numbers = said.trim_start_matches("git version ").split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Ok(());
    };
    if (major, minor) >= OLDEST_GIT {
        return Ok(());
    }
    let needed = format!("{}.{}", OLDEST_GIT.0, OLDEST_GIT.1);
    Err(StoreError::OldGit { found: said.to_owned(), needed })
}

fn open_repository(path: &Utf8Path) -> Result<gix::ThreadSafeRepository, StoreError> {
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

#[cfg(test)]
mod tests {
    use super::require_version;

    #[test]
    fn a_git_that_cannot_merge_trees_is_refused() {
        for (said, fits) in [
            ("git version 2.44.3", false),
            ("git version 1.9.1", false),
            ("git version 2.45.0", true),
            ("git version 2.47.3", true),
            ("git version 3.0.0.rc1", true),
            ("something else", true),
        ] {
            assert_eq!(require_version(said).is_ok(), fits, "{said}");
        }
    }
}
