//! The index of cycles as text: one by one, and together.

use std::io::Write;

use pdca_act::{Cycle, GateCost, Index, IndexScope, Touches};
use pdca_state::BundleId;

use super::{counted, fate, ids};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::{one_line, printable};

impl Report for Index {
    const KIND: &'static str = "act-index";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let mut page = Page { cx, out };
        page.head(self)?;
        for cycle in &self.cycles {
            page.cycle(cycle)?;
        }
        for row in &self.unreadable {
            writeln!(page.out, "\n{} {}", cx.out.bad("UNREADABLE"), cx.out.strong(&row.id))?;
            page.line("  ", &row.why)?;
        }
        page.together(self)?;
        if !self.cycles.is_empty() && self.scope == IndexScope::SinceLastReview {
            writeln!(page.out, "\nnext: {}", cx.out.accent("pdca act log"))?;
        }
        Ok(())
    }
}

/// Writes the index for people.
struct Page<'a, 'c> {
    cx: &'a Context<'c>,
    out: &'a mut dyn Write,
}

impl Page<'_, '_> {
    fn head(&mut self, index: &Index) -> Result<(), Failure> {
        let cycles = counted(index.cycles.len(), "cycle", "cycles");
        let since = match (index.scope, &index.last_review) {
            (IndexScope::All, _) => "in all".to_owned(),
            (IndexScope::SinceLastReview, Some(date)) => format!("since the review of {date}"),
            (IndexScope::SinceLastReview, None) => "ended, none was reviewed before".to_owned(),
        };
        writeln!(self.out, "{cycles} {}", printable(&since))?;
        Ok(())
    }

    fn cycle(&mut self, cycle: &Cycle) -> Result<(), Failure> {
        let slug = one_line(cycle.slug.as_deref().unwrap_or("-"), 60);
        let (id, state) = (self.cx.out.strong(&cycle.id), self.cx.out.good(cycle.state.as_str()));
        writeln!(self.out, "\n{id}  {state}  {slug}")?;
        let attempts = match cycle.iterations {
            0 => "one attempt".to_owned(),
            iterations => format!("{} attempts", u64::from(iterations) + 1),
        };
        self.line("  ", &format!("{attempts}, {}", cost(cycle.gates)))?;
        if let Some(cost) = crate::cost::total(&cycle.cost) {
            self.line("  cost     ", &cost)?;
        }
        self.line("  touches  ", &touches(&cycle.touches))?;
        for item in &cycle.needs_human {
            let mark = if item.open { "  §6  [ ] " } else { "  §6  [x] " };
            self.line(mark, &item.text)?;
        }
        for text in &cycle.proven {
            self.line("  §7  ", text)?;
        }
        for text in &cycle.deltas {
            self.line("  §9  sent back: ", text)?;
        }
        self.line("  §9  ", &signed(cycle))?;
        for text in &cycle.candidates {
            self.line("  §10 ", text)?;
        }
        for problem in &cycle.problems {
            self.line("  problem: ", problem)?;
        }
        Ok(())
    }

    fn together(&mut self, index: &Index) -> Result<(), Failure> {
        if let Some(cost) = crate::cost::total(&index.cost) {
            let each = index.cost_per_accepted_usd_micros;
            let each = each.map_or_else(String::new, |each| format!(", {each} per accepted issue"));
            writeln!(self.out, "\ncost: {cost}{each}")?;
        }
        self.title("recurring", index.patterns.len())?;
        for pattern in &index.patterns {
            let cycles = self.some(&pattern.cycles);
            self.line(&format!("  {}× ({cycles})  ", pattern.cycles.len()), &pattern.example)?;
        }
        self.title("needs-human by class", index.needs_human.len())?;
        for class in &index.needs_human {
            let cycles = counted(class.cycles.len(), "cycle", "cycles");
            let mut parts = vec![format!("{} in {cycles}", class.class)];
            if class.standing > 0 {
                parts.push("asked of every bundle".to_owned());
            }
            if class.open > 0 {
                parts.push(format!("{} never ticked", class.open));
            }
            self.line(&format!("  {}× ", class.items), &parts.join(", "))?;
        }
        self.title("brief fields blamed", index.blamed_fields.len())?;
        for field in &index.blamed_fields {
            let cycles = self.some(&field.cycles);
            self.line("  ", &format!("{} in {cycles}", field.field))?;
        }
        let signals = if index.cycles.is_empty() { &[][..] } else { &index.signals };
        self.title("signals of earlier reviews", signals.len())?;
        for judged in signals {
            let fate = fate(judged);
            let text = format!("{fate}: {} ({})", judged.signal.text, judged.signal.since);
            self.line("  ", &text)?;
        }
        Ok(())
    }

    fn title(&mut self, title: &str, count: usize) -> Result<(), Failure> {
        if count > 0 {
            writeln!(self.out, "\n{}", self.cx.out.strong(title))?;
        }
        Ok(())
    }

    /// Writes one line, cut to the width unless `-v`.
    fn line(&mut self, before: &str, text: &str) -> Result<(), Failure> {
        let room = self.cx.width().saturating_sub(before.chars().count()).max(20);
        let shown = if self.cx.globals.verbose > 0 {
            printable(text).into_owned()
        } else {
            one_line(text, room)
        };
        writeln!(self.out, "{before}{shown}")?;
        Ok(())
    }

    /// Lists the ids, or the first of many.
    fn some(&self, all: &[BundleId]) -> String {
        const SHOWN: usize = 6;
        if all.len() <= SHOWN || self.cx.globals.verbose > 0 {
            return ids(all);
        }
        format!("{}, …", ids(&all[..SHOWN]))
    }
}

fn cost(gates: GateCost) -> String {
    let tenths = gates.ms / 100;
    match gates.timed {
        0 if gates.rows == 0 => "no gate ran".to_owned(),
        0 => format!("{}, not timed", counted(gates.rows, "gate row", "gate rows")),
        timed => {
            let rows = counted(gates.rows, "row", "rows");
            format!("gates took {}.{} s ({timed} of {rows} timed)", tenths / 10, tenths % 10)
        }
    }
}

fn touches(touches: &Touches) -> String {
    let Touches { declared, actual, undeclared, untouched } = touches;
    let mut parts = vec![match declared.len() {
        0 => "nothing declared".to_owned(),
        count => format!("{count} declared"),
    }];
    parts.push(match actual.len() {
        0 => "the patch names no file".to_owned(),
        count => format!("{} changed", counted(count, "file", "files")),
    });
    if !undeclared.is_empty() {
        parts.push(format!("undeclared: {}", undeclared.join(" ")));
    }
    if !untouched.is_empty() {
        parts.push(format!("not touched: {}", untouched.join(" ")));
    }
    parts.join(", ")
}

fn signed(cycle: &Cycle) -> String {
    let signoff = &cycle.signoff;
    let outcome = signoff.outcome.map_or_else(|| "-".to_owned(), |outcome| outcome.to_string());
    let mut parts =
        vec![format!("{outcome} by {} on {}", or_dash(&signoff.by), or_dash(&signoff.date))];
    if !signoff.disposition.is_empty() {
        parts.push(format!("disposition {}", signoff.disposition));
    }
    parts.extend(signoff.note.clone());
    parts.join(": ")
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
