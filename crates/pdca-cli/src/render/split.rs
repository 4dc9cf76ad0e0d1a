//! A split as text.

use std::io::Write;

use pdca_workspace::planning::SplitReport;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

impl Report for SplitReport {
    const KIND: &'static str = "split";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let word = if self.dry_run { "would split" } else { "split" };
        writeln!(out, "{} {}", cx.out.good(word), cx.out.strong(&self.id))?;
        for one in &self.split.into {
            let state = if one.is_draft { "a draft to fill in" } else { "planned" };
            writeln!(out, "  {}  {state}", one.id)?;
        }
        if !self.split.repointed.is_empty() {
            let ids: Vec<String> = self.split.repointed.iter().map(ToString::to_string).collect();
            writeln!(out, "  depend on them now: {}", ids.join(", "))?;
        }
        let ready = self.split.into.iter().filter(|one| !one.is_draft);
        let ready: Vec<&str> = ready.map(|one| one.id.as_ref()).collect();
        if !self.dry_run && !ready.is_empty() {
            let next = cx.typed(&format!("pdca run {}", ready.join(" ")));
            writeln!(out, "next: {}", cx.out.accent(next))?;
        }
        Ok(())
    }
}
