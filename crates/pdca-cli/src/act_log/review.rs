//! An entry of the Act log, filled in by the act leaf and recorded by a person.
//!
//! 1. The leaf gets the index, the started entry and the log; what it writes is checked and kept as a draft. A crash
//!    after this costs no second call.
//! 2. The person reads the draft, and may edit it.
//! 3. It is recorded as `act log --record` does, under a heading of our own, and the draft is removed.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_act::{Index, IndexScope, LOG, adopt};
use pdca_leaves::Role;
use pdca_state::{Bundle, BundleId, files};
use serde::Serialize;

use crate::act_log::{baseline, bundles, counted, ids, log};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Nothing, Report, Response};
use crate::session;
use crate::style::printable;

/// The most of the log that the leaf gets, from its end.
const MAX_LOG: usize = 256 << 10;
const MAX_LOG_FILE: u64 = 64 << 20;
const MAX_DRAFT: u64 = 4 << 20;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReviewReport {
    date: String,
    cycles: Vec<BundleId>,
    entry: String,
    recorded: bool,
    /// True if the entry is a draft of an earlier call.
    reused: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    draft: Utf8PathBuf,
}

/// A request for a review.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActReviewRequest<'a> {
    /// Appends the entry to the log without asking.
    pub(crate) record: bool,
    /// Calls the leaf even if a draft waits.
    pub(crate) fresh: bool,
    /// Today if none is given.
    pub(crate) date: Option<&'a str>,
}

/// Has the act leaf fill in an entry of the Act log, and records it once a person agrees.
pub(crate) fn review(
    args: ActReviewRequest<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let workspace = cx.workspace()?;
    let date = log::date(args.date, cx)?;
    // Also during the call of the leaf: a second review would pay for an entry about the same cycles.
    let _alone = if cx.globals.dry_run { None } else { Some(log::lock(&workspace.process_dir)?) };
    let (now, problems) = baseline(workspace);
    for problem in problems {
        cx.note(err, &format!("{} {}", cx.err.warn("warning:"), printable(&problem)))?;
    }
    let (records, _) = log::load(cx, &now, &date, !cx.globals.dry_run, err)?;
    let all = bundles(workspace)?;
    let index = pdca_act::index(&all, &records, IndexScope::SinceLastReview);
    if index.cycles.is_empty() {
        return Nothing::to_do("no cycle ended since the last review", err);
    }
    let started = log::started(workspace, &index, &date);
    let cycles: Vec<BundleId> = index.cycles.iter().map(|cycle| cycle.id.clone()).collect();
    let draft = session::driver_config(cx)?.dirs.private().join("act-entry.md");
    let kept = if args.fresh { None } else { kept(&draft, &cycles)? };
    let reused = kept.is_some();
    if !reused {
        session::require_leaf(cx, Role::Act)?;
        if cx.globals.dry_run {
            return Nothing::to_do("would call the act leaf; nothing was done", err);
        }
    }
    let heading = started.lines().next().unwrap_or_default();
    let text = if let Some(text) = kept {
        text
    } else {
        let is_reviewed = |bundle: &Bundle| cycles.contains(bundle.id());
        let reviewed: Vec<Bundle> = all.into_iter().filter(is_reviewed).collect();
        written(cx, &index, &reviewed, &started, &draft, err)?
    };
    // Under a heading of our own: no text of a model opens an entry, hides one, or names cycles for it.
    let entry = adopt(&text, heading).map_err(|error| {
        Failure::from_error(Exit::Usage, &error)
            .at(FilePosition::file(&*draft))
            .hint("mend the draft, then `pdca act review --record`; or `pdca act review --fresh`")
    })?;
    let mut recorded = args.record || cx.globals.yes;
    if !recorded && cx.may_ask() && !cx.globals.dry_run {
        err.write_all(printable(&entry).as_bytes())?;
        recorded = cx.ask("Append this to the Act log?", err)?;
    }
    recorded &= !cx.globals.dry_run;
    if recorded {
        log::apply(&records.record(&entry, &index.marks(), &now, &date)?)?;
        // After the record. A draft that a crash leaves here is about cycles that are no longer due, and is
        // not taken up by `kept`.
        fs_err::remove_file(&draft)?;
    }
    let exit = if recorded { Exit::Done } else { Exit::Waiting };
    Ok(Response::new(ReviewReport { date, cycles, entry, recorded, reused, draft }, exit))
}

/// Calls the leaf, and keeps what it wrote as the draft.
fn written(
    cx: &Context<'_>,
    index: &Index,
    reviewed: &[Bundle],
    started: &str,
    draft: &Utf8Path,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let log = cx.workspace()?.process_dir.join(LOG);
    let log = files::read_bounded(log, MAX_LOG_FILE)?.unwrap_or_default();
    let files = view(index, started, &log)?;
    let count = counted(index.cycles.len(), "cycle", "cycles");
    cx.note(err, &format!("act leaf reviews {count}"))?;
    let site = session::driver_config(cx)?;
    let review =
        |driver: &pdca_driver::Driver<'_>| pdca_driver::review_cycles(driver, reviewed, files);
    let written = session::work(cx, &site, None, err, review)?.map_err(|error| {
        Failure::from_error(Exit::Unexpected, &error)
            .hint("`pdca act review` asks again; `pdca act log --record` does without the leaf")
    })?;
    // The heading says which cycles the draft is about, also of a draft that is not valid yet.
    let heading = started.lines().next().unwrap_or_default();
    let text = format!("{heading}\n{}", String::from_utf8_lossy(&written));
    files::replace(draft, text.as_bytes())?;
    Ok(text)
}

impl Report for ReviewReport {
    const KIND: &'static str = "act-review";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.recorded {
            let count = counted(self.cycles.len(), "cycle", "cycles");
            writeln!(out, "{} {count}: {}", cx.out.good("recorded:"), ids(&self.cycles))?;
            writeln!(
                out,
                "next: make its process deltas, then {}",
                cx.out.accent("pdca act diff")
            )?;
            return Ok(());
        }
        out.write_all(printable(&self.entry).as_bytes())?;
        writeln!(out, "\ndraft: {}", cx.show(&self.draft))?;
        writeln!(
            out,
            "next: edit it if need be, then {}",
            cx.out.accent("pdca act review --record")
        )?;
        Ok(())
    }
}

/// Returns the files that the leaf sees.
fn view(index: &Index, started: &str, log: &[u8]) -> Result<Vec<(Utf8PathBuf, Vec<u8>)>, Failure> {
    let json = serde_json::to_vec_pretty(index)
        .map_err(|error| Failure::from_error(Exit::Unexpected, &error))?;
    let tail = log.len().saturating_sub(MAX_LOG);
    Ok(vec![
        ("index.json".into(), json),
        ("entry-started.md".into(), started.as_bytes().to_vec()),
        (LOG.into(), log[tail..].to_vec()),
    ])
}

/// Returns a draft that is about exactly these cycles.
fn kept(draft: &Utf8Path, cycles: &[BundleId]) -> Result<Option<String>, Failure> {
    let Some(bytes) = files::read_bounded(draft, MAX_DRAFT)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let entries = pdca_act::ActLog::parse(&bytes).entries;
    Ok(entries.first().is_some_and(|entry| entry.cycles == cycles).then_some(text))
}
