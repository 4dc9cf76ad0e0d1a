//! A claimed private checkout, and the operations on it.

use std::{collections::BTreeMap, fs::File, io};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice as _},
    index::entry::{Mode, Stat},
    refs::transaction::PreviousValue,
};
use pdca_dag::Pattern;
use pdca_process::Cancel;
use serde::{Deserialize, Serialize};
use tracing::{debug, debug_span};

use crate::{
    checkout::{self, CheckoutPlace},
    claim::ClaimError,
    dir,
    failure::{ApplyError, LaneError},
    git::Git,
    history,
    marker::Marker,
    owner::OwnerFile,
    patch,
    provision::LaneKind,
    room::Room,
    stage::{self, Stage},
    walk::{Found, Spare, Walk},
};

/// The largest new or changed file that git is asked to hash. No patch of a readable size holds a larger one.
const LARGEST_FILE: u64 = 256 << 20;
/// The largest sum of the sizes of all new and changed files.
const LARGEST_CHANGE: u64 = 1 << 30;

/// A private checkout of one target, held exclusively for as long as this value lives.
///
/// Every process in it must have ended before any of these operations.
#[derive(Debug)]
pub struct Lane {
    pub(crate) room: Room,
    pub(crate) stage: Stage,
    pub(crate) marker: Utf8PathBuf,
    pub(crate) aside: Utf8PathBuf,
    pub(crate) owner: OwnerFile,
    pub(crate) moved_aside: Option<Utf8PathBuf>,
    pub(crate) cache: Vec<Pattern>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) lock: File,
}

/// The extent of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reset {
    /// Removes everything that the commit does not have, except declared caches, so that the files of one tree cannot
    /// influence another.
    #[default]
    Clean,
    /// Keeps all ignored files.
    Tracked,
    /// Removes everything that the commit does not have, as in a new lane.
    Pristine,
}

/// The outcome of [`Lane::save`].
#[derive(Debug)]
pub enum Saved {
    /// Every change was already in a commit.
    Nothing,
    /// This commit of the lane holds the work.
    Commit(String),
    /// The work could not be committed, so the checkout was moved aside unchanged and created anew.
    Aside {
        /// The new path of the old checkout; `None` if nothing was left to move.
        path: Option<Utf8PathBuf>,
        /// The failure in the old checkout.
        why: LaneError,
    },
}

/// The author and time of a commit, given as values so that the same change has the same id everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    /// The name of author and committer.
    pub name: &'a str,
    /// The address of author and committer.
    pub email: &'a str,
    /// The time in seconds since 1970, UTC.
    pub seconds: i64,
}

impl Lane {
    /// Returns the root of the checkout.
    pub fn path(&self) -> &Utf8Path {
        self.room.checkout()
    }

    /// Returns the last note about the work in the checkout; `None` in a new one.
    ///
    /// The note lies beside the checkout, out of reach of the processes in it. A note that exists but cannot be read is
    /// an error, because then the owner of the work is unknown.
    pub fn owner(&self) -> io::Result<Option<Vec<u8>>> {
        self.owner.load()
    }

    /// Records the owner of the work in the checkout, in at most 4 KiB.
    pub fn set_owner(&self, note: &[u8]) -> io::Result<()> {
        self.owner.store(note)
    }

    /// Returns the path to which the claim moved a checkout that was no working repository any more, if it found one.
    ///
    /// Its content is unchanged, symbolic links included. The present checkout was created anew.
    pub fn moved_aside(&self) -> Option<&Utf8Path> {
        self.moved_aside.as_deref()
    }

    /// Returns the relation of the checkout to the primary.
    pub fn kind(&self) -> LaneKind {
        self.room.kind()
    }

    /// Returns the commit of the last reset; `None` in a lane that was never reset.
    pub fn base(&self) -> Result<Option<String>, LaneError> {
        let marker = Marker::load(&self.marker)
            .map_err(|source| LaneError::Io { doing: "read the marker", source })?;
        Ok(marker.and_then(|marker| marker.base))
    }

    /// Returns the commit that is checked out; `None` before the first reset.
    pub fn head(&self) -> Result<Option<String>, LaneError> {
        let repo = self.room.enter()?;
        Ok(history::head(&repo)?.map(|id| id.to_string()))
    }

    /// Makes tracked files equal to the commit and removes files that are neither tracked nor ignored.
    ///
    /// Files that the commit's own rules ignore stay, so build caches survive. Work in the checkout is lost unless it
    /// was [rescued](Self::rescue) before.
    pub fn reset(&self, base: &str) -> Result<(), LaneError> {
        self.reset_with(base, Reset::Tracked)
    }

