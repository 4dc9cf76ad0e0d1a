//! The items of §6, with their numbers.

use std::io::Write;

use pdca_state::{BundleId, Snapshot, SummaryItem};
use pdca_workspace::review::Cleared;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Failure, FilePosition};
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
    /// Every item in order. A number stays the number of its item when others are ticked.
    items: Vec<SummaryItem>,
}

/// Shows open and cleared items.
pub(super) fn show(snapshot: &Snapshot) -> Result<Response, Failure> {
    let Some(summary) = &snapshot.summary else {
        return Err(Failure::usage(format!("{} has no summary yet", snapshot.id))
            .at(FilePosition::file(&*snapshot.dir))
            .hint(format!("`pdca run {}` carries it to sign-off", snapshot.id)));
    };
    let items = summary.items();
    let standing = items.iter().find(|item| item.open && item.standing);
    Ok(Response::done(Checklist {
        id: snapshot.id.clone(),
        open: items.iter().filter(|item| item.open).map(|item| item.text.clone()).collect(),
        cleared: summary.cleared_items().iter().map(|item| item.trim().to_owned()).collect(),
        standing: standing.map(|item| item.number),
        items: items.to_vec(),
    }))
}

impl Report for Checklist {
    const KIND: &'static str = "signoff-show";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for item in &self.items {
            let (number, text) = (item.number, printable(&item.text));
            let mark = if item.standing && item.open { "(asked every time) " } else { "" };
            if item.open {
                writeln!(out, "{number:>3} [ ] {}{text}", cx.out.faint(mark))?;
            } else {
                writeln!(out, "{}", cx.out.faint(format!("{number:>3} [x] {text}")))?;
            }
        }
        if self.open.is_empty() {
            writeln!(out, "nothing is open in §6")?;
        }
        Ok(())
    }
}

/// Items that were ticked, or would be.
#[derive(Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct ClearReport(pub(super) Cleared);

impl Report for ClearReport {
    const KIND: &'static str = "signoff-clear";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let ClearReport(cleared) = self;
        let verb = if cleared.dry_run { "would clear" } else { "cleared" };
        for item in &cleared.cleared {
            writeln!(out, "{verb}: {}", printable(item))?;
        }
        match (cleared.dry_run, cleared.left) {
            (true, _) => {}
            (false, 0) => {
                let next = cx.typed(&format!("pdca signoff {} accept", cleared.id));
                writeln!(out, "next: {}", cx.out.accent(next))?;
            }
            (false, left) => writeln!(out, "{left} still open in §6")?,
        }
        Ok(())
    }
}
