//! Bare `pdca`: where everything stands, and the one next command.

use std::io::Write;

use camino::Utf8Path;
use pdca_state::{Artifact, Bundle, State};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::overview::{Entry, Overview};

use super::status;

/// What to type next, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Next {
    /// The command.
    pub(crate) command: String,
    /// Why this one.
    pub(crate) why: String,
}

pub(crate) fn run(cx: &Context<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
    let overview = Overview::load_at_work(cx)?;
    if cx.globals.json {
        status::emit_all(cx, &overview, out)?;
        return Ok(Exit::Done);
    }
    status::show_all(cx, &overview, out)?;
    let next = next(&overview, &cx.ambient.cwd);
    writeln!(out)?;
    writeln!(
        out,
        "next: {}   {}",
        cx.out.accent(&next.command),
        cx.out.faint(format!("# {}", next.why))
    )?;
    Ok(Exit::Done)
}

/// The one command that helps most: what runs by itself first, then what waits for a person.
pub(crate) fn next(overview: &Overview, cwd: &Utf8Path) -> Next {
    let with = |state: State| {
        overview
            .entries
            .iter()
            .filter(move |entry| entry.state() == Some(state))
            .collect::<Vec<_>>()
    };
    let tell = |command: String, why: String| Next { command, why };
    let going: Vec<&Entry> = overview.entries.iter().filter(|entry| entry.can_go_on()).collect();
    match going.as_slice() {
        [] => {}
        // Another one would be refused.
        [..] if overview.work.driver.is_some() => {}
        [one] => return tell(format!("pdca run {}", one.id), format!("{} can go on", one.id)),
        many => return tell("pdca batch".to_owned(), format!("{} bundles can go on", many.len())),
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
    if let Some(next) = land(overview).filter(|_| overview.work.driver.is_none()) {
        return next;
    }
    if let Some(driver) = &overview.work.driver {
        let why = format!("{} is at work", crate::style::one_line(driver, 40));
        return tell("pdca status --watch".to_owned(), why);
    }
    if let Some(entry) = with(State::Unplanned).first() {
        return plan(entry, cwd);
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

/// What is accepted and has not landed is put together, or waits in a branch.
fn land(overview: &Overview) -> Option<Next> {
    let marks = overview.entries.iter().filter_map(|entry| overview.meeting.mark(&entry.id));
    let with = |word: &str| marks.clone().filter(|mark| mark.word == word).collect::<Vec<_>>();
    if let count @ 1.. = with("sealed").len() {
        let why = format!("{count} accepted and not landed");
        return Some(Next { command: "pdca integrate".to_owned(), why });
    }
    let staged = with("staged");
    let branch = staged.first()?.text.as_deref()?;
    let why = format!("{} gated together and green", staged.len());
    Some(Next { command: format!("git merge --ff-only {branch}"), why })
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
                command: format!("$EDITOR {shown}"),
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