    /// Like [`reset`](Self::reset), with the given treatment of ignored files.
    pub fn reset_with(&self, base: &str, what: Reset) -> Result<(), LaneError> {
        let hydration = |source| LaneError::Io { doing: "note that the hydration is gone", source };
        // Hydrated files are removed too, so the stamp must say so before the first of them is gone.
        let clears_all = what != Reset::Tracked;
        if clears_all {
            self.doubt_hydration().map_err(hydration)?;
        }
        let spares = match what {
            Reset::Tracked => Spare::Ignored,
            Reset::Clean => Spare::Caches(&self.cache),
            Reset::Pristine => Spare::Nothing,
        };
        let _span = debug_span!("reset", lane = %self.path(), base).entered();
        debug!(spares = ?what, "begins");
        let repo = self.room.enter()?;
        let commit = history::find_commit(&repo, base)?;
        let tree = history::tree_of(&repo, commit)?;
        let before = history::head(&repo)?;
        let left = before
            .filter(|before| *before != commit)
            .map(|before| history::tree_of(&repo, before))
            .transpose()?;
        if before.is_none() && self.place().is_fresh()? {
            checkout::fill(&repo, tree, &[self.place()], &|_, _| {})?;
        } else {
            checkout::reset(&repo, &self.room, &self.stage, tree, left, spares)?;
        }
        self.room
            .forget_unfinished()
            .map_err(|source| LaneError::Io { doing: "forget unfinished work", source })?;
        if clears_all {
            self.forget_hydration().map_err(hydration)?;
        }
        self.settle(&repo, commit, before)?;
        self.drop_branch(&repo)?;
        debug!("done");
        Ok(())
    }

    /// Like [`reset_with`](Self::reset_with), with HEAD on a branch of the lane's own, so that tools find an ordinary
    /// checkout.
    ///
    /// The next reset and the removal of the lane delete the branch: in the lane's own repository, or in the primary's
    /// for a lane of [`LaneKind::Worktree`]. Commits on it that are to stay must be kept before, as by
    /// [`rescue`](Self::rescue). An existing branch of this name that is not the lane's is never taken over.
    pub fn reset_on(&self, base: &str, branch: &str, what: Reset) -> Result<(), LaneError> {
        self.reset_with(base, what)?;
        if self.has_branch(branch)? {
            return Err(LaneError::BranchTaken { branch: branch.to_owned() });
        }
        // Recorded before the branch is created, so that a branch left by a crash is known as the lane's.
        self.note("note the branch", |marker| marker.branch = Some(branch.to_owned()))?;
        self.start_branch(branch)
    }

    /// Puts HEAD on a commit that is checked out, and records it as the base.
    pub(crate) fn settle(
        &self,
        repo: &gix::Repository,
        commit: ObjectId,
        before: Option<ObjectId>,
    ) -> Result<(), LaneError> {
        let attached =
            repo.head_name().map_err(|source| LaneError::objects("read HEAD", source))?.is_some();
        if attached || before != Some(commit) {
            history::move_ref(repo, "HEAD", commit, PreviousValue::Any, false)?;
        }
        self.note_base(&commit.to_string())
    }

    /// Keeps everything that a reset would lose, under `refs/pdca/rescue/<name>` of the lane: uncommitted files that
    /// are not ignored, and commits that the base does not have. Returns the commit that holds it; `None` if there was
    /// nothing.
    ///
    /// A number is appended to a name that is taken, and characters that a ref cannot have become `_`. Repositories
    /// inside the checkout cannot be committed; they are moved beside it, to `rescued/<name>/`.
    pub fn rescue(&self, name: &str) -> Result<Option<String>, LaneError> {
        let name = &history::ref_component(name);
        let repo = self.room.enter()?;
        let Some(head) = self.head_or_base(&repo)? else {
            return Ok(None);
        };
        let (tree, nested) = self.snapshot(&repo)?;
        checkout::move_aside(&self.room, &self.aside.join(name), &nested)?;
        let dirty = tree != history::tree_of(&repo, head)?;
        if !dirty && self.base_has(&repo, head)? {
            return Ok(None);
        }
        let commit = if dirty {
            // The time of the parent commit, so that rescuing the same files again gives the same commit.
            let by = Signature {
                name: "pdca",
                email: "rescue@pdca.invalid",
                seconds: history::seconds_of(&repo, head),
            };
            history::write_commit(&repo, &format!("rescued: {name}\n"), tree, head, &by)?
        } else {
            head
        };
        history::keep_rescue(&repo, name, commit)?;
        Ok(Some(commit.to_string()))
    }

