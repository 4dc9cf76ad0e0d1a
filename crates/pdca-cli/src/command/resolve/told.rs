//! What came of conflicts, for a person and for a script.

use std::io::Write;

use pdca_driver::integrate::{Came, Due, MOST_ATTEMPTS, Told};
use serde::Serialize;

use super::Item;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::style::printable;

/// What scripts get of one conflict.
#[derive(Debug, Serialize)]
pub(in crate::command) struct Row {
    id: String,
    /// `resolved`, `skipped`, `failed`, `blocked_conflict`, `later`, `waits`, `nothing`, `busy` or `due`.
    outcome: &'static str,
    /// How often the resolver was asked.
    attempts: u32,
    /// How often it may be.
    of: u32,
    /// What conflicts with what.
    conflict: Option<String>,
    /// In words.
    text: String,
    /// When the next attempt may be.
    due: Option<String>,
    /// What there is to read about the last attempt.
    log: Option<String>,
    /// The state of the bundle after Check.
    state: Option<&'static str>,
}

#[derive(Serialize)]
struct Document {
    dry_run: bool,
    conflicts: Vec<Row>,
}

/// Tells everything.
pub(super) fn all(
    cx: &Context<'_>,
    items: &[Item],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    if cx.globals.json {
        let conflicts = rows(items);
        return cx.emit_json(out, "resolve", &Document { dry_run: cx.globals.dry_run, conflicts });
    }
    if items.is_empty() {
        return cx.note(err, "nothing that is accepted conflicts with its branch");
    }
    lines(cx, items, out)
}

/// The same as part of what an integration tells.
pub(in crate::command) fn rows<'i>(items: impl IntoIterator<Item = &'i Item>) -> Vec<Row> {
    items.into_iter().map(row).collect()
}

/// One line each, for a person.
pub(in crate::command) fn lines(
    cx: &Context<'_>,
    items: &[Item],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    for item in items {
        let word = word(&item.told.came);
        let painted = match item.told.came {
            Came::Resolved { .. } | Came::Skipped { .. } | Came::Due => p.good(word),
            Came::Failed { .. } | Came::Later { .. } | Came::Waits { .. } | Came::Busy { .. } => {
                p.warn(word)
            }
            Came::Nothing { .. } => p.faint(word),
            Came::Blocked { .. } => p.bad(word),
        };
        let id = p.strong(&item.told.id);
        writeln!(out, "{painted}  {id}  {}", printable(&text(item)))?;
        if let Came::Failed { log, .. } = &item.told.came {
            writeln!(out, "  see {}", cx.show(log))?;
        }
        if let Some(next) = next(item) {
            writeln!(out, "  next: {}", p.accent(next))?;
        }
    }
    Ok(())
}

