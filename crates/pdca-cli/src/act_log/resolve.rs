//! Closes signals that earlier reviews watch.

use std::io::Write;

use pdca_act::{ActRecords, IndexScope, JudgedSignal, Resolution, SignalFate};
use pdca_state::BundleId;
use serde::Serialize;

use crate::act_log::{bundles, counted, ids, log};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Report, Response};
use crate::style::printable;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WatchedSignals {
    dry_run: bool,
    /// The signals that this call closed.
    resolved: Vec<usize>,
    /// Every signal, as it was before.
    signals: Vec<JudgedSignal>,
}

/// A request to close signals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolve<'a> {
    /// Their numbers; all signals are listed if none is named.
    pub(crate) numbers: &'a [usize],
    pub(crate) note: Option<&'a str>,
    /// Today if none is given.
    pub(crate) date: Option<&'a str>,
}

/// Closes watched signals in the name of `by`, or lists them.
pub(crate) fn resolve(
    args: Resolve<'_>,
    by: impl FnOnce() -> Result<String, Failure>,
    cx: &Context<'_>,
) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let dir = &workspace.process_dir;
    let writes = !args.numbers.is_empty() && !cx.globals.dry_run;
    let _alone = if writes { Some(log::lock(dir)?) } else { None };
    let mut records = ActRecords::load(dir)?;
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
                .at(FilePosition::file(dir.join(pdca_act::LOG)))
                .hint("`pdca act log` starts an entry; its last section names signals"))
        };
    }
    // A missing name is an error only if there is something to sign: a list needs none.
    let (by, date) = (by(), log::date(args.date, cx)?);
    let mut resolutions = Vec::new();
    for number in args.numbers {
        let judged = signals.iter().find(|judged| judged.number == *number).ok_or_else(|| {
            Failure::usage(format!("there is no signal {number}"))
                .hint(format!("`pdca act resolve` lists them: 1 to {}", signals.len()))
        })?;
        resolutions.push(Resolution {
            raw: judged.signal.text.clone(),
            date: date.clone(),
            by: by.as_ref().map_err(Clone::clone)?.clone(),
            note: args.note.map(str::to_owned),
        });
    }
    if writes {
        log::apply(&[records.resolve(&resolutions)?])?;
    }
    let resolved = args.numbers.to_vec();
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
pub(crate) fn fate(judged: &JudgedSignal) -> String {
    let closed = judged
        .resolved
        .as_ref()
        .map_or_else(String::new, |resolution| format!("closed {}, ", printable(&resolution.date)));
    let fate = match (&judged.fate, judged.considered) {
        (SignalFate::Back { cycles }, of) => {
            format!(
                "BACK in {} ({} of {})",
                some(cycles),
                cycles.len(),
                counted(of, "cycle", "cycles")
            )
        }
        (SignalFate::NotSeen, of) => format!("not seen in {}", counted(of, "cycle", "cycles")),
        (SignalFate::Unclear, 0) => "no cycle ended since".to_owned(),
        (SignalFate::Unclear, _) => "judge it yourself".to_owned(),
    };
    closed + &fate
}

/// Lists the ids, or the first of many.
fn some(all: &[BundleId]) -> String {
    const SHOWN: usize = 6;
    if all.len() <= SHOWN { ids(all) } else { format!("{}, …", ids(&all[..SHOWN])) }
}
