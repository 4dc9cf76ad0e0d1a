//! `pdca act resolve`: closes signals that earlier reviews watch.

use std::io::Write;

use pdca_act::{Fate, IndexScope, JudgedSignal, Records, Resolution};
use pdca_state::BundleId;
use serde::Serialize;

use super::{bundles, counted, ids, log};
use crate::command::signoff::signer;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Place};
use crate::report::{Report, Response};
use crate::style::printable;

/// Close a watched signal, or list them
///
/// An entry of the Act log names signals that should no longer be seen. Once you are content, close one: the index
/// leaves it alone from then on, and says so if a cycle that ends on a later day shows it again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca act resolve                                 # the signals with their numbers
  pdca act resolve 2 3 --note \"the gate has a retry now\"

Numbers do not change when reviews are added.")]
pub(crate) struct Args {
    /// The numbers of the signals
    #[arg(value_name = "N")]
    numbers: Vec<usize>,

    /// The reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Name of the person who decided
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// The date to record, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::command) struct WatchedSignals {
    dry_run: bool,
    /// The signals that this call closed.
    resolved: Vec<usize>,
    /// Every signal, as it was before.
    signals: Vec<JudgedSignal>,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let dir = &workspace.process_dir;
    let writes = !args.numbers.is_empty() && !cx.globals.dry_run;
    let _alone = if writes { Some(log::lock(dir)?) } else { None };
    let mut records = Records::load(dir)?;
    if writes {
        records = records.require_writable()?;
    }
    let index = pdca_act::index(&bundles(workspace)?, &records, IndexScope::SinceLastReview);
    let signals = index.signals;
    if signals.is_empty() {
        return if args.numbers.is_empty() {
            Ok(Response::new(
                WatchedSignals { dry_run: false, resolved: Vec::new(), signals },
                Exit::NothingToDo,
            ))
        } else {
            Err(Failure::usage("no review watches a signal")
                .at(Place::file(dir.join(pdca_act::LOG)))
                .hint("`pdca act log` starts an entry; its last section names signals"))
        };
    }
    let (by, date) = (signer(args.by.as_deref(), cx), log::date(args.date.as_deref(), cx)?);
    let mut resolutions = Vec::new();
    for number in &args.numbers {
        let judged = signals.iter().find(|judged| judged.number == *number).ok_or_else(|| {
            Failure::usage(format!("there is no signal {number}"))
                .hint(format!("`pdca act resolve` lists them: 1 to {}", signals.len()))
        })?;
        resolutions.push(Resolution {
            raw: judged.signal.text.clone(),
            date: date.clone(),
            by: by.as_ref().map_err(Clone::clone)?.clone(),
            note: args.note.clone(),
        });
    }
    if writes {
        log::apply(&[records.resolve(&resolutions)?])?;
    }
    let resolved = args.numbers.clone();
    Ok(Response::done(WatchedSignals { dry_run: cx.globals.dry_run, resolved, signals }))
}

impl Report for WatchedSignals {
    const KIND: &'static str = "act-signals";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.signals.is_empty() {
            writeln!(out, "no review watches a signal")?;
        }
        for judged in &self.signals {
            if !self.resolved.is_empty() && !self.resolved.contains(&judged.number) {
                continue;
            }
            let text = printable(&judged.signal.text);
            let state = match (self.resolved.is_empty(), self.dry_run) {
                (true, _) => fate(judged),
                (false, true) => "would be closed".to_owned(),
                (false, false) => "closed".to_owned(),
            };
            writeln!(out, "{:>3}  {}  {text}", judged.number, cx.out.accent(state))?;
        }
        if self.resolved.is_empty() && self.signals.iter().any(|judged| judged.resolved.is_none()) {
            writeln!(out, "next: {}", cx.out.accent("pdca act resolve N --note \"…\""))?;
        }
        Ok(())
    }
}

/// Describes what became of a signal.
pub(super) fn fate(judged: &JudgedSignal) -> String {
    let closed = judged
        .resolved
        .as_ref()
        .map_or_else(String::new, |resolution| format!("closed {}, ", printable(&resolution.date)));
    let fate = match (&judged.fate, judged.considered) {
        (Fate::Back { cycles }, of) => {
            format!(
                "BACK in {} ({} of {})",
                some(cycles),
                cycles.len(),
                counted(of, "cycle", "cycles")
            )
        }
        (Fate::NotSeen, of) => format!("not seen in {}", counted(of, "cycle", "cycles")),
        (Fate::Unclear, 0) => "no cycle ended since".to_owned(),
        (Fate::Unclear, _) => "judge it yourself".to_owned(),
    };
    closed + &fate
}

/// Lists the ids, or the first of many.
fn some(all: &[BundleId]) -> String {
    const SHOWN: usize = 6;
    if all.len() <= SHOWN { ids(all) } else { format!("{}, …", ids(&all[..SHOWN])) }
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    const LOG: &str = "# Act log\n\n# Act review — 2026-11-01 — cycles considered: 1\n\n\
        ## How effectiveness will be judged\n\n- Signal: the network was out of reach (seen in 1)\n\
        - Signal: nobody read the brief (seen in 1)\n";

    fn desk() -> Desk {
        let desk = Desk::new();
        desk.workspace.write("process/act-log.md", LOG);
        desk
    }

    #[test]
    fn signals_are_listed_with_numbers_and_closed_by_them() {
        let desk = desk();
        insta::assert_snapshot!(desk.run(&["act", "resolve"]), @r#"
          1  no cycle ended since  the network was out of reach
          2  no cycle ended since  nobody read the brief
        next: pdca act resolve N --note "…"
        "#);
        insta::assert_snapshot!(desk.run(&["act", "resolve", "2", "--by", "Ada", "--note", "it is one page now"]), @"
          2  closed  nobody read the brief
        ");
        let ledger = desk.workspace.read("process/act-ledger.json");
        assert!(ledger.contains("it is one page now") && ledger.contains("\"Ada\""), "{ledger}");
        insta::assert_snapshot!(desk.run(&["act", "resolve"]), @r#"
          1  no cycle ended since  the network was out of reach
          2  closed 2026-11-16, no cycle ended since  nobody read the brief
        next: pdca act resolve N --note "…"
        "#);
    }

    #[test]
    fn a_number_that_is_none_is_refused_and_nothing_changes() {
        let desk = desk();
        let before = desk.all_files();
        let run = desk.run(&["act", "resolve", "1", "7", "--by", "Ada"]);
        assert_eq!(run.exit, Exit::Usage);
        assert!(run.err.contains("there is no signal 7"), "{run}");
        assert_eq!(desk.run(&["act", "resolve", "1", "--by", "Ada", "--dry-run"]).exit, Exit::Done);
        assert_eq!(desk.all_files(), before);
    }

    #[test]
    fn without_a_signal_there_is_nothing_to_close() {
        let desk = Desk::new();
        assert_eq!(desk.run(&["act", "resolve"]).exit, Exit::NothingToDo);
        assert_eq!(desk.run(&["act", "resolve", "1", "--by", "Ada"]).exit, Exit::Usage);
    }
}
