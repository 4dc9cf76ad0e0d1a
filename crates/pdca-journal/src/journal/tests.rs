//! Effects of a crash, a full disk, a flipped bit and another driver on a journal.

mod damage;
mod fault;
mod power;

use super::*;
use crate::read::read;
use crate::record::{Activity, Cause, EffectOutcome};
use crate::testing::{Scene, admitted, at, entered, entries, rescue, run, story};

#[test]
fn what_was_written_is_read_back() {
    let scene = Scene::new();
    let journal = scene.told();
    let reading = read(&scene.runs().dir(&run()), &run()).unwrap();
    assert_eq!(reading.tail, JournalTail::Whole);
    let records =
        |entries: &[JournalEntry]| entries.iter().map(|it| it.record.clone()).collect::<Vec<_>>();
    assert_eq!(records(&reading.entries), records(&entries()));
    assert_eq!(RunState::fold(&reading.entries).unwrap().as_ref(), Some(journal.state()));
}

#[test]
fn records_that_belong_together_cost_one_sync() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let intent = journal.intent(at(1), rescue("1")).unwrap();
    let facts = vec![entered(Activity::Running), crate::testing::claimed("1", 1, 0)];
    intent.resolve_before(&mut journal, at(1), EffectOutcome::Done, facts).unwrap();
    assert_eq!(journal.syncs(), 2);
    assert_eq!(journal.state().last.seq, Seq(5));
    journal.append(at(1), Vec::new()).unwrap();
    assert_eq!(journal.syncs(), 2);
}

#[test]
fn an_intent_that_got_no_outcome_is_there_for_the_next_driver() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let intent = journal.intent(at(1), rescue("1")).unwrap();
    let (seq, effect) = (intent.seq(), intent.effect().clone());
    drop((intent, journal));
    let mut journal = scene.open(2).unwrap().journal;
    let mut open = journal.open_intents();
    assert_eq!((open[0].seq(), open[0].effect()), (seq, &effect));
    open.remove(0).done(&mut journal, at(3)).unwrap();
    assert!(journal.open_intents().is_empty());
}

#[test]
fn an_intent_is_resolved_once() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let intent = journal.intent(at(1), rescue("1")).unwrap();
    let again = journal.open_intents().remove(0);
    intent.failed(&mut journal, at(1), Cause::Disk, "no space").unwrap();
    let error = again.done(&mut journal, at(1)).unwrap_err();
    assert!(matches!(error, AppendError::Illegal(_)), "{error}");
}

#[test]
fn a_record_that_cannot_follow_is_refused_with_all_that_were_to_be_written_with_it() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let before = scene.bytes();
    let batch = vec![entered(Activity::Running), Record::Completed];
    let error = journal.append(at(1), batch).unwrap_err();
    assert!(matches!(&error, AppendError::Illegal(illegal) if illegal.seq == Seq(3)), "{error}");
    assert_eq!(scene.bytes(), before);
    assert_eq!(journal.state().phase.as_str(), "preparing");
    journal.append(at(1), vec![entered(Activity::Running)]).unwrap();
}

#[test]
fn a_record_beyond_the_limit_is_refused() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let why = "x".repeat(MAX_LINE);
    let error = journal.append(at(1), vec![Record::Failed { why }]).unwrap_err();
    assert!(matches!(error, AppendError::TooLong { .. }), "{error}");
    assert!(journal.state().is_active());
}

#[test]
fn the_right_to_write_is_held_as_long_as_the_journal_is() {
    let scene = Scene::new();
    let journal = scene.create();
    let path = scene.path().join("lock");
    assert!(crate::admission::holder(&path).unwrap().is_some());
    drop(journal);
    assert_eq!(crate::admission::holder(&path).unwrap(), None);
}

#[test]
fn a_run_is_made_once() {
    let scene = Scene::new();
    drop(scene.create());
    let admission = scene.admission();
    let again = Journal::create(&scene.runs(), &admission, &run(), Epoch::FIRST, at(0), admitted());
    assert!(matches!(again, Err(JournalCreateError::Exists { .. })));
}