fn row(item: &Item) -> Row {
    let Told { id, said, attempts, came } = &item.told;
    let log = match came {
        Came::Failed { log, .. } => Some(log.to_string()),
        Came::Due
        | Came::Resolved { .. }
        | Came::Skipped { .. }
        | Came::Blocked { .. }
        | Came::Later { .. }
        | Came::Nothing { .. }
        | Came::Waits { .. }
        | Came::Busy { .. } => None,
    };
    Row {
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

fn word(came: &Came) -> &'static str {
    match came {
        Came::Due => "due",
        Came::Resolved { .. } => "resolved",
        Came::Skipped { .. } => "skipped",
        Came::Failed { .. } => "failed",
        Came::Blocked { .. } => "blocked_conflict",
        Came::Later { .. } => "later",
        Came::Nothing { .. } => "nothing",
        Came::Waits { .. } => "waits",
        Came::Busy { .. } => "busy",
    }
}

fn due(came: &Came) -> Option<&str> {
    match came {
        Came::Later { at } | Came::Failed { due: Due::At(at), .. } => Some(at),
        Came::Due
        | Came::Resolved { .. }
        | Came::Skipped { .. }
        | Came::Failed { .. }
        | Came::Blocked { .. }
        | Came::Nothing { .. }
        | Came::Waits { .. }
        | Came::Busy { .. } => None,
    }
}

fn text(item: &Item) -> String {
    let Told { said, attempts, came, .. } = &item.told;
    let said = said.as_deref().unwrap_or("its conflict");
    let count = format!("attempt {attempts}/{MOST_ATTEMPTS}");
    match came {
        Came::Due => format!("{said}; attempt {}/{MOST_ATTEMPTS} is due", attempts + 1),
        Came::Resolved { by } => match item.state {
            Some(state) => format!("{said}: resolved by {by}, and now {state}"),
            None => format!("{said}: resolved by {by}, not checked yet"),
        },
        Came::Skipped { why } | Came::Nothing { why } | Came::Waits { why } => why.clone(),
        Came::Failed { what, due: Due::At(at), .. } => {
            format!("{said}; {count}: {what}; the next is due at {at}")
        }
        Came::Failed { what, .. } => format!("{said}; {count}: {what}"),
        Came::Blocked { evidence, new: true } => format!("{evidence}; it is not tried any more"),
        Came::Blocked { evidence, new: false } => evidence.clone(),
        Came::Later { at } => {
            format!("{said}; attempts {attempts}/{MOST_ATTEMPTS}; the next is due at {at}")
        }
        Came::Busy { holder } => format!("{holder} is at it"),
    }
}

fn next(item: &Item) -> Option<String> {
    let id = &item.told.id;
    match &item.told.came {
        Came::Resolved { .. } if item.state == Some(pdca_state::State::AwaitingSignoff) => {
            Some(format!("pdca signoff {id} show"))
        }
        Came::Resolved { .. } => Some(format!("pdca resolve {id}")),
        Came::Blocked { .. } => Some(format!("pdca unblock {id}")),
        Came::Due
        | Came::Skipped { .. }
        | Came::Failed { .. }
        | Came::Later { .. }
        | Came::Nothing { .. }
        | Came::Waits { .. }
        | Came::Busy { .. } => None,
    }
}

/// How the command ends: a conflict that stays is graver than one that a person signs off.
pub(super) fn exit(items: &[Item]) -> Exit {
    let code = |item: &Item| match item.told.came {
        Came::Due
        | Came::Failed { .. }
        | Came::Blocked { .. }
        | Came::Later { .. }
        | Came::Busy { .. } => Exit::MergeConflict,
        Came::Resolved { .. } | Came::Waits { .. } => Exit::Waiting,
        Came::Skipped { .. } => Exit::Done,
        Came::Nothing { .. } => Exit::NothingToDo,
    };
    let codes: Vec<Exit> = items.iter().map(code).collect();
    let grave = [Exit::MergeConflict, Exit::Waiting, Exit::Done];
    grave.into_iter().find(|exit| codes.contains(exit)).unwrap_or(Exit::NothingToDo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(came: Came) -> Item {
        let id = "2".parse().unwrap();
        let said = Some("2 conflicts with 1 in f:1".to_owned());
        Item { told: Told { id, said, attempts: 2, came }, state: None }
    }

    fn failed(due: Due) -> Came {
        Came::Failed { what: "the resolver failed".into(), log: "/w/log".into(), due }
    }

    fn all_of_them() -> Vec<Item> {
        let at = "2026-01-02T03:04:05Z".to_owned();
        let resolved = item(Came::Resolved { by: "the resolver".into() });
        let checked = pdca_state::State::AwaitingSignoff;
        vec![
            item(Came::Due),
            Item { state: Some(checked), ..item(Came::Resolved { by: "the resolver".into() }) },
            resolved,
            item(Came::Skipped { why: "main has its effect".into() }),
            item(failed(Due::At(at.clone()))),
            item(failed(Due::Now)),
            item(Came::Blocked { evidence: "attempts 5/5".into(), new: true }),
            item(Came::Blocked { evidence: "attempts 5/5".into(), new: false }),
            item(Came::Later { at }),
            item(Came::Waits { why: "it needs 1".into() }),
            item(Came::Nothing { why: "it has landed".into() }),
            item(Came::Busy { holder: "process 7".into() }),
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
            item(Came::Resolved { by: "the resolver".into() }),
            item(Came::Skipped { why: "it is there".into() }),
        );
        assert_eq!(exit(&[skipped, resolved]), Exit::Waiting);
        assert_eq!(exit(&[]), Exit::NothingToDo);
    }
}
