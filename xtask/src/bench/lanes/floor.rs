//! The lower bound of making checkouts: the same files, written from memory.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    sync::atomic::{AtomicUsize, Ordering},
};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{Mode, OFlags, openat};

use crate::{Stopped, program};

/// The files of a checkout by directory, in memory.
pub(super) struct Floor {
    dirs: Vec<(Utf8PathBuf, Vec<File>)>,
}

/// A file name with its contents.
type File = (String, Vec<u8>);

impl Floor {
    /// Reads the tracked files of a checkout; links, and names that are not UTF-8, are left out.
    pub(super) fn load(primary: &Utf8Path) -> Result<Self, Stopped> {
        let listed = program::output("git", &["ls-files", "-z"], primary)?;
        let mut dirs: BTreeMap<Utf8PathBuf, Vec<File>> = BTreeMap::new();
        dirs.insert(Utf8PathBuf::new(), Vec::new());
        for path in listed.split(|byte| *byte == 0) {
            let Ok(path) = std::str::from_utf8(path).map(Utf8Path::new) else { continue };
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let place = primary.join(path);
            if !fs_err::symlink_metadata(&place)?.is_file() {
                continue;
            }
            for above in dir.ancestors() {
                dirs.entry(above.to_owned()).or_default();
            }
            let bytes = fs_err::read(place)?;
            dirs.entry(dir.to_owned()).or_default().push((name.to_owned(), bytes));
        }
        Ok(Self { dirs: dirs.into_iter().collect() })
    }

    pub(super) fn files(&self) -> usize {
        self.dirs.iter().map(|(_, files)| files.len()).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.dirs.iter().flat_map(|(_, files)| files).map(|(_, bytes)| bytes.len()).sum()
    }

    /// Writes all files this many times below the directory.
    pub(super) fn write(&self, dir: &Utf8Path, count: u32) -> Result<(), Stopped> {
        let mut roots = Vec::new();
        for at in 0..count {
            let root = dir.join(at.to_string());
            fs_err::create_dir(&root)?;
            roots.push(rustix::fs::open(root.as_std_path(), OFlags::PATH, Mode::empty())?);
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        in_threads(threads, roots.len(), |root| self.make_dirs(&roots[root]))?;
        in_threads(threads, self.dirs.len(), |dir| {
            let (path, files) = &self.dirs[dir];
            roots.iter().try_for_each(|root| write_files(root, path, files))
        })?;
        Ok(())
    }

    fn make_dirs(&self, root: &OwnedFd) -> io::Result<()> {
        for (path, _) in self.dirs.iter().skip(1) {
            rustix::fs::mkdirat(root, path.as_std_path(), Mode::from_raw_mode(0o777))?;
        }
        Ok(())
    }
}

fn write_files(root: &OwnedFd, path: &Utf8Path, files: &[File]) -> io::Result<()> {
    let path = if path.as_str().is_empty() { Utf8Path::new(".") } else { path };
    let dir = openat(root, path.as_std_path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
    for (name, bytes) in files {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = openat(&dir, name.as_str(), flags, Mode::from_raw_mode(0o666))?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
    }
    Ok(())
}

/// Does the work of each number in one of the threads.
fn in_threads(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let worker = || {
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                at if at < count => work(at)?,
                _ => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let join = |other: std::thread::ScopedJoinHandle<'_, io::Result<()>>| {
            other.join().expect("a worker reports its failure and never panics")
        };
        others.into_iter().try_for_each(join)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_writes_what_the_checkout_has() {
        let home = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(home.path()).unwrap();
        super::super::repository::generate(&home.join("repo"), 40).unwrap();
        let floor = Floor::load(&home.join("repo")).unwrap();
        assert_eq!(floor.files(), 40);
        fs_err::create_dir(home.join("out")).unwrap();
        floor.write(&home.join("out"), 2).unwrap();
        for place in ["out/0", "out/1"] {
            let args = ["-r", "--exclude=.git", "repo", place];
            assert_eq!(program::output("diff", &args, home).unwrap(), b"");
        }
    }
}
