//! One pass over a working tree that finds changed, untracked and nested entries, and can remove them.
//!
//! Directories are opened relative to their parent, never through a symbolic link, so a link left in a lane cannot lead
//! the pass, let alone a deletion, out of it.

use std::{
    ffi::{CStr, CString},
    io,
    ops::Range,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{Mutex, PoisonError},
};

use camino::Utf8Path;
use gix::{
    bstr::{BString, ByteSlice as _},
    index::entry::{Mode, Stat, stat::Time},
    worktree::stack::state::ignore::Source,
};
use pdca_dag::{Case, Pattern};
use rustix::fs::{self as sys, AtFlags, FileType, OFlags};

use crate::{
    dir::{list, open_dir, open_root, remove_entry, require_shallow},
    failure::LaneError,
};

/// The result of a pass.
#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    /// Entries of the index whose file is missing or may differ.
    pub(crate) different: Vec<usize>,
    /// Entries whose file was read and is unchanged, with its present stat data.
    pub(crate) refreshed: Vec<(usize, Stat)>,
    /// Files that are neither in the index nor ignored.
    pub(crate) untracked: Vec<BString>,
    /// Repositories inside the working tree.
    pub(crate) nested: Vec<BString>,
}

/// A pass over the working tree, with as many threads as there are cores.
pub(crate) struct TreeWalk<'a> {
    repo: &'a gix::Repository,
    rules: WalkRules<'a>,
}

/// The settings that all threads share.
#[derive(Clone, Copy)]
struct WalkRules<'a> {
    index: &'a gix::index::File,
    source: Source,
    /// True if changed and untracked files are removed on the way.
    clears: bool,
    /// The untracked files that stay.
    spares: Spare<'a>,
    /// True if files hold the bytes of their blobs, so that reading one tells whether it is unchanged.
    plain: bool,
    able: gix::fs::Capabilities,
}

/// The untracked files that a clearing walk keeps.
#[derive(Clone, Copy)]
pub(crate) enum Spare<'a> {
    /// Ignored files.
    Ignored,
    /// Files that match these patterns, ignored or not.
    Caches(&'a [Pattern]),
    /// None.
    Nothing,
}

/// The work of one thread.
struct Pass<'a> {
    repo: &'a gix::Repository,
    rules: WalkRules<'a>,
    /// The ignore rules, loaded at the first untracked file.
    ignored: Option<gix::AttributeStack<'a>>,
    /// Tracked directories left for other threads, if that is wanted.
    later: Option<Vec<Later>>,
    found: WalkResult,
}

/// A tracked directory that was opened but not entered.
struct Later {
    dir: OwnedFd,
    prefix: BString,
    range: Range<usize>,
}

/// An entry of a directory according to the index.
enum Child<'a> {
    File(&'a [u8], usize),
    Dir(&'a [u8], Range<usize>),
}

/// With fewer files than this, one thread is done before another has started.
const WORTH_THREADS: usize = 2_000;

/// The largest file that is read to tell whether it is unchanged. The file is held in memory, once
/// per thread.
const READ_UP_TO: u64 = 64 << 20;

/// The largest file with ignore rules or attributes that is read.
const LARGEST_RULES: u64 = 16 << 20;

/// The most directories that are kept open for later. A process may usually have 1024 files open.
const OPEN: usize = 256;

impl<'a> TreeWalk<'a> {
    /// Prepares a pass that changes nothing.
    ///
    /// `plain` says that files hold the bytes of their blobs, so that reading one tells whether it is unchanged.
    pub(crate) fn looking(
        repo: &'a gix::Repository,
        index: &'a gix::index::File,
        plain: bool,
    ) -> gix::Result<Self> {
        let source = Source::WorktreeThenIdMappingIfNotSkipped;
        let able = repo.filesystem_options()?;
        let rules = WalkRules { index, source, clears: false, spares: Spare::Ignored, plain, able };
        Ok(Self { repo, rules })
    }

    /// Prepares a pass that removes changed and untracked files, by the ignore rules of the index alone.
    pub(crate) fn clearing(
        repo: &'a gix::Repository,
        index: &'a gix::index::File,
        plain: bool,
        spares: Spare<'a>,
    ) -> gix::Result<Self> {
        let walk = Self::looking(repo, index, plain)?;
        // The rules of the commit and not those in the working tree: a job could otherwise keep a
        // file by writing a `.gitignore`.
        let rules = WalkRules { source: Source::IdMapping, clears: true, spares, ..walk.rules };
        Ok(Self { rules, ..walk })
    }

    /// Walks the whole tree.
    pub(crate) fn run(self, root: &Utf8Path) -> Result<WalkResult, LaneError> {
        let entries = self.rules.index.entries().len();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let alone = threads == 1 || entries < WORTH_THREADS;
        let mut pass = Pass::new(self.repo, self.rules);
        pass.later = (!alone).then(Vec::new);
        let root = open_root(root).map_err(LaneError::walking)?;
        pass.tracked_dir(root.as_fd(), &mut BString::default(), 0..entries)?;
        let mut later = pass.later.replace(Vec::new()).unwrap_or_default();
        if !alone && later.len() < 4 * threads {
            // With few directories at the top, the work is divided one level further down.
            for Later { dir, mut prefix, range } in later {
                pass.tracked_dir(dir.as_fd(), &mut prefix, range)?;
            }
            later = pass.later.take().unwrap_or_default();
        }
        let mut found = pass.found;
        for more in self.share_out(later, threads)? {
            found.add(more);
        }
        // The order of the threads is not the order of the paths, and callers search in these
        // lists.
        found.different.sort_unstable();
        found.untracked.sort_unstable();
        found.nested.sort_unstable();
        Ok(found)
    }

    fn share_out(&self, later: Vec<Later>, threads: usize) -> Result<Vec<WalkResult>, LaneError> {
        if later.is_empty() {
            return Ok(Vec::new());
        }
        let (repo, rules) = (self.repo.clone().into_sync(), self.rules);
        let next = Mutex::new(later.into_iter());
        let worker = || -> Result<WalkResult, LaneError> {
            let repo = repo.to_thread_local();
            let mut pass = Pass::new(&repo, rules);
            loop {
                let next = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(Later { dir, mut prefix, range }) = next else { return Ok(pass.found) };
                pass.tracked_dir(dir.as_fd(), &mut prefix, range)?;
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
                worker.join().expect("a worker reports its failure and never panics")
            };
            workers.into_iter().map(join).collect()
        })
    }
}

