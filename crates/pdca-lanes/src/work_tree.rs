//! The working tree of a lane: comparing it with commits, applying patches, committing.

use camino::{Utf8Path, Utf8PathBuf};
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    index::entry::Stat,
    refs::transaction::PreviousValue,
};
use pdca_process::Cancel;
use pdca_state::PatchScan;

use crate::{
    checkout::CheckoutPlace,
    failure::{ApplyError, LaneError},
    git::LaneGit,
    history,
    lane::CommitSignature,
    provision::LaneKind,
    room::CheckoutRepository,
    stage::{self, IndexPaths},
    walk::{TreeWalk, WalkResult},
};

/// The largest new or changed file that git is asked to hash. No patch of a readable size holds a
/// larger one, and a job can make a sparse file of any length for free.
const LARGEST_FILE: u64 = 256 << 20;
/// The largest sum of the sizes of all new and changed files.
const LARGEST_CHANGE: u64 = 1 << 30;

/// A private checkout: the files, its repository, and the trusted index beside it.
///
/// It is reached through the [`Lane`](crate::Lane) that holds it.
#[derive(Debug)]
pub struct WorkTree {
    pub(crate) room: CheckoutRepository,
    pub(crate) stage: IndexPaths,
    pub(crate) cancel: Option<Cancel>,
}

impl WorkTree {
    /// Returns the root of the checkout.
    pub fn path(&self) -> &Utf8Path {
        self.room.checkout()
    }

    /// Returns the relation of the checkout to the primary.
    pub fn kind(&self) -> LaneKind {
        self.room.kind()
    }

    /// Returns the commit that is checked out; `None` before the first reset.
    ///
    /// It is the commit that HEAD in the checkout names, which a process may have moved there; none of its content is
    /// known before it is [imported](Self::import).
    pub fn head(&self) -> Result<Option<String>, LaneError> {
        Ok(self.room.left_head()?.map(|id| id.to_string()))
    }

    /// Returns the repository in which the driver works on this checkout. Processes in the checkout cannot write it.
    pub fn repository(&self) -> Utf8PathBuf {
        self.room.git_dir()
    }

    /// Takes the commits that HEAD in the checkout names into [`repository`](Self::repository), with every object hashed
    /// again. A commit with an object that is missing or is not what its id says is refused, and nothing moves.
    pub fn import(&self) -> Result<(), LaneError> {
        self.room.import().map(drop)
    }

    /// Applies a patch to the checkout, all of it or nothing, without a commit.
    pub fn apply(&self, patch: &[u8]) -> Result<(), ApplyError> {
        let scan = PatchScan::of(patch)?;
        let (mut index, found) = self.compare_with_head()?;
        self.stage.put_scratch(&mut index)?;
        if !found.different.is_empty() {
            // `git apply --index` refuses a file whose stat data it does not know, even if its
            // content is right.
            self.git().refresh()?;
        }
        let said = self.git().apply(patch)?;
        if !said.success() {
            let (file, line) = scan.locate(&said.stderr);
            return Err(ApplyError::DoesNotApply { file, line, reason: said.stderr });
        }
        Ok(self.stage.keep_scratch(&self.room)?)
    }

    /// Commits everything that is not ignored. Returns `None` if nothing changed.
    pub fn commit_all(
        &self,
        message: &str,
        by: &CommitSignature<'_>,
    ) -> Result<Option<String>, LaneError> {
        let repo = self.room.import()?;
        let head = self.require_head(&repo)?;
        let (tree, _) = self.snapshot(&repo)?;
        if tree == history::tree_of(&repo, head)? {
            return Ok(None);
        }
        let commit = history::write_commit(&repo, message, tree, head, by)?;
        // Any previous value: the lane is held, and no process of the job is alive.
        history::move_ref(&repo, "HEAD", commit, PreviousValue::Any, true)?;
        // So that `git status` in the checkout shows a clean tree; `add_all` worked on the private
        // index.
        self.stage.lend_memory(&self.room)?;
        Ok(Some(commit.to_string()))
    }

    /// Returns the difference of two commits as a patch: binary-safe, with renames, always the same bytes.
    pub fn diff(&self, base: &str, head: &str) -> Result<Vec<u8>, LaneError> {
        let repo = self.room.enter()?;
        let (base, head) = (history::find_commit(&repo, base)?, history::find_commit(&repo, head)?);
        self.git().diff(&base.to_string(), &head.to_string())
    }

    /// Returns the id of the tree that a commit of the working tree would have.
    pub fn tree(&self) -> Result<String, LaneError> {
        let repo = self.room.enter()?;
        Ok(self.snapshot(&repo)?.0.to_string())
    }

    /// Returns the id of the tree of a commit.
    pub fn tree_of(&self, commit: &str) -> Result<String, LaneError> {
        let repo = self.room.enter()?;
        Ok(history::tree_of(&repo, history::find_commit(&repo, commit)?)?.to_string())
    }

    /// Returns the files of HEAD that are changed or missing, sorted. Invalid UTF-8 in a name is replaced.
    pub fn changed_tracked(&self) -> Result<Vec<Utf8PathBuf>, LaneError> {
        let (mut index, found) = self.compare_with_head()?;
        if found.different.is_empty() {
            return Ok(Vec::new());
        }
        self.refuse_large(&index, &WalkResult { untracked: Vec::new(), ..found })?;
        self.stage.put_scratch(&mut index)?;
        let changed = self.git().changed()?;
        Ok(changed.iter().map(|path| path.to_str_lossy().into_owned().into()).collect())
    }