    /// Like [`rescue`](Self::rescue), but a lane whose own state makes that impossible is [renewed](Self::renew).
    pub fn save(&self, name: &str) -> Result<Saved, ClaimError> {
        match self.rescue(name) {
            Ok(None) => Ok(Saved::Nothing),
            Ok(Some(commit)) => Ok(Saved::Commit(commit)),
            Err(why) if why.is_of_the_lane() => Ok(Saved::Aside { path: self.renew()?, why }),
            Err(error) => Err(error.into()),
        }
    }

    /// Applies a patch to the checkout, all of it or nothing, without a commit.
    pub fn apply(&self, patch: &[u8]) -> Result<(), ApplyError> {
        let scan = patch::scan(patch)?;
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let mut index = self.stage.index_of(&repo, history::tree_of(&repo, head)?)?;
        let found = look(&repo, &self.room, &mut index)?;
        self.stage.put_scratch(&mut index)?;
        if !found.different.is_empty() {
            self.git().refresh()?;
        }
        let said = self.git().apply(patch)?;
        if said.code != 0 {
            let (file, line) = scan.locate(&said.stderr);
            return Err(ApplyError::DoesNotApply {
                file,
                line,
                reason: said.stderr.trim().to_owned(),
            });
        }
        Ok(self.stage.keep_scratch(&self.room)?)
    }

    /// Commits everything that is not ignored. Returns `None` if nothing changed.
    pub fn commit_all(
        &self,
        message: &str,
        by: &Signature<'_>,
    ) -> Result<Option<String>, LaneError> {
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let (tree, _) = self.snapshot(&repo)?;
        if tree == history::tree_of(&repo, head)? {
            return Ok(None);
        }
        let commit = history::write_commit(&repo, message, tree, head, by)?;
        history::move_ref(&repo, "HEAD", commit, PreviousValue::Any, true)?;
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
        let repo = self.room.enter()?;
        let tree = history::tree_of(&repo, self.require_head(&repo)?)?;
        let mut index = self.stage.index_of(&repo, tree)?;
        let found = look(&repo, &self.room, &mut index)?;
        if found.different.is_empty() {
            return Ok(Vec::new());
        }
        self.refuse_large(&index, &Found { untracked: Vec::new(), ..found })?;
        self.stage.put_scratch(&mut index)?;
        let changed = self.git().changed()?;
        Ok(changed.iter().map(|path| path.to_str_lossy().into_owned().into()).collect())
    }

    /// Returns the repositories inside the checkout that are neither ignored nor submodules of HEAD, sorted.
    ///
    /// Such a directory has an entry `.git`, of whatever kind, and is not part of what [`commit_all`](Self::commit_all)
    /// commits. Its content is not examined. Invalid UTF-8 in a name is replaced.
    pub fn nested(&self) -> Result<Vec<Utf8PathBuf>, LaneError> {
        let repo = self.room.enter()?;
        let tree = history::tree_of(&repo, self.require_head(&repo)?)?;
        let mut index = self.stage.index_of(&repo, tree)?;
        let found = look(&repo, &self.room, &mut index)?;
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
        let repo = self.room.enter()?;
        let tree = history::tree_of(&repo, self.require_head(&repo)?)?;
        let mut index = self.stage.index_of(&repo, tree)?;
        let found = look(&repo, &self.room, &mut index)?;
        Ok(found.untracked.iter().map(|path| path.to_str_lossy().into_owned()).collect())
    }

