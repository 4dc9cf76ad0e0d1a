//! The outcomes of conflicts as text, and their exit code.

use std::io::Write;

use pdca_driver::integrate::ConflictOutcome;
use pdca_workspace::integration::{ConflictKind, ResolveReport, ResolvedConflict};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::style::printable;

/// Makes the response of `resolve`.
pub(crate) fn resolved(
    report: ResolveReport,
    failure: Option<Failure>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if report.conflicts.is_empty() {
        cx.note(err, "nothing that is accepted conflicts with its branch")?;
    }
    let exit = exit(&report.conflicts);
    Ok(Response::new(report, exit).failed(failure))
}

impl Report for ResolveReport {
    const KIND: &'static str = "resolve";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        lines(cx, &self.conflicts, out)
    }
}

/// Writes one line per conflict.
pub(crate) fn lines(
    cx: &Context<'_>,
    items: &[ResolvedConflict],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    for item in items {
        let word = item.kind().as_str();
        let painted = match item.kind() {
            ConflictKind::Resolved | ConflictKind::Skipped | ConflictKind::Due => p.good(word),
            ConflictKind::Failed
            | ConflictKind::Later
            | ConflictKind::Waits
            | ConflictKind::Busy => p.warn(word),
            ConflictKind::Nothing => p.faint(word),
            ConflictKind::BlockedConflict => p.bad(word),
        };
        let id = p.strong(&item.report.id);
        writeln!(out, "{painted}  {id}  {}", printable(&item.sentence()))?;
        if let Some(log) = item.log() {
            writeln!(out, "  see {}", cx.show(log))?;
        }
        if let Some(next) = next(item) {
            writeln!(out, "  next: {}", p.accent(next))?;
        }
    }
    Ok(())
}

fn next(item: &ResolvedConflict) -> Option<String> {
    let id = &item.report.id;
    match &item.report.came {
        ConflictOutcome::Resolved { .. }
            if item.state == Some(pdca_state::State::AwaitingSignoff) =>
        {
            Some(format!("pdca signoff {id} show"))
        }
        ConflictOutcome::Resolved { .. } => Some(format!("pdca resolve {id}")),
        ConflictOutcome::Blocked { .. } => Some(format!("pdca unblock {id}")),
        ConflictOutcome::Due
        | ConflictOutcome::Skipped { .. }
        | ConflictOutcome::Failed { .. }
        | ConflictOutcome::Later { .. }
        | ConflictOutcome::Nothing { .. }
        | ConflictOutcome::Waits { .. }
        | ConflictOutcome::Busy { .. } => None,
    }
}

/// Returns the exit code: a remaining conflict is worse than one that waits for a sign-off.
fn exit(items: &[ResolvedConflict]) -> Exit {
    let code = |item: &ResolvedConflict| match item.report.came {
        ConflictOutcome::Due
        | ConflictOutcome::Failed { .. }
        | ConflictOutcome::Blocked { .. }
        | ConflictOutcome::Later { .. }
        | ConflictOutcome::Busy { .. } => Exit::MergeConflict,
        ConflictOutcome::Resolved { .. } | ConflictOutcome::Waits { .. } => Exit::Waiting,
        ConflictOutcome::Skipped { .. } => Exit::Done,
        ConflictOutcome::Nothing { .. } => Exit::NothingToDo,
    };
    let codes: Vec<Exit> = items.iter().map(code).collect();
    let grave = [Exit::MergeConflict, Exit::Waiting, Exit::Done];
    grave.into_iter().find(|exit| codes.contains(exit)).unwrap_or(Exit::NothingToDo)
}

#[cfg(test)]
mod tests {
    use pdca_driver::integrate::{ConflictReport, Due};

    use super::*;

    fn item(came: ConflictOutcome) -> ResolvedConflict {
        let id = "2".parse().unwrap();
        let said = Some("2 conflicts with 1 in f:1".to_owned());
        ResolvedConflict { report: ConflictReport { id, said, attempts: 2, came }, state: None }
    }

    fn failed(due: Due) -> ConflictOutcome {
        ConflictOutcome::Failed { what: "the resolver failed".into(), log: "/w/log".into(), due }
    }

    fn all_of_them() -> Vec<ResolvedConflict> {
        let at = "2026-01-02T03:04:05Z".to_owned();
        let resolved = item(ConflictOutcome::Resolved { by: "the resolver".into() });
        let checked = pdca_state::State::AwaitingSignoff;
        vec![
            item(ConflictOutcome::Due),
            ResolvedConflict {
                state: Some(checked),
                ..item(ConflictOutcome::Resolved { by: "the resolver".into() })
            },
            resolved,
            item(ConflictOutcome::Skipped { why: "main has its effect".into() }),
            item(failed(Due::At(at.clone()))),
            item(failed(Due::Now)),
            item(ConflictOutcome::Blocked { evidence: "attempts 5/5".into(), new: true }),
            item(ConflictOutcome::Blocked { evidence: "attempts 5/5".into(), new: false }),
            item(ConflictOutcome::Later { at }),
            item(ConflictOutcome::Waits { why: "it needs 1".into() }),
            item(ConflictOutcome::Nothing { why: "it has landed".into() }),
            item(ConflictOutcome::Busy { holder: "process 7".into() }),
        ]
    }

    #[test]
    fn each_outcome_has_its_word_its_exit_code_and_a_sentence() {
        let lines: Vec<String> = all_of_them()
            .iter()
            .map(|item| {
                let code = exit(std::slice::from_ref(item)).code();
                format!("{} {code} {}", item.kind().as_str(), item.sentence())
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        due 102 2 conflicts with 1 in f:1; attempt 3/5 is due
        resolved 3 2 conflicts with 1 in f:1: resolved by the resolver, and now AWAITING_SIGNOFF
        resolved 3 2 conflicts with 1 in f:1: resolved by the resolver, not checked yet
        skipped 0 main has its effect
        failed 102 2 conflicts with 1 in f:1; attempt 2/5: the resolver failed; the next is due at 2026-01-02T03:04:05Z
        failed 102 2 conflicts with 1 in f:1; attempt 2/5: the resolver failed
        blocked_conflict 102 attempts 5/5; it is not tried any more
        blocked_conflict 102 attempts 5/5
        later 102 2 conflicts with 1 in f:1; attempts 2/5; the next is due at 2026-01-02T03:04:05Z
        waits 3 it needs 1
        nothing 4 it has landed
        busy 102 process 7 is at it
        ");
    }

    #[test]
    fn a_conflict_that_stays_is_graver_than_one_that_waits_for_a_sign_off() {
        assert_eq!(exit(&all_of_them()), Exit::MergeConflict);
        let (resolved, skipped) = (
            item(ConflictOutcome::Resolved { by: "the resolver".into() }),
            item(ConflictOutcome::Skipped { why: "it is there".into() }),
        );
        assert_eq!(exit(&[skipped, resolved]), Exit::Waiting);
        assert_eq!(exit(&[]), Exit::NothingToDo);
    }
}
