//! The threads that write a plan to all checkouts.

use std::{
    ffi::CString,
    io,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use gix::{
    bstr::ByteSlice as _,
    index::entry::{Mode, Stat},
    objs::FindExt as _,
};
use rustix::fs::{self as sys, AtFlags, OFlags, Timespec, Timestamps};

use super::plan::{Dir, File, WritePlan};
use crate::{failure::LaneError, walk::stat_of};

/// The seconds by which file times are set back.
const BACK: i64 = 5;

/// A directory with more files than this is split between threads.
const PORTION: usize = 1024;

/// A plan, its destinations, and the progress so far.
pub(super) struct Writer<'a> {
    plan: &'a WritePlan,
    objects: gix::ThreadSafeRepository,
    roots: &'a [OwnedFd],
    times: Timestamps,
    tell: &'a (dyn Fn(usize) + Sync),
    done: AtomicUsize,
    stopped: AtomicBool,
    failure: Mutex<Option<LaneError>>,
}

/// The index of a file and its stat data in each checkout.
type Written = (usize, Vec<Stat>);

impl<'a> Writer<'a> {
    pub(super) fn new(
        plan: &'a WritePlan,
        repo: &gix::Repository,
        roots: &'a [OwnedFd],
        tell: &'a (dyn Fn(usize) + Sync),
    ) -> Result<Self, LaneError> {
        let times = match roots.first() {
            Some(root) => a_while_ago(root).map_err(LaneError::walking)?,
            None => Timestamps { last_access: ZERO, last_modification: ZERO },
        };
        Ok(Self {
            plan,
            objects: repo.clone().into_sync(),
            roots,
            times,
            tell,
            done: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        })
    }