impl WalkResult {
    fn add(&mut self, more: Self) {
        self.different.extend(more.different);
        self.refreshed.extend(more.refreshed);
        self.untracked.extend(more.untracked);
        self.nested.extend(more.nested);
    }
}

impl<'a> Pass<'a> {
    fn new(repo: &'a gix::Repository, rules: WalkRules<'a>) -> Self {
        Self { repo, rules, ignored: None, later: None, found: WalkResult::default() }
    }

    fn is_ignored(&mut self, path: &BString, mode: Mode) -> Result<bool, LaneError> {
        let failed = |source| LaneError::objects("read the ignore rules", source);
        if self.ignored.is_none() {
            let rules = self.repo.excludes(self.rules.index, None, self.rules.source);
            self.ignored = Some(rules.map_err(failed)?);
        }
        let Some(ignored) = &mut self.ignored else { return Ok(false) };
        let rules = ignored.at_entry(path.as_bstr(), Some(mode)).map_err(failed)?;
        Ok(rules.is_excluded())
    }

    fn tracked_dir(
        &mut self,
        dir: BorrowedFd<'_>,
        prefix: &mut BString,
        range: Range<usize>,
    ) -> Result<(), LaneError> {
        require_shallow(prefix)?;
        let index = self.rules.index;
        let children = children(index, prefix.len(), range);
        let mut seen = vec![false; children.len()];
        let names = list(dir).map_err(LaneError::walking)?;
        self.require_rules(dir, &names, prefix)?;
        for (name, kind) in names {
            let bytes = name.to_bytes();
            if prefix.is_empty() && bytes == b".git" {
                continue;
            }
            let length = prefix.len();
            prefix.extend_from_slice(bytes);
            match children.binary_search_by(|child| child.name().cmp(bytes)) {
                Ok(at) => {
                    seen[at] = true;
                    self.tracked(dir, &name, kind, prefix, &children[at])?;
                }
                Err(_) => self.untracked(dir, &name, kind, prefix)?,
            }
            prefix.truncate(length);
        }
        for (child, _) in children.iter().zip(seen).filter(|(_, seen)| !seen) {
            self.found.different.extend(child.entries());
        }
        Ok(())
    }

