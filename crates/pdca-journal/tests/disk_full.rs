//! A real write that a real limit cuts short. It is a limit of the whole process, so this test has
//! one of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use camino::Utf8Path;
use pdca_journal::{
    Activity, Admission, Admitted, AppendError, Epoch, HostScope, Journal, JournalTail, Moment,
    ProcessIdentity, Record, RunId, Runs, read,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn e1_a_write_that_is_cut_short_leaves_nothing_behind_and_works_again_later() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(dir.path()).unwrap();
    let at = Moment { wall: jiff::Timestamp::UNIX_EPOCH, uptime: Duration::from_secs(1) };
    let run = RunId::generate(at.wall).unwrap();
    let runs = Runs::new(dir.join("runs"));
    let admission = Admission::take([dir.join("lock")]).unwrap();
    let admitted = Admitted {
        driver: ProcessIdentity::of(&HostScope::here().unwrap(), std::process::id()).unwrap(),
        targets: Vec::new(),
        batch: Vec::new(),
        config_digest: String::new(),
        lanes: 1,
    };
    let mut journal = Journal::create(&runs, &admission, &run, Epoch::FIRST, at, admitted).unwrap();
    let path = runs.dir(&run).join("journal");
    let before = fs_err::read(&path).unwrap();

    // Whoever listens to this signal gets an error in place of an end.
    let listens = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, listens).unwrap();
    let unlimited = getrlimit(Resource::Fsize);
    for room in [0, 1, 100] {
        let current = Some(before.len() as u64 + room);
        setrlimit(Resource::Fsize, Rlimit { current, maximum: unlimited.maximum }).unwrap();
        let error =
            journal.append(at, vec![Record::Entered { activity: Activity::Running }]).unwrap_err();
        assert!(matches!(error, AppendError::NotWritten { .. }), "{error:?}");
        assert_eq!(fs_err::read(&path).unwrap(), before);
    }
    setrlimit(Resource::Fsize, unlimited).unwrap();
    journal.append(at, vec![Record::Entered { activity: Activity::Running }]).unwrap();
    let reading = read(&runs.dir(&run), &run).unwrap();
    assert_eq!((reading.entries.len(), reading.tail), (2, JournalTail::Whole));
}
