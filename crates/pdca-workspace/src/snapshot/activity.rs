//! The current activity of bundles and integrations, from the events of the runs that have a live driver.

use std::collections::BTreeMap;
use std::io;

use camino::Utf8Path;
use jiff::Timestamp;
use pdca_driver::{WorkspaceConfig, run_statuses};
use pdca_journal::Liveness;
use pdca_journal::events::{
    ActivityChange, EventKind, IntegrationStep, LogLine, LogReader, Scope, Step,
};
use pdca_state::BundleId;

/// The current activity of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// The step, leaf or gate, in the words of the live line.
    pub what: String,
    /// The host that it is done on; `None` for this machine.
    pub host: Option<String>,
    /// The time it began.
    pub since: Timestamp,
}

impl Doing {
    /// Returns the activity, and the host that it is on.
    pub fn text(&self) -> String {
        match &self.host {
            // Nothing but its being there is known yet.
            Some(host) if self.what == format!("on {host}") => self.what.clone(),
            Some(host) => format!("{} on {host}", self.what),
            None => self.what.clone(),
        }
    }
}

/// Reads the current activity of each bundle. A log that cannot be read is left out: the locks say which bundles
/// are in work, and the log only adds to that.
pub(super) fn load(site: &WorkspaceConfig) -> BTreeMap<BundleId, Doing> {
    let runs = run_statuses(site).unwrap_or_default().into_iter();
    // The log of a driver that was killed ends in the middle of an activity.
    let driven = runs.filter(|run| run.driver == Liveness::Alive);
    let read = driven.filter_map(|run| read(&site.dirs.runs().dir(&run.id)).ok());
    read.flatten().collect()
}

/// Reads the current activity of the integration whose record is in `dir`: the combination that was asked about
/// last, of those without an answer. An integration that folds or lands has none; both take no time.
pub(super) fn of_integration(dir: &Utf8Path) -> Option<Doing> {
    let mut reader = LogReader::open(dir).ok()??;
    reader.skip_to_tail().ok()?;
    // Several checkouts may gate at once, so an answer ends only the question about its own changes.
    let mut open: Vec<(Vec<BundleId>, Doing)> = Vec::new();
    for line in reader.read().ok()? {
        let LogLine::Event(event, _) = line else { continue };
        let EventKind::Integration { text, step: Some(step) } = &event.kind else { continue };
        match step {
            IntegrationStep::Gating { bundles, .. } => {
                // The tree in brackets says nothing to a person who asks what is being done.
                let what = text.split(" (tree ").next().unwrap_or(text).to_owned();
                open.push((bundles.clone(), Doing { what, host: None, since: event.at }));
            }
            IntegrationStep::Green { bundles, .. }
            | IntegrationStep::Red { bundles, .. }
            | IntegrationStep::NoVerdict { bundles, .. } => {
                open.retain(|(asked, _)| asked != bundles);
            }
            IntegrationStep::BaseMoved { .. }
            | IntegrationStep::Flaky { .. }
            | IntegrationStep::Mended { .. }
            | IntegrationStep::Held { .. }
            | IntegrationStep::Landed { .. } => {}
        }
    }
    open.pop().map(|(_, doing)| doing)
}

fn read(dir: &Utf8Path) -> io::Result<BTreeMap<BundleId, Doing>> {
    let mut doing = BTreeMap::new();
    let mut hosts: BTreeMap<BundleId, String> = BTreeMap::new();
    let Some(mut reader) = LogReader::open(dir)? else { return Ok(doing) };
    reader.skip_to_tail()?;
    for line in reader.read()? {
        let LogLine::Event(event, _) = line else { continue };
        let Scope::Bundle(id) = &event.scope else { continue };
        if let EventKind::OnHost { host, .. } = &event.kind {
            hosts.insert(id.clone(), host.clone());
        } else if is_here(&event.kind) {
            hosts.remove(id);
        }
        match ActivityChange::of(&event.kind) {
            ActivityChange::Begins(what) => {
                let host = hosts.get(id).cloned();
                doing.insert(id.clone(), Doing { what, host, since: event.at });
            }
            ActivityChange::Ends => {
                doing.remove(id);
            }
            ActivityChange::Shows(_) | ActivityChange::GoesOn => {}
        }
    }
    Ok(doing)
}

