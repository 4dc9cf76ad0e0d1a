//! Notifications about the end of unattended work: one home for every command that does some.

use std::io::Write;

use pdca_journal::events::WarningCode;
use pdca_state::BundleId;
use pdca_workspace::flow::{NoticeKind, Notification, Notifier};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::Response;
use crate::session;
use crate::style::printable;

/// Makes a notification about this workspace.
pub(crate) fn notice(
    cx: &Context<'_>,
    kind: NoticeKind,
    text: String,
    ids: &[BundleId],
    next: Option<String>,
) -> Notification {
    let root = cx.workspace().map(|workspace| workspace.root.to_string()).unwrap_or_default();
    let ids = ids.iter().map(ToString::to_string).collect();
    Notification { schema: 1, kind, text, workspace: root, ids, next }
}

/// Returns what an exit is worth telling beyond that the work ended; what waits for a decision is told with its bundles.
pub(crate) fn of_exit(exit: Exit, failure: Option<&Failure>) -> Option<(NoticeKind, String)> {
    let said = |usual: &str| failure.map_or_else(|| usual.to_owned(), Failure::sentence);
    match exit {
        Exit::CombinationRed => {
            let text = "a change is red together with others and is held".to_owned();
            Some((NoticeKind::Culprit, text))
        }
        Exit::MergeConflict | Exit::RecoveryBlocked => {
            let text = "accepted changes cannot be delivered by themselves";
            Some((NoticeKind::Blocked, said(text)))
        }
        Exit::Capped | Exit::Unexpected => Some((NoticeKind::Blocked, said(exit.meaning()))),
        Exit::Done
        | Exit::Usage
        | Exit::Waiting
        | Exit::NothingToDo
        | Exit::GateRed
        | Exit::Interrupted => None,
    }
}

/// Returns the sequence that has the terminal show a notification, if it is wanted and understood.
pub(crate) fn on_terminal(cx: &Context<'_>, notice: &Notification) -> Option<String> {
    let is_wanted = cx.workspace().is_ok_and(|workspace| workspace.config.notify.terminal);
    let (program, term) = (cx.env.var_text("TERM_PROGRAM"), cx.env.var_text("TERM"));
    let shown = pdca_workspace::flow::osc9(program, term, &notice.text);
    shown.filter(|_| is_wanted && cx.env.terminal.stderr)
}

/// Tells how a command ended that worked without a person: what needs one, and that it ended. A command that had nothing to
/// do, or was refused, is no news.
pub(crate) fn tell_end(
    cx: &Context<'_>,
    what: &str,
    ended: &Result<Response, Failure>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let (exit, failure) = match ended {
        Ok(response) => {
            let failure = response.failure.as_ref();
            (failure.map_or(response.exit, |failure| failure.exit), failure)
        }
        Err(failure) => (failure.exit, Some(failure)),
    };
    if cx.globals.dry_run || matches!(exit, Exit::Usage | Exit::NothingToDo) {
        return Ok(());
    }
    let notifier = Notifier::new(cx.workspace()?.config.notify.clone());
    let mut notices = Vec::new();
    if let Some((kind, text)) = of_exit(exit, failure) {
        notices.push(notice(cx, kind, text, &[], Some(cx.typed("pdca status"))));
    }
    let config = &cx.workspace()?.config;
    let waiting = session::snapshot(cx)?.flow_facts(None, &config.flow, &config.publish).unsigned;
    if !waiting.is_empty() {
        let text = format!("{} wait for your sign-off", waiting.len());
        let next = Some(cx.typed("pdca queue"));
        notices.push(notice(cx, NoticeKind::NeedsYou, text, &waiting, next));
    }
    let text = format!("{what} ended: {}", exit.meaning());
    notices.push(notice(cx, NoticeKind::RunEnded, text, &[], None));
    for notice in &notices {
        notifier.tell(notice);
        if let Some(shown) = on_terminal(cx, notice) {
            err.write_all(shown.as_bytes())?;
        }
    }
    notifier.finish();
    tell_failures(cx, &notifier, err).map(drop)
}

/// Warns if a notification failed, and returns whether one did.
pub(crate) fn tell_failures(
    cx: &Context<'_>,
    notifier: &Notifier,
    err: &mut dyn Write,
) -> Result<bool, Failure> {
    let failures = notifier.failures();
    let Some(why) = failures.first() else { return Ok(false) };
    let text = format!("`cmd` of [notify] failed, and nobody was told: {}", printable(why));
    cx.warn(err, WarningCode::NotNotified, text)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_person_is_told_and_what_is_done_is_not() {
        for (exit, kind) in [
            (Exit::Done, None),
            (Exit::NothingToDo, None),
            (Exit::Interrupted, None),
            (Exit::CombinationRed, Some(NoticeKind::Culprit)),
            (Exit::MergeConflict, Some(NoticeKind::Blocked)),
            (Exit::RecoveryBlocked, Some(NoticeKind::Blocked)),
            (Exit::Capped, Some(NoticeKind::Blocked)),
            (Exit::Unexpected, Some(NoticeKind::Blocked)),
        ] {
            assert_eq!(of_exit(exit, None).map(|(kind, _)| kind), kind, "{exit:?}");
        }
        let failure = Failure::new(Exit::Capped, "the budget of 5 calls is spent");
        let (_, text) = of_exit(Exit::Capped, Some(&failure)).unwrap();
        assert_eq!(text, "the budget of 5 calls is spent");
    }
}
