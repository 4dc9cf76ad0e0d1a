//! The items of §6: shown with their numbers, ticked one by one.

use std::io::Write;

use pdca_state::{Artifact, Bundle, BundleId, Snapshot, State, Summary};
use serde::Serialize;

use crate::command::queue::{open_texts, standing_index};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::{Report, Response};
use crate::style::printable;

/// The items of §6.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct Checklist {
    id: BundleId,
    open: Vec<String>,
    cleared: Vec<String>,
    /// The number of the standing question, if it is open.
    standing: Option<usize>,
}

/// Shows open and cleared items.
pub(super) fn show(snapshot: &Snapshot) -> Result<Response, Failure> {
    let Some(summary) = &snapshot.summary else {
        return Err(Failure::usage(format!("{} has no summary yet", snapshot.id))
            .at(Place::file(&*snapshot.dir))
            .hint(format!("`pdca run {}` carries it to sign-off", snapshot.id)));
    };
    Ok(Response::done(Checklist {
        id: snapshot.id.clone(),
        open: open_texts(summary),
        cleared: summary.cleared_items().iter().map(|item| item.trim().to_owned()).collect(),
        standing: standing_index(summary).map(|index| index + 1),
    }))
}

impl Report for Checklist {
    const KIND: &'static str = "signoff-show";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for (number, item) in (1..).zip(&self.open) {
            let mark = if Some(number) == self.standing { "(asked every time) " } else { "" };
            writeln!(out, "{number:>3} [ ] {}{}", cx.out.faint(mark), printable(item))?;
        }
        for item in &self.cleared {
            writeln!(out, "    {}", cx.out.faint(printable(item)))?;
        }
        if self.open.is_empty() {
            writeln!(out, "nothing is open in §6")?;
        }
        Ok(())
    }
}

/// The items that were ticked, or would be.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct ClearReport {
    dry_run: bool,
    id: BundleId,
    cleared: Vec<String>,
    /// The number of items still open.
    left: usize,
}

/// Ticks the items of these numbers, as `show` gives them.
pub(super) fn clear(
    cx: &Context<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    items: &[String],
    note: Option<&str>,
) -> Result<Response, Failure> {
    super::require_awaiting(bundle, snapshot)?;
    debug_assert_eq!(snapshot.state, State::AwaitingSignoff);
    let text = super::summary_text(bundle, snapshot)?;
    let summary = Summary::parse(&text);
    let chosen = chosen(items, summary.open_items().len(), bundle)?;
    let ticked = tick(&summary, &chosen, note).ok_or_else(|| {
        Failure::usage("the boxes of §6 cannot be told apart from other text")
            .at(Place::file(bundle.path(Artifact::Summary)))
            .hint("tick them by hand: `- [ ]` becomes `- [x]`")
    })?;
    let open = open_texts(&summary);
    let dry_run = cx.globals.dry_run;
    if !dry_run {
        bundle.publish(Artifact::Summary, ticked.as_bytes())?;
    }
    let cleared = chosen.iter().map(|index| open[*index].clone()).collect();
    let left = open.len() - chosen.len();
    Ok(Response::done(ClearReport { dry_run, id: bundle.id().clone(), cleared, left }))
}

impl Report for ClearReport {
    const KIND: &'static str = "signoff-clear";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let verb = if self.dry_run { "would clear" } else { "cleared" };
        for item in &self.cleared {
            writeln!(out, "{verb}: {}", printable(item))?;
        }
        match (self.dry_run, self.left) {
            (true, _) => {}
            (false, 0) => {
                let next = format!("pdca signoff {} accept", self.id);
                writeln!(out, "next: {}", cx.out.accent(next))?;
            }
            (false, left) => writeln!(out, "{left} still open in §6")?,
        }
        Ok(())
    }
}

/// Returns the chosen indexes into the open items, sorted and unique.
fn chosen(items: &[String], open: usize, bundle: &Bundle) -> Result<Vec<usize>, Failure> {
    let show = format!("`pdca signoff {} show` lists the boxes with their numbers", bundle.id());
    if open == 0 {
        return Err(Failure::new(Exit::NothingToDo, "nothing is open in §6")
            .at(Place::file(bundle.path(Artifact::Summary)))
            .hint(format!("`pdca signoff {} accept`", bundle.id())));
    }
    if items.is_empty() {
        return Err(Failure::usage("which box is to be cleared?").hint(show));
    }
    let mut chosen = Vec::new();
    for item in items {
        match item.parse::<usize>() {
            Ok(number) if (1..=open).contains(&number) => chosen.push(number - 1),
            Err(_) if item == "all" => chosen.extend(0..open),
            Ok(_) | Err(_) => {
                return Err(
                    Failure::usage(format!("there is no box `{item}`: {open} are open")).hint(show)
                );
            }
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// Returns the text with these items ticked; `None` if that would change anything else.
///
/// The result is parsed again, because the parser decides what an item is: exactly the chosen ones must have become cleared,
/// and nothing may be signed by it.
fn tick(summary: &Summary, chosen: &[usize], note: Option<&str>) -> Option<String> {
    let text = summary.text();
    let body = summary.section(6)?;
    let start = body.as_ptr() as usize - text.as_ptr() as usize;
    let note: Option<String> = note
        .map(|note| note.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|note| !note.is_empty());
    let mut ticked = text[..start].to_owned();
    let mut next = 0;
    for line in body.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let is_next =
            summary.open_items().get(next).is_some_and(|item| item.trim() == content.trim());
        if is_next && chosen.contains(&next) {
            ticked.push_str(&content.replacen("[ ]", "[x]", 1));
            if let Some(note) = &note {
                ticked.push_str(" — ");
                ticked.push_str(note);
            }
            ticked.push_str(&line[content.len()..]);
        } else {
            ticked.push_str(line);
        }
        next += usize::from(is_next);
    }
    ticked.push_str(&text[start + body.len()..]);
    let after = Summary::parse(&ticked);
    let left: Vec<&String> = summary
        .open_items()
        .iter()
        .enumerate()
        .filter(|(index, _)| !chosen.contains(index))
        .map(|(_, item)| item)
        .collect();
    let right = after.open_items().iter().collect::<Vec<_>>() == left
        && after.cleared_items().len() == summary.cleared_items().len() + chosen.len()
        && after.outcome_token() == summary.outcome_token();
    right.then_some(ticked)
}