    pub(super) fn run(self) -> Result<Vec<Vec<Stat>>, LaneError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // All directories first, so that the writers of files never wait for or create a parent.
        self.each(threads, &self.branches(threads), |_, (root, dirs)| {
            self.make_dirs(&self.roots[*root], dirs)
        });
        let written = self.each(threads, &self.portions(), |repo, (dir, files)| {
            self.write_dir(repo, &self.plan.dirs[*dir], files.clone())
        });
        if let Some(failure) = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        let mut stats = vec![vec![Stat::default(); self.plan.files.len()]; self.roots.len()];
        for (file, each) in written.into_iter().flatten() {
            for (place, stat) in stats.iter_mut().zip(each) {
                place[file] = stat;
            }
        }
        Ok(stats)
    }

    /// Distributes the work over the threads; after a failure no further piece is started.
    fn each<Work: Sync, Done: Send>(
        &self,
        threads: usize,
        all: &[Work],
        work: impl Fn(&gix::Repository, &Work) -> Result<Done, LaneError> + Sync,
    ) -> Vec<Done> {
        let next = AtomicUsize::new(0);
        let worker = || {
            let repo = self.objects.to_thread_local();
            let mut results = Vec::new();
            while let Some(piece) = all.get(next.fetch_add(1, Ordering::Relaxed))
                && !self.stopped.load(Ordering::Relaxed)
            {
                match work(&repo, piece) {
                    Ok(result) => results.push(result),
                    Err(failure) => self.fail(failure),
                }
            }
            results
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
            let mut results = worker();
            for other in others {
                results
                    .extend(other.join().expect("a worker reports its failure and never panics"));
            }
            results
        })
    }

    fn fail(&self, failure: LaneError) {
        self.stopped.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }

    /// Groups the directories to create so that a directory and its parents are in the same group.
    fn branches(&self, threads: usize) -> Vec<(usize, Range<usize>)> {
        let dirs = &self.plan.dirs;
        let places = 0..self.roots.len();
        if self.roots.len() >= threads {
            return places.map(|place| (place, 1..dirs.len())).collect();
        }
        let at_top = |dir: &usize| !self.plan.dir_path(&dirs[*dir]).contains(&b'/');
        let tops: Vec<usize> = (1..dirs.len()).filter(at_top).collect();
        let ends = tops.iter().skip(1).copied().chain([dirs.len()]);
        let branches: Vec<Range<usize>> =
            tops.iter().zip(ends).map(|(top, end)| *top..end).collect();
        places.flat_map(|place| branches.iter().map(move |dirs| (place, dirs.clone()))).collect()
    }

    /// Groups the files by directory; those of a large directory in several parts.
    fn portions(&self) -> Vec<(usize, Range<usize>)> {
        let mut portions = Vec::new();
        for (at, dir) in self.plan.dirs.iter().enumerate() {
            let count = dir.files.len();
            let starts = (0..count).step_by(PORTION);
            portions.extend(starts.map(|start| (at, start..count.min(start + PORTION))));
        }
        portions
    }

    fn make_dirs(&self, root: &OwnedFd, dirs: &Range<usize>) -> Result<(), LaneError> {
        for dir in &self.plan.dirs[dirs.clone()] {
            let path = self.plan.dir_path(dir);
            sys::mkdirat(root, path, sys::Mode::from_raw_mode(0o777))
                .map_err(|errno| unwritten(path, &errno.into()))?;
        }
        Ok(())
    }

    fn write_dir(
        &self,
        repo: &gix::Repository,
        dir: &Dir,
        files: Range<usize>,
    ) -> Result<Vec<Written>, LaneError> {
        let path = match self.plan.dir_path(dir) {
            b"" => b".",
            path => path,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |root| sys::openat(root, path, flags, sys::Mode::empty());
        let places = self.roots.iter().map(open).collect::<Result<Vec<_>, _>>();
        let places = places.map_err(|errno| unwritten(path, &errno.into()))?;
        let mut bytes = Vec::new();
        let mut written = Vec::with_capacity(files.len());
        for at in &dir.files[files.clone()] {
            let file = &self.plan.files[*at];
            let data = match file.mode {
                Mode::COMMIT => &[][..],
                _ => read_blob(repo, file, &mut bytes)?,
            };
            let put = |place| self.put(place, file, data);
            let stats = places.iter().map(put).collect::<io::Result<Vec<_>>>();
            written.push((*at, stats.map_err(|source| unwritten(self.plan.path(file), &source))?));
        }
        self.count(files.len());
        Ok(written)
    }

    fn put(&self, dir: impl AsFd, file: &File, data: &[u8]) -> io::Result<Stat> {
        let name = CString::new(self.plan.name(file)).map_err(io::Error::other)?;
        match file.mode {
            Mode::COMMIT => {
                sys::mkdirat(dir, &name, sys::Mode::from_raw_mode(0o777))?;
                Ok(Stat::default())
            }
            Mode::SYMLINK => {
                sys::symlinkat(data, &dir, &name)?;
                sys::utimensat(&dir, &name, &self.times, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(stat_of(&sys::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)?))
            }
            mode => {
                let flags = OFlags::WRONLY
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let bits = if mode == Mode::FILE_EXECUTABLE { 0o777 } else { 0o666 };
                let fd = sys::openat(dir, &name, flags, sys::Mode::from_raw_mode(bits))?;
                write_all(&fd, data)?;
                sys::futimens(&fd, &self.times)?;
                Ok(stat_of(&sys::fstat(&fd)?))
            }
        }
    }

    /// Reports progress in steps of one percent.
    fn count(&self, more: usize) {
        let before = self.done.fetch_add(more, Ordering::Relaxed);
        let step = (self.plan.files.len() / 100).max(1);
        if before / step != (before + more) / step {
            (self.tell)(before + more);
        }
    }
}

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Returns the time some seconds ago, by the clock of the filesystem that the directory is on.
fn a_while_ago(root: &OwnedFd) -> io::Result<Timestamps> {
    // Not the clock of this host: over a network filesystem file times come from the server.
    let changed = sys::fstat(root)?.st_ctime;
    let then = Timespec { tv_sec: changed - BACK, tv_nsec: 0 };
    Ok(Timestamps { last_access: then, last_modification: then })
}

fn read_blob<'a>(
    repo: &gix::Repository,
    file: &File,
    bytes: &'a mut Vec<u8>,
) -> Result<&'a [u8], LaneError> {
    let blob = repo.objects.find_blob(&file.id, bytes);
    Ok(blob.map_err(|source| LaneError::objects("read a file of the tree", source))?.data)
}

fn write_all(fd: &OwnedFd, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match rustix::io::write(fd, data) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => data = &data[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn unwritten(path: &[u8], source: &io::Error) -> LaneError {
    let what = format!("{}: {source}", path.to_str_lossy());
    LaneError::Io { doing: "write a file", source: io::Error::new(source.kind(), what) }
}