    fn tracked(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: &mut BString,
        child: &Child<'_>,
    ) -> Result<(), LaneError> {
        let same = match child {
            Child::Dir(_, range) if kind == FileType::Directory => {
                let below = open_dir(dir, name, self.rules.clears).map_err(LaneError::walking)?;
                path.push(b'/');
                match &mut self.later {
                    Some(later) if later.len() < OPEN => {
                        let (prefix, range) = (path.clone(), range.clone());
                        later.push(Later { dir: below, prefix, range });
                        return Ok(());
                    }
                    Some(_) | None => {
                        return self.tracked_dir(below.as_fd(), path, range.clone());
                    }
                }
            }
            Child::Dir(..) => false,
            Child::File(_, at) => self.is_same(dir, name, *at).map_err(LaneError::walking)?,
        };
        if !same {
            self.found.different.extend(child.entries());
            if self.rules.clears {
                remove_entry(dir, name, kind).map_err(LaneError::walking)?;
            } else if kind == FileType::Directory {
                // A directory replaced a file: nothing below is tracked, but it may be a repository.
                self.untracked(dir, name, kind, path)?;
            }
        }
        Ok(())
    }

    /// Fails for files with ignore rules or attributes that must not be read: git and gix would block on a FIFO, and
    /// read a huge file to its end. A clearing walk reads none of them.
    fn require_rules(
        &self,
        dir: BorrowedFd<'_>,
        names: &[(CString, FileType)],
        prefix: &BString,
    ) -> Result<(), LaneError> {
        if self.rules.clears {
            return Ok(());
        }
        let has_rules = |name: &CStr| matches!(name.to_bytes(), b".gitignore" | b".gitattributes");
        for (name, _) in names.iter().filter(|(name, _)| has_rules(name)) {
            // Follows a link, because its target would be read.
            let Ok(found) = sys::statat(dir, name, AtFlags::empty()) else { continue };
            let kind = FileType::from_raw_mode(found.st_mode);
            let path = || format!("{prefix}{}", name.to_string_lossy());
            if !matches!(kind, FileType::RegularFile | FileType::Directory) {
                let why = "is neither a file nor a directory";
                return Err(LaneError::Damaged { path: path().into(), why });
            }
            let size = u64::try_from(found.st_size).unwrap_or(u64::MAX);
            if kind == FileType::RegularFile && size > LARGEST_RULES {
                return Err(LaneError::TooLarge { path: path(), size, limit: LARGEST_RULES });
            }
        }
        Ok(())
    }

    /// Returns true if the file matches the entry, by its stat data or else by its content.
    fn is_same(&mut self, dir: BorrowedFd<'_>, name: &CStr, at: usize) -> io::Result<bool> {
        let entry = &self.rules.index.entries()[at];
        let found = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        let executable = found.st_mode & 0o100 != 0;
        let right_kind = match entry.mode {
            // The content of a submodule is not examined: a lane leaves it empty, and a job may fill it.
            Mode::COMMIT => return Ok(kind == FileType::Directory),
            // Without symbolic links git writes a file with the target as its content.
            Mode::SYMLINK if self.rules.able.symlink => kind == FileType::Symlink,
            mode => {
                // A filesystem without this bit reports the same mode for every file.
                let right_mode = !self.rules.able.executable_bit
                    || executable == (mode == Mode::FILE_EXECUTABLE);
                kind == FileType::RegularFile && right_mode
            }
        };
        if !right_kind {
            return Ok(false);
        }
        let now = stat_of(&found);
        // The stat data has the change time, which a program cannot set, so equal data means equal
        // content.
        if now == entry.stat {
            return Ok(true);
        }
        // A larger file is left to git, which `WorkTree::refuse_large` bounds as well.
        let is_small = u64::try_from(found.st_size).is_ok_and(|size| size <= READ_UP_TO);
        if !self.rules.plain || kind != FileType::RegularFile || !is_small {
            return Ok(false);
        }
        let file = sys::openat(
            dir,
            name,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            sys::Mode::empty(),
        );
        let Ok(file) = file else { return Ok(false) };
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes)?;
        let hash = self.rules.index.object_hash();
        let id = gix::objs::compute_hash(hash, gix::objs::Kind::Blob, &bytes)
            .map_err(io::Error::other)?;
        let same = id == entry.id;
        if same {
            self.found.refreshed.push((at, now));
        }
        Ok(same)
    }

    fn untracked(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: &mut BString,
    ) -> Result<(), LaneError> {
        let is_dir = kind == FileType::Directory;
        // A `.git` is never skipped, even if a rule ignores it: the work in a repository inside the
        // checkout would be lost by the reset.
        let is_repository = name.to_bytes() == b".git";
        match self.rules.spares {
            Spare::Nothing if self.rules.clears => {
                return remove_entry(dir, name, kind).map_err(LaneError::walking);
            }
            Spare::Caches(caches) if self.rules.clears => {
                return self.clear_but(caches, dir, name, kind, path);
            }
            Spare::Nothing | Spare::Caches(_) | Spare::Ignored => {}
        }
        let mode = if is_dir { Mode::DIR } else { Mode::FILE };
        if !is_repository && self.is_ignored(path, mode)? {
            return Ok(());
        }
        if is_dir && !is_repository {
            let below = open_dir(dir, name, self.rules.clears).map_err(LaneError::walking)?;
            if sys::statat(&below, c".git", AtFlags::SYMLINK_NOFOLLOW).is_err() {
                return self.untracked_dir(dir, name, below.as_fd(), path);
            }
            self.found.nested.push(path.clone());
        } else if is_repository {
            self.found.nested.push(path.clone());
        } else {
            self.found.untracked.push(path.clone());
        }
        if self.rules.clears {
            remove_entry(dir, name, kind).map_err(LaneError::walking)?;
        }
        Ok(())
    }

    /// Removes an untracked entry, unless it is a cache or contains one.
    fn clear_but(
        &mut self,
        caches: &[Pattern],
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: &mut BString,
    ) -> Result<(), LaneError> {
        let text = path.to_str_lossy().into_owned();
        let is_dir = kind == FileType::Directory;
        // A link in place of a cache leads to a directory that was not declared.
        if kind != FileType::Symlink && caches.iter().any(|cache| cache.covers(&text)) {
            return Ok(());
        }
        let below = Pattern::parse(&format!("{text}/**"), Case::Sensitive);
        let holds_one = |cache: &Pattern| below.as_ref().map_or(true, |b| cache.meet(b).is_some());
        if is_dir && name.to_bytes() != b".git" && caches.iter().any(holds_one) {
            let below = open_dir(dir, name, true).map_err(LaneError::walking)?;
            return self.untracked_dir(dir, name, below.as_fd(), path);
        }
        remove_entry(dir, name, kind).map_err(LaneError::walking)
    }

    fn untracked_dir(
        &mut self,
        above: BorrowedFd<'_>,
        name: &CStr,
        dir: BorrowedFd<'_>,
        path: &mut BString,
    ) -> Result<(), LaneError> {
        path.push(b'/');
        require_shallow(path)?;
        let names = list(dir).map_err(LaneError::walking)?;
        self.require_rules(dir, &names, path)?;
        for (inner, kind) in names {
            let length = path.len();
            path.extend_from_slice(inner.to_bytes());
            self.untracked(dir, &inner, kind, path)?;
            path.truncate(length);
        }
        if self.rules.clears {
            match sys::unlinkat(above, name, AtFlags::REMOVEDIR) {
                // The directory contains ignored files, which stay.
                Ok(()) | Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => {}
                Err(err) => return Err(LaneError::walking(err.into())),
            }
        }
        Ok(())
    }
}

