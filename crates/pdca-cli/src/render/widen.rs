//! A widened brief as text.

use std::io::Write;

use pdca_workspace::planning::{LanesFileState, Widened};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::printable;
use crate::words;

impl Report for Widened {
    const KIND: &'static str = "widen";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        let id = &self.id;
        let name = p.strong(id.dir_name());
        let added: Vec<String> = self.added.iter().map(|glob| format!("`{glob}`")).collect();
        let added = printable(&added.join(", ")).into_owned();
        match (self.added.as_slice(), self.dry_run) {
            ([], _) => writeln!(out, "{name} declares that already; nothing changed")?,
            ([..], true) => writeln!(out, "{name} would also touch {added}")?,
            ([..], false) => writeln!(out, "{name} also touches {added}")?,
        }
        match &self.new_rivals {
            None => writeln!(
                out,
                "  {} whom that meets is not known: the batch has no plan, `pdca plan` says why",
                p.warn("note:")
            )?,
            Some(rivals) if rivals.is_empty() && !self.added.is_empty() => {
                writeln!(out, "  no other bundle is in the way of that")?;
            }
            Some(rivals) => {
                for rival in rivals {
                    let now = if rival.at_work { ", which is in work right now" } else { "" };
                    let line = format!("{}{now}", words::apart(id, &rival.id, &rival.rivalry));
                    writeln!(out, "  {} {}", p.warn("no longer side by side:"), printable(&line))?;
                }
            }
        }
        if self.judged_again {
            let will = if self.dry_run { "would judge" } else { "judge" };
            writeln!(
                out,
                "  the gates {will} it again, and the review follows: {}",
                p.accent(format!("pdca run {id}"))
            )?;
        }
        if self.lanes_file == LanesFileState::Stale {
            writeln!(
                out,
                "  lanes.json is {}: {}",
                p.warn("out of date"),
                p.accent("pdca plan --write")
            )?;
        }
        Ok(())
    }
}