#[test]
fn a1_what_a_crash_left_of_a_run_that_was_not_admitted_bars_nobody() {
    let scene = Scene::new();
    let half = scene.path().join(format!("runs/.new-{}", run()));
    fs_err::create_dir_all(&half).unwrap();
    fs_err::write(half.join("journal"), "pdca-jour").unwrap();
    assert!(scene.runs().active().unwrap().is_empty());
    drop(scene.admission());
    scene.create();
    assert!(!half.exists());
    assert_eq!(scene.runs().list().unwrap(), [run()]);
}

#[test]
fn reading_changes_nothing_and_needs_no_right_to_write() {
    let scene = Scene::new();
    let _journal = scene.told();
    let before = scene.bytes();
    let meta = || fs_err::metadata(scene.journal_path()).unwrap().modified().unwrap();
    let time = meta();
    assert!(scene.runs().find(&run()).found.is_ok());
    assert_eq!((scene.bytes(), meta()), (before, time));
    assert_eq!(fs_err::read_dir(scene.runs().dir(&run())).unwrap().count(), 1);
}

#[test]
fn a_driver_of_an_epoch_that_was_seen_takes_nothing_up() {
    let scene = Scene::new();
    drop(scene.create());
    scene.open(5).unwrap();
    let before = scene.bytes();
    for epoch in [1, 4, 5] {
        assert!(matches!(scene.open(epoch), Err(OpenError::Stale { .. })), "{epoch}");
    }
    assert_eq!(scene.bytes(), before);
}

#[test]
fn c4_a_driver_that_the_run_was_taken_from_writes_nothing_that_anybody_reads() {
    let scene = Scene::new();
    let mut stopped = scene.create();
    let mut taker = scene.take_over(2);
    let error = stopped.append(at(3), vec![entered(Activity::Running)]).unwrap_err();
    assert!(matches!(error, AppendError::Ended { .. }), "{error}");
    taker.append(at(3), vec![entered(Activity::Running)]).unwrap();
    assert_eq!(taker.state().epoch, Epoch::new(2));
    let found = scene.runs().find(&run()).found.unwrap();
    assert_eq!(&found.state, taker.state());
}

#[test]
fn e8_a_journal_that_is_deleted_or_replaced_while_it_is_written_ends_its_driver() {
    let replaced: [fn(&Utf8Path); 3] = [
        |path| fs_err::remove_file(path).unwrap(),
        |path| {
            let copy = fs_err::read(path).unwrap();
            fs_err::remove_file(path).unwrap();
            fs_err::write(path, copy).unwrap();
        },
        |path| {
            fs_err::rename(path.parent().unwrap(), path.ancestors().nth(2).unwrap().join("x"))
                .unwrap();
        },
    ];
    for replace in replaced {
        let scene = Scene::new();
        let mut journal = scene.create();
        replace(&scene.journal_path());
        let error = journal.append(at(1), vec![entered(Activity::Running)]).unwrap_err();
        assert!(matches!(error, AppendError::Ended { .. }), "{error}");
    }
    let scene = Scene::new();
    drop(scene.create());
    fs_err::remove_file(scene.journal_path()).unwrap();
    assert!(matches!(scene.open(2), Err(OpenError::Read(JournalReadError::Missing { .. }))));
    assert_eq!(scene.runs().active().unwrap().len(), 1, "a run without a journal is not over");
}

#[test]
fn somebody_else_s_line_at_the_end_ends_its_driver() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let mut bytes = scene.bytes();
    bytes.extend(b"x\n");
    std::fs::write(scene.journal_path(), bytes).unwrap();
    let error = journal.append(at(1), vec![entered(Activity::Running)]).unwrap_err();
    assert!(
        matches!(error, AppendError::Ended { why, .. } if why.contains("another process has written"))
    );
}

#[test]
fn e9_a_journal_of_a_newer_version_is_refused_and_left_alone() {
    let scene = Scene::new();
    drop(scene.create());
    let newer =
        String::from_utf8(scene.bytes()).unwrap().replacen("pdca-journal 1", "pdca-journal 2", 1);
    fs_err::write(scene.journal_path(), &newer).unwrap();
    let refused = scene.open(2);
    assert!(matches!(refused, Err(OpenError::Read(JournalReadError::Newer { found: 2, .. }))));
    assert_eq!(scene.bytes(), newer.as_bytes());
    assert!(scene.runs().find(&run()).is_active(), "it may not be over");
}

