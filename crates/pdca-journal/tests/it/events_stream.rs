//! A stream with a real log.

use std::sync::mpsc::{Receiver, channel};

use camino::Utf8Path;
use jiff::Timestamp;
use pdca_journal::events::{
    Event, EventKind, EventStream, FILE, LogLine, LogReader, Scope, WarningCode,
};

fn stream() -> (EventStream, Receiver<Event>) {
    let (to, events) = channel();
    // A test that is done with the stream may have dropped the other end.
    (EventStream::new(|| Timestamp::UNIX_EPOCH, move |event| drop(to.send(event))), events)
}

fn reopened(stream: &EventStream, id: &str) {
    stream.emit(Scope::Bundle(id.parse().expect("an id")), None, EventKind::Reopened);
}

fn dir() -> (tempfile::TempDir, camino::Utf8PathBuf) {
    let temp = tempfile::tempdir().expect("a directory");
    let path = Utf8Path::from_path(temp.path()).expect("a path of text").to_owned();
    (temp, path)
}

/// Each readable line as `seq run id`, each other one as its number.
fn stored(dir: &Utf8Path) -> Vec<String> {
    let mut reader = LogReader::open(dir).expect("a readable log").expect("a log");
    let mut lines = reader.read().expect("lines");
    lines.extend(reader.torn());
    let show = |line| match line {
        LogLine::Event(event, _) => {
            let id = serde_json::to_value(&event.scope).expect("fields")["id"].clone();
            format!("{} {} {id}", event.seq, event.run.unwrap_or_default())
        }
        LogLine::Unreadable { number, .. } => format!("line {number} unreadable"),
    };
    lines.into_iter().map(show).collect()
}

#[test]
fn the_log_has_what_the_listener_heard_and_what_came_before_the_run() {
    let (_temp, dir) = dir();
    let (stream, heard) = stream();
    reopened(&stream, "1");
    stream.record("R", &dir);
    reopened(&stream, "2");
    assert_eq!(stored(&dir), ["1 R \"1\"", "2 R \"2\""]);
    drop(stream);
    assert_eq!(heard.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_run_that_is_taken_up_goes_on_with_its_numbers_after_a_torn_line() {
    let (_temp, dir) = dir();
    let (first, _heard) = stream();
    first.record("R", &dir);
    reopened(&first, "1");
    reopened(&first, "2");
    let text = fs_err::read_to_string(dir.join(FILE)).unwrap();
    fs_err::write(dir.join(FILE), &text[..text.len() - 10]).unwrap();
    assert_eq!(stored(&dir), ["1 R \"1\"", "line 2 unreadable"]);

    let (second, _heard) = stream();
    reopened(&second, "3");
    second.record("R", &dir);
    reopened(&second, "4");
    assert_eq!(stored(&dir), ["1 R \"1\"", "line 2 unreadable", "2 R \"3\"", "3 R \"4\""]);
}

#[test]
fn numbers_go_on_after_events_of_a_newer_version() {
    let (_temp, dir) = dir();
    fs_err::write(dir.join(FILE), "{\"schema\": 2, \"seq\": 7, \"kind\": \"unheard-of\"}\n")
        .unwrap();
    let (stream, _heard) = stream();
    stream.record("R", &dir);
    reopened(&stream, "1");
    assert_eq!(stored(&dir), ["line 1 unreadable", "8 R \"1\""]);
}

#[test]
fn signs_of_life_are_heard_and_not_stored() {
    let (_temp, dir) = dir();
    let (stream, heard) = stream();
    stream.record("R", &dir);
    let alive = EventKind::Alive { what: "builder".into(), line: "thinking".into() };
    stream.emit(Scope::Workspace, None, alive);
    assert_eq!(stored(&dir), [""; 0]);
    assert!(matches!(heard.recv().unwrap().kind, EventKind::Alive { .. }));
}

#[test]
fn a_log_that_cannot_be_written_is_given_up_with_one_warning() {
    let (_temp, dir) = dir();
    let (stream, heard) = stream();
    stream.record("R", &dir.join("missing"));
    reopened(&stream, "1");
    drop(stream);
    let kinds: Vec<EventKind> = heard.iter().map(|event| event.kind).collect();
    assert!(matches!(&kinds[..], [EventKind::Warning { .. }, EventKind::Reopened]), "{kinds:?}");
}

#[test]
fn a_notice_says_when_it_was_said_before() {
    let (stream, heard) = stream();
    for _ in 0..2 {
        stream.emit(
            Scope::Workspace,
            None,
            EventKind::notice(WarningCode::NoGate, "no gate is configured"),
        );
    }
    drop(stream);
    let is_repeated = |event: Event| matches!(event.kind, EventKind::Notice { repeated: true, .. });
    assert_eq!(heard.iter().map(is_repeated).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_reader_follows_a_log_that_grows() {
    let (_temp, dir) = dir();
    let (stream, _heard) = stream();
    stream.record("R", &dir);
    let mut reader = LogReader::open(&dir).unwrap().expect("a log");
    assert_eq!(reader.read().unwrap(), []);
    reopened(&stream, "1");
    assert_eq!(reader.read().unwrap().len(), 1);
    assert_eq!(reader.read().unwrap(), []);
    reopened(&stream, "2");
    assert_eq!(reader.read().unwrap().len(), 1);
    assert_eq!(reader.torn(), None);
}
