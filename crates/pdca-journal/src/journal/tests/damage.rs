//! Every truncation, and every flipped bit.

use super::*;
use crate::read::parse;

fn reading(bytes: &[u8]) -> Result<Reading, JournalReadError> {
    parse(bytes, Utf8Path::new("journal"), &run())
}

/// The end offset of each line of a journal, the header first.
fn ends(bytes: &[u8]) -> Vec<usize> {
    (1..).zip(bytes).filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end).collect()
}

#[test]
fn every_truncation_of_a_journal_is_a_prefix_of_its_records() {
    let scene = Scene::new();
    drop(scene.told());
    let bytes = scene.bytes();
    let (all, ends) = (reading(&bytes).unwrap().entries, ends(&bytes));
    assert_eq!(ends.len(), all.len() + 1);
    for len in 0..bytes.len() {
        let cut = reading(&bytes[..len]).unwrap();
        let whole = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(cut.entries, all[..whole.saturating_sub(1)], "at {len}");
        let start = ends.iter().copied().filter(|end| *end <= len).max().unwrap_or(0);
        let tail = if start == len && len > 0 {
            JournalTail::Whole
        } else {
            JournalTail::Torn { at: start as u64, bytes: (len - start) as u64 }
        };
        assert_eq!(cut.tail, tail, "at {len}");
        let state = RunState::fold(&cut.entries).unwrap();
        assert_eq!(state.is_some(), whole > 1, "at {len}");
    }
}

#[test]
fn e6_a_torn_record_is_cut_kept_and_told_and_the_run_goes_on() {
    let scene = Scene::new();
    drop(scene.told());
    let bytes = scene.bytes();
    let ends = ends(&bytes);
    let start = ends[ends.len() - 2];
    // Every length of the last record, from its first byte to all but its line feed.
    for len in start + 1..bytes.len() {
        fs_err::write(scene.journal_path(), &bytes[..len]).unwrap();
        let opened = scene.open(2).unwrap();
        let torn = opened.torn.unwrap();
        assert_eq!((torn.at, torn.bytes), (start as u64, (len - start) as u64));
        assert_eq!(fs_err::read(&torn.kept).unwrap(), bytes[start..len]);
        let now = scene.bytes();
        assert_eq!(now[..start], bytes[..start]);
        assert_eq!(reading(&now).unwrap().tail, JournalTail::Whole);
        assert_eq!(opened.journal.state().last.seq, Seq(ends.len() as u64 - 1));
    }
}

#[test]
fn a_journal_without_its_first_record_is_lost_and_not_new() {
    let scene = Scene::new();
    drop(scene.create());
    let bytes = scene.bytes();
    for len in [0, 5, ends(&bytes)[0], bytes.len() - 1] {
        fs_err::write(scene.journal_path(), &bytes[..len]).unwrap();
        assert!(matches!(scene.open(2), Err(OpenError::Lost { .. })), "at {len}");
        assert_eq!(scene.bytes(), bytes[..len]);
        assert!(scene.runs().find(&run()).is_active());
    }
}

/// A journal of some batches, the last of which has two records, and where that begins.
fn small(scene: &Scene) -> (Vec<u8>, usize) {
    let mut journal = scene.create();
    let mut start = 0;
    for batch in story().into_iter().take(3) {
        start = scene.bytes().len();
        journal.append(at(1), batch).unwrap();
    }
    (scene.bytes(), start)
}

#[test]
fn every_flipped_bit_of_a_journal_is_noticed_and_never_cuts_what_was_synced_before() {
    let scene = Scene::new();
    let (mut bytes, last) = small(&scene);
    let all = reading(&bytes).unwrap().entries;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            match reading(&bytes) {
                Err(_) => assert!(at < last, "the last batch may be torn: {at}"),
                Ok(found) => {
                    assert!(at >= last, "byte {at} bit {bit} went unnoticed or cut too much");
                    let JournalTail::Torn { at: cut, .. } = found.tail else {
                        panic!("byte {at} bit {bit} went unnoticed")
                    };
                    assert!((last as u64..=at as u64).contains(&cut), "{at} cut at {cut}");
                    assert!((all.len() - 2..all.len()).contains(&found.entries.len()));
                    assert_eq!(found.entries, all[..found.entries.len()]);
                }
            }
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn e7_a_flipped_bit_in_the_middle_stops_everything_and_nothing_is_cut() {
    let scene = Scene::new();
    drop(scene.told());
    let mut bytes = scene.bytes();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(scene.journal_path(), &bytes).unwrap();
    let error = scene.open(2).unwrap_err();
    assert!(matches!(error, OpenError::Read(JournalReadError::Damaged { .. })), "{error}");
    assert_eq!(scene.bytes(), bytes);
    assert_eq!(fs_err::read_dir(scene.runs().dir(&run())).unwrap().count(), 1);
    assert!(scene.runs().find(&run()).is_active(), "it may not be over");
}

#[test]
fn a_record_that_is_missing_twice_there_or_in_another_s_place_is_noticed() {
    let scene = Scene::new();
    drop(scene.told());
    let bytes = scene.bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 1..lines.len() - 1 {
        let mut missing = lines.clone();
        missing.remove(at);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        for changed in [missing, twice, swapped] {
            let error = reading(&changed.concat()).unwrap_err();
            assert!(matches!(error, JournalReadError::Broken { .. }), "{error}");
        }
    }
}

#[test]
fn a_batch_of_which_only_a_later_part_reached_the_disk_is_torn_and_not_damage() {
    let scene = Scene::new();
    let mut journal = scene.create();
    journal.append(at(1), vec![entered(Activity::Running)]).unwrap();
    let before = scene.bytes().len();
    let batch = ["1", "2"].map(|it| crate::testing::claimed(it, 1, u32::from(it == "2")));
    journal.append(at(1), batch.into()).unwrap();
    let mut bytes = scene.bytes();
    bytes[before..before + 40].fill(0);
    let found = reading(&bytes).unwrap();
    assert_eq!(found.entries.len(), 2);
    assert_eq!(
        found.tail,
        JournalTail::Torn { at: before as u64, bytes: (bytes.len() - before) as u64 }
    );
}