#[test]
fn a_record_of_a_kind_that_is_not_known_is_refused() {
    let scene = Scene::new();
    drop(scene.create());
    let text = String::from_utf8(scene.bytes()).unwrap();
    // As a program would write it that has the same version and one kind more.
    let (head, line) = text.split_at(text.find('\n').unwrap() + 1);
    let mut words: Vec<&str> = line.trim_end().splitn(8, ' ').collect();
    let json = words[7].replacen("admitted", "conjured", 1);
    words[7] = &json;
    let rest = words[1..].join(" ");
    let sum = &pdca_state::sha256_hex(rest.as_bytes())[..32];
    fs_err::write(scene.journal_path(), format!("{head}{sum} {rest}\n")).unwrap();
    assert!(matches!(
        scene.open(2),
        Err(OpenError::Read(JournalReadError::Unknown { line: 2, .. }))
    ));
}

#[test]
fn the_journal_of_another_run_is_refused() {
    let scene = Scene::new();
    drop(scene.create());
    let other = RunId::new(at(9).wall, [9; 10]);
    let runs = scene.runs();
    fs_err::rename(runs.dir(&run()), runs.dir(&other)).unwrap();
    let error = read(&runs.dir(&other), &other).unwrap_err();
    assert!(matches!(error, JournalReadError::NotTheJournal { .. }), "{error}");
}

#[test]
fn a_link_in_place_of_a_journal_is_not_followed() {
    let scene = Scene::new();
    drop(scene.create());
    let (path, aside) = (scene.journal_path(), scene.runs().dir(&run()).join("aside"));
    fs_err::rename(&path, &aside).unwrap();
    fs_err::os::unix::fs::symlink("aside", &path).unwrap();
    let before = fs_err::read(&aside).unwrap();
    assert!(scene.open(2).is_err());
    assert!(scene.runs().find(&run()).found.is_err());
    assert_eq!(fs_err::read(&aside).unwrap(), before);
}

#[test]
fn f4_times_are_written_in_utc_whatever_the_zone() {
    let scene = Scene::new();
    let mut journal = scene.create();
    // The wall clock of a host in any zone, and on either side of a change to summer time.
    let wall = "2026-03-29T03:30:00+02:00[Europe/Berlin]".parse::<jiff::Zoned>().unwrap();
    let moment = Moment { wall: wall.timestamp(), ..at(1) };
    journal.append(moment, vec![entered(Activity::Running)]).unwrap();
    let text = String::from_utf8(scene.bytes()).unwrap();
    let walls: Vec<&str> =
        text.lines().skip(1).map(|line| line.split(' ').nth(6).unwrap()).collect();
    assert_eq!(walls, ["2026-11-16T08:00:00Z", "2026-03-29T01:30:00Z"]);
    assert_eq!(&scene.runs().find(&run()).found.unwrap().state, journal.state());
}

#[test]
fn f5_equal_times_are_ordered_by_sequence_and_so_are_times_that_go_back() {
    let scene = Scene::new();
    let mut journal = scene.create();
    let earlier = Moment { wall: jiff::Timestamp::UNIX_EPOCH, ..at(0) };
    for (at, activity) in
        [(at(0), Activity::Running), (at(0), Activity::Integrating), (earlier, Activity::Draining)]
    {
        journal.append(at, vec![entered(activity)]).unwrap();
    }
    let found = scene.runs().find(&run()).found.unwrap();
    assert_eq!(found.state.phase.as_str(), "draining");
    assert_eq!(found.state.since.seq, Seq(4));
    assert_eq!(found.state.since.at.wall, jiff::Timestamp::UNIX_EPOCH);
}

#[test]
fn the_story_has_every_kind_of_record_that_a_run_without_trouble_has() {
    let kinds: std::collections::BTreeSet<String> = entries()
        .iter()
        .map(|it| serde_json::to_value(&it.record).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    // Without `taken-up`, `conflict`, `aborted` and `failed`.
    assert_eq!(kinds.len(), 20, "{kinds:?}");
}
