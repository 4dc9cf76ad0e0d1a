//! The next command: of the workspace, of a bundle, of a blocked one.

use camino::Utf8Path;
use pdca_driver::Staleness;
use pdca_state::{Artifact, Bundle, BundleId, State};

use pdca_state::text::{one_line, shell};

use crate::snapshot::{BranchSummary, DependencyStatus, SnapshotEntry, WorkspaceSnapshot};

/// The next command, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Next {
    pub command: String,
    pub why: String,
}

impl Next {
    /// Returns whether nothing is left to do: the command begins something new.
    pub fn is_idle(&self) -> bool {
        self.why == IDLE
    }
}

const IDLE: &str = "everything is done";

/// Chooses the most useful command: work that runs by itself first, then decisions.
///
/// Paths in it are relative to `cwd`.
pub fn next_of_workspace(overview: &WorkspaceSnapshot, cwd: &Utf8Path) -> Next {
    let with = |state: State| {
        overview
            .entries
            .iter()
            .filter(move |entry| entry.state() == Some(state))
            .collect::<Vec<_>>()
    };
    let tell = |command: String, why: String| Next { command, why };
    let going: Vec<&SnapshotEntry> = overview
        .entries
        .iter()
        .filter(|entry| {
            let is_charged = |failure: &pdca_driver::BeatFailure| failure.times > 0;
            entry.can_go_on() && !entry.failed.as_ref().is_some_and(is_charged)
        })
        // A run leaves it alone until a person lifts the block (decision 054).
        .filter(|entry| !overview.blocked.contains_key(&entry.id))
        .filter(|entry| overview.work.holding(&entry.id).is_empty())
        .collect();
    match going.as_slice() {
        [] => {}
        // A second driver would be refused.
        [..] if overview.work.driver.is_some() => {}
        [one] => return tell(format!("pdca run {}", one.id), format!("{} can go on", one.id)),
        many => return tell("pdca batch".to_owned(), format!("{} bundles can go on", many.len())),
    }
    let stale: Vec<&SnapshotEntry> = overview
        .entries
        .iter()
        .filter(|entry| {
            overview.landing.stale(&entry.id).is_some_and(|stale| stale.waits_for.is_none())
        })
        .collect();
    match stale.as_slice() {
        [] => {}
        [..] if overview.work.driver.is_some() => {}
        [one] => return tell(format!("pdca run {}", one.id), format!("{} is stale", one.id)),
        many => return tell("pdca batch".to_owned(), format!("{} are stale", many.len())),
    }
    match with(State::AwaitingSignoff).as_slice() {
        [] => {}
        [one] => {
            return tell(
                format!("pdca show {}", one.id),
                format!("{} waits for your sign-off", one.id),
            );
        }
        many => {
            return tell(
                "pdca queue".to_owned(),
                format!("{} bundles wait for your sign-off", many.len()),
            );
        }
    }
    // Accepted changes may land while a batch runs.
    if let Some(next) = land(overview).filter(|_| overview.work.integration.is_none()) {
        return next;
    }
    if let Some(driver) = overview.work.driver.as_ref().or(overview.work.integration.as_ref()) {
        let why = format!("{} is at work", one_line(driver, 40));
        return tell("pdca status --watch".to_owned(), why);
    }
    if let Some(entry) = with(State::Unplanned).first() {
        return plan(entry, cwd);
    }
    if let Some((entry, failure)) =
        overview.entries.iter().find_map(|entry| Some((entry, entry.failed.as_ref()?)))
    {
        let times = if failure.times == 1 { "once" } else { &format!("{} times", failure.times) };
        let why = format!("the {} of {} failed {times}", failure.beat, entry.id);
        return tell(format!("pdca why {}", entry.id), why);
    }
    let mut with_work = overview.entries.iter().filter(|entry| entry.has_work());
    if let Some((id, (_, evidence))) =
        with_work.find_map(|entry| overview.blocked.get_key_value(&entry.id))
    {
        let why = format!("{id} is blocked: {}", one_line(evidence, 80));
        return tell(format!("pdca unblock {id}"), why);
    }
    if let Some(entry) = overview.entries.iter().find(|entry| !entry.blocked_by.is_empty()) {
        return tell(format!("pdca why {}", entry.id), "everything left is blocked".to_owned());
    }
    if let Some(entry) = overview.entries.iter().find(|entry| entry.glance.is_err()) {
        return tell(format!("pdca status {}", entry.id), "it cannot be read".to_owned());
    }
    let why = if overview.entries.is_empty() { "there is no bundle yet" } else { IDLE };
    tell("pdca new <id> --title \"…\"".to_owned(), why.to_owned())
}

/// Chooses the next command for accepted changes that have not landed: those that need no person
/// first.
fn land(overview: &WorkspaceSnapshot) -> Option<Next> {
    let branches = &overview.landing.branches;
    let has = |word: &'static str| {
        let has =
            move |branch: &&BranchSummary| branch.counts.iter().any(|(name, _)| *name == word);
        branches.iter().find(has)
    };
    let branch = has("sealed")
        .or_else(|| has("staged"))
        .or_else(|| branches.iter().find(|branch| branch.next.is_some()))?;
    let (command, why) = branch.next.clone()?;
    Some(Next { command, why: one_line(&why, 80) })
}