impl Child<'_> {
    fn name(&self) -> &[u8] {
        match self {
            Self::File(name, _) | Self::Dir(name, _) => name,
        }
    }

    fn entries(&self) -> Range<usize> {
        match self {
            Self::File(_, at) => *at..*at + 1,
            Self::Dir(_, range) => range.clone(),
        }
    }
}

/// Groups the entries below one directory by their next path component, sorted by it.
fn children(index: &gix::index::File, prefix: usize, range: Range<usize>) -> Vec<Child<'_>> {
    let mut children: Vec<Child<'_>> = Vec::new();
    for at in range {
        let rest = &index.entries()[at].path(index)[prefix..];
        let Some(slash) = rest.find_byte(b'/') else {
            children.push(Child::File(rest, at));
            continue;
        };
        let name = &rest[..slash];
        match children.last_mut() {
            Some(Child::Dir(last, range)) if *last == name => range.end = at + 1,
            Some(_) | None => children.push(Child::Dir(name, at..at + 1)),
        }
    }
    // The index sorts `a/b` after `a.c`, but the directory name `a` sorts before `a.c`.
    children.sort_by(|left, right| left.name().cmp(right.name()));
    children
}

/// Converts the stat data of a file to the form of the index.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index keeps the low 32 bits of each, by its format"
)]
pub(crate) fn stat_of(found: &sys::Stat) -> Stat {
    Stat {
        mtime: Time { secs: found.st_mtime as u32, nsecs: found.st_mtime_nsec as u32 },
        ctime: Time { secs: found.st_ctime as u32, nsecs: found.st_ctime_nsec as u32 },
        dev: found.st_dev as u32,
        ino: found.st_ino as u32,
        uid: found.st_uid,
        gid: found.st_gid,
        size: found.st_size as u32,
    }
}

/// Returns true if a file was written so close to the index that a later change may not show in its time.
pub(crate) fn is_racy(entry: &Stat, index: (i64, u32)) -> bool {
    (i64::from(entry.mtime.secs), entry.mtime.nsecs) >= index
}
