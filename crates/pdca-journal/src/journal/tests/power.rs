//! Loss of power, simulated: what was not synced may be there, or not, or in parts.
//!
//! This machine cannot be unplugged from a test. Instead every write goes to the real file and into
//! a log; then, for each moment of the log, files are made as a disk might hold them: everything
//! synced, and of what came after any choice of 16-byte pieces, the rest being zeros. Renames are
//! not reordered here: a run's directory and a taken-up journal are made by synced replacement.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::read::parse;

#[derive(Debug, Clone)]
enum Done {
    Wrote { bytes: Vec<u8>, at: usize },
    Cut(usize),
    Synced,
}

#[derive(Debug)]
struct Recorded {
    disk: Disk,
    log: Arc<Mutex<Vec<Done>>>,
}

impl Recorded {
    fn note(&self, done: Done) {
        self.log.lock().unwrap().push(done);
    }
}

impl Storage for Recorded {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.note(Done::Wrote { bytes: bytes.to_vec(), at: usize::try_from(at).unwrap() });
        self.disk.write(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.sync()?;
        self.note(Done::Synced);
        Ok(())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.note(Done::Cut(usize::try_from(len).unwrap()));
        self.disk.cut(len)
    }

    fn look(&self) -> io::Result<PathState> {
        self.disk.look()
    }
}

const PIECE: usize = 16;

/// A possible content of the disk after `log`: all that was synced, and of the rest the pieces that
/// `survives` picks.
fn disk_after(start: &[u8], log: &[Done], mut survives: impl FnMut() -> bool) -> Vec<u8> {
    let synced = log.iter().rposition(|done| matches!(done, Done::Synced)).map_or(0, |at| at + 1);
    let mut disk = start.to_vec();
    for (index, done) in log.iter().enumerate() {
        match done {
            Done::Wrote { bytes, at } => {
                for (number, piece) in bytes.chunks(PIECE).enumerate() {
                    if index < synced || survives() {
                        let from = at + number * PIECE;
                        disk.resize(disk.len().max(from + piece.len()), 0);
                        disk[from..from + piece.len()].copy_from_slice(piece);
                    }
                }
            }
            Done::Cut(len) => disk.truncate(*len),
            Done::Synced => {}
        }
    }
    disk
}

proptest! {
    // Each case is a run on a real file, with a sync per step.
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn e10_after_a_loss_of_power_every_synced_record_is_there_and_the_rest_is_a_prefix(
        pieces in proptest::collection::vec(any::<bool>(), 200),
    ) {
        let scene = Scene::new();
        let mut journal = scene.create();
        let start = scene.bytes();
        let log = Arc::new(Mutex::new(Vec::new()));
        let disk = Disk::open(scene.journal_path()).unwrap();
        journal.storage = Box::new(Recorded { disk, log: log.clone() });
        // The number of records that are promised to be durable, after each entry of the log.
        let mut promised = vec![1];
        for batch in story() {
            journal.append(at(1), batch).unwrap();
            let (len, before) = (log.lock().unwrap().len(), promised[promised.len() - 1]);
            promised.resize(len, before);
            promised.push(journal.state().last.seq.get());
        }
        let all = read(&scene.runs().dir(&run()), &run()).unwrap().entries;
        let log = log.lock().unwrap();
        for moment in 0..=log.len() {
            let mut pieces = pieces.iter().cycle();
            let disk = disk_after(&start, &log[..moment], || *pieces.next().unwrap());
            let found = parse(&disk, Utf8Path::new("journal"), &run()).unwrap();
            prop_assert!(found.entries.len() as u64 >= promised[moment]);
            prop_assert_eq!(&found.entries[..], &all[..found.entries.len()]);
        }
    }
}
