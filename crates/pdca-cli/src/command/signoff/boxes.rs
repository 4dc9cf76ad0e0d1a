//! The boxes of §6: shown with their numbers, ticked one by one.

use std::io::Write;

use pdca_state::{Artifact, Bundle, Snapshot, State, Summary};

use crate::command::queue::{open_texts, standing_index};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::style::printable;

/// Shows what is open and what is cleared.
pub(super) fn show(
    cx: &Context<'_>,
    snapshot: &Snapshot,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let Some(summary) = &snapshot.summary else {
        return Err(Failure::usage(format!("{} has no summary yet", snapshot.id))
            .at(Place::file(&*snapshot.dir))
            .hint(format!("`pdca run {}` carries it to sign-off", snapshot.id)));
    };
    let standing = standing_index(summary);
    for (index, item) in open_texts(summary).iter().enumerate() {
        let mark = if Some(index) == standing { "(asked every time) " } else { "" };
        writeln!(out, "{:>3} [ ] {}{}", index + 1, cx.out.faint(mark), printable(item))?;
    }
    for item in summary.cleared_items() {
        writeln!(out, "    {}", cx.out.faint(printable(item.trim())))?;
    }
    if summary.open_items().is_empty() {
        writeln!(out, "nothing is open in §6")?;
    }
    Ok(Exit::Done)
}

/// Ticks the boxes of these numbers, as `show` gives them.
pub(super) fn clear(
    cx: &Context<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    items: &[String],
    note: Option<&str>,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
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
    if !cx.globals.dry_run {
        bundle.publish(Artifact::Summary, ticked.as_bytes())?;
    }
    let verb = if cx.globals.dry_run { "would clear" } else { "cleared" };
    for index in &chosen {
        writeln!(out, "{verb}: {}", printable(&open[*index]))?;
    }
    if cx.globals.dry_run {
        return Ok(Exit::Done);
    }
    let left = open.len() - chosen.len();
    if left == 0 {
        writeln!(out, "next: {}", cx.out.accent(format!("pdca signoff {} accept", bundle.id())))?;
    } else {
        writeln!(out, "{left} still open in §6")?;
    }
    Ok(Exit::Done)
}

/// The places in the list of open items, from 0, in order, each once.
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

/// The text with these boxes ticked; `None` where that would change anything else.
///
/// The reader decides what a box is, so it is asked again afterwards: exactly the chosen ones must have become cleared,
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