/// Returns whether what follows is done on this machine until a host is named again: a bundle that is dispatched anew,
/// and the steps that no host carries out.
fn is_here(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Dispatched { .. })
        || matches!(kind, EventKind::Began { step, .. }
            if !matches!(step, Step::Build | Step::Gate | Step::Review))
}

#[cfg(test)]
mod tests {
    use pdca_journal::events::{EventKind, EventStream, Halt};
    use pdca_testkit::TestWorkspace;

    use super::*;

    #[test]
    fn the_last_beginning_says_what_is_done_and_an_end_ends_it() {
        let workspace = TestWorkspace::new();
        let dir = workspace.path();
        let stream = EventStream::new(|| Timestamp::UNIX_EPOCH, drop);
        stream.record("run", dir);
        let emit = |id: &str, kind: EventKind| {
            stream.emit(Scope::Bundle(id.parse().unwrap()), Some(1), kind);
        };
        emit("1", EventKind::Dispatched { chain: 1, resumed: false });
        emit("2", EventKind::Dispatched { chain: 1, resumed: false });
        emit("1", EventKind::LeafBegan { role: "builder".into(), attempt: 2 });
        emit("1", EventKind::integration("only said"));
        emit("2", EventKind::GateBegan { rule_id: "T3".into(), k: 1, n: 3 });
        let on_host = |id: &str| {
            let (host, job) = ("far".to_owned(), format!("pdca-r-{id}-g1"));
            emit(id, EventKind::OnHost { host, job, resumed: false });
        };
        emit("4", EventKind::Dispatched { chain: 1, resumed: false });
        on_host("4");
        emit("5", EventKind::Dispatched { chain: 1, resumed: false });
        on_host("5");
        emit("5", EventKind::GateBegan { rule_id: "T3".into(), k: 1, n: 3 });
        emit("3", EventKind::Dispatched { chain: 1, resumed: false });
        emit("3", EventKind::Halted { halt: Halt::AwaitingSignoff });
        let found = read(dir).unwrap();
        let shown: Vec<String> =
            found.iter().map(|(id, doing)| format!("{id}: {}", doing.text())).collect();
        assert_eq!(
            shown,
            ["1: builder, attempt 2", "2: gate 1/3 T3", "4: on far", "5: gate 1/3 T3 on far"]
        );
        assert_eq!(found[&"1".parse().unwrap()].since, Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn an_integration_does_what_it_asked_last_and_has_no_answer_to() {
        let workspace = TestWorkspace::new();
        let dir = workspace.path();
        let stream = EventStream::new(|| Timestamp::UNIX_EPOCH, drop);
        stream.record("run", dir);
        let bundles = |ids: &[&str]| ids.iter().map(|id| id.parse().unwrap()).collect();
        let emit = |text: &str, step: IntegrationStep| {
            let scope = Scope::Integration { target: "app".into(), branch: "main".into() };
            stream.emit(
                scope,
                None,
                EventKind::Integration { text: text.into(), step: Some(step) },
            );
        };
        let gating = |ids: &[&str]| IntegrationStep::Gating {
            bundles: bundles(ids),
            tree: "t".into(),
            purpose: pdca_journal::events::GatePurpose::Decide,
        };
        let doing = || of_integration(dir).map(|doing| doing.what);
        emit("gating 1 + 2 (tree abc)", gating(&["1", "2"]));
        emit("gating 1 (tree def)", gating(&["1"]));
        assert_eq!(doing().as_deref(), Some("gating 1"));
        emit("1 is green", IntegrationStep::Green { bundles: bundles(&["1"]), tree: "t".into() });
        assert_eq!(doing().as_deref(), Some("gating 1 + 2"));
        let (tree, rows, failing) = ("t".into(), Vec::new(), Vec::new());
        let red = IntegrationStep::Red { bundles: bundles(&["1", "2"]), tree, rows, failing };
        emit("1 + 2 is red", red);
        assert_eq!(doing(), None);
    }

    #[test]
    fn a_run_without_events_is_doing_nothing() {
        assert_eq!(read(TestWorkspace::new().path()).unwrap(), BTreeMap::new());
        assert_eq!(of_integration(TestWorkspace::new().path()), None);
    }
}
