//! The report about conflicts, as text and JSON.

use std::io::Write;

use pdca_driver::integrate::{ConflictOutcome, ConflictReport, Due, MOST_ATTEMPTS};
use serde::Serialize;

use super::ResolvedItem;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::printable;

/// The JSON of one conflict.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ConflictRow {
    id: String,
    /// `resolved`, `skipped`, `failed`, `blocked_conflict`, `later`, `waits`, `nothing`, `busy` or `due`.
    outcome: &'static str,
    /// The number of attempts so far.
    attempts: u32,
    /// The most attempts.
    of: u32,
    /// The conflicting paths and bundles.
    conflict: Option<String>,
    /// One sentence.
    text: String,
    /// The time of the next attempt.
    due: Option<String>,
    /// The log of the last attempt.
    log: Option<String>,
    /// The state of the bundle after Check.
    state: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ResolveReport {
    pub(super) dry_run: bool,
    #[serde(rename = "conflicts", serialize_with = "as_rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ConflictRow>"))]
    pub(super) items: Vec<ResolvedItem>,
}

fn as_rows<S: serde::Serializer>(items: &[ResolvedItem], serializer: S) -> Result<S::Ok, S::Error> {
    rows(items).serialize(serializer)
}

impl Report for ResolveReport {
    const KIND: &'static str = "resolve";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        lines(cx, &self.items, out)
    }
}

/// Returns the rows for the report of an integration.
pub(crate) fn rows<'i>(items: impl IntoIterator<Item = &'i ResolvedItem>) -> Vec<ConflictRow> {
    items.into_iter().map(row).collect()
}

/// Writes one line per conflict.
pub(crate) fn lines(
    cx: &Context<'_>,
    items: &[ResolvedItem],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    for item in items {
        let word = word(&item.told.came);
        let painted = match item.told.came {
            ConflictOutcome::Resolved { .. }
            | ConflictOutcome::Skipped { .. }
            | ConflictOutcome::Due => p.good(word),
            ConflictOutcome::Failed { .. }
            | ConflictOutcome::Later { .. }
            | ConflictOutcome::Waits { .. }
            | ConflictOutcome::Busy { .. } => p.warn(word),
            ConflictOutcome::Nothing { .. } => p.faint(word),
            ConflictOutcome::Blocked { .. } => p.bad(word),
        };
        let id = p.strong(&item.told.id);
        writeln!(out, "{painted}  {id}  {}", printable(&text(item)))?;
        if let ConflictOutcome::Failed { log, .. } = &item.told.came {
            writeln!(out, "  see {}", cx.show(log))?;
        }
        if let Some(next) = next(item) {
            writeln!(out, "  next: {}", p.accent(next))?;
        }
    }
    Ok(())
}

fn row(item: &ResolvedItem) -> ConflictRow {
    let ConflictReport { id, said, attempts, came } = &item.told;
    let log = match came {
        ConflictOutcome::Failed { log, .. } => Some(log.to_string()),
        ConflictOutcome::Due
        | ConflictOutcome::Resolved { .. }
        | ConflictOutcome::Skipped { .. }
        | ConflictOutcome::Blocked { .. }
        | ConflictOutcome::Later { .. }
        | ConflictOutcome::Nothing { .. }
        | ConflictOutcome::Waits { .. }
        | ConflictOutcome::Busy { .. } => None,
    };
    ConflictRow {
        id: id.to_string(),
        outcome: word(came),
        attempts: *attempts,
        of: MOST_ATTEMPTS,
        conflict: said.clone(),
        text: text(item),
        due: due(came).map(str::to_owned),
        log,
        state: item.state.map(pdca_state::State::as_str),
    }
}

fn word(came: &ConflictOutcome) -> &'static str {
    match came {
        ConflictOutcome::Due => "due",
        ConflictOutcome::Resolved { .. } => "resolved",
        ConflictOutcome::Skipped { .. } => "skipped",
        ConflictOutcome::Failed { .. } => "failed",
        ConflictOutcome::Blocked { .. } => "blocked_conflict",
        ConflictOutcome::Later { .. } => "later",
        ConflictOutcome::Nothing { .. } => "nothing",
        ConflictOutcome::Waits { .. } => "waits",
        ConflictOutcome::Busy { .. } => "busy",
    }
}

fn due(came: &ConflictOutcome) -> Option<&str> {
    match came {
        ConflictOutcome::Later { at } | ConflictOutcome::Failed { due: Due::At(at), .. } => {
            Some(at)
        }
        ConflictOutcome::Due
        | ConflictOutcome::Resolved { .. }
        | ConflictOutcome::Skipped { .. }
        | ConflictOutcome::Failed { .. }
        | ConflictOutcome::Blocked { .. }
        | ConflictOutcome::Nothing { .. }
        | ConflictOutcome::Waits { .. }
        | ConflictOutcome::Busy { .. } => None,
    }
}

fn text(item: &ResolvedItem) -> String {
    let ConflictReport { said, attempts, came, .. } = &item.told;
    let said = said.as_deref().unwrap_or("its conflict");
    let count = format!("attempt {attempts}/{MOST_ATTEMPTS}");
    match came {
        ConflictOutcome::Due => format!("{said}; attempt {}/{MOST_ATTEMPTS} is due", attempts + 1),
        ConflictOutcome::Resolved { by } => match item.state {
            Some(state) => format!("{said}: resolved by {by}, and now {state}"),
            None => format!("{said}: resolved by {by}, not checked yet"),
        },
        ConflictOutcome::Skipped { why }
        | ConflictOutcome::Nothing { why }
        | ConflictOutcome::Waits { why } => why.clone(),
        ConflictOutcome::Failed { what, due: Due::At(at), .. } => {
            format!("{said}; {count}: {what}; the next is due at {at}")
        }
        ConflictOutcome::Failed { what, .. } => format!("{said}; {count}: {what}"),
        ConflictOutcome::Blocked { evidence, new: true } => {
            format!("{evidence}; it is not tried any more")
        }
        ConflictOutcome::Blocked { evidence, new: false } => evidence.clone(),
        ConflictOutcome::Later { at } => {
            format!("{said}; attempts {attempts}/{MOST_ATTEMPTS}; the next is due at {at}")
        }
        ConflictOutcome::Busy { holder } => format!("{holder} is at it"),
    }
}

fn next(item: &ResolvedItem) -> Option<String> {
    let id = &item.told.id;
    match &item.told.came {
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
pub(super) fn exit(items: &[ResolvedItem]) -> Exit {
    let code = |item: &ResolvedItem| match item.told.came {
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
    use super::*;

    fn item(came: ConflictOutcome) -> ResolvedItem {
        let id = "2".parse().unwrap();
        let said = Some("2 conflicts with 1 in f:1".to_owned());
        ResolvedItem { told: ConflictReport { id, said, attempts: 2, came }, state: None }
    }

    fn failed(due: Due) -> ConflictOutcome {
        ConflictOutcome::Failed { what: "the resolver failed".into(), log: "/w/log".into(), due }
    }

    fn all_of_them() -> Vec<ResolvedItem> {
        let at = "2026-01-02T03:04:05Z".to_owned();
        let resolved = item(ConflictOutcome::Resolved { by: "the resolver".into() });
        let checked = pdca_state::State::AwaitingSignoff;
        vec![
            item(ConflictOutcome::Due),
            ResolvedItem {
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
                format!("{} {code} {}", word(&item.told.came), text(item))
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
