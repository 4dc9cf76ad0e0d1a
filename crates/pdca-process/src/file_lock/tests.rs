use std::os::fd::AsFd as _;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::liveness_lock::{hold_as_child, wait_until_free};

fn place() -> (tempfile::TempDir, Utf8PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(directory.path()).unwrap().join("driver.lock");
    (directory, path)
}

fn refused(path: &Utf8Path) -> String {
    match FileLock::take(path, "late") {
        Err(FileLockError::Held { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

/// Everything that a process can hold on a file which it can only read.
#[derive(Debug, Clone, Copy)]
enum Grip {
    Flock,
    SharedFlock,
    ReadLock,
    ReadLease,
    WriteLease,
}

const GRIPS: [Grip; 5] =
    [Grip::Flock, Grip::SharedFlock, Grip::ReadLock, Grip::ReadLease, Grip::WriteLease];

impl Grip {
    /// Takes hold of every file and directory below `dir`, by descriptors that are open for reading.
    fn of_all(self, dir: &Utf8Path) -> Vec<File> {
        let mut held = Vec::from_iter(self.of(dir));
        for entry in dir.read_dir_utf8().unwrap() {
            held.extend(self.of(entry.unwrap().path()));
        }
        held
    }

    fn of(self, path: &Utf8Path) -> Option<File> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        // A write lease of an earlier grip refuses it.
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        match self {
            // What is held by its owner is refused, and has to be.
            Self::Flock => drop(file.try_lock()),
            Self::SharedFlock => drop(file.try_lock_shared()),
            Self::ReadLock => {
                let taken = fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&whole(libc::F_RDLCK)));
                assert!(!matches!(taken, Err(nix::Error::EBADF)), "a reader may ask for it");
            }
            Self::ReadLease => lease(&file, libc::F_RDLCK),
            Self::WriteLease => lease(&file, libc::F_WRLCK),
        }
        Some(file)
    }
}

fn lease(file: &File, kind: libc::c_int) {
    // Refused on a directory, on some file systems, and to a user who does not own the file.
    let command = ["-c", "import fcntl,sys; fcntl.fcntl(0, 1024, int(sys.argv[1]))"];
    let kind = kind.to_string();
    let stdin = file.try_clone().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a lease has no safe call here")]
    let mut python = std::process::Command::new("python3");
    python.args(command).arg(kind).stdin(stdin).stderr(std::process::Stdio::null());
    drop(python.status());
}

#[test]
fn a_second_taker_is_refused_and_told_who_holds_it() {
    let (directory, path) = place();
    assert_eq!(FileLock::holder(&path).unwrap(), None);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "asking creates nothing");
    let first = FileLock::take(&path, "first").unwrap();
    assert_eq!(refused(&path), "first");
    assert_eq!(FileLock::holder(&path).unwrap().as_deref(), Some("first"));
    first.write("again\x1b[2J").unwrap();
    assert_eq!(refused(&path), "again [2J");
    drop(first);
    assert_eq!(FileLock::holder(&path).unwrap(), None);
    assert_eq!(FileLock::take(&path, "").unwrap().found(), "again [2J");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn whatever_a_reader_holds_every_lock_can_be_taken_released_and_taken_again() {
    for grip in GRIPS {
        let (directory, path) = place();
        let dir = Utf8Path::from_path(directory.path()).unwrap();
        let children = dir.join("children.lock");
        // A lock of a process that died, one that is free, and what a crash leaves.
        drop(FileLock::take(&path, "dead").unwrap());
        for name in ["driver.lock.new-dead", "children.lock.held-dead"] {
            std::fs::write(dir.join(name), "").unwrap();
        }
        let mut held = grip.of_all(dir);
        for _ in 0..3 {
            let lock = FileLock::take(&path, "ours").unwrap();
            held.extend(grip.of_all(dir));
            assert_eq!(refused(&path), "ours", "{grip:?}");
            let child = hold_as_child(&children).unwrap();
            held.extend(grip.of_all(dir));
            wait_until_free(&children, Duration::ZERO).unwrap_err();
            drop(child);
            wait_until_free(&children, Duration::ZERO).unwrap();
            drop(lock);
            held.extend(grip.of_all(dir));
            assert_eq!(FileLock::holder(&path).unwrap(), None, "{grip:?}");
        }
        let over = FileLock::take_over(&path).unwrap();
        assert!(over.is_current().unwrap());
        drop(held);
    }
}

#[test]
fn a_reader_cannot_take_a_lock_for_writing() {
    let (_directory, path) = place();
    drop(FileLock::take(&path, "").unwrap());
    let reader = File::open(&path).unwrap();
    assert!(lock_for_writing(&reader).is_err());
}

#[test]
fn of_many_takers_at_once_exactly_one_has_the_lock() {
    const TAKERS: u32 = 8;
    let (directory, path) = place();
    for _ in 0..50 {
        let (begun, decided) = (Barrier::new(TAKERS as usize), Barrier::new(TAKERS as usize));
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..TAKERS {
                scope.spawn(|| {
                    begun.wait();
                    let lock = FileLock::take(&path, "one of them");
                    taken.fetch_add(u32::from(lock.is_ok()), Ordering::Relaxed);
                    // Held until every other has its answer.
                    decided.wait();
                    drop(lock);
                });
            }
        });
        assert_eq!(taken.load(Ordering::Relaxed), 1);
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "no candidate stays");
}