    /// Creates a throwaway checkout of HEAD at `dest`, as a repository of its own that only borrows objects.
    ///
    /// Nothing that is written there reaches the lane or the primary.
    pub fn copy_to(&self, dest: &Utf8Path) -> Result<(), LaneError> {
        let repo = self.room.enter()?;
        let head = self.require_head(&repo)?;
        let room = self.room.borrowed_by(dest)?;
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

    /// Restores the files of a [copy](Self::copy_to) that `is_of` selects to their state in `base`; those that `base`
    /// does not have are removed. Returns the changed paths, with invalid UTF-8 replaced.
    pub fn put_back(
        &self,
        copy: &Utf8Path,
        base: &str,
        is_of: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, LaneError> {
        let repo = self.room.enter()?;
        let of_tree = |tree: ObjectId| -> Result<BTreeMap<BString, (Mode, ObjectId)>, LaneError> {
            let index = repo
                .index_from_tree(&tree)
                .map_err(|source| LaneError::objects("read the tree", source))?;
            let all = index.entries().iter().map(|one| (one.path(&index), (one.mode, one.id)));
            let named = all.filter(|(path, _)| is_of(&path.to_str_lossy()));
            Ok(named.map(|(path, what)| (path.to_owned(), what)).collect())
        };
        let now = of_tree(history::tree_of(&repo, self.require_head(&repo)?)?)?;
        let before = of_tree(history::tree_of(&repo, history::find_commit(&repo, base)?)?)?;
        let failed = |source| LaneError::Io { doing: "put a file of the copy back", source };
        let mut changed = Vec::new();
        for path in now.keys().filter(|path| now.get(*path) != before.get(*path)) {
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

    pub(crate) fn place(&self) -> CheckoutPlace<'_> {
        CheckoutPlace { room: &self.room, stage: Some(&self.stage) }
    }

    pub(crate) fn git(&self) -> Git<'_> {
        let (index, cancel) = (self.stage.scratch(), self.cancel.as_ref());
        Git { room: &self.room, index, cancel }
    }

    /// Returns the tree of the working tree, and the repositories in it that cannot be part of a tree.
    fn snapshot(&self, repo: &gix::Repository) -> Result<(ObjectId, Vec<BString>), LaneError> {
        let head = history::tree_of(repo, self.require_head(repo)?)?;
        let (mut index, wished) = self.stage.index_with_wishes(repo, head)?;
        let found = look(repo, &self.room, &mut index)?;
        if found.different.is_empty() && found.untracked.is_empty() && !wished {
            return Ok((head, found.nested));
        }
        self.refuse_large(&index, &found)?;
        self.stage.put_scratch(&mut index)?;
        self.git().add_all(&found.nested)?;
        let tree = self.git().write_tree()?;
        self.stage.remember_scratch()?;
        let tree = ObjectId::from_hex(tree.as_bytes()).map_err(|_| LaneError::Git {
            doing: "write a tree",
            code: 0,
            said: tree,
        })?;
        Ok((tree, found.nested))
    }

    /// Fails for files that git would take minutes to hash. A sparse file counts with its full length, because git
    /// reads every byte.
    fn refuse_large(&self, index: &gix::index::File, found: &Found) -> Result<(), LaneError> {
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

    /// Returns the commit that is checked out; `None` before the first reset. If HEAD was left on a branch without a
    /// commit, puts it back on the base, so that the files count as changes.
    fn head_or_base(&self, repo: &gix::Repository) -> Result<Option<ObjectId>, LaneError> {
        if let Some(head) = history::head(repo)? {
            return Ok(Some(head));
        }
        let Some(base) = self.base()? else { return Ok(None) };
        let base = history::find_commit(repo, &base)?;
        history::move_ref(repo, "HEAD", base, PreviousValue::Any, false)?;
        Ok(Some(base))
    }

    /// Returns true if the base has `commit` in its history.
    fn base_has(&self, repo: &gix::Repository, commit: ObjectId) -> Result<bool, LaneError> {
        let Some(base) = self.base()? else {
            return Ok(false);
        };
        let base = history::find_commit(repo, &base)?;
        Ok(base == commit
            || repo
                .merge_base(base, commit)
                .is_ok_and(|common| common.is_some_and(|common| common == commit)))
    }

    fn note_base(&self, base: &str) -> Result<(), LaneError> {
        // Not synced: if a power failure loses this, the only effect is an unnecessary rescue.
        self.note("note the base", |marker| marker.base = Some(base.to_owned()))
    }

    /// Updates the marker, unless the change makes no difference.
    pub(crate) fn note(
        &self,
        doing: &'static str,
        change: impl FnOnce(&mut Marker),
    ) -> Result<(), LaneError> {
        let noted = || -> io::Result<()> {
            let before = Marker::load(&self.marker)?.ok_or(io::ErrorKind::NotFound)?;
            let mut after = before.clone();
            change(&mut after);
            if after == before { Ok(()) } else { after.note(&self.marker) }
        };
        noted().map_err(|source| LaneError::Io { doing, source })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that inherited the descriptor would keep the lock.
        drop(self.lock.unlock());
    }
}

/// Walks the working tree and updates the stat data in the index.
///
/// git may compare times by the second only, and would take a file as unchanged that was changed within the second of
/// its checkout. So the entries of files that may differ get no stat data at all.
fn look(
    repo: &gix::Repository,
    room: &Room,
    index: &mut gix::index::File,
) -> Result<Found, LaneError> {
    // An attributes file may convert content, and only git can tell then whether a file differs.
    let plain = !room.converts() && stage::attribute_files(index).next().is_none();
    let walk = Walk::looking(repo, index, plain)
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
