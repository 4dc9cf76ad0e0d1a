//! A disk that does not do what it is told. What this machine does not do on demand is put between
//! the journal and its real file.

use std::sync::{Arc, Mutex};

use super::*;

/// The next operation that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Only this many bytes are written, then there is no space left.
    Full(usize),
    /// As that, and it cannot be cut either.
    FullForGood(usize),
    /// It cannot be synced.
    Sync,
    /// The driver is stopped before it writes, the run is taken from it, and it wakes.
    TakenOver,
}

#[derive(Debug)]
struct Faulty {
    disk: Disk,
    path: Utf8PathBuf,
    next: Arc<Mutex<Option<Fault>>>,
}

impl Storage for Faulty {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        match *self.next.lock().unwrap() {
            Some(Fault::Full(len) | Fault::FullForGood(len)) => {
                self.disk.write(&bytes[..len.min(bytes.len())], at)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(Fault::TakenOver) => {
                let path = self.path.clone();
                let copy = fs_err::read(&path).unwrap();
                pdca_state::files::replace(&path, &copy).unwrap();
                self.disk.write(bytes, at)
            }
            Some(Fault::Sync) | None => self.disk.write(bytes, at),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match *self.next.lock().unwrap() {
            Some(Fault::Sync) => Err(io::Error::from_raw_os_error(5)),
            Some(Fault::Full(_) | Fault::FullForGood(_) | Fault::TakenOver) | None => {
                self.disk.sync()
            }
        }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        match *self.next.lock().unwrap() {
            Some(Fault::FullForGood(_)) => Err(io::Error::from_raw_os_error(5)),
            Some(Fault::Full(_) | Fault::Sync | Fault::TakenOver) | None => self.disk.cut(len),
        }
    }

    fn look(&self) -> io::Result<PathState> {
        self.disk.look()
    }
}

/// A journal, and what makes its disk fail.
fn faulty(scene: &Scene) -> (Journal, Arc<Mutex<Option<Fault>>>) {
    let mut journal = scene.create();
    let next = Arc::new(Mutex::new(None));
    let path = scene.journal_path();
    let disk = Disk::open(path.clone()).unwrap();
    journal.storage = Box::new(Faulty { disk, path, next: next.clone() });
    (journal, next)
}

fn step() -> Vec<Record> {
    vec![entered(Activity::Running)]
}

#[test]
fn e1_on_a_full_disk_nothing_is_written_and_the_same_works_when_space_returns() {
    let scene = Scene::new();
    let (mut journal, next) = faulty(&scene);
    let before = scene.bytes();
    for written in [0, 1, 50, 10_000] {
        *next.lock().unwrap() = Some(Fault::Full(written));
        let error = journal.append(at(1), step()).unwrap_err();
        assert!(matches!(error, AppendError::NotWritten { .. }), "{error}");
        assert_eq!(scene.bytes(), before);
        assert_eq!(journal.state().phase.as_str(), "preparing");
    }
    *next.lock().unwrap() = None;
    journal.append(at(1), step()).unwrap();
    assert_eq!(scene.runs().find(&run()).phase().unwrap().as_str(), "running");
}

#[test]
fn what_is_half_written_and_cannot_be_cut_ends_the_driver_and_is_a_torn_tail() {
    let scene = Scene::new();
    let (mut journal, next) = faulty(&scene);
    *next.lock().unwrap() = Some(Fault::FullForGood(50));
    let error = journal.append(at(1), step()).unwrap_err();
    assert!(matches!(error, AppendError::Ended { .. }), "{error}");
    *next.lock().unwrap() = None;
    assert!(matches!(journal.append(at(1), step()), Err(AppendError::Ended { .. })));
    drop(journal);
    assert_eq!(scene.open(2).unwrap().torn.unwrap().bytes, 50);
}

#[test]
fn e4_a_sync_that_failed_once_ends_the_driver_although_the_next_would_work() {
    let scene = Scene::new();
    let (mut journal, next) = faulty(&scene);
    let intent = journal.intent(at(1), rescue("1")).unwrap();
    *next.lock().unwrap() = Some(Fault::Sync);
    let error = intent.done(&mut journal, at(1)).unwrap_err();
    assert!(matches!(error, AppendError::Ended { source: Some(_), .. }), "{error}");
    *next.lock().unwrap() = None;
    let before = scene.bytes();
    for _ in 0..2 {
        let error = journal.append(at(1), step()).unwrap_err();
        assert!(matches!(error, AppendError::Ended { .. }), "{error}");
        assert!(journal.intent(at(1), rescue("2")).is_err());
    }
    assert_eq!(scene.bytes(), before);
    assert_eq!(journal.state().intents.len(), 1, "what was not synced does not count");
}

#[test]
fn a_driver_that_wakes_in_the_middle_of_a_write_does_not_rely_on_it() {
    let scene = Scene::new();
    let (mut journal, next) = faulty(&scene);
    let before = scene.bytes();
    *next.lock().unwrap() = Some(Fault::TakenOver);
    let error = journal.append(at(1), step()).unwrap_err();
    assert!(matches!(error, AppendError::Ended { .. }), "{error}");
    assert_eq!(scene.bytes(), before, "nobody reads what it wrote");
    assert_eq!(journal.state().phase.as_str(), "preparing");
}