#[test]
fn takers_that_wait_for_each_other_go_one_after_the_other() {
    let (_directory, path) = place();
    let inside = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let lock = FileLock::wait(&path, "").unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(lock);
                }
            });
        }
    });
}

#[test]
fn a_lock_that_was_given_back_is_free_though_a_child_has_a_copy_of_it() {
    let (_directory, path) = place();
    let held = FileLock::take(&path, "first").unwrap();
    let copy = held.try_clone().unwrap();
    drop(held);
    drop(FileLock::take(&path, "second").unwrap());
    drop(copy);
}

#[test]
fn a_takeover_is_noticed_by_the_holder_before() {
    let (_directory, path) = place();
    let before = FileLock::take(&path, "before").unwrap();
    let taker = FileLock::take_over(&path).unwrap();
    assert_eq!(taker.found(), "before");
    assert!(!before.is_current().unwrap() && taker.is_current().unwrap());
    drop(before);
    refused(&path);
}

#[test]
fn a_transient_lock_leaves_nothing() {
    let (directory, path) = place();
    let held = FileLock::take(&path, "").unwrap().transient();
    refused(&path);
    drop(held);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn a_link_or_a_directory_is_no_lock() {
    let (directory, path) = place();
    let victim = directory.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    for taken in [FileLock::take(&path, "x"), FileLock::take_over(&path)] {
        assert!(matches!(taken, Err(FileLockError::Unusable { .. })), "{taken:?}");
    }
    assert!(FileLock::holder(&path).is_err());
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    let dir = path.with_file_name("dir.lock");
    std::fs::create_dir(&dir).unwrap();
    assert!(matches!(FileLock::take(&dir, ""), Err(FileLockError::Unusable { .. })));
}

#[test]
fn e13_where_locks_do_not_work_nobody_is_admitted() {
    let (directory, path) = place();
    let unsupported = |_: &File| Err(io::Error::from(rustix::io::Errno::NOLCK));
    let refused = FileLock::take_with(&path, "", LockCalls { lock: unsupported, ..KERNEL });
    assert!(matches!(refused, Err(FileLockError::CannotLock { source: Some(_), .. })));
    let yes_to_everybody = LockCalls { lock: |_| Ok(true), is_locked: |_| Ok(false) };
    let refused = FileLock::take_with(&path, "", yes_to_everybody);
    assert!(matches!(refused, Err(FileLockError::CannotLock { source: None, .. })));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn what_a_taker_left_that_died_at_any_step_is_gone_after_the_next() {
    let (_dir, path) = place();
    for kind in [UNLOCKED, CANDIDATE, SHARED] {
        File::create(format!("{path}{kind}0123456789abcdef-1")).expect("a file can be made");
    }
    drop(FileLock::take(&path, "next").expect("the dead hold nothing"));
    assert!(!is_shared(&path).expect("the directory can be read"));
    let dir = path.parent().expect("a lock lies in a directory");
    let left: Vec<_> = dir.read_dir_utf8().expect("it can be read").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].path(), path);
}
