//! The current activity of bundles, from the events of the runs that have a live driver.

use std::collections::BTreeMap;
use std::io;

use camino::Utf8Path;
use jiff::Timestamp;
use pdca_driver::{WorkspaceConfig, run_statuses};
use pdca_events::{Activity, Line, Reader, Scope};
use pdca_journal::Liveness;
use pdca_state::BundleId;

/// The current activity of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// The step, leaf or gate, in the words of the live line.
    pub what: String,
    /// The time it began.
    pub since: Timestamp,
}

/// Reads the current activity of each bundle. A log that cannot be read is left out: the locks say which bundles
/// are in work, and the log only adds to that.
pub(super) fn load(site: &WorkspaceConfig) -> BTreeMap<BundleId, Doing> {
    let runs = run_statuses(site).unwrap_or_default().into_iter();
    let driven = runs.filter(|run| run.driver == Liveness::Alive);
    let read = driven.filter_map(|run| read(&site.dirs.runs().dir(&run.id)).ok());
    read.flatten().collect()
}

fn read(dir: &Utf8Path) -> io::Result<BTreeMap<BundleId, Doing>> {
    let mut doing = BTreeMap::new();
    let Some(mut reader) = Reader::open(dir)? else { return Ok(doing) };
    reader.skip_to_tail()?;
    for line in reader.read()? {
        let Line::Event(event, _) = line else { continue };
        let Scope::Bundle(id) = &event.scope else { continue };
        match Activity::of(&event.kind) {
            Activity::Begins(what) => {
                doing.insert(id.clone(), Doing { what, since: event.at });
            }
            Activity::Ends => {
                doing.remove(id);
            }
            Activity::Shows(_) | Activity::GoesOn => {}
        }
    }
    Ok(doing)
}

#[cfg(test)]
mod tests {
    use pdca_events::{EventKind, Halt, Stream};
    use pdca_testkit::Workspace;

    use super::*;

    #[test]
    fn the_last_beginning_says_what_is_done_and_an_end_ends_it() {
        let workspace = Workspace::new();
        let dir = workspace.path();
        let stream = Stream::new(|| Timestamp::UNIX_EPOCH, drop);
        stream.record("run", dir);
        let emit = |id: &str, kind: EventKind| {
            stream.emit(Scope::Bundle(id.parse().unwrap()), Some(1), kind);
        };
        emit("1", EventKind::Dispatched { chain: 1, resumed: false });
        emit("2", EventKind::Dispatched { chain: 1, resumed: false });
        emit("1", EventKind::LeafBegan { role: "builder".into(), attempt: 2 });
        emit("1", EventKind::integration("only said"));
        emit("2", EventKind::GateBegan { rule_id: "T3".into(), k: 1, n: 3 });
        emit("3", EventKind::Dispatched { chain: 1, resumed: false });
        emit("3", EventKind::Halted { halt: Halt::AwaitingSignoff });
        let found = read(dir).unwrap();
        let shown: Vec<String> =
            found.iter().map(|(id, doing)| format!("{id}: {}", doing.what)).collect();
        assert_eq!(shown, ["1: builder, attempt 2", "2: gate 1/3 T3"]);
        assert_eq!(found[&"1".parse().unwrap()].since, Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn a_run_without_events_is_doing_nothing() {
        assert_eq!(read(Workspace::new().path()).unwrap(), BTreeMap::new());
    }
}