    /// Returns the repositories inside the checkout that are neither ignored nor submodules of HEAD, sorted.
    ///
    /// Such a directory has an entry `.git`, of whatever kind, and is not part of what [`commit_all`](Self::commit_all)
    /// commits. Its content is not examined. Invalid UTF-8 in a name is replaced.
    pub fn nested(&self) -> Result<Vec<Utf8PathBuf>, LaneError> {
        let (_, found) = self.compare_with_head()?;
        let mut nested: Vec<Utf8PathBuf> = found
            .nested
            .iter()
            // In a directory with tracked files only the `.git` itself is reported.
            .map(|path| path.strip_suffix(b"/.git").unwrap_or(path).to_str_lossy().into_owned())
            .map(Utf8PathBuf::from)
            .collect();
        nested.sort_unstable();
        Ok(nested)
    }

    /// Returns the files that are neither in HEAD nor ignored. Invalid UTF-8 in a name is replaced.
    pub(crate) fn untracked(&self) -> Result<Vec<String>, LaneError> {
        let (_, found) = self.compare_with_head()?;
        Ok(found.untracked.iter().map(|path| path.to_str_lossy().into_owned()).collect())
    }

    pub(crate) fn place(&self) -> CheckoutPlace<'_> {
        CheckoutPlace { room: &self.room, stage: Some(&self.stage) }
    }

    pub(crate) fn git(&self) -> LaneGit<'_> {
        let (index, cancel) = (self.stage.scratch(), self.cancel.as_ref());
        LaneGit { room: &self.room, index, cancel }
    }

    /// Compares the working tree with HEAD. Returns the index of HEAD and the differences.
    pub(crate) fn compare_with_head(&self) -> Result<(gix::index::File, WalkResult), LaneError> {
        let repo = self.room.enter()?;
        let tree = history::tree_of(&repo, self.require_head(&repo)?)?;
        let mut index = self.stage.index_of(&repo, tree)?;
        let found = look(&repo, &self.room, &mut index)?;
        Ok((index, found))
    }

    /// Returns the tree of the working tree, and the repositories in it that cannot be part of a tree.
    pub(crate) fn snapshot(
        &self,
        repo: &gix::Repository,
    ) -> Result<(ObjectId, Vec<BString>), LaneError> {
        let head = history::tree_of(repo, self.require_head(repo)?)?;
        let (mut index, wished) = self.stage.index_with_wishes(repo, &self.room, head)?;
        let found = look(repo, &self.room, &mut index)?;
        // The tree is that of HEAD, so no child process has to be started.
        if found.different.is_empty() && found.untracked.is_empty() && !wished {
            return Ok((head, found.nested));
        }
        self.refuse_large(&index, &found)?;
        self.stage.put_scratch(&mut index)?;
        self.git().add_all(&found.nested)?;
        let tree = self.git().write_tree()?;
        // git has compared every file; the next look does not have to.
        self.stage.remember_scratch()?;
        Ok((tree, found.nested))
    }

    /// Fails for files that git would take minutes to hash. A sparse file counts with its full length, because git
    /// reads every byte.
    fn refuse_large(&self, index: &gix::index::File, found: &WalkResult) -> Result<(), LaneError> {
        let changed = found.different.iter().map(|at| index.entries()[*at].path(index));
        let paths = changed.chain(found.untracked.iter().map(|path| path.as_bstr()));
        let (mut total, mut largest) = (0_u64, (0_u64, String::new()));
        for path in paths {
            let Ok(relative) = path.to_path() else { continue };
            let Ok(found) = std::fs::symlink_metadata(self.path().as_std_path().join(relative))
            else {
                continue;
            };
            let size = if found.is_file() { found.len() } else { 0 };
            let shown = || path.to_str_lossy().into_owned();
            if size > LARGEST_FILE {
                return Err(LaneError::TooLarge { path: shown(), size, limit: LARGEST_FILE });
            }
            total = total.saturating_add(size);
            if size > largest.0 {
                largest = (size, shown());
            }
        }
        if total > LARGEST_CHANGE {
            let path = format!("the change, with {} as its largest file,", largest.1);
            return Err(LaneError::TooLarge { path, size: total, limit: LARGEST_CHANGE });
        }
        Ok(())
    }

    pub(crate) fn require_head(&self, repo: &gix::Repository) -> Result<ObjectId, LaneError> {
        history::head(repo)?.ok_or_else(|| LaneError::Damaged {
            path: self.path().to_owned(),
            why: "has nothing checked out",
        })
    }
}

/// Walks the working tree and updates the stat data in the index.
///
/// git may compare times by the second only, and would take a file as unchanged that was changed within the second of
/// its checkout. So the entries of files that may differ get no stat data at all.
pub(crate) fn look(
    repo: &gix::Repository,
    room: &CheckoutRepository,
    index: &mut gix::index::File,
) -> Result<WalkResult, LaneError> {
    // An attributes file may convert content, and only git can tell then whether a file differs.
    let plain = !room.converts() && stage::attribute_files(index).next().is_none();
    let walk = TreeWalk::looking(repo, index, plain)
        .map_err(|source| LaneError::objects("read the ignore rules", source))?;
    let found = walk.run(room.checkout())?;
    for (at, stat) in &found.refreshed {
        index.entries_mut()[*at].stat = *stat;
    }
    for at in &found.different {
        index.entries_mut()[*at].stat = Stat::default();
    }
    Ok(found)
}