/// Returns the next command for one bundle; `None` if there is none, or a process works on it.
pub fn next_of_bundle(
    overview: &WorkspaceSnapshot,
    entry: &SnapshotEntry,
    cwd: &Utf8Path,
) -> Option<String> {
    let id = &entry.id;
    if let Some(stale) = overview.landing.stale(id)
        && overview.work.driver.is_none()
    {
        return Some(after_stale(id, stale));
    }
    let command = match entry.state() {
        None => format!("pdca status {id}"),
        // What was checked is not what it asks for now.
        Some(State::AwaitingSignoff)
            if entry.glance.as_ref().is_ok_and(|glance| glance.is_brief_edited) =>
        {
            format!("pdca run {id}")
        }
        Some(State::AwaitingSignoff)
            if entry.glance.as_ref().is_ok_and(|glance| glance.proposed.is_some()) =>
        {
            format!("pdca signoff {id} ask")
        }
        Some(State::AwaitingSignoff) => format!("pdca show {id}"),
        Some(State::Unplanned) => plan(entry, cwd).command,
        Some(State::Resolved | State::Discontinued) => return None,
        Some(State::Complete) => overview.landing.mark(id)?.next.clone()?,
        Some(State::Planned | State::Built | State::Checked | State::Iterate(_)) => {
            if overview.blocked.contains_key(id) {
                format!("pdca unblock {id}")
            } else if overview.work.driver.is_some() {
                return None;
            } else if entry.blocked_by.is_empty() {
                format!("pdca run {id}")
            } else {
                unblocking(overview, entry, cwd)
            }
        }
    };
    Some(command)
}

/// Returns the next command for a stale result: refold it, or continue its prerequisite first.
pub fn after_stale(id: &BundleId, stale: &Staleness) -> String {
    match &stale.waits_for {
        Some(on) => format!("pdca why {on}"),
        None => format!("pdca run {id}"),
    }
}

/// Returns the next command for the first unmet dependency of a bundle, followed transitively.
pub fn unblocking(overview: &WorkspaceSnapshot, entry: &SnapshotEntry, cwd: &Utf8Path) -> String {
    let mut seen = vec![&entry.id];
    let mut at = entry;
    loop {
        let Some(blocker) = at.blocked_by.first() else { return format!("pdca run {}", at.id) };
        let id = &blocker.id;
        let other = overview.get(id);
        match (blocker.standing, other) {
            (DependencyStatus::Missing, _) => return format!("pdca new {id}"),
            (DependencyStatus::Unreadable, _) => return format!("pdca status {id}"),
            (DependencyStatus::In(State::AwaitingSignoff), _) => return format!("pdca show {id}"),
            (DependencyStatus::In(State::Unplanned), Some(other)) => {
                return plan(other, cwd).command;
            }
            (
                DependencyStatus::In(
                    State::Planned | State::Built | State::Checked | State::Iterate(_),
                ),
                Some(other),
            ) if !seen.contains(&id) => {
                seen.push(&other.id);
                at = other;
            }
            // Accepted, but it has to land first.
            (DependencyStatus::In(State::Complete), _) => return "pdca integrate".to_owned(),
            // Discontinued, or a dependency cycle: only an edit of the brief helps.
            (DependencyStatus::In(_), _) => return edit_brief(at, cwd),
        }
    }
}

/// Returns the command that edits the brief of a bundle.
pub fn edit_brief(entry: &SnapshotEntry, cwd: &Utf8Path) -> String {
    let path = entry.dir.join(Artifact::Brief.file_name());
    let shown = path.strip_prefix(cwd).unwrap_or(&path);
    format!("$EDITOR {}", shell(shown.as_str()))
}

fn plan(entry: &SnapshotEntry, cwd: &Utf8Path) -> Next {
    let brief = Bundle::at(&*entry.dir)
        .ok()
        .map(|bundle| bundle.path(Artifact::Brief))
        .filter(|path| path.exists());
    match brief {
        Some(path) => {
            let shown = path.strip_prefix(cwd).unwrap_or(&path);
            Next {
                command: format!("$EDITOR {}", shell(shown.as_str())),
                why: format!("the brief of {} is a template still", entry.id),
            }
        }
        None => Next {
            command: format!("pdca new {}", entry.id),
            why: format!("{} has no brief", entry.id),
        },
    }
}

#[cfg(test)]
mod tests {
    use pdca_state::{Awaits, BundleRoot};
    use pdca_testkit::TestWorkspace;

    use super::*;
    use crate::snapshot::SnapshotSource;

    #[test]
    fn a_blocked_bundle_is_to_be_unblocked_and_not_run() {
        let workspace = TestWorkspace::new();
        workspace.brief("7", &[]);
        let bundles = BundleRoot::new(workspace.path().join("results"));
        let source = SnapshotSource { bundles: &bundles, awaits: Awaits::Accepted, config: None };
        let mut snapshot = WorkspaceSnapshot::load(source).unwrap();
        let next = |snapshot: &WorkspaceSnapshot| next_of_workspace(snapshot, workspace.path());
        assert_eq!(next(&snapshot).command, "pdca run 7");
        let block = ("blocked_recovery".to_owned(), "lane 0 is damaged".to_owned());
        snapshot.blocked.insert("7".parse().unwrap(), block);
        let next = next(&snapshot);
        assert_eq!(next.command, "pdca unblock 7");
        assert_eq!(next.why, "7 is blocked: lane 0 is damaged");
        let of_bundle = next_of_bundle(&snapshot, &snapshot.entries[0], workspace.path());
        assert_eq!(of_bundle, Some(next.command));
    }
}
