//! The bundles that wait for a sign-off.

use std::io::Write;

use pdca_state::Overall;
use pdca_workspace::issue::{QueuedIssue, ReviewQueue};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Table};
use crate::style::one_line;

impl Report for ReviewQueue {
    const KIND: &'static str = "queue";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        show(cx, &self.items, out)
    }

    fn table(&self, _: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["id", "gates", "open", "conflicts", "slug"]);
        for item in &self.items {
            let gates = item.overall.map_or("none", Overall::as_str);
            let others: Vec<&str> = item.forecast_conflicts.iter().map(AsRef::as_ref).collect();
            table.row([
                item.id.to_string(),
                gates.to_owned(),
                item.needs_human.to_string(),
                others.join(" "),
                item.slug.clone().unwrap_or_default(),
            ]);
        }
        Some(table)
    }
}

fn show(cx: &Context<'_>, items: &[QueuedIssue], out: &mut dyn Write) -> Result<(), Failure> {
    if items.is_empty() {
        writeln!(out, "nothing waits for sign-off")?;
        return Ok(());
    }
    let has_finding = |item: &&QueuedIssue| {
        item.needs_human > item.standing || item.overall == Some(Overall::Fail)
    };
    let findings = items.iter().filter(has_finding).count();
    let (all, confirm) = (items.len(), items.len() - findings);
    writeln!(out, "{all} wait for sign-off: {confirm} to confirm, {findings} to decide")?;
    let ids = items.iter().map(|item| item.id.as_ref().len()).max().unwrap_or(0).min(24);
    let width = cx.env.terminal.width.map(|width| usize::from(width).max(40));
    for item in items {
        let verdict = match item.overall {
            Some(Overall::Pass) => cx.out.good("gates pass"),
            Some(Overall::Fail) => cx.out.bad("gates FAIL"),
            None => cx.out.warn("no gates  "),
        };
        let what = match (item.needs_human - item.standing, item.standing) {
            (0, 0) if item.closes => "confirm the close".to_owned(),
            (0, 0) => "confirm".to_owned(),
            (0, _) => "1 to confirm: fitness for purpose".to_owned(),
            (1, 0) => "1 finding".to_owned(),
            (1, _) => "1 finding, fitness for purpose".to_owned(),
            (count, 0) => format!("{count} findings"),
            (count, _) => format!("{count} findings, fitness for purpose"),
        };
        // 54 columns are taken by the verdict, by what is to be done, and by the space between.
        let room = width.map_or(36, |width| width.saturating_sub(54 + ids).clamp(8, 36));
        let slug = one_line(item.slug.as_deref().unwrap_or("-"), room);
        let mut extra = String::new();
        if item.patch_changed {
            extra.push_str(" [patch edited after Check]");
        }
        let others: Vec<&str> = item.forecast_conflicts.iter().map(AsRef::as_ref).collect();
        if !others.is_empty() {
            extra = format!("{extra} [will conflict: {}]", others.join(", "));
        }
        let used = 54 + ids + slug.chars().count() + extra.chars().count();
        let is_long = width.is_some_and(|width| used > width) && !extra.is_empty();
        let extra = width.map_or_else(|| extra.clone(), |width| one_line(&extra, width - 5));
        let extra = if is_long {
            format!("\n    {}", cx.out.warn(extra.trim()))
        } else if extra.is_empty() {
            extra
        } else {
            format!(" {}", cx.out.warn(extra.trim()))
        };
        writeln!(out, "  {:<ids$}  {verdict}  {what:<36}  {slug}{extra}", item.id)?;
    }
    if let Some(first) = items.first() {
        let next = format!("pdca show {}", first.id);
        let next =
            if cx.env.terminal.stdin && cx.env.terminal.stdout { "pdca review" } else { &next };
        writeln!(out, "next: {}", cx.out.accent(cx.typed(next)))?;
    }
    Ok(())
}
