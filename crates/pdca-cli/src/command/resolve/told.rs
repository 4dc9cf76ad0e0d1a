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
