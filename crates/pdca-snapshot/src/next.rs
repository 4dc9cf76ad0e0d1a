//! Bare `pdca`: the status, and the next command.

use camino::Utf8Path;
use pdca_driver::Staleness;
use pdca_state::{Artifact, Bundle, BundleId, State};

use crate::context::Context;
use crate::failure::Failure;
use crate::meeting::Branch;
use crate::overview::{Entry, Overview, Standing};
use crate::report::Response;
use crate::style::shell;

use super::status::StatusReport;

/// The next command, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Next {
    pub(crate) command: String,
    pub(crate) why: String,
}

pub(crate) fn run(cx: &Context<'_>) -> Result<Response, Failure> {
    Ok(Response::done(StatusReport::load(cx, true)?))
}

/// Chooses the most useful command: work that runs by itself first, then decisions.
pub(crate) fn next(cx: &Context<'_>, overview: &Overview) -> Next {
    let next = choose(overview, &cx.ambient.cwd);
    Next { command: cx.typed(&next.command), ..next }
}

fn choose(overview: &Overview, cwd: &Utf8Path) -> Next {
    let with = |state: State| {
        overview
            .entries
            .iter()
            .filter(move |entry| entry.state() == Some(state))
            .collect::<Vec<_>>()
    };
    let tell = |command: String, why: String| Next { command, why };
    let going: Vec<&Entry> = overview
        .entries
        .iter()
        .filter(|entry| entry.can_go_on() && entry.failed.is_none())
        .filter(|entry| overview.work.holding(&entry.id).is_empty())
        .collect();
    match going.as_slice() {
        [] => {}
        // A second driver would be refused.
        [..] if overview.work.driver.is_some() => {}
        [one] => return tell(format!("pdca run {}", one.id), format!("{} can go on", one.id)),
        many => return tell("pdca batch".to_owned(), format!("{} bundles can go on", many.len())),
    }
    let stale: Vec<&Entry> = overview
        .entries
        .iter()
        .filter(|entry| {
            overview.meeting.stale(&entry.id).is_some_and(|stale| stale.waits_for.is_none())
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
                format!("pdca status {}", one.id),
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
        let why = format!("{} is at work", crate::style::one_line(driver, 40));
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
    if let Some(entry) = overview.entries.iter().find(|entry| !entry.blocked_by.is_empty()) {
        return tell(format!("pdca why {}", entry.id), "everything left is blocked".to_owned());
    }
    if let Some(entry) = overview.entries.iter().find(|entry| entry.glance.is_err()) {
        return tell(format!("pdca status {}", entry.id), "it cannot be read".to_owned());
    }
    let why =
        if overview.entries.is_empty() { "there is no bundle yet" } else { "everything is done" };
    tell("pdca new <id> --title \"…\"".to_owned(), why.to_owned())
}

/// Chooses the next command for accepted changes that have not landed: those that need no person
/// first.
fn land(overview: &Overview) -> Option<Next> {
    let branches = &overview.meeting.branches;
    let has = |word: &'static str| {
        let has = move |branch: &&Branch| branch.counts.iter().any(|(name, _)| *name == word);
        branches.iter().find(has)
    };
    let branch = has("sealed")
        .or_else(|| has("staged"))
        .or_else(|| branches.iter().find(|branch| branch.next.is_some()))?;
    let (command, why) = branch.next.clone()?;
    Some(Next { command, why: crate::style::one_line(&why, 80) })
}

/// Returns the next command for one bundle; `None` if there is none, or a process works on it.
pub(crate) fn of_bundle(cx: &Context<'_>, overview: &Overview, entry: &Entry) -> Option<String> {
    let id = &entry.id;
    if let Some(stale) = overview.meeting.stale(id)
        && overview.work.driver.is_none()
    {
        return Some(cx.typed(&after_stale(id, stale)));
    }
    let command = match entry.state() {
        None | Some(State::AwaitingSignoff) => format!("pdca status {id}"),
        Some(State::Unplanned) => plan(entry, &cx.ambient.cwd).command,
        Some(State::Resolved | State::Discontinued) => return None,
        Some(State::Complete) => overview.meeting.mark(id)?.next.clone()?,
        Some(State::Planned | State::Built | State::Checked | State::Iterate(_)) => {
            if overview.blocked.contains_key(id) {
                format!("pdca unblock {id}")
            } else if overview.work.driver.is_some() {
                return None;
            } else if entry.blocked_by.is_empty() {
                format!("pdca run {id}")
            } else {
                unblocking(overview, entry, &cx.ambient.cwd)
            }
        }
    };
    Some(cx.typed(&command))
}

/// Returns the next command for a stale result: refold it, or continue its prerequisite first.
pub(crate) fn after_stale(id: &BundleId, stale: &Staleness) -> String {
    match &stale.waits_for {
        Some(on) => format!("pdca why {on}"),
        None => format!("pdca run {id}"),
    }
}

/// Returns the next command for the first unmet dependency of a bundle, followed transitively.
pub(crate) fn unblocking(overview: &Overview, entry: &Entry, cwd: &Utf8Path) -> String {
    let mut seen = vec![&entry.id];
    let mut at = entry;
    loop {
        let Some(blocker) = at.blocked_by.first() else { return format!("pdca run {}", at.id) };
        let id = &blocker.id;
        let other = overview.get(id);
        match (blocker.standing, other) {
            (Standing::Missing, _) => return format!("pdca new {id}"),
            (Standing::Unreadable | Standing::In(State::AwaitingSignoff), _) => {
                return format!("pdca status {id}");
            }
            (Standing::In(State::Unplanned), Some(other)) => return plan(other, cwd).command,
            (
                Standing::In(State::Planned | State::Built | State::Checked | State::Iterate(_)),
                Some(other),
            ) if !seen.contains(&id) => {
                seen.push(&other.id);
                at = other;
            }
            // Accepted, but it has to land first.
            (Standing::In(State::Complete), _) => return "pdca integrate".to_owned(),
            // Discontinued, or a dependency cycle: only an edit of the brief helps.
            (Standing::In(_), _) => return edit(at, cwd),
        }
    }
}

pub(crate) fn edit(entry: &Entry, cwd: &Utf8Path) -> String {
    let path = entry.dir.join(Artifact::Brief.file_name());
    let shown = path.strip_prefix(cwd).unwrap_or(&path);
    format!("$EDITOR {}", shell(shown.as_str()))
}

fn plan(entry: &Entry, cwd: &Utf8Path) -> Next {
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
    use crate::testing::Desk;

    fn next(desk: &Desk) -> String {
        desk.run(&[]).out.lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn bare_pdca_shows_the_status_and_one_command() {
        let desk = Desk::new();
        desk.workspace.brief("36", &[]);
        insta::assert_snapshot!(desk.run(&[]), @"
        PLANNED           36  a-small-thing

        next: pdca run 36   # 36 can go on
        ");
    }

    #[test]
    fn what_runs_by_itself_comes_before_what_waits_for_a_person() {
        let desk = Desk::new();
        insta::assert_snapshot!(next(&desk), @r#"next: pdca new <id> --title "…"   # there is no bundle yet"#);
        desk.complete("1");
        insta::assert_snapshot!(next(&desk), @r#"next: pdca new <id> --title "…"   # everything is done"#);
        desk.workspace.brief("2", &[("Depends on", "99")]);
        insta::assert_snapshot!(next(&desk), @"next: pdca why 2   # everything left is blocked");
        desk.workspace.write("results/issue_3/notes.json", "{}");
        insta::assert_snapshot!(next(&desk), @"next: pdca new 3   # 3 has no brief");
        desk.workspace.write("results/issue_3/brief.md", "- **Slug:** <x>\n");
        insta::assert_snapshot!(next(&desk), @"next: $EDITOR results/issue_3/brief.md   # the brief of 3 is a template still");
        desk.awaiting("4", &[], "pass");
        insta::assert_snapshot!(next(&desk), @"next: pdca status 4   # 4 waits for your sign-off");
        desk.awaiting("5", &[], "pass");
        insta::assert_snapshot!(next(&desk), @"next: pdca queue   # 2 bundles wait for your sign-off");
        desk.workspace.brief("6", &[]);
        insta::assert_snapshot!(next(&desk), @"next: pdca run 6   # 6 can go on");
        desk.workspace.brief("7", &[]);
        insta::assert_snapshot!(next(&desk), @"next: pdca batch   # 2 bundles can go on");
    }

    #[test]
    fn outside_of_a_workspace_it_says_how_to_make_one() {
        let mut desk = Desk::new();
        desk.ambient.cwd = desk.workspace.around();
        insta::assert_snapshot!(desk.run(&[]), @"
        --- stderr
        error: no pdca.toml in [TMP] or in a directory above it
        hint: `pdca init` makes a workspace here, `-C DIR` names another, `pdca demo` shows one at work
        --- exit 2
        ");
    }
}
